"""The scores of the published llm-kr-eval code with its bugs, for ``--as-published``; ours are in ``metrics``.

Source: wandb/llm-leaderboard-korean, ``scripts/evaluator/evaluate_utils/metrics.py`` and ``kaster.py``. Reimplemented
from what that code computes, one answer at a time, then averaged:

```
set_f1       only the answer becomes a set: a line that is gold twice lowers the recall of a perfect answer
char_f1      string similarity with sorted words (fuzzywuzzy), no F1: wrong classes get about half of the points
pearson      always 0; so is spearman
bleu         mean of the BLEU of each pair
macro_f1     exact match, as the functions of that name are empty; so is weighted_f1
```
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from unicodedata import normalize

from finetune.generative.kr_eval.metrics import bleu_of_counts, count_ngrams

DELETED = dict.fromkeys(range(128, 256))  # fuzzywuzzy's "force_ascii"; on Python 3 it keeps Hangul
ANSWER_WORDS = ("応答:", "回答:", "答え:")  # removed from KMMLU answers; left over from the Japanese original


def score_as_published(metric: str, golds: Sequence[str], answers: Sequence[str], name: str = "") -> float:
    """A metric, 0..100, of raw answers to the file ``name`` (``kmmlu_Law``)."""
    pairs = [(clean(answer, name), normalize("NFKC", gold)) for gold, answer in zip(golds, answers, strict=True)]
    return 100 * fmean(PUBLISHED[metric](answer, gold) for answer, gold in pairs)


def clean(answer: str, name: str) -> str:
    """The text before the first blank line, without quotes, in NFKC."""
    if name.startswith("kmmlu_"):
        for word in ANSWER_WORDS:
            answer = answer.replace(word, "")
        answer = answer.strip().upper()
    return normalize("NFKC", answer.split("\n\n")[0].strip().strip("'").strip('"').strip())


def exact_match(answer: str, gold: str) -> float:
    """Equality of the strings."""
    return float(answer == gold)


def set_f1(answer: str, gold: str) -> float:
    """F1 of the distinct lines of the answer and all lines of the gold."""
    golds = [line.strip() for line in gold.split("\n")]
    answered = {line.strip() for line in answer.split("\n")}
    return 2 * sum(line in golds for line in answered) / (len(answered) + len(golds))


def char_f1(answer: str, gold: str) -> float:
    """``fuzzywuzzy.fuzz.token_sort_ratio``: similarity of both strings with their words sorted, in whole percent."""
    first, second = (
        " ".join(sorted(re.sub(r"\W", " ", text.translate(DELETED)).lower().split())) for text in (answer, gold)
    )
    if first == second:
        return 1.0
    return round(100 * indel_similarity(first, second)) / 100 if first and second else 0.0


def indel_similarity(first: str, second: str) -> float:
    """Twice the longest common subsequence over both lengths, by the bit-parallel algorithm of Hyyrö (2004)."""
    places: dict[str, int] = {}
    for place, character in enumerate(first):
        places[character] = places.get(character, 0) | 1 << place
    row = ones = (1 << len(first)) - 1
    for character in second:
        matches = row & places.get(character, 0)
        row = (row + matches) | (row - matches)
    return 2 * (~row & ones).bit_count() / (len(first) + len(second))


def bleu(answer: str, gold: str) -> float:
    """BLEU of one pair, effective order; 0 for an empty answer."""
    return bleu_of_counts(count_ngrams(answer.strip(), gold.strip())) / 100 if answer.strip() else 0.0


def always_zero(answer: str, gold: str) -> float:
    """Both correlations end in ``return 0.0``."""
    return 0.0


PUBLISHED: Mapping[str, Callable[[str, str], float]] = {
    "exact_match": exact_match, "set_f1": set_f1, "char_f1": char_f1, "pearson": always_zero, "spearman": always_zero,
    "bleu": bleu, "macro_f1": exact_match, "weighted_f1": exact_match,
}  # fmt: skip
