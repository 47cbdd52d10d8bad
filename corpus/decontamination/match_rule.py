"""The decontamination rule: drop corpus sentences that contain a benchmark sentence (paper section 2.3).

The paper uses BM25 and gives no threshold. Here r(q, d) = BM25(q, d) / BM25(d, d) over distinct tokens, in 0..1: the
share of the BM25 weight of benchmark sentence d that corpus sentence q contains within its best window. Tokens are
character trigrams of letters and digits, so spacing does not matter. Weights are those of BM25Okapi in rank_bm25.

Example with one letter per token, d = A B C D E, equal weights, and ``|`` between two sentences of a document:

```
x A B y C D E         1.0   all of d within a window of 2 x 5 letters
x A B C y             0.6   three of five reach the threshold
x A B y                     two of five do not
A B uvwxyzuv C D E    0.6   no window contains both A B and D E
u A B | C D E v       1.0   across a sentence boundary: from 0.7 of d in a window of 1.25 x 5 letters; both are dropped
u A B v | w C D x     0.8
u A B v w y | x C D         the window contains three of five
```
>>> from corpus.decontamination.index import build_index
>>> letters = MatchRule(ngram=1, min_item_chars=1, min_item_words=1)
>>> index, _ = build_index(["A B C D E"], letters)
>>> [[hit.ratio for hit in index.find([q])] for q in ("xAByCDE", "xABCy", "xABy", "AB uvwxyzuv CDE")]
[[1.0], [0.6], [], [0.6]]
>>> documents = (["uAB", "CDEv"], ["uABv", "wCDx"], ["uABvwy", "xCD"])
>>> [[hit.ratio for hit in index.find_in_documents([document])] for document in documents]
[[1.0, 1.0], [0.8, 0.8], []]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

WORD = re.compile(r"[^\W_]\S*")


@dataclass(frozen=True, slots=True)
class MatchRule:
    """When a corpus sentence contains a benchmark sentence.

    Benchmark sentences with fewer letters and digits than ``min_item_chars``, fewer words, or half as few different
    tokens are ignored, because sentences such as 추천합니다. occur everywhere. The report lists them. For the same
    reason, a match weighs at least as much as the tokens of 12 letters on average.
    """

    threshold: float = 0.6  # minimum share of the BM25 weight within one sentence
    window: float = 2.0  # length of the window, as a multiple of the benchmark sentence
    threshold_across: float = 0.7  # the same for matches that cross a sentence boundary
    window_across: float = 1.25
    ngram: int = 3  # characters per token; trigrams are robust to changed spacing (measured)
    min_item_chars: int = 12
    min_item_words: int = 2

    def is_long_enough(self, text: str, folded: str) -> bool:
        """Whether a benchmark sentence is long enough, unlike ``smile smile smile``; ``folded`` is ``fold(text)``."""
        words = sum(1 for _ in islice(WORD.finditer(text), self.min_item_words))
        tokens = {folded[start : start + self.ngram] for start in range(len(folded) - self.ngram + 1)}
        return min(len(folded), 2 * len(tokens)) >= self.min_item_chars and words == self.min_item_words


RULE = MatchRule()
