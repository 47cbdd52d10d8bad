"""Noise rules: what goes, what stays, how it is counted, and that time grows with length only."""

from __future__ import annotations

import io
import json
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpus.documents.errors import BadInput
from corpus.noise.remove import LINE_HEAD, NOISE_RULES, ODD_CHARACTER, remove_noise, rules_except

# what outlets put around the one sentence of an article; all invented
ARTICLES = """
(서울=가나뉴스) 홍길동 기자 = 비가 왔다.
(서울=연합뉴스) 홍길동 김하늘 기자 = 비가 왔다.|hong@example.com|(끝)
(서울·부산=뉴스1) 홍길동, 김하늘 기자 = 비가 왔다.
(파리 AFP=뉴스1) 홍길동 기자 = 비가 왔다.
(도쿄 AP=연합뉴스) 비가 왔다.
[서울=뉴시스]홍길동 기자 = 비가 왔다. ☞공감언론 뉴시스 hong@example.com
【서울=뉴시스】 홍길동 기자 = 비가 왔다.
[이데일리 홍길동 기자] 비가 왔다.
[OSEN=홍길동 기자] 비가 왔다. /hong@example.com|[사진] OSEN DB
[스포츠서울 ǀ 홍길동기자] 비가 왔다. hong@example.com|사진 ǀ 가나방송
[마이데일리 = 홍길동 기자] 비가 왔다.|(홍길동 기자 hong@example.com)
[헤럴드경제=홍길동 기자] 비가 왔다. hong@example.com
헤럴드경제=홍길동 기자 비가 왔다.
말모이방송 김하늘 기자 = 비가 왔다.
비가 왔다. 홍길동 기자 hong@example.com
비가 왔다. hong@example.com 홍길동 기자
비가 왔다. 베이징=홍길동 특파원 hong@example.com
비가 왔다.|/홍길동 기자
비가 왔다.|글·사진=홍길동 기자
비가 왔다.|홍길동 의학전문기자·약사
비가 왔다.|<홍길동 기자 hong@example.com>
비가 왔다.|홍길동 기자의 다른 기사 보기
비가 왔다.|가나일보 홍길동 기자 hong@example.com|[ⓒ 가나일보, 무단전재 및 재배포 금지]
비가 왔다. 디지털뉴스팀 hong@example.com
비가 왔다.|[디지털뉴스팀]
[앵커]|비가 왔다.|[기자]
비가 왔다.|◀ 앵커 ▶
비가 왔다.|지금까지 국회에서 MBC뉴스 홍길동입니다.
비가 왔다. KBS 뉴스 홍길동입니다.
비가 왔다. YTN 홍길동[hong@example.com]입니다.
비가 왔다.|ⓒ 가나일보(www.example.com), 무단 전재 및 수집, 재배포금지
비가 왔다. <ⓒ가나경제신문 무단전재 배포금지>
비가 왔다.|[ⓒ 가나일보 & example.com, 무단 전재 및 재배포 금지]
비가 왔다. <저작권자 ⓒ '비 소식이 빠른' 가나신문, 무단전재 및 재배포 금지>
비가 왔다.|Copyright ⓒ 가나일보. All rights reserved. 무단 전재, 재배포 및 AI학습 이용 금지
비가 왔다.|※ 저작권자 ⓒ 가나뉴스, 무단전재-재배포 금지
[사진=가나일보]|비가 왔다. /사진=게티이미지
비가 왔다. (영상취재 : 홍길동, 영상편집 : 김하늘)
비가 왔다.|사진제공ǀ가나시청
비가 왔다.|출처 : 가나신문(http://www.example.com)
▲ 시민들이 비를 맞고 있다. (사진=연합뉴스)|비가 왔다.
△사진=가나군 제공|비가 왔다.
비가 왔다.|▶ 가나일보 구독하기 ▶ 카카오톡으로 소식 받기|▶ 네이버에서 가나일보 구독하기
비가 왔다.|■ 제보하기|▷ 카카오톡 : '가나제보' 검색|▷ 전화 : 02-000-0000|▷ 이메일 : a@example.com
비가 왔다.|※ '당신의 제보가 뉴스가 됩니다'|[카카오톡] 가나방송 검색해 채널 추가|[전화] 02-000-0000
비가 왔다.|▷ 많이 본 기사: 첫눈, 오늘 밤
비가 왔다.|발행인: 홍길동 편집인: 김하늘 등록번호: 서울 아00000
""".strip().split("\n")

MORE = [  # what the pair of a rule does not show
    ("html_entity", "사과 &amp;amp;amp; 배", "사과 & 배"),
    ("html_tag", '"<b>굵은</b>" 글씨', '"굵은" 글씨'),
    ("html_tag", '&lt;a href="x"&gt;누르면&lt;/a&gt; 간다', "누르면 간다"),
    ("html_tag", "앞<!-- 숨은 말 -->뒤", "앞뒤"),
    ("bad_character", "깨진 \ufffd글자\x07", "깨진 글자"),
    ("bad_character", "좋아\u2764\ufe0f 가\u200d나 \u200d\U0001f467", "좋아\u2764 가나 \U0001f467"),
    ("bad_character", "\u202e뒤집은\u202c \u2066말\u2069\u061c", "뒤집은 말"),
    ("bad_character", "\x1b[31m붉은\x1b[0m 글씨", "붉은 글씨"),
    ("html_code", '앞<script type="a">if (a<b) { w("<script>"); }</script>뒤', "앞뒤"),
    ("html_code", "앞 &lt;STYLE&gt;p { color: red }&lt;/STYLE&gt;", "앞"),
    ("time_stamp", "기사입력 : 2023/01/02 [10:11]\n비가 왔다.", "비가 왔다."),
    ("time_stamp", "비가 왔다.\n[입력 2023-01-02]", "비가 왔다."),
    ("time_stamp", "등록 2023.01.02. 오후 3:05 | 수정 2023.01.03. 오전 9:00 비가 왔다.", "비가 왔다."),
    ("portal_buttons", "비가 왔다.\n공유하기 | 인쇄 | 글자크기 조절\n댓글 12", "비가 왔다."),
    ("speaker_label", "앵커: 비가 왔다.", "비가 왔다."),
    ("news_link", "비가 왔다.\n☞ [단독] 첫눈이 온다", "비가 왔다."),
    ("dateline", "비가 왔다. [홍길동 기자] 눈도 왔다.", "비가 왔다. 눈도 왔다."),
    ("bracket_gap", "발효(醱酵, , )는 변화이다.", "발효(醱酵)는 변화이다."),
    ("wiki_placeholder", "만약 formula_38이면 codice_2를 선언한다.", "만약 [수식]이면 [코드]를 선언한다."),
    ("wiki_placeholder", "비가 왔다.\nformula_1, formula_2 (codice_3)\n", "비가 왔다."),
    ("html_tag", "<revision>\n비가 왔다.\n</revision>", "비가 왔다."),
    ("wiki_table", '비가 왔다.\n! colspan="2" | 합계\n| align=right | 12 || 13', "비가 왔다."),
    ("hashtag", "오늘은 #맛집 #서울_여행 #SeoulTrip 다녀왔다", "오늘은 다녀왔다"),
    ("empty_bracket", "황해(黃海)()와 《》의 「 」", "황해(黃海)와 의"),
    ("odd_blank", "여러\t칸\u3000띄운\u00a0글", "여러 칸 띄운 글"),
    ("blanks", "여러  \t 칸", "여러 칸"),
    ("line_end", "앞 \n뒤", "앞\n뒤"),
    ("line_edges", "앞 \n\n \n 뒤", "앞\n뒤"),
    ("dateline", "현장에서 [가나경제 김** 기자] 비가 왔다.", "현장에서 비가 왔다."),
    ("broadcast_closing", "비가 왔다. KBS 뉴스 홍길동이었습니다. 눈도 왔다.", "비가 왔다. 눈도 왔다."),
    ("picture_credit", "비가 왔다. (사진 제공=나라군청)", "비가 왔다."),
    ("caption", "▲ 비 오는 거리 ⓒ가나뉴스\n비가 왔다.", "비가 왔다."),
]


def clean(text: str) -> str:
    return remove_noise(text, Counter())


PAIRS = [(rule.name, rule.before, rule.after) for rule in NOISE_RULES]


@pytest.mark.parametrize(("rule", "before", "after"), PAIRS + MORE)
def test_a_rule_takes_the_noise_and_leaves_the_sentence(rule: str, before: str, after: str) -> None:
    changed: Counter[str] = Counter()
    assert remove_noise(before, changed) == after
    assert changed[rule] >= 1


def test_names_of_rules_are_unique() -> None:
    assert len({name for name, _, _ in PAIRS}) == len(NOISE_RULES)


@pytest.mark.parametrize("article", ARTICLES)
def test_only_the_sentence_of_a_news_article_stays(article: str) -> None:
    assert clean(article.replace("|", "\n").replace("ǀ", "|")) == "비가 왔다."


@pytest.mark.parametrize(
    "sentence",
    [
        "어제 기자회견이 열렸다.",
        "입력 장치는 키보드이다.",
        "입력 2개와 출력 1개가 있다.",
        "수정 2023.1.2. 판에서 오류를 고쳤다.",
        "댓글을 공유했다.",
        "공유",
        "앵커는 배를 세운다: 닻이다.",
        "※ 본 약관은 오늘부터 적용됩니다.",
        "☞ 여기를 보라.",
        "[홍길동 기자회견] 소식이 나왔다.",
        "사과, 배 (감, 귤)를 샀다.",
        "formula_name 과 my_formula_1(x) 은 이름이다.",
        "‘<script>’ 와 `<style>` 은 태그다.",
        "그는 사진을 찍었다.",
        "출처를 밝혔다.",
        "○○○ 기자는 말했다.",
        "홍길동 기자는 “비가 왔다”고 말했다.",
        "그는 기자 = 나쁜 사람이라고 썼다.",
        "주인공을 따라다니는 기자",
        "그는 최초의 특파원(가나일보 모스크바 특파원)이었다.",
        "시사 주간지 뉴스팀장 등 3명이 참석하였다.",
        "사진: 그는 어제 비를 맞으며 사진을 찍었다.",
        "무단 횡단은 금지된다.",
        "무단 전재를 금지하는 법이 통과됐다.",
        "저작권자의 이름을 밝히기만 하면 쓸 수 있다.",
        "ⓒⓞⓞⓛ",
        "제가 가장 좋아하는 방송은 KBS 라디오입니다.",
        "안녕하세요, MBC 직원입니다.",
        "발행인은 아무개였다.",
        "구독: 그 채널의 구독자가 늘었다.",
        "■ 제보자는 말이 없었다.",
        "▶ 제보를 하고 통화를 해 보면 일손이 바쁘다.",
        "▶ 집에 바로 가기 위해 뛰었다.",
        "▷ 광고를 늘리려고 클릭을 유도하는 사람들의 수익원 단절",
        "▲ 첫째 원칙 ▲ 둘째 원칙",
        "궁금하면 hong@example.com 으로 물어보라.",
        "a < b 이고 c > d 이다.",
        "영화 <패터슨>을 보았다.",
        "음반 <Head First>가 나왔다.",
        "'#그런데_왜'라는 말이 유행했다.",
        "R&D 예산이 늘었다.",
        "ㅋㅋㅋ 그랬구나 ㅠㅠ",
        "슬래시(/)와 쉼표(,)를 쓴다.",
    ],
)
def test_sentences_that_merely_look_like_noise_survive(sentence: str) -> None:
    changed: Counter[str] = Counter()
    assert remove_noise(sentence, changed) == sentence
    assert not changed


@pytest.mark.parametrize(
    "code",
    [
        "List<String> names; Map<A, B> m; Foo<A> x; <T> a[i]",
        "C#과 F#에서 #include 와 #region 을 쓴다. #include <stdio.h>",
        "main()을 부르고 string[] 을 돌려준다. f({}); return []; Ok(())",
        "if (a <> b) x = () => {};",
        "(?P<header>[^:]+)",
        "let s3 = s1 + &s2; p->next && q",
        "'<html>' 과 \"<p>\" 는 태그다.",
        "P<B, P>=B",
        "background:#eeeeee; color: #fff",
        "TODAY () 와 regex_\\d",
        "react@experimental",
    ],
)
def test_code_survives(code: str) -> None:
    changed: Counter[str] = Counter()
    assert remove_noise(code, changed) == code
    assert not changed


def test_each_rule_that_changed_the_text_is_observed() -> None:
    seen: list[tuple[str, str, str]] = []
    changed: Counter[str] = Counter()
    cleaned = remove_noise("<b>비</b>가  왔다 #비 [", changed, lambda *change: seen.append(change))
    assert cleaned == "비가 왔다 ["
    assert [name for name, _, _ in seen] == ["html_tag", "hashtag", "blanks"]
    assert seen[0][1:] == ("<b>비</b>가  왔다 #비 [", "비가  왔다 #비 [")
    assert changed == {"html_tag": 2, "hashtag": 1, "blanks": 2}


def test_rules_can_be_switched_off_by_name() -> None:
    rules = rules_except(("hashtag", "empty_bracket"))
    assert rules_except(("hashtag", "empty_bracket")) is rules
    assert remove_noise("#비 가() <b>왔다</b>", Counter(), rules=rules) == "#비 가() 왔다"


def test_an_unknown_rule_is_named_together_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r'"hash_tag".*hashtag'):
        rules_except(("hash_tag",))


def test_the_search_for_odd_characters_finds_exactly_what_its_rules_change() -> None:
    odd = [rule.pattern for rule in NOISE_RULES if rule.odd]
    assert len(odd) == 3
    for code in range(0x11000):
        character = chr(code)
        assert bool(ODD_CHARACTER.match(character)) == any(pattern.match(character) for pattern in odd), hex(code)


def test_cues_lose_no_match() -> None:
    """A rule that is tried everywhere changes nothing more than one that looks for its cues first."""
    for article in ARTICLES:
        text = article.replace("|", "\n").replace("ǀ", "|")
        for rule in NOISE_RULES:
            lines = text.split("\n") if rule.by_line else [text]
            everywhere = "\n".join(rule.pattern.sub(rule.replacement, line) for line in lines)
            if rule.at_line_start:
                everywhere = rule.pattern.sub("\n", "\n" + text)[1:]
            assert rule.apply(text)[0] == everywhere, (rule.name, text)


def test_the_search_for_heads_of_lines_finds_what_its_rules_change() -> None:
    texts = [before for _, before, _ in PAIRS + MORE] + [
        article.replace("|", "\n").replace("ǀ", "|") for article in ARTICLES
    ]
    found = Counter[str]()
    for line in {line for text in texts for line in text.split("\n")}:
        for rule in NOISE_RULES:
            if rule.at_line_start and rule.pattern.search("\n" + line):
                found[rule.name] += 1
                assert LINE_HEAD.match("\n" + line), (rule.name, line)
    assert set(found) == {rule.name for rule in NOISE_RULES if rule.at_line_start}


def test_jamo_that_meet_after_removal_are_composed() -> None:
    assert clean("\u1112\u200b\u1161\u11ab") == "한"


@pytest.mark.parametrize(
    "text",
    ["ᄒᆞᆫ글", "나랏말ᄊᆞ미", "ᄀᆞᆯ", "\u115fᆞ", "\ua960ᅡ", "ㅎㆍㄴ글"],
)
def test_old_hangul_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("가족 \U0001f468\u200d\U0001f469\u200d\U0001f467!", "가족 \U0001f468\u200d\U0001f469\u200d\U0001f467!"),
        ("\U0001f3c3\U0001f3fb\u200d\u2640\ufe0f", "\U0001f3c3\U0001f3fb\u200d\u2640"),
        ("\u2764\ufe0f\u200d\U0001f525", "\u2764\u200d\U0001f525"),
        ("가\u200d\U0001f525\u200d나", "가\U0001f525나"),
    ],
)
def test_a_joiner_stays_between_emoji_only(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def test_decomposed_text_meets_the_rules_composed() -> None:
    assert clean(unicodedata.normalize("NFD", "비가 왔다.\n홍길동 기자")) == "비가 왔다."


def test_compatibility_characters_stay_as_they_are() -> None:
    assert clean("ㅋㅋ ﬁ Ａ ½ ㈜") == "ㅋㅋ ﬁ Ａ ½ ㈜"


@given(st.text(alphabet=st.sampled_from("가나 다.#<>&;()[]a\n\t\u200b=기자사진▶1"), max_size=60))
def test_clean_text_is_nfc_without_blank_runs_or_bad_characters(text: str) -> None:
    cleaned = clean(text)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not any(bad in cleaned for bad in ("  ", "\t", "\n\n", " \n", "\n ", "\u200b"))


@given(st.text(alphabet=st.sampled_from("가나 다.;a\n\r\t\u200b\u00a0\u0300\u1112\u1161ㅋ1"), max_size=60))
def test_cleaning_twice_is_cleaning_once_where_no_noise_holds_noise(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize("source", ["petitions", "wikinews", "nsmc_reviews"])
def test_cleaning_twice_is_cleaning_once_on_real_text(source: str, shared: Callable[[str], Path]) -> None:
    texts = list(islice(read_texts(shared(f"data/corpora/{source}.jsonl.zst")), 1_500))
    changed_again = sum(clean(cleaned) != cleaned for cleaned in map(clean, texts))
    assert texts
    assert changed_again <= len(texts) * 0.001  # shells of nested brackets


def read_texts(path: Path) -> Iterator[str]:
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        for line in io.TextIOWrapper(stream, encoding="utf-8"):
            yield json.loads(line)["text"]


@pytest.mark.parametrize(
    "piece",
    [
        *("1-", "a.", "@", "a@", "1", "(", "[", "{", "<", "「", "“", "《", "【", "&", "&amp;", "&#1", "가", '"', "ㅋ"),
        *("▶", "▶ ", "[사진=", "(사진=", "ⓒ", "저작권자 ⓒ", "\n", " ", "\n ", "<a", "<a ", "<!--", "#", "#가", "다. "),
        *(
            "<script>",
            '"<script>',
            "</script><script>",
            "<style ",
            "입력 2023.01.02 10:11 ",
            "입력 20",
            "댓글 0개 ",
            "(, ",
        ),
        *(
            ", )",
            "가(漢",
            "漢(",
            ", ",
            "※ 본 기사는 ",
            "☞ [단독] ",
            "formula_1 ",
            "\u200d",
            "\U0001f468\u200d",
            "\u1160",
        ),
        *("기자 ", "홍길동 기자", "홍길동·", "(서울=", "무단전재 ", "▲ 가", "지금까지 가", "KBS 뉴스 ", "\u200b", "\r"),
    ],
)
def test_time_grows_with_length_only(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        start = time.process_time()
        clean(text)
        return time.process_time() - start

    if (whole := seconds(400_000)) >= 0.5:
        assert whole < 3 * seconds(200_000) + 0.5  # twice the text; quadratic would be four times
