"""Scores of KLUE-MRC: exact match and ROUGE-W (paper 3.7.2), as published and as the published code intends.

Quirks of the published metric, in every published score:
- ROUGE-W is neither weighted nor a subsequence: it is the F1 of the longest common *contiguous* run of characters, from
``difflib.SequenceMatcher``, whose heuristic ignores frequent characters in answers of 200 or more.
- The pattern that should remove brackets needs one quote or bracket followed by ``()‘’``, so brackets stay.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from finetune.examples import Row, Table

_BRACKETS_AS_PUBLISHED = re.compile(r"""['"《》<>〈〉]\(\)‘’""")
_BRACKETS = re.compile(r"""['"《》<>〈〉()‘’]""")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_METRICS = ("exact_match", "rouge_w", "exact_match_as_intended", "rouge_w_as_intended")
_TYPES = {1: "1 paraphrase", 2: "2 multi-sentence", 3: "3 unanswerable"}


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``exact_match`` and ``rouge_w``, 0..100, best over the gold answers of a question, as published.

    ``…_as_intended``: with the brackets removed, and a longest common run in which all characters count. A gold is
    ``{"answers": [texts]}``, without answers if the question has none; a prediction is a text, empty for "no answer".
    ``ValueError`` for anything else.
    """
    return mean_scores(list(zip(*score_questions(rows), strict=True)))


def mean_scores(values_KN: Sequence[Sequence[float]]) -> dict[str, float]:
    """``score`` of the values of each metric, 0..1, one a question."""
    return {name: 100 * sum(values_N) / len(values_N) for name, values_N in zip(_METRICS, values_KN, strict=True)}


def score_questions(rows: Sequence[Row]) -> list[tuple[float, float, float, float]]:
    """The metrics of each question, 0..1; ``ValueError`` as of ``score``."""
    for row in rows:
        if not isinstance(row.gold["answers"], list) or not isinstance(row.prediction, str):
            raise ValueError(
                f"{row.guid}: expected a list of texts under 'answers' and a text as prediction, found "
                f"{row.gold['answers']!r:.40} and {row.prediction!r:.40}"
            )
    return [_score_texts(tuple(row.gold["answers"]), row.prediction) for row in rows]


def score_question(gold: dict[str, Any], prediction: str) -> tuple[float, float]:
    """Exact match and ROUGE-W of one question as published, 0..1."""
    return _score_texts(tuple(gold["answers"]), prediction)[:2]


def tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Scores, and the share of predicted "no answer", by question type, and with and without answer."""
    kinds = ("unanswerable", "answerable")

    def type_of(row: Row) -> str:
        return _TYPES.get(row.gold.get("question_type"), "unknown")

    return {
        "question types": _by("question_type", rows, type_of, (*_TYPES.values(), "unknown")),
        "answerability": _by("questions", rows, lambda row: kinds[bool(row.gold["answers"])], kinds[::-1]),
    }


def _by(title: str, rows: Sequence[Row], name_of: Callable[[Row], str], names: Iterable[str]) -> Table:
    members = {name: [row for row in rows if name_of(row) == name] for name in names}
    return [
        {
            title: name, "n": len(own), **dict(list(score(own).items())[:2]),
            "no_answer": 100 * sum(not row.prediction for row in own) / len(own),
        }
        for name, own in members.items()
        if own
    ]  # fmt: skip


def _normalize(text: str, brackets: re.Pattern[str]) -> str:
    """Lower case, no ASCII punctuation, white space squeezed."""
    return " ".join(brackets.sub(" ", text.lower()).translate(_PUNCTUATION).split())


@lru_cache(maxsize=1 << 16)  # tables score the questions again
def _score_texts(answers: tuple[str, ...], prediction: str) -> tuple[float, float, float, float]:
    """The values of ``_METRICS`` for one question, 0..1."""
    values = []
    for brackets, skips_frequent in ((_BRACKETS_AS_PUBLISHED, True), (_BRACKETS, False)):
        predicted = _normalize(prediction, brackets)
        wanted = [_normalize(answer, brackets) for answer in answers] or [""]
        values.append(float(predicted in wanted))
        values.append(max(_common_run_f1(answer, predicted, skips_frequent) for answer in wanted))
    return values[0], values[1], values[2], values[3]


def _common_run_f1(answer: str, predicted: str, skips_frequent: bool) -> float:
    if not answer or not predicted:
        return float(answer == predicted)
    run = SequenceMatcher(None, predicted, answer, autojunk=skips_frequent).find_longest_match().size
    return 2 * run / (len(answer) + len(predicted))
