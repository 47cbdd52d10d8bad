"""Documents as streams of letters, whatever the size of a stretch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.decontamination import stream
from corpus.decontamination.stream import cut_stretches
from corpus.folding import fold, letter_table

DOCUMENTS = st.lists(st.lists(st.text("가나다 .A", max_size=30), max_size=6), max_size=5)


@given(DOCUMENTS, st.integers(1, 40), st.integers(1, 12))
def test_stretches_joined_are_the_letters_of_all_sentences(documents: list[list[str]], batch: int, reach: int) -> None:
    sentences = [sentence for document in documents for sentence in document]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BATCH_CHARS", batch)
        letters, owners = "", []
        for part in cut_stretches(documents, letter_table(), reach):
            new = part.letters[part.sizes_S[: part.carried].sum() :]
            assert part.offset == len(letters) - (len(part.letters) - len(new))
            assert part.sizes_D.sum() == part.sizes_S.sum() == len(part.letters)
            letters += "".join(map(chr, new))
            owners += np.repeat(part.sentence_S, part.sizes_S)[len(part.letters) - len(new) :].tolist()
    assert letters == "".join(map(fold, sentences))
    assert owners == [n for n, sentence in enumerate(sentences) for _ in fold(sentence)]


@given(st.lists(st.text("가나다라마바 ", min_size=1, max_size=30), min_size=1, max_size=8), st.integers(1, 12))
def test_every_window_of_a_document_lies_in_one_stretch(sentences: list[str], reach: int) -> None:
    whole = "".join(map(fold, sentences))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BATCH_CHARS", 10)
        parts = [(part.offset, len(part.letters)) for part in cut_stretches([sentences], letter_table(), reach)]
    for start in range(len(whole) - reach + 1):
        assert any(offset <= start and start + reach <= offset + size for offset, size in parts)
