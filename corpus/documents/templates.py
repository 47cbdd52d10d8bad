"""The pages and files that are written from Jinja templates: cards, reports, job scripts. One set of rules for all.

A name that is not given is an error, and a line that holds nothing but a tag leaves nothing behind.
"""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def load_templates(package: str, folder: str = ".", **settings: Any) -> Environment:
    """The templates that lie in a folder of a package; ``settings`` as Jinja names them (``autoescape`` of HTML)."""
    return Environment(
        loader=PackageLoader(package, folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **settings,
    )
