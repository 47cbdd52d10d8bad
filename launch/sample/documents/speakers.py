"""How quotations are introduced, and what bystanders say. Data only; the events' own speakers stand with their quotes."""

# ruff: noqa: E501 - a Hangul syllable counts as two columns
from __future__ import annotations

from launch.sample.documents.telling import lines

# quotes that end in the copula take 라고, not 고
COPULAS = ("이다", "결과다", "투자다", "조치다", "잔치다", "번호다", "선수다", "목표다", "먼저다")
ANYONE = (
    "주민 [김|이|박|최|정|윤|한] 모 씨", "소식을 접한 [한 시민|한 주민|대학생 고 모 씨]", "한 전문가", "이름을 밝히기를 꺼린 한 관계자",
    "인근에서 [가게를|식당을|꽃집을] 하는 [강|조|임|오] 모 씨", "직장인 [서|신|권|황] 모 씨", "[택시|버스] 기사 [차|주|우] 모 씨",
)  # fmt: skip
ANYONE_SAYS = lines("""
소식을 듣고 깜짝 놀랐다
앞으로 어떻게 될지 지켜봐야 한다
이 정도일 줄은 몰랐다
주변에서도 온통 그 이야기뿐이다
몇 해 전과는 분위기가 사뭇 다르다
뉴스를 보고 가족에게 바로 전화했다
섣불리 판단하기에는 이르다
관심을 두고 계속 지켜보겠다
온종일 그 이야기로 들썩였다
자세한 내용이 더 알려지면 좋겠다
이런 소식은 참 오랜만에 들어 본다
예상하지 못한 소식이라 얼떨떨하다
앞으로의 일이 더 중요하다고 생각한다
주변에 관심 있는 사람이 많다
한동안 사람들 입에 오르내릴 것 같다
겉으로 드러난 것만 보아서는 안 된다
""")
ATTRIBUTIONS = lines("""
{speaker:은} “{first}”{ra}고 [말했다|밝혔다|설명했다|전했다|강조했다].
{speaker:은} [취재진에게|이날|통화에서|현장에서|한참을 망설이다|웃으며|담담하게|조심스럽게] “{first}”{ra}고 [말했다|털어놓았다|전했다|이야기했다].
“{first}”{ra}고 {speaker:은} [말했다|설명했다|전했다|덧붙였다].
“{first}.” {speaker}의 [말이다|설명이다|이야기다].
{speaker:은} “{first}”{ra}[면서|며] [고개를 끄덕였다|말을 아꼈다|거듭 강조했다|잠시 말을 멈췄다].
""")
TWO_PART = lines("""
{speaker:은} “{first}”{ra}며 “{second}”{ra2}고 [말했다|덧붙였다|강조했다|밝혔다].
“{first}”{ra}고 운을 뗀 {speaker:은} “{second}”{ra2}고 [말했다|힘주어 말했다|덧붙였다].
{speaker:은} “{first}”{ra}고 [말했다|설명했다]. 이어 “{second}”{ra2}고 [덧붙였다|강조했다].
""")
