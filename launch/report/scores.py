"""Scores beside the trivial baseline and, on the official dev files, beside the paper's Table 36."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from launch.report.blocks import Block, Picture, Section, Table, Text
from launch.report.figures import draw_scores
from launch.report.gather import PAPER_MODEL, count, number, paper_metrics


def verdict_on_scores(scores: Sequence[dict[str, Any]]) -> list[str]:
    """Which tasks the model has learnt, by the first metric of each, and which not, with all their metrics."""
    better: list[str] = []
    worse: list[str] = []
    for found in scores:
        if (gain(found, found["headline"]) or 0.0) > 0:
            better.append(f"{found['task']} {_signed(found, found['headline'])}")
        else:
            metrics = ", ".join(f"{metric} {_signed(found, metric)}" for metric in paper_metrics(found))
            worse.append(f"{found['task']} ({metrics})")
    lines = []
    if better:
        lines.append(f"Beats the trivial baseline on {len(better)} of {len(scores)} results: {', '.join(better)}.")
    if worse:
        lines.append(f"No better than the trivial baseline by the first metric: {', '.join(worse)}.")
    return lines


def _signed(found: dict[str, Any], metric: str) -> str:
    gap = gain(found, metric)
    return "undefined" if gap is None else f"{gap:+.1f}"


def gain(found: dict[str, Any], metric: str) -> float | None:
    """Points above the trivial baseline; a baseline without a defined score counts as 0."""
    value = found["scores"][metric]
    return None if value is None else value - (found["trivial"][metric] or 0.0)


def scores_section(scores: Sequence[dict[str, Any]]) -> Section:
    """Table and figure of all results."""
    is_official = any(found["is_official_dev"] for found in scores)
    heads = ["task", "model", "seed", "metric", "score", "95 % interval", "trivial", "gain", "trained on", "scored on"]
    if is_official:
        heads.append(f"{PAPER_MODEL}, Table 36")
    rows = [_row(found, metric, is_official) for found in scores for metric in paper_metrics(found)]
    others = [
        [found["task"], found["model"], str(found["seed"]), metric, number(value), number(found["trivial"][metric])]
        for found in scores
        for metric, value in found["scores"].items()
        if metric not in paper_metrics(found)
    ]
    headlines = [found for found in scores if found["scores"][found["headline"]] is not None]
    figure = draw_scores(
        [f"{f['task']} · {f['headline']}" for f in headlines],
        [f["scores"][f["headline"]] for f in headlines],
        [f["trivial"][f["headline"]] or 0.0 for f in headlines],
    )
    blocks: list[Block] = [Picture(figure)] if headlines else []
    blocks += [
        Table(heads, rows, numbers=(4, 5, 6, 7, 8, 9, 10), signs=(7,)),
        Table(
            ["task", "model", "seed", "metric", "score", "trivial"],
            others,
            numbers=(4, 5),
            title="Further metrics",
            folded=True,
        ),
        Text(
            "Scores are 0 to 100. The trivial baseline needs no model: the majority class, the mean, the right-hand "
            "neighbour as head, no answer, an empty state. Intervals come from resampling the scored examples. Scores "
            "of different tasks are never averaged. In AUPRC a constant prediction gets about 50: the reference takes "
            "the area under two points.",
            is_note=True,
        ),
        Table(["task", "scored on"], _splits(scores), title="What was scored"),
    ]
    return Section("Scores", blocks)


def _row(found: dict[str, Any], metric: str, is_official: bool) -> list[str]:
    interval = found["intervals"].get(metric)
    gap = gain(found, metric)
    row = [
        found["task"],
        found["model"],
        str(found["seed"]),
        metric,
        number(found["scores"][metric]),
        "–" if interval is None else f"{interval[0]:.1f} to {interval[1]:.1f}",
        number(found["trivial"][metric]),
        "–" if gap is None else f"{gap:+.2f}",
        count(found["n_train"]),
        count(found["n"]),
    ]
    if is_official:
        paper = found["paper_dev"].get(PAPER_MODEL, {}).get(metric) if found["is_official_dev"] else None
        row.append(number(paper))
    return row


def _splits(scores: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Tasks by what they were scored on."""
    tasks: dict[str, list[str]] = {}
    for found in scores:
        tasks.setdefault(found["split"], []).append(found["task"])
    return [[", ".join(dict.fromkeys(names)), split] for split, names in tasks.items()]
