"""What a judge's scores are worth: intervals over questions, agreement of two judges, bias by position and by length.

```
score      mean of the turns of a question ─ mean of its category ─ mean of the categories (Horangi), 1..10
agreement  of two judges on the same answers: equal, within 1, Spearman, Cohen's kappa with quadratic weights
position   share of pairs in which swapping the two answers changes the verdict, and how often the first one wins
length     Spearman of score and characters of the answer, over all turns
```
A verdict that failed takes no part, and is counted: ``worst`` is the score if each of them had been a 1.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from finetune.generative.kr_eval.metrics import RESAMPLES, SEED, pearson, ranks
from finetune.generative.mt_bench.prompts import HIGHEST, LOWEST, Verdict
from finetune.score.bootstrap import draw


class Scored(NamedTuple):
    """A judge's score of one answer, None where it failed; ``length`` of the answer in characters."""

    question: str
    category: str
    turn: int
    score: float | None
    length: int


class Paired(NamedTuple):
    """Both orders of one pair, turned back so that ``a`` is the model and ``b`` the one it is held against."""

    question: str
    category: str
    turn: int
    first: Verdict | None  # the model shown first
    second: Verdict | None  # the other shown first

    @property
    def verdict(self) -> Verdict | None:
        """The winner where both orders agree; a tie where they do not; None where one failed."""
        if self.first is None or self.second is None:
            return None
        return self.first if self.first == self.second else "tie"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its standard error and 95 % interval over resampled questions; None where there is none."""

    value: float | None
    error: float | None
    interval: tuple[float, float] | None

    def as_json(self) -> dict[str, Any]:
        return {"score": self.value, "error": self.error, "interval": self.interval}


def summarize_scores(scores: Sequence[Scored], samples: int = RESAMPLES) -> dict[str, Any]:
    """The score of one judge as JSON: overall, by turn, by category, failures, length bias."""
    turns = sorted({one.turn for one in scores})
    categories = dict.fromkeys(one.category for one in scores)
    failed = [one for one in scores if one.score is None]
    worst = [one._replace(score=LOWEST) if one.score is None else one for one in scores]
    return {
        **mean_over_questions(scores, mean_of_categories, samples).as_json(),
        "worst": mean_of_categories(worst),
        "failed": len(failed),
        "n": len(scores),
        "turns": {
            str(turn): mean_over_questions([s for s in scores if s.turn == turn], mean_of_categories, samples).as_json()
            for turn in turns
        },
        "categories": {name: mean_of_categories([s for s in scores if s.category == name]) for name in categories},
        "length_spearman": length_bias(scores),
    }


def mean_of_categories(scores: Sequence[Scored]) -> float | None:
    """Each question the mean of its turns, each category of its questions, the whole of its categories."""
    by_question = defaultdict[tuple[str, str], list[float]](list)
    for one in scores:
        if one.score is not None:
            by_question[one.category, one.question].append(one.score)
    by_category = defaultdict[str, list[float]](list)
    for (category, _), values in by_question.items():
        by_category[category].append(fmean(values))
    return fmean(map(fmean, by_category.values())) if by_category else None


def mean_over_questions(
    items: Sequence[Any], score: Callable[[Sequence[Any]], float | None], samples: int = RESAMPLES,
    low: float = LOWEST, high: float = HIGHEST,
) -> Mean:  # fmt: skip
    """A score and its interval: questions are drawn with replacement, each with all its turns. A question drawn twice
    counts twice. No interval of a single question, or where a resample has no score at all."""
    value = score(items)
    questions = list(dict.fromkeys(one.question for one in items))
    if value is None or samples < 2 or len(questions) < 2:
        return Mean(value, None, None)
    members = {name: [one for one in items if one.question == name] for name in questions}
    found = []
    for drawn in draw(questions, samples, SEED):
        groups = (members[questions[row]] for row in drawn.tolist())
        again = score([one._replace(question=str(place)) for place, group in enumerate(groups) for one in group])
        if again is None:
            return Mean(value, None, None)
        found.append(again)
    error = float(np.std(found, ddof=1))
    return Mean(value, error, (max(value - 1.96 * error, low), min(value + 1.96 * error, high)))


def length_bias(scores: Sequence[Scored]) -> float | None:
    """Spearman of score and length, -1..1; None where it is undefined. Good answers may be long with good reason: it
    shows how much of a score length could explain, not that it does."""
    read = [(one.score, one.length) for one in scores if one.score is not None]
    return spearman([score for score, _ in read], [float(length) for _, length in read])


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Correlation of the ranks, -1..1; None of fewer than three pairs or a constant side."""
    if len(x) < 3:
        return None
    found = pearson(ranks(np.array(x)), ranks(np.array(y)))
    return None if math.isnan(found) else found


def agreement(a: Sequence[Scored], b: Sequence[Scored]) -> dict[str, Any]:
    """Two judges on the same answers, those that both could read; shares 0..1."""
    others = {(one.question, one.turn): one.score for one in b}
    pairs = [(one.score, others.get((one.question, one.turn))) for one in a]
    read = [(x, y) for x, y in pairs if x is not None and y is not None]
    if not read:
        return {"n": 0, "exact": None, "within_1": None, "spearman": None, "kappa": None}
    x, y = map(list, zip(*read, strict=True))
    return {
        "n": len(read),
        "exact": fmean(one == other for one, other in read),
        "within_1": fmean(abs(one - other) <= 1 for one, other in read),
        "spearman": spearman(x, y),
        "kappa": quadratic_kappa(x, y),
        "mean_difference": fmean(y) - fmean(x),
    }


def quadratic_kappa(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Cohen's kappa with quadratic weights: 1 less the mean squared difference over that of all ways to pair them."""
    by_chance = fmean((one - other) ** 2 for one in x for other in y)
    return 1 - fmean((one - other) ** 2 for one, other in zip(x, y, strict=True)) / by_chance if by_chance else None


def nominal_kappa(x: Sequence[str], y: Sequence[str]) -> float | None:
    """Cohen's kappa of verdicts; None where chance alone agrees always."""
    if not x:
        return None
    seen, other = Counter(x), Counter(y)
    by_chance = sum(seen[name] * other[name] for name in seen) / len(x) ** 2
    return (fmean(a == b for a, b in zip(x, y, strict=True)) - by_chance) / (1 - by_chance) if by_chance < 1 else None


def win_rate(pairs: Sequence[Paired]) -> float | None:
    """Share of pairs that the model wins, 0..1, a tie being half of one; None where no pair was judged."""
    points: Mapping[Verdict, float] = {"a": 1.0, "tie": 0.5, "b": 0.0}
    read = [points[verdict] for pair in pairs if (verdict := pair.verdict) is not None]
    return fmean(read) if read else None


def summarize_pairs(pairs: Sequence[Paired], samples: int = RESAMPLES) -> dict[str, Any]:
    """The pairs of one judge as JSON: wins, ties, losses, the share won, position bias, failures."""
    read = [pair for pair in pairs if pair.verdict is not None]
    verdicts = Counter(pair.verdict for pair in read)
    won = mean_over_questions(pairs, win_rate, samples, 0.0, 1.0)
    # the model was shown first in "first", the other one in "second"
    for_first = sum((pair.first == "a") + (pair.second == "b") for pair in read)
    for_second = sum((pair.first == "b") + (pair.second == "a") for pair in read)
    decided = for_first + for_second
    return {
        "wins": verdicts["a"], "ties": verdicts["tie"], "losses": verdicts["b"], "failed": len(pairs) - len(read),
        "n": len(pairs), "win_rate": won.as_json(),
        "order_decides": fmean(pair.first != pair.second for pair in read) if read else None,
        "first_wins": for_first / decided if decided else None,
    }  # fmt: skip


def agreement_of_pairs(a: Sequence[Paired], b: Sequence[Paired]) -> dict[str, Any]:
    """Two judges on the same pairs."""
    others = {(pair.question, pair.turn): pair.verdict for pair in b}
    both = [(pair.verdict, others.get((pair.question, pair.turn))) for pair in a]
    read = [(x, y) for x, y in both if x is not None and y is not None]
    x, y = [one for one, _ in read], [other for _, other in read]
    exact = fmean(one == other for one, other in read) if read else None
    return {"n": len(read), "exact": exact, "kappa": nominal_kappa(x, y)}
