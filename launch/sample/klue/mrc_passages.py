"""Sentences of the reading passages, each in two wordings.

A passage opens with its first sentence; the others follow in order, some left out. ``{who:은}`` is a slot with its
particle, ``{:은}`` a particle alone.
"""

from __future__ import annotations

SUBJECTS = {"person": "who", "organisation": "org", "venue": "venue", "city": "city", "work": "work"}
PASSAGES = {
    "person": (
        (
            "{who:은} {birthplace}에서 태어난 {occupation:이다}.",
            "{birthplace} 출신의 {who:은} {occupation:으로} 널리 알려진 인물이다.",
        ),
        ("생일은 {date}로, 해마다 이날이 되면 가까운 사람들이 모여 조촐한 잔치를 연다.", "태어난 날은 {date}이다."),
        (
            "대학 시절은 {school}에서 보냈는데, 이때 만난 스승의 가르침을 지금도 자주 이야기한다.",
            "학업은 {school}에서 마쳤다.",
        ),
        (
            "현재 {org}에서 {title:을} 맡고 있으며 일을 꼼꼼하게 처리하기로 이름났다.",
            "직장은 {org}이고 직함은 {title:이다}.",
        ),
        (
            "대표작으로는 {workyear}에 나온 ‘{work}’{:이} 꼽힌다.",
            "{workyear}에 선보인 ‘{work}’{:은} 많은 이에게 사랑받았다.",
        ),
        ("가까운 사이에서는 본명보다 {alias:이라는} 이름으로 불린다.", "{alias:이라는} 이름을 함께 쓴다."),
        ("배우자 {spouse:은} {spousejob:이다}.", "{spouse:과} 결혼했으며, {spouse}의 직업은 {spousejob:이다}."),
        ("아버지 {father:은} 생전에 엄한 분이었다고 한다.", "아버지는 {father}이다."),
        (
            "지금은 {city}에 살면서 틈날 때마다 {hobby:을} 즐긴다.",
            "{city}의 조용한 동네에 집을 마련했고 취미는 {hobby:이다}.",
        ),
        ("{prizeyear}에는 {prize:을} 받아 다시 한번 주목을 받았다.", "수상 경력으로는 {prizeyear}의 {prize:이} 있다."),
    ),
    "organisation": (
        ("{org:은} {city}에 있는 {kind:이다}.", "{city}에 자리한 {org:은} {kind:이다}."),
        ("{year}에 {founder:이} 세웠다.", "설립된 해는 {year}이고, 처음 문을 연 사람은 {founder:이다}."),
        (
            "{founder:은} {founderhome} 출신으로 {founderschool:을} 졸업했다.",
            "{founderhome}에서 자란 {founder:은} {founderschool}에서 공부했다.",
        ),
        ("지금은 {head:이} {title:을} 맡아 이끌고 있다.", "현재 {title:은} {head:이다}."),
        ("소속된 사람은 모두 {size}에 이른다.", "규모는 {size} 안팎이다."),
        ("줄여서 {alias:이라고} 부르는 사람도 많다.", "흔히 {alias:이라는} 이름으로 통한다."),
        ("대표 상품은 {product}이며, 가격은 {price:이다}.", "가장 잘 팔리는 것은 {price}짜리 {product:이다}."),
        ("매주 {weekday:에는} 시민에게 건물 일부를 개방한다.", "견학은 {weekday}마다 할 수 있다."),
        ("{prizeyear}에는 {prize:을} 받기도 했다.", "지난 {prizeyear}, {prize}의 주인공이 되었다."),
    ),
    "venue": (
        ("{venue:은} {city} {area}에 있는 {vkind:이다}.", "{city} {area:으로} 가면 {venue:이라는} {vkind:이} 나온다."),
        ("가장 가까운 역은 {station:으로} 걸어서 {minutes} 걸린다.", "{station}에서 내려 {minutes}쯤 걸으면 도착한다."),
        ("손님이 가장 많이 찾는 음식은 {dish:이다}.", "이곳의 자랑은 {dish:이다}."),
        ("{price:이면} 이용할 수 있다.", "이용 요금은 {price:이다}."),
        ("문은 {open}에 열고 {close}에 닫는다.", "{open}부터 {close}까지 손님을 맞는다."),
        ("{weekday:은} 쉬는 날이다.", "매주 {weekday}에 문을 닫는다."),
        (
            "이용한 사람들이 매긴 평점은 5점 만점에 {rating}이다.",
            "평점은 {rating}으로, 다녀간 사람들의 반응이 나쁘지 않다.",
        ),
        ("{owner:이} {since}에 문을 열었다.", "{since}부터 {owner:이} 운영해 왔다."),
        (
            "주인의 고향은 {ownerhome:으로}, 그곳에서 배운 손맛과 인심을 이어 가려 한다고 한다.",
            "주인은 {ownerhome} 출신이다.",
        ),
    ),
    "city": (
        ("{city:은} {province}에 속한 고장이다.", "{province}에는 {city:이} 있다."),
        ("인구는 {population:이다}.", "{population:이} 이곳에 산다."),
        ("예로부터 {fame:으로} 이름이 높았다.", "{fame:이} 이 고장의 자랑이다."),
        ("지금의 이름을 얻은 것은 {year}의 일이다.", "{year}에 지금과 같은 행정 구역이 되었다."),
        ("행정을 책임진 사람은 {mayor}이다.", "살림은 {mayor:이} 맡고 있다."),
        ("{mayor:은} {mayorschool:을} 졸업했다.", "{mayor:이} 졸업한 학교는 {mayorschool}이다."),
        ("가까이에는 높이가 {height:인} {mountain:이} 있어 등산객이 많다.", "{mountain:은} 높이가 {height:이다}."),
        ("해마다 {festival:이} 열려 손님으로 붐빈다.", "가장 큰 행사는 {festival:이다}."),
        ("첫눈은 대개 {snow} 무렵에 내린다.", "겨울이 길어 {snow}이면 눈을 볼 수 있다."),
    ),
    "work": (
        ("‘{work}’{:은} {creator:이} 만든 {kind:이다}.", "{creator}의 ‘{work}’{:은} 널리 알려진 {kind:이다}."),
        ("세상에 나온 날은 {date}이다.", "{date}에 처음 공개되었다."),
        ("갈래로는 {genre}에 든다.", "{genre:을} 좋아하는 사람이라면 반길 만하다."),
        ("{publisher:이} 제작에 힘을 보탰다.", "{publisher}에서 내놓았다."),
        ("{creator:은} {creatorhome} 출신이다.", "{creator}의 고향은 {creatorhome:이다}."),
        ("주인공은 {actor:이} 맡았다.", "{actor:이} 중심인물로 나온다."),
        ("{actor:은} {actorhome}에 살고 있다.", "{actor}의 집은 {actorhome}에 있다."),
        ("{prizeyear}에 {prize:을} 받았다.", "{prize:을} 받은 것은 {prizeyear}의 일이다."),
        ("완성하는 데에는 {span:이} 걸렸다.", "준비에 들인 시간은 {span:이다}."),
    ),
}
