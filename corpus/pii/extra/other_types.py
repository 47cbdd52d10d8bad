"""ORG_NUMBER, HANDLE, CUSTOMS, COURIER and MEMBERSHIP: types outside paper Table 29, found on request.

Company registration numbers, accounts of messengers and social networks, personal customs codes, parcel numbers and
membership numbers. Their forms are ambiguous (a parcel number is any twelve digits), so a label word must announce
them; only customs codes are also found without one. ``find_extra`` adds PERSON from ``person_by_rules``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from random import Random

from corpus.pii.extra.person_by_rules import MAX_DRAWS, PERSON, Match, find_names
from corpus.pii.formats.shapes import digits_of, draw_digits, refill, scramble
from corpus.pii.types import PiiType, words

Verdict = tuple[float, str]
"""Confidence and reason."""

_FREE, _FREE_END = r"(?<![0-9A-Za-z_])(?<![0-9][-.])", r"(?![0-9A-Za-z_]|[-.][0-9A-Za-z])"
_OPENING = r"[\"'“‘(]?"
_COLON = r"\s?[:=|>#\t-]?\s{0,3}"
_IS = "(?:란에|[은는이가에란])?"

# --- ORG_NUMBER: NNNNNN-NNNNNNN; registry office, kind of company, serial number, check digit

_ORG_WORDS = r"법인 ?등록 ?(?:번호)?|법인 ?번호|법인등기 ?번호"
_ORG_DIGITS = r"[0-9]{6}(?: ?- ?| )?[0-9]{7}"
ORG_BEFORE = re.compile(rf"(?:{_ORG_WORDS})[^0-9]{{0,16}}?{_FREE}(?P<value>{_ORG_DIGITS}){_FREE_END}")
ORG_AFTER = re.compile(rf"{_FREE}(?P<value>{_ORG_DIGITS}){_FREE_END}[ (\[,/]{{1,3}}(?:{_ORG_WORDS})")
_ORG_WEIGHTS = (1, 2) * 6


def org_check_digit(first_twelve: str) -> int:
    """The check digit of a company registration number; a wrong one only lowers the confidence."""
    total = sum(weight * int(digit) for weight, digit in zip(_ORG_WEIGHTS, first_twelve, strict=True))
    return -total % 10


def _judge_org_number(match: re.Match[str]) -> Verdict:
    digits = digits_of(match["value"])
    return (1.0, "checksum") if org_check_digit(digits[:12]) == int(digits[12]) else (0.9, "label")


def _fake_org_number(rng: Random, value: str) -> str:
    """Numbers of registry offices start with 1 or 2, so 99 is unused; the check digit is wrong too."""
    front = f"99{draw_digits(rng, 10)}"
    return _unlike(value, lambda: refill(value, f"{front}{(org_check_digit(front) + rng.randrange(1, 10)) % 10}"))


# --- HANDLE: the name of a service, perhaps a word for account, then Latin letters

_SERVICES = (
    r"(?:카카오 ?톡|카톡|카카오|텔레그램|텔레그렘|텔레|텔그|인스타그램|인스타|디스코드|디코|트위터|유튜브|유투브"
    r"|페이스북|페북|스카이프|위챗|틱톡|왓츠앱|(?<![A-Za-z_])(?i:kakao ?talk|kakao|telegram|instagram|insta|discord"
    r"|twitter|youtube|facebook|skype|we ?chat|tik ?tok|whats ?app)(?![A-Za-z.])|(?P<weak>(?<![가-힣])(?:라인|톡"
    r"|스레드)|(?<![A-Za-z_])(?i:line|threads)(?![A-Za-z.])))"
)
_ACCOUNT_WORDS = r"(?:아이디|계정|닉네임|닉넴|닉|핸들|(?i:id|account|handle|username|user ?name|nick)(?![A-Za-z]))"
_HANDLE = r"(?P<value>(?P<at>@?)(?P<name>[A-Za-z0-9_][A-Za-z0-9_.\-]{2,28}[A-Za-z0-9_](?:#[0-9]{4})?))"
_HANDLE_END = r"(?![A-Za-z0-9@#(\[=]|/[A-Za-z0-9]|[-_.][A-Za-z0-9]|://)"
HANDLE = re.compile(
    rf"(?=[카텔인디트유페스위틱왓라톡줄아AaDdFfIiKkLlSsTtWwYy])(?:{_SERVICES}(?P<word>[ _-]?{_ACCOUNT_WORDS})?"
    rf"|(?P<bare>(?<![가-힣])아이디|(?<![A-Za-z_])ID(?= ?[:=]))){_IS}(?P<gap>[ \"'”’)]{{0,2}}(?P<colon>[:="
    rf"|>]?)\s{{0,3}}{_OPENING}){_HANDLE}{_HANDLE_END}"
)
_TELLING = re.compile(r"[A-Za-z].{0,40}[0-9]|[0-9].{0,40}[A-Za-z]|[A-Za-z].{0,40}_|_.{0,40}[A-Za-z]|[a-z]\.[a-z]")
_NO_HANDLE = re.compile(
    r"(?i:.*[._](?:pdf|png|jpe?g|gif|zip|py|js|ts|json|html?|txt|mp[34]|com|net|org|kr|io|gg|me|apk|exe|md|token|key"
    r"|id|bot|api|url|secret|hook|client|user|name)|(?:bot|api|token|client|user|channel|chat|webhook|server|access"
    r"|v[0-9]|ver|version|http|ios|android|iphone|ipad|galaxy|windows|win|mp[34]|web|html?|covid|top|part|ep|ch"
    r"|no)[_.0-9-].*|[0-9.,]+[a-z]{0,4}|number|card|settings?|private|public|login|password|passwd|null|none|true"
    r"|false|undefined|and|the|for|error|message)"
)


def _judge_handle(match: re.Match[str]) -> Verdict | None:
    name = match["name"]
    if _NO_HANDLE.fullmatch(name) or not re.search("[A-Za-z]", name):
        return None
    if not match["bare"] and (match["word"] or match["at"] or (match["colon"] and not match["weak"])):
        return 0.9, "label"
    is_telling = _TELLING.search(name) and len(name) >= 5
    is_fit = match["bare"] or (not match["weak"] and re.search("[a-z]", name))
    return (0.7, "label") if is_telling and is_fit else None


def _fake_handle(rng: Random, value: str) -> str:
    """Random letters for letters and digits for digits; no unused account names are known."""
    return _unlike(value, lambda: scramble(rng, value), lambda fake: not _NO_HANDLE.fullmatch(fake.lstrip("@")))


# --- CUSTOMS: P, two digits of the year of issue, nine of a serial number, a check digit

CUSTOMS_CODE = re.compile(
    rf"{_FREE}(?P<value>[Pp](?: ?- ?| )?(?:[0-9]{{12}}|[0-9]{{3}}(?:[ -][0-9]{{3}}){{3}}"
    rf"|[0-9]{{4}}(?:[ -][0-9]{{4}}){{2}})){_FREE_END}"
)
_CUSTOMS_WORDS = re.compile("통관|(?i:pccc|customs)|세관|관세|직구")
_PLAIN_CUSTOMS = re.compile(r"(?<![/=.\-?&])P-?[0-9]{12}(?![0-9])")


def _judge_customs_code(match: re.Match[str]) -> Verdict | None:
    text, (start, end) = match.string, match.span("value")
    if _CUSTOMS_WORDS.search(text, max(0, start - 30), min(len(text), end + 14)):
        return 1.0, "label"
    return (0.7, "pattern") if _PLAIN_CUSTOMS.match(text, start) else None


# --- COURIER and MEMBERSHIP: a word, then digits

_COURIER_NAMES = (
    "CJ ?대한통운|대한통운|CJ ?택배|씨제이 ?택배|한진 ?택배|롯데 ?택배|로젠 ?택배|로젠|우체국 ?택배|경동 ?택배"
    "|대신 ?택배|일양 ?택배|일양로지스|편의점 ?택배|GS ?택배|CU ?택배|CVS ?택배|쿠팡 ?로켓|택배사"
)
_COURIER_WORDS = (
    r"운송장 ?(?:번호|no\.?|#)?|송장 ?(?:번호|no\.?|#)?|등기 ?번호|택배 ?번호|배송 ?번호|화물 ?번호|등기우편"
    r"|소포 ?번호|EMS ?(?:번호)?|(?<![A-Za-z])(?i:(?:tracking|waybill) ?(?:no\.?|number|#)?)"
)
_PARCEL = r"[A-Z]{2}[ -]?[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}[ -]?[A-Z]{2}|[0-9]{3,6}(?:[- ][0-9]{3,6}){1,3}|[0-9]{9,14}"
COURIER = re.compile(
    rf"(?=[CGETWtw가-힣])(?:(?P<word>{_COURIER_WORDS})|(?:{_COURIER_NAMES})){_IS}[ \"'”’)]{{0,2}}{_COLON}{_OPENING}"
    rf"(?:(?:{_COURIER_NAMES})[ \"'”’):/]{{0,3}}{_OPENING})?(?P<value>{_PARCEL}){_FREE_END}"
)
_PHONE = re.compile("0(?:1[016-9]|2|[3-6][1-5]|70|50[0-9]?)[- ]|01[016-9][0-9]{7,8}$|1[568][0-9]{2}[- ]?[0-9]{4}$")


def _judge_parcel(match: re.Match[str]) -> Verdict | None:
    is_fit = 9 <= len(digits_of(match["value"])) <= 14 and not _PHONE.match(match["value"])
    return (0.9 if match["word"] else 0.7, "label") if is_fit else None


def _fake_parcel(rng: Random, value: str) -> str:
    """Ends in 7, 8 or 9, where couriers use a remainder modulo 7; EMS numbers get a wrong check digit."""

    def draw() -> str:
        digits = draw_digits(rng, len(digits_of(value)) - 1)
        if len(digits) == 8:
            return refill(value, f"{digits}{(_postal_check_digit(digits) + rng.randrange(1, 10)) % 10}")
        return refill(value, rng.choice("3456789") + digits[1:] + rng.choice("789"))

    return _unlike(value, draw)


def _postal_check_digit(first_eight: str) -> int:
    """The check digit of an international parcel number (UPU S10)."""
    total = sum(weight * int(digit) for weight, digit in zip((8, 6, 4, 2, 3, 5, 9, 7), first_eight, strict=True))
    return {10: 0, 11: 5}.get(11 - total % 11, 11 - total % 11)


_NUMBER_WORD = r"(?: ?(?:번호|코드|(?i:no\.?|number|id|아이디)(?![A-Za-z])))"
_MEMBERSHIP_WORDS = (
    rf"(?:회원|고객|멤버십|멤버쉽|마일리지(?: ?회원)?|포인트|적립|가입자|이용자|조합원|사원|직원|교번|학생|응시|수험"
    rf"|대출증|회원증|학생증|사원증|사번|학번|군번|독자|(?:회원|포인트|멤버십|멤버쉽|적립|도서관) ?카드){_NUMBER_WORD}"
    rf"|사번|학번|군번|(?<![A-Za-z])(?i:(?:member(?:ship)?|customer|student|employee|loyalty)[ _]?(?:no\.?|number|id"
    rf"|code))(?![A-Za-z])"
)
MEMBERSHIP = re.compile(
    rf"(?=[A-Za-z가-힣])(?<![가-힣])(?:{_MEMBERSHIP_WORDS}){_IS}[ \"'”’)]{{0,2}}{_COLON}{_OPENING}"
    rf"(?P<value>[A-Za-z]{{0,5}}-?[0-9]{{2,16}}(?:[- ][0-9]{{2,8}}){{0,4}}"
    rf"|[A-Za-z0-9]{{2,8}}(?:-[A-Za-z0-9]{{2,8}}){{0,3}}){_FREE_END}"
    r"(?! ?(?:[년월일명원개점%]|퍼센트|만|천|억|자리|학번))"
)


# --- all of them

_FINDERS: dict[str, tuple[tuple[re.Pattern[str], ...], Callable[[re.Match[str]], Verdict | None]]] = {
    "ORG_NUMBER": ((ORG_BEFORE, ORG_AFTER), _judge_org_number),
    "HANDLE": ((HANDLE,), _judge_handle),
    "CUSTOMS": ((CUSTOMS_CODE,), _judge_customs_code),
    "COURIER": ((COURIER,), _judge_parcel),
    "MEMBERSHIP": ((MEMBERSHIP,), lambda match: (0.9, "label") if len(digits_of(match["value"])) >= 4 else None),
}


def find_extra(text: str, types: Collection[str]) -> list[Match]:
    """Values of ``types`` in ``EXTRA_TYPES``: sorted, without overlaps, in linear time.

    Of overlapping values of one type the longer one wins, else the one with the higher confidence.

    Args:
        text: folded text.
        types: names of types; others than ``EXTRA_TYPES`` are ignored.
    """
    found = list(find_names(text)) if "PERSON" in types else []
    for name, (patterns, judge) in _FINDERS.items():
        for match in (match for pattern in patterns if name in types for match in pattern.finditer(text)):
            if verdict := judge(match):
                found.append(Match(*match.span("value"), name, *verdict))
    kept: list[Match] = []
    for value in sorted(found):
        if kept and kept[-1].end > value.start and _beats(value, kept[-1]):
            kept.pop()
        if not kept or kept[-1].end <= value.start:
            kept.append(value)
    return kept


def _beats(value: Match, other: Match) -> bool:
    length, other_length = value.end - value.start, other.end - other.start
    if value.type == other.type:
        return (length, value.score) > (other_length, other.score)
    return (value.score, length) > (other.score, other_length)


def _unlike(value: str, draw: Callable[[], str], is_fit: Callable[[str], bool] = bool) -> str:
    """The first suitable draw that is not ``value``; the last one if there is none."""
    for _ in range(MAX_DRAWS):
        fake = draw()
        if fake != value and is_fit(fake):
            break
    return fake


EXTRA_TABLE: tuple[PiiType, ...] = (
    PERSON,
    PiiType("ORG_NUMBER", (), words("법인등록번호 법인번호"), _fake_org_number, "990011-0000001"),
    PiiType("HANDLE", (), words("카톡아이디 카톡 텔레그램 인스타 디스코드 라인 트위터"), _fake_handle, "malmoi_00"),
    # year of issue 99, which is unused
    PiiType(
        "CUSTOMS",
        (),
        words("개인통관고유부호 통관번호 통관부호 pccc"),
        lambda rng, value: _unlike(value, lambda: refill(value, f"99{draw_digits(rng, 10)}")),
        "P990000000000",
    ),
    PiiType("COURIER", (), words("운송장번호 운송장 송장 등기번호 택배번호"), _fake_parcel, "300000000009"),
    # no unused numbers are known
    PiiType(
        "MEMBERSHIP",
        (),
        words("회원번호 고객번호 멤버십번호 사번 학번 군번 수험번호"),
        lambda rng, value: _unlike(value, lambda: scramble(rng, value)),
        "00000000",
    ),
)
"""The types of ``EXTRA_TYPES`` in order; without formats, because ``find_extra`` finds them."""
