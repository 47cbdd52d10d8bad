"""Scores of single-label classification: macro F1 for YNAT, accuracy for KLUE-NLI (paper 3.1.2, 3.3.2).

Macro F1 averages over the classes that occur in gold or prediction: a class that is only predicted counts with F1 0,
one that occurs on neither side does not count. Everything comes from one count of (gold, predicted) pairs, which is
many times faster on label names than scikit-learn; an interval scores the rows hundreds of times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from finetune.task import Row


class ClassCount(NamedTuple):
    """How often a class is the gold, how often it was predicted, and how often both."""

    gold: int
    predicted: int
    right: int

    @property
    def precision(self) -> float:
        """0..1; 0 where the class was never predicted."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """0..1; 0 where the class is never the gold."""
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """0..1; 0 where the class is on neither side."""
        return 2 * self.right / (self.gold + self.predicted) if self.gold or self.predicted else 0.0


def count_classes(rows: Sequence[Row]) -> dict[str, ClassCount]:
    """The counts of every class that occurs in gold or prediction."""
    gold, predicted, right = Counter[str](), Counter[str](), Counter[str]()
    for (expected, found), count in _count_pairs(rows).items():
        gold[expected] += count
        predicted[found] += count
        if expected == found:
            right[expected] += count
    return {name: ClassCount(gold[name], predicted[name], right[name]) for name in gold | predicted}


def _count_pairs(rows: Sequence[Row]) -> Counter[tuple[str, str]]:
    return Counter(map(attrgetter("gold", "prediction"), rows))


def score_ynat(rows: Sequence[Row]) -> dict[str, float]:
    """``macro_f1``, 0..100, of label names."""
    classes = count_classes(rows).values()
    return {"macro_f1": 100 * sum(counts.f1 for counts in classes) / len(classes)}


def score_nli(rows: Sequence[Row]) -> dict[str, float]:
    """``accuracy``, 0..100, of label names."""
    return {"accuracy": 100 * sum(counts.right for counts in count_classes(rows).values()) / len(rows)}


def class_rows(rows: Sequence[Row], labels: Sequence[str]) -> list[dict[str, Any]]:
    """A line for each of ``labels`` and any other class that occurs: counts, and precision, recall and F1, 0..100."""
    found = count_classes(rows)
    lines = []
    for name in dict.fromkeys([*labels, *found]):
        counts = found.get(name, ClassCount(0, 0, 0))
        shares = {key: 100 * getattr(counts, key) for key in ("precision", "recall", "f1")}
        lines.append({"class": name, **counts._asdict(), **shares})
    return lines


def confusion_rows(rows: Sequence[Row], labels: Sequence[str]) -> list[dict[str, Any]]:
    """A line for each gold class: how often each class was predicted for it, classes as the columns."""
    pairs = _count_pairs(rows)
    names = list(dict.fromkeys([*labels, *(name for pair in pairs for name in pair)]))
    return [{"gold": gold, **{predicted: pairs[gold, predicted] for predicted in names}} for gold in names]


def class_tables(labels: Sequence[str], rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    """The tables "classes" and "confusion" of a task with these labels."""
    return {"classes": class_rows(rows, labels), "confusion": confusion_rows(rows, labels)}
