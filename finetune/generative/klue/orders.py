"""Does a model know the order of a benchmark file? A check for contamination where the training data are unknown.

The examples of a file are as likely in one order as in another, unless the model has read the file: then the canonical
order, by guid, is more likely than shuffled ones (Oren et al. 2023, arXiv 2310.17623).

```
examples by guid  a b c d e f ─┬─ canonical   "a b c" "d e f"     documents as long as a model's context allows
                               └─ shuffle 1…k "b c a" "f d e"     each document holds the same examples
log-likelihood of all documents, canonical against shuffled ─▶ compare ─▶ p value, at least 1/(k + 1)
```
Price: it finds what was read in this order, often, and nothing else; a high p value clears nobody. And files are not
always without order: questions of one passage and turns of one dialogue stand together, and KLUE-NLI dev is sorted by
premise. So neighbours of one ``group`` stay together, in order, and ``compare`` of ``count_shared`` shows what the
texts alone give away: where that p value is low too (of the eight dev files KLUE-NLI's, 0.01), the model's says
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from random import Random
from statistics import fmean

from finetune.examples import Example
from finetune.generative.prompts.record import Generation

BETWEEN = "\n\n"  # of two examples in a document

Order = tuple[str, ...]  # the documents of one order


@dataclass(frozen=True, slots=True)
class Orders:
    """Documents by the same cuts: ``shuffled[k][d]`` has the examples of ``canonical[d]`` in another order."""

    canonical: Order
    shuffled: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How much more likely the canonical order is.

    Fields:
        margin: mean of its value a document, less the mean of the shuffled ones.
        p_value: share of orders, the canonical among them, that are at least as likely in sum.
    """

    margin: float
    p_value: float


def make_orders(
    generation: Generation, examples: Sequence[Example], shuffles: int, seed: int, per_document: int = 32,
    group: Callable[[Example], str] = lambda example: example.guid,
) -> Orders:  # fmt: skip
    """The canonical order of the examples as texts (``Generation.ask``, without golds) and seeded shuffles of it.

    Args:
        examples: of one file, in whatever order; numbers in guids count as numbers.
        per_document: groups in a document; the last one has those that are left over, and is left out where that is a
            single one.
        group: neighbours with the same stay together; ``Task.group``.

    ``ValueError`` where there are fewer than two groups, or no shuffle is wanted.
    """
    ordered = sorted(examples, key=lambda example: _natural(example.guid))
    texts = [BETWEEN.join(map(generation.ask, block)) for _, block in groupby(ordered, key=group)]
    parts = [texts[start : start + per_document] for start in range(0, len(texts), per_document)]
    parts = [part for part in parts if len(part) > 1]
    if not parts or shuffles < 1:
        raise ValueError(f"{len(texts)} groups of examples and {shuffles} shuffles; at least 2 and 1 are needed")
    rng = Random(seed)
    shuffled = tuple(tuple(BETWEEN.join(rng.sample(part, len(part))) for part in parts) for _ in range(shuffles))
    return Orders(tuple(map(BETWEEN.join, parts)), shuffled)


def compare(canonical: Sequence[float], shuffled: Sequence[Sequence[float]]) -> Verdict:
    """What values of the documents, such as log-likelihoods, say about the canonical order."""
    total, others = sum(canonical), [sum(values) for values in shuffled]
    as_likely = sum(other >= total for other in others)
    return Verdict((total - fmean(others)) / len(canonical), (1 + as_likely) / (1 + len(others)))


def count_shared(document: str) -> float:
    """A value that needs no model: distinct pairs of characters that each example shares with the one before it."""
    pairs = map(_pairs_of, document.split(BETWEEN))
    return float(sum(len(before & after) for before, after in pairwise(pairs)))


@lru_cache(maxsize=1 << 12)  # the same texts stand in every order
def _pairs_of(text: str) -> frozenset[str]:
    return frozenset(text[i : i + 2] for i in range(len(text) - 1))


def _natural(guid: str) -> list[tuple[int, str]]:
    """``d-10`` after ``d-2``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", guid)]
