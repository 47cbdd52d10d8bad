"""Generative models in a table: score, interval, share of parsed answers, tokens, time and price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launch.numbers import count, duration, number
from launch.report.blocks import Block, Table, Text
from launch.report.results import name_of, paper_metrics

HEADS = ("task, metric", "model", "score", "95 %", "parsed", "tokens in, out", "time", "price")
NOTE = (
    "Parsed: share of answers in the requested format; other answers count as wrong. Tokens and time cover all "
    "questions of the task, including earlier runs. Price: only if --price-in and --price-out are set."
)


def compare_with_encoders(scores: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Generative models and the encoders that were scored on the same examples, in one table; nothing without
    generative models."""
    places = dict.fromkeys((result["task"], result["split"]) for result in scores if "method" in result)
    rows = [row for place in places for r in scores if (r["task"], r["split"]) == place for row in _rows(r)]
    if not rows:
        return []
    unanswered = sum(result.get("unanswered", 0) for result in scores)
    missing = f"{count(unanswered)} questions have no answer and count as wrong. Run the command again to resend them."
    return [
        Table(HEADS, rows, range(2, 8), title="Generative models and encoders on the same examples"),
        *([Text(missing, "warning")] if unanswered else []),
        Text(f"{NOTE} Differences between models are tested under Scores. See docs/llm.md.", "note"),
    ]


def results_table(results: Sequence[Mapping[str, Any]], title: str = "") -> Table:
    """One row for each task, metric and model; encoders have no answers, so they leave those columns empty."""
    return Table(HEADS, [row for result in results for row in _rows(result)], range(2, 8), title=title, note=NOTE)


def _rows(result: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for place, metric in enumerate(paper_metrics(result)):
        interval = result["intervals"].get(metric)
        limits = "–" if interval is None else f"{interval[0]:.1f}\n{interval[1]:.1f}"
        cost = cost_cells(result) if place == 0 else ["", "", "", ""]
        score = number(result["scores"].get(metric))
        rows.append([f"{result['task']}\n{metric}", name_of(result), score, limits, *cost])
    return rows


def cost_cells(result: Mapping[str, Any]) -> list[str]:
    """Parse rate, tokens, time and price; of an encoder only the time of its training."""
    if "method" not in result:
        return ["–", "–", f"{duration(result['seconds'])}\ntraining" if result.get("seconds") else "–", "–"]
    tokens = result["tokens"]
    parsed = f"{result['parse_rate']:.1f} %" if result["method"] == "generation" else "–"
    counted = f"{count(tokens['in'])}\n{count(tokens['out'])}" if tokens["told_for"] else "–"
    price = "–" if result.get("price") is None else f"{result['price']:,.4f}"
    return [parsed, counted, duration(result["seconds"]), price]
