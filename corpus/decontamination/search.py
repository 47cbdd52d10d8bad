"""Search of document streams for benchmark sentences: filters that lose nothing, then windows counted one by one.

```
tokens ─ postings, summed by (item, block) ─▶ candidates ─ all tokens of the item ─▶ few ─ every window ─▶ found
```
A block is a power of two at least as long as the item's longest window, so each window lies in two neighbouring blocks.
What is found: items within a window of one sentence, and the places of tokens that lie in a window with an item, which
may run over the ends of sentences.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from corpus.decontamination.ngrams import GOLDEN_64, encode_ngrams, first_slots, look_up
from corpus.decontamination.stream import Stretch

if TYPE_CHECKING:
    from corpus.decontamination.index import ContaminationIndex

CELLS_PER_POSTING, CELLS_PER_PAIR, CELLS_PER_TOKEN = (
    1,
    2,
    8,
)  # fewer let unlike pairs meet, more leave the processor's cache
GAP = 256  # places between two documents: most windows cannot span it, and those that do are sorted out at the end
ROUNDING = 1e-9  # sums in another order must not change a decision
SLACK = 1e-4  # of the filters before the decision, which add 32-bit numbers
GOLDEN_32 = np.uint32(0x9E3779B1)  # 2**32 / golden ratio: hashes by multiplication
SHIFT_BITS = np.uint32(31)  # of the low bits of a hash
COVERED_SHARE = 0.5  # of a sentence's letters, by all items together: a piece may end one item and begin the next
BORNE_SHARE = 0.25  # of an item's weight: a long sentence with a part of it goes, too, so that the item is gone
SALT = 0xC2B2AE3D27D4EB4F  # odd, its bits mixed
BLOCK_SALT, NEXT_BLOCK = np.uint64(SALT), np.uint64(SALT * int(GOLDEN_64) % 2**64)


class Tokens(NamedTuple):
    """Known tokens of a stretch in order: number, first letter, place (first letter and gaps), document, sentences.

    A token that runs over the end of a sentence begins in sentence ``first_T`` and ends in ``last_T``.
    """

    token_T: np.ndarray
    at_T: np.ndarray
    place_T: np.ndarray
    document_T: np.ndarray
    first_T: np.ndarray
    last_T: np.ndarray


class Place(NamedTuple):
    """Where an item may be: those of its tokens, as indices into ``Tokens``, ascending, within a few blocks; and the
    weights of all its tokens."""

    item: int
    seen: list[int]
    weights: dict[int, float]


class Across(NamedTuple):
    """What an item has over the ends of sentences: its tokens (indices) in windows with it, and the best ratio."""

    item: int
    held: list[int]
    ratio: float


def read_tokens(index: ContaminationIndex, stretch: Stretch) -> Tokens:
    code, at, document = encode_ngrams(stretch.letters, stretch.sizes_D, index.ngram)
    token = look_up(code, index.slot_code_S)
    is_known = token >= 0
    token, at, document = token[is_known], at[is_known], document[is_known]
    ends = np.cumsum(stretch.sizes_S)
    part = np.repeat(np.arange(len(ends), dtype=np.int32), stretch.sizes_S)
    first, last = stretch.sentence_S[part[at]], stretch.sentence_S[part[at + (index.ngram - 1)]]
    return Tokens(token, at, (at + document * GAP).astype(np.int32), document, first, last)


def pack_postings(item_P: np.ndarray, shift_D: np.ndarray, share_P: np.ndarray) -> np.ndarray:
    """Of each posting in one number: its share, float32, in the low half, and in the high half a hash of its item, the
    low bits of which are the item's shift. One visit to memory in place of three.
    """
    high = item_P.astype(np.uint32) * GOLDEN_32 * GOLDEN_32 & ~SHIFT_BITS | shift_D[item_P].astype(np.uint32)
    low = share_P.astype(np.float32).view(np.uint32)
    return high.astype(np.uint64) << np.uint64(32) | low


def find_places(index: ContaminationIndex, tokens: Tokens) -> Iterator[Place]:
    """All places in a stretch where an item may reach the threshold, by item, then place."""
    if not len(tokens.token_T):
        return
    item, block = _candidates(index, tokens)
    is_near = _upper_ratios(index, tokens, item, block) >= index.threshold - SLACK
    item, block = item[is_near], block[is_near]
    is_first = np.diff(item << 32 | block, prepend=-2) != 1  # of a row of blocks, which are looked at together
    last = np.flatnonzero(np.append(is_first[1:], True)[: len(item)])
    item, block, last = item[is_first], block[is_first], block[last]
    shift = index.shift_D[item]
    firsts = np.searchsorted(tokens.place_T, block << shift)
    ends = np.searchsorted(tokens.place_T, (last + 2) << shift)
    for number, first, end in zip(item.tolist(), firsts.tolist(), ends.tolist(), strict=True):
        weights = index.weights_of(number)
        token = tokens.token_T[first:end].tolist()
        if sum(map(weights.__getitem__, weights.keys() & token)) >= index.least(number, index.threshold):
            yield Place(number, [n for n, token in enumerate(token, first) if token in weights], weights)


def _candidates(index: ContaminationIndex, tokens: Tokens) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (item, block), sorted: the item's listed tokens in this and the next block weigh enough.

    Repeated tokens count again. Shares are added in cells where pairs may meet, so no sum is too small; blocks of an
    item stand side by side in the table of cells.
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
    left = np.flatnonzero(_with_neighbours(np.bincount(cell, share, minlength=cells))[cell])
    item, here = index.posting_item_P[posting[left]].astype(np.int64), block[left]
    return _heavy_pairs(np.concatenate([item << 32 | here, item << 32 | np.maximum(here - 1, 0)]), share[left])


def _with_neighbours(weight_C: np.ndarray) -> np.ndarray:
    """Whether a cell and the one after or before it weigh enough together; the last cell's next is the first."""
    weight_C = weight_C.astype(np.float32)
    beside = np.empty_like(weight_C)
    np.maximum(weight_C[2:], weight_C[:-2], out=beside[1:-1])
    beside[0] = max(weight_C[1], weight_C[-1])
    beside[-1] = max(weight_C[0], weight_C[-2])
    beside += weight_C
    return beside >= np.float32(1 - SLACK)


def _heavy_pairs(pair: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs that weigh enough, or share a cell with others; ``pair`` holds those of ``share`` twice over."""
    cells = CELLS_PER_PAIR << len(pair).bit_length()
    cell = first_slots(pair, cells)
    weight_C = np.bincount(cell, np.concatenate([share, share]), minlength=cells)
    pair = np.sort(pair[weight_C[cell] >= 1 - SLACK])
    pair = pair[np.diff(pair, prepend=-1) > 0]
    return pair >> 32, pair & 0xFFFFFFFF


def _upper_ratios(index: ContaminationIndex, tokens: Tokens, item: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Share of each item's weight in two blocks; never too small, and too large where hashes of tokens meet."""
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
    mixed = np.concatenate(marks) if marks else np.zeros(0, np.uint64)
    cells = CELLS_PER_TOKEN << len(mixed).bit_length()
    down = np.uint64(65 - cells.bit_length())
    is_cell = np.zeros(cells, bool)
    is_cell[mixed >> down] = True
    entries, owner = ranges(index.entry_start_D[item], index.entry_start_D[item + 1])
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


def search_within(index: ContaminationIndex, tokens: Tokens, place: Place) -> dict[int, float]:
    """Best ratio of each sentence that holds the item within a window of its own."""
    first = tokens.first_T[place.seen]
    inner = np.flatnonzero(first == tokens.last_T[place.seen]).tolist()
    sentence, found = first.tolist(), dict[int, float]()
    least, width = index.least(place.item, index.threshold), int(index.window_D[place.item])
    for _, newest, covered in _windows(tokens, place, inner, sentence, width, least):
        found[sentence[newest]] = max(covered, found.get(sentence[newest], 0.0))
    return {number: index.ratio(place.item, covered) for number, covered in found.items()}


def search_across(index: ContaminationIndex, tokens: Tokens, place: Place, excluded: Container[int]) -> Across:
    """Windows over the ends of sentences; ``excluded`` sentences, which hold the item by themselves, do not count."""
    ends = zip(tokens.first_T[place.seen].tolist(), tokens.last_T[place.seen].tolist(), strict=True)
    outer = [n for n, (first, last) in enumerate(ends) if first not in excluded and last not in excluded]
    document = tokens.document_T[place.seen].tolist()
    least, width = index.least(place.item, index.threshold_across), int(index.reach_D[place.item])
    best, held = 0.0, list[int]()
    for oldest, newest, covered in _windows(tokens, place, outer, document, width, least):
        best = max(best, covered)
        held.extend(range(max(oldest, held[-1] + 1 if held else 0), newest + 1))
    outside = set(outer)
    return Across(place.item, [place.seen[n] for n in held if n in outside], index.ratio(place.item, best))


def _windows(
    tokens: Tokens, place: Place, chosen: list[int], part: list[int], width: int, least: float
) -> Iterator[tuple[int, int, float]]:
    """For each chosen token of ``place.seen`` the widest window that ends with it, if it weighs ``least``: its oldest
    token, itself, and the weight of all chosen tokens of the window, each once. A window is ``width`` long and never
    leaves its ``part``.
    """
    weights = place.weights
    token, at = tokens.token_T[place.seen].tolist(), tokens.at_T[place.seen].tolist()
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


class Held:
    """Tokens that lie in windows with their item, by their place among the letters of all documents."""

    def __init__(self, index: ContaminationIndex) -> None:
        self.index = index
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []
        self.rows: list[np.ndarray] = []  # item, letter, token, sentence in which it begins
        self.ratios: list[np.ndarray] = []

    def add(self, found: Across, tokens: Tokens, stretch: Stretch) -> None:
        held = found.held
        item = np.full(len(held), found.item)
        if not held:
            return
        self.rows.append(
            np.stack([item, tokens.at_T[held] + stretch.offset, tokens.token_T[held], tokens.first_T[held]])
        )
        self.ratios.append(np.full(len(held), found.ratio))

    def pass_by(self, stretch: Stretch) -> None:
        """Remember how long its sentences are."""
        self.parts.append((stretch.sentence_S[stretch.carried :], stretch.sizes_S[stretch.carried :]))

    def sentences(self) -> Iterator[tuple[int, int, float]]:
        """Sentence, item and ratio of the best window, in no order and possibly repeated."""
        if not self.rows:
            return
        numbers, sizes = (np.concatenate(column) for column in zip(*self.parts, strict=True))
        sizes = np.bincount(numbers, sizes).astype(np.int64)
        (item, letter, token, sentence), ratio = np.concatenate(self.rows, axis=1), np.concatenate(self.ratios)
        is_borne = self._is_borne(item, token, sentence)
        yield from zip(sentence[is_borne].tolist(), item[is_borne].tolist(), ratio[is_borne].tolist(), strict=True)
        ngram = self.index.ngram
        letters = (letter[:, None] + np.arange(ngram)).ravel()
        owner = np.searchsorted(np.cumsum(sizes), letters, side="right")
        covered = np.bincount(owner[np.unique(letters, return_index=True)[1]], minlength=len(sizes))
        is_covered = (covered >= COVERED_SHARE * sizes)[owner]
        item, ratio = item.repeat(ngram)[is_covered], ratio.repeat(ngram)[is_covered]
        yield from zip(owner[is_covered].tolist(), item.tolist(), ratio.tolist(), strict=True)

    def _is_borne(self, item: np.ndarray, token: np.ndarray, sentence: np.ndarray) -> np.ndarray:
        """Whether the row's sentence bears ``BORNE_SHARE`` of the row's item."""
        pairs, pair = np.unique(np.stack([sentence, item]), axis=1, return_inverse=True)
        pair = pair.ravel()
        first = np.unique(np.stack([pair, token]), axis=1, return_index=True)[1]  # each token once
        weights = {number: self.index.weights_of(number) for number in np.unique(item).tolist()}
        weight = [weights[d][t] for d, t in zip(item[first].tolist(), token[first].tolist(), strict=True)]
        share = np.bincount(pair[first], weight, minlength=pairs.shape[1]) / self.index.total_D[pairs[1]]
        return (share >= BORNE_SHARE)[pair]


def ranges(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All numbers of the ranges one after another, and the number of the range each came from."""
    sizes = ends - starts
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(len(owner)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes), owner
