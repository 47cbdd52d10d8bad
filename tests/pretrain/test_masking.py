"""Whole-word masking against the plain loop of google-research/bert, and its shares."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pretrain.config import MaskingConfig
from pretrain.draws import draw_words
from pretrain.masking import IGNORED, Masked, Pieces, describe_pieces, mask_rows, row_keys

SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
VOCABULARY = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", *(f"말{n}" for n in range(200))]
VOCABULARY += [*(f"##말{n}" for n in range(195)), *(f"[unused{n}]" for n in range(100))]
FIRST_CONTINUATION, FIRST_UNUSED = 205, 400


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    return describe_pieces(VOCABULARY, SPECIAL_IDS)


def draw_rows(count: int, length: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of random pieces, some [UNK], some padded; every third row full."""
    rng = np.random.default_rng(seed)
    ids_BL = rng.integers(5, FIRST_UNUSED, (count, length))
    ids_BL[rng.random(ids_BL.shape) < 0.02] = SPECIAL_IDS["unk"]
    lengths_B = np.where(np.arange(count) % 3 == 0, length, rng.integers(5, length + 1, count))
    ids_BL[:, 0] = SPECIAL_IDS["cls"]
    for row, tokens in enumerate(lengths_B):
        ids_BL[row, tokens - 1] = SPECIAL_IDS["sep"]
        ids_BL[row, tokens:] = SPECIAL_IDS["pad"]
    return ids_BL, lengths_B


def choose_slowly(ids: list[int], length: int, key: np.uint64, share: float) -> list[int]:
    """Words in the order of their draws; one that exceeds the budget is passed over."""
    words: list[list[int]] = []
    for position in range(length):
        if ids[position] < 5:
            continue
        if words and words[-1][-1] == position - 1 and ids[position] >= FIRST_CONTINUATION:
            words[-1].append(position)
        else:
            words.append([position])
    draws = draw_words(key, np.arange(len(ids))) << np.uint64(16)
    words.sort(key=lambda word: (int(draws[word[0]]), word[0]))
    budget, chosen = max(1, round(length * share)), []
    for word in words:
        if len(chosen) + len(word) <= budget:
            chosen.extend(word)
    return sorted(chosen)


def positions_of(masked: Masked, row: int) -> list[int]:
    return masked.positions_BM[row][masked.targets_BM[row] != IGNORED].tolist()


@pytest.mark.parametrize("length", [16, 128, 512])
def test_equals_the_plain_loop_on_every_row(pieces: Pieces, length: int) -> None:
    ids_BL, lengths_B = draw_rows(60, length, seed=length)
    config = MaskingConfig()
    keys_B = row_keys(1, config, np.zeros(60, np.int64), np.arange(60))
    masked = mask_rows(ids_BL, lengths_B, keys_B, pieces, config)
    for row in range(60):
        slow = choose_slowly(ids_BL[row].tolist(), int(lengths_B[row]), keys_B[row], config.share)
        assert positions_of(masked, row) == slow
        assert masked.targets_BM[row][: len(slow)].tolist() == ids_BL[row, slow].tolist()


def test_every_full_block_of_512_gets_77_predictions(pieces: Pieces) -> None:
    ids_BL, lengths_B = draw_rows(90, 512, seed=5)
    keys_B = row_keys(1, MaskingConfig(), np.arange(90), np.arange(90))
    masked = mask_rows(ids_BL, lengths_B, keys_B, pieces, MaskingConfig())
    assert masked.targets_BM.shape == (90, 77)
    assert {len(positions_of(masked, row)) for row in range(0, 90, 3)} == {77}


def test_shown_pieces_keep_to_80_10_10_and_no_special_or_unused_piece_is_drawn(pieces: Pieces) -> None:
    ids_BL, lengths_B = draw_rows(600, 512, seed=6)
    keys_B = row_keys(1, MaskingConfig(), np.zeros(600, np.int64), np.arange(600))
    masked = mask_rows(ids_BL, lengths_B, keys_B, pieces, MaskingConfig())
    rows, slots = np.nonzero(masked.targets_BM != IGNORED)
    shown = masked.ids_BL[rows, masked.positions_BM[rows, slots]]
    targets = masked.targets_BM[rows, slots]
    assert np.mean(shown == SPECIAL_IDS["mask"]) == pytest.approx(0.8, abs=0.01)
    assert np.mean(shown == targets) == pytest.approx(0.1 + 0.1 / 395, abs=0.01)
    assert targets.min() >= 5
    replaced = shown[(shown != targets) & (shown != SPECIAL_IDS["mask"])]
    assert replaced.min() >= 5 and replaced.max() < FIRST_UNUSED
    untouched = np.ones_like(ids_BL, bool)
    untouched[rows, masked.positions_BM[rows, slots]] = False
    assert (masked.ids_BL == ids_BL)[untouched].all()


def test_a_row_is_masked_the_same_in_any_company(pieces: Pieces) -> None:
    ids_BL, lengths_B = draw_rows(20, 64, seed=7)
    keys_B = row_keys(1, MaskingConfig(), np.zeros(20, np.int64), np.arange(20))
    together = mask_rows(ids_BL, lengths_B, keys_B, pieces, MaskingConfig())
    some = [13, 2, 7]
    alone = mask_rows(ids_BL[some], lengths_B[some], keys_B[some], pieces, MaskingConfig())
    for of_some, of_all in zip(alone, together, strict=True):
        assert (of_some == of_all[some]).all()


def test_a_block_that_opens_inside_a_word_has_a_word_there(pieces: Pieces) -> None:
    ids_BL = np.array([[0, FIRST_CONTINUATION, FIRST_CONTINUATION + 1, 2]])
    config = MaskingConfig(share=0.5)
    masked = mask_rows(ids_BL, np.array([4]), row_keys(1, config, np.zeros(1, int), np.zeros(1, int)), pieces, config)
    assert positions_of(masked, 0) == [1, 2]


def test_static_masks_repeat_after_their_duplicates_and_dynamic_ones_do_not() -> None:
    epochs, rows = np.array([0, 1, 3, 4]), np.full(4, 9)
    static = row_keys(1, MaskingConfig(mode="static", duplicates=3), epochs, rows)
    dynamic = row_keys(1, MaskingConfig(mode="dynamic", duplicates=3), epochs, rows)
    assert static[0] == static[2] and static[1] == static[3] and static[0] != static[1]
    assert len(set(dynamic.tolist())) == 4
