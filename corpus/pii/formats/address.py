"""ADDRESS: from the region (or the postcode before it) to the last number, floor or room.

Both systems are supported: road name with building number, and dong or ri with lot number. Cities and districts come
from a list, because ``[가-힣]+[시군구]`` also matches 다시 (again) and 친구 (friend). Replacements have invented roads
and towns in real districts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from corpus.pii.formats.regions import (
    CITY_DISTRICTS,
    DISTRICT_PATTERN,
    DISTRICTS,
    REGION_PATTERN,
    REGIONS,
    STEM_PATTERN,
    TELLING_DISTRICT_PATTERN,
)
from corpus.pii.types import CERTAIN, CLEAR, LIKELY, Format, PiiType, Scope, words

# after these, the number is a count: 강남대로 2시간, 별빛동 3만, 별빛동 2030 청년
_UNITS = (
    "년|월|일(?!대)|시|분|초|명|개|점|원|위|회|차|세|살|억|만|천|퍼센트|프로|배|권|편|대|호선|장|병상|객실|포기|그루|미터|건(?!물)|평|가지|곳"
    "|번(?! ?지|길)|층|동 |호점|가구|세대|필지|채|[중여] |석|톤|타입|제곱|안전"
)
# Hangul after a number of at most two digits; all other words make it a count: 별빛동 3지구, 별빛동 8학군
_AFTER_SHORT = (
    "번지|번길|에|으?로|의|입니다|인데|였|[과와을를은는이가도께나요랑](?![가-힣])|이(?!닝)|라[고는]|하고|한테|처럼|보다|까지"
    "|부터|앞|옆|뒤|일[대원]|인근|부근|근처|소재|건물|지하|아파트|빌라|상가|호(?!선|점)"
)
_NO_COUNT = (
    r"(?![0-9A-Za-z%㎞㎡]|[+\-][0-9]|[·~,] ?[0-9]{1,3} ?(?:단지|구역|지구|블록|통)|[.:][0-9]{1,2}(?![0-9])"
    r"|,[0-9]{3}(?![0-9A-Za-z.\-]| [0-9]|[가-힣][0-9 \-])"
    rf"|{_UNITS}|(?:(?<=[^0-9\-][0-9])|(?<=[^0-9\-][0-9]{{2}}))(?!{_AFTER_SHORT})[가-힣]"
    r"| (?:년|개월|명|만|억|인 |㎡)|(?<= (?:[2-6]0[3-7]0|70[89]0|20[0-2][0-9])) [가-힣])"
)
_NO_YEARS = r"(?!(?:19|20)[0-9]{2}-(?:19|20)[0-9]{2})"
_LOT = rf"{_NO_YEARS}[0-9]{{1,5}}(?:-[0-9]{{1,5}}|(?: ?번지)?의 ?[0-9]{{1,4}})"
_NUMBER = rf"(?:{_LOT}|[0-9]{{1,5}})(?: ?번지(?![0-9])|{_NO_COUNT})"
_TOWN = r"[가-힣][가-힣0-9]{0,6}?(?:읍|면|동|리| ?[0-9]가)"
_TOWNS = rf"[ \n]{{0,3}}{_TOWN}(?: {_TOWN})?"
_WIDE_ROAD = r" [가-힣][가-힣0-9·]{1,13}?(?:대로|(?:로|길) ?[0-9]{1,4}(?:번|[가-하])?길)"
_SIDE_STREET = r"[가-힣][가-힣0-9·]{1,13}?(?:대로|로|길) ?[0-9]{1,4}번?[가-하]?길"
# 4·19로, 5일시장길
_ROAD = (
    r"[ \n]{0,3}(?:[0-9]·[0-9]{1,2}|[0-9]일[가-힣]|[가-힣])[가-힣0-9·]{0,13}?(?:대로|로|길)"
    r"(?:[ \r\n]{0,3}[0-9]{1,4}(?:번|[가-하])?[가-하]?길)?"
)
_CORE = (
    rf"(?:(?P<town>{_TOWNS})?(?P<road>{_ROAD})(?: 지하)?"
    rf"(?:[ \n]{{1,3}}(?![0-9]가 [0-9])|(?![0-9]가))(?P<number>{_NUMBER})"
    rf"|(?P<village>{_TOWNS})(?: 산| 사서함)?(?: |(?![0-9]가))(?P<lot>{_NUMBER}))"
)
_FLAT = r"(?:제?[0-9]{1,4}동(?: ?제?[0-9]{1,5}호| ?[0-9]{1,3}층)?|[A-Za-z가-힣]동 ?[0-9]{1,5}[호층])"
_FLOOR = r"(?:지하 ?|B)?[0-9]{1,3}(?:층|F(?![A-Za-z]))(?: ?[0-9]{1,5}호)?"
_ROOM = rf"(?:{_FLAT}|{_FLOOR}|제?[A-Z]?[0-9]{{1,5}}호(?!선|[0-9]))"
# 101-202 is 101동 202호, 1588-0000 a telephone
_FLAT_ROOM = r"(?!1[5-8][0-9]{2}-[0-9]{4})[0-9]{2,4}-[0-9]{2,4}(?![0-9\-]|명|분|시|일|월|년|원|%)"
_NUMBER_WORD = r"(?:핸드폰|휴대|전화|연락처|문의|팩스|대표|고객센터|콜센터|상담|(?i:tel|fax|hp|phone|mobile))"
_KIND = "(?:아파트|오피스텔|빌라|맨션|연립|빌딩|타워|상가|센터|프라자|플라자|타운|마을|본관|별관|신관)"
# 강선마을 14단지, 마이타워 오피스텔, Two IFC
_BUILDING = (
    rf"(?!{_NUMBER_WORD})(?:[0-9]{{1,2}}(?:차|단지) )?(?:[A-Z][A-Za-z0-9&]{{0,14}} ){{0,2}}"
    r"[가-힣A-Za-z][가-힣A-Za-z0-9]{0,14}"
    rf"(?: (?:[0-9]{{1,3}}(?:단지|차)|[가-힣A-Za-z0-9]{{0,12}}{_KIND})){{0,2}}"
)
_INSIDE = rf"[, ]{{1,2}}(?:{_BUILDING} ?(?:{_ROOM}|{_FLAT_ROOM})|{_ROOM}|{_FLAT_ROOM})"
_HOUSE_NAME = rf"(?:, ?[가-힣A-Za-z0-9]{{1,14}}{_KIND})"
_BRACKET = r" ?\([가-힣][가-힣0-9]{0,7}(?:동|리|가|읍|면)[0-9]{0,2}(?:, ?[가-힣A-Za-z0-9 ]{1,24})?\)"
_DETAIL = (
    rf"(?P<detail>(?: [0-9]{{1,3}}통 ?[0-9]{{1,3}}반)?(?:{_BRACKET})?(?:(?:{_INSIDE}){{1,2}}|{_HOUSE_NAME})?"
    rf"(?:{_BRACKET})?(?: ?\([0-9]{{5}}\))?)"
)
_POSTCODE = (
    r"(?P<postcode>\((?:우 ?\)? ?)?[0-9]{3}-?[0-9]{2,3}\) ?|\[[0-9]{5}\] ?"
    r"|(?:\(?우 ?\) ?)?(?:[0-9]{5}|[0-9]{3}-[0-9]{3}),? ?)"
)
_LED_BY_REGION = (
    rf"(?P<region>{REGION_PATTERN})"
    rf"(?P<districts>(?:[ \n]{{0,3}}{DISTRICT_PATTERN}){{1,2}}|[ \n]{STEM_PATTERN}"
    r"|(?<=세종특별자치시)|(?<=세종시)|(?<=세종)(?= ))"
    rf"{_CORE}{_DETAIL}"
)
_START = r"(?:(?<![가-힣A-Za-z0-9])|(?<=주소)|(?<=소재지)|(?<=배송지)|(?<=거주지))"
WITH_REGION = re.compile(rf"(?:{_START}|(?<![0-9.\-])(?<![0-9] ){_POSTCODE}){_LED_BY_REGION}")
# renamed or merged districts are not in the list: region, county, town and number are sufficient together
WITH_OLD_DISTRICT = re.compile(
    rf"{_START}(?P<region>{REGION_PATTERN})(?P<districts> [가-힣]{{1,4}}[시군구])(?= [가-힣]{{1,5}}[읍면동로길] ?)"
    rf"{_CORE}{_DETAIL}"
)
WITHOUT_REGION = re.compile(
    rf"(?<![가-힣A-Za-z0-9])(?P<districts>{TELLING_DISTRICT_PATTERN}(?: {DISTRICT_PATTERN})?)(?= ){_CORE}{_DETAIL}"
)
# without a district, only clear cases: a lot, a numbered side street, a wide road
WITHOUT_DISTRICT = re.compile(
    rf"(?<![가-힣A-Za-z0-9])(?P<region>{REGION_PATTERN})(?= )(?P<districts>)"
    rf"(?:(?P<village>{_TOWNS})(?: 산)? ?(?P<lot>(?:{_LOT}(?: ?번지)?|[0-9]{{1,5}} ?번지){_NO_COUNT})"
    rf"|(?P<road>{_WIDE_ROAD}) ?(?P<number>{_NUMBER})){_DETAIL}"
)
SIDE_STREET = re.compile(rf"(?<![가-힣A-Za-z0-9])(?P<road>{_SIDE_STREET}) ?(?P<number>{_NUMBER}){_DETAIL}")
HOUSE_LOT = re.compile(
    rf"(?<![가-힣A-Za-z0-9])(?P<village>{_TOWN}(?: {_TOWN})?)(?: 산)? ?(?P<lot>(?:{_LOT}|[0-9]{{1,5}}) ?번지){_DETAIL}"
)
LABELLED = re.compile(
    rf"(?:주소|소재지|배송지|수령지|거주지|본적|자택|(?i:addr(?:ess)?[0-9]?))"
    r"(?:지|는|가|은|란)?[\"']? ?[:：=\]]? ?[\"']?"
    rf"(?P<value>(?! |지로 ){_CORE}(?!가){_DETAIL})"
)
PLAIN = re.compile(f"{_CORE}{_DETAIL}")
# 대치동 윤슬아파트 3동 204호; the building needs a usual name, a district and a town before it, or long numbers
_ESTATE = "(?:아파트|빌라|맨션|오피스텔|연립|주공|단지|타운|마을|래미안|푸르지오|자이|캐슬|스테이트|파크|더샵)"
_UNNAMED = (
    r"[가-힣A-Za-z][가-힣A-Za-z0-9\-]{2,13}(?<![은는이가을를도에의집소지고요서면며니관])"
    r"(?<!기숙사|강의실|입주민|드디어)(?= [1-9][0-9]{2,3}동 ?[0-9]{3,4}호)"
)
_FLAT_ALONE = re.compile(r"(?<![실관사] )(?<![0-9A-Za-z\-])(?P<building>[1-9][0-9]{2,3}동 ?[0-9]{3,4}호)")
_FLAT_OF_ESTATE = (
    r"(?<=[트공지안오이샵라션을] )[1-9][0-9]{0,3}-[0-9]{3,4}(?![0-9A-Za-z\-%]|가구|세대|명|원|평|년|채|여)"
)
_IN_TOWN = "|".join(f"(?<=[시군구] [가-힣]{{{size}}}[가-힣0-9]동 )" for size in (1, 2))
APARTMENT = re.compile(
    rf"(?<![가-힣A-Za-z0-9])(?:(?P<region>{REGION_PATTERN}) )?"
    rf"(?:(?P<districts>{DISTRICT_PATTERN}(?: {DISTRICT_PATTERN})?) )?"
    r"(?:(?P<village>[가-힣]{1,4}[0-9]?동)(?P<site>(?: [가-힣A-Za-z0-9]{2,12}){0,2}) )?"
    rf"(?P<building>(?:[가-힣A-Za-z0-9]{{0,12}}{_ESTATE}(?:[0-9]{{1,2}}단지)?|(?:{_IN_TOWN})[가-힣A-Za-z0-9]{{2,14}}"
    rf"|(?!우리|저희){_UNNAMED}) "
    r"(?:[0-9]{1,3}(?:단지|차) )?"
    rf"(?:(?:[0-9]{{1,4}}|[가나다라마바사A-F])동 ?[0-9]{{1,5}}호|{_FLAT_OF_ESTATE}))"
)
ROAD_AND_ROOM = re.compile(
    rf"(?<![가-힣A-Za-z0-9])(?P<value>(?P<road>[가-힣][가-힣0-9·]{{1,13}}(?:대로|로|길)) ?(?P<number>{_NUMBER})"
    rf"(?P<detail>(?:{_BRACKET})?{_INSIDE}(?:{_INSIDE})?(?:{_BRACKET})?))"
)
# 별빛동 12-3, 별빛1동 12-3, 별빛동2가 12-3
TOWN_AND_LOT = re.compile(
    r"(?<![가-힣A-Za-z0-9])(?P<value>"
    r"(?P<village>(?:[가-힣]{2,4}|[가-힣]{1,3}[0-9])[동리]|[가-힣]{1,3}동[0-9]가) "
    rf"(?P<lot>{_NO_YEARS}[0-9]{{1,4}}-[0-9]{{1,4}}{_NO_COUNT}(?!-))"
    rf"(?! ?(?:승|패|무승부|로 |회|주|호|끝|이닝|득점|완승))(?P<detail>(?:{_INSIDE})?))"
)
# 302-1204, 45 Gwangnaru-ro 56-gil, Gwangjin-gu, Seoul 05116, Korea
ROMAN = re.compile(
    r"(?<![A-Za-z0-9\-])(?P<roman>(?:#?[0-9]{1,4}(?:-[0-9]{1,4}|-?(?:ho|dong|F))?, ?){0,2}[0-9]{1,5}(?:-[0-9]{1,4})?,? "
    r"(?:[A-Z][a-z]{1,20}[- ]?(?:daero|ro|gil|dong|ri|ga)(?:[ ,]{1,2}[0-9]{1,4}(?:beon)?-?gil)?, ?)"
    r"(?:[A-Z][a-z]{1,15}-(?:gu|si|gun|eup|myeon|dong|do)(?:, ?| |(?![A-Za-z]))){1,3}"
    r"(?:(?<= )[A-Z][a-z]{1,10}(?:-do)?)?(?:,? [0-9]{5})?(?:, (?:South |Republic of )?Korea)?)(?![A-Za-z0-9])"
)
# Seoul, Gwangjin-gu, Gwangnaru-ro 45
ROMAN_DOWN = re.compile(
    r"(?<![A-Za-z0-9\-])(?P<roman>(?:[A-Z][a-z]{1,15}(?:-(?:si|do))?,? ){0,2}[A-Z][a-z]{1,15}-(?:gu|si|gun),? "
    r"(?:[A-Z][a-z]{1,15}-(?:gu|dong|eup|myeon|ri),? ){0,2}[A-Z][a-z]{1,20}[- ]?(?:daero|ro|gil)"
    r"(?:[ ,]{1,2}[0-9]{1,4}(?:beon)?-?gil)?,? [0-9]{1,5}(?:-[0-9]{1,4})?)(?![A-Za-z0-9])"
)
_ROMAN_SCOPE = Scope(r"\-", "(?:gu|si|gun)(?![a-z])", before=90, after=60)
_STEM = re.compile("[A-Z][a-z]+(?=[- ]?(?:daero|ro|gil|dong|ri|ga|gu|si|gun|eup|myeon)(?![a-z]))")
_ROMAN_NAMES = words("Yunseul Kkotdaji Yeoubi Byeolttong Mujigae Dalpaengi Somsatang Danchu Pulpiri Jongdalsae")
# nouns in 동 and 리 that numbers follow: activity, movement, labour …; seat, distance, management …
_NO_VILLAGE = re.compile(
    "(?:.*[활운행노감자수작변공아연진충폭소파협출유반선역요거구기시부전제격생냉해율]동"
    "|.*[거자우다마머소관처정원권논윤심물분수승유의이무보허꼬고요도조아구]리"
    "|.*(?:헝가|나폴|칼리아|에밀|스토|브러|배터|갤러|팩토|데일)리) "
)
_NO_TOWN = re.compile(r"(?:거리|자리|우리|다리|마리|머리|활동|운동|행동|이동) ?[0-9]")
_NO_ROAD = re.compile(r"(?:.*으로|바로|새로|따로|서로|별로|그대로|이대로|절대로|반대로|제대로|실제로) ?[0-9]")


def _is_place(match: re.Match[str], label: str | None) -> bool:
    """Excludes words such as 바로 (at once) and 끝으로 (at last)."""
    return not (_NO_ROAD.match(match["value"]) or _NO_TOWN.match(match["value"]))


# a number after a road, a town, 산 (mountain lot) or 지하 (underground); 으로 and 하면 are no road and no town,
# 가 follows a number (종로 3가), and 산 and 지하 are separate words
_BEHIND = (
    "(?<=[길동읍리]{0}[0-9])|(?<=[^으]로{0}[0-9])|(?<=[^하]면{0}[0-9])"
    "|(?<=사서함{0}[0-9])|(?<=[0-9]가{0}[0-9])|(?<=[ 동리면]산{0}[0-9])|(?<=지하{0}[0-9])"
)
_HOUSE = "(?<=[가-힣] [0-9])[0-9]{0,3}동 ?[0-9]{1,5}호|(?<=[트공지안오이샵라션을] [0-9])[0-9]{0,3}-[0-9]{3}"
_SCOPE = Scope(
    "0-9",
    f"(?:{_BEHIND.format('')}|{_BEHIND.format(' ')}|(?<=[길로]\n[0-9])|(?<=[길로] \n[0-9])|{_HOUSE})",
    before=80,
    after=160,
)

_REGION_WORD = re.compile(REGION_PATTERN)
_DISTRICT_WORD = re.compile(TELLING_DISTRICT_PATTERN)
_SIDE_WORD, _LOT_WORD, _ROOM_WORD = map(re.compile, ("[번0-9가-하]길 ?[0-9]", "[0-9] ?번지", "[0-9] ?[호층]|-[0-9]{3}"))
_LABEL_WORD = re.compile("주소|소재지|배송지|수령지|거주지|본적|자택|[Aa][Dd][Dd][Rr]")
_LOT_SIGN = re.compile("[동리가] [0-9]{1,4}-[0-9]")

# no syllable of these ends a road or a town, so an invented name is detected as one name
_FIRST = ("윤슬", "꽃다지", "여우비", "별똥", "무지개", "노랑", "하양", "달팽이", "솜사탕", "단추", "풀피리", "종달새")
_SECOND = ("나루", "고개", "언덕", "여울", "마루", "바위", "우물", "느티", "구슬", "모래")
_WORD = re.compile("[가-힣A-Za-z]{2,}")
_KEPT_WORD = re.compile(f"지하|단지|{_KIND}")


def _invent(rng: Random) -> str:
    return rng.choice(_FIRST) + rng.choice(_SECOND)


def _invent_short(rng: Random) -> str:
    return rng.choice(_FIRST + _SECOND)


def _new_number(rng: Random, text: str) -> str:
    """Random digits for digits; the first digit of a number is not 0."""
    return re.sub("[0-9]+", lambda m: str(rng.randrange(10 ** (len(m.group()) - 1), 10 ** len(m.group()))), text)


def _new_districts(rng: Random, region: str | None, old: str) -> str:
    """A city or district of ``region`` (any region if None), with a district of a city if ``old`` has one."""
    if not old:
        return ""
    name = rng.choice(DISTRICTS[region] if region else sorted(CITY_DISTRICTS))
    has_two = len(re.findall(DISTRICT_PATTERN, old)) == 2 and name in CITY_DISTRICTS
    return " " * old.startswith(" ") + name + (f" {rng.choice(CITY_DISTRICTS[name])}" if has_two else "")


def _new_road(rng: Random, old: str) -> str:
    suffix = re.search(r"(?:대로|로|길)(?: ?[0-9]{1,4}(?:번|[가-하])?[가-하]?길)?$", old)
    assert suffix, "a road ends in one of its suffixes"
    return " " * old.startswith(" ") + _invent(rng) + _new_number(rng, suffix.group())


def _new_towns(rng: Random, old: str, invent: Callable[[Random], str] = _invent) -> str:
    return re.sub(r"[가-힣0-9]{1,16}?(?=(?:[읍면동리]|[0-9]가)(?: |$))", lambda _: invent(rng), old)


def _new_detail(rng: Random, old: str) -> str:
    def rename(word: str) -> str:
        return _invent(rng) + (word[-1] if word[-1] in "동리가읍면" else rng.choice(("아파트", "빌라")))

    return _new_number(rng, _WORD.sub(lambda m: m[0] if _KEPT_WORD.fullmatch(m[0]) else rename(m[0]), old))


def _fake_address(rng: Random, value: str) -> str:
    """Another region and district, invented road, town and building, other numbers, in the same order."""
    match = next(filter(None, (pattern.fullmatch(value) for pattern in _WRITINGS)), None)
    assert match, "only addresses are replaced"
    old = match.groupdict()
    # 세종 is the only region without districts; in other regions they may be omitted
    has_district = bool((old.get("districts") or "").strip())
    has_districts = has_district or not str(old.get("region")).startswith("세종")
    regions = [r for r, names in DISTRICTS.items() if bool(names) == has_districts]
    region = rng.choice(regions) if old.get("region") else None
    renewals: dict[str, Callable[[Random, str], str]] = {
        "postcode": _new_number,
        "region": lambda rng, text: REGIONS[region or ""][0] if len(text) > 2 else region or "",
        "districts": lambda rng, text: _new_districts(rng, region, text),
        "town": _new_towns,
        "road": _new_road,
        "number": _new_number,
        # a town without a region has a short name
        "village": lambda rng, text: _new_towns(rng, text, _invent if region or has_district else _invent_short),
        "lot": _new_number,
        "detail": _new_detail,
        "site": _new_detail,
        "building": _new_detail,
        "roman": lambda rng, text: _new_number(rng, _STEM.sub(lambda _: rng.choice(_ROMAN_NAMES), text)),
    }
    pieces, position = [], 0
    for name, renew in renewals.items():
        if (part := old.get(name)) is not None:
            pieces += [value[position : match.start(name)], renew(rng, part)]
            position = match.end(name)
    return "".join(pieces) + value[position:]


_FORMATS = (
    Format(WITH_REGION, CERTAIN, scope=_SCOPE, needs=_REGION_WORD),
    Format(WITH_OLD_DISTRICT, CLEAR, scope=_SCOPE, needs=_REGION_WORD),
    Format(WITHOUT_REGION, CERTAIN, scope=_SCOPE, needs=_DISTRICT_WORD),
    Format(WITHOUT_DISTRICT, LIKELY, scope=_SCOPE, needs=_REGION_WORD),
    Format(SIDE_STREET, LIKELY, scope=_SCOPE, needs=_SIDE_WORD),
    Format(HOUSE_LOT, LIKELY, lambda match, label: not _NO_TOWN.match(match[0]), _SCOPE, needs=_LOT_WORD),
    Format(APARTMENT, LIKELY, scope=_SCOPE, needs=_ROOM_WORD),
    Format(_FLAT_ALONE, LIKELY, scope=_SCOPE, needs=_ROOM_WORD),
    Format(ROAD_AND_ROOM, LIKELY, _is_place, _SCOPE, needs=_ROOM_WORD),
    # 활동 3-2 (activity) is a score or a section, not a lot
    Format(
        TOWN_AND_LOT,
        LIKELY,
        lambda match, label: label == "ADDRESS" or not (_NO_VILLAGE.match(match["value"]) or len(match["lot"]) == 3),
        _SCOPE,
        needs=_LOT_SIGN,
    ),
    Format(LABELLED, LIKELY, _is_place, _SCOPE, needs=_LABEL_WORD),
    Format(ROMAN, CLEAR, scope=_ROMAN_SCOPE),
    Format(ROMAN_DOWN, CLEAR, scope=_ROMAN_SCOPE),
)
_WRITINGS = (*(form.pattern for form in _FORMATS), PLAIN)
ADDRESS = PiiType("ADDRESS", _FORMATS, _fake_address, "서울특별시 종로구 윤슬나루로 1")
