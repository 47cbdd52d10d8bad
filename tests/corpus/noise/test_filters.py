"""Limits of sentences: length, and Han or Kana characters with and without their glosses."""

from __future__ import annotations

import pytest

from corpus.noise.remove import SentenceLimits, failed_rule

LIMITS = SentenceLimits(min_chars=5, max_han_kana=10)


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("짧다.", "is_too_short"),
        ("네글자.", "is_too_short"),
        ("다섯 글자", None),
        ("한" + "漢" * 10, None),
        ("한" + "漢" * 11, "has_too_many_han_or_kana"),
        ("ひらがなカタカナ" + "漢" * 3, "has_too_many_han_or_kana"),
    ],
)
def test_the_first_limit_that_fails_names_the_drop(sentence: str, rule: str | None) -> None:
    assert failed_rule(sentence, LIMITS) == rule


PAPER = SentenceLimits(min_chars=5, max_han_kana=10, count_glosses=True)


@pytest.mark.parametrize(
    "sentence",
    [
        "대한민국(大韓民國)의 수도는 서울특별시(서울特別市)이고 다음 도시는 부산광역시(釜山廣域市)이다.",
        "《가나다록 (假那多錄)》과 ‘나다라기’(那多羅記)와 다라마서(多羅馬書(上))가 함께 전해 내려온다.",
        "만화 머나먼 시공 속에서(遙かなる時空の中でシリーズ) 제이권은 나중에 나왔다고 한다.",
    ],
)
def test_korean_with_glosses_stays_unless_the_paper_is_followed(sentence: str) -> None:
    assert failed_rule(sentence, LIMITS) is None
    assert failed_rule(sentence, PAPER) == "has_too_many_han_or_kana"


@pytest.mark.parametrize(
    "sentence",
    [
        "《忠淸右道 暗行御史 李建昌 別單》은 책이다.",
        "책(" + "漢" * 40 + ")",  # more gloss than Korean
        "그는 (一二三四五六七八九十百) 이라 썼다 一二三四五六七八九十百.",
        "愛☆アリガトウアリガトウ(사랑)",
    ],
)
def test_text_in_han_or_kana_itself_goes(sentence: str) -> None:
    assert failed_rule(sentence, LIMITS) == failed_rule(sentence, PAPER) == "has_too_many_han_or_kana"
