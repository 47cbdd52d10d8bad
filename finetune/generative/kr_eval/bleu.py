"""BLEU by sacrebleu from counts of each pair, so that a corpus and its resamples are sums of rows.

Words are the morphemes of mecab-ko, as sacrebleu's own ``ko-mecab`` has them for target language "ko" (which wants two
more packages for the analyser and dictionary that are installed here anyway). Orders of n-grams that no answer is long
enough for are left out ("effective order", as published): a file of short gold answers answered with itself is 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.mecab import split_morphemes

ORDERS = 4
SETTINGS: dict[str, Any] = {"smooth_method": "exp", "effective_order": True}


def pair_counts(answer: str, gold: str) -> NDArray[np.int64]:
    """Right n-grams (4), n-grams (4), morphemes of the answer, morphemes of the gold."""
    found = _bleu().sentence_score(_cut(answer), [_cut(gold)])
    return np.array([*found.counts, *found.totals, found.sys_len, found.ref_len])


def score_counts(counts: Sequence[int] | NDArray[np.int64]) -> float:
    """Corpus BLEU, 0..100, of summed counts."""
    from sacrebleu.metrics import BLEU

    right, totals = [int(n) for n in counts[:ORDERS]], [int(n) for n in counts[ORDERS : 2 * ORDERS]]
    found = BLEU.compute_bleu(right, totals, int(counts[-2]), int(counts[-1]), **SETTINGS)
    return min(100.0, float(found.score))  # a power of e may end above


def signature() -> str:
    """What makes two figures comparable."""
    import sacrebleu

    return f"case:mixed|eff:yes|tok:ko-mecab|smooth:exp|version:{sacrebleu.__version__}"


def _cut(text: str) -> str:
    """Morphemes with spaces between them; line ends are spaces, and the analyser is given no NUL."""
    return " ".join(split_morphemes(" ".join(text.replace("\0", " ").split())))


@cache
def _bleu() -> Any:
    from sacrebleu.metrics import BLEU

    return BLEU(tokenize="none", force=True, **SETTINGS)
