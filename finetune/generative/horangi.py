"""Horangi's total of one model: the mean of two halves, understanding (llm-kr-eval) and conversation (MT-Bench).

```
understanding  mean over files of the first metric / 100        error: root of the sum of squares / files
conversation   (score of the first judge) / 10, as published     error / 10
total          mean of both                                     error: root of the sum of squares / 2
```
The two halves and the files have different samples, so their errors add up as those of independent figures. A file with
one sample has no error, and then the total has none. Negative correlations stay negative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput
from finetune.generative.tables import ResultTable

SCORES = "scores.json"


class Half(NamedTuple):
    """A figure from 0 to 1 with its standard error, None where it is unknown."""

    value: float
    error: float | None
    of: str

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.error is None else (self.value - 1.96 * self.error, self.value + 1.96 * self.error)


class Total(NamedTuple):
    model: str
    understanding: Half
    conversation: Half
    total: Half


def total_of(understanding: Path, conversation: Path) -> Total:
    """From two folders of results; ``BadInput`` where one is not, or they are of two models."""
    files = [_read(path) for path in sorted(understanding.glob(f"*/{SCORES}"))]
    files = [found for found in files if "metrics" in found]
    if not files:
        raise BadInput(f"{understanding}: no results of llm-kr-eval files; `malmoi llm run` writes them")
    bench = _read(conversation / SCORES)
    if bench.get("task") != "mt-bench":
        raise BadInput(f"{conversation}: no result of MT-Bench; `malmoi llm mt-bench` writes one")
    models = sorted({str(found["model"]) for found in (*files, bench)})
    if len(models) > 1:
        raise BadInput(
            f"{understanding} and {conversation}: results of {' and '.join(models)}; a total is of one model"
        )
    first = _understanding(understanding, files)
    second = _conversation(conversation, bench)
    return Total(models[0], first, second, _mean([first, second], "mean of both"))


def _read(path: Path) -> dict[str, Any]:
    return read_json_object(path, "run the verb that wrote it again")


def _understanding(folder: Path, files: Sequence[Mapping[str, Any]]) -> Half:
    parts = []
    for found in files:
        metric, measured = next(iter(found["metrics"].items()))
        if measured["value"] is None:
            raise BadInput(f"{folder}: {metric} of {found['task']} is undefined (a constant), so there is no total")
        error = measured["error"]
        parts.append(Half(measured["value"] / 100, None if error is None else error / 100, f"{found['task']} {metric}"))
    return _mean(parts, ", ".join(part.of for part in parts))


def _conversation(folder: Path, bench: Mapping[str, Any]) -> Half:
    judge, found = next(iter(bench["judges"].items()))
    single = found["single"]
    if single["score"] is None:
        raise BadInput(f"{folder}: no verdict of {judge} could be read, so there is no total")
    return Half(single["score"] / 10, None if single["error"] is None else single["error"] / 10, f"judged by {judge}")


def _mean(parts: Sequence[Half], of: str) -> Half:
    errors = [part.error for part in parts if part.error is not None]
    error = math.hypot(*errors) / len(parts) if len(errors) == len(parts) else None
    return Half(sum(part.value for part in parts) / len(parts), error, of)


def total_table(total: Total) -> ResultTable:
    """Three rows; values from 0 to 1."""
    rows = []
    for name, half in zip(("understanding", "conversation", "total"), total[1:], strict=True):
        interval = "–" if half.interval is None else "{:.3f} to {:.3f}".format(*half.interval)
        rows.append([name, f"{half.value:.3f}", interval, half.of])
    return ResultTable(("", "0 to 1", "95 %", "of"), rows, f"{total.model}: Horangi's total")
