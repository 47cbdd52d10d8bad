"""PERSON by rules: names next to context words, as in ``성명: 한보람``, ``옥지안님``, ``엄태리 씨``, ``이상일 의원``.

A word is a name if it has the form of one (a surname, then syllables of given names), a context word next to it
requires a person, and it is no common word. Names without a context word (``지소연은 결승에서``) are not found.
A surname alone (``박씨``) and a masked name (``홍*동``, ``김○○ 씨``, ``A씨``) identify nobody and are not reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from corpus.pii.types import PiiType, words

# --- what a Korean name is made of

_LINES = Path(__file__).with_name("person_names.txt").read_text("utf-8").splitlines()[1:]
_LISTS = dict(line.split(": ") for line in _LINES)
COMMON_SURNAMES, RARE_SURNAMES, LONG_SURNAMES = (_LISTS[f"{kind} surnames"] for kind in ("common", "rare", "long"))
FIRST_SYLLABLES, LAST_SYLLABLES = _LISTS["first syllables"], _LISTS["last syllables"]
SINGLE_SYLLABLES = _LISTS["single syllables"]
NOT_NAMES, NOT_STEMS = frozenset(words(_LISTS["no names"])), frozenset(words(_LISTS["no stems"]))
_ROMAN_SURNAMES, _HANJA_SURNAMES = words(_LISTS["roman surnames"]), _LISTS["hanja surnames"]

_FULL = f"(?:(?:{LONG_SURNAMES}|[{COMMON_SURNAMES}{RARE_SURNAMES}])[{FIRST_SYLLABLES}][{LAST_SYLLABLES}])"
_SHORT = f"(?:[{COMMON_SURNAMES}{RARE_SURNAMES}][{SINGLE_SYLLABLES}]|(?:{LONG_SURNAMES})[{LAST_SYLLABLES}])"
_GIVEN = f"(?:[{FIRST_SYLLABLES}][{LAST_SYLLABLES}])"
FULL, SHORT, GIVEN = (re.compile(pattern) for pattern in (_FULL, _SHORT, _GIVEN))
# no names before 씨: parts of nouns (날씨 weather, 솜씨 skill), and plants, whose 씨 are seeds
NO_SSI = re.compile(f"(?:{_LISTS['seeds and parts of nouns']})$")
NO_FOREIGN_NAME = re.compile("(?:의|에서|는|은|며|으로|이|고|도|만|게|색)$")

# --- words that require a person

_PARTICLES = (
    "(?:이?라[는고며]|입니다|입니까|이에요|예요|이었다|였다|이[다고며나자]|인데|나|에게[서는도]?|에서|한테"
    "|께(?:서[는도]?)?|으?로[는도서]?|이?랑|이[와가는]|하고|처럼|보다|까지|부터|만[의은이을]?|[와과][의는도]?"
    "|[은는이가을를의도에측등네])?(?![가-힣])"
)
_TITLES, _ROLES = _LISTS["titles"], _LISTS["roles"]
_POLITE = ("씨", "님", "귀하", "군", "양", "옹", "선생님", "선생", "여사", "고객님", "회원님")
_NOT_BEFORE = "(?<![가-힣A-Za-z0-9*○◯〇●□])"  # a masked name, such as 김○○, starts before
# 공영주차장 (car park) is not the manager 공영주
_COMPOUNDS = words("동시장 주차장 학교수 학교장 지부장 복지사")
_KIN = ("할머니", "할아버지", "누나", "언니", "오빠", "형님")
HONORIFIC = re.compile(
    rf"(?P<word>씨(?!를? ?(?:말[리려린렸]|뿌)|를 ?심|네 ?21|[xX])|님|귀하|군|양|옹|{_TITLES})님?{_PARTICLES}"
)
# 김민준씨나오는 (in which Kim appears): the next word follows without a space
_GLUED = re.compile(rf"{_NOT_BEFORE}(?P<name>{_FULL})[씨님](?!앗|발|족|리즈)(?=[가-힣])")
_FORMER = "(?:(?:전|현|前|現|신임) ?)?"
_BEFORE_HONORIFIC = re.compile(
    rf"{_NOT_BEFORE}(?P<name>[가-힣]{{2,6}})(?P<age> ?\((?:만 ?)?[0-9一-龥][^()\n]{{0,14}}\))?(?P<gap> ?{_FORMER})$"
)
_BEFORE_JOINT = re.compile(rf"{_NOT_BEFORE}(?P<name>{_FULL})(?: ?[,·/] ?|[와과] )$")

# these labels do not need a colon
_SURE_LABELS, _SOME_LABELS = _LISTS["sure labels"], _LISTS["some labels"]
_LATIN_LABELS = (
    "(?<![A-Za-z])(?i:(?:(?:full|real|first|last|customer|user|recipient|receiver|sender|buyer|member|patient|owner"
    "|student|author|contact|employee|applicant|account|holder|guest|passenger)[ _-]?)?name|recipient|receiver"
    "|applicant|account holder)(?![A-Za-z])"
)
# first letters of labels and roles, checked first for speed
_LABEL_START = (
    "(?=[가개검결계고공교구글기남담대래매명민받발방배변보본부사성세소송수승신실아여예원위의이임입작저주증지직진참채책"
    "청투포피학환회골감사여AaBbCcDdEeFfGgHhLlMmNnOoPpRrSsUu])"
)
LABEL = re.compile(
    rf"{_LABEL_START}(?:(?P<sure>{_SURE_LABELS})(?: ?(?:이름|성명|성함|명))?|(?<![가-힣])(?P<some>{_SOME_LABELS}"
    rf"|{_LATIN_LABELS}))"
    r"(?P<gap>(?:[은는이가]|란에?)?(?=[^가-힣])[\"'”’)\]]{0,2}\s{0,2}[:=|>\t\n\-]?\s{0,3}[\"'“‘(\[]{0,2})"
    rf"|{_LABEL_START}(?<![가-힣])(?P<role>{_ROLES}) "
)
_VERB_ENDINGS = ("는", "고", "게", "지", "여")  # 주장하는 (claiming)
_CALLED = re.compile("이 {0,4}름|[A-Za-z]")
_SEPARATOR = re.compile(r"[:=|>\t\n]")
_AFTER_NAME = rf"(?=(?: ?(?:씨|님|귀하|군|양|{_TITLES}))?{_PARTICLES}(?![*○◯〇●□OXx0-9]))"
_NAME_AFTER = re.compile(rf"(?P<full>{_FULL}){_AFTER_NAME}|(?P<short>{_SHORT}){_AFTER_NAME}")
_SPACED_AFTER = re.compile(rf"[{COMMON_SURNAMES}] {{1,3}}[{FIRST_SYLLABLES}] {{0,3}}[{LAST_SYLLABLES}](?! ?[가-힣*○])")
_JOINT_AFTER = re.compile(rf"(?: ?[,·/、&] ?| 및 |[와과] )(?P<name>{_FULL}){_AFTER_NAME}")
_AGE = re.compile(r" ?\((?:만 ?)?[1-9][0-9](?:세|살)?[),·]")

# --- names in other scripts, found only after a label

_SYLLABLE = (
    "(?:kk|tt|pp|ss|jj|ch|sh|[bdfghjkmnprstyw])?"
    "(?:yae|yeo|ae|eo|eu|oo|ou|ee|ya|yu|yo|ye|wa|wo|ui|wi|we|a|e|i|o|u)(?:ng|ck|[kgnlrmpbt])?"
)
_LATIN_NAME = re.compile(
    r"[A-Za-z][A-Za-z'\-]{1,19}(?:(?: |, ?|/)(?!(?i:tel|e-?mail|phone|mobile|fax|date|sex"
    r"|id)(?![a-z]))[A-Z][A-Za-z'\-]{0,19}){1,3}(?![A-Za-z0-9@._])"
)
_TICKET_NAME = re.compile(
    rf"(?=[A-Z])(?<![A-Za-z/.])(?!SEO/)(?:{'|'.join(_ROMAN_SURNAMES).upper()})/"
    rf"(?i:{_SYLLABLE}[ -]?{_SYLLABLE})(?: ?M[RS]S?)?(?![A-Za-z/])"
)
_HANJA_NAME = re.compile(rf"[{_HANJA_SURNAMES}][一-龥]{{1,3}}(?![一-龥])")


class Match(NamedTuple):
    """``text[start:end]`` is a name; ``score`` and ``why`` are as in ``Span``."""

    start: int
    end: int
    score: float
    why: str


Scored = tuple[tuple[int, int], float]


def find_names(text: str) -> list[Match]:
    """Names with context words in folded text: sorted, of overlapping ones the longer, in linear time."""
    names: list[Match] = []
    for name in sorted(_find_all(text)):
        if names and names[-1].end > name.start and _size(name) > _size(names[-1]):
            names.pop()
        if not names or names[-1].end <= name.start:
            names.append(name)
    return names


def _size(name: Match) -> tuple[int, float]:
    return name.end - name.start, name.score


def _find_all(text: str) -> Iterator[Match]:
    for scored_spans in (_before_honorifics(text), _after_labels(text), _with_ages(text)):
        yield from (Match(*span, score, "label") for span, score in scored_spans)
    for ticket in _TICKET_NAME.finditer(text):
        yield Match(*ticket.span(), 0.7, "pattern")


def _before_honorifics(text: str) -> Iterator[Scored]:
    for honorific in HONORIFIC.finditer(text):
        at, word = honorific.start(), honorific["word"]
        before = _BEFORE_HONORIFIC.search(text, max(0, at - 32), at)
        if before and (score := _honorific_score(before["name"], word, bool(before["gap"]))):
            yield before.span("name"), score
            at = before.start("name")  # 김영희·박철수 의원: the honorific applies to all joined names
            while (joint := _BEFORE_JOINT.search(text, max(0, at - 8), at)) and not _is_word(joint["name"]):
                yield joint.span("name"), 0.7
                at = joint.start("name")
    yield from ((glued.span("name"), 0.7) for glued in _GLUED.finditer(text) if not _is_word(glued["name"]))


def _is_word(name: str, is_polite: bool = False) -> bool:
    """Whether a name is a common word; with 씨 and 님 (``is_polite``), words such as 지원 (support) are names."""
    stem, last = name[:-1], name[-1]
    if name in NOT_NAMES or (last == "모" and len(name) == 2):  # 김모 (one Kim)
        return True
    if not is_polite and (name in NOT_STEMS or (stem in NOT_STEMS and last in "은이을도만인해하나라중비")):
        return True
    return (last == "을" and name[-2] not in "가노하") or (last == "한" and name[0] not in "김박최")


def _honorific_score(name: str, word: str, has_gap: bool) -> float:
    """Confidence that ``name`` before the honorific ``word`` is a name, 0 if it is none."""
    if _is_word(name, word in ("씨", "님")) or (word in ("군", "양", "옹") and not has_gap):
        return 0
    if name[-1] + word in _COMPOUNDS:
        return 0
    is_common = name[0] in COMMON_SURNAMES or bool(re.match(LONG_SURNAMES, name))
    if FULL.fullmatch(name):
        return 0.9 if word in _POLITE else 0.8 if is_common or (has_gap and name[-1] not in "은이도만인") else 0
    if word != "씨":
        return 0.6 if has_gap and is_common and word not in _KIN and SHORT.fullmatch(name) else 0
    if NO_SSI.search(name):
        return 0
    if SHORT.fullmatch(name) or GIVEN.fullmatch(name) or (len(name) == 3 and name[0] in COMMON_SURNAMES):
        return 0.7
    return 0.6 if has_gap and not NO_FOREIGN_NAME.search(name) else 0


def _after_labels(text: str) -> Iterator[Scored]:
    for label in LABEL.finditer(text):
        at, gap = label.end(), label["gap"]
        if gap is None:  # a role, such as 배우 (actor)
            name = _NAME_AFTER.match(text, at)
            if name and name["full"] and name[0][0] in COMMON_SURNAMES and not _is_word(name[0]):
                yield name.span(), 0.7
        # 저자는 … (the author …) starts a sentence; 이름은 … (the name is …) names a person
        elif gap and not (label["some"] and gap[0] in "은는이가" and not _CALLED.match(label["some"])):
            yield from _after_label(text, at, bool(label["sure"]), bool(_SEPARATOR.search(gap)))


def _after_label(text: str, at: int, is_sure: bool, is_separated: bool) -> Iterator[Scored]:
    name = _NAME_AFTER.match(text, at)
    if name and _fits_label(name, is_sure, is_separated):
        yield name.span(), 0.95 if is_separated else 0.85
        at = name.end()
        while (joint := _JOINT_AFTER.match(text, at)) and not _is_word(joint["name"]):
            yield joint.span("name"), 0.7
            at = joint.end()
    elif (is_sure or is_separated) and (spaced := _SPACED_AFTER.match(text, at)):
        yield spaced.span(), 0.8
    elif hanja := _HANJA_NAME.match(text, at):
        yield hanja.span(), 0.8
    elif latin := _LATIN_NAME.match(text, at):
        has_surname = any(part in _ROMAN_SURNAMES for part in re.split("[ ,/]+", latin[0].lower()))
        if has_surname or (is_sure and is_separated):
            yield latin.span(), 0.8 if has_surname else 0.6


def _fits_label(name: re.Match[str], is_sure: bool, is_separated: bool) -> bool:
    """Without a colon, only common surnames count, and names of two syllables only after the clearest labels."""
    is_verb = name[0][-1] == "하" and name.string.startswith(_VERB_ENDINGS, name.end())
    if is_verb or _is_word(name[0]):
        return False
    is_common = name[0][0] in COMMON_SURNAMES or len(name[0]) > 3
    is_clear = bool(name["full"]) and name[0][-1] not in "은이도만인해지나라하"
    return is_separated or (is_common and (is_sure or is_clear)) or (is_sure and is_clear)


def _with_ages(text: str) -> Iterator[Scored]:
    """``이상민(42)``: a full name and an age in brackets."""
    for age in _AGE.finditer(text):
        before = _BEFORE_HONORIFIC.search(text, max(0, age.start() - 8), age.start())
        if before and FULL.fullmatch(before["name"]) and not _is_word(before["name"]):
            yield before.span("name"), 0.7


# --- replacements: any name may be a real one, so they are drawn from a short list

MAX_DRAWS = 50
_FAKE_SYLLABLES = words(_LISTS["fake roman syllables"])
_ROMAN_WORD = re.compile("[A-Za-z]+(?:[-'][A-Za-z]+)*")


def fake_name(rng: Random, value: str) -> str:
    """Another name in the script of ``value``, with its spaces.

    Korean names of two to four syllables keep their length; longer, foreign ones become Korean names of four syllables.
    The new name ends in a consonant if the old one does, so particles stay correct.
    """
    draw = _draw_roman if value.isascii() else _draw_hanja if "一" <= value[0] <= "龥" else _draw_hangul
    for _ in range(MAX_DRAWS):
        fake = draw(rng, value)
        if fake != value and not _is_word(fake) and _final(fake) == _final(value):
            break
    return fake


def _final(name: str) -> str:
    """What the particles depend on: whether the last syllable ends in a vowel, ㄹ, or another consonant."""
    code = ord(name[-1]) - ord("가")
    return {0: "vowel", 8: "ㄹ"}.get(code % 28, "consonant") if 0 <= code <= ord("힣") - ord("가") else ""


def _draw_hangul(rng: Random, value: str) -> str:
    count = len(value.replace(" ", ""))
    surname = rng.choice(_LISTS["fake surnames"]) if count < 4 else rng.choice(LONG_SURNAMES.split("|"))
    name = surname + (rng.choice(SINGLE_SYLLABLES) if count < 3 else rng.choice(words(_LISTS["fake given names"])))
    if count > 4 or " " not in value:
        return name
    syllables = iter(name)
    return "".join(" " if character == " " else next(syllables) for character in value)


def _draw_hanja(rng: Random, value: str) -> str:
    return rng.choice(_HANJA_SURNAMES) + "".join(rng.choices(_LISTS["fake hanja"], k=len(value) - 1))


def _draw_roman(rng: Random, value: str) -> str:
    """Without a Korean surname, the last word becomes one."""
    roman_words = _ROMAN_WORD.findall(value)
    surnames = [word for word in roman_words if word.lower() in _ROMAN_SURNAMES] or roman_words[-1:]

    def draw(match: re.Match[str]) -> str:
        word = match.group()
        if word in ("MR", "MS", "MRS"):
            return word
        if word == surnames[0]:
            fake = rng.choice(words(_LISTS["fake roman surnames"]))
        else:
            first, second = rng.choice(_FAKE_SYLLABLES), rng.choice(_FAKE_SYLLABLES)
            fake = first + "-" * ("-" in word) + second * (len(word) > 3)
        return fake.upper() if word.isupper() else fake.capitalize() if word[0].isupper() else fake

    return _ROMAN_WORD.sub(draw, value)


PERSON = PiiType("PERSON", (), fake_name, "한보람")
