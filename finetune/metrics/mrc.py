"""Scores of KLUE-MRC: exact match and ROUGE-W (paper 3.7.2).

Oddities of the published metric that every published figure contains:
- ROUGE-W is neither weighted nor a subsequence: it is the F1 of the longest common *contiguous* run of characters,
  as ``difflib.SequenceMatcher`` finds it, whose heuristic ignores frequent characters in answers of 200 or more.
- The pattern meant to remove brackets needs one quote or bracket followed by ``()‘’``, so brackets stay.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from finetune.task import Row

_BRACKETS_AS_PUBLISHED = re.compile(r"""['"《》<>〈〉]\(\)‘’""")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``exact_match`` and ``rouge_w``, 0..100, best over the gold answers of a question.

    A gold is ``{"answers": [texts]}``, without answers where the question has none; a prediction is a text, empty
    for "no answer". Further keys of the gold (``question_type``) are not read.
    """
    pairs = [score_question(row.gold, row.prediction) for row in rows]
    exact, rouge = (sum(values) / len(rows) for values in zip(*pairs, strict=True))
    return {"exact_match": 100 * exact, "rouge_w": 100 * rouge}


def score_question(gold: dict[str, Any], prediction: str) -> tuple[float, float]:
    """Exact match and ROUGE-W of one question, 0..1."""
    predicted = normalize_answer(prediction)
    answers = [normalize_answer(answer) for answer in gold["answers"]] or [""]
    exact = max(float(answer == predicted) for answer in answers)
    return exact, max(_common_run_f1(answer, predicted) for answer in answers)


def normalize_answer(text: str) -> str:
    """Lower case, no ASCII punctuation, white space squeezed."""
    text = _BRACKETS_AS_PUBLISHED.sub(" ", text.lower())
    return " ".join(text.translate(_PUNCTUATION).split())


@lru_cache(maxsize=1 << 16)  # resampled questions come again and again
def _common_run_f1(answer: str, predicted: str) -> float:
    if not answer or not predicted:
        return float(answer == predicted)
    run = SequenceMatcher(None, predicted, answer).find_longest_match().size
    return 2 * run / (len(answer) + len(predicted))
