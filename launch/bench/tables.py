"""The results of the corpus bench as tables on the terminal; every table says what it was measured on."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def print_results(results: dict[str, Any], console: Console) -> None:
    """One table a section."""
    named = results["material"]
    for table in (
        _splitting(results["splitting"], named),
        _personal_data(results["personal_data"], named),
        _passes(results["personal_data"]["speed"], named),
        _decontamination(results["decontamination"], named),
        _whole_stage(results["whole_stage"], results["naive"], named),
    ):
        console.print(table)
    console.print(
        f"CPU time of one core, medians of {results['rounds']} rounds taken in turns; ratios are of this run."
    )


def _splitting(found: dict[str, Any], named: dict[str, str]) -> Table:
    timed = f"{found['timed_megabytes']:.1f} MB"
    if found["timed_megabytes_slow"]:
        timed += f" (slow ones {found['timed_megabytes_slow']:.2f} MB)"
    table = _table(
        "Sentence splitting", f"{found['gold_sentences']:,} gold sentences of {named['sentences']}; speed on {timed}",
        "splitter", "EM", "F1", "nF1", "MB/s", "ours is faster",
    )  # fmt: skip
    for name, row in found["rows"].items():
        faster = row.get("ours_times_faster")
        scores = (f"{row[score]:.3f}" for score in ("em", "f1", "nf1"))
        table.add_row(_versioned(name, found), *scores, _rate(row["mb_per_s"]), f"{faster:,.0f} x" if faster else "")
    return _with_missing(table, found["missing"], 5)


def _personal_data(found: dict[str, Any], named: dict[str, str]) -> Table:
    on = f"{found['values']} values in {found['texts']:,} texts ({found['without']:,} without any) of {named['pii']}"
    table = _table(
        "Personal data", on, "detector", "precision", "recall", "F1", "exact", "covered", "lowest type", "false alarms"
    )
    for name, row in found["rows"].items():
        lowest = min(row["recall_by_type"].items(), key=lambda item: (item[1], item[0]), default=("–", 0.0))
        scores = (f"{row[score]:.3f}" for score in ("precision", "recall", "f1", "exact_recall", "covered_recall"))
        table.add_row(
            _versioned(name, found), *scores, f"{lowest[0]} {lowest[1]:.2f}", f"{row['flagged']}/{found['without']}"
        )
    return _with_missing(table, found["missing"], 7)


def _passes(speed: dict[str, Any], named: dict[str, str]) -> Table:
    table = _table(
        "Personal data, speed",
        f"{speed['sentences']:,} sentences, {speed['megabytes']:.1f} MB of {named['texts']}; "
        f"{speed['values']:,} values, {speed['sentences_that_differ']} sentences differ",
        "way", "MB/s", "times",
    )  # fmt: skip
    table.add_row("ours", _rate(speed["ours_mb_per_s"]), f"{speed['times_faster']:.1f}")
    table.add_row("sixteen passes of re", _rate(speed["sixteen_passes_mb_per_s"]), "1")
    return table


def _decontamination(found: dict[str, Any], named: dict[str, str]) -> Table:
    table = _table(
        "Decontamination",
        f"{found['queries']:,} sentences of {named['texts']} as queries (rank_bm25 {found['rank_bm25_queries']}); of "
        f"{found['pairs_compared']:,} pairs compared, {found['pairs_positive']} contaminated, "
        f"{found['pairs_that_differ']} decided otherwise",
        "way", "benchmark sentences", "sentences/s", "times",
    )  # fmt: skip
    table.add_row("ours", f"{found['items']:,}", _rate(found["ours_per_s"]), f"{found['times_faster']:,.0f}")
    table.add_row("rank_bm25", f"{found['items']:,}", _rate(found["rank_bm25_per_s"]), "1")
    if "ours_all" in found:
        table.add_row("ours", f"{found['ours_all']['items']:,}", _rate(found["ours_all"]["ours_per_s"]), "")
    return table


def _whole_stage(stage: dict[str, Any], naive: dict[str, Any], named: dict[str, str]) -> Table:
    table = _table(
        "Whole stage",
        f"{stage['documents']:,} documents, {stage['megabytes']:.1f} MB of {named['texts']}; "
        f"{naive['benchmark_sentences']:,} benchmark sentences",
        "", "MB/s a core", "once, CPU s", "core-hours for 62.65 GB", "times naive",
    )  # fmt: skip
    for key, name in (("everything", "everything on"), ("without_decontamination", "without decontamination")):
        row = stage[key]
        table.add_row(
            name, f"{row['mb_per_s_core']:.2f}", f"{row['fixed_cpu_s']:.1f}", f"{row['core_hours_62_gb']:,.1f}",
            _rate(naive["times_faster_" + key]),
        )  # fmt: skip
    table.add_row(
        "naive, everything",
        f"{1 / sum(naive['cpu_s_per_mb'].values()):.5f}",
        "",
        f"{naive['core_hours_62_gb']:,.0f}",
        "1",
    )
    table.caption = (
        f"{table.caption}. Peak memory: {stage['peak_mib_one_process']:,.0f} MiB in one process, "
        f"{stage['peak_mib_worker']:,.0f} MiB a worker of two. Naive: {naive['splitter']}, sixteen passes, rank_bm25 "
        "scaled by 1/N from the row above, without noise rules, reading and writing; extrapolated, never run."
    )
    return table


def _table(title: str, measured_on: str, first: str, *numbers: str) -> Table:
    table = Table(title=title, caption=measured_on, title_justify="left", caption_justify="left")
    table.add_column(first)
    for column in numbers:
        table.add_column(column, justify="right")
    return table


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _versioned(name: str, found: dict[str, Any]) -> str:
    version = found["versions"].get(name)
    return f"{name} {version}" if version else name


def _with_missing(table: Table, missing: list[str], columns: int) -> Table:
    for name in missing:
        table.add_row(name, "not installed", *("" for _ in range(columns - 1)), style="dim")
    return table
