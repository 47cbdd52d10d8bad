"""Search documents for benchmark sentences: filters without false negatives, then every window of the candidates.

```
tokens ─ postings, summed by (item, block) ─▶ candidates ─ all tokens of the item ─▶ few ─ every window ─▶ found
```
The block size is a power of two, at least the longest window of the item, so a window spans at most two blocks.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from corpus.decontamination.letter_stream import GOLDEN_64, Batch, encode_ngrams, first_slots, look_up

if TYPE_CHECKING:
    from corpus.decontamination.index import ContaminationIndex

# fewer cells cause collisions, more cells do not fit into the CPU cache
CELLS_PER_POSTING, CELLS_PER_PAIR, CELLS_PER_TOKEN = 1, 2, 8
GAP = 256  # between two documents; matches across it are removed at the end
ROUNDING = 1e-9  # tolerance for sums in another order
SLACK = 1e-4  # tolerance of the filters, which add 32-bit numbers
GOLDEN_32 = np.uint32(0x9E3779B1)  # 2**32 / golden ratio: hashes by multiplication
SHIFT_BITS = np.uint32(31)  # of the low bits of a hash
WHOLE_RATIO = 0.9  # sentences with this share of an item are excluded from matches across sentences
COVERED_SHARE = 0.5  # of the letters of a sentence, by all items together
BORNE_SHARE = 0.25  # of the weight of an item, also in a long sentence
SALT = 0xC2B2AE3D27D4EB4F  # odd, its bits mixed
BLOCK_SALT, NEXT_BLOCK = np.uint64(SALT), np.uint64(SALT * int(GOLDEN_64) % 2**64)

Ratios = dict[tuple[int, int], float]  # of sentence and item


class Tokens(NamedTuple):
    """Known tokens of a slice in order: number, first letter, place (first letter plus gaps), document, sentences.

    A token starts in sentence ``first_T`` and ends in ``last_T``.
    """

    token_T: np.ndarray
    at_T: np.ndarray
    place_T: np.ndarray
    document_T: np.ndarray
    first_T: np.ndarray
    last_T: np.ndarray


class Place(NamedTuple):
    """A possible match: the token weights of the item, and its tokens within a few blocks."""

    item: int
    weights: dict[int, float]
    token: list[int]
    at: list[int]
    document: list[int]
    first: list[int]
    last: list[int]


def search(index: ContaminationIndex, batch: Batch) -> Ratios:
    """Ratios of sentences of a batch that contain an item, in a window within or across sentences."""
    within: Ratios = {}
    across = _Across(batch, index.ngram)
    for tokens in _read_tokens(index, batch):
        places = list(_find_places(index, tokens))
        for place in places:
            for sentence, weight in _search_within(index, place):
                pair = sentence, place.item
                within[pair] = max(index.ratio(place.item, weight), within.get(pair, 0.0))
        whole: dict[int, set[int]] = {}
        for (sentence, item), ratio in within.items():
            if ratio >= WHOLE_RATIO:
                whole.setdefault(item, set()).add(sentence)
        for place in places:
            across.add(place, *_search_across(index, place, whole.get(place.item, ())))
    for pair, ratio in across.sentences_to_drop(index):
        within[pair] = max(ratio, within.get(pair, 0.0))
    return within


def _read_tokens(index: ContaminationIndex, batch: Batch) -> Iterator[Tokens]:
    longest = int(max(index.window_D.max(initial=0), index.reach_D.max(initial=0)))
    for stretch in batch.stretches(longest + index.ngram):
        sentence_L = batch.sentence_L[stretch]
        document_L = batch.document_S[sentence_L]
        code, at = encode_ngrams(batch.letters_L[stretch], document_L, index.ngram)
        token = look_up(code, index.slot_code_S)
        is_known = token >= 0
        token, at = token[is_known], at[is_known]
        document = document_L[at]
        place = (at + (document - document_L[0]) * GAP).astype(np.int32)
        ends = sentence_L[at], sentence_L[at + (index.ngram - 1)]
        if len(token):
            yield Tokens(token, at + stretch.start, place, document, *ends)


def pack_postings(item_P: np.ndarray, shift_D: np.ndarray, share_P: np.ndarray) -> np.ndarray:
    """Pack share (float32, low half) and item hash (high half, with the shift of the item in its low bits) of each
    posting into one number, for one memory access instead of three."""
    high = item_P.astype(np.uint32) * GOLDEN_32 * GOLDEN_32 & ~SHIFT_BITS | shift_D[item_P].astype(np.uint32)
    low = share_P.astype(np.float32).view(np.uint32)
    return high.astype(np.uint64) << np.uint64(32) | low


def _find_places(index: ContaminationIndex, tokens: Tokens) -> Iterator[Place]:
    """All places in a slice where an item may reach the threshold, sorted by item and place."""
    item, block = _candidates(index, tokens)
    is_near = _upper_ratios(index, tokens, item, block) >= index.threshold - SLACK
    item, block = item[is_near], block[is_near]
    is_first = np.diff(item << 32 | block, prepend=-2) != 1  # of a run of adjacent blocks
    last = np.flatnonzero(np.append(is_first[1:], True)[: len(item)])
    item, block, last = item[is_first], block[is_first], block[last]
    shift = index.shift_D[item]
    firsts = np.searchsorted(tokens.place_T, block << shift)
    ends = np.searchsorted(tokens.place_T, (last + 2) << shift)
    columns = tokens.token_T, tokens.at_T, tokens.document_T, tokens.first_T, tokens.last_T
    for number, first, end in zip(item.tolist(), firsts.tolist(), ends.tolist(), strict=True):
        weights = index.weights_of(number)
        token = tokens.token_T[first:end].tolist()
        if sum(map(weights.__getitem__, weights.keys() & token)) >= index.min_weight(number, index.threshold):
            seen = [n for n, token in enumerate(token, first) if token in weights]
            yield Place(number, weights, *(column[seen].tolist() for column in columns))


def _candidates(index: ContaminationIndex, tokens: Tokens) -> tuple[np.ndarray, np.ndarray]:
    """Sorted pairs (item, block) for which the listed tokens in this and the next block may be heavy enough.

    Sums are upper bounds: repeated tokens and hash collisions only increase them.
    """
    start = index.posting_start_S[tokens.token_T].astype(np.int32)
    size = index.posting_start_S[tokens.token_T + 1].astype(np.int32) - start
    ends = np.cumsum(size, dtype=np.int32)
    if not ends[-1]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    posting = np.arange(ends[-1], dtype=np.int32)
    posting += np.repeat(start - (ends - size), size)
    packed = index.posting_cell_P[posting]
    share, mixed = packed.astype(np.uint32).view(np.float32), (packed >> np.uint64(32)).astype(np.uint32)
    block = np.repeat(tokens.place_T, size)
    block >>= (mixed & SHIFT_BITS).view(np.int32)
    cells = CELLS_PER_POSTING << len(posting).bit_length()
    cell = mixed >> np.uint32(33 - cells.bit_length())
    cell += block.view(np.uint32)
    cell &= np.uint32(cells - 1)
    weight_C = np.bincount(cell, share, minlength=cells).astype(np.float32)
    weight_C += np.maximum(np.roll(weight_C, 1), np.roll(weight_C, -1))
    left = np.flatnonzero((weight_C >= np.float32(1 - SLACK))[cell])
    item, here = index.posting_item_P[posting[left]].astype(np.int64), block[left]
    return _heavy_pairs(np.concatenate([item << 32 | here, item << 32 | np.maximum(here - 1, 0)]), share[left])


def _heavy_pairs(pair: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs that may be heavy enough; ``pair`` contains the pairs of ``share`` twice."""
    cells = CELLS_PER_PAIR << len(pair).bit_length()
    cell = first_slots(pair, cells)
    weight_C = np.bincount(cell, np.concatenate([share, share]), minlength=cells)
    pair = np.sort(pair[weight_C[cell] >= 1 - SLACK])
    pair = pair[np.diff(pair, prepend=-1) > 0]
    return pair >> 32, pair & 0xFFFFFFFF


def _upper_ratios(index: ContaminationIndex, tokens: Tokens, item: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Upper bound of the share of the weight of each item in two blocks; hash collisions increase it."""
    shift = index.shift_D[item]
    shifts = np.unique(shift).tolist()
    last = int(tokens.place_T[-1])
    marks = []
    for k in shifts:
        is_wanted = np.zeros((last >> k) + 3, bool)
        wanted = block[shift == k]
        is_wanted[wanted] = is_wanted[wanted + 1] = True
        here = tokens.place_T >> k
        inside = np.flatnonzero(is_wanted[here])
        marks.append(_mix(tokens.token_T[inside], here[inside], k))
    mixed = np.concatenate([np.zeros(0, np.uint64), *marks])
    cells = CELLS_PER_TOKEN << len(mixed).bit_length()
    down = np.uint64(65 - cells.bit_length())
    is_cell = np.zeros(cells, bool)
    is_cell[mixed >> down] = True
    start, end = index.entry_start_D[item], index.entry_start_D[item + 1]
    owner = np.repeat(np.arange(len(item)), end - start)
    entries = np.arange(len(owner)) + (end - np.cumsum(end - start))[owner]
    mixed = _mix(index.entry_token_E[entries], block[owner], shift[owner])
    is_covered = is_cell[mixed >> down]
    rest = np.flatnonzero(~is_covered)
    is_covered[rest] = is_cell[(mixed[rest] + NEXT_BLOCK) >> down]
    weights = index.entry_weight_E[entries[is_covered]]
    return np.bincount(owner[is_covered], weights, minlength=len(item)) / index.total_D[item]


def _mix(token: np.ndarray, block: np.ndarray, shift: np.ndarray | int) -> np.ndarray:
    """64-bit hashes; the next block's is larger by a constant."""
    key = token.astype(np.uint64) << np.uint64(8) | np.asarray(shift, np.uint64)
    key = (key ^ key >> np.uint64(15)) * BLOCK_SALT
    return (key + block.astype(np.uint64) * BLOCK_SALT) * GOLDEN_64


def _search_within(index: ContaminationIndex, place: Place) -> Iterator[tuple[int, float]]:
    """Sentences that contain the item in one of their windows, with its weight in the window."""
    inner = [n for n, (first, last) in enumerate(zip(place.first, place.last, strict=True)) if first == last]
    least, width = index.min_weight(place.item, index.threshold), int(index.window_D[place.item])
    for _, newest, covered in _windows(place, inner, place.first, width, least):
        yield place.first[newest], covered


def _search_across(index: ContaminationIndex, place: Place, excluded: Container[int]) -> tuple[list[int], float]:
    """Tokens in windows over ends of sentences that hold the item, and the best ratio; none of ``excluded`` ones."""
    ends = enumerate(zip(place.first, place.last, strict=True))
    outer = [n for n, (first, last) in ends if first not in excluded and last not in excluded]
    least, width = index.min_weight(place.item, index.threshold_across), int(index.reach_D[place.item])
    best, held = 0.0, list[int]()
    for oldest, newest, covered in _windows(place, outer, place.document, width, least):
        best = max(best, covered)
        held.extend(range(max(oldest, held[-1] + 1 if held else 0), newest + 1))
    outside = set(outer)
    return [n for n in held if n in outside], index.ratio(place.item, best)


def _windows(
    place: Place, chosen: list[int], part: list[int], width: int, least: float
) -> Iterator[tuple[int, int, float]]:
    """Widest windows of one ``part`` that weigh ``least``: oldest and newest token, weight of distinct tokens."""
    weights, token, at = place.weights, place.token, place.at
    if sum(weights[number] for number in {token[n] for n in chosen}) < least * (1 - SLACK):
        return
    inside: dict[int, int] = {}
    covered, tail = 0.0, 0
    for newest in chosen:
        while part[chosen[tail]] != part[newest] or at[chosen[tail]] <= at[newest] - width:
            gone = token[chosen[tail]]
            inside[gone] -= 1
            covered -= 0.0 if inside[gone] else weights[gone]
            tail += 1
        number = inside.get(token[newest], 0)
        covered += 0.0 if number else weights[token[newest]]
        inside[token[newest]] = number + 1
        if covered >= least:
            yield chosen[tail], newest, covered


class _Across:
    """What lies in windows over the ends of sentences, by pair of sentence and item: best ratio and tokens' weights."""

    def __init__(self, batch: Batch, ngram: int) -> None:
        self.batch, self.ngram = batch, ngram
        self.is_covered_L = np.zeros(len(batch.letters_L), bool)
        self.ratios: Ratios = {}
        self.borne: dict[tuple[int, int], dict[int, float]] = {}

    def add(self, place: Place, held: list[int], ratio: float) -> None:
        for n in held:
            letters = slice(place.at[n], place.at[n] + self.ngram)
            self.is_covered_L[letters] = True
            for sentence in set(self.batch.sentence_L[letters].tolist()):
                self.ratios[sentence, place.item] = max(ratio, self.ratios.get((sentence, place.item), 0.0))
            borne = self.borne.setdefault((place.first[n], place.item), {})
            borne[place.token[n]] = place.weights[place.token[n]]

    def sentences_to_drop(self, index: ContaminationIndex) -> Iterator[tuple[tuple[int, int], float]]:
        """Pairs whose sentence is covered by items to ``COVERED_SHARE``, or contains ``BORNE_SHARE`` of its item."""
        if not self.ratios:
            return
        sizes_S = self.batch.sizes_S
        covered_S = np.bincount(self.batch.sentence_L[self.is_covered_L], minlength=len(sizes_S))
        for (sentence, item), ratio in self.ratios.items():
            borne = sum(self.borne.get((sentence, item), {}).values()) / float(index.total_D[item])
            if covered_S[sentence] >= COVERED_SHARE * sizes_S[sentence] or borne >= BORNE_SHARE:
                yield (sentence, item), ratio
