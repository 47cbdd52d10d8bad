"""Addresses: from the region (or the bracketed postcode before it) to the last number, floor or room.

Both systems: road name and building number, and dong or ri with a lot number. Cities and districts come from a list,
because ``[가-힣]+[시군구]`` also fits 다시 (again) and 친구 (friend). Replacements put invented roads and towns into
real districts: nobody lives there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from corpus.pii.places import (
    CITY_DISTRICTS,
    DISTRICT_PATTERN,
    DISTRICTS,
    REGION_PATTERN,
    REGIONS,
    TELLING_DISTRICT_PATTERN,
)
from corpus.pii.types import CERTAIN, Format, PiiType, Scope

# what makes the number after a road or town a count of something: 강남대로 2시간, 별빛동 3만
_NO_COUNT = (
    r"(?![0-9A-Za-z%㎞㎡]|[.:][0-9]|,[0-9]{3}|(?:년|월|일(?!대)|시|분|초|명|개|점|원|위|회|차|세|살|억|만|천|퍼센트|프로|배|권|편|대|호선"
    r"|건(?!물)|평|가지|곳|번(?! ?지|길))| (?:년|개월|명|만|억))"
)
_NUMBER = rf"[0-9]{{1,5}}(?:-[0-9]{{1,5}}|의 ?[0-9]{{1,4}}(?= ?번지))?(?: ?번지)?{_NO_COUNT}"
_TOWN = r"[가-힣][가-힣0-9]{0,6}?(?:읍|면|동|리|[0-9]가)"
_TOWNS = rf" ?{_TOWN}(?: {_TOWN})?"
_ROAD = r" ?[가-힣][가-힣0-9·]{0,13}?(?:대로|로|길)(?: ?[0-9]{1,4}(?:번|[가-하])?[가-하]?길)?"
_CORE = (
    rf"(?:(?P<town>{_TOWNS})?(?P<road>{_ROAD})(?: 지하)?(?: |(?![0-9]가))(?P<number>{_NUMBER})"
    rf"|(?P<village>{_TOWNS})(?: 산)?(?: |(?![0-9]가))(?P<lot>{_NUMBER}))"
)
_FLAT = r"(?:제?[0-9]{1,4}동(?: ?제?[0-9]{1,5}호| ?[0-9]{1,3}층)?|[A-Za-z가-힣]동 ?[0-9]{1,5}호)"
_FLOOR = r"(?:지하 ?|B)?[0-9]{1,3}층(?: ?[0-9]{1,5}호)?"
_ROOM = rf"(?:{_FLAT}|{_FLOOR}|제?[A-Z]?[0-9]{{1,5}}호(?!선))"
_BUILDING = r"[가-힣A-Za-z][가-힣A-Za-z0-9]{0,14}"
_INSIDE = rf"[, ]{{1,2}}(?:{_BUILDING} ?(?:{_ROOM}|[0-9]{{1,4}}-[0-9]{{1,4}}(?![0-9-]))|{_ROOM})"
_BRACKET = r" ?\([가-힣][가-힣0-9]{0,7}(?:동|리|가|읍|면)[0-9]{0,2}(?:, ?[가-힣A-Za-z0-9 ]{1,24})?\)"
_DETAIL = rf"(?P<detail>(?:{_BRACKET})?(?:{_INSIDE}){{0,2}}(?:{_BRACKET})?)"
_POSTCODE = r"(?P<postcode>\((?:우 ?\)? ?)?[0-9]{3}-?[0-9]{2,3}\) ?|\[[0-9]{5}\] ?|우\) ?[0-9]{5} ?)"
_LED_BY_REGION = (
    rf"(?P<region>{REGION_PATTERN})"
    rf"(?P<districts>(?: ?{DISTRICT_PATTERN}){{1,2}}|(?<=세종특별자치시)|(?<=세종시)|(?<=세종)(?= )){_CORE}{_DETAIL}"
)
WITH_REGION = re.compile(rf"(?<![가-힣A-Za-z0-9]){_LED_BY_REGION}")
WITH_POSTCODE = re.compile(rf"(?<![0-9]){_POSTCODE}{_LED_BY_REGION}")
WITHOUT_REGION = re.compile(
    rf"(?<![가-힣A-Za-z0-9])(?P<districts>{TELLING_DISTRICT_PATTERN}(?: {DISTRICT_PATTERN})?)(?= ){_CORE}{_DETAIL}"
)
# a number behind a road, a town, 산 (mountain lot) or 지하 (underground)
_SCOPE = Scope(
    re.compile("[0-9](?:(?<=[로길동읍면리가산하][0-9])|(?<=[로길동읍면리가산하] [0-9]))"), before=80, after=160
)

# no syllable of these ends a road or a town, so an invented name is read back as one name
_FIRST = ("윤슬", "꽃다지", "여우비", "별똥", "무지개", "노랑", "하양", "달팽이", "솜사탕", "단추", "풀피리", "종달새")
_SECOND = ("나루", "고개", "언덕", "여울", "마루", "바위", "우물", "느티", "구슬", "모래")
_WORD = re.compile("[가-힣A-Za-z]{2,}")


def _invent(rng: Random) -> str:
    return rng.choice(_FIRST) + rng.choice(_SECOND)


def _new_number(rng: Random, text: str) -> str:
    """Digits for digits; the first of each number is not 0."""
    return re.sub("[0-9]+", lambda m: str(rng.randrange(10 ** (len(m.group()) - 1), 10 ** len(m.group()))), text)


def _new_districts(rng: Random, region: str | None, old: str) -> str:
    """A city or district of ``region`` (any region if None), two levels if ``old`` has two."""
    space = " " if old.startswith(" ") else ""
    levels = len(re.findall(DISTRICT_PATTERN, old))
    choices = DISTRICTS[region] if region else sorted(CITY_DISTRICTS)
    cities = [name for name in choices if name in CITY_DISTRICTS]
    if levels == 2 and cities:
        city = rng.choice(cities)
        return f"{space}{city} {rng.choice(CITY_DISTRICTS[city])}"
    return space + rng.choice(choices)


def _new_road(rng: Random, old: str) -> str:
    suffix = re.search(r"(?:대로|로|길)(?: ?[0-9]{1,4}(?:번|[가-하])?[가-하]?길)?$", old)
    assert suffix, "a road ends in one of its suffixes"
    return (" " if old.startswith(" ") else "") + _invent(rng) + _new_number(rng, suffix.group())


def _new_towns(rng: Random, old: str) -> str:
    return re.sub(r"[가-힣0-9]+?(?=(?:[읍면동리]|[0-9]가)(?: |$))", lambda _: _invent(rng), old)


def _new_detail(rng: Random, old: str) -> str:
    def rename(match: re.Match[str]) -> str:
        word = match.group()
        if word == "지하":
            return word
        return _invent(rng) + (word[-1] if word[-1] in "동리가읍면" else rng.choice(("아파트", "빌라")))

    return _new_number(rng, _WORD.sub(rename, old))


def _new_region(rng: Random, old: dict[str, str | None]) -> str | None:
    """A region that has as many levels of districts as the old address; None if that named no region."""
    if not old.get("region"):
        return None
    levels = len(re.findall(DISTRICT_PATTERN, old["districts"] or ""))
    if levels == 0:
        return "세종"  # the only region without districts
    return rng.choice(
        [r for r, names in DISTRICTS.items() if names and (levels == 1 or set(names) & set(CITY_DISTRICTS))]
    )


def _fake_address(rng: Random, value: str) -> str:
    """Another region and district, invented road, town and building, other numbers; the parts stay in order."""
    match = WITH_REGION.fullmatch(value) or WITH_POSTCODE.fullmatch(value) or WITHOUT_REGION.fullmatch(value)
    assert match, "only addresses are replaced"
    old = match.groupdict()
    region = _new_region(rng, old)
    renewals: dict[str, Callable[[str], str]] = {
        "postcode": lambda text: _new_number(rng, text),
        "region": lambda text: REGIONS[region or ""][0] if len(text) > 2 else region or "",
        "districts": lambda text: _new_districts(rng, region, text) if text else "",
        "town": lambda text: _new_towns(rng, text),
        "road": lambda text: _new_road(rng, text),
        "number": lambda text: _new_number(rng, text),
        "village": lambda text: _new_towns(rng, text),
        "lot": lambda text: _new_number(rng, text),
        "detail": lambda text: _new_detail(rng, text),
    }
    pieces, position = [], 0
    for name, renew in renewals.items():
        part = old.get(name)
        if part is not None:
            pieces += [value[position : match.start(name)], renew(part)]
            position = match.end(name)
    return "".join(pieces) + value[position:]


ADDRESS = PiiType(
    "ADDRESS",
    (
        Format(WITH_REGION, CERTAIN, scope=_SCOPE),
        Format(WITH_POSTCODE, CERTAIN, scope=_SCOPE),
        Format(WITHOUT_REGION, CERTAIN, scope=_SCOPE),
    ),
    ("주소", "소재지", "배송지"),
    _fake_address,
    "서울특별시 종로구 윤슬나루로 1",
)
