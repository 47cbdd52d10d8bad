"""Cuts are held to the analyser's own words and to the traps known of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mecab import MeCab

from tokenizer.morphemes import split_words
from tokenizer.words import bert_words


def cut(eojeol: str, left: str = "", right: str = "") -> list[list[str]]:
    return split_words(bert_words(eojeol), left, right)


@pytest.mark.parametrize(
    ("eojeol", "morphemes"),
    [
        ("인공지능", [["인공지능"]]),
        ("저명한", [["저명", "한"]]),
        ("연구자이다.", [["연구자", "이", "다"], ["."]]),
        ("했다", [["했", "다"]]),  # a contraction stays surface text: not 하|았|다
        ("(서울에서)", [["("], ["서울", "에서"], [")"]]),
    ],
)
def test_surface_morphemes_of_an_eojeol(eojeol: str, morphemes: list[list[str]]) -> None:
    assert cut(eojeol) == morphemes


def test_neighbours_decide_what_the_eojeol_alone_leaves_open() -> None:
    assert cut("최고의") == [["최", "고의"]]
    assert cut("최고의", "올해", "영화였다.") == [["최고", "의"]]


@pytest.mark.parametrize("neighbour", ["\u3000", "\x00", "\u200b\ufeff", "\x85", "   "])
def test_neighbours_without_text_change_nothing(neighbour: str) -> None:
    assert cut("저명한", neighbour, neighbour) == cut("저명한")


def test_control_characters_inside_never_shift_the_cuts() -> None:
    assert cut("저\x00명\u200b한", "\u200b분야의\x00", "연구자") == [["저명", "한"]]


def test_paper_table_30_row_morpheme() -> None:
    words = ["조경현은", "인공지능", "분야의", "저명한", "연구자이다."]
    split = [cut(w, *(words[i - 1 : i] or [""]), *(words[i + 1 : i + 2] or [""])) for i, w in enumerate(words)]
    flat = [morpheme for eojeol in split for word in eojeol for morpheme in word]

    assert flat == ["조경현", "은", "인공지능", "분야", "의", "저명", "한", "연구자", "이", "다", "."]


@given(
    st.lists(
        st.sampled_from(["책을", "읽는", "漢字,", "사람은", "(오늘)", "1,200원", "ㅋㅋㅋ", "뷁", "a/b", "😀다"]),
        min_size=3,
        max_size=3,
    )
)
def test_cuts_of_the_middle_equal_the_analysers_own_words(three: list[str]) -> None:
    left, eojeol, right = three
    text = " ".join(three)
    begin = len(left) + 1
    expected = {
        m.span.start - begin for m in MeCab().parse(text) if begin < m.span.start < begin + len(eojeol)
    }  # fmt: skip
    found, position = set(), 0
    for word in cut(eojeol, left, right):
        for number, morpheme in enumerate(word):
            if number:
                found.add(position)
            position += len(morpheme)

    assert position == len(eojeol)
    assert found <= expected
    assert expected - found <= boundaries(bert_words(eojeol))


def boundaries(words: list[str]) -> set[int]:
    return {sum(map(len, words[:number])) for number in range(1, len(words))}


@given(st.text(min_size=1, max_size=30), st.text(max_size=10), st.text(max_size=10))
def test_joined_morphemes_give_the_words_back(eojeol: str, left: str, right: str) -> None:
    words = bert_words(eojeol)

    assert ["".join(morphemes) for morphemes in split_words(words, left, right)] == words


def test_very_long_eojeols_are_not_analysed() -> None:
    assert cut("저명한" * 100_000) == [["저명한" * 100_000]]
