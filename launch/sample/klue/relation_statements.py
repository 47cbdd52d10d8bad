"""Sentences of the relation task, each with the pairs of slots it says something about.

``"who>org per:employee_of"`` reads: subject who, object org. Pairs marked ``-`` stand in the sentence without a
relation between them; pairs that are not listed could be argued about and are not used.
"""

from __future__ import annotations

PEOPLE = (
    (
        "{who:은} {org}에서 {title:으로} 일하며 {city}에 산다.",
        "who>org per:employee_of, who>title per:title, who>city per:place_of_residence, "
        "org>who org:top_members/employees, org>city -",
    ),
    (
        "{date} {birthplace}에서 태어난 {who:은} {school:을} 졸업했다.",
        "who>date per:date_of_birth, who>birthplace per:place_of_birth, "
        "who>school per:schools_attended, school>birthplace -, school>date -",
    ),
    (
        "{org} {title} {who:은} {school} 출신으로 알려져 있다.",
        "who>org per:employee_of, who>title per:title, who>school per:schools_attended, "
        "org>who org:top_members/employees, org>school -, school>title -",
    ),
    (
        "{city}에 사는 {who:은} 고향인 {birthplace:을} 자주 찾는다.",
        "who>city per:place_of_residence, who>birthplace per:place_of_birth",
    ),
    (
        "{who}의 배우자 {spouse:은} {birthplace}에서 나고 자란 {who:을} 늘 응원한다.",
        "who>spouse per:spouse, who>birthplace per:place_of_birth, spouse>who per:spouse, spouse>birthplace -",
    ),
    (
        "{other:은} [지난달|지난해] {who} {title:을} 만나려고 {org:을} 찾았다.",
        "who>title per:title, who>org per:employee_of, org>who org:top_members/employees, other>org -, "
        "other>title -, org>other -",
    ),
    (
        "{who:과} {spouse:은} {school} 동문으로 만나 결혼했다.",
        "who>spouse per:spouse, spouse>who per:spouse, who>school per:schools_attended",
    ),
    (
        "{city}에서 열린 행사에는 {org}의 {who} {title:과} {other:이} 나란히 앉았다.",
        "who>title per:title, who>org per:employee_of, org>who org:top_members/employees, "
        "other>title -, other>org -, who>city -, org>city -, who>other -",
    ),
    (
        "{who:은} {alias:이라는} 이름으로 더 잘 알려진 {occupation:이다}.",
        "who>alias per:alternate_names, who>occupation per:title",
    ),
    (
        "{occupation} {who}({alias}, {year} 출생){:은} {birthplace:을} 떠나 {city}에 자리를 잡았다.",
        "who>alias per:alternate_names, who>occupation per:title, who>year per:date_of_birth, "
        "who>birthplace per:place_of_birth, who>city per:place_of_residence",
    ),
    (
        "{other:은} {alias:을} 본명인 {who:으로} 부르는 몇 안 되는 사람이다.",
        "who>alias per:alternate_names, other>alias -, other>who -",
    ),
    (
        "{who}의 ‘{work}’{:은} {other:이} 가장 아끼는 작품이다.",
        "who>work per:product, other>work -, who>other -",
    ),
    (
        "{occupation} {who:이} 내놓은 ‘{work}’{:을} 두고 {other:은} 아쉽다고 평했다.",
        "who>work per:product, who>occupation per:title, other>work -, other>occupation -",
    ),
    (
        "‘{work}’{:으로} 이름을 알린 {who:은} {year} {birthplace} 출생이다.",
        "who>work per:product, who>year per:date_of_birth, who>birthplace per:place_of_birth",
    ),
    (
        "{city}에 머물고 있는 {other:은} {who:이} 발표한 ‘{work}’{:을} 읽는 중이다.",
        "who>work per:product, other>city per:place_of_residence, other>work -, who>city -",
    ),
    (
        "모교 졸업식에 초대받은 {school} 출신의 {who} {org} {title:이} 축사를 했다.",
        "who>school per:schools_attended, who>org per:employee_of, who>title per:title, "
        "org>who org:top_members/employees, org>school -",
    ),
    (
        "{who:은} {date}생으로 올해 {org} {title:을} 맡았다.",
        "who>date per:date_of_birth, who>org per:employee_of, who>title per:title, "
        "org>who org:top_members/employees, org>date -",
    ),
    (
        "{date:은} {org:을} 이끄는 {who:이} 태어난 날이다.",
        "who>date per:date_of_birth, org>date -",
    ),
    (
        "{who:은} {father}의 {child:으로} {birthplace}에서 태어났다.",
        "who>father per:parents, father>who per:children, who>birthplace per:place_of_birth, father>birthplace -",
    ),
    (
        "{father:은} {child}인 {who:을} {school}에 보냈다.",
        "father>who per:children, who>father per:parents, who>school per:schools_attended, father>school -",
    ),
    (
        "{who}의 아버지는 {father}이고 배우자는 {spouse:이다}.",
        "who>father per:parents, father>who per:children, who>spouse per:spouse, father>spouse -",
    ),
    (
        "{father}에게는 {occupation:으로} 활동하는 {child} {who:이} 있다.",
        "father>who per:children, who>father per:parents, who>occupation per:title, father>occupation -",
    ),
    (
        "{other:은} {father:과} {child} {who:이} 꼭 닮았다고 말했다.",
        "father>who per:children, who>father per:parents, other>who -, other>father -",
    ),
    (
        "{who:은} {spouse:과} 부부의 연을 맺고 {city}에 신혼집을 차렸다.",
        "who>spouse per:spouse, spouse>who per:spouse, who>city per:place_of_residence",
    ),
    (
        "남편과 아내인 {who:과} {spouse:은} {other:을} 집으로 초대했다.",
        "who>spouse per:spouse, spouse>who per:spouse, other>who -, spouse>other -",
    ),
    (
        "{who:은} {school}에서 공부했고 {other:은} {birthplace}에서 장사를 했다.",
        "who>school per:schools_attended, other>school -, who>birthplace -",
    ),
    (
        "{who:이} 나온 학교는 {school}이고 지금 사는 곳은 {city:이다}.",
        "who>school per:schools_attended, who>city per:place_of_residence, school>city -",
    ),
    (
        "{birthplace} 출신 {occupation} {who:이} {city}에서 사인회를 열었다.",
        "who>birthplace per:place_of_birth, who>occupation per:title, who>city -",
    ),
    (
        "{who:은} 해마다 생일인 {date:이면} {other}에게서 꽃을 받는다.",
        "who>date per:date_of_birth, other>date -, who>other -",
    ),
    (
        "본명이 {who:인} {alias:은} 오랜 친구 {other:과} {city}에서 식사를 했다.",
        "who>alias per:alternate_names, who>city -, other>alias -",
    ),
)
ORGANISATIONS = (
    (
        "{org:은} {year}에 {founder:이} 세운 {field} [회사|기업]이다.",
        "org>year org:founded, org>founder org:founded_by, founder>year -",
    ),
    (
        "{city}에 본사를 둔 {org:이} {product:을} 새로 선보였다.",
        "org>city org:place_of_headquarters, org>product org:product",
    ),
    (
        "{org}({alias})의 {head} {title:은} {city} 본사에서 기자들을 만났다.",
        "org>alias org:alternate_names, org>head org:top_members/employees, head>title per:title, "
        "head>org per:employee_of, org>city org:place_of_headquarters",
    ),
    (
        "{other:은} {org:이} 만든 {product:을} {city2}에서 샀다.",
        "org>product org:product, other>product -, org>city2 -, other>org -",
    ),
    (
        "{founder:은} {year} {city}에서 {org:을} 창업했다.",
        "org>founder org:founded_by, org>year org:founded, org>city org:place_of_headquarters, founder>year -",
    ),
    (
        "{org:은} 줄여서 {alias:이라고} 부르며 {city}에 있다.",
        "org>alias org:alternate_names, org>city org:place_of_headquarters",
    ),
    (
        "{head:이} 이끄는 {org:은} {city2}에 매장을 열고 {other:을} 홍보 대사로 뽑았다.",
        "org>head org:top_members/employees, head>org per:employee_of, org>city2 -, org>other -, head>other -",
    ),
    (
        "{org:은} 흔히 {alias:으로} 통하며 설립자는 {founder:이다}.",
        "org>alias org:alternate_names, org>founder org:founded_by, founder>alias -",
    ),
    (
        "{product:을} 개발한 {org}의 역사는 {year:으로} 거슬러 올라간다.",
        "org>product org:product, org>year org:founded",
    ),
    (
        "{org} {title} {head:은} {product}의 가격을 내리겠다고 밝혔다.",
        "org>head org:top_members/employees, head>org per:employee_of, head>title per:title, "
        "org>product org:product, head>product -",
    ),
    (
        "{year} 문을 연 {org:은} 지금까지 {city:을} 떠난 적이 없다.",
        "org>year org:founded, org>city org:place_of_headquarters",
    ),
    (
        "{other:은} {org:을} 세운 {founder:을} 존경한다고 {city2} 강연에서 말했다.",
        "org>founder org:founded_by, other>org -, other>founder -, org>city2 -, founder>city2 -",
    ),
    (
        "{org:과} {org2:은} {city2}에서 {product} 판매 협약을 맺었다.",
        "org>product -, org>city2 -, org>org2 -, org2>city2 -",
    ),
    (
        "{org2:은} {year}에 생긴 {org:을} 경쟁 상대로 꼽았다.",
        "org>year org:founded, org2>year -, org>org2 -",
    ),
    (
        "{alias:이라고도} 불리는 {org:이} {org2:을} 찾아 기부금을 건넸다.",
        "org>alias org:alternate_names, org2>alias -, org>org2 -",
    ),
    (
        "{org}의 본사가 있는 {city}에는 {org2} 연구소도 들어설 예정이다.",
        "org>city org:place_of_headquarters, org2>org -",
    ),
    (
        "{org:을} 만든 {founder:은} {org2} 제품도 즐겨 쓴다.",
        "org>founder org:founded_by, org2>founder -, founder>org2 -",
    ),
    (
        "{org}에서 나온 {product:은} {other:이} 광고 모델을 맡았다.",
        "org>product org:product, other>product -, org>other -",
    ),
    (
        "{year}, {city}의 작은 사무실에서 {org:이} 첫발을 뗐다.",
        "org>year org:founded, org>city org:place_of_headquarters",
    ),
    (
        "[주가가 오르자|실적이 좋아지자] {alias}, 곧 {org}의 {head} {title:은} 직원들에게 고마움을 전했다.",
        "org>alias org:alternate_names, org>head org:top_members/employees, head>title per:title, "
        "head>org per:employee_of, head>alias -",
    ),
    (
        "{org}의 창업주는 {founder}이고 대표 상품은 {product:이다}.",
        "org>founder org:founded_by, org>product org:product, founder>product -",
    ),
    (
        "{org2} 직원 {other:은} {org:이} 파는 {product:을} 더 좋아한다.",
        "org>product org:product, other>org2 per:employee_of, org2>other org:top_members/employees, "
        "org2>product -, other>product -",
    ),
)
