"""Which people the world needs: every organisation asks for founders, heads and members; works ask for makers.

A role fixes occupation, title and the years in which its person can have been born; families, names and the rest follow
in ``people.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from launch.sample.entities import Organisation

POSITIONS = {
    "축구": ("공격수", "미드필더", "수비수", "골키퍼"),
    "야구": ("투수", "포수", "내야수", "외야수"),
    "농구": ("가드", "포워드", "센터", "가드"),
    "배구": ("세터", "아포짓", "리베로", "미들 블로커"),
}
BAND_PARTS = ("보컬", "기타리스트", "베이시스트", "드러머")
OTHERS = (  # occupation, title, how many, born from, born to
    ("배우", "배우", 18, 1958, 2000),
    ("영화감독", "감독", 9, 1955, 1988),
    ("가수", "가수", 10, 1962, 2001),
    ("소설가", "작가", 9, 1948, 1990),
    ("시인", "시인", 4, 1942, 1980),
    ("화가", "화백", 6, 1938, 1984),
    ("요리사", "셰프", 6, 1965, 1992),
    ("국회의원", "의원", 8, 1955, 1982),
)
HEAD_TITLES = {
    "기업": "대표이사",
    "대학교": "총장",
    "구단": "감독",
    "공공기관": "원장",
    "밴드": "리더",
    "단체": "이사장",
    "정당": "대표",
    "언론사": "사장",
    "병원": "원장",
    "기획사": "대표",
    "출판사": "대표",
    "영화사": "대표",
}
HEAD_OCCUPATIONS = {
    "기업": "기업인",
    "대학교": "교육자",
    "구단": "체육인",
    "공공기관": "공무원",
    "밴드": "음악가",
    "단체": "사회 운동가",
    "정당": "정치인",
    "언론사": "언론인",
    "병원": "의사",
    "기획사": "기업인",
    "출판사": "출판인",
    "영화사": "영화 제작자",
}
FIRST_SELF_LED_YEAR = 1992  # founders of younger organisations still lead them


@dataclass(frozen=True, slots=True)
class Role:
    key: str  # "founder:한빛마루전자", "member:푸른고래:0", "배우:3"
    occupation: str
    title: str
    employer: str
    city: str
    born: tuple[int, int]  # years, inclusive
    gender: str = ""  # 남, 여 where it is given: players of one club


def roles_of(organisation: Organisation) -> list[Role]:
    """Founder (where the kind has one), head and members; the founder of a young organisation is also its head."""
    kind, name, year = organisation.kind, organisation.name, organisation.founded.year
    if kind == "밴드":
        return [
            Role(f"member:{name}:{i}", "음악가", part, "", organisation.city, (year - 29, year - 19))
            for i, part in enumerate(BAND_PARTS)
        ]
    head = Role(f"head:{name}", HEAD_OCCUPATIONS[kind], HEAD_TITLES[kind], name, organisation.city, (1955, 1975))
    if kind in ("공공기관", "병원"):
        return [head, _researcher(organisation)] if kind == "공공기관" else [head]
    if kind == "구단":
        gender = "여" if organisation.field == "배구" else "남"
        players = [
            Role(
                f"member:{name}:{i}", f"{organisation.field} 선수", title, name, organisation.city, (1992, 2004), gender
            )
            for i, title in enumerate(POSITIONS[organisation.field])
        ]
        return [replace(head, occupation=f"{organisation.field} 감독"), *players]
    roles = [Role(f"founder:{name}", head.occupation, "창업자", name, organisation.city, (year - 44, year - 26))]
    if year < FIRST_SELF_LED_YEAR:
        roles.append(head)
    else:
        roles[0] = replace(roles[0], title=head.title)
    if kind == "대학교":
        roles.append(replace(_researcher(organisation), occupation="학자", title="교수"))
    if kind == "언론사":
        roles += [Role(f"reporter:{name}:{i}", "기자", "기자", name, organisation.city, (1975, 1996)) for i in range(3)]
    return roles


def _researcher(organisation: Organisation) -> Role:
    key = f"researcher:{organisation.name}"
    return Role(key, "연구원", "책임연구원", organisation.name, organisation.city, (1962, 1990))


def other_roles(cities: list[str], employers: dict[str, list[str]], rng: Random) -> list[Role]:
    """People who belong to no organisation's staff; actors and singers are with agencies, members with parties."""
    roles = []
    for occupation, title, count, first, last in OTHERS:
        for number in range(count):
            employer = rng.choice(employers.get(occupation, [""]))
            roles.append(Role(f"{occupation}:{number}", occupation, title, employer, rng.choice(cities), (first, last)))
    roles += [
        Role(f"mayor:{city}", "정치인", "시장" if city.endswith("시") else "군수", f"{city}청", city, (1956, 1974))
        for city in cities
    ]
    return roles
