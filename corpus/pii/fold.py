"""Forms that are one value to a reader, as one form to the patterns: a folded copy of a text, and the way back.

```
０１０－１２３４－５６７８   ٠١٠-١٢٣٤-٥٦٧٨   010‑12<U+200B>34‑5678   010&#45;1234&#45;5678      ─▶  010-1234-5678
공일공 다시 일이삼사 다시 5678   O1O-1234-5678   0 1 0 - 1 2 3 4 - 5 6 7 8   010-1234-⏎5678   ─▶  010-1234-5678
hong (at) example [dot] com   hong 골뱅이 example 닷컴   hong @ example.com                   ─▶  hong@example.com
```
Two steps. ``fold_signs`` reads single signs, everywhere. ``fold_disguises`` reads runs of words and letters that stand for
digits, dots and ``@``, and only where nothing else can be meant: nine digits in a row, a host with a known ending.
Patterns then search the copy, and values are replaced in the original.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

from corpus.pii.types import one_of


class Cut(NamedTuple):
    """``folded`` characters from ``at`` on stand for ``original`` characters from ``start`` on."""

    at: int
    folded: int
    start: int
    original: int


class Folded:
    """A folded text and where its characters stand in the original."""

    def __init__(self, text: str, steps: tuple[list[Cut], ...] = ()) -> None:
        self.text = text
        self.steps = tuple(filter(None, steps))
        self._places = [[cut.at for cut in step] for step in self.steps]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original that ``text[start:end]``, which is not empty, stands for."""
        for cuts, places in zip(reversed(self.steps), reversed(self._places), strict=True):
            start, end = _place(cuts, places, start)[0], _place(cuts, places, end - 1)[1]
        return start, end


def _place(cuts: list[Cut], places: list[int], index: int) -> tuple[int, int]:
    """Start and end in the text before of the character at ``index``."""
    number = bisect_right(places, index) - 1
    if number < 0:
        return index, index + 1
    cut = cuts[number]
    if index < cut.at + cut.folded:
        return cut.start, cut.start + cut.original
    start = index - cut.at - cut.folded + cut.start + cut.original
    return start, start + 1


def _rewrite(folded: Folded, changes: Iterable[tuple[int, int, str]]) -> Folded:
    """``folded`` with stretches of its text replaced, in order; one cut for each change of length."""
    text = folded.text
    pieces: list[str] = []
    cuts: list[Cut] = []
    position = length = 0
    for start, end, new in changes:
        pieces += [text[position:start], new]
        length += start - position
        if len(new) != end - start:
            cuts.append(Cut(length, len(new), start, end - start))
        length += len(new)
        position = end
    return Folded("".join(pieces) + text[position:], (*folded.steps, cuts)) if pieces else folded


# --- single signs

# Unicode 15: the zero of every script's digits, and characters that are never seen
_ZEROS = (
    "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0de6\u0e50\u0ed0\u0f20"
    "\u1040\u1090\u17e0\u1810\u1946\u19d0\u1a80\u1a90\u1b50\u1bb0\u1c40\u1c50\ua620\ua8d0\ua900\ua9d0"
    "\ua9f0\uaa50\uabf0\uff10\U000104a0\U00010d30\U00011066\U000110f0\U00011136\U000111d0\U000112f0"
    "\U00011450\U000114d0\U00011650\U000116c0\U00011730\U000118e0\U00011950\U00011c50\U00011d50\U00011da0"
    "\U00016a60\U00016ac0\U00016b50\U0001d7ce\U0001d7d8\U0001d7e2\U0001d7ec\U0001d7f6\U0001e140\U0001e2f0"
    "\U0001e950\U0001fbf0"
)
_UNSEEN = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
)
_UNSEEN_ABOVE = (
    "\U000110bd\U000110cd\U00013430-\U00013438\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
    "\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u20e3\u3164\ufe00-\ufe0f\uffa0"
_DIGITS = {chr(ord(zero) + digit): str(digit) for zero in _ZEROS for digit in range(10)}
_WIDE = {chr(0xFEE0 + code): chr(code) for code in range(0x21, 0x7F)}
_HYPHENS = "‐‑‒–—―−－﹣﹘⁃˗➖"
_DOTS = "‧・•∙⋅ㆍ･"
_ENTITIES = {"nbsp": " ", "commat": "@", "hyphen": "-", "dash": "-", "period": ".", "shy": "", "colon": ":", "num": "#"}
_ESCAPES = {"n": "\n", "r": "\n", "t": "\t", "/": "/"}
_MEANS = (
    _DIGITS
    | _WIDE
    | dict.fromkeys(_HYPHENS, "-")
    | dict.fromkeys(_DOTS, "·")
    | dict.fromkeys((chr(code) for code in (0xA0, 0x1680, 0x202F, 0x205F, 0x3000, *range(0x2000, 0x200B))), " ")
    | {"∶": ":", "⁄": "/", "∕": "/", "｡": "."}
)


# above U+FFFF one range, told apart later: a search through a list of them is slow
_ASTRAL = "\U00010000-\U0001ffff\U000e0000-\U000effff"
_INVISIBLE = re.compile(f"[{_UNSEEN_ABOVE}]")
_SIGN = re.compile(
    # one class first, so that the search is one pass over rare characters
    rf"[\\&ㅡ\u1100-\u1112{re.escape(''.join(c for c in _MEANS if c < _ASTRAL[0]))}{_UNSEEN}{_FILLERS}{_ASTRAL}]"
    rf"(?:(?<=\\)(?<!\\\\)[nrt/]|(?<=&)(?:#(?:[0-9]{{1,5}}|[xX][0-9A-Fa-f]{{1,4}})|{one_of(_ENTITIES)});"
    # ㅡ (the vowel eu) is a hyphen between digits only
    r"|(?<=[0-9]ㅡ)(?=[0-9])|(?<=[0-9] ㅡ)(?= [0-9])"
    rf"|(?<=[\u1100-\u1112])[\u1161-\u1175][\u11a8-\u11c2]?|(?<=[^\\&ㅡ\u1100-\u1112]))"
)


def _read_sign(match: re.Match[str]) -> str | None:
    sign = match[0]
    if len(sign) == 1:
        if sign == "ㅡ":
            return "-"
        return _MEANS.get(sign, None if sign > "\uffff" and not _INVISIBLE.match(sign) else "")
    if sign[0] == "\\":
        return _ESCAPES[sign[1]]
    if sign[0] != "&":
        return unicodedata.normalize("NFC", sign)
    name = sign[1:-1]
    if name[0] != "#":
        return _ENTITIES[name]
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    # the marks of mark-up itself stay what they are
    return _MEANS.get(chr(code), chr(code)) if 0x20 <= code < 0xD800 and chr(code) not in "<>&\"'" else None


def fold_signs(text: str) -> Folded:
    """Digits of all scripts, full-width signs, hyphens, blanks and middle dots of all kinds as the plain ones, invisible
    characters left out, conjoining jamo as syllables, escapes of JSON and HTML as what they stand for."""
    read = ((*match.span(), _read_sign(match)) for match in _SIGN.finditer(text))
    return _rewrite(Folded(text), ((start, end, new) for start, end, new in read if new is not None))


# --- disguises

_SPOKEN = {
    "공": "0", "영": "0", "빵": "0", "일": "1", "이": "2", "삼": "3", "사": "4", "오": "5",
    "육": "6", "륙": "6", "칠": "7", "팔": "8", "구": "9", "O": "0", "o": "0", "ㅇ": "0", "l": "1", "I": "1",
}  # fmt: skip
_HANGUL = "공영빵일이삼사오육륙칠팔구"
_DIGIT = f"[0-9{_HANGUL}OoㅇlI]"
# between the digits: hyphens in words (다시, 대시), as people dictate (에), signs, or nothing
_WORDS = "다시|대시|하이픈|빼기"
_BETWEEN = rf"(?: ?(?:{_WORDS}) ?|에 ?(?=[0-9{_HANGUL}])| ?[-.~_/] ?|\)[- ]{{0,2}}| {{1,2}}|, ?|-[ \t\r]*\n[ \t]*)"
_FREE = r"(?<![A-Za-z0-9])"
_MOBILE_RUN = re.compile(
    rf"{_FREE}(?:\([공영0ㅇOo][일1lI]{_DIGIT}|[공영0ㅇOo]{_BETWEEN}?[일1lI]{_BETWEEN}?{_DIGIT})(?:{_BETWEEN}?{_DIGIT}){{8}}(?![A-Za-z0-9])"
)
_RUN = re.compile(rf"{_FREE}(?<![가-힣])\(?{_DIGIT}(?:{_BETWEEN}?{_DIGIT}){{7,31}}+(?![A-Za-z0-9])")
_SPACED_RUN = re.compile(r"(?<![0-9])(?<![0-9] )[0-9](?![0-9])(?:(?: ?[-.~_/] ?| {1,3})[0-9](?![0-9])){8,31}")
_PART = re.compile(rf"({_DIGIT})|{_BETWEEN}|[(]")
_LETTER = re.compile(f"[{_HANGUL}OoㅇlI]")
_WORD = re.compile(_WORDS)
_LENGTHS = (10, 11, 13, 16)
"""Digits of business, telephone, registration and card numbers: a 이 behind so many is the copula (…입니다)."""


def _read_run(match: re.Match[str]) -> str | None:
    """Digits for what stands for them; None where plain digits, or letters, are just that."""
    run = match[0]
    has_letters = _LETTER.search(run)
    if not (has_letters or _WORD.search(run)):
        return None
    if has_letters and sum(c.isdigit() or c in _HANGUL for c in run) < 6:
        return None
    parts = []
    for part in _PART.finditer(run):
        bare = part[0].strip()
        if part[1]:
            parts.append(_SPOKEN.get(bare, bare))
        else:
            parts.append(bare[0] if bare and bare[0] in "-.~_/)(," else "-" if bare else " ")
    digits = sum(part.isdigit() for part in parts)
    if (
        run[-1] == "이"
        and digits - 1 in _LENGTHS
        and digits not in _LENGTHS
        and "가" <= match.string[match.end() :][:1] <= "힣"
    ):
        parts[-1] = "이"
    return "".join(parts)


def _read_spaced(match: re.Match[str]) -> str:
    """Single blanks part digits; wider ones and signs part groups."""
    return re.sub(" {2,}", "\0", match[0]).replace(" ", "").replace("\0", " ")


_AT = r"(?:@|\((?:at|AT|골뱅이|앳|@)\)|\[(?:at|AT|골뱅이|앳|@)\]|\{(?:at|AT)\}|<(?:at|AT)>|골뱅이|앳)"
_SAID_DOT = r"(?: ?(?:\((?:dot|DOT|점|\.)\)|\[(?:dot|DOT|점|닷|\.)\]|\{(?:dot|DOT)\}|점|닷) ?| (?:dot|DOT) )"
_ENDING = r"(?:(?:co|or|ac|go|re|ne|pe)\.kr|com|net|org|kr|io|me|edu|example|컴|넷)"
_ENDINGS = {"컴": "com", "넷": "net"}
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?+"
_LOOSE_HOST = rf"{_LABEL}(?:(?:{_SAID_DOT}| ?\. ?){_LABEL}){{0,3}}(?:{_SAID_DOT}| ?\. ?){_ENDING}(?![A-Za-z0-9])"
_HOST = rf"{_LABEL}(?:(?:{_SAID_DOT}|\.){_LABEL}){{0,3}}{_SAID_DOT}(?:{_LABEL}(?:{_SAID_DOT}|\.)){{0,2}}{_ENDING}(?![A-Za-z0-9])"
_ADDRESS = re.compile(
    rf"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9_][A-Za-z0-9._%+\-]{{0,63}}(?: ?{_AT} ?| (?:at|AT) ){_LOOSE_HOST}"
)
_SITE = re.compile(rf"(?<![A-Za-z0-9.@\-]){_HOST}")
_TOKEN = re.compile(rf"({_AT}| (?:at|AT) )|({_SAID_DOT})|(컴|넷)|[A-Za-z0-9._%+\-]| ")


def _read_host(match: re.Match[str]) -> str:
    parts = []
    for token in _TOKEN.finditer(match[0]):
        if token[1] or token[2]:
            parts.append("@" if token[1] else ".")
        elif token[0] != " ":
            parts.append(_ENDINGS.get(token[0], token[0]))
    return "".join(parts)


_OCTETS = re.compile(r"(?<![0-9])[0-9]{1,3}(?: ?(?:점|닷) ?[0-9]{1,3}){3}(?![0-9])")
_WRAPPED = re.compile(r"(?<=[0-9])(?:-[ \t\r]*\n[ \t]*|[ \t\r]*\n[ \t]*-)(?=[0-9])")

DISGUISED_DIGITS = (
    "(?![0-9])(?:"
    # single digits parted by blanks, letters or words among them, a line end beside a hyphen
    rf" ?[ \-][ ]?[0-9] ?[ \-][ ]?[0-9] ?[ \-][ ]?[0-9](?![0-9])|[OoㅇlI](?:[0-9\-.~_ )]|ㅇ)|[-.~_/) ]{{0,3}}[{_HANGUL}]{{2}}"
    rf"| ?(?:{_WORDS}) ?[0-9공영]|(?:-[ \t\r]*\n[ \t]*|[ \t\r]*\n[ \t]*-)[0-9]| ?[점닷] ?[0-9]{{1,3}} ?[점닷]"
    r"|(?<=[Ooㅇ][1lI])[-Ooㅇ]|(?<=[Ooㅇ][1lI][0-9]))"
)
"""What follows a digit where digits may be disguised; for the joint search of ``detect``."""

_DISGUISES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...] = (
    (_WRAPPED, lambda match: "-"),
    (_SPACED_RUN, _read_spaced),
    (_MOBILE_RUN, _read_run),
    (_RUN, _read_run),
    (_ADDRESS, _read_host),
    (_SITE, _read_host),
    (_OCTETS, lambda match: re.sub(" ?[점닷] ?", ".", match[0])),
)
_REACH = 120
"""Characters before and after a clue that a disguised value may take."""
_LITERALS = ("골뱅이", "닷", "앳", "@ ", " @", "at", "AT", "dot", "DOT", "(점", "[점", "영일영")
_SPELLED = re.compile("공[-.~_/), ]{0,3}[공영일이삼사오육칠팔구0-9]")
_POINT = re.compile("점(?= ?[A-Za-z])")
_WORDED = re.compile(
    r"[골닷앳@ (\[{<점영](?:(?<=골)뱅이|(?<=[닷앳])|(?<=@) | (?:at|AT|dot|DOT) |(?<= )@|(?<= )(?:at|AT|dot|DOT) "
    r"|(?<=[(\[{<])(?:at|AT|dot|DOT|점|@|\.)[)\]}>]|(?<=점) ?[A-Za-z]|(?<=영)일영)"
)


def worded_disguises(text: str) -> list[int]:
    """Where words may stand for digits, dots or ``@`` though no plain digit is near."""
    places = [match.start() for match in _SPELLED.finditer(text)]
    if any(literal in text for literal in _LITERALS) or _POINT.search(text):
        places += [match.start() for match in _WORDED.finditer(text)]
    return places


def fold_disguises(folded: Folded, places: Iterable[int] | None = None) -> Folded:
    """The same with disguised runs of digits, hosts and e-mail addresses in their plain form; only around ``places`` of
    the folded text where these are given."""
    text = folded.text
    windows = [(0, len(text))]
    if places is not None:
        windows = []
        for place in sorted(places):
            widen(windows, place - _REACH, place + _REACH)
    found = [
        (match.start(), order, match.end(), new)
        for order, (pattern, read) in enumerate(_DISGUISES)
        for window in windows
        for match in pattern.finditer(text, *window)
        if (new := read(match)) is not None
    ]
    changes: list[tuple[int, int, str]] = []
    for start, _, end, new in sorted(found):
        if not changes or changes[-1][1] <= start:
            changes.append((start, end, new))
    return _rewrite(folded, changes)


def widen(windows: list[tuple[int, int]], start: int, end: int) -> None:
    """Add a window, joined with the one before where they meet, so that no stretch of text is searched twice."""
    start = max(0, start)
    if windows and start <= windows[-1][1]:
        windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
    else:
        windows.append((start, end))


def plain(value: str) -> str:
    """A value in the form that the patterns read it in."""
    return fold_disguises(fold_signs(value)).text
