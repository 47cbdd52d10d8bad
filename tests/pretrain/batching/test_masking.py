"""Whole-word masking against the plain loop of google-research/bert for every unit, and its shares."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pretrain.batching.masking import IGNORED, Masked, Pieces, describe_pieces, mask_rows, row_keys
from pretrain.batching.sources import Rows
from pretrain.config import MaskingConfig
from pretrain.rng import random_bits

SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
VOCABULARY = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", *(f"말{n}" for n in range(200))]
VOCABULARY += [*(f"##말{n}" for n in range(195)), *(f"[unused{n}]" for n in range(100))]
FIRST_CONTINUATION, FIRST_UNUSED = 205, 400


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    return describe_pieces(VOCABULARY, SPECIAL_IDS)


def draw_rows(count: int, length: int, seed: int, mean_unit: float | None = None) -> Rows:
    """Rows of random pieces, some [UNK], some padded; every third row full; units of any length if a mean is given."""
    rng = np.random.default_rng(seed)
    ids_BL = rng.integers(5, FIRST_UNUSED, (count, length))
    ids_BL[rng.random(ids_BL.shape) < 0.02] = SPECIAL_IDS["unk"]
    lengths_B = np.where(np.arange(count) % 3 == 0, length, rng.integers(5, length + 1, count))
    ids_BL[:, 0] = SPECIAL_IDS["cls"]
    for row, tokens in enumerate(lengths_B):
        ids_BL[row, tokens - 1] = SPECIAL_IDS["sep"]
        ids_BL[row, tokens:] = SPECIAL_IDS["pad"]
    units_BL = None if mean_unit is None else rng.random(ids_BL.shape) < 1 / mean_unit
    return Rows(ids_BL, np.arange(count), lengths_BS=lengths_B[:, None], units_BL=units_BL)


def pick(rows: Rows, some: list[int]) -> Rows:
    return Rows(*(None if field is None else field[some] for field in rows))


def keys_of(rows: Rows, seed: int = 1) -> NDArray[np.uint64]:
    return row_keys(seed, MaskingConfig(), np.zeros(len(rows.ids_BL), np.int64), rows.names_B)


def words_slowly(rows: Rows, row: int) -> list[list[int]]:
    """Positions of each word or unit, by one walk from left to right."""
    ids = rows.ids_BL[row].tolist()
    words: list[list[int]] = []
    for position in range(int(rows.tokens_B[row])):
        if ids[position] < 5:
            continue
        begins = ids[position] < FIRST_CONTINUATION if rows.units_BL is None else rows.units_BL[row, position]
        if words and words[-1][-1] == position - 1 and not begins:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def choose_slowly(rows: Rows, row: int, key: np.uint64, share: float) -> list[int]:
    """Words in the order of their draws; one that exceeds the budget is passed over."""
    draws = random_bits(key, np.arange(rows.ids_BL.shape[1])) << np.uint64(16)
    words = sorted(words_slowly(rows, row), key=lambda word: (int(draws[word[0]]), word[0]))
    budget, chosen = max(1, round(int(rows.tokens_B[row]) * share)), []
    for word in words:
        if len(chosen) + len(word) <= budget:
            chosen.extend(word)
    return sorted(chosen)


def positions_of(masked: Masked, row: int) -> list[int]:
    return masked.positions_BM[row][masked.targets_BM[row] != IGNORED].tolist()


@pytest.mark.parametrize("share", [0.02, 0.15, 0.6])
@pytest.mark.parametrize("mean_unit", [None, 1.4, 2.5, 30.0], ids=["word", "short", "eojeol", "long"])
@pytest.mark.parametrize("length", [16, 128, 512])
def test_equals_the_plain_loop_on_every_row(pieces: Pieces, length: int, mean_unit: float | None, share: float) -> None:
    rows = draw_rows(60, length, seed=length, mean_unit=mean_unit)
    keys_B = keys_of(rows)
    masked = mask_rows(rows, keys_B, pieces, MaskingConfig(share=share))
    for row in range(60):
        slow = choose_slowly(rows, row, keys_B[row], share)
        assert positions_of(masked, row) == slow
        assert masked.targets_BM[row][: len(slow)].tolist() == rows.ids_BL[row, slow].tolist()
        assert set(masked.targets_BM[row][len(slow) :].tolist()) <= {IGNORED}


def test_a_row_without_cls_may_open_in_the_middle_of_a_word(pieces: Pieces) -> None:
    rows = draw_rows(60, 64, seed=9)
    rows.ids_BL[:, 0] = FIRST_CONTINUATION + 7
    masked = mask_rows(rows, keys_of(rows), pieces, MaskingConfig(share=0.5))
    for row in range(60):
        assert positions_of(masked, row) == choose_slowly(rows, row, keys_of(rows)[row], 0.5)
    assert (masked.positions_BM[masked.targets_BM != IGNORED] == 0).any()


@pytest.mark.parametrize("mean_unit", [None, 2.5])
def test_no_unit_is_split(pieces: Pieces, mean_unit: float | None) -> None:
    rows = draw_rows(60, 128, seed=3, mean_unit=mean_unit)
    masked = mask_rows(rows, keys_of(rows), pieces, MaskingConfig())
    for row in range(60):
        chosen = set(positions_of(masked, row))
        assert chosen
        assert {len(chosen & set(word)) / len(word) for word in words_slowly(rows, row)} <= {0.0, 1.0}


@pytest.mark.parametrize("mean_unit", [None, 1.4])
def test_every_full_block_of_512_gets_77_predictions(pieces: Pieces, mean_unit: float | None) -> None:
    rows = pick(draw_rows(270, 512, seed=5, mean_unit=mean_unit), list(range(0, 270, 3)))._replace(lengths_BS=None)
    masked = mask_rows(rows, keys_of(rows), pieces, MaskingConfig())
    assert masked.targets_BM.shape == (90, 77)
    assert (masked.targets_BM != IGNORED).all()
    assert (np.diff(masked.positions_BM) > 0).all()


@pytest.mark.parametrize("mean_unit", [None, 2.5])
def test_shown_pieces_keep_to_80_10_10_and_no_special_or_unused_piece_is_drawn(
    pieces: Pieces, mean_unit: float | None
) -> None:
    drawn = draw_rows(600, 512, seed=6, mean_unit=mean_unit)
    masked = mask_rows(drawn, keys_of(drawn), pieces, MaskingConfig())
    rows, slots = np.nonzero(masked.targets_BM != IGNORED)
    shown = masked.ids_BL[rows, masked.positions_BM[rows, slots]]
    targets = masked.targets_BM[rows, slots]
    assert np.mean(shown == SPECIAL_IDS["mask"]) == pytest.approx(0.8, abs=0.01)
    assert np.mean(shown == targets) == pytest.approx(0.1 + 0.1 / 395, abs=0.01)
    assert targets.min() >= 5
    replaced = shown[(shown != targets) & (shown != SPECIAL_IDS["mask"])]
    assert replaced.min() == 5 and replaced.max() == FIRST_UNUSED - 1
    untouched = np.ones_like(drawn.ids_BL, bool)
    untouched[rows, masked.positions_BM[rows, slots]] = False
    assert (masked.ids_BL == drawn.ids_BL)[untouched].all()


def test_a_row_is_masked_the_same_in_any_company(pieces: Pieces) -> None:
    rows = draw_rows(20, 64, seed=7)
    some = [13, 2, 7]
    together = mask_rows(rows, keys_of(rows), pieces, MaskingConfig())
    alone = mask_rows(pick(rows, some), keys_of(rows)[some], pieces, MaskingConfig())
    for of_some, of_all in zip(alone, together, strict=True):
        assert (of_some == of_all[some]).all()


def test_a_block_that_opens_inside_a_word_has_a_word_there(pieces: Pieces) -> None:
    ids_BL = np.array([[0, FIRST_CONTINUATION, FIRST_CONTINUATION + 1, 2]])
    for units_BL in (None, np.zeros((1, 4), bool)):
        rows = Rows(ids_BL, np.arange(1), units_BL=units_BL)
        masked = mask_rows(rows, keys_of(rows), pieces, MaskingConfig(share=0.5))
        assert positions_of(masked, 0) == [1, 2]


def test_rows_of_special_pieces_alone_predict_nothing(pieces: Pieces) -> None:
    rows = Rows(np.array([[0, 2, 1, 1], [0, 7, 2, 1]]), np.arange(2), lengths_BS=np.array([[2], [3]]))
    masked = mask_rows(rows, keys_of(rows), pieces, MaskingConfig())
    assert masked.targets_BM.tolist() == [[IGNORED], [7]]
    assert masked.positions_BM.tolist() == [[0], [1]]
    assert masked.ids_BL[0].tolist() == [0, 2, 1, 1]


@pytest.mark.parametrize(
    ("vocabulary", "continuations"),
    [
        (["<s>", "</s>", "<mask>", "Ġ바다", "에서", "##", "Ġ", "Ġ시장", "<unused0>"], ["에서", "##", "<unused0>"]),
        (["<s>", "</s>", "<mask>", "▁바다", "에서", "▁", ".", "<unused0>"], ["에서", ".", "<unused0>"]),
        (["[CLS]", "[SEP]", "[MASK]", "바다", "##에서", "##는", "▁", "[unused0]"], ["##에서", "##는"]),
        (["[CLS]", "[SEP]", "[MASK]", "바다", "에서", "[unused0]"], []),
    ],
    ids=["byte-level BPE", "SentencePiece", "WordPiece", "whole words"],
)
def test_words_follow_the_sign_of_the_tokenizer_family(vocabulary: list[str], continuations: list[str]) -> None:
    pieces = describe_pieces(vocabulary, {"cls": 0, "sep": 1, "mask": 2})
    assert [vocabulary[id_] for id_ in np.flatnonzero(pieces.continues_V)] == continuations
    assert pieces.ordinary_ids.tolist() == [
        id_ for id_, piece in enumerate(vocabulary) if id_ > 2 and "unused" not in piece
    ]


def test_static_masks_repeat_after_ten_epochs_and_dynamic_ones_do_not() -> None:
    epochs, rows = np.array([0, 1, 10, 11]), np.full(4, 9)
    static = row_keys(1, MaskingConfig(mode="static"), epochs, rows)
    dynamic = row_keys(1, MaskingConfig(mode="dynamic"), epochs, rows)
    assert static[0] == static[2] and static[1] == static[3] and static[0] != static[1]
    assert len(set(dynamic.tolist())) == 4
