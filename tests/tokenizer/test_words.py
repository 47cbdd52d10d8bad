"""Cutting into BERT's words is held to the library's own rules, into morphemes to the analyser's own and its traps."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mecab import MeCab
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from corpus.documents.mecab import MAX_ANALYZED_CHARS
from tokenizer.words import bert_words, is_own_word, is_separated, split_separated, split_words


@pytest.mark.parametrize(
    ("eojeol", "words"),
    [
        ("연구자이다.", ["연구자이다", "."]),
        ("漢字는", ["漢", "字", "는"]),
        ("ㅋㅋ#해시", ["ㅋㅋ", "#", "해시"]),
        ("가\x00나\u200b다", ["가나다"]),
        ("Café", ["Café"]),
        ("\ufeff", []),
        ("가\x7f나", ["가나"]),
    ],
)
def test_eojeol_is_cut_as_bert_cuts_it(eojeol: str, words: list[str]) -> None:
    assert bert_words(eojeol) == words


@given(st.text("가힣ㄱㅣaZ9.,#漢é\u200b\x00\u1100_\U0001f600", max_size=12))
def test_shortcut_for_plain_eojeols_changes_nothing(text: str) -> None:
    normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False)
    expected = [word for word, _ in BertPreTokenizer().pre_tokenize_str(normalizer.normalize_str(text))]

    assert bert_words(text) == expected


def test_no_hangul_syllable_is_changed_or_is_own_word() -> None:
    syllables = [chr(code) for code in range(ord("가"), ord("힣") + 1)]

    assert all(bert_words(syllable) == [syllable] and not is_own_word(syllable) for syllable in syllables)


def test_punctuation_and_han_are_words() -> None:
    assert [c for c in "가a1ㅋ.漢·" if is_own_word(c)] == [".", "漢", "·"]


def test_decomposed_hangul_stays_decomposed() -> None:
    decomposed = unicodedata.normalize("NFD", "한국")

    assert bert_words(decomposed) == [decomposed]


def cut(eojeol: str, left: str = "", right: str = "") -> list[list[str]]:
    return split_words(bert_words(eojeol), left, right)


def test_the_dot_of_lists_is_no_part_of_a_noun() -> None:
    assert cut("시장ㆍ군수ㆍ구청장은") == [["시장", "ㆍ", "군수", "ㆍ", "구청장", "은"]]
    assert split_words(split_separated(bert_words("시장ㆍ군수는")), "", "") == [["시장"], ["ㆍ"], ["군수", "는"]]


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


@pytest.mark.parametrize("length", [0, 1, 2, MAX_ANALYZED_CHARS, MAX_ANALYZED_CHARS + 1])
def test_only_eojeols_of_two_characters_up_to_the_limit_are_analysed(length: int) -> None:
    asked = []

    def analyse(text: str) -> list[str]:
        asked.append(text)
        return list(text)

    word = "가" * length
    found = split_words([word], "", "", analyse)
    is_analysed = 1 < length <= MAX_ANALYZED_CHARS
    assert asked == [word] * is_analysed
    assert found == [list(word) if is_analysed else [word]]


@pytest.mark.parametrize(
    ("words", "morphemes", "found"),
    [
        (["연구자", "."], ["연구", "자", "."], [["연구", "자"], ["."]]),
        (["연구자", "."], ["연", "구자."], [["연", "구자"], ["."]]),  # one that reaches over the end of a word
        (["가", "나다"], ["가나", "다"], [["가"], ["나", "다"]]),
        (["가", "나다"], ["가나다"], [["가"], ["나다"]]),
    ],
)
def test_morphemes_are_cut_at_the_ends_of_words(words: list[str], morphemes: list[str], found: list) -> None:
    assert split_words(words, "", "", lambda text: morphemes) == found
    assert split_words(words, "앞", "뒤", lambda text: ["앞", *morphemes, "뒤"]) == found


def test_what_is_separated_is_neither_a_word_of_its_own_nor_nothing() -> None:
    characters = ["가", "a", "é", "😀", "①", "ß", "漢", ".", "\u200b", "ᅀ", "ㅋ", "α"]
    assert [c for c in characters if is_separated(c)] == ["😀", "①", "ß", "ᅀ", "α"]
    assert [c for c in characters if is_own_word(c)] == ["漢", "."]
