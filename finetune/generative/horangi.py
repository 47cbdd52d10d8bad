"""Horangi's total of one model: the mean of understanding (llm-kr-eval) and conversation (MT-Bench).

```
understanding  mean over files of the first metric / 100         error: root of the sum of squares / files
conversation   score of the first judge / 10, as published       error / 10
total          mean of both                                      error: root of the sum of squares / 2
```
Files and questions are different samples, so their errors add up as independent ones. A file with a single sample has
no error, and then the total has none. Negative correlations stay negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput
from finetune.generative.tables import ResultTable
from finetune.score.intervals import Z_95

AGAIN = "run the command that wrote it again"


class Half(NamedTuple):
    """A value from 0 to 1, its standard error (None if unknown), and what it was computed from."""

    value: float
    error: float | None
    source: str


class Total(NamedTuple):
    model: str
    understanding: Half
    conversation: Half
    total: Half


def total_of(understanding: Path, conversation: Path) -> Total:
    """The total from two result folders; ``BadInput`` if they are of different models or lack results."""
    files = [read_json_object(path, AGAIN) for path in sorted(understanding.glob("*/scores.json"))]
    files = [scores for scores in files if "metrics" in scores]
    if not files:
        raise BadInput(f"{understanding}: no results of llm-kr-eval files; `malmoi llm run` writes them")
    bench = read_json_object(conversation / "scores.json", AGAIN)
    if bench.get("task") != "mt-bench":
        raise BadInput(f"{conversation}: no result of MT-Bench; `malmoi llm mt-bench` writes one")
    models = sorted({str(scores["model"]) for scores in (*files, bench)})
    if len(models) > 1:
        raise BadInput(f"{understanding} and {conversation}: results of {' and '.join(models)}; expected one model")
    parts = []
    for scores in files:
        metric, measured = next(iter(scores["metrics"].items()))
        parts.append(_scaled(measured["value"], measured["error"], 100, f"{scores['task']} {metric}", understanding))
    judge, summary = next(iter(bench["judges"].items()))
    single = summary["single"]
    first = _mean(parts)
    second = _scaled(single["score"], single["error"], 10, f"judged by {judge}", conversation)
    return Total(models[0], first, second, _mean([first, second])._replace(source="mean of both"))


def _scaled(value: float | None, error: float | None, maximum: float, source: str, folder: Path) -> Half:
    if value is None:
        raise BadInput(f"{folder}: no score ({source}): answers were constant, or no verdict was parsed; no total")
    return Half(value / maximum, None if error is None else error / maximum, source)


def _mean(parts: Sequence[Half]) -> Half:
    errors = [part.error for part in parts if part.error is not None]
    error = math.hypot(*errors) / len(parts) if len(errors) == len(parts) else None
    return Half(sum(part.value for part in parts) / len(parts), error, ", ".join(part.source for part in parts))


def total_table(total: Total) -> ResultTable:
    """Three rows; values from 0 to 1."""
    rows = []
    for name, half in zip(("understanding", "conversation", "total"), total[1:], strict=True):
        reach = None if half.error is None else Z_95 * half.error
        interval = "–" if reach is None else f"{half.value - reach:.3f} to {half.value + reach:.3f}"
        rows.append([name, f"{half.value:.3f}", interval, half.source])
    return ResultTable(("", "0 to 1", "95 %", "computed from"), rows, f"{total.model}: Horangi's total")
