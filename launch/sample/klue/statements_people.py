"""How facts about people and their works are put into words: the tables behind STS, NLI and NER.

Per kind of fact: sentences that tell all of it, sentences that tell part of it (so they follow from the others),
sentences about the same subject that do not follow, denials, and the slots whose value a false version changes.
``[a|b]`` is a choice, ``{who:은}`` a slot with the particle that agrees.
"""

from __future__ import annotations

from typing import NamedTuple


class Wording(NamedTuple):
    whole: tuple[str, ...]
    part: tuple[str, ...]
    open: tuple[str, ...]  # neither follows nor contradicts
    denial: tuple[str, ...]
    swap: tuple[str, ...]  # slots that a false version gets wrong


PEOPLE = {
    "born": Wording(
        whole=(
            "{occupation} {who:은} {date} {city}에서 태어났다.",
            "{city}에서 {date}에 태어난 {who:은} {occupation:이다}.",
            "{occupation:으로} 알려진 {who}의 고향은 {city}이며 생일은 {date:이다}.",
            "{date}, {city}에서 뒷날 {occupation:이} 될 {who:이} 세상에 나왔다.",
            "{who:은} {date}생으로, {city} 출신의 {occupation:이다}.",
            "{city:은} {date}에 난 {occupation} {who}의 고향이다.",
            "{occupation:인} {who:이} 태어난 날은 {date}, 태어난 곳은 {city:이다}.",
            "{who:이라는} {occupation:은} {date}에 {city}에서 첫울음을 터뜨렸다.",
        ),
        part=(
            "{who}의 고향은 {city:이다}.",
            "{who:은} {city} 출신이다.",
            "{who:은} {year}에 태어났다.",
            "{city}에서 {who:이} 태어났다.",
        ),
        open=(
            "{who:은} 어릴 때부터 책 읽기를 좋아했다.",
            "{who:은} 지금도 해마다 고향을 찾는다.",
            "{who}의 집안은 대대로 농사를 지었다.",
            "{who:은} 스무 살에 고향을 떠났다.",
        ),
        denial=("{who:은} {city}에서 태어나지 않았다.", "{city:은} {who}의 고향이 아니다."),
        swap=("city", "year"),
    ),
    "job": Wording(
        whole=(
            "{who:은} {org}의 {title:이다}.",
            "{org}에서 {title:을} 맡고 있는 사람은 {who:이다}.",
            "{org}의 {title:은} {who:이} 맡고 있다.",
            "현재 {who:은} {org}에서 {title:으로} 일한다.",
            "{who}의 직장은 {org}, 직함은 {title:이다}.",
            "{org}에 몸담은 {who}의 자리는 {title:이다}.",
        ),
        part=(
            "{who:은} {org} 소속이다.",
            "{who:은} {org}에서 일한다.",
            "{org}에는 {who:이라는} 사람이 있다.",
            "{who}의 직함은 {title:이다}.",
        ),
        open=(
            "{who:은} {org}에 들어오기 전에 다른 곳에서 일했다.",
            "{who:은} 동료들에게 인기가 많다.",
            "{who:은} 올해 안에 새 일을 시작할 생각이다.",
            "{org:은} 내년에 사람을 더 뽑을 예정이다.",
        ),
        denial=("{who:은} {org}에서 일하지 않는다.", "{org}에 {who:이라는} 사람은 없다."),
        swap=("org",),
    ),
    "school": Wording(
        whole=(
            "{who:은} {school:을} 졸업했다.",
            "{who}의 모교는 {school:이다}.",
            "{school} 졸업생 가운데에는 {who:이} 있다.",
            "{who:은} 대학 시절을 {school}에서 보내고 졸업장을 받았다.",
            "{school}에서 공부를 마친 사람으로 {who:이} 꼽힌다.",
            "{who:이} 학위를 받은 곳은 {school:이다}.",
        ),
        part=("{who:은} 대학을 나왔다.", "{who:은} {school}에 다닌 적이 있다.", "{who:은} {school}에서 공부했다."),
        open=(
            "{who:은} 학생 때 장학금을 받았다.",
            "{who:은} 대학에서 동아리 활동을 열심히 했다.",
            "{who:은} 졸업한 뒤 해외로 유학을 떠났다.",
            "{school}의 등록금은 비싼 편이다.",
        ),
        denial=("{who:은} {school}에 다닌 적이 없다.", "{who:은} 대학에 가지 않았다."),
        swap=("school",),
    ),
    "residence": Wording(
        whole=(
            "{occupation} {who:은} {city}에 살고 있다.",
            "{who:은} {city}에서 사는 {occupation:이다}.",
            "{occupation:인} {who}의 집은 {city}에 있다.",
            "{city}에는 {occupation} {who:이} 산다.",
            "{who:은} {city}에 보금자리를 꾸린 {occupation:이다}.",
            "{city} 주민 가운데 {who:이라는} {occupation:이} 있다.",
        ),
        part=("{who}의 집은 {city}에 있다.", "{who:은} {city} 주민이다.", "{who}의 직업은 {occupation:이다}."),
        open=(
            "{who:은} 마당이 있는 집에 산다.",
            "{who:은} 곧 이사할 계획이다.",
            "{who:은} 동네 모임에 자주 나간다.",
            "{who:은} 이웃과 사이가 좋다.",
        ),
        denial=("{who:은} {city}에 살지 않는다.", "{who}의 집은 {city:이} 아닌 다른 곳에 있다."),
        swap=("city", "occupation"),
    ),
    "spouse": Wording(
        whole=(
            "{who:과} {spouse:은} 부부이다.",
            "{who:은} {spouse:과} 결혼했다.",
            "{who}의 배우자는 {spouse:이다}.",
            "{who:과} {spouse:은} 결혼해 가정을 이루었다.",
            "{spouse:은} {who:과} 백년가약을 맺었다.",
            "{who:이} 평생의 짝으로 맞은 사람은 {spouse:이다}.",
        ),
        part=("{who:은} 결혼했다.", "{who}에게는 배우자가 있다.", "{spouse:은} 결혼한 사람이다."),
        open=(
            "{who:과} {spouse:은} 대학에서 처음 만났다.",
            "{who:과} {spouse:은} 바닷가에서 결혼식을 올렸다.",
            "{who:은} {spouse:보다} 나이가 많다.",
            "두 사람에게는 강아지가 한 마리 있다.",
        ),
        denial=("{who:은} {spouse:과} 결혼하지 않았다.", "{who:은} 결혼한 적이 없다."),
        swap=("spouse",),
    ),
    "work": Wording(
        whole=(
            "{kind} ‘{work}’{:은} {who:이} {year}에 선보인 작품이다.",
            "{who:은} {year}에 {kind} ‘{work}’{:을} 내놓았다.",
            "{year}에 나온 {kind} ‘{work}’{:은} {who}의 작품이다.",
            "‘{work}’{:은} {who:이} 만든 {kind:으로}, {year}에 공개되었다.",
            "{who}의 {kind} ‘{work}’{:은} {year}에 세상에 나왔다.",
            "{year}, {who:은} ‘{work}’{:이라는} {kind:을} 발표했다.",
        ),
        part=(
            "‘{work}’{:은} {who}의 작품이다.",
            "{who:은} {kind:을} 발표한 적이 있다.",
            "‘{work}’{:은} {year}에 나왔다.",
            "‘{work}’{:은} {kind:이다}.",
        ),
        open=(
            "‘{work}’{:은} 큰 상을 받았다.",
            "‘{work}’{:은} 젊은 층에게 특히 사랑받았다.",
            "{who:은} ‘{work}’{:을} 석 달 만에 완성했다.",
            "{who:은} ‘{work}’의 뒷이야기를 준비하고 있다.",
        ),
        denial=("‘{work}’{:은} {who}의 작품이 아니다.", "{who:은} 지금까지 작품을 낸 적이 없다."),
        swap=("year", "who"),
    ),
}
