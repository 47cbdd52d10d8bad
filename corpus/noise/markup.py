"""Rules for markup: HTML, control characters, unusual spaces, hashtags, empty brackets, placeholders of extractors.

Zero-width characters are removed, except those that join emoji. Letters of old Hangul (ᄒᆞᆫ) stay unchanged.
"""

from __future__ import annotations

import html
import re
from html.entities import html5

from corpus.noise.rule import NoiseRule

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
