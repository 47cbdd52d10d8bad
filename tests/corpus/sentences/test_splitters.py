"""Splitters by name: one contract for the rules and KSS."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.documents.errors import BadInput
from corpus.sentences.split import split_sentences
from corpus.sentences.splitters import MAX_LINE_CHARS, SPLITTERS, Splitter, aligned_starts, load_splitter

PACKAGES = {"kss": "kss"}


def squeeze(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.fixture(scope="module", params=sorted(SPLITTERS))
def splitter(request: pytest.FixtureRequest) -> Splitter:
    package = PACKAGES.get(request.param)
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    return load_splitter(request.param)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t\n ",
        "비가 왔다. 우산이 없었다.\n집에 갔다",
        '그는 "가자." 라고 했다.  그래서\u200b 갔다.',
        "\ufeff처음이다. 끝이다.",
        "가격은 1,000원이다.\x0b그는 \x00 갔다. 집이다.",
        "😀😀 반갑습니다😀. 오늘은  비가\t왔다. 👨‍👩‍👧 좋아요!",
        "ＡＢＣ 전각이다. ﬁ도 있다. Ⅷ장이다. ᄒᆞᆫ글도 있다.",
        "줄 하나다.\x85줄 둘이다.\u2028줄 셋이다.",
        "1" * 70_000 + " 끝이다. 또 끝이다.",  # more digits than 16 bits count
        "가나다 " * 12_000 + "끝이다.",
        "😀" * 30_000 + "반갑습니다.",
        "((((" * 500 + ")))" * 500,
    ],
)
def test_nothing_of_the_text_is_lost_or_changed(splitter: Splitter, text: str) -> None:
    sentences = splitter(text)
    assert squeeze("".join(sentences)) == squeeze(text)
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)
    rest = text
    for sentence in sentences:  # each is a slice of the text, blanks inside included, in order
        before, found, rest = rest.partition(sentence)
        assert found and not before.strip()


def test_plain_sentences_come_apart(splitter: Splitter) -> None:
    sentences = ["어제는 비가 많이 왔습니다.", "그래서 저는 집에 있었습니다.", "오늘은 날씨가 좋네요!"]
    assert splitter(" ".join(sentences)) == sentences


def test_a_line_end_is_a_boundary(splitter: Splitter) -> None:
    assert splitter("제목 한 줄\n본문이 이어지는\n세 번째 줄") == ["제목 한 줄", "본문이 이어지는", "세 번째 줄"]


def test_rules_are_our_own_splitter() -> None:
    assert load_splitter("rules") is split_sentences


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"'mecab'.*rules, kss"):
        load_splitter("mecab")


@pytest.mark.parametrize(("name", "package"), PACKAGES.items())
def test_a_missing_package_names_the_command_that_installs_it(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    load_splitter.cache_clear()
    with pytest.raises(BadInput, match=rf"pip install 'malmoi\[{name}\]'"):
        load_splitter(name)


@pytest.mark.parametrize(
    ("text", "sentences", "begins"),
    [
        ("비가 왔다. 집에 갔다.", ["비가 왔다.", "집에 갔다."], [0, 7]),
        ("비가  왔다.\t집에 갔다.", ["비가 왔다.", "집에갔다."], [0, 8]),  # white space may differ
        ("\ufeff비가 왔다. 집.", ["비가 왔다.", "집."], [1, 8]),  # a dropped character
        (
            "비가 왔다. 집에 갔다. 끝.",
            ["비가 왔다.", "집에 갓다.", "끝."],
            [0, 14],
        ),  # a changed one: joins what is before
        ("가" * 500 + ". 끝.", ["나" * 500 + ".", "끝."], [502]),  # a long changed one does not hide the next
        ("비가 왔다.", ["눈이 왔다.", ""], []),
        ("", ["비가 왔다."], []),
        ("네. 네. 네.", ["네.", "네.", "네."], [0, 3, 6]),  # equal sentences are distinguished by order
    ],
)
def test_sentences_are_found_again_by_their_letters(text: str, sentences: list[str], begins: list[int]) -> None:
    assert aligned_starts(text, sentences) == begins


@given(st.lists(st.text("가나다. \t\ufeff", max_size=12), max_size=8), st.data())
def test_alignment_undoes_any_change_of_white_space(sentences: list[str], data: st.DataObject) -> None:
    text = "".join(sentences)
    wanted, passed = [], 0
    for sentence in sentences:
        letters = squeeze(sentence)
        if letters:  # the slow way: count letters from the start
            wanted.append([i for i, char in enumerate(text) if not char.isspace()][passed])
        passed += len(letters)
    spaced = [re.sub(r"(?<=\S)(?=\S)", data.draw(st.sampled_from(["", " ", "  "])), s) for s in sentences]
    assert aligned_starts(text, spaced) == wanted


def test_alignment_stays_linear_where_nothing_matches() -> None:
    text = "가나다라마바사아자차" * 20_000
    assert aligned_starts(text, ["없는 문장이다."] * 20_000) == []


def test_a_long_line_is_cut_at_a_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    from corpus.sentences import splitters

    seen: list[str] = []
    words = "낱말 " * MAX_LINE_CHARS
    splitters.split_at_starts(words, lambda part: seen.append(part) or [])  # type: ignore[func-returns-value]
    assert "".join(seen) == words
    assert all(len(part) <= MAX_LINE_CHARS and part.endswith(" ") for part in seen)
