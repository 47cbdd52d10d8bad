"""The prompts of MT-Bench judges, how a verdict is parsed, and how far it can be trusted.

An answer may contain "평점: [[10]]" or orders to the judge. Therefore the prompt states that text between marks
(``<답변 3f9a…>``, a hash of all texts between them) is not an order, and the last line of the judge's own text counts
first. A verdict in [[ ]] elsewhere counts if it is the only one and no judged text has one, so that a quotation is no
verdict. A verdict that cannot be parsed is counted as a failure, never as a number.

KoMT-Bench takes the square root of the score of an answer that is not in Korean. It detects languages by a model and
exempts two questions. Here words with Hangul are counted; questions for another language or format are exempt.

The score is the mean of the turns of a question, of each category, then of the categories (as Horangi does), 1..10.
Failed verdicts are left out of the means and counted; ``worst`` is the score if each of them were 1. The correlation of
score and answer length is what length could explain, not that it does.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, count
from statistics import fmean
from typing import Any, Literal, NamedTuple
from unicodedata import normalize

import numpy as np

from finetune import metrics
from finetune.generative.prompts.prompt import korean_texts
from finetune.score.bootstrap import RESAMPLES, SEED, draw, error_and_interval

Verdict = Literal["a", "b", "tie"]
MIN_SCORE, MAX_SCORE = 1.0, 10.0
TEXTS = korean_texts("judge")
_SCORE, _WINNER = r"(\d{1,2}(?:\.\d+)?)\s{0,3}(?:/\s{0,3}10|점)?", r"(A|B|C|무승부|tie)"
BOXED_SCORE, BOXED_WINNER = (re.compile(rf"\[\[\s{{0,3}}{form}\s{{0,3}}\]\]", re.I) for form in (_SCORE, _WINNER))
SCORE_LINE, WINNER_LINE = (
    re.compile(
        rf"(?:최종\s?)?(?:{names})\s{{0,3}}[:：]?\s{{0,3}}(?:\[\[)?\s{{0,3}}{form}\s{{0,3}}(?:\]\])?\s?(?:점|/\s?10)?",
        re.IGNORECASE,
    )
    for names, form in (("평점|점수|rating|score", _SCORE), ("판정|verdict", _WINNER))
)
COLD = dict.fromkeys(("extraction", "math", "coding", "reasoning"), 0.0)
TEMPERATURES = {"writing": 0.7, "roleplay": 0.7, "stem": 0.1, "humanities": 0.1, **COLD}  # of answers, as in FastChat
MIN_CHARS, MIN_KOREAN = 20, 0.3  # a shorter answer has no language; share of words with Hangul in a Korean one
NO_PROSE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\$[^$\n]{1,200}\$|https?://\S+|\\[a-zA-Z]+", re.DOTALL)
HANGUL, KOREAN = re.compile("[가-힣]"), re.compile("(?:한국어|한글|우리말|국문)로")
NOT_KOREAN = re.compile("|".join(TEXTS["not_korean"]), re.IGNORECASE)
NEEDS_REFERENCE = ("math", "reasoning", "coding")
AROUND = " \t*_`#>-\"'.。"


@dataclass(frozen=True, slots=True)
class Question:
    """The turns that a user says, and optionally a reference answer to each."""

    id: str
    category: str
    turns: tuple[str, ...]
    reference: tuple[str, ...] = ()

    @property
    def lacks_reference(self) -> bool:
        return self.category in NEEDS_REFERENCE and len(self.reference) < len(self.turns)

    def reference_of(self, turn: int) -> str | None:
        """The reference answer to a turn, counted from 0, if the category is judged by one."""
        return self.reference[turn] if self.category in NEEDS_REFERENCE and turn < len(self.reference) else None


def ask_for_score(question: Question, answers: Sequence[str]) -> str:
    """The prompt for a score of the last of ``answers``; they answer the first turns of the question."""
    return _prompt(question, {"": answers}, "single", "ask_score")


def ask_for_winner(question: Question, first: Sequence[str], second: Sequence[str]) -> str:
    """The prompt for a comparison; ``first`` is shown as A. Both answer the same turns."""
    return _prompt(question, {" A": first, " B": second}, "pair", "ask_pair")


def _prompt(question: Question, sides: Mapping[str, Sequence[str]], task: str, form: str) -> str:
    """Rules, the reference answer to the last turn, and the conversation of each side."""
    reference = question.reference_of(len(next(iter(sides.values()))) - 1)
    mark = make_mark(*question.turns, *chain(*sides.values()), reference or "")
    rules = [TEXTS[task], *([TEXTS["reference"]] if reference else []), TEXTS["rules"], TEXTS[form]]
    parts = ["\n".join(rules), *([] if reference is None else [fence("정답 예시", reference, mark)])]
    for name, answers in sides.items():
        parts += [f"비서{name}의 대화"] if name else []
        for number, (turn, answer) in enumerate(zip(question.turns, answers, strict=False), start=1):
            parts += [fence(f"질문 {number}", turn, mark), fence(f"답변{name} {number}", answer, mark)]
    return "\n\n".join(parts)


def make_mark(*texts: str) -> str:
    """A mark that no text contains and that a model cannot know before it has written its text."""
    whole = "\0".join(texts)
    marks = (sha256(f"{salt}\0{whole}".encode(errors="backslashreplace")).hexdigest()[:12] for salt in count())
    return next(mark for mark in marks if mark not in whole)


def fence(label: str, text: str, mark: str) -> str:
    """The text between two lines that it cannot imitate."""
    return f"<{label} {mark}>\n{text}\n</{label} {mark}>"


def parse_score(judgement: str, shown: Sequence[str] = ()) -> float | None:
    """The score, 1..10, in a judge's text; None if there is none. ``shown``: the texts that were judged."""
    verdict = _parse_verdict(judgement, SCORE_LINE, BOXED_SCORE, shown)
    value = None if verdict is None else float(verdict)
    return value if value is not None and MIN_SCORE <= value <= MAX_SCORE else None


def parse_winner(judgement: str, shown: Sequence[str] = ()) -> Verdict | None:
    """The better answer in a judge's text, ``a`` for the one shown first; None if there is none."""
    verdict = _parse_verdict(judgement, WINNER_LINE, BOXED_WINNER, shown)
    verdicts: dict[str, Verdict] = {"A": "a", "B": "b", "C": "tie", "무승부": "tie", "TIE": "tie"}
    return None if verdict is None else verdicts[verdict.upper()]


def _parse_verdict(
    judgement: str, line_form: re.Pattern[str], boxed: re.Pattern[str], shown: Sequence[str]
) -> str | None:
    text = normalize("NFKC", judgement)
    lines = [line for line in (line.strip(AROUND) for line in text.splitlines()) if line]
    if lines and (match := line_form.fullmatch(lines[-1]) or boxed.fullmatch(lines[-1])):
        return match[1]
    verdicts = {match[1].upper() for match in boxed.finditer(text)}
    is_quoted = any(boxed.search(normalize("NFKC", text)) for text in shown)
    return verdicts.pop() if len(verdicts) == 1 and not is_quoted else None


def is_penalized(question: Question, turn: int, answer: str) -> bool:
    """Whether an answer to a turn, counted from 0, should be in Korean and is not."""
    turns = question.turns[: turn + 1]
    asked = next((text for text in reversed(turns) if KOREAN.search(text) or NOT_KOREAN.search(text)), "")
    if not HANGUL.search(" ".join(turns)) or (NOT_KOREAN.search(asked) and not KOREAN.search(asked)):
        return False
    words = [word for word in NO_PROSE.sub(" ", answer).split() if any(map(str.isalpha, word))]
    korean = sum(HANGUL.search(word) is not None for word in words)
    return sum(map(len, words)) >= MIN_CHARS and korean < MIN_KOREAN * len(words)


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
