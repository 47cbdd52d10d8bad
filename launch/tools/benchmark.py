"""``malmoi benchmark …``: build a benchmark step by step, and check it. Heavy imports wait until a verb runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from launch.console import PlainConsole, Table, number_table, print_json, print_table, set_up_console
from launch.errors import require
from launch.tools.check_benchmark import check_benchmark

ABOUT = """Build a benchmark from your own text and annotators, as KLUE was built, or check any benchmark.

Order of the steps: draw, hand-out, take-in, agree, settle, split, check, card.

Example:  malmoi benchmark agree my-benchmark
"""
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a benchmark, with benchmark.yaml.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Format = Literal["votes", "klue", "conllu", "wos"]

benchmark_app = typer.Typer(no_args_is_help=True, help=ABOUT)
benchmark_app.command("check")(check_benchmark)


@benchmark_app.command("take-in")
def take_in_votes(
    folder: Folder,
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Exports of the annotation tool, or tables.")],
    format_: Annotated[
        Format, typer.Option("--from", help="votes: a table of item, worker, value. klue: KLUE-NLI and KLUE-STS files.")
    ] = "votes",
    as_json: AsJson = False,
) -> None:
    """Take in annotations: votes per worker, with hashed ids. Taking in a file again changes nothing.

    Example:  malmoi benchmark take-in my-benchmark votes.csv
    """
    set_up_console()
    from finetune.annotation.config import load_benchmark
    from finetune.annotation.take_in import READERS, take_in

    _show_counts("annotations", take_in(load_benchmark(folder), folder, files, READERS[format_]), as_json)


@benchmark_app.command("agree")
def show_agreement(folder: Folder, as_json: AsJson = False) -> None:
    """Measure the agreement of the workers, and exclude those who disagree with the others.

    Example:  malmoi benchmark agree my-benchmark
    """
    set_up_console()
    require("malmoi benchmark agree", ["krippendorff"])
    from finetune.annotation.agree import agree
    from finetune.annotation.config import load_benchmark

    result = agree(load_benchmark(folder), folder)
    if as_json:
        return print_json(result)
    parts = {"kept votes": result, **({"all votes": result["all workers"]} if result["all workers"] else {})}
    parts |= result["by source"] if len(result["by source"]) > 1 else {}
    rows = [row for row in result if all(row in part for part in parts.values())]
    cells = [[row, *(_cell(part[row]) for part in parts.values())] for row in rows]
    _show(number_table("agreement", ["", *parts], [row for row in cells if {*row[1:]} != {"–"}]))
    if result["author"]:
        _show_counts("votes and authors (KLUE, Table 5), %", result["author"])
    heads = ["worker", "votes", "shared", "pearson", "alpha", "pilot"]
    workers = [[*map(_cell, w.values()), result["excluded"].get(w["worker"], "")] for w in result["workers"]]
    if workers:
        _show(
            Table([*heads, "excluded because"], workers, numbers=range(1, len(heads)), title="workers and the others")
        )


def _show_counts(title: str, counts: dict[str, Any], as_json: bool = False) -> None:
    """Counts as a table; the parts of a section have its name in front."""
    if as_json:
        return print_json(counts)
    rows = list[list[str]]()
    for name, value in counts.items():
        inner = {f"{name}: {key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
        rows += [[key, _cell(part)] for key, part in inner.items()]
    _show(number_table(title, ["", "value"], rows))


def _show(table: Table) -> None:
    print_table(table, PlainConsole())


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
