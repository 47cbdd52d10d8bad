"""How facts about organisations, products and places are put into words; see ``statements_people`` for the columns."""

from __future__ import annotations

from launch.sample.klue.statements_people import Wording

THINGS = {
    "founded": Wording(
        whole=(
            "{org:은} {year}에 {founder:이} 세운 {okind:이다}.",
            "{founder:은} {year}에 {org:을} 세웠다.",
            "{year}, {founder:이} {okind} {org:을} 설립했다.",
            "{okind} {org}의 역사는 {year}에 {founder:이} 문을 열면서 시작되었다.",
            "{org:을} 만든 사람은 {founder}이며, 그해는 {year:이었다}.",
            "{founder}의 손으로 {org:이} 세워진 것은 {year}의 일이다.",
        ),
        part=(
            "{org:은} {year}에 세워졌다.",
            "{org}의 설립자는 {founder:이다}.",
            "{founder:이} {org:을} 만들었다.",
            "{org:은} {year}부터 있었다.",
        ),
        open=(
            "{org:은} 설립 초기에 어려움을 겪었다.",
            "{founder:은} {org:을} 세우려고 집을 팔았다.",
            "{org:은} 곧 새 건물로 옮긴다.",
            "{founder:은} 지금도 {org}에 날마다 나온다.",
        ),
        denial=("{founder:은} {org}의 설립자가 아니다.", "{org:이} 세워진 해는 {year:이} 아니다."),
        swap=("year", "founder"),
    ),
    "seat": Wording(
        whole=(
            "{org:은} {city}에 자리 잡은 {okind:이다}.",
            "{okind} {org}의 본거지는 {city:이다}.",
            "{city}에는 {okind} {org:이} 있다.",
            "{org:이라는} {okind:은} {city}에 터를 잡고 있다.",
            "{city:을} 근거지로 삼은 {okind:으로} {org:이} 있다.",
            "{okind:인} {org:을} 찾아가려면 {city:으로} 가면 된다.",
        ),
        part=("{org:은} {city}에 있다.", "{city}에 {org:이} 있다.", "{org:은} {okind:이다}."),
        open=(
            "{org:은} {city}에서 가장 오래되었다.",
            "{org}의 건물은 유명한 건축가가 설계했다.",
            "{org:은} 주차장이 넓다.",
            "{city} 사람들은 {org:을} 자랑스러워한다.",
        ),
        denial=("{org:은} {city}에 있지 않다.", "{city}에서는 {org:을} 찾을 수 없다."),
        swap=("city",),
    ),
    "head": Wording(
        whole=(
            "{org:을} 이끄는 사람은 {head} {title:이다}.",
            "{head:은} {org}의 {title:으로서} 조직을 이끈다.",
            "{org}의 {title:은} {head}이며 소속된 사람은 {size:이다}.",
            "{size:이} 소속된 {org:을} {head} {title:이} 이끌고 있다.",
            "{head} {title:은} {size} 규모의 {org:을} 책임지고 있다.",
            "모두 {size:이} 속한 {org}에서는 {head:이} {title:을} 맡고 있다.",
        ),
        part=("{org}의 {title:은} {head:이다}.", "{head:은} {org}의 {title:이다}.", "{head:이} {org:을} 이끈다."),
        open=(
            "{head:은} {org}에서 가장 나이가 어리다.",
            "{head:은} 다음 달에 자리에서 물러난다.",
            "{org}의 규모는 해마다 커지고 있다.",
            "{head:은} 회의를 짧게 하기로 유명하다.",
        ),
        denial=("{head:은} {org}의 {title:이} 아니다.", "{org}의 {title} 자리는 비어 있다."),
        swap=("head",),
    ),
    "product": Wording(
        whole=(
            "{org:이} 내놓은 {pkind} {product}의 가격은 {price:이다}.",
            "{product:은} {org:이} 만든 {pkind:으로}, {price}에 팔린다.",
            "{pkind} {product:을} {org:이} {price}에 판매하고 있다.",
            "{price:이면} {org}의 {pkind} {product:을} 살 수 있다.",
            "{org}의 {product:은} {price}짜리 {pkind:이다}.",
            "{org:에서는} {pkind:인} {product:을} {price}에 선보였다.",
        ),
        part=(
            "{product:은} {org}의 제품이다.",
            "{org:은} {pkind:을} 판다.",
            "{product}의 값은 {price:이다}.",
            "{product:은} {pkind:이다}.",
        ),
        open=(
            "{product:은} 포장이 예쁘다.",
            "{product:은} 출시 첫날에 다 팔렸다.",
            "{org:은} {product}의 후속 제품을 개발하고 있다.",
            "{product:을} 산 사람은 대부분 만족했다.",
        ),
        denial=("{org:은} {product:을} 만들지 않는다.", "{product:은} 값을 받지 않고 나누어 준다."),
        swap=("price", "org"),
    ),
    "venue": Wording(
        whole=(
            "{vkind} {venue}에서 가장 가까운 역은 {station}이고, 이곳은 {trait}.",
            "{venue:은} {station:이} 가장 가까운 {vkind:으로}, {trait}.",
            "{station}에서 내리는 것이 가장 빠른 {vkind} {venue:은} {trait}.",
            "가장 가까운 역이 {station:인} {venue:은} {vkind}이며 {trait}.",
            "{venue:을} 찾는다면 {station:이} 가장 가깝고, 이 {vkind:은} {trait}.",
            "{venue:은} {trait}. 이 {vkind}에서 제일 가까운 역은 {station:이다}.",
        ),
        part=(
            "{venue}에서 가장 가까운 역은 {station:이다}.",
            "{venue:은} {vkind:이다}.",
            "{venue:은} {trait}.",
            "{venue}에 가려면 {station}에서 내리는 것이 가장 빠르다.",
        ),
        open=(
            "{venue}의 직원들은 친절하다.",
            "{venue:은} 주말마다 사람이 붐빈다.",
            "{venue}에는 단골손님이 많다.",
            "{venue:은} 최근에 새로 단장했다.",
        ),
        denial=("{venue:은} {antitrait}.", "{venue}에서 가장 가까운 역은 {station:이} 아니다."),
        swap=("station", "vkind"),
    ),
    "land": Wording(
        whole=(
            "{land:은} {city}에 있는 {lkind:으로} {measure:이} {amount:이다}.",
            "{city}의 {lkind} {land:은} {measure:이} {amount:에} 이른다.",
            "{measure} {amount}의 {lkind} {land:은} {city}에 있다.",
            "{city}에는 {measure:이} {amount:인} {lkind} {land:이} 있다.",
            "{city:을} 대표하는 {lkind:인} {land}의 {measure:은} {amount:이다}.",
            "{lkind} {land:은} {city}에 자리하며 {measure:은} {amount:으로} 기록되어 있다.",
        ),
        part=("{land:은} {city}에 있다.", "{land}의 {measure:은} {amount:이다}.", "{land:은} {lkind:이다}."),
        open=(
            "{land}에는 희귀한 새가 산다.",
            "{land:을} 찾는 사람이 해마다 늘고 있다.",
            "{land}에는 오래된 전설이 전해 온다.",
            "{land} 옆에 새 길이 날 예정이다.",
        ),
        denial=("{land:은} {city}에 있지 않다.", "{city}에는 {lkind:이} 하나도 없다."),
        swap=("city", "amount"),
    ),
    "city": Wording(
        whole=(
            "{province}에 속한 {city}의 인구는 {population}이며 {fame:으로} 이름났다.",
            "{fame:으로} 유명한 {city:은} {province}에 있고 {population:이} 산다.",
            "{city:은} {population:이} 사는 {province}의 고장으로 {fame:이} 널리 알려졌다.",
            "{province} {city:은} 인구가 {population:이고} {fame:을} 자랑한다.",
            "{population:이} 모여 사는 {province} {city:은} {fame:으로} 손꼽힌다.",
            "{city} 하면 떠오르는 것은 {fame:인데}, {province}의 이 고장에는 {population:이} 산다.",
        ),
        part=(
            "{city:은} {province}에 있다.",
            "{city:은} {fame:으로} 유명하다.",
            "{city}의 인구는 {population:이다}.",
            "{city}에는 {population:이} 산다.",
        ),
        open=(
            "{city}의 인구는 해마다 줄고 있다.",
            "{city}에는 새 도서관이 들어설 예정이다.",
            "{city:은} 겨울이 매우 춥다.",
            "{city} 시장은 자전거로 출근한다.",
        ),
        denial=("{city:은} {province}에 속하지 않는다.", "{city}에는 사람이 살지 않는다."),
        swap=("province", "population"),
    ),
}
