"""Questions about the reading passages, by kind of subject and slot.

A question can be answered when its slot stands in the passage. Type 1 rephrases one sentence, type 2 joins two
(KLUE 3.7). ``[a|b]`` is a choice.
"""

from __future__ import annotations

QUESTIONS: dict[str, dict[str, tuple[int, tuple[str, ...]]]] = {  # kind to slot to question type and questions
    "person": {
        "birthplace": (
            1,
            ("{who:이} 태어난 곳은 [어디인가|어디일까]?", "{who}의 고향은?", "{who:은} 어느 고장 사람인가?"),
        ),
        "date": (1, ("{who}의 생일은 [언제인가|며칠인가]?", "{who:이} 태어난 날은?", "{who:은} 언제 태어났나?")),
        "school": (
            1,
            ("{who:이} 다닌 대학은?", "{who}의 모교는 [어디인가|어디일까]?", "{who:은} 어느 학교에서 공부했나?"),
        ),
        "org": (1, ("{who:이} 몸담고 있는 곳은?", "{who:은} 어디에서 일하나?", "{who}의 일터는 어디인가?")),
        "title": (1, ("{who:이} 직장에서 맡은 자리는?", "{who}의 직함은 [무엇인가|뭘까]?")),
        "work": (1, ("{who:을} 대표하는 작품의 이름은?", "{who:이} 남긴 대표작은 무엇인가?")),
        "workyear": (1, ("{who}의 대표작이 나온 해는?", "{who:은} 언제 대표작을 내놓았나?")),
        "alias": (1, ("{who}의 다른 이름은?", "{who:은} 본명 말고 어떤 이름을 쓰나?")),
        "spouse": (1, ("{who}의 배우자는 누구인가?", "{who:은} 누구와 결혼했나?")),
        "spousejob": (2, ("{who:과} 결혼한 사람의 직업은?", "{who}의 배우자는 어떤 일을 하는 사람인가?")),
        "father": (1, ("{who}의 아버지는 누구인가?", "{who}의 아버지 이름은?")),
        "city": (1, ("{who:이} 살고 있는 곳은?", "{who:은} 지금 어디에 사나?")),
        "hobby": (1, ("{who}의 취미는 [무엇인가|뭘까]?", "{who:이} 틈날 때 즐기는 것은?")),
        "prize": (1, ("{who:이} 받은 상의 이름은?", "{who:은} 어떤 상을 받았나?")),
        "prizeyear": (1, ("{who:이} 상을 받은 해는?", "{who:은} 언제 상을 받았나?")),
    },
    "organisation": {
        "city": (1, ("{org:이} 있는 곳은?", "{org:은} 어느 고장에 있나?")),
        "year": (1, ("{org:이} 세워진 해는?", "{org:은} 언제 설립되었나?")),
        "founder": (1, ("{org:을} 세운 사람은?", "{org}의 설립자는 누구인가?")),
        "founderhome": (2, ("{org:을} 세운 사람의 고향은?", "{org} 설립자는 어디 출신인가?")),
        "founderschool": (2, ("{org:을} 세운 사람이 졸업한 학교는?", "{org} 설립자의 모교는 어디인가?")),
        "head": (1, ("{org:을} 이끌고 있는 사람은?", "{org}의 현재 책임자는 누구인가?")),
        "size": (1, ("{org}에 소속된 사람은 몇 명인가?", "{org}의 규모는 어느 정도인가?")),
        "alias": (1, ("{org:을} 줄여 부르는 이름은?", "{org}의 다른 이름은 [무엇인가|뭘까]?")),
        "product": (1, ("{org}의 대표 상품은?", "{org}에서 가장 잘 팔리는 것은 무엇인가?")),
        "price": (2, ("{org}의 대표 상품은 얼마인가?", "{org:을} 대표하는 상품의 가격은?")),
        "weekday": (1, ("{org:을} 견학할 수 있는 요일은?", "{org:은} 무슨 요일에 시민을 맞나?")),
        "prize": (1, ("{org:이} 받은 상은?", "{org:은} 어떤 상을 받았나?")),
        "prizeyear": (1, ("{org:이} 상을 받은 해는?", "{org:은} 언제 상을 받았나?")),
    },
    "venue": {
        "city": (1, ("{venue:이} 있는 도시는?", "{venue:은} 어느 도시에 있나?")),
        "station": (1, ("{venue}에 가려면 어느 역에서 내려야 하나?", "{venue}에서 가장 가까운 역은?")),
        "minutes": (1, ("역에서 {venue}까지 걸어서 얼마나 걸리나?", "역에서 {venue}까지 걷는 시간은?")),
        "dish": (1, ("{venue}의 대표 음식은?", "{venue}에서 손님이 가장 많이 찾는 음식은 무엇인가?")),
        "price": (1, ("{venue:을} 이용하는 데 드는 돈은?", "{venue}의 요금은 얼마인가?")),
        "open": (1, ("{venue:은} 몇 시에 문을 여나?", "{venue}의 여는 시각은?")),
        "close": (1, ("{venue:은} 몇 시에 문을 닫나?", "{venue}에 손님이 있을 수 있는 마지막 시각은?")),
        "weekday": (1, ("{venue:이} 쉬는 요일은?", "{venue:은} 무슨 요일에 갈 수 없나?")),
        "rating": (1, ("{venue}의 평점은?", "{venue:은} 평점을 몇 점 받았나?")),
        "owner": (1, ("{venue:을} 운영하는 사람은?", "{venue}의 주인은 누구인가?")),
        "since": (1, ("{venue:이} 처음 문을 연 해는?", "{venue:은} 언제부터 있었나?")),
        "ownerhome": (2, ("{venue:을} 운영하는 사람의 고향은?", "{venue}의 주인은 어디 출신인가?")),
    },
    "city": {
        "province": (1, ("{city:이} 속한 도는?", "{city:은} 어느 도에 있나?")),
        "population": (1, ("{city}의 인구는?", "{city}에 사는 사람은 몇 명인가?")),
        "fame": (1, ("{city:은} 무엇으로 유명한가?", "{city}의 자랑거리는?")),
        "year": (1, ("{city:이} 지금의 행정 구역이 된 해는?", "{city:이} 지금의 이름을 얻은 때는?")),
        "mayor": (1, ("{city}의 행정 책임자는?", "{city}의 살림을 맡은 사람은 누구인가?")),
        "mayorschool": (2, ("{city}의 행정 책임자가 졸업한 학교는?", "{city}의 살림을 맡은 사람의 모교는?")),
        "mountain": (1, ("{city} 가까이에 있는 산은?", "{city}의 산 이름은 무엇인가?")),
        "height": (2, ("{city}에 있는 산의 높이는?", "{city}의 산은 얼마나 높은가?")),
        "festival": (1, ("{city}에서 열리는 축제는?", "{city}에서 가장 큰 행사는 무엇인가?")),
        "snow": (1, ("{city}에 첫눈이 내리는 때는?", "{city}에서는 언제 눈을 볼 수 있나?")),
    },
    "work": {
        "creator": (1, ("‘{work}’{:을} 만든 사람은?", "‘{work}’{:은} 누구의 작품인가?")),
        "date": (1, ("‘{work}’{:이} 공개된 날은?", "‘{work}’{:은} 언제 세상에 나왔나?")),
        "genre": (1, ("‘{work}’의 갈래는?", "‘{work}’{:은} 어떤 갈래의 작품인가?")),
        "publisher": (1, ("‘{work}’{:을} 내놓은 곳은?", "‘{work}’의 제작을 도운 곳은 어디인가?")),
        "creatorhome": (2, ("‘{work}’{:을} 만든 사람의 고향은?", "‘{work}’{:을} 만든 사람은 어디 출신인가?")),
        "actor": (1, ("‘{work}’의 주인공을 맡은 사람은?", "‘{work}’에서 주인공은 누가 맡았나?")),
        "actorhome": (2, ("‘{work}’의 주인공을 맡은 사람이 사는 곳은?", "‘{work}’의 주연 배우는 어디에 사나?")),
        "prize": (1, ("‘{work}’{:이} 받은 상은?", "‘{work}’{:은} 어떤 상을 받았나?")),
        "prizeyear": (1, ("‘{work}’{:이} 상을 받은 해는?", "‘{work}’{:은} 언제 상을 받았나?")),
        "span": (1, ("‘{work}’{:을} 완성하는 데 걸린 시간은?", "‘{work}’{:은} 얼마 동안 준비했나?")),
    },
}
ALIKE = (  # slots that could be mistaken for one another
    ("birthplace", "city", "province", "founderhome", "ownerhome", "creatorhome", "actorhome", "station"),
    ("date", "year", "workyear", "prizeyear", "since", "snow"),
    ("spouse", "father", "founder", "head", "owner", "mayor", "creator", "actor"),
    ("school", "org", "founderschool", "mayorschool", "publisher"),
    ("size", "price", "population", "height", "rating", "minutes", "span"),
    ("open", "close", "weekday"),
    ("work", "product", "prize", "dish", "festival", "mountain", "alias", "hobby", "fame", "genre"),
    ("title", "spousejob", "occupation"),
)
