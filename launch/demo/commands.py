"""``malmoi demo MODEL…``: the local page. Heavy imports wait until it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from launch.config import LaunchConfig
from launch.console import set_up_console


def show_page(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL", help="Folders: tokenizers, pretrained and kept models, runs.")
    ],
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 7860,
    opens: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    language: Annotated[
        Literal["auto", "en", "ko"], typer.Option(help="Of the page; auto: as the locale is.")
    ] = "auto",
) -> None:
    """Show one local page: type a sentence, see its personal data, pieces, fillings for [MASK], entities, tree, topic.

    Served on this machine alone (127.0.0.1); nothing is loaded from the network and nothing is sent there.

    Example:  malmoi demo runs/smoke
    """
    set_up_console()
    from launch.demo.app import serve

    serve(models, port, LaunchConfig(language=language).resolve_language(), opens=opens)
