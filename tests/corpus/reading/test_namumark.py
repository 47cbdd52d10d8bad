"""Namumark: what a reader sees stays, marks go, slips of an editor cost their marker only, time grows with length."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.reading.namumark import cut_spans, plain_text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        # links
        ("[[낱말]]은 [[말뭉치|말을 모은 것]]이다.", "낱말은 말을 모은 것이다."),
        ("[[말모이#s-2]]와 [[말모이#역사|그 역사]]", "말모이와 그 역사"),
        ("[[#개요]] 문단과 [[:분류:사전]] 문서", "개요 문단과 분류:사전 문서"),
        ("[[https://example.com/a#b]]와 [[https://example.com/|누리집]]", "https://example.com/a#b와 누리집"),
        ("[[대상|{{{#red '''붉은''' 이름}}}]]", "붉은 이름"),
        ("[[대상|[[파일:그림.png|width=10]] 그림]]", "그림"),
        ("[[\\#1번 곡]]", "#1번 곡"),
        ("앞[[파일:그림[1].png|width=100%&align=right]]뒤", "앞뒤"),
        ("[[분류:사전]][[분류:한글|말모이]]\n본문이다.", "본문이다."),
        ("[[file:a.png]][[Category:b]]본문", "본문"),
        # macros
        ("[목차]\n[tableofcontents]\n본문[각주]", "본문"),
        ("[include(틀:상위 문서, top1=[[말모이]])]\n본문", "본문"),
        ("[include(틀:인물\n, 이름=주시경\n, 그림=[[파일:주.png]]\n)]\n본문", "본문"),
        ("[Include(틀:a, b=(가))]본문", "본문"),
        ("나이는 [age(1876-12-22)]세[youtube(abc, width=640)] [anchor(가)]", "나이는 세"),
        ("[ruby(말, ruby=ことば, color=red)]을 모은다", "말을 모은다"),
        ("넓이는 [math(\\frac{\\pi r^{2}}{x_{1}}} \\])]이다. <math>a[b]</math>", "넓이는 이다."),
        ("첫 줄[br]둘째 줄[BR]셋째 줄", "첫 줄\n둘째 줄\n셋째 줄"),
        ("[V]와 [1]은 글자다", "[V]와 [1]은 글자다"),
        # footnotes
        ("말모이[* 주시경이 [[사전|낱말 사전]]으로 [1911년] 시작했다.]는 사전이다.", "말모이는 사전이다."),
        ("말모이[*이름 {{{#red 붉은}}} 주석[[a]]]다[*이름].", "말모이다."),
        ("말모이[* 출처[1]]다.", "말모이다."),
        # braces
        ("{{{+1 큰 '''글'''}}}과 {{{-2 작은 글}}}", "큰 글과 작은 글"),
        ("{{{#red 붉은}}} {{{#fff,#1f2023 {{{+2 흰}}}}}} {{{#ABCDEF 푸른}}}", "붉은 흰 푸른"),
        ('{{{#!wiki style="margin: 0px" dark-style="color:#fff"\n안쪽 [[글]]이다.\n}}}', "안쪽 글이다."),
        ("{{{#!wiki style='color:red' 한 줄}}}", "한 줄"),
        ("{{{#!folding [ 펼치기 · 접기 ]\n접힌 글이다.}}}", "접힌 글이다."),
        ('{{{#!html <span style="color:red">붉은</span> 글}}}', "붉은 글"),
        ("앞\n{{{#!syntax python\nprint([[1]], {})\n}}}\n뒤", "앞\n뒤"),
        ("{{{[[그대로]] {{{중첩}}} [* 둔다]}}}", "[[그대로]] 중첩 [* 둔다]"),
        # dressing
        ("'''굵게''' ''기울임'' '''''둘 다''''' ~~농담~~ --취소-- __밑줄__", "굵게 기울임 둘 다 농담 취소 밑줄"),
        ("H,,2,,O와 제1^^가^^", "H2O와 제1가"),
        ("''~~겹친~~ 글''", "겹친 글"),
        ("안녕^^ 반가워^^ 그래~ 가자~ 2018--2019 네,, 좋아", "안녕^^ 반가워^^ 그래~ 가자~ 2018--2019 네,, 좋아"),
        # lines
        ("== 개요 ==\n글이다.\n===# [[접힌]] 문단 #===\n==붙은 제목==", "개요\n글이다.\n접힌 문단\n붙은 제목"),
        ("1 + 1 = 2 = 2\n= =", "1 + 1 = 2 = 2\n= ="),
        (" * 하나\n  * '''둘'''\n 1. 셋\n a.#3 넷\n *붙은 다섯", "하나\n둘\n셋\n넷\n붙은 다섯"),
        ("* 별표로 시작\n 1.5배 들여쓰기", "* 별표로 시작\n1.5배 들여쓰기"),
        ("> 인용\n>>겹친 인용\n> * 목록", "인용\n겹친 인용\n목록"),
        ("앞\n----\n---------\n뒤 ---- 뒤", "앞\n뒤 ---- 뒤"),
        ("## 주석이다\n글\n##@ 고정 주석\n ## 들여쓴 것은 글", "글\n## 들여쓴 것은 글"),
        # tables
        ("|| 이름 || 말모이 ||\n||<-2><tablealign=right><bgcolor=#fff,#000> 사전 ||", "이름 말모이\n사전"),
        ("||<|2><:>가||<width=50%><(>나||<)>다[br]라||", "가 나 다 라"),
        ("|제목 줄| 가 || 나 ||\n|| <영화> || [[파일:a.png]] || ||", "제목 줄 가 나\n<영화>"),
        ("||가{{{#!wiki style=\"a\"\n나}}}||다||", "가\n나 다"),
        # escapes
        ("\\[[글자]] \\{{{글자}}} 5\\*3 \\\\", "[[글자]] {{{글자 5*3 \\"),
        ("{{{#!folding \\{{{{가}}} 나}}} 다", "{가 나 다"),
        # nothing to do
        ("그냥 글이다.\r\n\r\n둘째\t문단이다.  ", "그냥 글이다.\n둘째 문단이다."),
        ("", ""),
    ],
)  # fmt: skip
def test_markup_becomes_what_a_reader_sees(markup: str, text: str) -> None:
    assert plain_text(markup) == text


# white space between the pieces, _ is a blank
SLIPS = """[[ [[대상| {{{ {{{#red_ {{{#!syntax_c_ {{{#!html_ [* [*_ [ [include( [math( [ruby( || }}} ]] ] ''' '' ~~ --
    [[[[ {{{{{{ [*[* [[파일: == \\ <math> [youtube("""
PIECES = """[[ ]] [[a| [[파일: {{{ }}} {{{#red_ {{{#!html_ || | ||_<a [* [*_a_ [ ] [include( [math( [math(x <math> \\
    ''a ~~a --a_ > _* == _ [br] [[가|나]] [*_다] {{{+1_x}}} [ruby(a {{{#!wiki_a=" ||<a [[a|[[b|[[c|]]"""
MARKS = """[[ ]] [ ] | || {{{ }}} {{{#red_ {{{#!wiki_a {{{#!html_ [* [include( )] ''' '' ~~ -- == ==_ _== > _*_ \\ ##
    [br] [math( <b> _ 가 나다 라. 파일:"""


def pieces(listed: str) -> list[str]:
    return [piece.replace("_", " ") for piece in listed.split()]


@pytest.mark.parametrize("slip", pieces(SLIPS))
def test_a_mark_without_its_partner_costs_its_marker_only(slip: str) -> None:
    text = plain_text(f"첫 글이다. {slip}둘째 글이다.\n\n[[셋째]] '''글'''이다[* 주석].\n{{{{{{#red 넷째}}}}}} 글이다.")
    first, *rest = text.split("\n")
    assert first.startswith("첫 글이다.") and first.endswith("둘째 글이다.")
    assert rest == ["셋째 글이다.", "넷째 글이다."]


def test_a_later_line_does_not_close_the_marks_of_an_earlier_one() -> None:
    markup = "말모이[* 닫지 않은 주석\n본문이다.\n\n다음 [괄호] 문단[[파일:닫지 않은 그림\n끝이다 ]] 정말."
    lines = ["말모이 닫지 않은 주석", "본문이다.", "다음 [괄호] 문단파일:닫지 않은 그림", "끝이다 정말."]
    assert plain_text(markup).split("\n") == lines


@given(st.lists(st.sampled_from([*pieces(MARKS), "\n", "\n\n"]), max_size=40).map("".join))
def test_text_only_gets_shorter_and_keeps_its_order(markup: str) -> None:
    kept = plain_text(markup)
    left = iter(markup)
    assert all(char in left for char in kept if not char.isspace())
    assert all(line.strip() for line in kept.split("\n")) or not kept


@given(st.lists(st.text("가나다라 .,!?()12", max_size=30), max_size=6))
def test_text_without_markup_changes_only_in_blanks(lines: list[str]) -> None:
    wanted = [" ".join(line.split()) for line in lines if line.strip() and ",," not in line]
    assert plain_text("\n".join(line for line in lines if ",," not in line)) == "\n".join(wanted)


def test_spans_are_cut_where_they_close_near_by() -> None:
    assert cut_spans("a<m>b</m>c<m></m>d", "<m>", "</m>", 10) == "acd"
    assert cut_spans("a<m>b<m>c</m>d</m>", "<m>", "</m>", 10) == "a<m>bd</m>"  # the last opener before a closer
    assert cut_spans("a<m>" + "b" * 9 + "</m>c<m>d", "<m>", "</m>", 10) == "a<m>" + "b" * 9 + "</m>c<m>d"


@pytest.mark.parametrize("piece", [*pieces(PIECES), "\n", "{{{#!syntax x\n"])
def test_time_grows_with_length_only(piece: str) -> None:
    seconds = []
    for size in (50_000, 400_000):
        text = piece * (size // len(piece))
        start = time.process_time()
        plain_text(text)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 24 * seconds[0] + 0.1  # eight times the text; quadratic would be 64


@pytest.mark.parametrize(
    ("opener", "closer"), [("[[", "]]"), ("{{{#red ", "}}}"), ("[* ", "]"), ("[[a|", "]]"), ("{{{#!html ", "}}}")]
)
def test_time_grows_with_depth_only(opener: str, closer: str) -> None:
    seconds = []
    for depth in (5_000, 40_000):
        start = time.process_time()
        plain_text(opener * depth + "글" + closer * depth)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 24 * seconds[0] + 0.1
