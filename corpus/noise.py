"""Noise filter of paper section 2.3: small named rules that take the noise out and leave the sentence.

Every rule is a row: a name to count under, cues that must occur in the text (a fast test that spares the pattern), a
pattern that runs in linear time, and what stands in its place. Order matters: entities may hide tags, tags may hide
blanks. Text stays NFC; NFKC would tear Korean jamo such as ㅋㅋ apart.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """``cues``: the pattern is tried where one of them occurs; empty means always."""

    name: str
    cues: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str] = ""

    def apply(self, text: str) -> tuple[str, int]:
        if self.cues and not any(cue in text for cue in self.cues):
            return text, 0
        return self.pattern.subn(self.replacement, text)


HTML_TAGS = (
    "a|abbr|article|aside|b|big|blockquote|body|br|button|caption|center|cite|code|col|dd|del|div|dl|dt|em|figcaption|"
    "figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|label|li|link|main|meta|nav|nowiki|ol|"
    "option|p|pre|ref|s|section|select|small|span|strike|strong|style|sub|sup|table|tbody|td|th|thead|title|tr|tt|u|ul|video"
)
OUTLET = r"뉴스1?|일보|신문|뉴시스|경제|통신|방송|미디어|투데이|데일리|타임[스즈]|닷컴|헤럴드|저널|[A-Z]TV"
PRESS = rf"[가-힣A-Za-z]{{0,8}}(?:{OUTLET})"
REPORTER = r"[가-힣]{2,4} ?(?:인턴|선임|수습|객원|전문|의학전문)? ?(?:기자|특파원|통신원|논설위원)"
STATION = r"(?:KBS|MBC|SBS|YTN|JTBC|OBS|MBN|TV조선|채널A|연합뉴스TV)"
EMAIL = r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}"
PICTURE = r"(?:자료 ?사진|사진|자료|이미지|그래픽|영상|출처)(?: ?(?:제공|출처|캡처))?"
# 〈…〉 and kin close the tag, a line end closes it too
TAG_BODY = r"[^\[\](){}<>〈〉\n]"

CHARACTER_RULES = (
    NoiseRule("html_entity", ("&",), re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"),
              lambda match: html.unescape(match[0])),
    NoiseRule("html_break", ("<",), re.compile(r"<(?:br|/p|/div|/li|/tr|/h[1-6])\b[^<>]{0,200}>", re.I), "\n"),
    NoiseRule("html_tag", ("<",), re.compile(rf"<!--[^<>]{{0,1000}}-->|</?(?:{HTML_TAGS})\b[^<>]{{0,1000}}>", re.I)),
    NoiseRule("line_separator", (), re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]"), "\n"),
    NoiseRule(
        "bad_character",
        (),
        re.compile(
            "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
            "\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]+"
        ),
    ),
)  # fmt: skip

NEWS_RULES = (
    NoiseRule(
        "picture_credit",  # [사진=예시일보], (사진 제공=예시군청)
        ("사진", "자료", "이미지", "그래픽", "영상", "출처"),
        re.compile(
            rf"[\[(<〈] ?{PICTURE} ?[=:ㅣ|]{TAG_BODY}{{0,60}}[\])>〉]"
            rf"|[/|] ?{PICTURE} ?[=:][^\n.]{{0,40}}$|^[ \t]*{PICTURE} ?[=:][^\n]{{0,60}}$",
            re.M,
        ),
    ),
    NoiseRule(
        "dateline",  # (서울=연합뉴스) 홍길동 기자 =
        ("=", "기자"),
        re.compile(
            rf"^[ \t]*[\[(【](?:[가-힣·, ]{{2,15}}[=/ ] ?{PRESS}(?: ?{REPORTER})?|{PRESS}[= ] ?{REPORTER}"
            rf"|{REPORTER})[\])】]"
            rf" ?(?:{REPORTER} ?=)?(?: ?{REPORTER}(?=\n|$))?",
            re.M,
        ),
    ),
    NoiseRule("byline", ("기자", "특파원"), re.compile(rf"^[ \t]*(?:{PRESS} )?{REPORTER} ?=", re.M)),
    NoiseRule(
        "reporter",  # a line's end or a whole line: 홍길동 기자 hong@example.com
        ("기자", "특파원", "통신원", "논설위원"),
        re.compile(rf"(?:^|(?<=[.!?\])\"”]))[ \t]*[/|]? ?(?:{PRESS} )?{REPORTER}(?: ?[/(]? ?{EMAIL}\)?)?[ \t]*$", re.M),
    ),
    NoiseRule(
        "news_desk",
        ("뉴스팀",),
        re.compile(rf"[/|]? ?(?:온라인|디지털|인터넷) ?뉴스팀(?: ?{EMAIL})?[ \t]*$", re.M),
    ),
    NoiseRule(
        "broadcast_closing",
        ("입니다", "이었습니다", "였습니다"),
        re.compile(
            rf"(?:지금까지 [가-힣 ]{{1,20}}에서 )?{STATION} ?(?:뉴스)? ?[가-힣]{{2,4}}"
            r"(?:입니다|이?었습니다|였습니다)\.?[ \t]*$",
            re.M,
        ),
    ),
    NoiseRule(
        "copyright",
        ("저작권자", "무단", "ⓒ", "©", "opyright", "ights reserved"),
        re.compile(
            rf"[<〈\[(]? ?저작권자 ?(?:ⓒ|©|\([cC]\)){TAG_BODY}{{0,80}}[>〉\])]?"
            r"|[<〈\[(]? ?무단 ?(?:전재|복제|배포)(?:[ ·,\-/]|및|와|과){0,4}(?:재 ?배포|배포|복제|전재)?"
            r" ?(?:를|을)? ?금지(?:합니다)?\.?[>〉\])]?"
            r"|Copyrights? ?(?:ⓒ|©|\([cC]\))[^\n.]{0,60}\.?|All rights reserved\.?|^[ \t]*[ⓒ©][^\n]{0,60}$",
            re.M,
        ),
    ),
    NoiseRule("caption", ("▲",), re.compile(rf"^[ \t]*▲[^\n▲]{{1,200}}(?:ⓒ ?{PRESS}|제공|/ ?{PRESS})[ \t]*$", re.M)),
    NoiseRule("end_mark", ("(끝)",), re.compile(r"\(끝\)[ \t]*$", re.M)),
    NoiseRule(
        "news_link",
        ("▶", "☞", "▷", "►", "■"),
        re.compile(
            r"^[ \t]*■ ?(?:기사 ?)?제보(?:하기)?(?=[ \t]*(?:[▶☞▷►■:]|$))(?:[ \t]*:[^\n▶☞▷►.!?]{0,60})?"
            r"|[▶☞▷►][^\n▶☞▷►.!?]{0,40}"
            r"(?:관련 ?기사|많이 본 (?:기사|뉴스)|바로 ?가기|카카오톡|제보|구독|클릭"
            r"|기사 ?보기|페이스북|채널 ?추가|다운로드|홈페이지)"
            r"[^\n▶☞▷►.!?]{0,60}",
            re.M,
        ),
    ),
    NoiseRule(
        "news_footer",
        ("보도자료", "많이 본", "구독", "등록번호", "판매", "대표이사", "편집인"),
        re.compile(
            r"^[ \t]*(?:기사 ?제보 및 보도자료|많이 본 (?:기사|뉴스)|네이버에서 [^\n]{0,30}구독)[^\n]{0,80}$"
            r"|^[ \t]*(?:사업자 ?등록번호|통신판매(?:업)?(?:신고)?(?:번호)?|대표이사|발행인|편집인|등록번호)"
            r"[ \t]*[:：][^\n]{0,200}$",
            re.M,
        ),
    ),
)  # fmt: skip

LAYOUT_RULES = (
    NoiseRule("hashtag", ("#",), re.compile(r"(?<![\w&#/])#[^\W\d_]\w*")),
    NoiseRule("empty_bracket", ("(", "[", "{", "<", "〈", "《", "「", "『", "【", "“", "‘"), re.compile(
        r"\([\s,;:·/]*\)|\[[\s,;:·/]*\]|\{\s*\}|<\s*>|〈\s*〉|《\s*》|「\s*」|『\s*』|【\s*】|“\s*”|‘\s*’")),
    NoiseRule("blanks", (), re.compile("[^\\S\n]{2,}|[^\\S\n ]"), " "),
    NoiseRule("line_edges", ("\n",), re.compile(" ?\n[ \n]*"), "\n"),
)  # fmt: skip

NOISE_RULES = CHARACTER_RULES + NEWS_RULES + LAYOUT_RULES


def remove_noise(text: str, changed: Counter[str]) -> str:
    """The text without noise, NFC, line ends as ``\\n``, no blank lines; adds what each rule changed to ``changed``."""
    for rule in NOISE_RULES:
        text, times = rule.apply(text)
        if times:
            changed[rule.name] += times
    return unicodedata.normalize("NFC", text.strip())


@dataclass(frozen=True, slots=True)
class SentenceLimits:
    min_chars: int
    max_han_kana: int


def is_too_short(sentence: str, limits: SentenceLimits) -> bool:
    return len(sentence) < limits.min_chars


def has_too_many_han_or_kana(sentence: str, limits: SentenceLimits) -> bool:
    """More than ``max_han_kana`` code points of U+3040-30FF, U+3400-9FFF or U+F900-FAFF."""
    return len(sentence) > limits.max_han_kana and len(HAN_OR_KANA.findall(sentence)) > limits.max_han_kana


DROP_RULES = (is_too_short, has_too_many_han_or_kana)


def failed_rule(sentence: str, limits: SentenceLimits) -> str | None:
    """Name of the first rule that drops the sentence, or None."""
    return next((rule.__name__ for rule in DROP_RULES if rule(sentence, limits)), None)
