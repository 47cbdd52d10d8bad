"""Sentence pairs for next sentence prediction, by the rules of google-research/bert (create_pretraining_data.py).

Sentences of a document are collected up to a target length and split into A and B at a random sentence. With chance
1/2, and always if there is only one sentence, B comes from a random other document, and the sentences it replaced are
used again. The longer side loses pieces at a random end until the pair fits. Memory: 25 bytes per pair of a pass.

Shapes: D chosen documents, P pairs, B rows, L positions, S segments of a row (one).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pretrain.batching.masking import DUPLICATES
from pretrain.batching.sources import Numbers, Rows, fill_rows, runs
from pretrain.config import PretrainConfig
from pretrain.pack.store import TokenStore
from pretrain.rng import Bits, as_uniform, derive_key, random_bits

SPECIAL_PIECES = 3  # [CLS] A [SEP] B [SEP]
SHORT_PAIR_SHARE = 0.1  # of the documents aim at shorter pairs (short_seq_prob of BERT's code)
OTHER_DOCUMENT_TRIALS = 10
SLAB_SENTENCES = 1 << 19  # processed at once: arrays of a few megabytes

# Purposes of draws, by the key of a document (the first two) or of a chunk; OTHER_DOCUMENT has one draw per trial
IS_SHORT, SHORT_TARGET, FIRST_CHUNK = range(3)
CUT, IS_RANDOM, FLIPS_A, FLIPS_B, OTHER_BEGIN, OTHER_DOCUMENT = range(6)


class Layout(NamedTuple):
    """Pairs in the order of their documents and, within them, of their sentences."""

    a_begins_P: NDArray[Any]  # place of the first piece in the store; int64
    a_lengths_P: NDArray[Any]  # pieces, at least one; int32
    b_begins_P: NDArray[Any]
    b_lengths_P: NDArray[Any]
    is_random_P: NDArray[Any]  # whether B does not follow A


class _Chunks(NamedTuple):
    """Sentences collected up to the target, numbered within the store, and where they are split into A and B."""

    slots_P: Numbers  # which of the chosen documents
    firsts_P: Numbers  # first sentence of A
    cuts_P: Numbers  # first sentence of B, if B follows A
    lasts_P: Numbers  # the sentence after B
    targets_P: Numbers  # target length of A and B together
    keys_P: Bits
    is_random_P: NDArray[np.bool_]


class Sentences:
    """Places of the sentences of chosen documents (at least two, none of them empty) in the store."""

    def __init__(self, store: TokenStore, documents: Numbers) -> None:
        self.documents_D = documents
        self.begins = np.asarray(store.sentences)  # a plain array over the memory map is faster
        self._first = np.searchsorted(self.begins, store.documents)  # sentence of every document of the store

    def bounds(self, slots: Numbers) -> tuple[Numbers, Numbers]:
        """First sentence of chosen documents, by their place among them, and the one after their last."""
        documents = self.documents_D[slots]
        return self._first[documents], self._first[documents + 1]

    def reach(self, firsts: Numbers, pieces: Numbers, stops: Numbers) -> Numbers:
        """The end of the sentences from ``firsts`` on that have ``pieces`` pieces; one at least, ``stops`` at most."""
        return np.clip(np.searchsorted(self.begins, self.begins[firsts] + pieces), firsts + 1, stops)

    def stretch(self, firsts: Numbers, lasts: Numbers, stops: Numbers) -> tuple[Numbers, Numbers]:
        """First piece and number of pieces of the sentences from ``firsts`` to before ``lasts``."""
        begins = self.begins[firsts]
        return begins, self.begins[lasts] - (lasts == stops) - begins  # the separator belongs to no sentence

    def slabs(self, sentences: int) -> Iterator[Numbers]:
        """Groups of documents with about ``sentences`` sentences in total, or of one document."""
        firsts, stops = self.bounds(np.arange(len(self.documents_D)))
        totals = np.cumsum(stops - firsts)
        cuts = np.searchsorted(totals, np.arange(sentences, totals[-1] + sentences, sentences)) + 1
        yield from (np.arange(*cut) for cut in pairwise([0, *np.unique(cuts.clip(max=len(totals))).tolist()]))


def lay_out_pass(
    sentences: Sentences,
    length: int,
    short_share: float,
    seed: int,
    number: int,
    slab_sentences: int = SLAB_SENTENCES,
) -> Layout:
    """All pairs of pass ``number``; the pairs of a document depend only on its sentences, the seed and the pass.

    A pair has at most ``length`` tokens (5 or more), special ones counted; ``short_share`` of the documents have a
    shorter target, uniform from 2 to the longest. ``slab_sentences`` bounds the memory and changes no pair.
    """
    key = derive_key(seed, "pairs", number)
    max_pieces = length - SPECIAL_PIECES
    chunked = (_chunk(sentences, slots, max_pieces, short_share, key) for slots in sentences.slabs(slab_sentences))
    parts = list(zip(*(_pair(sentences, chunks, max_pieces) for chunks in chunked), strict=True))
    # popped, so that at most one field is in memory twice
    return Layout(*(np.concatenate(parts.pop(0)) for _ in Layout._fields))


def _chunk(sentences: Sentences, slots_D: Numbers, max_pieces: int, short_share: float, key: np.uint64) -> _Chunks:
    """Round i makes the i-th chunk of every document that still has sentences."""
    origins_D, stops_D = sentences.bounds(slots_D)
    document_keys_D = random_bits(key, sentences.documents_D[slots_D])
    is_short_D = as_uniform(_draw(document_keys_D, IS_SHORT)) < short_share
    short_D = 2 + _draw_below(document_keys_D, SHORT_TARGET, np.int64(max_pieces - 1))
    targets_D = np.where(is_short_D, short_D, max_pieces)
    rounds: list[_Chunks] = []
    alive = np.flatnonzero(stops_D > origins_D)
    firsts = origins_D[alive]
    while len(alive) or not rounds:
        stops, targets = stops_D[alive], targets_D[alive]
        lasts = sentences.reach(firsts, targets, stops)
        keys = random_bits(document_keys_D[alive], firsts - origins_D[alive] + FIRST_CHUNK)
        cuts = firsts + 1 + _draw_below(keys, CUT, np.maximum(lasts - firsts - 1, 1))
        is_random = (as_uniform(_draw(keys, IS_RANDOM)) < 0.5) | (lasts - firsts == 1)
        rounds.append(_Chunks(slots_D[alive], firsts, cuts, lasts, targets, keys, is_random))
        nexts = np.where(is_random, cuts, lasts)  # sentences that a random B replaced are used again
        is_left = nexts < stops
        alive, firsts = alive[is_left], nexts[is_left]
    by_document_P = np.argsort(np.concatenate([part.slots_P for part in rounds]), kind="stable")
    return _Chunks(*(np.concatenate(parts)[by_document_P] for parts in zip(*rounds, strict=True)))


def _pair(sentences: Sentences, chunks: _Chunks, max_pieces: int) -> Layout:
    """A and B of every chunk, shortened to ``max_pieces``."""
    _, stops_P = sentences.bounds(chunks.slots_P)
    a_begins_P, a_lengths_P = sentences.stretch(chunks.firsts_P, chunks.cuts_P, stops_P)
    b_begins_P, b_lengths_P = sentences.stretch(chunks.cuts_P, chunks.lasts_P, stops_P)
    at = np.flatnonzero(chunks.is_random_P)
    b_begins_P[at], b_lengths_P[at] = _stretch_elsewhere(
        sentences, chunks.slots_P[at], chunks.targets_P[at] - a_lengths_P[at], chunks.keys_P[at]
    )
    a_losses_P, b_losses_P = split_losses(a_lengths_P, b_lengths_P, max_pieces)
    return Layout(
        a_begins_P + _front_losses(a_losses_P, chunks.keys_P, FLIPS_A),
        (a_lengths_P - a_losses_P).astype(np.int32),
        b_begins_P + _front_losses(b_losses_P, chunks.keys_P, FLIPS_B),
        (b_lengths_P - b_losses_P).astype(np.int32),
        chunks.is_random_P,
    )


def _stretch_elsewhere(
    sentences: Sentences, slots_P: Numbers, targets_P: Numbers, keys_P: Bits
) -> tuple[Numbers, Numbers]:
    """First piece and number of pieces of sentences of another document, from a random sentence on."""
    others_P = slots_P.copy()
    for trial in range(OTHER_DOCUMENT_TRIALS):
        same = np.flatnonzero(others_P == slots_P)
        others_P[same] = _draw_below(keys_P[same], OTHER_DOCUMENT + trial, np.int64(len(sentences.documents_D)))
    firsts_P, stops_P = sentences.bounds(others_P)
    firsts_P = firsts_P + _draw_below(keys_P, OTHER_BEGIN, stops_P - firsts_P)
    return sentences.stretch(firsts_P, sentences.reach(firsts_P, targets_P, stops_P), stops_P)


def split_losses(a_lengths_P: Numbers, b_lengths_P: Numbers, max_pieces: int) -> tuple[Numbers, Numbers]:
    """Pieces that A and B must lose to have ``max_pieces`` together.

    The longer side loses one piece at a time, and B at a tie. For example, 7 and 4 pieces are shortened to 6 in total:
    A loses three (4 and 4 are left), then B one and A one.

    >>> split_losses(np.array([7]), np.array([4]), 6)
    (array([4]), array([1]))
    """
    excess_P = np.maximum(a_lengths_P + b_lengths_P - max_pieces, 0)
    a_alone_P = np.minimum(excess_P, np.maximum(a_lengths_P - b_lengths_P, 0))
    b_alone_P = np.minimum(excess_P, np.maximum(b_lengths_P - a_lengths_P, 0))
    in_turn_P = excess_P - a_alone_P - b_alone_P
    return a_alone_P + in_turn_P // 2, b_alone_P + (in_turn_P + 1) // 2


def _front_losses(losses_P: Numbers, keys_P: Bits, purpose: int) -> Numbers:
    """How many of the lost pieces come from the front: heads among as many fair coin flips, 64 per word."""
    fronts_P = np.zeros_like(losses_P)
    at, left, word = np.flatnonzero(losses_P), losses_P[losses_P > 0], 0
    keys = _draw(keys_P[at], purpose)
    while len(at):
        unused = np.maximum(64 - left, 0).astype(np.uint64)
        fronts_P[at] += np.bitwise_count(_draw(keys, word) >> unused)
        more = left > 64
        at, keys, left, word = at[more], keys[more], left[more] - 64, word + 1
    return fronts_P


def _draw(keys: Bits, place: int) -> Bits:
    return random_bits(keys, np.array([place]))


def _draw_below(keys: Bits, place: int, bounds: Numbers | np.int64) -> Numbers:
    """Uniform draws from 0 to before ``bounds``; the bias of the remainder is below 2^-30 for any corpus."""
    return (_draw(keys, place) % bounds.astype(np.uint64)).astype(np.int64)


class Pairs:
    """Sentence pairs of chosen documents (at least two) as rows of one segment, padded to ``length``.

    Passes over the corpus repeat after ``DUPLICATES`` epochs, as the copies of google-research/bert do. The last two
    passes stay in memory.
    """

    def __init__(self, store: TokenStore, documents: Numbers, length: int, config: PretrainConfig) -> None:
        self._store, self._length, self._unit = store, length, config.rows.masking.unit
        lay_out = partial(lay_out_pass, Sentences(store, documents), length, SHORT_PAIR_SHARE, config.seed)
        self._layout = lru_cache(maxsize=2)(lay_out)
        self._count = lru_cache(maxsize=None)(lambda number: len(self._layout(number).is_random_P))

    def count(self, epoch: int) -> int:
        return self._count(epoch % DUPLICATES)

    def lengths(self, epoch: int) -> Numbers:
        layout = self._layout(epoch % DUPLICATES)
        return layout.a_lengths_P + layout.b_lengths_P + np.int64(SPECIAL_PIECES)

    def gather(self, epochs_B: Numbers, rows_B: Numbers) -> Rows:
        a_begins_B, a_lengths_B, b_begins_B, b_lengths_B, is_random_B = self._find(epochs_B, rows_B)
        special_ids = self._store.meta["special_ids"]
        starts_B = np.arange(len(rows_B)) * self._length  # of rows; below, of B and of its end; counted over all rows
        b_starts_B = starts_B + a_lengths_B + 2
        ends_B = b_starts_B + b_lengths_B
        lengths_2B = np.stack([a_lengths_B, b_lengths_B], 1).reshape(-1)
        at = runs(np.stack([starts_B + 1, b_starts_B], 1).reshape(-1), lengths_2B)
        places = runs(np.stack([a_begins_B, b_begins_B], 1).reshape(-1), lengths_2B)
        ids_BL, units_BL = fill_rows(self._store, self._unit, (len(rows_B), self._length), at, places)
        ids_BL.reshape(-1)[starts_B] = special_ids["cls"]
        ids_BL.reshape(-1)[[b_starts_B - 1, ends_B]] = special_ids["sep"]
        types_BL = np.zeros_like(ids_BL)
        types_BL.reshape(-1)[runs(b_starts_B, b_lengths_B + 1)] = 1  # with the last [SEP]
        lengths_B1 = (ends_B + 1 - starts_B)[:, None]
        return Rows(ids_BL, rows_B, lengths_B1, types_BL, is_random_B.astype(np.int64)[:, None], units_BL)

    def sources(self, epoch: int, rows_B: Numbers) -> Numbers:
        return self._store.sources_at(self._layout(epoch % DUPLICATES).a_begins_P[rows_B])

    def _find(self, epochs_B: Numbers, rows_B: Numbers) -> Layout:
        """The requested pairs, in that order; int64."""
        passes_B = epochs_B % DUPLICATES
        fields = np.empty((len(Layout._fields), len(rows_B)), np.int64)
        for number in np.unique(passes_B).tolist():
            here = np.flatnonzero(passes_B == number)
            for field_B, all_pairs in zip(fields, self._layout(number), strict=True):
                field_B[here] = all_pairs[rows_B[here]]
        return Layout(*fields)
