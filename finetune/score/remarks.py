"""What a reader of a score must know of the predictions behind it, counted: each is one sentence beside the score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from finetune.data.tables import nfc
from finetune.examples import Row
from finetune.task import Task


def in_nfc(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """The rows with golds and predictions in NFC, and what that changed: the same text in NFD would count as wrong."""
    same = [row._replace(gold=nfc(row.gold), prediction=nfc(row.prediction)) for row in rows]
    pairs = list(zip(rows, same, strict=True))
    changed = {
        "prediction": sum(old.prediction != new.prediction for old, new in pairs),
        "gold": sum(old.gold != new.gold for old, new in pairs),
    }
    return same, [
        f"{count:,} of {len(rows):,} {kind}s are not in NFC (Unicode's composed form); compared in NFC"
        for kind, count in changed.items()
        if count
    ]


def remarks(task: Task, rows: Sequence[Row]) -> list[str]:
    """One sentence for each thing that the metrics of the task pass over."""
    kind = task.own["kind"] if task.own is not None else task.name
    return [
        said.format(count, len(rows))
        for name, counts, said in REMARKS
        if kind == name and (count := sum(counts(row.prediction) for row in rows))
    ]


def _has_slot_twice(state: Any) -> bool:
    slots = ["-".join(str(entry).split("-", 2)[:2]) for entry in state]
    return len(set(slots)) < len(slots)


def _strays(tags: Any) -> int:
    """Runs of I- that no B- of their type begins."""
    return sum(
        tag.startswith("I-") and (before == "O" or before[2:] != tag[2:])
        for before, tag in zip(["O", *tags], tags, strict=False)
    )


_STRAY = "{:,} entities in {:,} predictions begin with I-, without a B-; the strict entity F1 counts none of them"
REMARKS: tuple[tuple[str, Callable[[Any], int], str], ...] = (
    ("wos", _has_slot_twice, "{:,} of {:,} predicted states have two values of one slot; both are scored"),
    ("klue-ner", _strays, _STRAY),
    ("tagging", _strays, _STRAY),
)
