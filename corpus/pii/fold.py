"""Fold spellings that a reader takes for the same value into one plain form, and map positions back.

```
０１０－１２３４－５６７８   ٠١٠-١٢٣٤-٥٦٧٨   010‑12<U+200B>34‑5678   010&#45;1234&#45;5678      ─▶  010-1234-5678
공일공 다시 일이삼사 다시 5678   O1O-1234-5678   0 1 0 - 1 2 3 4 - 5 6 7 8   010-1234-⏎5678   ─▶  010-1234-5678
hong (at) example [dot] com   hong 골뱅이 example 닷컴   hong @ example.com                   ─▶  hong@example.com
```
Two steps: ``fold_signs`` replaces single characters everywhere. ``fold_disguises`` gives a second reading, in which
words and letters may be digits, dots and ``@``: eight digits in a row, or a host with a known ending. Patterns search
both readings, because 이 (two, also a particle) in 이에 010-… is no digit. Values are replaced in the original.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

from corpus.pii.folded_text import Change, Folded, rewrite, widen
from corpus.pii.types import one_of

# --- single signs

_HANGUL = "공영빵일이삼사오육륙칠팔구"  # dictated digits
# the zero of the digits of every script, and invisible characters
_ZEROS = [chr(code) for code in range(0x660, 0x1FC00) if unicodedata.decimal(chr(code), -1) == 0]
_FORMAT_SIGNS = [sign for sign in map(chr, range(0x1FC00)) if unicodedata.category(sign) == "Cf"]
_UNSEEN = "".join(sign for sign in _FORMAT_SIGNS if sign < "\U00010000")
_UNSEEN_ABOVE = "".join(_FORMAT_SIGNS).removeprefix(_UNSEEN) + "\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef"
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
    | {"⓪": "0"}
    | {chr(0x245F + digit): str(digit) for digit in range(1, 10)}  # ① is a bullet unless it follows a digit
    | {"∶": ":", "⁄": "/", "∕": "/", "｡": "."}
)


# one range for all characters above U+FFFF, because searching for a list of them is slow
_ASTRAL = "\U00010000-\U0001ffff\U000e0000-\U000effff"
_INVISIBLE = re.compile(f"[{_UNSEEN_ABOVE}]")
SIGNS = (
    f"\x1b\\r\\\\&ㅡ\u1100-\u1112{re.escape(''.join(c for c in _MEANS if c < _ASTRAL[0]))}{_UNSEEN}{_FILLERS}{_ASTRAL}"
)
AFTER_SIGN = (
    rf"(?:(?<=\x1b)\[[0-9;]{{0,12}}[A-Za-z]|(?<=\r)(?=\n)|(?<=\\)(?<!\\\\)[nrt/]|(?<=&)(?:#(?:[0-9]{{1,5}}|[xX][0-9A-Fa-f]{{1,4}})|{one_of(_ENTITIES)});"
    rf"|(?<=[0-9{_HANGUL}]ㅡ)(?=[0-9{_HANGUL}])|(?<=[0-9] ㅡ)(?= [0-9])"
    rf"|(?<=[\u1100-\u1112])[\u1161-\u1175][\u11a8-\u11c2]?|(?<=[0-9⓪①-⑨][①-⑨])|(?<=[^\x1b\r\\&ㅡ\u1100-\u1112{_DOTS}①-⑨])"
    # a middle dot matters only next to values
    rf"|(?<=[{_DOTS}])(?:(?=[0-9A-Za-z@+(\[\"'])|(?<=[0-9A-Za-z)\]\"'][{_DOTS}])))"
)
"""The first characters of signs to fold, and a pattern for the rest."""
_SIGN = re.compile(f"[{SIGNS}]{AFTER_SIGN}")


# ㅡ (the vowel eu) is a hyphen between digits only, dictated ones included
_EU = re.compile(f"(?<=[0-9{_HANGUL}])ㅡ(?=[0-9{_HANGUL}])|(?<=[0-9] )ㅡ(?= [0-9])")


def _read_sign(match: re.Match[str]) -> str | None:
    sign = match[0]
    if len(sign) == 1:
        return _MEANS.get(sign, None if sign == "ㅡ" or (sign > "\uffff" and not _INVISIBLE.match(sign)) else "")
    if sign[0] == "\x1b":
        return ""  # terminal colors
    if sign[0] == "\\":
        return _ESCAPES[sign[1]]
    if sign[0] != "&":
        return unicodedata.normalize("NFC", sign)
    name = sign[1:-1]
    if name[0] != "#":
        return _ENTITIES[name]
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    # markup characters stay escaped
    return _MEANS.get(chr(code), chr(code)) if 0x20 <= code < 0xD800 and chr(code) not in "<>&\"'" else None


def fold_signs(text: str) -> Folded:
    """Replace digits of all scripts, full-width characters, hyphens, spaces and middle dots with plain ones.

    Removes invisible characters, composes conjoining jamo, and decodes escapes of JSON and HTML.
    """
    read = ((*match.span(), _read_sign(match)) for match in _SIGN.finditer(text))
    folded = rewrite(Folded(text), ((start, end, new) for start, end, new in read if new is not None))
    hyphens = _EU.finditer(folded.text) if "ㅡ" in folded.text else ()
    return rewrite(folded, ((*match.span(), "-") for match in hyphens))


# --- disguises

_SPOKEN = dict(zip(f"{_HANGUL}OoㅇlI", "000123456678900011", strict=True))
_DIGIT = f"[0-9{_HANGUL}OoㅇlI]"
# between the digits: words for hyphens (다시, 대시), 에 as in dictation, signs, or nothing
_WORDS = "다시|대시|하이픈|빼기"
_BETWEEN = (
    rf"(?: ?(?:{_WORDS}) ?|에 ?(?=[0-9{_HANGUL}])|, ?(?=[{_HANGUL}])"
    r"|-[ \t\r]*\n[ \t]*| ?[-.~_] ?|/|\)[- ]{0,2}| {1,2})"
)
_MOBILE_RUN = re.compile(
    rf"[(공영0ㅇOo](?<![A-Za-z0-9].)(?:(?<=\()[공영0ㅇOo][일1lI]{_DIGIT}|(?<!\(){_BETWEEN}?[일1lI]{_BETWEEN}?{_DIGIT})"
    rf"(?:{_BETWEEN}?{_DIGIT}){{8}}(?![A-Za-z0-9]|[{_HANGUL}]{{2}})"
)
_RUN = re.compile(
    rf"[(0-9{_HANGUL}OoㅇlI](?<![A-Za-z0-9].)(?:(?<![가-힣].)|(?<=[0-9]))(?:(?<!\()|{_DIGIT})"
    rf"(?:{_BETWEEN}?{_DIGIT}){{7,31}}+(?![A-Za-z0-9])"
)
_SPACED_RUN = re.compile(
    r"[0-9MSROD](?<![0-9A-Za-z].)(?<![0-9] .)(?![0-9])(?:(?: ?[-.~_/] ?| {1,3})[0-9](?![0-9])){8,31}"
)
# 123 -45- 67891, 010-2345-678 9: spaces at any place of a number in groups of a known form
_LOOSE_RUN = re.compile(r"[0-9](?<![0-9.,:].)(?<![0-9][ \-].)(?: ?-? ?[0-9]){8,19}+(?! ?-? ?[0-9])")
_GROUPS = re.compile(
    "0(?:1[016-9]|2|[3-6][1-5]|70)-[0-9]{3,4}-[0-9]{4}|[0-9]{6}-[1-8][0-9]{6}|[0-9]{3}-[0-9]{2}-[0-9]{5}"
    "|[0-9]{4}(?:-[0-9]{4}){3}|[0-9]{2}-[0-9]{2}-[0-9]{6}-[0-9]{2}|(?!19|20)[0-9]{3,6}(?:-[0-9]{2,7}){2,3}"
)
_PLATE_LETTER = "[가나다라마거너더러머버서어저고노도로모보소조누두루무부수우주바아자배하허호]"  # 이팔더 공공육오
_PLATE_RUN = re.compile(
    rf"[0-9{_HANGUL}](?<![0-9가-힣].)(?:[0-9{_HANGUL}]{{1,2}} ?{_PLATE_LETTER} ?[0-9{_HANGUL}]{{4}}"
    rf"|(?<![0-9] .)(?<=[0-9])(?: [0-9]){{1,2}} {_PLATE_LETTER}(?: [0-9]){{4}}(?! [0-9](?![0-9])))(?![0-9{_HANGUL}])"
)
# 010 다음에 0123 그리고 4567 (then, and), 앞자리 000101이고 뒷자리는 3970000 (the second part is)
_THEN = "(?:이?고|에|,)? ?(?:그 ?)?(?:다음(?:에|은|이)?|그리고|하고|띄고|뒤에|가운데는?|중간은?|[끝뒷]자리는?|끝은) ?"
_SECOND_PART = "(?:이?고|이며|에|,)?[ /]{0,3}(?:뒷|뒤 ?)(?:자리|번호)?[는가은이]? ?:? ?"
# any sign, the same twice: 010♥0123♥4567
_ODD_SIGN = r"(?P<odd>(?![-.·)(/_~* ]?[0-9])[^0-9A-Za-z가-힣\s]{1,3})[0-9]{3,4}(?P=odd)[0-9]{4}"
_ODD_CLUE = _ODD_SIGN.replace("?P<odd>", "?:").replace("(?P=odd)", "[^0-9A-Za-z]{1,3}")
_PARTED = re.compile(
    rf"[0-9](?<![0-9].)(?:(?<=0)1[016-9](?:{_THEN}[0-9]{{3,4}}(?:{_THEN}|[- ])[0-9]{{4}}|{_ODD_SIGN})"
    rf"|[0-9]{{5}}{_SECOND_PART}[1-8][0-9]{{6}})(?![0-9])"
)
_PART = re.compile(rf"({_DIGIT})|{_BETWEEN}|[(]")
_LETTER, _LATIN_DIGIT, _WORD = re.compile(f"[{_HANGUL}OoㅇlI]"), re.compile("[OoㅇlI]"), re.compile(_WORDS)
_PASSPORT = re.compile("O[0-9]{8}")
PLATE_PARTS = 10
"""Digits, letter and spaces of a number plate: 123 구 4567."""
_COPULA = re.compile(f"(?<=[0-9])[이일](?: ?[{_HANGUL}])*$")
_SPOKEN_COPULA = re.compile("이(?=[고며라니야]|에요|거든)|이구(?=[요여])")
WHOLE = (10, 13, 16)  # digits of a landline, a registration number and a card: a last 이 is a digit


def _read_run(match: re.Match[str]) -> list[Change]:
    """Replace words and letters that are used as digits; nothing if they are plain digits or words."""
    run = match[0]
    has_letters, has_words = _LETTER.search(run), _WORD.search(run) or run.count("에") > 1
    if not (has_letters or has_words):
        return []
    if has_letters and (sum(c.isdigit() or c in _HANGUL for c in run) < 6 or _PASSPORT.fullmatch(run)):
        return []
    parts = list(_PART.finditer(match.string, match.start(), match.end()))
    if copula := _COPULA.search(run):  # …5678이구요: a verb ending, not digits
        parts = parts[: -len(copula[0])]
    elif sum(bool(part[1]) for part in parts) not in WHOLE and not _MOBILE_RUN.fullmatch(run):
        spoken = _SPOKEN_COPULA.search(match.string, match.end() - 2, match.end() + 2)  # 삼이오팔이고
        parts = parts[: -len(spoken[0])] if spoken and spoken.end() == match.end() else parts
    is_plate = len(parts) <= PLATE_PARTS and sum(part[0] in _HANGUL for part in parts) == 1
    if is_plate and not (_LATIN_DIGIT.search(run) or has_words):
        return []  # the letter of a number plate: 123구 4567
    is_spaced = not run[1::2].strip()  # 공 일 공 …
    read = ((part, "" if is_spaced and part[0] == " " else _read_part(part)) for part in parts)
    return [(*part.span(), new) for part, new in read if part[0] != new]


def _read_part(part: re.Match[str]) -> str:
    bare = part[0].strip()
    if part[1]:
        return _SPOKEN.get(bare, bare)
    if not bare:
        return " "
    return bare[0] if bare[0] in "-.~_/)(" else "-"


def _read_plate(match: re.Match[str]) -> list[Change]:
    """Write dictated digits as digits, and remove the spaces if every sign is apart."""
    signs = re.compile(f"[{_HANGUL}]" + "| " * (match[0][1] == " ")).finditer(match.string, *match.span())
    return [(*sign.span(), _SPOKEN.get(sign[0], "")) for sign in signs]


def _read_parted(match: re.Match[str], sign: str = "-") -> list[Change]:
    """Replace what is between the digits of a value by a sign."""
    return [(*words.span(), sign) for words in re.compile("[^0-9]+").finditer(match.string, *match.span())]


def _read_spaced(match: re.Match[str]) -> list[Change]:
    """Remove single spaces between digits and spaces next to signs; wider spaces separate groups."""
    text = match.string
    blanks = (blank.span() for blank in re.compile(" +").finditer(text, match.start(), match.end()))
    return [
        (start, end, "") for start, end in blanks if end - start == 1 or not (text[start - 1] + text[end]).isdigit()
    ]


def _read_loose(match: re.Match[str]) -> list[Change]:
    """Remove the spaces if the groups are those of a value; patterns match ``123 - 45 - 67891`` as it is."""
    is_odd = " " in match[0].replace(" - ", "") and _GROUPS.fullmatch(match[0].replace(" ", ""))
    blanks = re.compile(" +").finditer(match.string, *match.span())
    return [(*blank.span(), "") for blank in blanks] if is_odd else []


_AT = r"(?:@|%40|\((?:a|at|AT|골뱅이|앳|@)\)|\[(?:at|AT|골뱅이|앳|@)\]|\{(?:at|AT)\}|<(?:at|AT)>|골뱅이|앳)"
_SAID_DOT = r"(?: \. | ?(?:\((?:dot|DOT|점|\.)\)|\[(?:dot|DOT|점|닷|\.)\]|\{(?:dot|DOT)\}|[점쩜닷]) ?| (?:dot|DOT) )"
_ENDING = r"(?:(?:co|or|ac|go|re|ne|pe)\.kr|com|net|org|kr|io|me|edu|example|컴|넷)"
_PROVIDERS = {
    "네이버": "naver", "지메일": "gmail", "다음": "daum", "한메일": "hanmail", "네이트": "nate", "핫메일": "hotmail",
    "카카오": "kakao", "naver": "naver", "gmail": "gmail", "hanmail": "hanmail",
}  # fmt: skip
_HOST_WORDS = _PROVIDERS | {"컴": "com", "넷": "net"}
# 골뱅이네이버닷컴, @지메일, @naver; 다음 also means next
_PROVIDER = (
    rf"(?!다음(?! ?[.닷점])){one_of(_PROVIDERS)}"
    rf"(?:(?:{_SAID_DOT}| ?\. ?){_ENDING}(?![A-Za-z0-9@])|(?![A-Za-z0-9·。\-]| ?[.닷점\[(]))"
)
_REST = r"(?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?+"
_LABEL = rf"[A-Za-z0-9]{_REST}"
_LOOSE_HOST = rf"{_LABEL}(?:(?:{_SAID_DOT}| ?\. ?){_LABEL}){{0,3}}(?:{_SAID_DOT}| ?\. ?|,){_ENDING}(?![A-Za-z0-9@])"
_HOST = (
    rf"{_REST}(?:(?:{_SAID_DOT}|\.){_LABEL}){{0,3}}{_SAID_DOT}(?:{_LABEL}(?:{_SAID_DOT}|\.)){{0,2}}"
    rf"{_ENDING}(?![A-Za-z0-9])"
)
_ADDRESS = re.compile(
    rf"[A-Za-z0-9_](?<![A-Za-z0-9._%+\-].)[A-Za-z0-9._%+\-]{{0,63}}"
    rf"(?:(?: ?{_AT}(?: |[ \t\r]*\n[ \t]*)?| (?:at|AT) ){_LOOSE_HOST}| ?{_AT} ?{_PROVIDER})"
)
_SITE = re.compile(rf"[A-Za-z0-9](?<![A-Za-z0-9.@\-].)(?:{_HOST}|(?<=[wW])[wW]{{2}}\. ?{_LOOSE_HOST})")
_TOKEN = re.compile(rf"({_AT}| (?:at|AT) )|({_SAID_DOT}|,)|{one_of(_HOST_WORDS)}(?![A-Za-z])|[A-Za-z0-9._%+\-]|\s")


def _read_host(match: re.Match[str]) -> list[Change]:
    def read_one(token: re.Match[str]) -> str:
        word = "@" if token[1] else "." if token[2] else _HOST_WORDS.get(token[0], token[0].strip())
        return word + ".com" * (token[0] in _PROVIDERS and token.end() == match.end())

    read = ((token, read_one(token)) for token in _TOKEN.finditer(match.string, match.start(), match.end()))
    return [(*token.span(), new) for token, new in read if new != token[0]]


_OCTET_DOT = r"(?: ?(?:[점닷]|\[(?:\.|dot|점)\]|\((?:\.|dot|점)\)) ?| \. ?|\. )"
_OCTETS = re.compile(rf"[0-9](?<![0-9].)[0-9]{{0,2}}(?:{_OCTET_DOT}[0-9]{{1,3}}){{3}}(?![0-9])")
# a line end inside a value; a hyphen next to it stays
_BREAK = re.compile(
    r"(?<=[0-9])(?:-[ \t\r]*\n[ \t]*|[ \t\r]*\n[ \t]*-)(?=[0-9])"
    r"|(?<=[A-Za-z0-9])-[ \t\r]*\n[ \t]*(?=[A-Za-z0-9.-]{0,40}[@.])|(?<=@)[ \t\r]*\n[ \t]*(?=[a-z])"
)

_LOOSE_DOT = r"(?: \. ?|\. |\[\.\]|\(\.\))"
_AFTER_DIGIT = (
    rf"(?=[ \-OoㅇlI.~_/)\t\r\n\[(점닷에{_WORDS.replace('|', '')}{_HANGUL}])(?:"
    # single digits separated by spaces
    r" ?[ \-] ?[0-9] ?[ \-] ?[0-9] ?[ \-] ?[0-9](?![0-9])"
    r"|(?: -|- )[0-9]{1,7}(?: ?- ?| )[0-9]| - [0-9]{1,6} [0-9]"
    r"|-[0-9]{3,7} [0-9]{1,3}(?![0-9:.,])|-[0-9]{1,3} [0-9]{1,3}-[0-9]"
    # letters, digits in Hangul, or words between digits
    rf"|-[OlI][0-9]{{3}}|[OoㅇlI](?:[0-9\-.~_ )]|ㅇ)|[-.~_/) ]{{0,3}}[{_HANGUL}]{{2}}"
    rf"| ?(?:{_WORDS}) ?[0-9공영]|에 ?[0-9]{{2,6}}에 ?[0-9]{{2,8}}"
    # a line end next to a hyphen, dots as words or with spaces
    r"|(?:-[ \t\r]*\n[ \t]*|[ \t\r]*\n[ \t]*-)[0-9]| ?[점닷] ?[0-9]{1,3} ?[점닷]"
    rf"|{_LOOSE_DOT}[0-9]{{1,3}}{_LOOSE_DOT}[0-9])"
    # the digit is after letters
    r"|(?=[)-])(?:(?<=[Oo]2)|(?<=[Oo][3-6][1-5]))|(?<=[1lI][0-9])(?<=[Ooㅇ][1lI][0-9])|(?<=[Ooㅇ]1)[-Ooㅇ]"
    rf"|(?<=01[016-9]){_THEN}[0-9]|(?<=[-.~_ )][0-9])(?<=[Ooㅇ0{_HANGUL}][-.~_ )][0-9])"
    rf"(?:(?<=[Ooㅇ0][1lI][Ooㅇ0][-.~_ )][0-9])|(?<=[{_HANGUL}]{{2}}[-.~_ ][0-9]))"
)


_DISGUISES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], list[Change]]], ...] = (
    (_SPACED_RUN, _read_spaced),
    (_LOOSE_RUN, _read_loose),
    (_PARTED, _read_parted),
    (_MOBILE_RUN, _read_run),
    (_RUN, _read_run),
    (_PLATE_RUN, _read_plate),
    (_ADDRESS, _read_host),
    (_SITE, _read_host),
    (_OCTETS, lambda match: _read_parted(match, ".")),
    (_BREAK, lambda match: [(*match.span(), "-" if "-" in match[0] else "")]),
)
REACH = 120
"""Maximum distance of a disguised value from its clue, in characters."""
_WORD_STARTS = "골닷앳@%aAdD점쩜영공육칠팔뒷뒤\\-"
_AFTER_WORD = (
    r"(?:(?<=[뒷뒤]) ?(?:자리|번호|[1-8][0-9]{6})|(?<=골)뱅이|(?<=[닷앳])|(?<= @)|(?<=[점쩜]) ?[A-Za-z]|(?<=영)일영"
    rf"|(?<=@)(?:\s|[A-Za-z0-9-]{{1,30}}(?: \.|\. |,)(?:com|net|org|co|ac|kr)|{one_of(_PROVIDERS)})"
    r"|(?<=%)40[A-Za-z0-9-]{1,30}\.[a-z]|(?<=\([aA])\)[A-Za-z0-9-]{2,30}\."
    rf"|(?<=[공영육칠팔])(?:[-. ]?[{_HANGUL}0-9]){{3}}|(?<=공)[일1][공영육칠팔구0-9]"
    rf"|(?<=[공영육칠팔])[{_HANGUL}]{{0,3}} ?(?:{_WORDS}) ?[{_HANGUL}0-9]"
    rf"|(?<=공)(?:[-.~_/)]{{1,3}}[{_HANGUL}0-9]|[이삼사오육]{{1,2}}에 ?[{_HANGUL}])[{_HANGUL}0-9]"
    rf"|(?<=[{_HANGUL}][{_HANGUL}][육칠팔])|(?<=-)[ \t\r]*\n[ \t]*[A-Za-z0-9]"
    r"|(?<= [aA])[tT] |(?<= [dD])[oO][tT] |(?<=[(\[{<][aA])[tT][)\]}>]|(?<=[(\[{<][dD])[oO][tT][)\]}>]"
    r"|(?<=[(\[{<][점@])[)\]}>])"
)
# digits in Hangul after such a word need no clues of their own
_SKIPPED = f"(?:[-. ]?[{_HANGUL}]){{0,60}}+"
CLUES = {
    "0-9": rf"(?={_AFTER_DIGIT}|(?<=01[016-9]){_ODD_CLUE})",
    ".": r"(?=(?<=[\[(]\.)[\])]|(?<= \.) [A-Za-z0-9]|(?<=[wW]\.) ?[A-Za-z0-9-]{2,30}(?: \.|\. ))",
    _WORD_STARTS: f"(?={_AFTER_WORD}){_SKIPPED}",
}
"""First characters of words that may mean digits, dots or ``@``, and what follows; for the search in ``detect``."""


def fold_disguises(text: str, places: Iterable[int] | None = None) -> Folded:
    """Replace disguised digits, hosts and e-mail addresses with their plain form.

    Args:
        places: positions of the text around which to search; default: everywhere.
    """
    windows = [(0, len(text))]
    if places is not None:
        windows = []
        for place in sorted(places):
            widen(windows, place - REACH, place + REACH)
    matches = [
        (match.start(), order, match.end(), changes)
        for order, (pattern, read) in enumerate(_DISGUISES)
        for window in windows
        if pattern is not _BREAK or "\n" in text
        for match in pattern.finditer(text, *window)
        if (changes := read(match))
    ]
    disjoint_changes: list[Change] = []
    position = 0
    for start, _, end, changes in sorted(matches):
        if start >= position:
            disjoint_changes += changes
            position = end
    return rewrite(Folded(text), disjoint_changes)
