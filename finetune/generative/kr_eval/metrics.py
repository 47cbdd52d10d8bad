"""The metrics that llm-kr-eval files name, done right: over all samples of a file, 0..100, nothing dropped.

```
exact_match  share of samples whose answer is the gold
set_f1       F1 of the lines as multisets, the mean over samples: what is gold twice must be answered twice
char_f1      F1 of the characters without spaces as multisets (as KorQuAD scores), the mean over samples
pearson      correlation of the numbers over the whole file, -100..100; spearman the same of their ranks
bleu         corpus BLEU of sacrebleu over all pairs, morphemes, effective order (``bleu``)
macro_f1     mean F1 of the classes that are gold somewhere; any other answer is a miss of its gold class
weighted_f1  the same weighted by how often each class is gold
```
``published`` has what the published code computes under these names. An answer without a number cannot be left out of
a correlation, as leaving out the hard ones would raise it: it counts as the end of the file's scale that is farther
from its gold. Metrics are prepared once and scored on rows, so that intervals over resampled rows cost little.
Legend: ``N`` samples, ``C`` classes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finetune.score.bootstrap import draw

Drawn = NDArray[np.int64]  # rows, in any order and repeated
ScoreRows = Callable[[Drawn], float]
NUMBER = re.compile(r"(?<![\d.])[-+]?\d+(?:\.\d+)?(?![\d.])")
RESAMPLES, SEED = 1_000, 42
CORRELATIONS = ("pearson", "spearman")


@dataclass(frozen=True, slots=True)
class Measured:
    """A metric of one file: ``value`` nan where it is undefined; ``error``: standard error over resampled samples, None
    where there is none; ``interval``: 95 %, within the metric's range."""

    value: float
    error: float | None
    interval: tuple[float, float] | None


def number_in(text: str) -> float | None:
    """The number of an answer that holds exactly one, None of any other: ``5점 만점에 3.2점`` could mean both."""
    found = NUMBER.findall(text)
    return float(found[0]) if len(found) == 1 else None


def measure(
    metric: str, golds: Sequence[str], answers: Sequence[str], samples: int = RESAMPLES, seed: int = SEED
) -> Measured:
    """A metric of the answers to all samples of a file, with its interval (the value ± 1.96 standard errors).

    Args:
        answers: as read, one a sample; the empty text where nothing could be.
        samples: resamples of the file; fewer than 2 give no interval.
    """
    return measure_rows(METRICS[metric](golds, answers), len(golds), metric in CORRELATIONS, samples, seed)


def measure_rows(
    score: ScoreRows, rows: int, is_correlation: bool = False, samples: int = RESAMPLES, seed: int = SEED
) -> Measured:
    """``measure`` of a prepared metric."""
    value = score(np.arange(rows))
    found = np.array([score(drawn) for drawn in draw([str(row) for row in range(rows)], samples, seed)])
    if samples < 2 or rows < 2 or math.isnan(value) or np.isnan(found).any():
        return Measured(value, None, None)
    error = float(np.std(found, ddof=1))
    low, high = value - 1.96 * error, value + 1.96 * error
    return Measured(value, error, (max(low, -100.0 if is_correlation else 0.0), min(high, 100.0)))


def lines_of(text: str) -> list[str]:
    """The lines of an answer without space around them, empty ones left out."""
    return [line for line in map(str.strip, text.split("\n")) if line]


def multiset_f1(answer: Iterable[str], gold: Iterable[str]) -> float:
    """0..1; nothing answered where nothing is gold is right."""
    answered, wanted = Counter(answer), Counter(gold)
    both = answered.total() + wanted.total()
    return 2 * (answered & wanted).total() / both if both else 1.0


def _mean_of(score_pair: Callable[[str, str], float]) -> Callable[[Sequence[str], Sequence[str]], ScoreRows]:
    """A metric that is the mean of what each ``(answer, gold)`` scores, 0..1."""

    def prepare(golds: Sequence[str], answers: Sequence[str]) -> ScoreRows:
        values_N = np.array([score_pair(answer, gold) for gold, answer in zip(golds, answers, strict=True)])
        return lambda rows: 100 * float(values_N[rows].mean())

    return prepare


def _characters(text: str) -> str:
    return "".join(text.split())


def _correlation(ranked: bool) -> Callable[[Sequence[str], Sequence[str]], ScoreRows]:
    def prepare(golds: Sequence[str], answers: Sequence[str]) -> ScoreRows:
        gold_N, answered_N = numbers_of(golds, answers)

        if ranked:  # sorted once: the ranks of drawn rows follow from how often each value is drawn
            places = [np.unique(side_N, return_inverse=True)[1] for side_N in (gold_N, answered_N)]
            return lambda rows: 100 * pearson(*(_ranks_of(place_N[rows]) for place_N in places))
        return lambda rows: 100 * pearson(gold_N[rows], answered_N[rows])

    return prepare


def numbers_of(golds: Sequence[str], answers: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Golds and answers as numbers; every gold is one (``read_task_file``)."""
    gold_N = np.array([math.nan if (value := number_in(gold)) is None else value for gold in golds])
    assert not np.isnan(gold_N).any()
    low, high = float(gold_N.min()), float(gold_N.max())
    far_N = np.where(gold_N - low >= high - gold_N, low, high)
    read = [number_in(answer) for answer in answers]
    return gold_N, np.array([far if value is None else value for value, far in zip(read, far_N, strict=True)])


def pearson(x_N: NDArray[np.float64], y_N: NDArray[np.float64]) -> float:
    """-1..1; nan where either side is constant."""
    x_N, y_N = x_N - x_N.mean(), y_N - y_N.mean()
    size = math.sqrt(float(x_N @ x_N) * float(y_N @ y_N))
    return min(1.0, max(-1.0, float(x_N @ y_N) / size)) if size > 1e-12 else math.nan


def ranks(values_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 for the smallest; equal values share the mean of their ranks."""
    return _ranks_of(np.unique(values_N, return_inverse=True)[1])


def _ranks_of(place_N: NDArray[np.int64]) -> NDArray[np.float64]:
    """The same of the places of values in ascending order, not all of which need to be there."""
    counts = np.bincount(place_N)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place_N])


def _class_f1(weighted: bool) -> Callable[[Sequence[str], Sequence[str]], ScoreRows]:
    def prepare(golds: Sequence[str], answers: Sequence[str]) -> ScoreRows:
        numbers = {name: number for number, name in enumerate(dict.fromkeys(golds))}
        gold_N = np.array([numbers[gold] for gold in golds])
        answered_N = np.array([numbers.get(answer, len(numbers)) for answer in answers])

        def score(rows: Drawn) -> float:
            gold, answered = gold_N[rows], answered_N[rows]
            sides = [np.bincount(side, minlength=len(numbers) + 1) for side in (gold, answered, gold[gold == answered])]
            gold_C, answered_C, right_C = (side[: len(numbers)] for side in sides)
            is_gold_C = gold_C > 0
            f1_C = 2 * right_C[is_gold_C] / (gold_C + answered_C)[is_gold_C]
            return 100 * float(np.average(f1_C, weights=gold_C[is_gold_C] if weighted else None))

        return score

    return prepare


def _bleu(golds: Sequence[str], answers: Sequence[str]) -> ScoreRows:
    from finetune.generative.kr_eval.bleu import pair_counts, score_counts

    counts_NK = np.stack([pair_counts(answer, gold) for gold, answer in zip(golds, answers, strict=True)])
    return lambda rows: score_counts(counts_NK[rows].sum(axis=0))


METRICS: Mapping[str, Callable[[Sequence[str], Sequence[str]], ScoreRows]] = {
    "exact_match": _mean_of(lambda answer, gold: float(answer == gold)),
    "set_f1": _mean_of(lambda answer, gold: multiset_f1(lines_of(answer), lines_of(gold))),
    "char_f1": _mean_of(lambda answer, gold: multiset_f1(_characters(answer), _characters(gold))),
    "pearson": _correlation(ranked=False),
    "spearman": _correlation(ranked=True),
    "bleu": _bleu,
    "macro_f1": _class_f1(weighted=False),
    "weighted_f1": _class_f1(weighted=True),
}
