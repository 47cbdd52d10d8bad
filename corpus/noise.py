"""Noise filter of paper section 2.3: small named rules that take the noise out and leave the sentence.

Every rule is a row: a name to count under, cues that must occur (a memory scan that spares the pattern), a pattern that
runs in linear time, and what stands in its place. One pass in table order, so that noise inside noise, as in (( )),
may leave its shell. Text stays NFC; NFKC would tear Korean jamo such as ㅋㅋ apart. Zero-width characters go, also
those that join emoji, which fall into their parts. Sources full of code or mark-up switch rules off.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html.entities import html5

from corpus.documents import BadInput

# every character that line_separator, bad_character or odd_blank changes: one search settles all three
ODD_CHARACTER = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\xa0\u00ad\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164"
    "\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]"
)
HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """``cues``: of each group one must occur, in the text and, for a rule ``by_line``, in the line; cheap groups first.

    A rule ``by_line`` sees each line alone. An ``odd`` rule is tried only on text with an ``ODD_CHARACTER``.
    """

    name: str
    cues: tuple[tuple[str, ...], ...]
    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str] = ""
    by_line: bool = False
    odd: bool = False

    def has_cues(self, text: str) -> bool:
        for group in self.cues:
            for cue in group:
                if cue in text:
                    break
            else:
                return False
        return True

    def apply(self, text: str) -> tuple[str, int]:
        """The text after the rule and how many places it matched."""
        if not self.has_cues(text):
            return text, 0
        if not self.by_line:
            return self.pattern.subn(self.replacement, text)
        lines = text.split("\n")
        total = 0
        for n, line in enumerate(lines):
            if self.has_cues(line):
                lines[n], times = self.pattern.subn(self.replacement, line)
                total += times
        return ("\n".join(lines), total) if total else (text, 0)


def _entity(match: re.Match[str]) -> str:
    """The character of a numeric or known entity; ``&s2;`` of a program stays."""
    name = match[1]
    return html.unescape(f"&{name}") if name.startswith("#") or name in html5 else match[0]


HTML_TAGS = (
    "a|abbr|article|aside|b|big|blockquote|body|br|button|caption|center|cite|code|col|dd|del|div|dl|dt|em|figcaption|"
    "figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|label|li|link|main|meta|nav|nowiki|ol|"
    "option|p|pre|ref|s|section|select|small|span|strike|strong|style|sub|sup|table|tbody|td|th|thead|title|tr|tt|u|ul|video"
)
ATTRIBUTES = r"(?:\s+[A-Za-z_:][\w:.-]{0,60}\s{0,9}=[^<>]{0,1000})?\s{0,9}/?>"
# Foo<A> is a type, (?P<a>…) a group, '<p>' a mention
NO_CODE = r"(?!(?<=[A-Za-z0-9_]<)(?-i:[A-Z]>)|(?<=\?P<)|(?<=['\"`‘“]<)[^<>]{1,60}>['\"`’”])"

OUTLET = (
    r"(?:뉴스[1A-Z]?|일보|신문|뉴시스|경제|통신|방송|미디어|투데이|데일리|타임[스즈]|닷컴|헤럴드|저널|매경|한경|포스트|코리아|한겨레"
    r"|노컷|스포츠[가-힣]{1,4}|[A-Z]TV|OSEN)"
)
PRESS = rf"[가-힣A-Za-z]{{0,8}}{OUTLET}"
NAME = r"(?!(?:그|나|저|이)는)[가-힣*○]{2,4}(?<![는던된을를])"
TITLE = r" ?(?:인턴|선임|수습|객원|의학)?(?:전문)? ?(?:기자|특파원|논설위원)"
REPORTER = rf"{NAME}(?: ?[·,/&] ?{NAME}){{0,3}}{TITLE}"
REPORTERS = rf"{NAME}(?:(?: ?[·,/&] ?| ){NAME}){{0,3}}{TITLE}"
STATION = r"(?:KBS|MBC|SBS|YTN|JTBC|OBS|MBN|TV조선|채널A|연합뉴스TV)"
EMAIL = r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}"
PICTURE = (
    r"(?:자료 ?사진|사진|자료|이미지|그래픽|영상|출처|영상 ?(?:취재|편집)|글[·ㆍ]사진)"
    r"(?: ?(?:제공|출처|캡처|갈무리))?"
)
# 〈…〉 and kin close the tag, a line end closes it too
TAG_BODY = r"[^\[\](){}<>〈〉\n]"
MARK = "[▶☞▷►](?<![▶☞▷►]{2})[▶☞▷►]*+"  # a run of marks begins one item
ITEM = "[^\\n▶☞▷►.!?]"
ITEM_ENDS = "(?= *(?:[▶☞▷►]|$))"
# a line that ends like a sentence is one, whatever it begins with
NO_SENTENCE = r"(?<![다요죠까]\.)(?<![다요죠까?!])"
SENTENCE_END = r"(?:^|(?<=[.!?\])\"”’]))"


def _line_rule(name: str, cues: tuple[tuple[str, ...], ...], *patterns: str) -> NoiseRule:
    return NoiseRule(name, cues, re.compile("|".join(patterns)), by_line=True)


CHARACTER_RULES = (
    NoiseRule("html_entity", (("&",),),
              re.compile(r"&(?:amp;)*(#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};|[A-Za-z][A-Za-z0-9]{1,30};)"), _entity),
    NoiseRule("html_break", (("<",),),
              re.compile(rf"<{NO_CODE}(?:br|/br|/p|/div|/li|/tr|/h[1-6]){ATTRIBUTES}", re.I), "\n"),
    NoiseRule("html_tag", (("<",),),
              re.compile(rf"<!--(?<!['\"`]<!--)[^<>]{{0,1000}}-->|<{NO_CODE}/?(?:{HTML_TAGS}){ATTRIBUTES}", re.I)),
    NoiseRule("line_separator", (), re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]"), "\n", odd=True),
    NoiseRule("bad_character", (), re.compile(
        "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
        "\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]+"), odd=True),
    NoiseRule("odd_blank", (), re.compile(r"[^\S\n ]"), " ", odd=True),
)  # fmt: skip

# captions hold credits, and copyright lines follow reporters: what stands outside goes first
NEWS_RULES = (
    _line_rule("caption", (("▲", "△", "▼", "◀"),),  # ▲ 비 오는 거리 [사진=예시일보]
        rf"^ *[▲△▼◀][^\n▲△▼◀]{{0,200}}?(?:[ⓒ©] ?{TAG_BODY}{{2,20}}|제공|/ ?{PRESS}"
        rf"|/?[\[(<〈]? ?{PICTURE} ?[=:ㅣ|]{TAG_BODY}{{1,40}})[\])>〉]?\.? *$"),
    _line_rule("picture_credit",  # [사진=예시일보], (사진 제공=예시군청)
        (("=", ":", "|", "ㅣ", "[사진]"), ("사진", "자료", "이미지", "그래픽", "영상", "출처")),
        rf"[\[(<〈【] ?{PICTURE} ?[=:ㅣ|]{TAG_BODY}{{0,60}}[\])>〉】]",
        rf"(?:[/|]|(?<=다\.)) ?{PICTURE} ?[=:ㅣ|][^\n.]{{0,40}}$",
        rf"^ *(?:{PICTURE} ?[=:ㅣ|]|\[사진\])[^\n]{{0,60}}{NO_SENTENCE}$"),
    _line_rule("copyright",
        (("ⓒ", "©", "무단", "ights r", "(c)", "(C)"), ("ⓒ", "©", "금지", "ights r", "opyright", "저작권자")),
        r"(?:^ *[-*※] ?)?(?:Copyrights? ?(?:ⓒ|©|\([cC]\))(?:[^\n.]|\.(?=\S)){0,60}\.?|All rights reserved\.?)",
        rf"(?:[-*※] ?)?[<〈\[(]? ?(?:[-*※] ?)?저작권자 ?(?:ⓒ|©|\([cC]\)){TAG_BODY}{{0,80}}[>〉\])]?",
        rf"[<〈\[(] ?[ⓒ©]{TAG_BODY}{{2,80}}[>〉\])]",
        r"(?:[ⓒ©] ?[^\n.!?ⓒ©]{2,40}?)?[<〈\[(]? ?무단 ?(?:전재|복제|배포)"
        r"(?:[ ·,\-/]|및|와|과|수집|재?배포|복제|전재|(?:AI ?)?학습|이용|활용|를|을){0,12}"
        r"금지(?:합니다\.?|\.|(?![가-힣]))[>〉\])]?",
        r"[ⓒ©] ?(?:News1|뉴스1|뉴시스|연합뉴스)",
        rf"^ *[ⓒ©] ?[\w(][^\n]{{0,60}}{NO_SENTENCE}$"),
    _line_rule("news_link", (("▶", "☞", "▷", "►", "■", "◇", "▣", "◎", "※", "[전화]", "[메일]", "[카카오톡]"),),
        rf"{SENTENCE_END} *[■◇▣◎] ?(?:기사 ?)?제보 ?(?:하기)?(?= *(?:[▶☞▷►■:]|$))(?: *:{ITEM}{{0,60}})?",
        rf"{MARK}{ITEM}{{0,40}}?바로 ?가기(?! ?[가-힣]{{0,2}}(?:위|전|도|를|에|로))",
        rf"{MARK}{ITEM}{{0,40}}?(?:더 ?보기|기사 ?(?:원문 ?)?보기|기사모음|(?:구독|제보|신청)하기|클릭!?"
        rf"|다운로드|채널 ?추가){ITEM_ENDS}",
        rf"{MARK} ?\[?(?:관련 ?(?:기사|뉴스)|많이 본 (?:기사|뉴스))\]? ?[:：]{ITEM}{{0,80}}[.!?…]*",
        rf"{MARK} ?[\"'‘“\[]?(?:관련 ?(?:기사|뉴스)|많이 본 (?:기사|뉴스)|카카오톡|기사 ?제보){ITEM}{{0,60}}"
        rf"{NO_SENTENCE}{ITEM_ENDS}",
        rf"{MARK}{ITEM}{{0,20}}{PRESS} ?{ITEM}{{0,12}}(?:구독|홈페이지|페이스북|카카오톡|유튜브|채널){ITEM_ENDS}",
        rf"^ *(?:{MARK} ?(?:전화|이메일|카카오톡|뉴스 ?홈페이지) ?[:：]|\[(?:카카오톡|전화|메일)\] )"
        rf"[^\n▶☞▷►]{{0,80}}{NO_SENTENCE}$",
        rf"^ *※ ?['‘\"“]?당신의 제보가 뉴스가 됩니다['’\"”]? *$|[☞◎] ?공감언론 ?뉴시스(?: ?{EMAIL})?"),
    _line_rule("news_footer", (("보도자료", "많이 본", "네이버에서", "관련기사", "관련 기사"),),
        rf"^ *(?:기사 ?제보 및 보도자료|많이 본 (?:기사|뉴스)|네이버에서 [^\n]{{0,30}}구독)[^\n]{{0,80}}{NO_SENTENCE}$",
        r"^ *\[?관련 ?기사\]? *$"),
    _line_rule("company_footer",
        ((":", "："), ("등록번호", "통신판매", "대표이사", "발행인", "편집인")),
        r"^ *(?:사업자 ?등록번호|통신판매(?:업)?(?:신고)?(?:번호)?|대표이사|발행인|편집인|등록번호)"
        rf" *[:：][^\n]{{0,200}}{NO_SENTENCE}$"),
    _line_rule("speaker_label", (("[", "<", "◀", "【"), ("앵커", "기자]", "리포트")),  # of a broadcast
        r"^ *[\[<◀【] ?(?:앵커(?: ?멘트)?|(?<=\[)기자(?=\])|리포트) ?[\]>▶】]:? *"),
    _line_rule("dateline",  # (서울=연합뉴스) 홍길동 기자 =
        (("[", "(", "【"), ("=", "|", "기자")),
        rf"(?<!\[)[\[(【][가-힣A-Z·,/ ]{{2,15}}[=/|] ?{PRESS}(?: ?{REPORTERS})?[\])】](?: ?{REPORTERS}(?: ?=|$))?",
        rf"(?:[\[【]|^ *\(){PRESS} ?[=/| ] ?(?:[가-힣]{{2,3}} ?)?{REPORTERS}[\])】]|^ *[\[(【]{REPORTER}[\])】](?=.)"),
    _line_rule("byline", (("=",), ("기자", "특파원")),
        rf"^ *(?:{PRESS} ?=? ?|[가-힣]{{2,4}}=)?{REPORTERS} ?=|^ *{PRESS} ?= ?{REPORTER}(?= |$)"),
    _line_rule("reporter",  # a line's end or a whole line: 홍길동 기자 hong@example.com
        (("기자", "특파원", "논설위원"),),
        rf"{SENTENCE_END} *[/|=<\[(]? ?(?:(?:글|글[·ㆍ]사진|[가-힣]{{2,4}}) ?= ?)?(?:{EMAIL} ?/? ?)?(?:{PRESS} )?"
        rf"{REPORTER}(?: ?[=/|(\[]? ?{EMAIL}[)\]]?|·[가-힣]{{2,4}}|의 다른 기사[^\n]{{0,12}})?"
        r" *[>\])]?(?: ?\(끝\))? *$"),
    _line_rule("news_desk", (("팀",), ("뉴스팀", "이슈팀", "콘텐츠팀")),
        rf"{SENTENCE_END} *[/|=\[(]? ?(?:{PRESS} ?)?(?:온라인|디지털|인터넷) ?(?:뉴스|이슈|콘텐츠)팀(?: ?기자)?"
        rf"(?: ?[=/(]? ?{EMAIL}\)?)?[\])]? *$"),
    _line_rule("broadcast_closing",
        (("B", "Y", "V", "널"), ("BS", "BC", "YTN", "MBN", "TV", "채널A"), ("니다",)),
        rf"{SENTENCE_END} *(?:지금까지 [^\n.!?]{{1,30}}에서 ?{STATION} ?(?:뉴스)? ?{NAME}|{STATION} ?뉴스,? ?{NAME}"
        rf"|{STATION} ?{NAME}(?= ?[\[(]))(?: ?[\[(]{EMAIL}[\])])?(?:입니다|이?었습니다|였습니다)(?:\.|(?= |$))"),
    _line_rule("end_mark", (("끝",), ("(끝)", "<끝>", "[끝]")), r"(?:\(끝\)|<끝>|\[끝\]) *$"),
    # the text's last line
    NoiseRule("press_email", (("@",),), re.compile(
        rf"([\n.])(?:(?<=\n)|(?<=다\.)) *[/|]? ?{EMAIL}(?:\s{{1,9}}{EMAIL})?\s*\Z"), r"\1"),
)  # fmt: skip

LAYOUT_RULES = (
    # a tag after a quote or bracket is a mention, #include and #ffeeaa are code
    NoiseRule("hashtag", (("#",),), re.compile(
        r"#(?<![\w&#/\\(\[<〈《'\"“‘=:;→]#)(?!(?:include|define|undef|if|ifn?def|elif|else|endif|pragma|(?:end)?region"
        r"|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{3})(?![A-Za-z0-9_]))[^\W\d_]\w*")),
    # main() and string[] are code, a <> b is a comparison; with a comma inside they are left by a template
    NoiseRule("empty_bracket", ((")", "]", "}", ">", "〉", "》", "」", "』", "】", "”", "’"),), re.compile(
        r"\((?<![A-Za-z0-9_\]>=({,`]\()(?<![A-Za-z0-9_]\(\)\()(?<![=:] \()(?<![A-Z]{2} \()"
        r"(?!(?<=['\"]\()\)['\"]|\) ?=>)\s*\)"
        r"|\((?<![A-Za-z0-9_]\()(?![,;:·/]\))\s*[,;:·/][\s,;:·/]*\)"
        r"|\[(?<![A-Za-z0-9_)\]>=({,'\"`]\[)(?<![A-Za-z0-9_=:,] \[)(?!\[[,;:·/]\])[\s,;:·/]*\]|\{(?<=[가-힣]\{)\s*\}"
        r"|<(?<=[가-힣]<)\s*>|<(?<![A-Za-z0-9_>]<)\s*>(?=[가-힣])|〈\s*〉|《\s*》|「\s*」|『\s*』|【\s*】|“\s*”|‘\s*’")),
    NoiseRule("blanks", (("  ",),), re.compile("  +"), " "),
    NoiseRule("line_end", ((" \n",),), re.compile(" \n"), "\n"),
    NoiseRule("line_edges", (("\n",), ("\n\n", "\n ")), re.compile("\n[ \n]+"), "\n"),
)  # fmt: skip

NOISE_RULES = CHARACTER_RULES + NEWS_RULES + LAYOUT_RULES


@lru_cache
def rules_without(names: Sequence[str]) -> tuple[NoiseRule, ...]:
    """``NOISE_RULES`` but those of ``names`` (a hashable sequence); ``BadInput`` where a name is no rule's."""
    known = [rule.name for rule in NOISE_RULES]
    for name in names:
        if name not in known:
            raise BadInput(f'no noise rule is called "{name}"; the rules are {", ".join(known)}')
    return tuple(rule for rule in NOISE_RULES if rule.name not in names)


def remove_noise(
    text: str,
    changed: Counter[str],
    observe: Callable[[str, str, str], None] | None = None,
    rules: Sequence[NoiseRule] = NOISE_RULES,
) -> str:
    """The text without noise, NFC, line ends as ``\\n``, no blank lines.

    Args:
        changed: gains, under the name of each rule that changed the text, the number of places.
        observe: called as ``observe(rule_name, before, after)`` for each of them, with the whole text.
        rules: applied in this order; see ``rules_without``.
    """
    text = unicodedata.normalize("NFC", text)
    is_odd: bool | None = None
    for rule in rules:
        if rule.odd:
            if is_odd is None:
                is_odd = ODD_CHARACTER.search(text) is not None
            if not is_odd:
                continue
        after, times = rule.apply(text)
        if times and after != text:
            changed[rule.name] += times
            if observe:
                observe(rule.name, text, after)
            text = after
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
    for rule in DROP_RULES:
        if rule(sentence, limits):
            return rule.__name__
    return None
