"""Templates to files in which every value is data: quoted for the shell, or as JSON in a manifest.

Choice: that happens to every ``{{ value }}``, so a template cannot forget it. The few filters below say otherwise, and
check what they let through.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from typing import Any

from corpus.documents.escaping import escape_controls
from corpus.documents.templates import load_templates
from launch.errors import LaunchError

NOT_IN_DIRECTIVES = re.compile(r"[^\w./+,:@=%-]")


class Plain(str):
    """Text that stands in a file as it is."""


def render(template: str, **values: Any) -> str:
    """The text of a template of this package."""
    is_yaml = template.endswith(".yaml.j2")

    def written(value: object) -> str:
        if isinstance(value, Plain):
            return value
        return json.dumps(value) if is_yaml else shlex.quote(str(value))

    environment = load_templates(
        "launch.cluster.jobs",
        "templates",
        comment_start_string="{##",  # {# begins the length of an array in bash
        comment_end_string="##}",
        finalize=written,
    )
    environment.filters |= {"words": _words, "comment": _comment, "directive": _directive, "mapping": _mapping}
    return environment.get_template(template).render(**values)


def _words(words: Iterable[str]) -> Plain:
    return Plain(shlex.join(words))


def _comment(text: object) -> Plain:
    """Text on one line after a ``#``."""
    return Plain(" ".join(escape_controls(str(text)).split()))


def _mapping(values: dict[str, str]) -> Plain:
    """JSON, which is YAML, too."""
    return Plain(json.dumps(values))


def _directive(text: str) -> Plain:
    """An option on a line ``#SBATCH``, which sbatch reads by its own rules; LaunchError for what it could misread."""
    if found := NOT_IN_DIRECTIVES.search(text):
        raise LaunchError(f"{text}: a line #SBATCH cannot hold {found[0]!r}; choose another folder or name")
    return Plain(text)
