"""Morpheme begins against mecab's public interface on plain text, and on text that it or the tokenizer changes."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mecab import MeCab

from corpus.documents.mecab import MAX_ANALYZED_CHARS
from pretrain.pack.encode import EojeolEncoder, find_begins, mark_morphemes
from tests.pretrain.conftest import SPECIAL_PIECES
from tests.pretrain.pack.kinds import byte_level, composing, decomposed, load, plain, portable, save, save_angled


@pytest.fixture(scope="module")
def mecab() -> MeCab:
    return MeCab()


def begins_slowly(mecab: MeCab, eojeol: str) -> list[int]:
    return [morpheme.span.start for morpheme in mecab.parse(eojeol)]


def marks_of(encoder: EojeolEncoder, sentence: str) -> list[bool]:
    marks = encoder.encode([sentence]).morphemes
    assert marks is not None
    return marks.tolist()


def test_begins_equal_the_public_interface_on_real_text(shared: Callable[[str], Path], mecab: MeCab) -> None:
    rows = json.loads(shared("data/klue/official/klue-sts-v1.1/klue-sts-v1.1_dev.json").read_text("utf-8"))
    eojeols = dict.fromkeys(eojeol for row in rows for eojeol in row["sentence1"].split())
    assert len(eojeols) > 2_000
    for eojeol in eojeols:
        assert find_begins(eojeol) == begins_slowly(mecab, eojeol)


def test_contractions_and_compounds_stay_slices_of_the_text() -> None:
    assert find_begins("노래했다.") == [0, 2, 3, 4]  # 노래|했|다|.  (song, did, ending)
    assert find_begins("도서관에서") == [0, 3]  # 도서관|에서 (library, at), which the dictionary knows as 도서+관


def test_decomposed_text_begins_where_composed_text_does() -> None:
    for eojeol in ("노래했다.", "도서관에서", "가격은1,000원이다", "cafe\u0301에서"):
        composed = unicodedata.normalize("NFC", eojeol)
        apart = unicodedata.normalize("NFD", eojeol)
        places = [len(unicodedata.normalize("NFD", composed[:begin])) for begin in find_begins(composed)]
        assert len(apart) > len(composed) and find_begins(apart) == places


def test_characters_that_mecab_must_not_see_begin_nothing_and_end_nothing() -> None:
    assert find_begins("노래\x00했다.") == [0, 3, 4, 5]
    assert find_begins("\x01노래\u200b했다.") == [1, 4, 5, 6]
    assert find_begins("\x00") == []


@settings(max_examples=300)
@given(
    st.text(st.sampled_from("가나했었에서는각ᆨᄀ\u1161e\u0301\u0323\u3099か\x00\u200b뷁漢.1😀ﾞ"), min_size=1, max_size=12)
)
def test_begins_of_any_text_ascend_and_lie_inside(eojeol: str) -> None:
    begins = find_begins(eojeol)
    assert begins == sorted(set(begins)) and all(0 <= begin < len(eojeol) for begin in begins)
    assert all(eojeol[begin].isprintable() for begin in begins)


def test_an_endless_eojeol_is_not_analysed() -> None:
    assert len(find_begins("도서관에서" * (MAX_ANALYZED_CHARS // 5))) > 2
    assert find_begins("도서관에서" * (MAX_ANALYZED_CHARS // 5) + "는") == [0]


@pytest.mark.parametrize("kind", [plain, portable])
def test_marks_equal_offsets_of_whole_sentences(kind: Callable, tmp_path: Path, mecab: MeCab) -> None:
    folder = save(kind(), tmp_path)
    encoder, backend = EojeolEncoder(folder, morphemes=True), load(folder)
    sentences = [
        "윤슬은 도서관에서 노래했다.",
        "ㅋㅋ 시장에서도 (바다를) [MASK]",
        "Z뷁에서 漢字도 …노래 뷁뷁은♥",
        "",
        "노래했다. " * 3,
    ]
    for sentence in sentences:
        begins, place = set(), 0
        for eojeol in sentence.split():
            place = sentence.index(eojeol, place)
            begins |= {place, *(place + begin for begin in begins_slowly(mecab, eojeol))}
            place += len(eojeol)
        spans = backend.encode(sentence, add_special_tokens=False).offsets
        reached = [0, *(end for _, end in spans[:-1])][: len(spans)]
        expected = [begin in begins and begin >= before for (begin, _), before in zip(spans, reached, strict=True)]
        assert marks_of(encoder, sentence) == expected
    assert encoder.encode(sentences).marked.tolist() == EojeolEncoder(folder).encode(sentences).marked.tolist()


def test_text_that_the_tokenizer_composes_is_marked_at_its_syllables(tmp_path: Path) -> None:
    encoder = EojeolEncoder(save(composing(), tmp_path), morphemes=True)
    composed = "도서관에서 시장\x00에서"
    assert marks_of(encoder, unicodedata.normalize("NFD", composed)) == marks_of(encoder, composed)


def test_an_unknown_word_begins_once_and_so_do_the_bytes_of_a_syllable(tmp_path: Path) -> None:
    words, syllables = tmp_path / "words", tmp_path / "bytes"
    assert marks_of(EojeolEncoder(save(plain(), words), morphemes=True), "뷁에서") == [True]
    found = EojeolEncoder(save_angled(byte_level(False), syllables), morphemes=True).encode(["뷁뷁 뷁에서"])
    offsets = [begin for begin, _ in load(syllables).encode(" 뷁뷁 뷁에서", add_special_tokens=False).offsets]
    assert len(offsets) == len(found.marked) > 7
    firsts = np.flatnonzero(found.marked >> 15).tolist()
    # mecab takes each 뷁 for a noun and 에서 for one particle
    assert np.flatnonzero(found.morphemes).tolist() == sorted([*firsts, offsets.index(2), offsets.index(5)])


def test_a_piece_that_begins_inside_a_syllable_begins_no_morpheme(tmp_path: Path) -> None:
    folder = save(decomposed([*SPECIAL_PIECES, "밥주", "##다"]), tmp_path)  # 밥준다 is 밥|준다 (gives rice)
    encoder = EojeolEncoder(folder, morphemes=True)
    assert load(folder).encode("밥준다").tokens == [unicodedata.normalize("NFD", "밥주"), "##ᆫ", "##다"]
    assert find_begins("밥준다")[:2] == [0, 1] and marks_of(encoder, "밥준다")[:2] == [True, False]


def test_pieces_at_the_same_character_count_once() -> None:
    # 漢 read as two pieces; a text that vanished; the first piece of an eojeol whose first character vanished; 밥준
    # as 밥주 and ㄴ
    spans = np.array([(0, 1), (0, 1), (1, 2), (1, 3), (0, 2), (1, 2)])
    marks = mark_morphemes(["漢은", "\u200b", "\u200b시장", "밥준"], np.array([3, 0, 1, 2]), spans)
    assert marks.tolist() == [True, False, True, True, True, False]
