"""Letters and n-grams of many texts at once equal those of each text alone, whatever is read at a time."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.decontamination import letter_stream
from corpus.decontamination.letter_stream import encode_ngrams, hash_table, look_up, read_batches
from corpus.sentences.folding import fold, fold_all, letter_table


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
    text_L = np.repeat(np.arange(len(sizes)), sizes)
    code, at = encode_ngrams(letters, text_L, ngram)
    folded = [fold(text) for text in texts]
    expected = [(n, text[i : i + ngram]) for n, text in enumerate(folded) for i in range(len(text) - ngram + 1)]
    joined = "".join(folded)
    assert [(n, joined[i : i + ngram]) for n, i in zip(text_L[at].tolist(), at.tolist(), strict=True)] == expected
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


DOCUMENTS = st.lists(st.lists(st.text("가나다 .A", max_size=30), max_size=6), max_size=5)


@given(DOCUMENTS, st.integers(1, 40))
def test_batches_joined_are_the_letters_of_all_sentences(documents: list[list[str]], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letter_stream, "BATCH_CHARS", size)
        batches = list(read_batches(documents, letter_table()))
    sentences = [sentence for document in documents for sentence in document]
    assert "".join(chr(letter) for batch in batches for letter in batch.letters_L) == "".join(map(fold, sentences))
    owners = [batch.first + n for batch in batches for n in batch.sentence_L.tolist()]
    assert owners == [n for n, sentence in enumerate(sentences) for _ in fold(sentence)]
    for batch in batches:
        assert np.array_equal(batch.sizes_S, np.bincount(batch.sentence_L, minlength=len(batch.sizes_S)))
        assert (np.diff(batch.document_S) >= 0).all()
    assert len({(b.first, n) for b in batches for n in b.document_S[b.sentence_L].tolist()}) == sum(
        bool(fold("".join(document))) for document in documents
    )


@given(st.lists(st.text("가나다라마바 ", min_size=1, max_size=30), min_size=1, max_size=8), st.integers(1, 12))
def test_every_window_of_a_document_lies_in_one_stretch(sentences: list[str], reach: int) -> None:
    whole = "".join(map(fold, sentences))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letter_stream, "BATCH_CHARS", 10)
        parts = [part for batch in read_batches([sentences], letter_table()) for part in batch.stretches(reach)]
    assert len(parts) >= len(whole) // 20
    for start in range(len(whole) - reach + 1):
        assert any(part.start <= start and start + reach <= part.stop for part in parts)
