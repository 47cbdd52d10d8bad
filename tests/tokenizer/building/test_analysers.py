"""What cuts words: the slices are the text, contractions stay whole, and the two finer rules cut what people cut."""

from __future__ import annotations

import re
import sys

import pytest

from corpus.documents.errors import BadInput
from corpus.documents.mecab import split_morphemes
from tokenizer.building.analysers import finer, load_analyser, plain, versions_of

TEXTS = [
    "연구자이다.",
    "갔다",
    "최고의 자신의",
    "😀안녕 반가워요😀나는",
    "A4용지 3.14",
    "뷁",
    "ㅋㅋㅋ 좋아요",
    "이루어진다",
]


@pytest.fixture(params=["mecab", "kiwi"])
def analyser(request: pytest.FixtureRequest) -> str:
    if request.param == "kiwi":
        pytest.importorskip("kiwipiepy", reason="needs malmoi[kiwi]")
    return str(request.param)


@pytest.mark.parametrize("text", TEXTS)
def test_slices_join_to_the_text_and_none_reaches_over_a_space(analyser: str, text: str) -> None:
    for cut in (plain(analyser), finer(analyser)):
        slices = cut(text)
        ends, words = 0, {0}
        for word in text.split():
            ends += len(word)
            words.add(ends)

        assert "".join(slices) == text.replace(" ", "")
        assert all(slices)
        assert words <= {sum(map(len, slices[:number])) for number in range(len(slices) + 1)}


def test_contractions_stay_whole(analyser: str) -> None:
    assert plain(analyser)("갔다") == ["갔", "다"]
    assert plain(analyser)("연구자이다") == ["연구자", "이", "다"]


@pytest.mark.parametrize(
    ("text", "slices"),
    [
        ("이루어지고", ["이루", "어", "지", "고"]),
        ("찾아가고", ["찾", "아", "가", "고"]),
        ("서울로부터", ["서울", "로", "부터"]),
        ("먹고", ["먹", "고"]),
        ("어제부터", ["어제", "부터"]),
    ],
)
def test_compound_verbs_and_particles_are_cut(analyser: str, text: str, slices: list[str]) -> None:
    assert finer(analyser)(text) == slices


def test_plain_slices_of_mecab_are_the_papers() -> None:
    assert all(plain("mecab")(text) == split_morphemes(text) for text in TEXTS)
    assert plain("mecab")("이루어지고") == ["이루어지", "고"]


def test_what_cut_the_text_is_named(analyser: str) -> None:
    assert all(name.startswith(("python-mecab-ko", "kiwipiepy")) for name in versions_of(analyser))


def test_a_missing_kiwi_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from tokenizer.building.analysers import _load_kiwi

    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    _load_kiwi.cache_clear()
    with pytest.raises(BadInput, match=r"tokenizer\.analyser=kiwi needs kiwipiepy .*pip install 'malmoi\[kiwi\]'"):
        load_analyser("kiwi")


def test_versions_are_those_of_the_analyser() -> None:
    assert {"python-mecab-ko", "python-mecab-ko-dic"} <= versions_of("mecab").keys()
    assert all(re.search(r"\d", version) for version in versions_of("mecab").values())
