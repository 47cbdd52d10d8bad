"""The Han and Kana rule, with and without glosses."""

from __future__ import annotations

import pytest

from corpus.quality.han_kana import has_too_many_han_or_kana


@pytest.mark.parametrize(
    ("sentence", "is_dropped"),
    [
        ("한" + "漢" * 10, False),
        ("한" + "漢" * 11, True),
        ("ひらがなカタカナ" + "漢" * 3, True),
    ],
)
def test_more_than_ten_han_or_kana_characters_are_too_many(sentence: str, is_dropped: bool) -> None:
    assert has_too_many_han_or_kana(sentence) == is_dropped


@pytest.mark.parametrize(
    "sentence",
    [
        "대한민국(大韓民國)의 수도는 서울특별시(서울特別市)이고 다음 도시는 부산광역시(釜山廣域市)이다.",
        "《가나다록 (假那多錄)》과 ‘나다라기’(那多羅記)와 다라마서(多羅馬書(上))가 함께 전해 내려온다.",
        "만화 머나먼 시공 속에서(遙かなる時空の中でシリーズ) 제이권은 나중에 나왔다고 한다.",
        "대불정수능엄경(언해)(大佛頂如來密因修證了義首楞嚴經(諺解))은 조선시대의 불경이다.",
        "화엄경진본 권53(大方廣佛華嚴經晋本 卷五十三)은 고려시대의 불경이다.",
        "탐진현[耽津縣]은 백제 때 동음현[冬音縣]과 도무군[道武郡]인데 양무군[陽武群]에 속하였다.",
    ],
)
def test_glosses_count_only_under_the_rule_of_the_paper(sentence: str) -> None:
    assert not has_too_many_han_or_kana(sentence)
    assert has_too_many_han_or_kana(sentence, count_glosses=True)


@pytest.mark.parametrize(("count", "is_dropped"), [(10, False), (11, True)])
def test_characters_outside_of_glosses_are_counted_without_them(count: int, is_dropped: bool) -> None:
    assert has_too_many_han_or_kana("천자문(千字文) " + "漢" * count + "을 배우고 다음에 읽는다") == is_dropped


@pytest.mark.parametrize(
    "sentence",
    [
        "《忠淸右道 暗行御史 李建昌 別單》은 책이다.",
        "책(" + "漢" * 40 + ")",  # more gloss than Korean
        "그는 (一二三四五六七八九十百) 이라 썼다 一二三四五六七八九十百.",
        "愛☆アリガトウアリガトウ(사랑)",
    ],
)
def test_sentences_mostly_in_han_or_kana_are_dropped(sentence: str) -> None:
    assert has_too_many_han_or_kana(sentence) and has_too_many_han_or_kana(sentence, count_glosses=True)
