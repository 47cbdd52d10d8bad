"""TEL: telephone numbers of Korea (metadata of libphonenumber for region KR).

Replacements come from unused blocks: 010-0xxx and 010-1xxx were never assigned, local exchanges start with 2 to 9, and
the 15xx series has no 1511. The patterns therefore do not exclude these blocks.
"""

from __future__ import annotations

import re
from random import Random

from corpus.pii.formats.shapes import digits_of, draw_digits, refill
from corpus.pii.types import BY_LABEL, CLEAR, LIKELY, NOBODY, Format, PiiType, words

# no letter before a number, except the last letter of a label: Tel010-…, HP010-…
_LABEL_GLUED = (
    r"(?:(?<![A-Za-z])|(?<=[Tt][Ee][Ll])|(?<=[Ff][Aa][Xx])|(?<=[Hh][Pp])|(?<=[Oo][Nn][Ee])|(?<=[Ii][Ll][Ee])"
    r"|(?<=\.com)|(?<=\.net)|(?<=\.kr)|(?<=[Cc]ell))"  # of an e-mail address without a space after it
)
START = rf"(?<![0-9])(?<![0-9A-Za-z]-){_LABEL_GLUED}"
END = r"(?![0-9]|-[0-9]|-[A-Z](?![A-Za-z]))"
"""Context of numbers in groups; any other character may be next to them."""
BARE_START = rf"{START}(?<![0-9]\.)(?<![\s:][0-9][~_])"  # 2~8348833784 is one number
BARE_END = r"(?![0-9A-Za-z]|[-.][0-9]|\.[A-Za-z])"
"""Context of numbers without separators: not decimals, not parts of codes or file names."""

_SEP = r"(?: ?[-.·)/_~*] ?| {1,2})"
_START = rf"(?<![0-9])(?<![0-9A-Za-z]-)(?:{_LABEL_GLUED}|(?<=(?<![A-Za-z0-9])[A-Za-z]))"
_AREA = "(?:2|3[1-3]|4[1-4]|5[1-5]|6[1-4])"
_NATIONWIDE = (
    "1(?:5(?:11|22|33|44|5[15]|66|77|88|99)|6(?:0[01]|11|22|33|44|55|6[0168]|7[017]|88|99)"
    "|8(?:00|11|22|33|44|55|66|77|88|99))"
)

MOBILE = re.compile(
    rf"{_START}(?:(?:010{_SEP}|\(010\) ?-? ?)[0-9]{{4}}{_SEP}?|010[0-9]{{4}}{_SEP}"
    rf"|(?:01[16-9]{_SEP}|\(01[16-9]\) ?-? ?)[0-9]{{3,4}}{_SEP}?|01[16-9][0-9]{{3,4}}{_SEP})[0-9]{{4}}{END}"
)
INTERNATIONAL = re.compile(
    rf"{START}(?:\(\+ ?82\)|\+ ?82\)?|(?:\((?:00 ?)?82\)|(?:(?:00|011)[ -]?)?82\)?)(?=[- ]))"
    rf"[- .)]{{0,2}}(?:\(0\)[- ]?)?(?:0?(?:1[016-9]|70|50[0-9]){_SEP}?[0-9]{{3,4}}"
    rf"|(?:0?{_AREA}{_SEP}|(?<=\+82)[- ]?(?:{_AREA}|\(0?{_AREA}\)))[0-9]{{3,4}}){_SEP}?[0-9]{{4}}{END}"
    rf"|{BARE_START}8210[0-9]{{8}}{BARE_END}"
)
_LINES = r"(?=-[0-9](?![0-9\-]))"  # 02-734-2211-3: the lines 2211 to 2213
LANDLINE = re.compile(rf"{_START}(?:\(0{_AREA}\) ?-? ?|0{_AREA}{_SEP})[0-9]{{3,4}}{_SEP}[0-9]{{4}}(?:{_LINES}|{END})")
LANDLINE_BARE = re.compile(rf"{BARE_START}0{_AREA}[0-9]{{7,8}}{BARE_END}")
# without the leading zero, which spreadsheets remove
MOBILE_SHORT = re.compile(rf"{START}10{_SEP}?[0-9]{{4}}{_SEP}?[0-9]{{4}}{BARE_END}")
# 600-1000달러 is a range; 통 is a unit, not the start of 통화 (call)
_COUNTED = "(?:년|호|번지|원|명|통|개|건|만|억)"
_NO_UNIT = f"(?!{_COUNTED}| {_COUNTED}(?![가-힣])| ?(?:달러|루멘|칼로리|kg|m)(?![a-z]))"
LOCAL = re.compile(rf"{BARE_START}[1-9][0-9]{{2,3}}-[0-9]{{4}}{BARE_END}{_NO_UNIT}")
DEPARTMENT = re.compile(rf"(?<=[가-힣][과실] ){LOCAL.pattern}")  # 총무과 734-2211
MOBILE_ODD = re.compile(rf"{START}(?![0-9]{{11}})0[- ]?1[- ]?0(?:[-. ]?[0-9]){{8}}{BARE_END}")  # 010-34-82-99-11
SERVICE = re.compile(
    rf"{_START}(?:0(?:70|[35]0[0-9]?){_SEP}[0-9]{{3,4}}{_SEP}?|0(?:70|[35]0[0-9]?)[0-9]{{3,4}}{_SEP}"
    rf"|\(070\) ?-? ?[0-9]{{3,4}}{_SEP}?|0[68]0{_SEP}[0-9]{{3,4}}{_SEP}?)[0-9]{{4}}{END}"
)
BARE = re.compile(
    rf"{BARE_START}(?![01]*{BARE_END})0(?:10[0-9]{{8}}|1[16-9][0-9]{{7,8}}|70[0-9]{{7,8}}|80[02-9][0-9]{{6}}){BARE_END}"
)
PERSONAL_BARE = re.compile(rf"{BARE_START}0[35]0[0-9]?[0-9]{{7,8}}{BARE_END}")  # or an ISBN
NATIONWIDE = re.compile(
    rf"{BARE_START}{_NATIONWIDE}(?P<sep> ?[-.~_] ?| |)(?P<last>[0-9]{{4}})"
    rf"{END}(?![A-Za-z]|\.[0-9A-Za-z]|회){_NO_UNIT}"
)

_TELEPHONE = re.compile(
    r"(?:(?:전화|팩스|전송|☎|☏|연락처|사무실|직통|내선|문의처?|(?<![가-힣])폰|[핸휴]대?폰|(?i:tel|fax|phone)|(?<![A-Za-z])[TF](?=[.)])"
    r"|[0-9]{3,4}-[0-9]{4} ?[/,~])[은는]?[^0-9가-힣]{0,6}(?:번호[^0-9]{0,4})?"
    r"|[가-힣](?:[과실팀국원소]|센터|부서)[ :(]{1,2}|[\n\t|,;>] *)$"  # 총무과 734-2211, or the cell of a column
)
_YEAR_INSIDE = re.compile("[-)]20[0-2][0-9]-")
_IN_PATH = re.compile(r"[0-9][./]$|제$")
_YEAR_WORD = re.compile(r" ?\)?(?:년|년대|세기|시즌|학년도|때|까지)")


def _is_not_a_span_of_years(match: re.Match[str], label: str | None) -> bool:
    """Excludes years such as ``1588-1598년`` and ``(1545-1598)``; without a hyphen, a label is required."""
    year = _YEAR_WORD.match(match.string, match.end())
    if label == "TEL":
        return not (year and "년" in year[0])
    first, last = match[0][:4], match["last"]
    is_time = first in ("1600", "1800") and last[2:] in ("00", "30") and last <= "2400"
    may_end_in_it = first == last or not (1500 <= int(last) <= 2100 or is_time)
    return not year and match["sep"].strip() in ("-", "_") and may_end_in_it


def _is_local(match: re.Match[str], label: str | None) -> bool:
    """Excludes two years, and numbers that only a label such as 상담 announces, which others have too."""
    first, last = match.group().split("-")
    if 1500 <= int(first) <= 2100 and 1500 <= int(last) <= 2100:
        return False
    before = match.string[max(0, match.start() - 14) : match.start()]
    return label == "TEL" and bool(_TELEPHONE.search(before) or not match.start())


def _is_not_in_path(match: re.Match[str], label: str | None) -> bool:
    """Excludes ``2023/02/123/4567``, ``0.02 1234 5678``, ``제02-2023-1234호`` and ``신고번호 033-2019-0447``."""
    before = match.string[max(0, match.start() - 2) : match.start()]
    sep = match[0].strip("(0123456789)")[:1]
    if label in NOBODY and _YEAR_INSIDE.search(match[0]):
        return False
    return not (_IN_PATH.search(before) and (sep in (before[-1], " ") or match.string.startswith("호", match.end())))


def fake_tel(rng: Random, value: str) -> str:
    """A number of the same kind (mobile, landline, internet, free, nationwide) from an unused block."""
    digits = digits_of(value)
    lead = "0082" if digits.startswith("0082") else "82" if digits.startswith("82") and len(digits) > 9 else ""
    lead += "0" if digits[len(lead) :].startswith("0") else ""
    body = digits[len(lead) :]
    if not lead and len(body) == 10 and body.startswith("10"):
        fake = "10" + rng.choice("01") + draw_digits(rng, 7)
    elif not lead and len(body) < 8:
        fake = "1" + draw_digits(rng, len(body) - 1)
    elif not lead:
        fake = "1511" + rng.choice("3456789") + draw_digits(rng, 3)
    elif body.startswith("1"):  # old 01X numbers may be one digit shorter
        fake = body[:2] + rng.choice("01") + draw_digits(rng, len(body) - 3)
    elif body.startswith("2"):
        fake = "21" + draw_digits(rng, len(body) - 2)
    elif body[0] in "3456" and body[1] in "12345":
        area = rng.choice(words("31 32 33 41 42 43 44 51 52 53 54 55 61 62 63 64"))
        fake = area + "1" + draw_digits(rng, len(body) - 3)
    else:
        known = 3 if body[0] in "35" else 2
        fake = body[:known] + "0" + draw_digits(rng, len(body) - known - 1)
    return refill(value, lead + fake)


TEL = PiiType(
    "TEL",
    (
        Format(MOBILE, CLEAR, digits=10, leads="0("),
        Format(MOBILE_SHORT, BY_LABEL, digits=10, leads="1"),
        Format(LOCAL, BY_LABEL, _is_local, digits=7, leads="123456789"),
        Format(DEPARTMENT, LIKELY, lambda m, label: not "1500" <= m[0][:-5] <= "2100", digits=7, leads="123456789"),
        Format(INTERNATIONAL, CLEAR + 1, digits=10, leads="+(08"),
        Format(LANDLINE, CLEAR, _is_not_in_path, digits=9, leads="0("),
        Format(LANDLINE_BARE, BY_LABEL, digits=9, leads="0"),
        Format(SERVICE, CLEAR, digits=10, leads="0("),
        Format(BARE, CLEAR, digits=10, leads="0"),
        Format(PERSONAL_BARE, LIKELY, digits=10, leads="0"),
        Format(MOBILE_ODD, LIKELY, lambda m, label: label == "TEL" or "-" in m[0], digits=11, leads="0"),
        Format(NATIONWIDE, LIKELY, _is_not_a_span_of_years, leads="1"),
    ),
    fake_tel,
    "010-0000-0000",
)
