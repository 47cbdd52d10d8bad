"""One value to a reader, another string to a pattern: digits, separators and blanks that only look different.

| disguise | of |
|---|---|
| full-width, Arabic-Indic digits | all numbers |
| invisible characters inside | all types |
| Hangul digits, all or some | TEL, RRN; with a label ACCOUNT and CARD |
| letters for digits (O1O, ㅇ1ㅇ) | the front of mobile numbers |
| spelled separators (다시, 점, 골뱅이, 닷컴, (at), [dot]) | TEL, RRN, EMAIL; labelled ACCOUNT, CARD, IP; www URL |
| blanks between all digits | TEL, RRN; with a label CARD, ACCOUNT |
| other hyphens | all numbers with hyphens; ``~`` and ``_`` with a label, except TEL, RRN, FRN |
| a line break behind a hyphen, an ``@`` or between the words of an address | numbers, EMAIL, ADDRESS |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from tests.corpus.pii.layouts.texts import ENDINGS, LABELS, OPENINGS, Case, Piece, build, draw_label, glue, particle
from tests.corpus.pii.layouts.values import WRITINGS, draw_value

_NUMBERS = (
    "TEL mobile", "TEL area", "TEL 070", "RRN hyphen", "FRN hyphen", "IP v4", "ACCOUNT hyphens", "PASSPORT new",
    "DRIVER hyphens", "BRN hyphens", "HEALTH hyphen", "CARD hyphens", "PLATE tight",
)  # fmt: skip
_HYPHENED = tuple(name for name in _NUMBERS if name.split()[0] not in ("IP", "PASSPORT", "PLATE"))
_ALL = (*(f"{w.type} {w.name}" for w in WRITINGS if w.is_telling), "ACCOUNT hyphens", "HEALTH hyphen")
_READ_OUT = ("TEL mobile", "RRN hyphen", "ACCOUNT hyphens", "CARD hyphens")
_PLAIN = ("TEL mobile", "RRN hyphen", "FRN hyphen")
_HANGUL = "공일이삼사오육칠팔구"
_HYPHENS = "‐‑‒–—―−－ㅡ"
_INVISIBLE = "\u200b\u00ad\ufeff\u2060\u200c\u200d"
_PLAIN_PARTICLES = ("", "", "로", "으로", "은", "는", "에서", "입니다")


@dataclass(frozen=True, slots=True)
class Disguise:
    """``change`` turns a plain value into its disguise; ``on`` names type and writing, ``telling`` those of them that
    need no label in it."""

    name: str
    on: tuple[str, ...]
    change: Callable[[Random, str], str]
    telling: tuple[str, ...] = _ALL


def _digits_from(zero: int) -> Callable[[Random, str], str]:
    table = {ord("0") + digit: zero + digit for digit in range(10)}
    return lambda rng, text: text.translate(table)


def _all_wide(rng: Random, text: str) -> str:
    return text.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})


def _with_invisible(rng: Random, text: str) -> str:
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(1, len(text))
        text = text[:place] + rng.choice(_INVISIBLE) + text[place:]
    return text


def _in_hangul(text: str, zero: str = "공") -> str:
    return "".join((zero if c == "0" else _HANGUL[int(c)]) if c in "0123456789" else c for c in text)


def _all_hangul(rng: Random, text: str) -> str:
    return _in_hangul(text, rng.choice("공공영")).replace("-", rng.choice(("-", " ", "", " 다시 ", "에 ")[:4]))


def _some_hangul(rng: Random, text: str) -> str:
    groups = text.split("-")
    chosen = rng.choice([place for place, group in enumerate(groups) if len(group) > 1])  # nobody reads out one digit
    if text.startswith("010") and rng.randrange(3) == 0:
        return text.replace("0", "공", 1).replace("10-", "1공-", 1)
    return "-".join(_in_hangul(group) if place == chosen else group for place, group in enumerate(groups))


def _letters(rng: Random, text: str) -> str:
    front = rng.choice(("O1O", "o1o", "01O", "O10", "ㅇ1ㅇ", "0l0", "0I0", "OIO", "ㅇIㅇ"))
    return front + text[3:]


def _spelled_hyphen(rng: Random, text: str) -> str:
    return text.replace("-", rng.choice(("다시", " 다시 ", " - ", " 에 ")[:3]))


def _spelled_at(rng: Random, text: str) -> str:
    at = rng.choice(("골뱅이", " 골뱅이 ", "(at)", " (at) ", " [at] ", "[at]", " at ", "@", " @ ", "(골뱅이)"))
    dot = rng.choice((".", "점", " 점 ", "닷", " [dot] ", "(dot)", "[.]", " dot "))
    dot = " dot " if at == " at " else "." if at == " @ " else dot
    user, host = text.split("@")
    if host.endswith(".com") and host.count(".") == 1 and dot in ("점", " 점 ", "닷"):
        host = host.replace(".com", rng.choice(("닷컴", " 닷컴", f"{dot}com")))
    else:
        host = host.replace(".", dot)
    changed = f"{user}{at}{host}"
    return changed if changed != text else f"{user}골뱅이{host}"


def _spelled_point(rng: Random, text: str) -> str:
    return text.replace(".", rng.choice(("점", " 점 ", " . ", "[.]")))


def _blanks(rng: Random, text: str) -> str:
    return " ".join(text if rng.randrange(2) else text.replace("-", ""))


def _hyphen(signs: str) -> Callable[[Random, str], str]:
    def change(rng: Random, text: str) -> str:
        return text.replace("-", rng.choice(signs))

    return change


def _broken(rng: Random, text: str) -> str:
    end = rng.choice(("\n", "\r\n", " \n"))
    places = [match.end() for match in re.finditer("[-@ ]", text)]
    place = rng.choice(places)
    return text[:place].rstrip(" ") + end + text[place:]


DISGUISES = (
    Disguise("full-width digits", (*_NUMBERS, "ADDRESS road"), _digits_from(ord("０"))),
    Disguise("full-width", (*_NUMBERS, "EMAIL plain", "MAC colons", "MENTION Latin"), _all_wide),
    Disguise("Arabic-Indic digits", _NUMBERS, _digits_from(0x660)),
    Disguise("Persian digits", _NUMBERS, _digits_from(0x6F0)),
    Disguise("invisible inside", _ALL, _with_invisible),
    Disguise("Hangul digits", _READ_OUT, _all_hangul, ("TEL mobile",)),
    Disguise("some Hangul digits", _READ_OUT, _some_hangul, ("TEL mobile",)),
    Disguise("letters for digits", ("TEL mobile",), _letters),
    Disguise("spelled hyphen", _READ_OUT, _spelled_hyphen, ("TEL mobile", "RRN hyphen")),
    Disguise("spelled at and dot", ("EMAIL plain",), _spelled_at),
    Disguise("spelled point", ("IP v4", "URL www"), _spelled_point, ("URL www",)),
    Disguise("blanks between digits", _READ_OUT, _blanks, ("TEL mobile",)),
    Disguise("other hyphens", _HYPHENED, _hyphen(_HYPHENS)),
    Disguise("tilde, underscore", _HYPHENED, _hyphen("~_"), _PLAIN),
    Disguise(
        "line break inside",
        (*_HYPHENED, "EMAIL plain", "ADDRESS road"),
        _broken,
        (*_PLAIN, "EMAIL plain", "ADDRESS road"),
    ),
)


def disguised(rng: Random) -> Case:
    """One disguised value, or two parted by a comma, a line end or words."""
    pieces: list[Piece] = [rng.choice(OPENINGS)]
    disguise = rng.choice(DISGUISES)
    has_label = False
    for number in range(rng.choice((1, 1, 1, 2))):
        on = rng.choice(disguise.on)
        writing = next(w for w in WRITINGS if f"{w.type} {w.name}" == on)
        plain = draw_value(rng, writing)
        value = replace(plain, text=disguise.change(rng, plain.text))
        is_bare = writing.is_telling and on in disguise.telling and not has_label and rng.randrange(2) == 0
        label = "" if is_bare else draw_label(rng, value.type)
        pieces += [
            rng.choice((", ", "\n", " 그리고 ")) if number else "",
            label,
            glue(rng, label, value) if label else "",
        ]
        pieces += [value, particle(rng, value) if value.text[-1] in "0123456789" else rng.choice(_PLAIN_PARTICLES)]
        has_label |= bool(label)
    assert LABELS
    return build([*pieces, rng.choice(ENDINGS)], "disguised", "before" if has_label else "none", disguise.name)
