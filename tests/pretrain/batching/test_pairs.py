"""Sentence pairs against the published loop (google-research/bert, create_instances_from_document).

The loop draws what the stage draws: ``Draws`` hands it the same number for the same decision.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pretrain.batching.pairs import (
    CUT,
    FIRST_CHUNK,
    FLIPS_A,
    FLIPS_B,
    IS_RANDOM,
    IS_SHORT,
    OTHER_BEGIN,
    OTHER_DOCUMENT,
    SHORT_PAIR_SHARE,
    SHORT_TARGET,
    Layout,
    Pairs,
    Sentences,
    lay_out_pass,
    split_losses,
)
from pretrain.config import PretrainConfig
from pretrain.pack.store import TokenStore, open_store, piece_ids
from pretrain.rng import Bits, as_uniform, derive_key, random_bits

Tokens = list[int]
SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}


class Draws:
    """Random numbers of a document, by what they decide."""

    def __init__(self, seed: int, number: int, document: int) -> None:
        self._key = self._document = random_bits(derive_key(seed, "pairs", number), np.array([document]))

    def begin_chunk(self, sentence: int) -> None:
        self._key = random_bits(self._document, np.array([sentence + FIRST_CHUNK]))
        self._flips: dict[int, str] = {FLIPS_A: "", FLIPS_B: ""}
        self._words = {FLIPS_A: 0, FLIPS_B: 0}

    def random(self, purpose: int) -> float:
        return as_uniform(self._draw(purpose)).item()

    def randint(self, purpose: int, low: int, high: int) -> int:
        return low + int(self._draw(purpose)[0]) % (high - low + 1)

    def flip(self, purpose: int) -> bool:
        if not self._flips[purpose]:
            word = random_bits(self._draw(purpose), np.array([self._words[purpose]]))
            self._flips[purpose] = f"{int(word[0]):064b}"
            self._words[purpose] += 1
        flip, self._flips[purpose] = self._flips[purpose][0], self._flips[purpose][1:]
        return flip == "1"

    def _draw(self, purpose: int) -> Bits:
        return random_bits(self._key, np.array([purpose]))


def published_pairs(
    documents: list[list[Tokens]], index: int, max_num_tokens: int, short_seq_prob: float, rng: Draws
) -> list[tuple[Tokens, Tokens, bool]]:
    """The published algorithm on lists of tokens, masking left out."""
    document = documents[index]
    target = max_num_tokens
    if rng.random(IS_SHORT) < short_seq_prob:
        target = rng.randint(SHORT_TARGET, 2, max_num_tokens)
    pairs, chunk, chunk_length, i = [], [], 0, 0
    while i < len(document):
        if not chunk:
            rng.begin_chunk(i)
        chunk.append(document[i])
        chunk_length += len(document[i])
        if i == len(document) - 1 or chunk_length >= target:
            a_end = rng.randint(CUT, 1, len(chunk) - 1) if len(chunk) >= 2 else 1
            tokens_a = [token for segment in chunk[:a_end] for token in segment]
            is_random = len(chunk) == 1 or rng.random(IS_RANDOM) < 0.5
            if is_random:
                tokens_b = published_random_b(documents, index, target - len(tokens_a), rng)
                i -= len(chunk) - a_end
            else:
                tokens_b = [token for segment in chunk[a_end:] for token in segment]
            published_truncation(tokens_a, tokens_b, max_num_tokens, rng)
            pairs.append((tokens_a, tokens_b, is_random))
            chunk, chunk_length = [], 0
        i += 1
    return pairs


def published_random_b(documents: list[list[Tokens]], index: int, target: int, rng: Draws) -> Tokens:
    for trial in range(10):
        other = rng.randint(OTHER_DOCUMENT + trial, 0, len(documents) - 1)
        if other != index:
            break
    tokens: Tokens = []
    for j in range(rng.randint(OTHER_BEGIN, 0, len(documents[other]) - 1), len(documents[other])):
        tokens.extend(documents[other][j])
        if len(tokens) >= target:
            break
    return tokens


def published_truncation(tokens_a: Tokens, tokens_b: Tokens, max_num_tokens: int, rng: Draws) -> None:
    while len(tokens_a) + len(tokens_b) > max_num_tokens:
        a_is_longer = len(tokens_a) > len(tokens_b)
        longer = tokens_a if a_is_longer else tokens_b
        if rng.flip(FLIPS_A if a_is_longer else FLIPS_B):
            del longer[0]
        else:
            longer.pop()


def invented_store(sentence_lengths: list[list[int]]) -> TokenStore:
    """Documents of sentences of these many pieces; pieces count upwards, so that a misplaced one is seen."""
    begins, documents, place = [], [], 0
    for lengths in sentence_lengths:
        documents.append(place)
        for length in lengths:
            begins.append(place)
            place += length
        place += 1
    tokens = (5 + np.arange(place) % 30_000).astype(np.uint16)
    sources = (np.arange(len(documents)) % 2).astype(np.uint16)
    meta = {"special_ids": SPECIAL_IDS, "sources": {"수필": 1, "일기": 1}, "vocab_size": 1 << 15}
    return TokenStore(tokens, np.array([*documents, place]), np.array([*begins, place]), sources, meta)


def uneven_store(documents: int, longest: int) -> TokenStore:
    """Documents of 1 to 40 sentences, a book of 400 among them, with sentences of 1 to ``longest`` pieces."""
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 41, documents)
    counts[documents // 2] = 400
    return invented_store([rng.integers(1, longest + 1, count).tolist() for count in counts])


def sentences_as_lists(store: TokenStore) -> list[list[Tokens]]:
    ids = piece_ids(store.tokens).tolist()
    documents = []
    for begin, end in pairwise(store.documents.tolist()):
        starts = [int(s) for s in store.sentences[np.searchsorted(store.sentences, begin) :] if s < end] + [end - 1]
        documents.append([ids[a:b] for a, b in pairwise(starts)])
    return documents


def as_tokens(store: TokenStore, layout: Layout) -> list[tuple[Tokens, Tokens, bool]]:
    ids = piece_ids(store.tokens).tolist()
    return [
        (ids[a : a + a_length], ids[b : b + b_length], is_random)
        for a, a_length, b, b_length, is_random in zip(*(field.tolist() for field in layout), strict=True)
    ]


def expect_published(store: TokenStore, chosen: NDArray[np.int64], length: int, short_share: float) -> None:
    every_document = sentences_as_lists(store)
    documents = [every_document[number] for number in chosen]
    for number in range(2):
        expected = []
        for index, document in enumerate(chosen.tolist()):
            expected += published_pairs(documents, index, length - 3, short_share, Draws(7, number, document))
        layout = lay_out_pass(Sentences(store, chosen), length, short_share, 7, number)
        assert as_tokens(store, layout) == expected
        assert {random for *_, random in expected} == {True, False}


@pytest.mark.parametrize(("length", "short_share"), [(24, 0.1), (48, 0.5), (200, 0.0)])
def test_pairs_equal_the_published_loop(made: Path, length: int, short_share: float) -> None:
    store = open_store(made / "tokens", made / "tokenizer")
    expect_published(store, np.arange(0, 120, 2), length, short_share)


@pytest.mark.parametrize(("longest", "length", "short_share"), [(6, 8, 1.0), (40, 128, 0.3), (400, 64, 0.1)])
def test_pairs_equal_the_published_loop_for_short_and_long_sentences(
    longest: int, length: int, short_share: float
) -> None:
    """Sentences of up to 400 pieces in a pair of 61 need several words of coin flips."""
    expect_published(uneven_store(20, longest), np.arange(20), length, short_share)


def test_two_documents_are_enough_and_may_meet_themselves_after_ten_trials() -> None:
    expect_published(invented_store([[3] * 300, [4] * 300]), np.arange(2), 12, 0.0)
    store = invented_store([[3] * 10_000, [4] * 10_000])
    layout = lay_out_pass(Sentences(store, np.arange(2)), 12, 0.0, seed=7, number=0)
    from_itself = (layout.a_begins_P < store.documents[1]) == (layout.b_begins_P < store.documents[1])
    assert 0 < (from_itself & layout.is_random_P).sum() < layout.is_random_P.sum() / 256  # about one in 1024


def test_losses_equal_piece_by_piece_shortening() -> None:
    for a in range(1, 13):
        for b in range(1, 13):
            for most in range(2, 26):
                lengths = [a, b]
                while sum(lengths) > most:
                    lengths[0 if lengths[0] > lengths[1] else 1] -= 1
                a_losses, b_losses = split_losses(np.array([a]), np.array([b]), most)
                assert [a - a_losses[0], b - b_losses[0]] == lengths


def test_pairs_do_not_depend_on_the_size_of_slabs() -> None:
    store = uneven_store(60, 30)
    sentences = Sentences(store, np.delete(np.arange(60), [7, 8]))
    layouts = [lay_out_pass(sentences, 64, 0.1, 1, 0, slab_sentences=size) for size in (1, 50, 333, 1 << 20)]
    assert len(list(sentences.slabs(1))) == 58 and len(list(sentences.slabs(1 << 20))) == 1
    for layout in layouts[1:]:
        assert all((ours == first).all() for ours, first in zip(layout, layouts[0], strict=True))
    assert [field.dtype.str for field in layouts[0]] == ["<i8", "<i4", "<i8", "<i4", "|b1"]


def test_half_of_the_pairs_are_random_and_lone_sentences_always() -> None:
    """Two sentences that fit give one pair, or two random ones: the second sentence was displaced and is alone."""
    store = invented_store([[5, 5]] * 20_000)
    layout = lay_out_pass(Sentences(store, np.arange(20_000)), 200, 0.1, seed=1, number=0)
    pairs_D = np.bincount(np.searchsorted(store.documents, layout.a_begins_P, side="right") - 1)
    assert abs((pairs_D == 1).mean() - 0.5) < 0.015
    assert layout.is_random_P.sum() == 2 * (pairs_D == 2).sum()
    other_P = np.searchsorted(store.documents, layout.b_begins_P, side="right") - 1
    own_P = np.searchsorted(store.documents, layout.a_begins_P, side="right") - 1
    assert ((other_P == own_P) == ~layout.is_random_P).all()
    assert abs(other_P[layout.is_random_P].mean() / 20_000 - 0.5) < 0.01
    assert abs(layout.b_begins_P[layout.is_random_P] % 11 == 0).mean() == pytest.approx(0.5, abs=0.015)


@pytest.mark.parametrize("length", [40, 200])
def test_each_lost_piece_comes_from_either_end_alike(length: int) -> None:
    """One sentence a document against another such: both lose ``length - 20``, more than a word of flips for 200."""
    count, losses = 20_000, length - 20
    store = invented_store([[length]] * count)
    layout = lay_out_pass(Sentences(store, np.arange(count)), 43, 0.0, seed=1, number=0)
    assert (layout.a_lengths_P == 20).all() and (layout.b_lengths_P == 20).all()
    fronts_a, fronts_b = layout.a_begins_P % (length + 1), layout.b_begins_P % (length + 1)
    for fronts in (fronts_a, fronts_b):
        assert fronts.mean() == pytest.approx(losses / 2, rel=0.01)
        assert fronts.var() == pytest.approx(losses / 4, rel=0.06)  # heads of N fair flips
    assert abs(np.corrcoef(fronts_a, fronts_b)[0, 1]) < 0.03


def test_short_targets_are_drawn_for_whole_documents() -> None:
    """Sentences of one piece: a document that aims at less has no pair of two such sides that is longer."""
    store = invented_store([[1] * 200] * 3000)
    layout = lay_out_pass(Sentences(store, np.arange(3000)), 43, 0.1, seed=1, number=0)
    document_P = np.searchsorted(store.documents, layout.a_begins_P, side="right") - 1
    longest_D = np.zeros(3000, np.int64)
    np.maximum.at(longest_D, document_P, layout.a_lengths_P + layout.b_lengths_P)
    shorter = longest_D[longest_D < 40]
    assert len(shorter) / 3000 == pytest.approx(0.1 * 38 / 39, abs=0.02)
    assert shorter.min() == 2 and shorter.mean() == pytest.approx(20.5, abs=2.5)


@pytest.mark.parametrize("unit", ["word", "eojeol"])
def test_rows_read_cls_a_sep_b_sep_and_padding(made: Path, tiny: Callable[..., PretrainConfig], unit: str) -> None:
    config = tiny(architecture="bert", nsp=True, sequence_length=40, masking={"unit": unit})
    store = open_store(made / "tokens", made / "tokenizer")
    chosen = np.arange(10, 120)
    pairs = Pairs(store, chosen, 40, config)
    layouts = [lay_out_pass(Sentences(store, chosen), 40, SHORT_PAIR_SHARE, config.seed, epoch) for epoch in range(3)]
    rng = np.random.default_rng(0)
    epochs_B, rows_B = rng.integers(0, 3, 200), rng.integers(0, pairs.count(0) // 2, 200)
    rows = pairs.gather(epochs_B, rows_B)
    assert rows.types_BL is not None and rows.lengths_BS is not None and rows.is_random_BS is not None
    assert (rows.units_BL is None) == (unit == "word")
    assert rows.lengths_BS.shape == rows.is_random_BS.shape == (200, 1)
    for place, (epoch, row) in enumerate(zip(epochs_B, rows_B, strict=True)):
        a, a_length, b, b_length, is_random = (int(field[row]) for field in layouts[epoch])
        marked = store.tokens[a : a + a_length].tolist(), store.tokens[b : b + b_length].tolist()
        first, second = [[piece & 0x7FFF for piece in side] for side in marked]
        padding = 40 - a_length - b_length - 3
        assert rows.ids_BL[place].tolist() == [0, *first, 2, *second, 2, *[1] * padding]
        assert rows.types_BL[place].tolist() == [0] * (a_length + 2) + [1] * (b_length + 1) + [0] * padding
        assert rows.lengths_BS[place, 0] == rows.tokens_B[place] == pairs.lengths(int(epoch))[row] == 40 - padding
        assert rows.is_random_BS[place, 0] == is_random
        if rows.units_BL is not None:
            begins = [[piece >> 15 == 1 for piece in side] for side in marked]
            assert rows.units_BL[place].tolist() == [False, *begins[0], False, *begins[1], *[False] * (padding + 1)]
    assert (rows.lengths_BS == 40).any() and (rows.lengths_BS < 40).any()
    assert (rows.names_B == rows_B).all()


def test_a_pair_belongs_to_the_source_of_its_first_sentence(tiny: Callable[..., PretrainConfig]) -> None:
    store = invented_store([[4, 4, 4]] * 50)
    pairs = Pairs(store, np.arange(50), 20, tiny(architecture="bert", nsp=True))
    ids_B = pairs.gather(np.zeros(30, np.int64), np.arange(30)).ids_BL[:, 1]
    assert (pairs.sources(0, np.arange(30)) == (ids_B - 5) // 13 % 2).all()


def test_pairs_repeat_after_the_duplicates_but_not_before(
    made: Path, tiny: Callable[..., PretrainConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(architecture="bert", nsp=True, masking={"mode": "static"})
    monkeypatch.setattr("pretrain.batching.pairs.DUPLICATES", 2)
    store = open_store(made / "tokens", made / "tokenizer")
    pairs = Pairs(store, np.arange(120), 32, config)
    first, second, third = (pairs.gather(np.full(20, epoch), np.arange(20)).ids_BL for epoch in range(3))
    assert (first == third).all() and not (first == second).all()
    assert pairs.count(0) == pairs.count(2) == len(pairs.lengths(0)) != pairs.count(1)
