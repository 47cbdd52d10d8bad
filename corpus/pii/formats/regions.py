"""Regions of Korea and their cities, counties and districts (``regions.txt``), for addresses and number plates.

Old names stay in the list, because texts contain them. Names that many cities share (중구, 동구 …) count only after
their region.
"""

from __future__ import annotations

import re
from pathlib import Path

from corpus.pii.types import one_of

REGIONS: dict[str, tuple[str, ...]] = {}
"""Official names by short name, the current one first."""
DISTRICTS: dict[str, tuple[str, ...]] = {}
"""First-level cities, counties and districts by the short name of their region."""
CITY_DISTRICTS: dict[str, tuple[str, ...]] = {}
"""Districts of large cities."""

for _line in Path(__file__).with_name("regions.txt").read_text("utf-8").splitlines()[1:]:
    _region, _names, _districts = _line.split("|")
    _found = re.findall(r"(\w++)(?:\(([^()]*+)\))?", _districts)
    REGIONS[_region.strip()] = tuple(_names.split())
    DISTRICTS[_region.strip()] = tuple(name for name, _ in _found)
    CITY_DISTRICTS |= {name: tuple(inside.split()) for name, inside in _found if inside}

REGION_PATTERN = one_of(set(REGIONS) | {name for names in REGIONS.values() for name in names})
SHORT_REGION_PATTERN = one_of(set(REGIONS))
_ALL_DISTRICTS = {name for names in (*DISTRICTS.values(), *CITY_DISTRICTS.values()) for name in names}
_STEMS = {name[:-1] for name in _ALL_DISTRICTS if len(name) > 2}
_BIG_CITY_STEM = one_of({name[:-1] for name in CITY_DISTRICTS}) + "(?= )"
STEM_PATTERN = one_of({name for name in _STEMS if len(name) > 1}) + "(?= )"
"""Cities, counties and districts without their last syllable: 수원 for 수원시."""
_ALL_DISTRICTS |= {f"{name[:-1]}특례시" for name in CITY_DISTRICTS}
DISTRICT_PATTERN = f"(?:{one_of(_ALL_DISTRICTS)}|{_BIG_CITY_STEM})"
TELLING_DISTRICT_PATTERN = (
    f"(?:{one_of({name for name in _ALL_DISTRICTS if len(name) > 2})}|{_BIG_CITY_STEM}(?= [가-힣]{{1,4}}구 ))"
)
COUNTY_STEM_PATTERN = one_of(_STEMS)
