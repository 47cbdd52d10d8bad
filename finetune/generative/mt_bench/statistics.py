"""How far a judge's scores can be trusted: intervals, agreement of two judges, bias by position and length.

```
score      mean of the turns of a question ─▶ mean per category ─▶ mean of the categories (as Horangi does), 1..10
agreement  two judges on the same answers: equal, within 1, Spearman, Cohen's kappa with quadratic weights
position   share of pairs whose verdict changes with the order of the answers; how often the first answer wins
length     Spearman correlation of score and answer length: what length could explain, not that it does
```
Failed verdicts are left out of the means and counted; ``worst`` is the score if each of them were 1.
"""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from finetune import metrics
from finetune.generative.mt_bench.judge import MAX_SCORE, MIN_SCORE, Verdict
from finetune.score.bootstrap import RESAMPLES, SEED, draw, error_and_interval

POINTS: Mapping[Verdict, float] = {"a": 1.0, "tie": 0.5, "b": 0.0}


class Scored(NamedTuple):
    """A judge's score of one answer, None if it failed, and the length of the answer in characters.

    ``judged``: the score before the penalty for another language.
    """

    question: str
    category: str
    turn: int
    score: float | None
    length: int
    judged: float | None = None


class Paired(NamedTuple):
    """The verdicts on one pair in both orders, with ``a`` for the model and ``b`` for the other one."""

    question: str
    category: str
    turn: int
    first: Verdict | None  # the model shown first
    second: Verdict | None  # the other one shown first

    @property
    def verdict(self) -> Verdict | None:
        """The common verdict; a tie if the order decides; None if one failed."""
        if self.first is None or self.second is None:
            return None
        return self.first if self.first == self.second else "tie"


def summarize_scores(scores: Sequence[Scored]) -> dict[str, Any]:
    """The scores of one judge as JSON: overall, by turn, by category, failures, length bias."""
    by_turn, by_category = defaultdict[str, list[Scored]](list), defaultdict[str, list[Scored]](list)
    for one in scores:
        by_turn[str(one.turn)].append(one)
        by_category[one.category].append(one)
    judged = [(one.score, float(one.length)) for one in scores if one.score is not None]
    return {
        **mean_over_questions(scores, mean_of_categories),
        "worst": mean_of_categories([one._replace(score=one.score or MIN_SCORE) for one in scores]),
        "without_penalty": mean_over_questions([one._replace(score=one.judged) for one in scores], mean_of_categories),
        "failed": len(scores) - len(judged),
        "n": len(scores),
        "turns": {turn: mean_over_questions(by_turn[turn], mean_of_categories) for turn in sorted(by_turn)},
        "categories": {name: mean_of_categories(by_category[name]) for name in by_category},
        "length_spearman": spearman([score for score, _ in judged], [length for _, length in judged]),
    }


def mean_of_categories(scores: Sequence[Scored]) -> float | None:
    """The mean of the category means of the question means; None without a score."""
    by_question = defaultdict[tuple[str, str], list[float]](list)
    for one in scores:
        if one.score is not None:
            by_question[one.category, one.question].append(one.score)
    by_category = defaultdict[str, list[float]](list)
    for (category, _), values in by_question.items():
        by_category[category].append(fmean(values))
    return fmean(map(fmean, by_category.values())) if by_category else None


def mean_over_questions(
    items: Sequence[Any], score: Callable[[Sequence[Any]], float | None],
    low: float = MIN_SCORE, high: float = MAX_SCORE,
) -> dict[str, Any]:  # fmt: skip
    """A score with its standard error and 95 % interval, None if undefined.

    Questions are resampled with all their turns; a question drawn twice counts twice.
    """
    value = score(items)
    questions = list(dict.fromkeys(one.question for one in items))
    members = {name: [one for one in items if one.question == name] for name in questions}
    resampled = list[float | None]()
    for drawn in draw(questions, RESAMPLES, SEED) if value is not None and len(questions) > 1 else ():
        groups = enumerate(members[questions[row]] for row in drawn.tolist())
        resampled.append(score([one._replace(question=str(place)) for place, group in groups for one in group]))
    error, interval = error_and_interval(value, resampled, len(questions), limits=(low, high))
    return {"score": value, "error": error, "interval": interval}


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Correlation of the ranks, -1..1; None for fewer than three pairs or a constant side."""
    value = metrics.spearman(np.array(x), np.array(y)) / 100 if len(x) > 2 else math.nan
    return None if math.isnan(value) else value


def agreement(a: Sequence[Scored], b: Sequence[Scored]) -> dict[str, Any]:
    """Two judges on the answers that both scored; shares from 0 to 1."""
    judged = _judged_by_both([(one, one.score) for one in a], [(one, one.score) for one in b])
    if not judged:
        return {"n": 0, "exact": None, "within_1": None, "spearman": None, "kappa": None}
    x, y = map(list, zip(*judged, strict=True))
    return {
        "n": len(judged),
        "exact": fmean(one == other for one, other in judged),
        "within_1": fmean(abs(one - other) <= 1 for one, other in judged),
        "spearman": spearman(x, y),
        "kappa": metrics.kappa(judged, lambda one, other: (one - other) ** 2),  # quadratic weights
        "mean_difference": fmean(y) - fmean(x),
    }


def agreement_of_pairs(a: Sequence[Paired], b: Sequence[Paired]) -> dict[str, Any]:
    """Two judges on the pairs that both judged."""
    judged = _judged_by_both([(pair, pair.verdict) for pair in a], [(pair, pair.verdict) for pair in b])
    exact = fmean(x == y for x, y in judged) if judged else None
    return {"n": len(judged), "exact": exact, "kappa": metrics.kappa(judged, operator.ne)}


def _judged_by_both(a: Sequence[tuple[Any, Any]], b: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The values of both judges on the same turns, without failures."""
    others = {(one.question, one.turn): value for one, value in b}
    pairs = [(value, others.get((one.question, one.turn))) for one, value in a]
    return [(x, y) for x, y in pairs if x is not None and y is not None]


def win_rate(pairs: Sequence[Paired]) -> float | None:
    """Share of pairs that the model wins, 0..1, with a tie as half a win; None if no pair was judged."""
    points = [POINTS[verdict] for pair in pairs if (verdict := pair.verdict) is not None]
    return fmean(points) if points else None


def summarize_pairs(pairs: Sequence[Paired]) -> dict[str, Any]:
    """The pairs of one judge as JSON: wins, ties, losses, win rate, position bias, failures."""
    judged = [pair for pair in pairs if pair.verdict is not None]
    verdicts = Counter(pair.verdict for pair in judged)
    first_wins = sum((pair.first == "a") + (pair.second == "b") for pair in judged)
    second_wins = sum((pair.first == "b") + (pair.second == "a") for pair in judged)
    return {
        "wins": verdicts["a"], "ties": verdicts["tie"], "losses": verdicts["b"], "failed": len(pairs) - len(judged),
        "n": len(pairs), "win_rate": mean_over_questions(pairs, win_rate, 0.0, 1.0),
        "order_decides": fmean(pair.first != pair.second for pair in judged) if judged else None,
        "first_wins": first_wins / (first_wins + second_wins) if first_wins + second_wins else None,
    }  # fmt: skip
