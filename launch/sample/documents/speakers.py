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
반가우면서도 걱정이 앞선다
말만 앞세우지 말고 꾸준히 챙겨 주면 좋겠다
평범한 사람들의 생각도 들어 주길 바란다
몇 해 전과는 분위기가 사뭇 다르다
조금 더 일찍 알려 줬더라면 좋았을 것이다
누구에게나 일어날 수 있는 일이다
결과가 어떻든 응원하고 싶다
아이들에게도 좋은 이야깃거리가 될 것 같다
기대가 큰 만큼 실망하지 않게 해 주면 좋겠다
뉴스를 보고 가족에게 바로 전화했다
섣불리 판단하기에는 이르다
이런 일은 혼자 힘으로는 어렵다
우리 지역 이야기라 더 관심이 간다
직접 겪어 보지 않으면 모른다
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
