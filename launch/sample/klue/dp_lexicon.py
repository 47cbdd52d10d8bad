"""Words and clause frames of the dependency sentences, as morpheme/tag pairs (Sejong tags).

A frame names who does it, what goes with it and the verbs that fit, so that any choice inside it makes sense.
``written=…`` gives an irregular written form.
"""

from __future__ import annotations

from typing import NamedTuple


class Frame(NamedTuple):
    """Class of the subject, (class, particle) of each further argument, and the verbs that take them.

    ``timed`` says whether "last month" and the like go with it; nobody is born last month and a painter today.
    """

    subject: str
    arguments: tuple[tuple[str, str], ...]
    verbs: tuple[str, ...]
    timed: bool = True


DO = "/NNG+하/XSV"  # 발표 + 하
GET = "/NNG+되/XSV"  # 시작 + 되


def _doing(*nouns: str) -> tuple[str, ...]:
    return tuple(noun + DO for noun in nouns)


FRAMES = (
    Frame("person", (("book", "을"),), (*_doing("발표", "완성", "출간", "집필"), "펴내/VV", "내놓/VV")),
    Frame("person", (("art", "을"),), (*_doing("전시", "공개", "기증", "완성"), "남기/VV", "그리/VV")),
    Frame("person", (("skill", "을"),), (*_doing("연구", "공부"), "가르치/VV", "배우/VV", "익히/VV")),
    Frame("person", (("group", "에게"), ("skill", "을")), ("가르치/VV",)),
    Frame("person", (("city", "에서"),), ("태어나/VV", "자라/VV", *_doing("활동")), False),
    Frame("person", (("city", "에"), ("shop", "을")), ("열/VV", "차리/VV")),
    Frame("person", (("institution", "에서"),), _doing("강연", "강의")),
    Frame("person", (("event", "에"),), _doing("참석", "참가")),
    Frame("group", (("site", "을"),), (*_doing("방문", "이용", "청소", "구경"), "찾/VV", "둘러보/VV")),
    Frame("group", (("food", "을"),), ("사/VV", "먹/VV", "나누/VV", *_doing("주문"))),
    Frame("group", (("event", "을"),), ("즐기/VV", "기다리/VV", *_doing("준비", "응원"))),
    Frame("group", (("event", "에"),), _doing("참가", "참여")),
    Frame("group", (("ground", "에"), ("plant", "을")), ("심/VV", "가꾸/VV")),
    Frame("institution", (("event", "을"),), (*_doing("개최", "마련", "준비", "후원"), "열/VV", "이끌/VV")),
    Frame("institution", (("site", "을"),), (*_doing("개방", "단장", "조성"), "고치/VV", "꾸미/VV", "넓히/VV")),
    Frame("institution", (("group", "에게"), ("gift", "을")), (*_doing("전달", "지원", "제공"), "보내/VV")),
    Frame("company", (("product", "을"),), (*_doing("개발", "판매", "공개"), "선보이/VV", "내놓/VV")),
    Frame("company", (("event", "을"),), _doing("후원", "협찬")),
    Frame("company", (("group", "에게"), ("gift", "을")), (*_doing("전달", "지원"), "보내/VV")),
    Frame("company", (("city", "에"), ("branch", "을")), ("세우/VV", *_doing("설치", "마련"))),
    Frame("event", (("site", "에서"),), ("열리/VV", "이어지/VV", "시작" + GET)),
    Frame("event", (("interest", "을"),), ("끌/VV",), False),
    Frame("book", (("prize", "을"),), ("받/VV",), False),
    Frame("art", (("interest", "을"),), ("끌/VV",), False),
    Frame("product", (("interest", "을"),), ("끌/VV",), False),
    Frame("site", (("door", "을"),), ("열/VV", "닫/VV")),
)
COUNTERS = {
    "책/NNG": "권", "도시락/NNG": "개", "연탄/NNG": "장", "나무/NNG": "그루", "로봇/NNG": "대", "자전거/NNG": "대",
}  # fmt: skip
PURPOSES = (  # (noun phrase, verb): what something is done for
    ("이웃/NNG", "돕/VV"),
    ("자연/NNG", "지키/VV"),
    ("전통/NNG", "잇/VV"),
    ("경제/NNG", "살리/VV"),
    ("건강/NNG", "지키/VV"),
    ("우정/NNG", "쌓/VV"),
    ("기금/NNG", "모으/VV"),
)
MISHAPS = ("취소" + GET, "연기" + GET, "중단" + GET)

NOUNS = {
    "group": (
        "시민/NNG+들/XSN",
        "주민/NNG+들/XSN",
        "학생/NNG+들/XSN",
        "아이/NNG+들/XSN",
        "여행객/NNG+들/XSN",
        "관람객/NNG+들/XSN",
        "이웃/NNG+들/XSN",
        "상인/NNG+들/XSN",
        "회원/NNG+들/XSN",
        "참가자/NNG+들/XSN",
        "연구진/NNG",
        "봉사자/NNG+들/XSN",
        "청소년/NNG+들/XSN",
    ),
    "book": ("시집/NNG", "소설/NNG", "동화책/NNG", "수필집/NNG", "그림책/NNG", "여행기/NNG", "단편집/NNG"),
    "art": ("그림/NNG", "수채화/NNG", "판화/NNG", "벽화/NNG", "풍경화/NNG", "초상화/NNG"),
    "skill": ("사진/NNG", "서예/NNG", "수학/NNG", "바둑/NNG", "도예/NNG", "요리/NNG", "역사/NNG", "천문학/NNG"),
    "shop": ("빵집/NNG", "책방/NNG", "찻집/NNG", "작업실/NNG", "사진관/NNG", "꽃집/NNG", "식당/NNG"),
    "event": (
        "축제/NNG",
        "전시회/NNG",
        "음악회/NNG",
        "강연회/NNG",
        "토론회/NNG",
        "영화제/NNG",
        "체육/NNG+대회/NNG",
        "발표회/NNG",
        "장터/NNG",
        "걷기/NNG+대회/NNG",
        "낭독회/NNG",
    ),
    "site": (
        "도서관/NNG",
        "박물관/NNG",
        "미술관/NNG",
        "체육관/NNG",
        "공원/NNG",
        "시장/NNG",
        "온실/NNG",
        "광장/NNG",
        "문화/NNG+회관/NNG",
        "기념관/NNG",
        "수목원/NNG",
        "놀이터/NNG",
    ),
    "ground": ("공원/NNG", "강변/NNG", "화단/NNG", "뒷산/NNG", "텃밭/NNG", "운동장/NNG"),
    "food": ("빵/NNG", "국수/NNG", "만두/NNG", "떡/NNG", "과자/NNG", "호박죽/NNG", "김밥/NNG", "사과/NNG"),
    "plant": ("나무/NNG", "꽃/NNG", "해바라기/NNG", "튤립/NNG"),
    "product": ("로봇/NNG", "전지/NNG", "카메라/NNG", "자전거/NNG", "청소기/NNG", "시계/NNG", "의자/NNG", "우산/NNG"),
    "gift": ("책/NNG", "장학금/NNG", "선물/NNG", "도시락/NNG", "학용품/NNG", "겨울옷/NNG", "연탄/NNG"),
    "branch": ("연구소/NNG", "지점/NNG", "공장/NNG", "상담소/NNG", "사무소/NNG"),
    "interest": ("인기/NNG", "관심/NNG", "눈길/NNG"),
    "prize": ("상/NNG", "칭찬/NNG", "사랑/NNG"),
    "door": ("문/NNG",),
    "role": (
        "시인/NNG",
        "화가/NNG",
        "작가/NNG",
        "교사/NNG",
        "요리사/NNG",
        "건축가/NNG",
        "사진가/NNG",
        "연구원/NNG",
        "음악가/NNG",
        "농부/NNG",
        "약사/NNG",
        "무용가/NNG",
    ),
    "post": ("관장/NNG", "회장/NNG", "대표/NNG", "소장/NNG", "이사/NNG", "고문/NNG"),
    "trouble": ("비/NNG", "태풍/NNG", "공사/NNG", "교통/NNG+사고/NNG", "폭설/NNG", "정전/NNG"),
}

MODIFIERS = {
    "book": ("새로운=새롭/VA+ㄴ/ETM", "짧은=짧/VA+은/ETM", "긴=길/VA+ㄴ/ETM", "재미있는=재미있/VA+는/ETM"),
    "art": ("큰=크/VA+ㄴ/ETM", "작은=작/VA+은/ETM", "아름다운=아름답/VA+ㄴ/ETM", "낡은=낡/VA+은/ETM"),
    "event": ("작은=작/VA+은/ETM", "큰=크/VA+ㄴ/ETM", "특별한=특별/NNG+하/XSA+ㄴ/ETM", "다양한=다양/NNG+하/XSA+ㄴ/ETM"),
    "site": ("넓은=넓/VA+은/ETM", "조용한=조용/NNG+하/XSA+ㄴ/ETM", "오래된=오래되/VV+ㄴ/ETM", "작은=작/VA+은/ETM"),
    "food": ("따뜻한=따뜻/NNG+하/XSA+ㄴ/ETM", "맛있는=맛있/VA+는/ETM", "신선한=신선/NNG+하/XSA+ㄴ/ETM"),
    "product": ("가벼운=가볍/VA+ㄴ/ETM", "새로운=새롭/VA+ㄴ/ETM", "튼튼한=튼튼/NNG+하/XSA+ㄴ/ETM"),
    "shop": ("작은=작/VA+은/ETM", "아담한=아담/NNG+하/XSA+ㄴ/ETM", "조용한=조용/NNG+하/XSA+ㄴ/ETM"),
    "interest": ("큰=크/VA+ㄴ/ETM", "뜨거운=뜨겁/VA+ㄴ/ETM", "많은=많/VA+은/ETM"),
    "prize": ("큰=크/VA+ㄴ/ETM", "뜻깊은=뜻깊/VA+은/ETM"),
    "role": ("젊은=젊/VA+은/ETM", "유명한=유명/NNG+하/XSA+ㄴ/ETM", "성실한=성실/NNG+하/XSA+ㄴ/ETM"),
    "group": ("많은=많/VA+은/ETM",),
}
DETERMINERS = {
    "site": ("이/MMD", "그/MMD", "새/MMA"),
    "event": ("이번/NNG", "이/MMD"),
    "product": ("새/MMA", "이/MMD"),
    "book": ("새/MMA", "이/MMD"),
    "group": ("여러/MMN", "모든/MMA"),
}
COMPOUNDS = {
    "site": ("시립/NNG", "마을/NNG", "어린이/NNG"),
    "event": ("가을/NNG", "동네/NNG", "어린이/NNG", "지역/NNG"),
    "group": ("지역/NNG", "동네/NNG"),
    "food": ("동네/NNG", "시골/NNG"),
    "product": ("가정용/NNG", "어린이용/NNG"),
    "role": ("무명/NNG", "동네/NNG"),
}
ADVERBS = {
    "person": ("꾸준히/MAG", "다시/MAG", "직접/MAG", "처음/MAG", "새로/MAG", "조용히/MAG"),
    "group": ("함께/MAG", "다시/MAG", "많이/MAG", "자주/MAG", "즐겁게=즐겁/VA+게/EC"),
    "institution": ("다시/MAG", "새로/MAG", "올해도=올해/NNG+도/JX", "처음/MAG", "직접/MAG"),
    "company": ("다시/MAG", "올해도=올해/NNG+도/JX", "처음/MAG", "잇따라/MAG"),
    "event": ("다시/MAG", "드디어/MAG", "성황리에=성황리/NNG+에/JKB"),
    "thing": ("다시/MAG", "마침내/MAG", "새로/MAG"),
}
TIMES = ("지난해/NNG", "올봄/NNG", "지난달/NNG", "어제/NNG", "이날=이/MMD+날/NNG", "작년/NNG+에/JKB", "주말/NNG+에/JKB")
QUALITIES = (
    ("넓/VA", "조용/NNG+하/XSA"),
    ("작/VA", "아담/NNG+하/XSA"),
    ("밝/VA", "아늑/NNG+하/XSA"),
    ("가깝/VA", "편리/NNG+하/XSA"),
    ("밝/VA", "깨끗/NNG+하/XSA"),
    ("높/VA", "튼튼/NNG+하/XSA"),
    ("좁/VA", "복잡/NNG+하/XSA"),
)
SAYING = (*_doing("설명", "발표", "말", "강조"), "밝히/VV", "전하/VV", "알리/VV")
