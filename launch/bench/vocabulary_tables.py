"""The results of the tokenizer bench: tables on the terminal, and files to keep."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

CURVE_HEADS = ("learnt from, MB", "pieces per word", "[UNK] per piece", "boundary F1", "all kept", "crossing pieces")


def print_results(results: dict[str, Any], console: Console) -> None:
    """One table a section, the comparisons last."""
    from launch.tokenizer_tables import print_comparison

    material = results["material"]
    console.print(
        f"{material['documents']:,} documents, {material['megabytes']:.1f} MB of {material['texts']}; measured on "
        f"{material['measured_megabytes']:.1f} MB that nothing was learnt from"
    )
    console.print(_builds(results["builds"], results["machine"]["workers"]))
    console.print(_speed(results["counting"], results["encoding"]))
    if results["curve"]:
        console.print(_curve(results["curve"]))
    if results["compared"]:
        print_comparison(results["compared"], console)


def write_results(results: dict[str, Any], out: Path) -> None:
    """``bench.json``, ``compared.md`` and ``compared.png``, and ``curve.png`` where a curve was drawn."""
    from launch.tokenizer_tables import as_markdown, write_plot

    (out / "bench.json").write_text(as_json(results) + "\n", "utf-8")
    if results["compared"]:
        (out / "compared.md").write_text(as_markdown(results["compared"]), "utf-8")
        write_plot(results["compared"], out / "compared.png")
    if results["curve"]:
        _write_curve(results["curve"], out / "curve.png")


def as_json(results: dict[str, Any]) -> str:
    """JSON text of the results, comparisons by their fields."""
    return json.dumps(results, ensure_ascii=False, indent=2, default=asdict)


# step, as the builds name it → head of its column
STEPS = {
    "counting and windows": "count",
    "analysis": "analyse",
    "merges": "merge",
    "training": "train",
    "pruning": "prune",
    "statistics": "fit",
}
WHOLE = {"wall_s": "whole", "cpu_s": "CPU", "peak_mib": "MiB", "peak_worker_mib": "worker"}


def _builds(builds: dict[str, Any], workers: int) -> Table:
    table = Table(
        title="Building", title_justify="left", caption_justify="left", padding=(0, 0),
        caption=f"Seconds with {workers} processes or threads (medians of {builds['rounds']} for the first two), CPU "
        "seconds, peak memory of the main process and of a worker in MiB. The common recipe is mecab-ko over all text "
        f"and the library's trainer: {builds['times_faster']:.2f} times the time of malmoi, "
        f"{builds['times_faster_without_fit']:.2f} times without the figures over the corpus, which it does not make.",
    )  # fmt: skip
    table.add_column("")
    for head in (*STEPS.values(), *WHOLE.values()):
        table.add_column(head, justify="right")
    for name, row in builds["rows"].items():
        each = (f"{row['steps'][step]:.1f}" if step in row["steps"] else "" for step in STEPS)
        table.add_row(name, *each, *(f"{row[figure]:,.0f}" for figure in WHOLE))
    return table


def _speed(counting: dict[str, float], encoding: dict[str, Any]) -> Table:
    table = Table(title="One core", title_justify="left")
    table.add_column("")
    table.add_column("MB/s", justify="right")
    table.add_row("counting eojeols alone", f"{counting['alone_mb_per_s']:.1f}")
    table.add_row("counting with windows", f"{counting['with_windows_mb_per_s']:.1f}")
    for tokenizer, figures in encoding.items():
        for name, value in figures.items():
            if name.endswith("mb_per_s"):
                way = name.removesuffix("_mb_per_s").replace("_", " ")
                table.add_row(f"encoding with {tokenizer}, {way}", f"{value:.1f}")
    return table


def _curve(curve: list[Any]) -> Table:
    table = Table(title="Vocabulary against the size of the corpus (builder malmoi)", title_justify="left")
    for head in CURVE_HEADS:
        table.add_column(head, justify="right")
    for megabytes, found in curve:
        scores = found.gold or found.silver
        figures = (found.fit.fertility, found.fit.unknown_ratio, scores.f1, scores.keeps_all, scores.crossing)
        table.add_row(f"{megabytes:.1f}", *(f"{value:.4f}" if value is not None else "–" for value in figures))
    return table


def _write_curve(curve: list[Any], path: Path) -> None:
    from matplotlib.figure import Figure

    from launch.plotting import ACCENT, STYLE, matplotlib

    megabytes = [size for size, _ in curve]
    panels = {
        "boundary F1": [(found.gold or found.silver).f1 for _, found in curve],
        "pieces per word": [found.fit.fertility for _, found in curve],
    }
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.0), layout="constrained")
        for axes, (label, values) in zip(figure.subplots(1, 2), panels.items(), strict=True):
            axes.plot(megabytes, values, marker="o", color=ACCENT)
            axes.set(xscale="log", xlabel="learnt from, MB", ylabel=label)
            axes.set_xticks(megabytes, [f"{size:.0f}" for size in megabytes], minor=False)
            axes.minorticks_off()
        figure.savefig(path, dpi=200, metadata={"Software": None})
