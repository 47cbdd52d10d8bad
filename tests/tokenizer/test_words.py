"""Cutting text into BERT's words is held to the library's own rules."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from tokenizer.words import bert_words, stands_alone


@pytest.mark.parametrize(
    ("eojeol", "words"),
    [
        ("연구자이다.", ["연구자이다", "."]),
        ("漢字는", ["漢", "字", "는"]),
        ("ㅋㅋ#해시", ["ㅋㅋ", "#", "해시"]),
        ("가\x00나\u200b다", ["가나다"]),
        ("Café", ["Café"]),
        ("\ufeff", []),
    ],
)
def test_eojeol_is_cut_as_bert_cuts_it(eojeol: str, words: list[str]) -> None:
    assert bert_words(eojeol) == words


@given(st.text("가힣ㄱㅣaZ9.,#漢é\u200b\x00\u1100_\U0001f600", max_size=12))
def test_shortcut_for_plain_eojeols_changes_nothing(text: str) -> None:
    normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False)
    expected = [word for word, _ in BertPreTokenizer().pre_tokenize_str(normalizer.normalize_str(text))]

    assert bert_words(text) == expected


def test_no_hangul_syllable_is_changed_or_stands_alone() -> None:
    syllables = [chr(code) for code in range(ord("가"), ord("힣") + 1)]

    assert all(bert_words(syllable) == [syllable] and not stands_alone(syllable) for syllable in syllables)


def test_punctuation_and_han_stand_alone() -> None:
    assert [c for c in "가a1ㅋ.漢·" if stands_alone(c)] == [".", "漢", "·"]


def test_decomposed_hangul_stays_decomposed() -> None:
    decomposed = unicodedata.normalize("NFD", "한국")

    assert bert_words(decomposed) == [decomposed]
