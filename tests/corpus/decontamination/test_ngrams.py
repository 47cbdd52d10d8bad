"""Letters and n-grams of many texts at once equal those of each text alone."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.decontamination.ngrams import encode_ngrams, hash_table, look_up
from corpus.folding import fold, fold_all, letter_table


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    return letter_table()


TEXTS = st.lists(st.text(st.characters() | st.sampled_from("가나다ΣσΑİⅣ①_ .ß\ud800\U00010400")), max_size=6)


@given(TEXTS)
@example(["ΟΔΟΣ", "", "ΟΔΟΣ가", "İİ", "\ud800", "\n", "가\x00나"])
def test_folding_by_table_equals_folding_each_text(table: np.ndarray, texts: list[str]) -> None:
    letters, sizes = fold_all(texts, table)
    folded = [fold(text) for text in texts]
    assert "".join(map(chr, letters)) == "".join(folded)
    assert sizes.tolist() == [len(text) for text in folded]


@given(TEXTS, st.integers(1, 3))
def test_ngrams_do_not_cross_from_one_text_to_the_next(table: np.ndarray, texts: list[str], ngram: int) -> None:
    letters, sizes = fold_all(texts, table)
    code, at, text_of = encode_ngrams(letters, sizes, ngram)
    folded = [fold(text) for text in texts]
    expected = [(n, text[i : i + ngram]) for n, text in enumerate(folded) for i in range(len(text) - ngram + 1)]
    joined = "".join(folded)
    assert [(n, joined[i : i + ngram]) for n, i in zip(text_of.tolist(), at.tolist(), strict=True)] == expected
    by_code: dict[int, set[str]] = {}
    for number, (_, token) in zip(code.tolist(), expected, strict=True):
        by_code.setdefault(number, set()).add(token)
    assert all(len(tokens) == 1 for tokens in by_code.values()) and 0 not in by_code
    assert len(by_code) == len({token for _, token in expected})


@pytest.mark.parametrize("count", [0, 1, 2, 1000, 50_000])
def test_the_hash_table_finds_what_it_holds_and_nothing_else(count: int) -> None:
    codes = np.asarray(sorted(Random(1).sample(range(1, 1 << 62), 2 * count)), np.uint64)
    inside, outside = codes[::2], codes[1::2]
    code_S = hash_table(inside)
    slots = look_up(inside, code_S)
    assert np.array_equal(code_S[slots], inside)
    assert len(set(slots.tolist())) == count == np.count_nonzero(code_S)
    assert (look_up(outside, code_S) == -1).all()
