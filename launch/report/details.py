"""Below the scores: figures by class, question type or slot, and samples of wrong predictions, folded.

Of several seeds only the first is shown; the others lie in their ``scores.json`` and ``errors.json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from launch.report.blocks import Block, Heading, Table, Text
from launch.report.compare import Group
from launch.report.gather import count, number

NOTE_ON_ERRORS = (
    "Where a prediction has several parts, only what differs is shown. A type in brackets is a run of I- tags that no "
    "B- begins: no entity for the metric. Labels of the benchmark may be wrong, too."
)
MOST_LINES = 12  # of one cell: a dialogue state may be wrong in all its slots


def table_blocks(groups: Sequence[Group]) -> list[Block]:
    """The tables of each task (``Task.tables``), figures right-aligned."""
    blocks = [
        _figures(f"{name}: {title}", rows)
        for name, found in _shown(groups)
        for title, rows in found.get("tables", {}).items()
        if rows
    ]
    return [Heading("By class, type and length"), *blocks] if blocks else []


def error_blocks(groups: Sequence[Group]) -> list[Block]:
    """The sample of wrong predictions of each task."""
    blocks = [_errors(name, found["errors"]) for name, found in _shown(groups) if found.get("errors")]
    return [Heading("Wrong predictions"), *blocks, Text(NOTE_ON_ERRORS, is_note=True)] if blocks else []


def _shown(groups: Sequence[Group]) -> list[tuple[str, dict[str, Any]]]:
    """The first result of each group under a name that tells them apart."""
    has_models = len({group.name for group in groups}) > 1
    has_seeds = any(len(group.results) > 1 for group in groups)
    return [
        (
            group.first["task"]
            + (f", {group.name}" if has_models else "")
            + (f", seed {group.first['seed']}" if has_seeds else ""),
            group.first,
        )
        for group in groups
    ]


def _figures(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    heads = list(dict.fromkeys(head for row in rows for head in row))
    numbers = [
        place
        for place, head in enumerate(heads)
        if all(isinstance(row.get(head), int | float | None) for row in rows)
        and any(row.get(head) is not None for row in rows)
    ]
    cells = [[_cell(row.get(head)) for head in heads] for row in rows]
    is_confusion = heads[1:] == [row[heads[0]] for row in rows]
    heat = [_shares([row[head] for head in heads[1:]]) for row in rows] if is_confusion else ()
    return Table(heads, cells, numbers, title=title, folded=not is_confusion, heat=heat)


def _shares(counts: Sequence[int]) -> list[float]:
    return [count / max(1, sum(counts)) for count in counts]


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return count(value)
    return number(value) if value is None or isinstance(value, float) else str(value)


def _errors(name: str, found: dict[str, Any]) -> Table:
    order = {"probability": "the most certain first", "distance": "the largest distance first"}
    samples, sorted_by = found["samples"], found["sorted_by"]
    heads = ["example", "right", "predicted", *([sorted_by] if sorted_by else []), "guid"]
    rows = []
    for sample in samples:
        value = [number(sample["value"])] if sorted_by else []
        both = (_lines(sample["gold"]), _lines(sample["predicted"]))
        rows.append([_texts(sample["texts"]), *both, *value, sample["guid"]])
    title = f"{name}: {count(len(samples))} of {count(found['wrong'])} wrong among {count(found['n'])}"
    title += f", {order.get(sorted_by, 'drawn by seed')}"
    return Table(heads, rows, (3,) if sorted_by else (), title=title, folded=True, is_text=True)


def _texts(texts: dict[str, str]) -> str:
    """The fields of an example, named where there are several."""
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n".join(f"{name}: {text}" for name, text in texts.items())


def _lines(values: Sequence[str]) -> str:
    shown = [*values[:MOST_LINES], *([f"… and {len(values) - MOST_LINES} more"] if len(values) > MOST_LINES else [])]
    return "\n".join(shown) or "–"
