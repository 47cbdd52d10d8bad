"""Horangi's total of one model: the mean of understanding (llm-kr-eval) and conversation (MT-Bench).

Understanding is the mean over data sets of the first metric / 100, conversation the score of the first judge / 10. The
leaderboard has ten data sets; files of others are shown but do not count, unless there are only others. Subjects of
KMMLU count as one data set. Its MT-Bench has no penalty for other languages. Files and questions are different samples,
so their errors add up as independent ones; without the error of a part, the total has none. A negative correlation
lowers the total, and is named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput
from finetune.generative.tables import ResultTable
from finetune.metrics import interval_text
from finetune.score.significance import Z_95

AGAIN = "run the command that wrote it again"
DATA_SETS = (
    "kornli", "kobest_hs", "kobest_copa", "kobest_wic", "kmmlu", "korsts", "kobest_sn", "klue_ner", "klue_re",
    "korea_cg",
)  # fmt: skip


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
    notes: tuple[str, ...] = ()


def total_of(understanding: Path, conversation: Path) -> Total:
    """The total from two result folders; ``BadInput`` if they are of different models or lack results."""
    files = [read_json_object(path, AGAIN) for path in sorted(understanding.glob("*/scores.json"))]
    files = [scores for scores in files if "metrics" in scores]
    if not files:
        raise BadInput(f"{understanding}: no results of llm-kr-eval files; `malmoi llm run` writes them")
    bench = read_json_object(conversation / "scores.json", AGAIN)
    if bench.get("task") != "mt-bench":
        raise BadInput(f"{conversation}: no result of MT-Bench; `malmoi llm mt-bench` writes one")
    return compute_total(files, bench)


def compute_total(files: Sequence[Mapping[str, Any]], bench: Mapping[str, Any]) -> Total:
    """The total of results, as in ``scores.json``; ``BadInput`` for a missing score, or results of several models."""
    models = sorted({str(scores["model"]) for scores in (*files, bench)})
    if len(models) > 1:
        raise BadInput(f"results of {' and '.join(models)}; expected one model")
    by_set: dict[str, list[Half]] = {}
    for scores in files:
        task, (metric, one) = scores["task"], next(iter(scores["metrics"].items()))
        own = by_set.setdefault("kmmlu" if task.startswith("kmmlu_") else task, [])
        own.append(_scaled(one["value"], one["error"], 100, f"{task} {metric}"))
    halves = {name: own for name, own in by_set.items() if name in DATA_SETS} or by_set
    parts = list(map(_mean, halves.values()))
    judge, summary = next(iter(bench["judges"].items()))
    single = summary["single"].get("without_penalty", summary["single"])
    first = _mean(parts)
    second = _scaled(single["score"], single["error"], 10, f"judged by {judge}")
    total = _mean([first, second])._replace(source="mean of both")
    missing = [name for name in DATA_SETS if name not in by_set]
    others = [name for name in by_set if name not in halves]
    notes = [f"{len(DATA_SETS) - len(missing)} of Horangi's {len(DATA_SETS)} data sets."]
    notes += [f"Missing: {', '.join(missing)}."] if missing else []
    notes += [f"Not counted, as Horangi does not have them: {', '.join(others)}."] if others else []
    if negative := [part for part in parts if part.value < 0]:
        without = total.value - sum(part.value for part in negative) / len(parts) / 2
        named = ", ".join(f"{part.source} {part.value:.3f}" for part in negative)
        notes.append(f"Negative: {named}. With 0 in its place the total would be {without:.3f}.")
    return Total(models[0], first, second, total, tuple(notes))


def _scaled(value: float | None, error: float | None, maximum: float, source: str) -> Half:
    if value is None:
        raise BadInput(f"{source}: no score, as answers were constant or no verdict was parsed; so there is no total")
    return Half(value / maximum, None if error is None else error / maximum, source)


def _mean(parts: Sequence[Half]) -> Half:
    errors = [part.error for part in parts if part.error is not None]
    error = math.hypot(*errors) / len(parts) if len(errors) == len(parts) else None
    return Half(sum(part.value for part in parts) / len(parts), error, ", ".join(part.source for part in parts))


def total_table(total: Total) -> ResultTable:
    """Three rows; values from 0 to 1."""
    rows = []
    for name, half in zip(("understanding", "conversation", "total"), total[1:4], strict=True):
        ends = None if half.error is None else [half.value + sign * Z_95 * half.error for sign in (-1, 1)]
        rows.append([name, f"{half.value:.3f}", interval_text(ends, 3), half.source])
    title, note = f"{total.model}: Horangi's total", " ".join(total.notes)
    return ResultTable(("", "0 to 1", "95 %", "computed from"), rows, title, note)
