"""A sample of wrong predictions: the text, the gold and the prediction, only where they differ.

With probabilities, the most certain errors come first; in KLUE-STS the largest distances; otherwise a seeded draw
decides. At most one error comes from a group (a dialogue, a passage). The sample shows the worst errors of labels and
model, not the average error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from finetune.examples import Example, Row
from finetune.task import Task

MOST_ERRORS = 10  # of one task, encoder and seed
LONGEST_TEXT = 400  # characters


def find_errors(
    task: Task, examples: Sequence[Example], rows: Sequence[Row], most: int = MOST_ERRORS, seed: int = 42
) -> dict[str, Any]:
    """The content of ``errors.json``, independent of the order of the rows; ``seed`` draws where nothing sorts.

    Returns:
        ``wrong`` of ``n`` rows with a gold, ``sorted_by`` ("probability", "distance" or None), and at most ``most``
            ``samples``: ``guid``, ``texts`` by field, ``gold`` and ``predicted``, and the ``value`` they are sorted by.
    """
    pairs = [pair for pair in zip(examples, rows, strict=True) if pair[1].gold is not None]
    wrong = [(example, row, _value(task, row)) for example, row in pairs if _is_wrong(task, row)]
    wrong.sort(key=lambda error: (-(error[2] or 0.0), _draw(seed, error[1].guid)))
    first_of_group: dict[str, tuple[Example, Row, float | None]] = {}
    for error in wrong:
        first_of_group.setdefault(task.group(error[0]), error)
    kind = "distance" if task.inspection.distance else "probability"
    sorted_by = kind if any(value is not None for _, _, value in wrong) else None
    samples = [_describe(task, *error) for error in list(first_of_group.values())[:most]]
    return {"task": task.name, "n": len(pairs), "wrong": len(wrong), "sorted_by": sorted_by, "samples": samples}


def _is_wrong(task: Task, row: Row) -> bool:
    return task.inspection.distance(row) >= 1 if task.inspection.distance else task.inspection.differs(row)


def _value(task: Task, row: Row) -> float | None:
    if task.inspection.distance:
        return round(task.inspection.distance(row), 4)
    return max(row.scores) if isinstance(row.scores, list) and row.scores else None


def _draw(seed: int, guid: str) -> bytes:
    return hashlib.blake2b(f"{seed}:errors:{guid}".encode(), digest_size=8).digest()


def _describe(task: Task, example: Example, row: Row, value: float | None) -> dict[str, Any]:
    texts, gold, predicted = task.inspection.show(example, row)
    shown = {name: " ".join(text.split()) for name, text in texts.items() if text}  # the first system turn is empty
    cut = {name: text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…" for name, text in shown.items()}
    return {"guid": row.guid, "texts": cut, "gold": gold, "predicted": predicted, "value": value}
