"""Noise rules: what goes, what stays, how it is counted."""

from __future__ import annotations

import time
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.noise import NOISE_RULES, SentenceLimits, failed_rule, remove_noise

LIMITS = SentenceLimits(min_chars=5, max_han_kana=10)


def clean(text: str) -> str:
    return remove_noise(text, Counter())


@pytest.mark.parametrize(
    ("rule", "noisy", "cleaned"),
    [
        ("html_entity", "사과 &amp; 배", "사과 & 배"),
        ("dateline", "【가온=말모이뉴스】 김하늘 기자 = 눈이 왔다.", "눈이 왔다."),
        ("byline", "말모이방송 김하늘 기자 = 눈이 왔다.", "눈이 왔다."),
        ("news_link", "눈이 왔다.\n■ 제보하기 ▷ 기사제보 및 보도자료", "눈이 왔다."),
        ("news_link", "눈이 왔다.\n▷ 많이 본 기사: 첫눈, 오늘 밤", "눈이 왔다."),
        ("html_tag", "<b>굵은</b> 글씨", "굵은 글씨"),
        ("html_tag", '&lt;a href="x"&gt;누르면&lt;/a&gt; 간다', "누르면 간다"),
        ("html_break", "첫 줄<br/>둘째 줄", "첫 줄\n둘째 줄"),
        ("bad_character", "한\u200b국\ufeff어", "한국어"),
        ("bad_character", "깨진 \ufffd글자\x07", "깨진 글자"),
        ("line_separator", "앞\r\n뒤", "앞\n뒤"),
        ("hashtag", "오늘은 #맛집 #서울_여행 다녀왔다", "오늘은 다녀왔다"),
        ("empty_bracket", "백남준( , )은 태어났다[]", "백남준은 태어났다"),
        ("blanks", "여러\t 칸\u3000띄운　글", "여러 칸 띄운 글"),
        ("line_edges", "앞 \n\n \n 뒤", "앞\n뒤"),
        ("dateline", "(서울=가나뉴스) 홍길동 기자 = 비가 왔다.", "비가 왔다."),
        ("dateline", "[가나일보 홍길동 기자] 비가 왔다.", "비가 왔다."),
        ("dateline", "[서울=가나뉴시스]홍길동 기자 = 비가 왔다.", "비가 왔다."),
        ("byline", "홍길동 기자 = 비가 왔다.", "비가 왔다."),
        ("reporter", "비가 왔다. 홍길동 기자 gildong@example.com", "비가 왔다."),
        ("reporter", "비가 왔다.\n홍길동 특파원", "비가 왔다."),
        ("news_desk", "비가 왔다. 온라인뉴스팀", "비가 왔다."),
        ("broadcast_closing", "비가 왔습니다. 지금까지 국회에서 KBS 뉴스 홍길동이었습니다.", "비가 왔습니다."),
        ("copyright", "비가 왔다. <저작권자 ⓒ 가나신문, 무단전재 및 재배포 금지>", "비가 왔다."),
        ("copyright", "비가 왔다. 무단 전재-재배포 금지", "비가 왔다."),
        ("picture_credit", "[사진=가나일보] 비가 왔다.", "비가 왔다."),
        ("picture_credit", "비가 왔다. (사진 제공=나라군청)", "비가 왔다."),
        ("picture_credit", "비가 왔다.\n출처: 가나백과", "비가 왔다."),
        ("caption", "▲ 비 오는 거리 ⓒ가나뉴스\n비가 왔다.", "비가 왔다."),
        ("end_mark", "비가 왔다.(끝)", "비가 왔다."),
        ("news_link", "비가 왔다. ▶ 관련기사 더 보기", "비가 왔다."),
        ("news_footer", "비가 왔다.\n사업자등록번호: 000-00-00000 대표 아무개", "비가 왔다."),
    ],
)
def test_a_rule_takes_the_noise_and_leaves_the_sentence(rule: str, noisy: str, cleaned: str) -> None:
    changed: Counter[str] = Counter()
    assert remove_noise(noisy, changed) == cleaned
    assert changed[rule] >= 1


@pytest.mark.parametrize(
    "sentence",
    [
        "어제 기자회견이 열렸다.",
        "■ 제보자는 말이 없었다.",
        "■ 구독 서비스 시장이 커졌다.",
        "그는 사진을 찍었다.",
        "출처를 밝혔다.",
        "홍길동 기자가 물었다.",
        "나는 기자다.",
        "자료를 찾으러 갔다.",
        "무단 횡단은 금지된다.",
        "a < b 이고 c > d 이다.",
        "영화 <패터슨>을 보았다.",
        "C#과 F#을 배웠다.",
        "우리 팀이 #1이다.",
        "R&D 예산이 늘었다.",
        "ㅋㅋㅋ 그랬구나 ㅠㅠ",
        "그는 구독 신청을 했다.",
    ],
)
def test_sentences_that_merely_look_like_noise_survive(sentence: str) -> None:
    changed: Counter[str] = Counter()
    assert remove_noise(sentence, changed) == sentence
    assert not changed


def test_rule_names_are_unique_or_counted_together() -> None:
    names = [rule.name for rule in NOISE_RULES]
    assert len(names) == len(set(names))


def test_jamo_that_meet_after_removal_are_composed() -> None:
    assert clean("\u1112\u200b\u1161\u11ab") == "한"


@given(st.text(alphabet=st.sampled_from("가나 다.#<>&;()[]a\n\t\u200b=기자사진▶1"), max_size=60))
def test_clean_text_is_nfc_without_blank_runs_or_bad_characters(text: str) -> None:
    cleaned = clean(text)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not any(bad in cleaned for bad in ("  ", "\t", "\n\n", " \n", "\n ", "\u200b"))


@pytest.mark.parametrize("piece", ["(", "<a", "&#1", "기자 ", "▶", " ", "\n ", "(사진=", "a@", "#", "저작권자 ⓒ", "““"])
def test_time_grows_with_length_only(piece: str) -> None:
    seconds = []
    for size in (50_000, 400_000):
        text = piece * (size // len(piece))
        start = time.process_time()
        clean(text)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 24 * seconds[0] + 0.1  # eight times the text; quadratic would be 64


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("짧다.", "is_too_short"),
        ("다섯 글자", None),
        ("한" + "漢" * 10, None),
        ("한" + "漢" * 11, "has_too_many_han_or_kana"),
        ("ひらがなカタカナ" + "漢" * 3, "has_too_many_han_or_kana"),
    ],
)
def test_the_first_limit_that_fails_names_the_drop(sentence: str, rule: str | None) -> None:
    assert failed_rule(sentence, LIMITS) == rule
