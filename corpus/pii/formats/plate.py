"""PLATE: number plates of vehicles, such as 12가3456, 123가 3456, 서울30자0080, 경기수원가0070.

Many letters of plates are also units (12조 3456억, 30주 1000명), so a label, a region, or the absence of spaces is
required, and no unit may follow. Plates end in 0100 to 9999; replacements end in 0000 to 0099, which are unused.
"""

from __future__ import annotations

import re
from random import Random

from corpus.pii.formats.regions import COUNTY_STEM_PATTERN, DISTRICTS, REGIONS, SHORT_REGION_PATTERN
from corpus.pii.types import BY_LABEL, CERTAIN, CLEAR, LIKELY, Format, PiiType, Scope

_PRIVATE = "가나다라마거너더러머버서어저고노도로모보소오조구누두루무부수우주"
_LETTERS = f"[{_PRIVATE}바사아자배하허호국합육해공]"
_COUNTING = "조도보주수부구모자배루로호가나하대사국해"
"""Letters that are also units or nouns after a number."""
_UNITS = "[조도보주수부구모배로호대사국해]"

_NO_MORE = r"(?![0-9A-Za-z%]|[.~\-][0-9])"
# only letters that are units can count, and counts never start with 0; some units are the start of other words: 건강
# (health), 회사 (company), 여자 (woman)
_NO_COUNT = (
    rf"{_NO_MORE}(?:(?<=0[0-9]{{3}})|(?<!{_UNITS}[0-9]{{4}})(?<!{_UNITS}[ \-][0-9]{{4}})|(?! ?"
    r"(?:억|만|천|조(?!차)|원(?!룸|장)|명(?!의)|시간|년|월(?!요|세)|개(?!인)"
    r"|회(?!사|색|원|의)|건(?!강|물|설)|점(?!심|검|포)|달러|여(?![자성기권])|달|분(?!의)|일(?! |$)|대(?! |$)|칼로리"
    r"|보(?!험|호)|번씩|쪽| (?:[ck]?m|k?g|m?l|usd|krw|pt?)(?![a-z]))))"
)
_START = r"(?<![0-9A-Za-z가-힣])(?<![0-9][.\-])"
_GAP = "[ \\-]?"
MODERN = re.compile(
    rf"(?<![0-9A-Za-z])(?<![0-9][.\-])[0-9]{{2,3}}(?P<gap>{_GAP})(?P<letter>{_LETTERS}){_GAP}[0-9]{{4}}{_NO_COUNT}"
)
TIGHT = re.compile(
    rf"(?<![0-9A-Za-z제])(?<![0-9][.\-])[0-9]{{2,3}}(?P<gap>)(?P<letter>(?!{_UNITS}){_LETTERS})[0-9]{{4}}{_NO_MORE}"
)
REGIONAL = re.compile(rf"{_START}{SHORT_REGION_PATTERN}{_GAP}[0-9]{{1,2}}{_GAP}{_LETTERS}{_GAP}[0-9]{{4}}{_NO_COUNT}")
MOTORCYCLE = re.compile(
    rf"{_START}{SHORT_REGION_PATTERN} ?{COUNTY_STEM_PATTERN}{_GAP}{_LETTERS}{_GAP}[0-9]{{4}}{_NO_COUNT}"
)
PARTED = re.compile(rf"(?<![0-9A-Za-z])[0-9]{{2,3}} ?{_LETTERS} ?[0-9]{{2}} [0-9]{{2}}{_NO_MORE}")
_IN_NUMBER = re.compile("[0-9][,:]$")
_VEHICLE = re.compile("차(?:가|는|은|를|도|에|번)?[^0-9가-힣]{1,4}$")
_CASE_NUMBER = re.compile("[7-9][0-9][가-힣] ?[1-9][0-9]{3}")
_COURT, _RULING = re.compile("(?:법원|헌재|고법|지법|선고) ?$"), re.compile(" ?(?:판결|결정|사건)")
_SCOPE = Scope(
    "0-9", f"(?:(?<={_LETTERS}[0-9])|(?<={_LETTERS}[ \\-][0-9]))[0-9](?:[0-9]{{2}}| [0-9]{{2}})", before=16, after=8
)


def _is_plate(match: re.Match[str], label: str | None) -> bool:
    """No spaces and a letter that is no unit, or a last group that starts with 0, or a label for a vehicle.

    Excludes court cases (96도2753), round numbers after a space (50다 1000), and parts of larger numbers.
    """
    plate, before = match.group(), match.string[max(0, match.start() - 9) : match.start()]
    if _COURT.search(before) or _RULING.match(match.string, match.end()):
        return False
    if label == "PLATE" or plate[-4] == "0" or _VEHICLE.search(before):
        return plate[:2] != "00"
    is_part = _IN_NUMBER.search(before)
    counts = not plate[:-4].isalnum() and (match["letter"] in _COUNTING or plate.endswith("00") or is_part)
    return plate[:2] != "00" and not (match["gap"] or _CASE_NUMBER.fullmatch(plate) or counts)


def _is_regional(match: re.Match[str], label: str | None) -> bool:
    """Excludes counts and years after a place: ``서울 1호 2023``, ``경기 성남 고 2012``."""
    last = match[0][-4:]
    is_count = re.match(_UNITS, match[0][-6]) or last[:2] in ("19", "20") or last.endswith("00")
    is_district = match[0][-6:-4] == "구 " and match[0][-7] != " "  # 서울 강서구 0417
    return label == "PLATE" or (not is_district and last[0] == "0") or not (match[0][-5] == " " and bool(is_count))


def _fake_plate(rng: Random, value: str) -> str:
    """The same form with another region and letter, and last digits below 0100."""
    has_region = re.match(SHORT_REGION_PATTERN, value)
    name = rng.choice([region for region in REGIONS if DISTRICTS[region]]) if has_region else ""
    head, tail = value[len(name) : -4], f"{rng.randrange(100):04}"  # the signs between stay
    letter = rng.choice([letter for letter in _PRIVATE if letter not in _COUNTING])
    if numbers := re.search("[0-9]+", head):
        low, high = {1: (1, 10), 2: (10, 70), 3: (100, 700)}[len(numbers[0])]
        head = head.replace(numbers[0], str(rng.randrange(low, high)), 1)
        head = re.sub(_LETTERS, letter, head)
    else:
        county = rng.choice([county[:-1] for county in DISTRICTS[name] if len(county) > 2])
        stem = re.match(rf"( ?){COUNTY_STEM_PATTERN}(?= ?{_LETTERS} ?$)", head)
        assert stem, "a motorcycle plate names its county"
        head = stem.group(1) + county + re.sub(_LETTERS, letter, head[stem.end() :])
    return name + head + tail


PLATE = PiiType(
    "PLATE",
    (
        Format(TIGHT, CLEAR, _is_plate, _SCOPE),
        Format(MODERN, LIKELY, _is_plate, _SCOPE),
        Format(PARTED, BY_LABEL, scope=_SCOPE),
        Format(REGIONAL, CERTAIN, _is_regional, _SCOPE),
        Format(MOTORCYCLE, CERTAIN, _is_regional, _SCOPE),
    ),
    _fake_plate,
    "12가0000",
)
