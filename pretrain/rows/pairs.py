"""Sentence pairs for next sentence prediction, by the rules of google-research/bert (create_pretraining_data.py).

Sentences of a document are gathered up to a target length and cut into A and B at a random sentence. Half the time, and
always when there is one sentence only, B comes from a random other document and the sentences it displaced are used
again. The longer side loses pieces at a random end until the pair fits. A pass is a pure function of (seed, pass) but
must be laid out before it is read; all documents are worked on at once. The price is 25 bytes of memory for each pair.

Shapes: D chosen documents, P pairs, B rows, L positions, S segments of a row (one).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pretrain.config import PretrainConfig
from pretrain.pack.store import TokenStore, piece_ids
from pretrain.rng import Bits, as_uniform, derive_key, random_bits
from pretrain.rows.sources import Rows

Numbers = NDArray[np.int64]
SPECIAL_PIECES = 3  # [CLS] A [SEP] B [SEP]
OTHER_DOCUMENT_TRIALS = 10
SLAB_SENTENCES = 1 << 19  # worked on at once: arrays of a few megabytes

# What a draw is for, under the key of a document (the first two) or a chunk; OTHER_DOCUMENT has a draw for each trial
IS_SHORT, SHORT_TARGET, FIRST_CHUNK = range(3)
CUT, IS_RANDOM, FLIPS_A, FLIPS_B, OTHER_BEGIN, OTHER_DOCUMENT = range(6)


class Layout(NamedTuple):
    """Pairs in the order of their documents and, within them, of their sentences.

    Fields:
        a_begins_P, b_begins_P: place of the first piece in the store; int64.
        a_lengths_P, b_lengths_P: pieces, at least one; int32.
        is_random_P: whether B does not follow A.
    """

    a_begins_P: NDArray[Any]
    a_lengths_P: NDArray[Any]
    b_begins_P: NDArray[Any]
    b_lengths_P: NDArray[Any]
    is_random_P: NDArray[Any]


class Chunks(NamedTuple):
    """Sentences gathered up to the target, all numbered within the store, and where they are cut into A and B.

    Fields:
        slots_P: which of the chosen documents.
        firsts_P, cuts_P, lasts_P: first sentence of A, of B (if B follows A), and the one behind B.
        targets_P: pieces that A and B aim at.
        keys_P: names the draws of the chunk; its purpose is the place.
        is_random_P: whether B comes from elsewhere.
    """

    slots_P: Numbers
    firsts_P: Numbers
    cuts_P: Numbers
    lasts_P: Numbers
    targets_P: Numbers
    keys_P: Bits
    is_random_P: NDArray[np.bool_]


class Sentences:
    """Where the sentences of chosen documents lie in the store; no document is empty.

    Args:
        store: an open token store.
        documents: numbers of the documents that pairs may use, at least two; int64, length D.
    """

    def __init__(self, store: TokenStore, documents: Numbers) -> None:
        self.documents_D = documents
        self.begins = np.asarray(store.sentences)  # a plain array is quicker than a memory map, and still one
        self._first = np.searchsorted(self.begins, store.documents)  # sentence of every document of the store

    def bounds(self, slots: Numbers | slice) -> tuple[Numbers, Numbers]:
        """First sentence of chosen documents, by their place among them, and the one behind their last."""
        documents = self.documents_D[slots]
        return self._first[documents], self._first[documents + 1]

    def reach(self, firsts: Numbers, pieces: Numbers, stops: Numbers) -> Numbers:
        """The end of the sentences from ``firsts`` on that have ``pieces`` pieces; one at least, ``stops`` at most."""
        goals, ends = self.begins[firsts] + pieces, firsts + 1
        # a search by halves near ``firsts``: one through the whole store misses the cache at every step
        most = max(0, min(np.max(stops - ends, initial=0), np.max(pieces, initial=0)))  # a sentence has a piece
        for bit in reversed(range(int(most).bit_length())):
            further = ends + (1 << bit)
            is_short = self.begins[np.minimum(further - 1, stops)] < goals
            ends = np.where(is_short & (further <= stops), further, ends)
        return ends

    def stretch(self, firsts: Numbers, lasts: Numbers, stops: Numbers) -> tuple[Numbers, Numbers]:
        """First piece and number of pieces of the sentences from ``firsts`` to before ``lasts``."""
        begins = self.begins[firsts]
        return begins, self.begins[lasts] - (lasts == stops) - begins  # the separator belongs to no sentence

    def slabs(self, sentences: int) -> Iterator[Numbers]:
        """Places of documents that have at most so many sentences together, or of one document."""
        begin, total = 0, len(self.documents_D)
        while begin < total:
            firsts, stops = self.bounds(slice(begin, begin + sentences // 8 + 1))
            fitting = np.searchsorted(np.cumsum(stops - firsts), sentences, side="right")
            end = begin + max(1, int(fitting))
            yield np.arange(begin, end)
            begin = end


def lay_out_pass(
    sentences: Sentences, length: int, short_share: float, seed: int, number: int, slab_sentences: int = SLAB_SENTENCES
) -> Layout:
    """All pairs of pass ``number``; how a document is cut depends on nothing but its sentences, the seed and the pass.

    Args:
        length: most tokens of a pair, special pieces counted; at least 5.
        short_share: share of the documents that aim at less, drawn evenly from 2 to all that fits.
        slab_sentences: bounds the memory of the work; does not change the pairs.
    """
    key = derive_key(seed, "pairs", number)
    most_pieces = length - SPECIAL_PIECES
    chunked = (_chunk(sentences, slots, most_pieces, short_share, key) for slots in sentences.slabs(slab_sentences))
    parts = list(zip(*(_pair(sentences, chunks, most_pieces) for chunks in chunked), strict=True))
    # popped, so that no more than one field lies in memory twice
    return Layout(*(np.concatenate(parts.pop(0)) for _ in Layout._fields))


def _chunk(sentences: Sentences, slots_D: Numbers, most_pieces: int, short_share: float, key: np.uint64) -> Chunks:
    """Round i makes the i-th chunk of every document that still has sentences."""
    origins_D, stops_D = sentences.bounds(slots_D)
    document_keys_D = random_bits(key, sentences.documents_D[slots_D])
    is_short_D = as_uniform(_draw(document_keys_D, IS_SHORT)) < short_share
    short_D = 2 + _draw_below(document_keys_D, SHORT_TARGET, np.int64(most_pieces - 1))
    targets_D = np.where(is_short_D, short_D, most_pieces)
    rounds = []
    alive, firsts = np.arange(len(slots_D)), origins_D
    while len(alive):
        stops, targets = stops_D[alive], targets_D[alive]
        lasts = sentences.reach(firsts, targets, stops)
        keys = random_bits(document_keys_D[alive], firsts - origins_D[alive] + FIRST_CHUNK)
        cuts = firsts + 1 + _draw_below(keys, CUT, np.maximum(lasts - firsts - 1, 1))
        is_random = (lasts - firsts == 1) | (as_uniform(_draw(keys, IS_RANDOM)) < 0.5)
        rounds.append(Chunks(alive, firsts, cuts, lasts, targets, keys, is_random))
        nexts = np.where(is_random, cuts, lasts)  # what a random B displaced is used again
        is_left = nexts < stops
        alive, firsts = alive[is_left], nexts[is_left]
    return _by_document(rounds, slots_D)


def _by_document(rounds: list[Chunks], slots_D: Numbers) -> Chunks:
    """Chunks of all rounds, those of a document side by side."""
    counts_D = np.bincount(np.concatenate([part.slots_P for part in rounds]), minlength=len(slots_D))
    offsets_D = np.cumsum(counts_D) - counts_D
    places_P = np.concatenate([offsets_D[part.slots_P] + number for number, part in enumerate(rounds)])
    order_P = np.empty_like(places_P)
    order_P[places_P] = np.arange(len(places_P))
    chunks = Chunks(*(np.concatenate(parts)[order_P] for parts in zip(*rounds, strict=True)))
    return chunks._replace(slots_P=slots_D[chunks.slots_P])


def _pair(sentences: Sentences, chunks: Chunks, most_pieces: int) -> Layout:
    """A and B of every chunk, cut down to ``most_pieces``."""
    _, stops_P = sentences.bounds(chunks.slots_P)
    a_begins_P, a_lengths_P = sentences.stretch(chunks.firsts_P, chunks.cuts_P, stops_P)
    b_begins_P = np.empty_like(a_begins_P)
    b_lengths_P = np.empty_like(a_lengths_P)
    at = np.flatnonzero(~chunks.is_random_P)
    b_begins_P[at], b_lengths_P[at] = sentences.stretch(chunks.cuts_P[at], chunks.lasts_P[at], stops_P[at])
    at = np.flatnonzero(chunks.is_random_P)
    b_begins_P[at], b_lengths_P[at] = _stretch_elsewhere(
        sentences, chunks.slots_P[at], chunks.targets_P[at] - a_lengths_P[at], chunks.keys_P[at]
    )
    a_losses_P, b_losses_P = split_losses(a_lengths_P, b_lengths_P, most_pieces)
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
    """First piece and number of pieces of some sentences of another document, from a random one of them on."""
    others_P = slots_P.copy()
    for trial in range(OTHER_DOCUMENT_TRIALS):
        same = np.flatnonzero(others_P == slots_P)
        others_P[same] = _draw_below(keys_P[same], OTHER_DOCUMENT + trial, np.int64(len(sentences.documents_D)))
    firsts_P, stops_P = sentences.bounds(others_P)
    firsts_P = firsts_P + _draw_below(keys_P, OTHER_BEGIN, stops_P - firsts_P)
    return sentences.stretch(firsts_P, sentences.reach(firsts_P, targets_P, stops_P), stops_P)


def split_losses(a_lengths_P: Numbers, b_lengths_P: Numbers, most_pieces: int) -> tuple[Numbers, Numbers]:
    """Pieces that A and B must lose to have ``most_pieces`` together.

    Piece by piece the longer side loses one, and B at a tie: first the longer alone until both are equal, then B and A
    in turn. Of 7 and 4 pieces, 6 are to stay: A loses three alone (4 and 4), then B one and A one.

    >>> split_losses(np.array([7]), np.array([4]), 6)
    (array([4]), array([1]))
    """
    excess_P = np.maximum(a_lengths_P + b_lengths_P - most_pieces, 0)
    a_alone_P = np.minimum(excess_P, np.maximum(a_lengths_P - b_lengths_P, 0))
    b_alone_P = np.minimum(excess_P, np.maximum(b_lengths_P - a_lengths_P, 0))
    in_turn_P = excess_P - a_alone_P - b_alone_P
    return a_alone_P + in_turn_P // 2, b_alone_P + (in_turn_P + 1) // 2


def _front_losses(losses_P: Numbers, keys_P: Bits, purpose: int) -> Numbers:
    """How many of the lost pieces come from the front: heads among as many fair flips, 64 in a word."""
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
    """Draws from 0 to before ``bounds``, all alike but for the remainder's bias: below 2^-30 for any corpus."""
    return (_draw(keys, place) % bounds.astype(np.uint64)).astype(np.int64)


class Pairs:
    """Sentence pairs of some documents as rows of one segment.

    Passes over the corpus repeat after ``masking.duplicates`` epochs, as the copies of google-research/bert do. The
    last two passes stay in memory.

    Args:
        documents: numbers of the documents in the store, at least two; int64.
        length: tokens of a row, padding counted.
    """

    def __init__(self, store: TokenStore, documents: Numbers, length: int, config: PretrainConfig) -> None:
        self._store, self._length, self._unit = store, length, config.rows.masking.unit
        self._passes = config.rows.masking.duplicates
        lay_out = partial(lay_out_pass, Sentences(store, documents), length, config.rows.short_share, config.seed)
        self._layout = lru_cache(maxsize=2)(lay_out)
        self._count = lru_cache(maxsize=None)(lambda number: len(self._layout(number).is_random_P))

    def count(self, epoch: int) -> int:
        return self._count(epoch % self._passes)

    def lengths(self, epoch: int) -> Numbers:
        """Tokens of every row of an epoch, special pieces counted."""
        layout = self._layout(epoch % self._passes)
        return layout.a_lengths_P + layout.b_lengths_P + np.int64(SPECIAL_PIECES)

    def gather(self, epochs_B: Numbers, rows_B: Numbers) -> Rows:
        a_begins_B, a_lengths_B, b_begins_B, b_lengths_B, is_random_B = self._find(epochs_B, rows_B)
        special_ids = self._store.meta["special_ids"]
        columns_L = np.arange(self._length)
        first_sep_B1 = 1 + a_lengths_B.astype(np.int64)[:, None]
        last_sep_B1 = 1 + first_sep_B1 + b_lengths_B[:, None]
        in_a_BL = columns_L < first_sep_B1  # with [CLS]
        is_b_BL = (columns_L > first_sep_B1) & (columns_L <= last_sep_B1)  # with the last [SEP]
        offsets_BL = np.where(in_a_BL, a_begins_B[:, None] - 1, b_begins_B[:, None] - first_sep_B1 - 1)
        is_piece_BL = in_a_BL & (columns_L > 0) | is_b_BL & (columns_L < last_sep_B1)
        places_BL = np.where(is_piece_BL, offsets_BL + columns_L, 0)
        ids_BL = np.where(is_piece_BL, piece_ids(self._store.tokens[places_BL]), special_ids["pad"])
        ids_BL[:, 0] = special_ids["cls"]
        np.put_along_axis(ids_BL, np.hstack([first_sep_B1, last_sep_B1]), special_ids["sep"], axis=1)
        starts_BL = self._store.unit_starts(places_BL, self._unit)
        return Rows(
            ids_BL,
            rows_B,
            lengths_BS=last_sep_B1 + 1,
            types_BL=is_b_BL.astype(np.int64),
            is_random_BS=is_random_B.astype(np.int64)[:, None],
            units_BL=None if starts_BL is None else starts_BL & is_piece_BL,
        )

    def sources(self, epoch: int, rows_B: Numbers) -> Numbers:
        return self._store.sources_at(self._layout(epoch % self._passes).a_begins_P[rows_B])

    def _find(self, epochs_B: Numbers, rows_B: Numbers) -> Layout:
        """The pairs asked for, in that order."""
        passes_B = epochs_B % self._passes
        fields: list[NDArray[Any]] = [np.empty(len(rows_B), dtype) for dtype in ("i8", "i4", "i8", "i4", "?")]
        for number in np.unique(passes_B).tolist():
            here = passes_B == number
            for field, all_pairs in zip(fields, self._layout(number), strict=True):
                field[here] = all_pairs[rows_B[here]]
        return Layout(*fields)
