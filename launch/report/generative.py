"""Generative models in a table: score, interval, share of answers that parse, tokens, time and price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launch.console import Table
from launch.numbers import count, duration, number
from launch.report.blocks import Block, Text
from launch.report.gather import paper_metrics

HEADS = ("task, metric", "model", "score", "95 %", "parse", "tokens in, out", "time", "price")
NOTE = (
    "Parse: share of answers that had the demanded form; the others count as wrong. Tokens and time: of all questions "
    "of the task, whenever they were asked. Price: where --price-in and --price-out say one."
)


def results_table(results: Sequence[Mapping[str, Any]], title: str = "") -> Table:
    """One row a task, metric and model; encoders, which have no answers, leave those columns empty."""
    rows = [row for found in results for row in _rows(found)]
    return Table(HEADS, rows, range(2, 8), title=title, note=NOTE)


def _rows(found: Mapping[str, Any]) -> list[list[str]]:
    name = ", ".join(filter(None, (found["model"], found.get("settings", ""))))
    rows = []
    for place, metric in enumerate(paper_metrics(dict(found))):
        interval = found["intervals"].get(metric)
        said = "–" if interval is None else f"{interval[0]:.1f}\n{interval[1]:.1f}"
        about = cost_cells(found) if place == 0 else ["", "", "", ""]
        rows.append([f"{found['task']}\n{metric}", name, number(found["scores"].get(metric)), said, *about])
    return rows


def cost_cells(found: Mapping[str, Any]) -> list[str]:
    """Parse rate, tokens, time and price of a result; dashes of an encoder's, whose time is that of its training."""
    if "method" not in found:
        return ["–", "–", f"{duration(found['seconds'])}\ntraining" if found.get("seconds") else "–", "–"]
    tokens = found["tokens"]
    parse = f"{found['parse_rate']:.1f} %" if found["method"] == "generation" else "–"
    counted = f"{count(tokens['in'])}\n{count(tokens['out'])}" if tokens["told_for"] else "–"
    price = "–" if found.get("price") is None else f"{found['price']:,.4f}"
    return [parse, counted, duration(found["seconds"]), price]


def compare_with_encoders(scores: Sequence[Mapping[str, Any]]) -> list[Block]:
    """For the report: generative models and the encoders that were scored on the same examples, in one table; nothing
    where there are no generative ones."""
    places = dict.fromkeys((found["task"], found["split"]) for found in scores if "method" in found)
    rows = [
        row for place in places for found in scores if (found["task"], found["split"]) == place for row in _rows(found)
    ]
    if not rows:
        return []
    unanswered = sum(found.get("unanswered", 0) for found in scores)
    missing = f"{count(unanswered)} questions have no answer and count as wrong; ask them again with the same command."
    return [
        Table(HEADS, rows, range(2, 8), title="On the same examples"),
        *([Text(missing, "warning")] if unanswered else []),
        Text(f"{NOTE} Which differences are real stands under Scores. How: docs/llm.md.", "note"),
    ]
