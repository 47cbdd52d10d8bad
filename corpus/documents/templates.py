"""Jinja templates of cards, reports and job scripts, with common settings.

Undefined names are errors. Lines with only a tag produce no output.
"""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def load_templates(package: str, folder: str = ".", **settings: Any) -> Environment:
    """The templates in a folder of a package; ``settings`` are options of Jinja, such as ``autoescape``."""
    return Environment(
        loader=PackageLoader(package, folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **settings,
    )
