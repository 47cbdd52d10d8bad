"""Noise filter of paper section 2.3: small named rules that take the noise out and leave the sentence.

Every rule is a row: a name to count under, cues that must occur (a memory scan that spares the pattern), a pattern that
runs in linear time, and what stands in its place. One pass in table order, so that noise inside noise, as in (( )),
may leave its shell. Text stays NFC; NFKC would tear Korean jamo such as ㅋㅋ apart, and letters of old Hangul (ᄒᆞᆫ) stay
as they are. Zero-width characters go, but for those that join emoji. Sources full of code or mark-up switch rules off.
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

from corpus.documents.errors import BadInput

# every character that line_separator, bad_character or odd_blank changes: one search settles all three
ODD_CHARACTER = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\xa0\u00ad\u061c\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"
    "\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]"
)
# how every match of a rule at_line_start begins: one search settles all of them
LINE_HEAD = re.compile(
    r"\n *+(?:[▲△▼◀]|[\[(<【]? ?(?:기사|최초|최종|입력|수정|등록|승인|작성|송고|업데이트|게재|발행"
    r"|댓글|좋아요|공유|스크랩|인쇄|프린트|글자|페이스북|트위터|카카오|URL|링크|북마크|본문|앵커|리포트"
    r"|많이 본|네이버에서|관련"
    r"|사업자|통신판매|대표이사|편집인|기자))"
)
HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """``cues``: of each group one must occur, in the text and, for a rule ``by_line``, in the line; cheap groups first.

    A rule ``by_line`` sees each line alone. The pattern of a rule ``at_line_start`` begins with the line end before it,
    which stays and which the search finds at the speed of memory; it is tried only on text with a ``LINE_HEAD``. An
    ``odd`` rule is tried only on text with an ``ODD_CHARACTER``.
    """

    name: str
    cues: tuple[tuple[str, ...], ...]
    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str] = ""
    by_line: bool = False
    at_line_start: bool = False
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
        if self.at_line_start:
            after, times = self.pattern.subn("\n", "\n" + text)
            return (after[1:], times) if times else (text, 0)
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


# letters of Hangul that are written in parts; U+115F and U+1160 hold the place of a missing one beside them
OLD_HANGUL = "\u1100-\u115e\u1161-\u11ff\ua960-\ua97f\ud7b0-\ud7ff"
EMOJI = "\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
# controls, direction marks, private use, variation selectors; ESC with the colour it sets
BAD_CHARACTER = (
    r"\x1b\[[0-9;]{0,20}[A-Za-z]"
    "|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]+"
    rf"|\u200d(?:(?<![{EMOJI}]\u200d)(?<![{EMOJI}]\ufe0f\u200d)|(?![{EMOJI}]))"
    rf"|[\u115f\u1160](?<![{OLD_HANGUL}].)(?![{OLD_HANGUL}])"
)

HTML_TAGS = (
    "a|abbr|article|aside|b|big|blockquote|body|br|button|caption|center|cite|code|col|dd|del|div|dl|dt|em|figcaption|"
    "figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|label|li|link|main|meta|nav|nowiki|ol|"
    "option|p|pre|ref|s|section|select|small|span|strike|strong|style|sub|sup|table|tbody|td|th|thead|title|tr|tt|u|ul|video"
)
ATTRIBUTES = r"(?:\s+[A-Za-z_:][\w:.-]{0,60}\s{0,9}=[^<>]{0,1000})?\s{0,9}/?>"
# Foo<A> is a type, (?P<a>…) a group, '<p>' a mention
NO_CODE = r"(?!(?<=[A-Za-z0-9_]<)(?-i:[A-Z]>)|(?<=\?P<)|(?<=['\"`‘“]<)[^<>]{1,60}>['\"`’”])"

# with what it holds; one more opening tag inside must be quoted, so that each text is looked at once
HTML_CODE = (
    r"<(?<!['\"`‘“]<)(script|style)(?:\s[^<>]{0,1000})?>(?!\.\.\.<)"
    r"(?:[^<]++|(?<=['\"(+])<|<(?!/?(?:script|style)\b))*+</\1\s{0,9}>"
)

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


DATE = r"(?:19|20)?\d\d ?[.\-/년] ?\d{1,2} ?[.\-/월] ?\d{1,2} ?[.일]?(?: ?\([가-힣]\))?"
TIME = r" ?[\[(]?(?:오전|오후|[AaPp][Mm])? ?\d{1,2}[:시] ?\d\d(?::\d\d|분)?(?: ?[AaPp][Mm])?[\])]?"
STAMP = (
    r"(?:기사|최초|최종)? ?(?:입력|수정|등록|승인|작성|송고|업데이트|게재|발행)(?:일시?|시간|시각)?"
    rf" ?[:：|ㅣ]? ?[\[(]?{DATE}"
)
BUTTON = (
    r"(?:댓글 ?\d{0,6}개?|좋아요 ?\d{0,6}개?|공유(?:하기)?|스크랩(?:하기)?|인쇄(?:하기)?|프린트"
    r"|글자 ?크기(?: ?(?:조절|변경))?|페이스북|트위터|카카오(?:톡|스토리)|URL ?복사|링크 ?복사|북마크"
    r"|기사 ?듣기|본문 ?듣기)"
)
HEADLINE = r"\[(?:단독|속보|포토|영상|화보|종합|인터뷰|특징주|카드뉴스|르포|사설|칼럼)\]"


def _line_rule(name: str, cues: tuple[tuple[str, ...], ...], *patterns: str) -> NoiseRule:
    return NoiseRule(name, cues, re.compile("|".join(patterns)), by_line=True)


def _line_start_rule(name: str, cues: tuple[tuple[str, ...], ...], pattern: str) -> NoiseRule:
    return NoiseRule(name, cues, re.compile(rf"\n *+{pattern}", re.M), at_line_start=True)


CHARACTER_RULES = (
    NoiseRule("html_entity", (("&",),),
              re.compile(r"&(?:amp;)*(#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};|[A-Za-z][A-Za-z0-9]{1,30};)"), _entity),
    NoiseRule("html_code", (("<",), ("</",), ("cript", "tyle", "CRIPT", "TYLE")), re.compile(HTML_CODE, re.I)),
    NoiseRule("html_break", (("<",),),
              re.compile(rf"<{NO_CODE}(?:br|/br|/p|/div|/li|/tr|/h[1-6]){ATTRIBUTES}", re.I), "\n"),
    NoiseRule("html_tag", (("<",),),
              re.compile(rf"<!--(?<!['\"`]<!--)[^<>]{{0,1000}}-->|<{NO_CODE}/?(?:{HTML_TAGS}){ATTRIBUTES}", re.I)),
    NoiseRule("line_separator", (), re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]"), "\n", odd=True),
    NoiseRule("bad_character", (), re.compile(BAD_CHARACTER), odd=True),
    NoiseRule("odd_blank", (), re.compile(r"[^\S\n ]"), " ", odd=True),
)  # fmt: skip

# captions hold credits, and copyright lines follow reporters: what stands outside goes first
NEWS_RULES = (
    _line_start_rule("caption", (),  # ▲ 비 오는 거리 [사진=예시일보]
        rf"[▲△▼◀][^\n▲△▼◀]{{0,200}}?(?:[ⓒ©] ?{TAG_BODY}{{2,20}}|제공|/ ?{PRESS}"
        rf"|/?[\[(<〈]? ?{PICTURE} ?[=:ㅣ|]{TAG_BODY}{{1,40}})[\])>〉]?\.? *$"),
    _line_rule("picture_credit",  # [사진=예시일보], (사진 제공=예시군청)
        (("=", ":", "|", "ㅣ", "[사진]"), ("사진", "자료", "이미지", "그래픽", "영상", "출처")),
        rf"[\[(<〈【] ?{PICTURE} ?[=:ㅣ|]{TAG_BODY}{{0,60}}[\])>〉】]",
        rf"(?:[/|]|(?<=다\.)) ?{PICTURE} ?[=:ㅣ|][^\n.]{{0,40}}$",
        rf"^ *(?:{PICTURE} ?[=:ㅣ|]|\[사진\])[^\n]{{0,60}}{NO_SENTENCE}$"),
    _line_start_rule("time_stamp", (),  # 입력 2023.01.02 10:11 수정 2023.01.03 12:13
        rf"[\[(<]?{STAMP}(?:{TIME}[ |/·,ㅣ]{{0,3}}|[ |/·,ㅣ]{{0,3}}(?=[\])>]? *$|{STAMP}))"
        rf"(?:{STAMP}(?:{TIME})?[ |/·,ㅣ]{{0,3}}){{0,3}}[\])>]? *"),
    _line_start_rule("portal_buttons", (),  # 댓글 0개 공유
        rf"(?:(?:{BUTTON}[ |/·,]{{1,3}}){{1,9}}{BUTTON}|댓글 ?\d{{1,6}}개?) *$"),
    _line_rule("about_article", (("※", "■"), ("기사", "보도", "콘텐츠")),  # ※ 본 기사는 …
        rf"{SENTENCE_END} *[※■] ?(?:본|이|해당) ?(?:기사|보도 ?자료|콘텐츠)(?: ?내용)?[는은][^\n]{{0,200}}$"),
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
        rf"^ *{MARK} ?{HEADLINE}[^\n▶☞▷►]{{0,120}}$|{SENTENCE_END} *{MARK} ?{HEADLINE}{ITEM}{{0,80}}{ITEM_ENDS}",
        rf"^ *※ ?['‘\"“]?당신의 제보가 뉴스가 됩니다['’\"”]? *$|[☞◎] ?공감언론 ?뉴시스(?: ?{EMAIL})?"),
    _line_start_rule("news_footer", (),
        r"(?:(?:기사 ?제보 및 보도자료|많이 본 (?:기사|뉴스)|네이버에서 [^\n]{0,30}구독)"
        rf"[^\n]{{0,80}}{NO_SENTENCE}|\[?관련 ?기사\]? *)$"),
    _line_start_rule("company_footer", (),
        r"(?:사업자 ?등록번호|통신판매(?:업)?(?:신고)?(?:번호)?|대표이사|발행인|편집인|등록번호)"
        rf" *[:：][^\n]{{0,200}}{NO_SENTENCE}$"),
    _line_start_rule("speaker_label", (),  # of a broadcast
        r"(?:[\[<◀【] ?(?:앵커(?: ?멘트)?|(?<=\[)기자(?=\])|리포트) ?[\]>▶】]:?|앵커(?: ?멘트)? ?[:：]) *"),
    _line_rule("dateline",  # (서울=연합뉴스) 홍길동 기자 =
        (("[", "(", "【"), ("=", "|", "기자")),
        rf"(?<!\[)[\[(【][가-힣A-Z·,/ ]{{2,15}}[=/|] ?{PRESS}(?: ?{REPORTERS})?[\])】](?: ?{REPORTERS}(?: ?=|$))?",
        rf"(?:[\[【]|^ *\(){PRESS} ?[=/| ] ?(?:[가-힣]{{2,3}} ?)?{REPORTERS}[\])】]",
        rf"^ *[\[(【]{REPORTER}[\])】](?=.)|\[{REPORTER}\]"),
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
    NoiseRule("bracket_gap", (("(, ", ", )"),), re.compile(  # what an extractor emptied: (, 1915년 ~ ), (發酵, )
        r"\((?=,)(?<=[\w\"'”’」』》 ]\()(?:, ?){1,9} ?(?=[\w\"'“‘《])"
        r"|,(?=(?: ?,){0,9} \))(?<=[가-힣\u3040-\u30ff\u3400-\u9fff],)[, ]{1,19}"),
        lambda match: match[0].rstrip(", ")),
    NoiseRule("wiki_placeholder", (("_",), ("formula_", "codice_")), re.compile(  # of a formula or code
        r" ?(?<![A-Za-z0-9_.])(?:formula|codice)_\d{1,4}(?![A-Za-z0-9_(\[])")),
    NoiseRule("blanks", (("  ",),), re.compile("  +"), " "),
    NoiseRule("line_end", ((" \n",),), re.compile(" \n"), "\n"),
    NoiseRule("line_edges", (("\n",),), re.compile("\n[ \n]+"), "\n"),
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
    headed = ""  # the text last searched for heads of lines
    has_head = False
    for rule in rules:
        if rule.odd:
            if is_odd is None:
                is_odd = ODD_CHARACTER.search(text) is not None
            if not is_odd:
                continue
        elif rule.at_line_start:
            if headed is not text:
                headed, has_head = text, LINE_HEAD.search("\n" + text) is not None
            if not has_head:
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
    """``count_glosses``: Han and Kana of a gloss, as in 대한민국(大韓民國), count as well; so says the paper's rule."""

    min_chars: int
    max_han_kana: int
    count_glosses: bool = False


# in brackets after Hangul or what closes a title; one bracket more inside
GLOSS = re.compile(
    r"[(（](?:(?<=[가-힣’”」』》〉>\"'][(（])|(?<=[가-힣’”」』》〉>\"'] [(（])|(?<=[가-힣][!?][(（]))"
    r"(?:[^()（）\n]{1,60}+|[(（][^()（）\n]{0,60}[)）]){1,6}+[)）]"
)
HANGUL = re.compile("[가-힣]")


def is_too_short(sentence: str, limits: SentenceLimits) -> bool:
    return len(sentence) < limits.min_chars


def has_many_han_or_kana(text: str, limits: SentenceLimits) -> bool:
    """More than ``max_han_kana`` code points of U+3040-30FF, U+3400-9FFF or U+F900-FAFF: the paper's rule."""
    return len(text) > limits.max_han_kana and len(HAN_OR_KANA.findall(text)) > limits.max_han_kana


def has_too_many_han_or_kana(sentence: str, limits: SentenceLimits) -> bool:
    """As the paper says, but for glosses in a sentence that is Korean without them.

    Of 208,795 sentences of Wikipedia the paper's rule drops 1,561, nearly all of them good Korean that shows how its
    names are written in Han characters; this one drops 72. A sentence with more Han and Kana in its glosses than Hangul
    outside goes all the same.
    """
    if limits.count_glosses or not has_many_han_or_kana(sentence, limits):
        return has_many_han_or_kana(sentence, limits)
    outside = GLOSS.sub("()", sentence)
    left = len(HAN_OR_KANA.findall(outside))
    glossed = len(HAN_OR_KANA.findall(sentence)) - left
    return left > limits.max_han_kana or glossed > len(HANGUL.findall(outside))


DROP_RULES = (is_too_short, has_too_many_han_or_kana)


def failed_rule(sentence: str, limits: SentenceLimits) -> str | None:
    """Name of the first rule that drops the sentence, or None."""
    for rule in DROP_RULES:
        if rule(sentence, limits):
            return rule.__name__
    return None
