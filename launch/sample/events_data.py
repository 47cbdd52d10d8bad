"""Kinds of events under the seven topics of YNAT, and how each detail of a kind is drawn.

Drawing rules: ``won:low:high`` in 억 원, ``int:low:high:unit``, ``pct:low:high``, ``pick:LIST``, ``org:kind``,
``person:occupation``, ``work:kind``, ``product:kinds``, ``clock``; a name such as ``match`` is a rule of its own.
"""

# ruff: noqa: E501 - a Hangul syllable counts as two columns
from __future__ import annotations

PICKS = {
    "research": ("갯벌 미생물로 플라스틱을 분해하는 기술", "빛으로 충전하는 종이 전지", "소금물에서 리튬을 골라내는 막", "초기 폐암을 가려내는 호흡 검사법", "영하 40도에서도 얼지 않는 전해질", "상처가 아물면 저절로 녹는 실", "벼 뿌리를 깊게 내리게 하는 재배법", "손가락 굽힘을 읽는 옷감 감지기"),
    "journal": ("국제 학술지 ‘머티리얼즈 라이트’", "국제 학술지 ‘플래닛 사이언스’", "국내 학술지 ‘한국공학연구’", "학술지 ‘바이오 프런티어스’"),
    "outage": ("서버 증설 작업 중 설정 오류", "데이터센터 냉각 장치 고장", "통신망 광케이블 절단", "인증서 만료", "접속자 폭주"),
    "sky": ("주기 71년의 혜성", "지구에서 640광년 떨어진 외계 행성", "이례적으로 밝은 유성우", "두 별이 합쳐지며 낸 섬광", "목성 크기의 어두운 천체"),
    "goods": ("배추", "사과", "감귤", "달걀", "돼지고기", "오징어", "무", "쌀", "대파", "우유"),
    "burned": ("폐자재 창고", "전통시장 점포", "5층짜리 상가", "가구 공장", "빈집", "아파트 지하 주차장", "비닐하우스", "음식점 주방"),
    "fire_cause": ("전기 합선", "담뱃불 부주의", "난로 과열", "용접 불티", "음식물 조리 중 부주의"),
    "crime": ("전화 금융 사기", "중고 거래 사기", "가짜 투자 사이트 운영", "보험 사기", "명의 도용 대출"),
    "giving": ("어르신 급식", "청소년 공부방", "산불 피해 복구", "난방비 지원", "병원비 지원", "장학금"),
    "road": ("너울대로", "느티나무로", "강나루로", "한들로", "등대길", "솔밭로"),
    "vehicle": ("화물차와 승용차", "시내버스와 승용차", "승용차 세 대", "택시와 오토바이"),
    "agenda": ("국경 지역 휴전", "철도 연결 사업", "기후 기금 조성", "어업 협정", "전력망 공동 운영", "청년 교류 확대"),
    "foreign_org": ("국제구호연대", "세계항만회의", "남북해협의회", "국제식량기금"),
    "tariff": ("철강", "전기차", "커피 원두", "목재", "구리", "수산물"),
    "injury": ("왼쪽 무릎 인대", "오른쪽 발목", "허벅지 근육", "어깨", "손목", "허리"),
    "bill": ("지역 서점 지원법", "돌봄 노동자 보호법", "빈집 정비 특별법", "갯벌 보전법", "청년 주거 지원법", "어린이 통학로 안전법", "전통 시장 화재 예방법", "공공 데이터 개방법"),
    "policy": ("어르신 무료 버스", "청년 월세 지원", "심야 어린이 병원", "마을 공유 부엌", "하굣길 안전 도우미", "공공 자전거", "빈집 작업실", "동네 책방 바우처"),
    "race": ("당 대표", "원내대표", "사무총장 후보", "가온시장 후보"),
}  # fmt: skip
KINDS: dict[str, dict[str, dict[str, str]]] = {
    "IT과학": {
        "launch": {"product": "product:스마트폰,애플리케이션,서비스 로봇,게임,보조 배터리,전기차", "feature": "feature"},
        "research": {"org": "org:대학교,공공기관", "person": "researcher", "subject": "pick:research", "journal": "pick:journal", "years": "int:2:7:년", "gain": "int:2:40:배"},
        "outage": {"org": "org:기업:소프트웨어,통신 서비스,금융,게임", "hours": "int:2:9:시간", "users": "int:3:90:만 명", "cause": "pick:outage", "reports": "int:120:4800:건", "time": "clock"},
        "ai_service": {"org": "org:공공기관,병원,기업", "use": "ai_use", "accuracy": "pct:88:99", "saved": "pct:12:45", "months": "int:3:18:개월"},
        "sky": {"org": "astronomers", "person": "researcher", "sky": "pick:sky", "nights": "int:3:40:일"},
    },
    "경제": {
        "earnings": {"org": "org:기업", "sales": "won:300:42000", "profit": "won:20:280", "change": "pct:3:38", "direction": "direction"},
        "plant": {"org": "org:기업", "plant": "plant", "amount": "won:200:9000", "jobs": "int:80:1900:명", "done": "int:2026:2029:년", "area": "int:2:31:만㎡"},
        "merger": {"org": "org:기업", "org2": "org:기업", "amount": "won:150:6400", "share": "pct:30:92"},
        "price": {"goods": "pick:goods", "change": "pct:4:41", "direction": "direction"},
        "export": {"org": "org:기업", "country": "country", "amount": "won:40:3800", "years": "int:2:8:년"},
    },
    "사회": {
        "fire": {"place": "pick:burned", "time": "clock", "damage": "int:300:38000:만 원", "people": "int:3:120:명", "cause": "pick:fire_cause", "crew": "int:24:160:명"},
        "crime": {"crime": "pick:crime", "damage": "won:2:95", "victims": "int:18:640:명", "caught": "int:2:23:명"},
        "donation": {"org": "org:단체", "person": "donor", "use": "pick:giving", "amount": "int:500:30000:만 원"},
        "weather": {"people": "int:20:900:명", "homes": "int:5:340:채"},
        "crash": {"road": "pick:road", "vehicles": "pick:vehicle", "time": "clock", "hurt": "int:1:9:명", "closed": "int:30:190:분"},
    },
    "생활문화": {
        "festival": {"work": "work:축제", "days": "int:3:10:일", "visitors": "int:2:38:만 명", "booths": "int:20:140:개"},
        "exhibition": {"work": "work:전시", "pieces": "int:24:180:점", "weeks": "int:3:12:주"},
        "film": {"work": "work:영화", "audience": "int:8:420:만 명", "screens": "int:120:1400:개"},
        "album": {"work": "work:앨범", "songs": "int:5:13:곡", "seats": "int:300:6000:석"},
        "book": {"work": "work:책", "printing": "int:2:14:쇄", "pages": "int:140:520:쪽"},
    },
    "세계": {
        "summit": {"countries": "countries", "agenda": "pick:agenda", "hours": "int:2:9:시간"},
        "quake": {"country": "country", "magnitude": "magnitude", "dead": "int:3:240:명", "hurt": "int:60:1800:명", "helper": "pick:foreign_org"},
        "election": {"country": "country", "share": "pct:41:63", "turnout": "pct:52:84"},
        "tariff": {"countries": "countries", "goods": "pick:tariff", "rate": "int:8:45:%"},
    },
    "스포츠": {
        "match": {"match": "match", "crowd": "int:1800:24000:명", "streak": "int:2:8:연승"},
        "transfer": {"transfer": "transfer", "years": "int:2:5:년", "fee": "won:2:38"},
        "injury": {"player": "player", "part": "pick:injury", "weeks": "int:3:16:주"},
        "record": {"player": "player", "games": "int:100:420:경기"},
    },
    "정치": {
        "bill": {"person": "person:국회의원", "bill": "pick:bill", "yes": "int:151:240:명", "no": "int:12:90:명"},
        "budget": {"city": "city", "amount": "won:1200:42000", "change": "pct:1:14"},
        "policy": {"city": "city", "policy": "pick:policy", "amount": "won:3:160", "people": "int:800:42000:명"},
        "race": {"person": "person:국회의원", "race": "pick:race", "share": "pct:50:71", "rounds": "int:1:3:차"},
    },
}  # fmt: skip
PLANTS = {  # by field of business
    "전자제품": "전자 부품 공장", "소프트웨어": "데이터센터", "전기차": "전기차 조립 공장", "식품": "식품 가공 공장",
    "의약품": "의약품 원료 공장", "화장품": "화장품 공장", "게임": "게임 개발 단지", "로봇": "로봇 조립 공장", "배터리": "배터리 공장",
    "건설": "건축 자재 공장", "항공 운송": "항공기 정비 단지", "통신 서비스": "통신 장비 시험장", "금융": "전산 센터", "유통": "물류센터",
}  # fmt: skip
AI_USES = {  # by kind of organisation
    "공공기관": ("민원 상담", "하천 수위 예측", "유물 목록 정리", "교통 신호 제어", "외국어 안내 방송"),
    "병원": ("병상 배정", "진료 예약 안내", "처방전 확인"),
    "기업": ("불량품 검사", "재고 관리", "고객 상담", "문서 번역"),
}  # fmt: skip
FEATURES = {  # by kind of product
    "스마트폰": ("배터리 사용 시간을 절반 가까이 늘린", "화면을 두 번 접을 수 있는", "재활용 소재로 겉면을 만든", "실시간 통역 기능을 넣은"),
    "애플리케이션": ("글자를 읽어 주는", "가족과 일정을 나누는", "개인 정보를 기기 안에서만 처리하는", "음성만으로 조작할 수 있는"),
    "서비스 로봇": ("좁은 통로도 스스로 피해 가는", "승강기를 혼자 타는", "사투리도 알아듣는", "하루 종일 충전 없이 일하는"),
    "게임": ("친구 네 명이 함께 즐길 수 있는", "이용자가 지도를 직접 만드는", "시각 장애인도 소리로 즐길 수 있는", "전통 설화를 바탕으로 한"),
    "보조 배터리": ("충전 시간을 반으로 줄인", "물에 젖어도 작동하는", "재활용 소재로 겉면을 만든", "열이 거의 나지 않는"),
    "전기차": ("한 번 충전으로 520km를 달리는", "뒷좌석을 침대로 바꿀 수 있는", "좁은 골목에서 제자리로 도는", "겨울에도 주행 거리가 거의 줄지 않는"),
}  # fmt: skip
CAUSES = {  # direction: causes that fit any of the goods
    "상승": ("출하량이 줄어든 데다 명절 수요가 겹치면서", "공급이 예년의 절반에 그치면서", "물류비와 인건비가 함께 뛰면서", "이상 기온으로 생산이 차질을 빚으면서"),
    "하락": ("출하량이 크게 늘면서", "수입 물량이 풀리면서", "소비가 줄어든 데다 생산까지 늘어", "정부가 할인 행사를 지원하면서"),
}  # fmt: skip
WEATHER = {
    "겨울": ("폭설", "강풍", "한파"),
    "봄": ("강풍", "집중호우"),
    "여름": ("집중호우", "폭염", "강풍"),
    "가을": ("집중호우", "강풍"),
}
FESTIVAL_MONTHS = {
    "은누리눈꽃축제": 1, "한여울물빛음악제": 7, "누리내도자기축제": 5, "갈맷갯벌축제": 8, "송마루사과축제": 10, "해솔불꽃제": 10,
    "윤슬감귤축제": 11, "청담골한지문화제": 9, "물미오징어축제": 6, "가온책마을잔치": 4,
}  # fmt: skip
