"""Scores of a predictions file, without torch: anybody's predictions can be scored, anywhere.

A predictions file has one JSON object a line: ``guid``, ``gold``, ``prediction`` and, where the metric needs them
(KLUE-RE), ``scores``. The forms of gold and prediction stand with the metrics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from sklearn import config_context

from finetune.config import BadInput
from finetune.files import read_text
from finetune.metrics import classification, dp, mrc, ner, re, sts, wos
from finetune.task import Row

Score = Callable[[Sequence[Row]], dict[str, float]]

SCORES: Mapping[str, Score] = {
    "ynat": classification.score_ynat,
    "klue-sts": sts.score,
    "klue-nli": classification.score_nli,
    "klue-ner": ner.score,
    "klue-re": re.score,
    "klue-dp": dp.score,
    "klue-mrc": mrc.score,
    "wos": wos.score,
}


def score_predictions(task: str, path: Path) -> dict[str, float]:
    """Metrics of a predictions file, 0..100, the headline first; nan where a metric is undefined.

    Raises:
        BadInput: unknown task, or a file whose lines are not predictions of this task.
    """
    if task not in SCORES:
        raise BadInput(f"{task}: no such task; the tasks are {', '.join(SCORES)}")
    rows = read_rows(path)
    try:
        return SCORES[task](rows)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BadInput(
            f"{path}: its golds and predictions do not have the form of {task} ({type(error).__name__}: {error})"
        ) from None


def read_rows(path: Path) -> list[Row]:
    """The lines of a predictions file.

    Raises:
        BadInput: no line, or one that is no JSON object with ``gold`` and ``prediction``.
    """
    rows = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            rows.append(
                Row(str(record.get("guid", number)), record["gold"], record["prediction"], record.get("scores"))
            )
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
            raise BadInput(
                f"{path}, line {number}: expected a JSON object with 'guid', 'gold' and 'prediction', "
                f"found {line[:80]!r}"
            ) from None
    if not rows:
        raise BadInput(f"{path}: no predictions in it")
    return rows


def bootstrap(
    rows: Sequence[Row], groups: Sequence[str], score: Score, samples: int, seed: int
) -> dict[str, tuple[float, float] | None]:
    """95 % interval of each metric: its value ± 1.96 standard deviations over resampled rows, within its range.

    Not the percentiles: metrics that average over classes are biased in a resample, where rare classes are missing.

    Args:
        groups: the group of each row; rows are drawn with replacement, a whole group (a dialogue) at a time.
        samples: how often; fewer than 2 give no intervals.

    Returns:
        lower and upper bound by metric; None where there is no interval, or a resample leaves the metric undefined.
    """
    members: dict[str, list[int]] = {}
    for index, name in enumerate(groups):
        members.setdefault(name, []).append(index)
    units = list(members.values())
    generator = np.random.default_rng(seed)
    whole = score(rows)
    values: dict[str, list[float]] = {name: [] for name in whole}
    with config_context(assume_finite=True, skip_parameter_validation=True):  # the rows have been scored before
        for _ in range(samples if samples > 1 else 0):
            drawn = [rows[i] for unit in generator.integers(len(units), size=len(units)) for i in units[unit]]
            for name, value in score(drawn).items():
                values[name].append(value)
    return {name: _interval(name, whole[name], found) for name, found in values.items()}


def _interval(name: str, value: float, resampled: Sequence[float]) -> tuple[float, float] | None:
    if not resampled or math.isnan(value) or any(map(math.isnan, resampled)):
        return None
    reach = 1.96 * float(np.std(resampled, ddof=1))
    return max(value - reach, -100.0 if name == "pearsonr" else 0.0), min(value + reach, 100.0)
