"""The scores of llm-kr-eval exactly as published, faults included, for ``--as-published``; ours stand in ``metrics``.

Source: wandb/llm-leaderboard-korean, ``scripts/evaluator/evaluate_utils/metrics.py`` and ``kaster.py``. There one
answer is scored at a time and the mean taken. Not copied but written from what the code computes, so that a published
figure can be explained:

```
set_f1       a set is made of the answer alone: what is gold twice lowers the recall of a perfect answer
char_f1      similarity of the strings with their words sorted (fuzzywuzzy): no F1, and wrong classes get half of it
pearson      0 whatever the answers; so is spearman
bleu         of one pair at a time, then the mean
macro_f1     exact match: the functions of that name are empty, and the table of metrics names exact match instead
weighted_f1  the same
```
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from unicodedata import normalize

DELETED = dict.fromkeys(range(128, 256))  # fuzzywuzzy's "force_ascii", which on Python 3 leaves Hangul alone
ANSWER_WORDS = ("応答:", "回答:", "答え:")  # taken out of answers to KMMLU, left there from the Japanese original


def clean(answer: str, name: str) -> str:
    """An answer as the published code compares it: what stands before the first blank line, without quotes, in NFKC."""
    if name.startswith("kmmlu_"):
        for word in ANSWER_WORDS:
            answer = answer.replace(word, "")
        answer = answer.strip().upper()
    return normalize("NFKC", answer.split("\n\n")[0].strip().strip("'").strip('"').strip())


def score_as_published(metric: str, golds: Sequence[str], answers: Sequence[str], name: str = "") -> float:
    """A metric, 0..100, of raw answers to a file ``name`` (``kmmlu_Law``)."""
    pairs = [(clean(answer, name), normalize("NFKC", gold)) for gold, answer in zip(golds, answers, strict=True)]
    return 100 * fmean(PUBLISHED[metric](answer, gold) for answer, gold in pairs)


def exact_match(answer: str, gold: str) -> float:
    """Equality of the strings."""
    return float(answer == gold)


def set_f1(answer: str, gold: str) -> float:
    """Lines of the answer, each once, that are gold: their share of the answer's and of all gold lines, repeats too."""
    golds = [line.strip() for line in gold.split("\n")]
    found = {line.strip() for line in answer.split("\n")}
    right = sum(line in golds for line in found)
    return 2 * right / (len(found) + len(golds))  # the harmonic mean of right / found and right / golds


def char_f1(answer: str, gold: str) -> float:
    """``fuzzywuzzy.fuzz.token_sort_ratio``: whole per cent of what two strings of sorted words have in common."""
    first, second = _sorted_words(answer), _sorted_words(gold)
    if first == second:
        return 1.0
    if not first or not second:
        return 0.0
    return round(100 * indel_similarity(first, second)) / 100


def _sorted_words(text: str) -> str:
    return " ".join(sorted(re.sub(r"\W", " ", text.translate(DELETED)).lower().split()))


def indel_similarity(first: str, second: str) -> float:
    """1 minus insertions and deletions per character of both: twice their longest common subsequence over both lengths.

    The subsequence by Hyyrö 2004: a bit for each character of ``first``, cleared where the table of lengths grows.
    """
    places: dict[str, int] = {}
    for place, character in enumerate(first):
        places[character] = places.get(character, 0) | 1 << place
    row = every = (1 << len(first)) - 1
    for character in second:
        found = row & places.get(character, 0)
        row = (row + found) | (row - found)
    return 2 * (~row & every).bit_count() / (len(first) + len(second))


def nothing(answer: str, gold: str) -> float:
    """Both correlations end in ``return 0.0``."""
    return 0.0


def bleu(answer: str, gold: str) -> float:
    """BLEU of one pair, of the orders that it has; 0 for an empty answer."""
    from finetune.generative.kr_eval.bleu import pair_counts, score_counts

    return score_counts(pair_counts(answer.strip(), gold.strip())) / 100 if answer.strip() else 0.0


PUBLISHED: Mapping[str, Callable[[str, str], float]] = {
    "exact_match": exact_match, "set_f1": set_f1, "char_f1": char_f1, "pearson": nothing, "spearman": nothing,
    "bleu": bleu, "macro_f1": exact_match, "weighted_f1": exact_match,
}  # fmt: skip
