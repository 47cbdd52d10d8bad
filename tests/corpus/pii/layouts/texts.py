"""Texts in every layout people use: lists, tables with a header, cells, JSON, key=value, prose; labels all around.

A careful reader must agree on every case, so these are never drawn:

| not drawn | because |
|---|---|
| a separator that a value holds itself (``:`` and MAC, ``,`` and an address with a flat) | it parts the value |
| a value without label whose form is not telling (see ``values``) | it may be an order number |
| CARD, BRN, DRIVER, PASSPORT, TEL not mobile: unlabelled behind a label of another type | may be its second value |
| a URL with path before ``, ; = : / _``, any URL before ``/ : = _`` or ``&`` | they continue the URL |
| EMAIL, MENTION or URL next to ``_`` | ``_`` belongs to their names |
| IP before ``:`` or ``/`` and a digit, MAC next to ``:`` | a port, a network, another pair |
| ADDRESS before ``:`` or a blank; next to a blank | ``12:90`` is a time; numbers would join |
| MENTION next to ``=`` without label, in ``{}`` or backticks, before ``/`` and a Latin letter | code, packages |
| values with brackets inside brackets; values with blanks parted by blanks | the borders are unclear |
| 만 behind digits; 가, 로, 이 … behind addresses; 이 and others of the digits behind Hangul digits | another reading |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.corpus.pii.layouts.values import WRITINGS, Value, Writing


@dataclass(frozen=True, slots=True)
class Case:
    """A text, its values with their offsets in order, and in which layout, by which labels and disguise."""

    text: str
    spans: tuple[tuple[int, int, Value], ...]
    layout: str
    label: str
    disguise: str = "none"


Piece = str | Value

LABELS: dict[str, tuple[str, ...]] = {
    "TEL": ("전화", "전화번호", "연락처", "휴대폰", "핸드폰", "휴대폰번호", "TEL", "tel", "phone"),
    "RRN": ("주민번호", "주민등록번호", "rrn"),
    "FRN": ("외국인등록번호", "외국인번호", "frn"),
    "EMAIL": ("이메일", "메일", "email", "E-mail"),
    "IP": ("아이피", "IP", "IP주소", "ip"),
    "MAC": ("맥주소", "MAC주소", "MAC", "mac"),
    "MENTION": ("인스타", "인스타그램", "트위터", "유튜브"),
    "ADDRESS": ("주소", "배송지", "자택"),
    "ACCOUNT": ("계좌", "계좌번호", "입금계좌", "신한은행", "국민은행", "농협", "account"),
    "PASSPORT": ("여권", "여권번호", "passport"),
    "DRIVER": ("면허", "면허번호", "운전면허번호"),
    "BRN": ("사업자번호", "사업자등록번호"),
    "HEALTH": ("건강보험증", "건강보험증번호", "보험증번호"),
    "CARD": ("카드", "카드번호", "신용카드", "card"),
    "PLATE": ("차량번호", "번호판", "차량"),
    "URL": ("홈페이지", "링크", "사이트", "url"),
}
"""Words that announce a type; the first two head columns."""

SEPARATORS = {
    "comma": ",", "comma blank": ", ", "·": "·", "‧": "‧", "・": "・", "slash": "/", "slash blanks": " / ",
    "pipe": "|", "pipe blanks": " | ", "tab": "\t", "semicolon": ";", "semicolon blank": "; ", "newline": "\n",
    "CRLF": "\r\n", "=": "=", ":": ":", "_": "_", "blank": " ", "br": "<br>", "li": "</li><li>", "dash line": "\n- ",
    "item": "\n• ",
}  # fmt: skip
WRAPS = (
    "()", "[]", "{}", "<>", "（）", "［］", "「」", "『』", "〈〉", "《》", "【】", "〔〕", '""', "''", "“”", "‘’",
    "``", "«»", "****",
)  # fmt: skip
GLUES = (": ", ":", " : ", " ", "", "=", " = ", "는 ", " - ", "\t", "|", "\n", " → ", "：")
NAMES = ("홍길동", "김윤슬", "나달빛", "이가람")
PARTICLES = ("은", "는", "이", "가", "을", "를", "로", "으로", "에서", "입니다", "이고", "이며", "인데요", "과", "와",
             "도", "까지", "의", "이에요", "예요")  # fmt: skip
LONG_PARTICLES = ("에서", "입니다", "이고", "이며", "인데요")
OPENINGS = ("", "", "", "안녕하세요. ", "명단입니다.\n", "참고: ", "홍길동 ", "(확인) ")
ENDINGS = ("", "", "", ".", " 끝.", "\n", " 적어 두었습니다.", " 입니다", "\n감사합니다.")
PROSE_ENDINGS = (" 적어 두었다. ", " 맞습니다. ", ", ", " 남겼고 ", "\n")

UNMISTAKABLE = ("TEL mobile", "RRN", "FRN", "EMAIL", "IP", "MAC", "URL", "MENTION", "PLATE", "ADDRESS")
_TELLING = tuple(w for w in WRITINGS if w.is_telling)
_BY_TYPE = {name: tuple(w for w in WRITINGS if w.type == name) for name in LABELS}
_CLEAR = tuple(w for w in _TELLING if f"{w.type} {w.name}".startswith(UNMISTAKABLE))


def build(pieces: Sequence[Piece], layout: str, label: str, disguise: str = "none") -> Case:
    """The case whose text is the pieces one after the other."""
    text, spans = "", []
    for piece in pieces:
        if isinstance(piece, Value):
            spans.append((len(text), len(text) + len(piece.text), piece))
            piece = piece.text
        text += piece
    return Case(text, tuple(spans), layout, label, disguise)


def any_writing(rng: Random) -> Writing:
    """Of a type first, so that all types are drawn equally often."""
    return rng.choice(_BY_TYPE[rng.choice(tuple(LABELS))])


def telling_writing(rng: Random, is_clear: bool = False) -> Writing:
    """A spelling that needs no label; ``is_clear``: even next to labels of other types."""
    choices = _CLEAR if is_clear else _TELLING
    name = rng.choice(sorted({w.type for w in choices}))
    return rng.choice([w for w in choices if w.type == name])


def particle(rng: Random, value: Value) -> str:
    """A particle that can follow the value directly."""
    if value.type == "ADDRESS" or value.text[-1] == "/":
        return rng.choice(LONG_PARTICLES)
    return "" if value.writing == "Hangul" else rng.choice(PARTICLES)


def goes_between(left: Value | None, separator: str, right: Value, label: str = "") -> bool:
    """Whether a reader sees two values; ``label`` is directly before the right one."""
    sign = separator.strip(" ")
    if sign and any(sign in value.text for value in (left, right) if value):
        return False
    if sign == ":" and "MAC" in (right.type, left and left.type):
        return False
    if left and not _can_end(left, sign, (label or right.text)[0]):
        return False
    if label:
        return True
    if not sign and left and (" " in right.text or "ADDRESS" in (right.type, left.type)):
        return False
    if sign == "_" and right.type in ("EMAIL", "MENTION", "URL"):
        return False
    return not (sign == "=" and right.type == "MENTION")


def _can_end(left: Value, sign: str, follows: str) -> bool:
    """Whether ``left`` is over at that sign."""
    if left.type == "URL" and (sign in ("/", ":", "=", "_", "&") or (left.writing == "path" and sign in (",", ";"))):
        return False
    if sign == "_" and left.type in ("EMAIL", "MENTION"):
        return False
    if left.type == "IP" and sign in (":", "/") and follows.isdigit():
        return False
    if left.type == "ADDRESS" and sign in (":", ""):
        return False
    if left.type == "MENTION" and (sign == "=" or (sign == "/" and follows.isascii() and not follows.isdigit())):
        return False
    return bool(sign) or " " not in left.text


def fits_wrap(value: Value, wrap: str) -> bool:
    """Whether brackets or quotes may enclose the value."""
    if value.type == "MENTION" and wrap in ("{}", "``", "****"):
        return False
    return not re.search(r"[()]", value.text) or not re.search(r"[()（）\[{<]", wrap)


def draw_label(rng: Random, kind: str, is_column: bool = False) -> str:
    """A word for that type; the head of a column if ``is_column``."""
    return rng.choice(LABELS[kind][: 2 if is_column else None])


def glue(rng: Random, label: str, value: Value) -> str:
    """Text that may be between a label and its value."""
    drawn = rng.choice(GLUES)
    starts_like_a_label = value.text[0] >= "ㄱ"
    if drawn in ("", "는 ") and (label[-1] < "가" or starts_like_a_label):
        return ": "
    has_final_consonant = (ord(label[-1]) - 0xAC00) % 28 > 0
    return "은 " if drawn == "는 " and has_final_consonant else drawn


def writing_of(rng: Random, kind: str) -> Writing:
    """Any writing of that type."""
    return rng.choice(_BY_TYPE[kind])
