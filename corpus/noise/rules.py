"""The table of noise rules: markup, text around news articles, layout. The examples of each row are also its test.

Zero-width characters are removed, except those that join emoji. Letters of old Hangul (ᄒᆞᆫ) stay unchanged.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from html.entities import html5

# every character that line_separator, bad_character or odd_blank changes, so one search is enough
ODD_CHARACTER = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\xa0\u00ad\u061c\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"
    "\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]"
)
# the start of every match of the rules with at_line_start, so one search is enough
LINE_HEAD = re.compile(
    r"\n *+(?:[▲△▼◀]|[\[(<【]? ?(?:기사|최초|최종|입력|수정|등록|승인|작성|송고|업데이트|게재|발행"
    r"|댓글|좋아요|공유|스크랩|인쇄|프린트|글자|페이스북|트위터|카카오|URL|링크|북마크|본문|앵커|리포트"
    r"|많이 본|네이버에서|관련"
    r"|사업자|통신판매|대표이사|편집인|기자))"
)


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """A linear-time pattern and its replacement, with an example.

    Attributes:
        cues: one string of each group must occur; a fast check before the pattern runs.
        by_line: apply the rule to each line separately.
        at_line_start: the pattern starts with the previous line end, which is kept; needs ``LINE_HEAD`` in the text.
        odd: needs an ``ODD_CHARACTER`` in the text.
    """

    name: str
    before: str
    after: str
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
        """The changed text and the number of changes."""
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


def line_rule(name: str, before: str, after: str, cues: tuple[tuple[str, ...], ...], *patterns: str) -> NoiseRule:
    return NoiseRule(name, before, after, cues, re.compile("|".join(patterns)), by_line=True)


def line_start_rule(name: str, before: str, after: str, pattern: str) -> NoiseRule:
    """A rule whose matches start at the start of a line."""
    return NoiseRule(name, before, after, (), re.compile(rf"\n *+{pattern}", re.M), at_line_start=True)


# --- markup: HTML, control characters, unusual spaces

# conjoining jamo; U+115F and U+1160 are fillers for a missing letter next to them
OLD_HANGUL = "\u1100-\u115e\u1161-\u11ff\ua960-\ua97f\ud7b0-\ud7ff"
EMOJI = "\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
# control characters, direction marks, private use, variation selectors, color codes of terminals
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
    "|contributor|mediawiki|parentid|revision|sha1|siteinfo"  # of exports of wikis
)
ATTRIBUTES = r"(?:\s+[A-Za-z_:][\w:.-]{0,60}\s{0,9}=[^<>]{0,1000})?\s{0,9}/?>"
# Foo<A> is a type, (?P<a>…) a group, '<p>' a mention
NO_CODE = r"(?!(?<=[A-Za-z0-9_]<)(?-i:[A-Z]>)|(?<=\?P<)|(?<=['\"`‘“]<)[^<>]{1,60}>['\"`’”])"

# with its content; another opening tag inside must be quoted, so the time is linear
HTML_CODE = (
    r"<(?<!['\"`‘“]<)(script|style)(?:\s[^<>]{0,1000})?>(?!\.\.\.<)"
    r"(?:[^<]++|(?<=['\"(+])<|<(?!/?(?:script|style)\b))*+</\1\s{0,9}>"
)

# a tag after a quote or bracket is a mention, #include and #ffeeaa are code
HASHTAG = (
    r"#(?<![\w&#/\\(\[<〈《'\"“‘=:;→]#)(?!(?:include|define|undef|if|ifn?def|elif|else|endif|pragma|(?:end)?region"
    r"|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{3})(?![A-Za-z0-9_]))[^\W\d_]\w*"
)
MAX_TAG_WORDS = 2  # more tags in a row are no part of a sentence
PLACEHOLDER = r"(?:formula|codice)_\d{1,4}(?![A-Za-z0-9_(\[])"


def _entity(match: re.Match[str]) -> str:
    """The character of a numeric or known entity; ``&s2;`` of a program stays unchanged."""
    name = match[1]
    return html.unescape(f"&{name}") if name.startswith("#") or name in html5 else match[0]


MARKUP_RULES = (
    NoiseRule("html_entity", "사과 &amp; 배", "사과 & 배", (("&",),),
              re.compile(r"&(?:amp;)*(#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};|[A-Za-z][A-Za-z0-9]{1,30};)"), _entity),
    NoiseRule("html_code", "앞<script>a < b</script>뒤", "앞뒤",
              (("<",), ("</",), ("cript", "tyle", "CRIPT", "TYLE")), re.compile(HTML_CODE, re.I)),
    NoiseRule("html_break", "첫 줄<br/>둘째 줄", "첫 줄\n둘째 줄", (("<",),),
              re.compile(rf"<{NO_CODE}(?:br|/br|/p|/div|/li|/tr|/h[1-6]){ATTRIBUTES}", re.I), "\n"),
    NoiseRule("html_tag", "<b>굵은</b> 글씨", "굵은 글씨", (("<",),),
              re.compile(rf"<!--(?<!['\"`]<!--)[^<>]{{0,1000}}-->|<{NO_CODE}/?(?:{HTML_TAGS}){ATTRIBUTES}", re.I)),
    NoiseRule("line_separator", "앞\r\n뒤", "앞\n뒤", (), re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]"), "\n",
              odd=True),
    NoiseRule("bad_character", "한\u200b국\ufeff어", "한국어", (), re.compile(BAD_CHARACTER), odd=True),
    NoiseRule("odd_blank", "띄운\u00a0글", "띄운 글", (), re.compile(r"[^\S\n ]"), " ", odd=True),
)  # fmt: skip

# --- text around news articles: captions, credits, time stamps, bylines, links, footers

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
# a closing bracket or a line end closes the tag
TAG_BODY = r"[^\[\](){}<>〈〉\n]"
MARK = "[▶☞▷►](?<![▶☞▷►]{2})[▶☞▷►]*+"  # several marks start one item
ITEM = "[^\\n▶☞▷►.!?]"
ITEM_ENDS = "(?= *(?:[▶☞▷►]|$))"
# a line that ends like a sentence is a sentence
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

# captions contain credits, and copyright lines follow reporters: the outer text is removed first
NEWS_RULES = (
    line_start_rule("caption", "▲ 비 오는 거리 [사진=예시일보]\n비가 왔다.", "비가 왔다.",
        rf"[▲△▼◀][^\n▲△▼◀]{{0,200}}?(?:[ⓒ©] ?{TAG_BODY}{{2,20}}|제공|/ ?{PRESS}"
        rf"|/?[\[(<〈]? ?{PICTURE} ?[=:ㅣ|]{TAG_BODY}{{1,40}})[\])>〉]?\.? *$"),
    line_rule("picture_credit", "비가 왔다. (사진 제공=예시군청)", "비가 왔다.",
        (("=", ":", "|", "ㅣ", "[사진]"), ("사진", "자료", "이미지", "그래픽", "영상", "출처")),
        rf"[\[(<〈【] ?{PICTURE} ?[=:ㅣ|]{TAG_BODY}{{0,60}}[\])>〉】]",
        rf"(?:[/|]|(?<=다\.)) ?{PICTURE} ?[=:ㅣ|][^\n.]{{0,40}}$",
        rf"^ *(?:{PICTURE} ?[=:ㅣ|]|\[사진\])[^\n]{{0,60}}{NO_SENTENCE}$"),
    line_start_rule("time_stamp", "입력 2023.01.02 10:11 수정 2023.01.03 12:13\n비가 왔다.", "비가 왔다.",
        rf"[\[(<]?{STAMP}(?:{TIME}[ |/·,ㅣ]{{0,3}}|[ |/·,ㅣ]{{0,3}}(?=[\])>]? *$|{STAMP}))"
        rf"(?:{STAMP}(?:{TIME})?[ |/·,ㅣ]{{0,3}}){{0,3}}[\])>]? *"),
    line_start_rule("portal_buttons", "댓글 0개 공유\n비가 왔다.", "비가 왔다.",
        rf"(?:(?:{BUTTON}[ |/·,]{{1,3}}){{1,9}}{BUTTON}|댓글 ?\d{{1,6}}개?) *$"),
    line_rule("about_article", "비가 왔다. ※ 본 기사는 자동으로 작성되었습니다.", "비가 왔다.",
        (("※", "■"), ("기사", "보도", "콘텐츠")),
        rf"{SENTENCE_END} *[※■] ?(?:본|이|해당) ?(?:기사|보도 ?자료|콘텐츠)(?: ?내용)?[는은][^\n]{{0,200}}$"),
    line_rule("copyright", "비가 왔다. 무단 전재-재배포 금지", "비가 왔다.",
        (("ⓒ", "©", "무단", "ights r", "(c)", "(C)"), ("ⓒ", "©", "금지", "ights r", "opyright", "저작권자")),
        r"(?:^ *[-*※] ?)?(?:Copyrights? ?(?:ⓒ|©|\([cC]\))(?:[^\n.]|\.(?=\S)){0,60}\.?|All rights reserved\.?)",
        rf"(?:[-*※] ?)?[<〈\[(]? ?(?:[-*※] ?)?저작권자 ?(?:ⓒ|©|\([cC]\)){TAG_BODY}{{0,80}}[>〉\])]?",
        rf"[<〈\[(] ?[ⓒ©]{TAG_BODY}{{2,80}}[>〉\])]",
        r"(?:[ⓒ©] ?[^\n.!?ⓒ©]{2,40}?)?[<〈\[(]? ?무단 ?(?:전재|복제|배포)"
        r"(?:[ ·,\-/]|및|와|과|수집|재?배포|복제|전재|(?:AI ?)?학습|이용|활용|를|을){0,12}"
        r"금지(?:합니다\.?|\.|(?![가-힣]))[>〉\])]?",
        r"[ⓒ©] ?(?:News1|뉴스1|뉴시스|연합뉴스)",
        rf"^ *[ⓒ©] ?[\w(][^\n]{{0,60}}{NO_SENTENCE}$"),
    line_rule("news_link", "비가 왔다. ▶ 관련기사 더 보기", "비가 왔다.",
        (("▶", "☞", "▷", "►", "■", "◇", "▣", "◎", "※", "[전화]", "[메일]", "[카카오톡]"),),
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
    line_start_rule("news_footer", "비가 왔다.\n많이 본 뉴스", "비가 왔다.",
        r"(?:(?:기사 ?제보 및 보도자료|많이 본 (?:기사|뉴스)|네이버에서 [^\n]{0,30}구독)"
        rf"[^\n]{{0,80}}{NO_SENTENCE}|\[?관련 ?기사\]? *)$"),
    line_start_rule("company_footer", "비가 왔다.\n사업자등록번호: 000-00-00000 대표 아무개", "비가 왔다.",
        r"(?:사업자 ?등록번호|통신판매(?:업)?(?:신고)?(?:번호)?|대표이사|발행인|편집인|등록번호)"
        rf" *[:：][^\n]{{0,200}}{NO_SENTENCE}$"),
    line_start_rule("speaker_label", "[앵커] 비가 왔다.", "비가 왔다.",
        r"(?:[\[<◀【] ?(?:앵커(?: ?멘트)?|(?<=\[)기자(?=\])|리포트) ?[\]>▶】]:?|앵커(?: ?멘트)? ?[:：]) *"),
    line_rule("dateline", "(서울=연합뉴스) 홍길동 기자 = 비가 왔다.", "비가 왔다.",
        (("[", "(", "【"), ("=", "|", "기자")),
        rf"(?<!\[)[\[(【][가-힣A-Z·,/ ]{{2,15}}[=/|] ?{PRESS}(?: ?{REPORTERS})?[\])】](?: ?{REPORTERS}(?: ?=|$))?",
        rf"(?:[\[【]|^ *\(){PRESS} ?[=/| ] ?(?:[가-힣]{{2,3}} ?)?{REPORTERS}[\])】]",
        rf"^ *[\[(【]{REPORTER}[\])】](?=.)|\[{REPORTER}\]"),
    line_rule("byline", "홍길동 기자 = 비가 왔다.", "비가 왔다.", (("=",), ("기자", "특파원")),
        rf"^ *(?:{PRESS} ?=? ?|[가-힣]{{2,4}}=)?{REPORTERS} ?=|^ *{PRESS} ?= ?{REPORTER}(?= |$)"),
    line_rule("reporter", "비가 왔다. 홍길동 기자 hong@example.com", "비가 왔다.",
        (("기자", "특파원", "논설위원"),),
        rf"{SENTENCE_END} *[/|=<\[(]? ?(?:(?:글|글[·ㆍ]사진|[가-힣]{{2,4}}) ?= ?)?(?:{EMAIL} ?/? ?)?(?:{PRESS} )?"
        rf"{REPORTER}(?: ?[=/|(\[]? ?{EMAIL}[)\]]?|·[가-힣]{{2,4}}|의 다른 기사[^\n]{{0,12}})?"
        r" *[>\])]?(?: ?\(끝\))? *$"),
    line_rule("news_desk", "비가 왔다. 온라인뉴스팀", "비가 왔다.", (("팀",), ("뉴스팀", "이슈팀", "콘텐츠팀")),
        rf"{SENTENCE_END} *[/|=\[(]? ?(?:{PRESS} ?)?(?:온라인|디지털|인터넷) ?(?:뉴스|이슈|콘텐츠)팀(?: ?기자)?"
        rf"(?: ?[=/(]? ?{EMAIL}\)?)?[\])]? *$"),
    line_rule("broadcast_closing", "비가 왔다. KBS 뉴스 홍길동입니다.", "비가 왔다.",
        (("B", "Y", "V", "널"), ("BS", "BC", "YTN", "MBN", "TV", "채널A"), ("니다",)),
        rf"{SENTENCE_END} *(?:지금까지 [^\n.!?]{{1,30}}에서 ?{STATION} ?(?:뉴스)? ?{NAME}|{STATION} ?뉴스,? ?{NAME}"
        rf"|{STATION} ?{NAME}(?= ?[\[(]))(?: ?[\[(]{EMAIL}[\])])?(?:입니다|이?었습니다|였습니다)(?:\.|(?= |$))"),
    line_rule("end_mark", "비가 왔다.(끝)", "비가 왔다.", (("끝",), ("(끝)", "<끝>", "[끝]")),
        r"(?:\(끝\)|<끝>|\[끝\]) *$"),
    # the last line of the text
    NoiseRule("press_email", "비가 왔다.\nhong@example.com", "비가 왔다.", (("@",),), re.compile(
        rf"([\n.])(?:(?<=\n)|(?<=다\.)) *[/|]? ?{EMAIL}(?:\s{{1,9}}{EMAIL})?\s*\Z"), r"\1"),
)  # fmt: skip

# --- hashtags, empty brackets, placeholders of extractors, spaces

# instead of the rule "hashtag" with corpus.keep_hashtag_words
HASHTAG_SIGN = NoiseRule(
    "hashtag_sign", "오늘은 #맛집 에 다녀왔다 #봄 #꽃 #산", "오늘은 맛집 에 다녀왔다", (("#",),),
    re.compile(rf" ?{HASHTAG}(?: ?{HASHTAG})*+"),
    lambda match: match[0].replace("#", "") if match[0].count("#") <= MAX_TAG_WORDS else "",
)  # fmt: skip

# after all other rules: hashtags, brackets without content, spaces
LAYOUT_RULES = (
    NoiseRule("hashtag", "오늘은 #맛집 #서울_여행 다녀왔다", "오늘은 다녀왔다", (("#",),), re.compile(HASHTAG)),
    # main() and string[] are code, a <> b is a comparison; with a comma inside they are left by a template
    NoiseRule("empty_bracket", "백남준( , )은 태어났다[]", "백남준은 태어났다",
        ((")", "]", "}", ">", "〉", "》", "」", "』", "】", "”", "’"),), re.compile(
        r"\((?<![A-Za-z0-9_\]>=({,`]\()(?<![A-Za-z0-9_]\(\)\()(?<![=:] \()(?<![A-Z]{2} \()"
        r"(?!(?<=['\"]\()\)['\"]|\) ?=>)\s*\)"
        r"|\((?<![A-Za-z0-9_]\()(?![,;:·/]\))\s*[,;:·/][\s,;:·/]*\)"
        r"|\[(?<![A-Za-z0-9_)\]>=({,'\"`]\[)(?<![A-Za-z0-9_=:,] \[)(?!\[[,;:·/]\])[\s,;:·/]*\]|\{(?<=[가-힣]\{)\s*\}"
        r"|<(?<=[가-힣]<)\s*>|<(?<![A-Za-z0-9_>]<)\s*>(?=[가-힣])|〈\s*〉|《\s*》|「\s*」|『\s*』|【\s*】|“\s*”|‘\s*’")),
    NoiseRule("bracket_gap", "홍길동(, 1915년 ~ )은 시인이다.", "홍길동(1915년 ~ )은 시인이다.",
        (("(, ", ", )"),), re.compile(  # what an extractor emptied; also (發酵, )
        r"\((?=,)(?<=[\w\"'”’」』》 ]\()(?:, ?){1,9} ?(?=[\w\"'“‘《])"
        r"|,(?=(?: ?,){0,9} \))(?<=[가-힣\u3040-\u30ff\u3400-\u9fff],)[, ]{1,19}"),
        lambda match: match[0].rstrip(", ")),
    # of a formula or code: a line of them goes, one in a sentence is a word of it
    NoiseRule("wiki_placeholder", "만약 formula_3가 존재하면\nformula_4, formula_5.", "만약 [수식]가 존재하면",
        (("_",), ("formula_", "codice_")), re.compile(
        rf"(^[^\w\n]*+(?:{PLACEHOLDER}[^\w\n]*+)++$\n?)|(?<![A-Za-z0-9_.]){PLACEHOLDER}", re.MULTILINE),
        lambda match: "" if match[1] else "[수식]" if match[0][0] == "f" else "[코드]"),
    NoiseRule("wiki_table", "!colspan=2|합계||188\n비가 왔다.", "비가 왔다.",
        (("!", "|"), ("span", "align", "style", "width", "scope", "bgcolor", "data-sort")), re.compile(
        r"^[!|]{1,2} ?(?:colspan|rowspan|v?align|style|width|scope|bgcolor|data-sort-type) ?=[^\n]*\n?", re.MULTILINE)),
    NoiseRule("blanks", "여러  칸", "여러 칸", (("  ",),), re.compile("  +"), " "),
    NoiseRule("line_end", "앞 \n뒤", "앞\n뒤", ((" \n",),), re.compile(" \n"), "\n"),
    NoiseRule("line_edges", "앞\n\n \n뒤", "앞\n뒤", (("\n",),), re.compile("\n[ \n]+"), "\n"),
)  # fmt: skip

NOISE_RULES = MARKUP_RULES + NEWS_RULES + LAYOUT_RULES
