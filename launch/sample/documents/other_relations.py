"""Clauses about cities, landscapes, countries, works, products and venues; see ``telling.py``. Data only."""

# ruff: noqa: E501 - a Hangul syllable counts as two columns
from __future__ import annotations

from launch.sample.documents.telling import blocks

CITY = blocks("""
# definition
{s} {province}에 있는 {land} [도시|지역|고장]
{s} {province}의 {land} 지방에 자리한 [도시|고장]
{s} {known_for:으로} 알려진 {province}의 [도시|고장]
{s} {province}에 속한 [지방 자치 단체|기초 자치 단체]
# founded
{s} {founded}년 {rank:으로} {raised}[했|됐]
{founded}년 주변 [마을을|읍과 면을] [합쳐|묶어] {rank:이} [됐|생겼]
{s} {founded}년[에|부터] 지금의 행정 구역을 [갖췄|이뤘]
{rank:으로} {raised}한 [것은|해는] {founded}년
# population
인구는 [약 |]{population}명
{city}에는 [약 |]{population}명이 [살고 있|거주하고 있]
[주민은|주민등록 인구는] {population}명[가량|]
[해마다 조금씩 변하지만|최근 집계에서는] 인구가 {population}명 [수준으로 나타났|안팎으로 조사됐]
# known_for
{s} {known_for:으로} [이름났|유명해졌|널리 알려져 있]
[예로부터|오래전부터] {known_for:이} [발달했|지역 경제를 이끌어 왔]
[특산물과 산업으로는|자랑거리로는] {known_for:이} [꼽히고 있|있]
[주민 상당수가|적지 않은 주민이] {known_for:과} 관련된 일에 [종사하고 있|몸담고 있]
# mayor
[현재 |]{mayor_title:은} {mayor}
{mayor} {mayor_title:이} [지역을 이끌고 있|살림을 맡고 있|행정을 책임지고 있]
{mayor:이} {mayor_title:을} 맡고 있
# districts
행정 구역으로는 {districts} 등이 있
{s} {districts:으로} 나뉘어 있
[안에는|관할 구역에는] {districts} 같은 지역이 [속해 있|포함돼 있]
# landmark
[이곳에서|근처에서] 가장 [잘 알려진|자주 찾는] 곳은 {landmark}
{landmark:이} [이곳에|{city}에] [있|자리하고 있]
[주민들이|여행객들이] [즐겨 찾는|사랑하는] {landmark_kind:은} {landmark}
# festival
[매년|해마다] {festival_month}월이면 {festival:이} [열리고 있|펼쳐져 왔]
{festival_year}년 시작된 {festival:이} [대표적인 지역 축제로 자리 잡았|지금도 이어지고 있]
# company
{company:이} 이곳에 [본사를 두고 있|자리 잡고 있]
[주요 기업으로는|대표적인 기업으로] {company:이} [있|꼽히고 있]
# school
[고등 교육 기관으로는|대학으로는] {school:이} 있
{school:이} 이곳에 [캠퍼스를 두고 있|자리 잡고 있]
""")
LANDMARK = blocks("""
# definition
{s} {city}에 있는 {kind}
{s} {province} {city}에 [자리한|위치한] {kind}
# 산
[높이는|해발 고도는] {amount}m
{s} 해발 {amount}m[이며|로] [정상에 서면 {city} 시가지가 내려다보여 등산객이 많이 찾고 있|등산로가 잘 정비돼 있]
[정상까지|꼭대기까지] [걸어서|보통 걸음으로] {hours}시간[쯤|가량] 걸려 [가족 산행지로도|주말 나들이 길로] [알려져 있|인기를 얻었]
[봄에는 진달래가|가을에는 단풍이|겨울에는 눈꽃이] [아름다워|볼 만해] [사진가들이 몰려들었|해마다 많은 사람이 찾아왔]
# 강
[길이는|총길이는] {amount}km
{s} {source}에서 [발원해|시작해] {amount}km를 [흘렀|흐르고 있]
[발원지는|물줄기가 시작되는 곳은] {source}
[강변에는|둔치에는] [자전거길이|갈대밭이|산책로가] [놓여 있|조성돼 있|펼쳐져 있]
# 물
[넓이는|면적은] [약 |]{amount}헥타르
[철새가 머무는|물이 맑은|노을이 고운] 곳으로 [이름났|알려져 있]
[해마다 봄이면|주말마다] [가족 단위 여행객이|사진 동호인이|낚시꾼이] [찾아왔|모여들고 있]
[둘레를 따라|가장자리에는] [나무 데크길이|걷기 좋은 오솔길이|작은 쉼터가] [마련돼 있|이어져 있]
# story
[이름은|지명은] [옛 마을 이름에서|지형의 생김새에서|전해 오는 설화에서] [따왔|비롯됐]
[마을에는|이 일대에는] [선녀와 나무꾼을 닮은|용이 머물다 떠났다는|길 잃은 아이를 지켜 줬다는] [이야기가|설화가] [전해지고 있|남아 있]
""")
COUNTRY = blocks("""
# definition
{s} {region}에 있는 나라
{s} {region}에 자리한 [국가|나라]
# capital
수도는 {capital}
{s} {capital:을} 수도로 [삼고 있|두고 있]
[정치와 경제의 중심지는|가장 큰 도시는 수도] {capital}
# leader
[현직|현재] {leader_title:은} {leader}
{leader:이} {leader_title:으로} [나라를 이끌고 있|정부를 대표하고 있]
# trade
[한국과는|우리나라와는] [오래전부터|수교 이후] [교류를 이어 왔|경제 협력을 넓혀 왔|문화 교류가 활발했]
[주요 수출품은|경제를 떠받치는 것은] [커피와 구리|목재와 수산물|밀과 올리브|철광석과 곡물]
""")
WORK = blocks("""
# definition
{s} {year}년 [{month}월에 |]{shown} {genre} {kind}
{s} {creator:이} {made} {kind}
{s} {date} {shown} [{creator}의|] {kind}
# creator
{s} {creator:이} {made} [{year}년 작품|작품]
[{maker_word:은}|만든 사람은] {creator}
{creator:이} {making} [뒤 |끝에 ]완성했
{creator:의} [대표작으로|이름을 널리 알린 작품으로] [꼽히고 있|평가받았]
# premise
{premise} 이야기를 [담고 있|다뤘|그렸]
[줄거리는|내용은] {premise} 과정을 따라[가고 있|갔]
{s} {premise} [과정을|모습을] [담담하게|차분하게|유쾌하게|촘촘하게] [그렸|풀어냈|담아냈]
# cast
{star:과} {costar:이} [주연을 맡았|호흡을 맞췄|함께 출연했]
[주연은|주인공은] {star:이} 맡았[고|으며] {third:도} [출연했|힘을 보탰]
{star}, {costar}, {third} [등이|같은 배우들이] [출연했|열연했|이름을 올렸]
# publisher
{publisher:이} [만들어 선보였|세상에 내놓았|대중 앞에 내놓았]
{publisher_word:은} {publisher}
{s} {publisher:을} 통해 [나왔|공개됐|선보였]
# rating
[누리꾼|이용자] 평점은 10점 만점에 [평균 |]{rating}점
[한|어느] 평점 사이트에서 {rating}점을 [받았|기록했|얻었]
# reception
[평단에서는|비평가들은] [서두르지 않는 호흡이 돋보인다는|인물의 감정을 섬세하게 짚었다는|후반부가 다소 늘어진다는|신인답지 않은 솜씨라는] [평을 내놓았|평가가 많았]
[입소문을 타면서|공개 초기의 부진을 딛고] [뒤늦게 주목받았|꾸준한 사랑을 받았|긴 흥행을 이어 갔]
[이듬해|그해 말] [여러 시상식에서|지역 문화상에서] [작품상 후보에 올랐|신인상을 받았|심사 위원 특별상을 받았]
[완성까지|준비부터 공개까지] [꼬박 |]{years}년이 걸렸
[처음에는 다른 제목이었으나|가제는 따로 있었지만] [마지막 단계에서|공개 직전] 지금의 [이름으로|제목으로] [바뀌었|정해졌]
""")
FESTIVAL = blocks("""
# definition
{s} [해마다|매년] {month}월 {city}에서 [열리는|펼쳐지는] [지역 |]축제
{s} {city:이} [주최하는|여는] [계절 |]축제
# doing
[대표 프로그램은|주요 볼거리는] {doing}
{doing:이} [인기를 끌어 왔|방문객을 맞이했|관광객의 발길을 붙잡았]
[아이들과|가족과] 함께라면 {doing:을} [빼놓을 수 없다고 소개되고 있|즐길 수 있도록 꾸며져 있]
# since
{year}년 [처음|첫 회가] [열렸|시작됐]
{s} {year}년[에 시작돼|부터] [지금까지 |]이어지고 있
첫 [행사는|축제는] {year}년에 [치러졌|마련됐]
""")
PRODUCT = blocks("""
# definition
{s} {maker:이} [만든|개발한|내놓은] {noun}
{s} {city}의 {field} 기업 {maker:이} [판매하는|공급하는] {noun}
# released
{date} [출시됐|판매를 시작했|시장에 나왔]
{s} {year}년 [처음 공개됐|선을 보였|나왔]
[출시일은|첫 판매일은] {date}
# price
[출시 당시 |]가격은 {price}[{:으로} 책정됐|{:이었}|]
{s} {price}에 [팔리고 있|판매됐|나왔]
[권장 소비자 가격은|정가는] {price}
# maker
[제조사는|만든 곳은|공급사는] {maker}
{maker:의} [주력 상품으로|매출을 이끄는 상품으로] [꼽혀 왔|자리 잡았]
# reception
[써 본 사람들은|이용자들은] [값에 비해 만족스럽다고|군더더기가 없다고|기대 이상이라고|설명서가 친절하다고] [평가했|입을 모았]
[출시 첫 달부터|반년 만에] [찾는 사람이 크게 늘었|입소문이 퍼졌]
""")
VENUE = blocks("""
# definition
{s} {city} {area}에 있는 {kind}
{s} {city} {area}에 [자리한|위치한] {kind}
{s} {station} [근처의|인근] {kind}
# speciality
[대표 메뉴는|가장 많이 찾는 음식은] {speciality}
{speciality:으로} [입소문이 났|단골을 모았|이름이 알려졌]
# price
[가격은|기본 요금은] {price} [선|안팎]
[가장 싼 것은|가장 낮은 가격은] {price}
가격대는 {price_word} 편
{s} 값이 {price_word} 편
# sight_price
[입장료는|관람료는] {price}
{s} 입장료 {price:을} 받고 있
# free
[입장료는 따로 없|누구나 무료로 들어갈 수 있]
[무료로 개방돼 있|돈을 내지 않고 둘러볼 수 있]
# station
[{station}에서|지하철 {station}에서] [걸어서|도보로] [{minutes}분 거리에 있|{minutes}분이면 닿을 수 있]
[가장 가까운 역은|가까운 지하철역은] {station}
# parking
[주차장이 넓게 마련돼 있|자가용으로 찾는 손님을 위해 주차장을 갖췄]
[전용 주차장이 있|건물 뒤편에 차를 댈 수 있]
# noparking
[주차장은 없|따로 주차 공간을 두지 않았]
차를 세울 곳이 [마땅치 않아 대중교통이 권장되고 있|없어 대중교통을 이용하는 손님이 많았]
# founded
{year}년부터 [손님을 맞고 있|운영돼 왔]
{year}년에 문을 열어 [지금까지 이어지고 있|입소문을 탔]
""")
