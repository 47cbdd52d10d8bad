"""``malmoi status``: how a run is doing, from any terminal or node that sees its folder. No torch, nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from launch.console import PlainConsole, print_table, set_up_console


def show_status(
    run: Annotated[
        str | None, typer.Argument(help="A run's folder, or its name in --runs; all of them without.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    read: Annotated[bool, typer.Option("--read", help="Read the last checkpoint, and not only its sizes.")] = False,
    runs: Annotated[Path, typer.Option("--runs", help="Folder that holds the run folders.")] = Path("runs"),
) -> None:
    """Tell how a run is doing: stage, progress, time left, health, last checkpoint, jobs. Only reads.

    Example:  malmoi status smoke
    """
    set_up_console()
    from launch.cluster.status.look import find_run, look_at, runs_in
    from launch.cluster.status.show import lines_of, table_of
    from launch.errors import LaunchError

    if run is not None:
        told = look_at(find_run(run, runs), reads=read)
    else:
        found = runs_in(runs)
        if not found:
            raise LaunchError(f"{runs}: no runs there; give the folder of one, or of all with --runs")
        told = {"runs": [look_at(path, reads=read) for path in found]}
    console = PlainConsole()
    if as_json:
        typer.echo(json.dumps(told, ensure_ascii=True, indent=1))
    elif run is None:
        print_table(table_of(told["runs"]), console)
    else:
        for line in lines_of(told):
            console.print(line, soft_wrap=True)
