"""Byte-pair merges over weighted units, written as WordPiece: the first symbol of a word bare, the others with ``##``.

The trainer of the tokenizers library takes no counts, cannot learn ``##`` for a morpheme that follows another, and is
not deterministic. Here ties are decided by the text of the pair, so the same units always give the same merges.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tqdm import tqdm

PREFIX = "##"

Pair = tuple[int, int]


def learn_pieces(units: Mapping[str, int], size: int, *, singles: Sequence[str], min_frequency: int) -> list[str]:
    """At most ``size`` learned entries: the single characters, then merges, best first.

    Args:
        units: training units and their counts; units with characters that are not in ``singles`` are skipped.
        singles: the alphabet with its ``##`` forms (``tokenizer.building.alphabet``).
    """
    pieces = dict.fromkeys(singles)
    known = set(singles)
    words = {unit: count for unit, count in units.items() if known.issuperset(split_unit(unit))}
    with tqdm(total=size, initial=len(pieces), desc="learn pieces", disable=None) as bar:
        for left, right in merges(words, min_frequency):
            if len(pieces) >= size:
                break
            pieces[join(left, right)] = None
            bar.update(len(pieces) - bar.n)
    return list(pieces)


def split_unit(unit: str) -> list[str]:
    """Symbols of a unit: ``"는데"`` to ``["는", "##데"]``, ``"##는데"`` to ``["##는", "##데"]``."""
    text = unit.removeprefix(PREFIX)  # "#" is always a separate word, so no text begins with "##"
    first = unit[: len(unit) - len(text) + 1]
    return [first, *(PREFIX + character for character in text[1:])]


def join(left: str, right: str) -> str:
    """The piece that a pair of symbols merges to; the right one always continues a word."""
    return left + right[len(PREFIX) :]


def merges(units: Mapping[str, int], min_frequency: int) -> Iterator[tuple[str, str]]:
    """Pairs of symbols in the order of their merging: most frequent first, then by left and right text."""
    symbols: list[str] = []
    ids: dict[str, int] = {}

    def number(symbol: str) -> int:
        if symbol not in ids:
            ids[symbol] = len(symbols)
            symbols.append(symbol)
        return ids[symbol]

    words = [[number(symbol) for symbol in split_unit(unit)] for unit in units]
    weights = list(units.values())
    counts: defaultdict[Pair, int] = defaultdict(int)
    places: defaultdict[Pair, set[int]] = defaultdict(set)
    for index, (word, weight) in enumerate(zip(words, weights, strict=True)):
        for pair in pairwise(word):
            counts[pair] += weight
            places[pair].add(index)
    queue = [(-count, symbols[a], symbols[b], (a, b)) for (a, b), count in counts.items()]
    heapq.heapify(queue)
    while queue:
        negative, left, right, pair = heapq.heappop(queue)
        count = counts[pair]
        if count < min_frequency:
            continue
        if count < -negative:  # the count fell while the entry was queued; queue it again
            heapq.heappush(queue, (-count, left, right, pair))
            continue
        yield left, right
        counts[pair] = 0
        for changed, change in _merge_everywhere(pair, number(join(left, right)), words, weights, places).items():
            counts[changed] += change
            if change > 0:
                a, b = changed
                heapq.heappush(queue, (-counts[changed], symbols[a], symbols[b], changed))


def _merge_everywhere(
    pair: Pair, merged: int, words: list[list[int]], weights: list[int], places: defaultdict[Pair, set[int]]
) -> defaultdict[Pair, int]:
    """Replace a pair in all words; returns the change of the count of each other pair."""
    changes: defaultdict[Pair, int] = defaultdict(int)
    for index in places.pop(pair):
        word, weight = words[index], weights[index]
        if len(word) == 2:  # the unit becomes one piece, and no other pair changes
            continue
        words[index] = new = _replace(word, pair, merged)
        if len(new) == len(word):  # an earlier merge removed the pair
            continue
        for gone in pairwise(word):
            changes[gone] -= weight
        for come in pairwise(new):
            changes[come] += weight
            if merged in come:
                places[come].add(index)
    changes.pop(pair, None)  # it does not occur any more
    return changes


def _replace(word: list[int], pair: Pair, merged: int) -> list[int]:
    left, right = pair
    new: list[int] = []
    for symbol in word:
        if symbol == right and new and new[-1] == left:
            new[-1] = merged
        else:
            new.append(symbol)
    return new
