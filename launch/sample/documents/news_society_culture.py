"""News of the topics 사회 and 생활문화: headlines, leads, further facts and quotations for each kind. Data only."""

# ruff: noqa: E501 - a Hangul syllable counts as two columns
from __future__ import annotations

from launch.sample.documents.telling import blocks

FIRE = blocks("""
# headline
{city} {place}서 [불|화재]…{damage} 피해
{city} {place} 화재, {people} [긴급 대피|대피 소동]
{city} {place} 불…“{cause} 추정”
# lead
{day} {time}쯤 {city}의 한 {place}에서 불이 [났|나 {people}이 대피했]
{city}의 한 {place}에서 {day} {time} 불이 나 소방서 추산 {damage}의 재산 피해가 [났|발생했]
{day} {city} [시내|외곽] {place}에서 [난 불이|발생한 화재가] [한 시간|두 시간|40분] 만에 [꺼졌|진화됐]
# fact
[다친 사람은|인명 피해는] 없었
[건물 안과 근처에 있던|인근 주민] {people}이 [급히 |]대피했
소방대원 {crew}이 [투입돼|출동해] 불길을 잡았
[소방 당국은|경찰과 소방 당국은] {cause:을} [화재 원인으로 보고 있|원인으로 추정했]
재산 피해는 {damage:으로} [추산됐|집계됐]
[검은 연기가|매캐한 연기가] [치솟으면서|번지면서] 신고 전화가 [잇따랐|빗발쳤]
[합동 감식은|현장 감식은] [다음 날|이튿날] [오전에 |]이뤄질 [예정|전망]
# quote: 소방 관계자/현장을 지휘한 소방관
바람이 약해 불길이 번지지 않았다
노후 전선을 서둘러 점검하겠다
조금만 늦었어도 큰일 날 뻔했다
# quote: 주민 이 모 씨/이웃 주민 최 모 씨
타는 냄새를 맡고 곧바로 119에 신고했다
잠든 이웃을 깨워 함께 나왔다
조금만 늦었어도 큰일 날 뻔했다
""")
CRIME = blocks("""
# headline
{crime} 일당 {caught} [검거|붙잡혀]…피해액 {damage}
{victims} 울린 {crime}…{city} 경찰 {caught} 검거
{city}서 {crime} 조직 [덜미|적발]…{damage} 챙겨
# lead
{city} 경찰이 {crime} 혐의로 {caught:을} [붙잡았|검거했]다고 {day} 밝혔
{crime:으로} {damage:을} [가로챈|빼돌린] 일당 {caught}이 경찰에 [붙잡혔|덜미를 잡혔]
{day} {city}경찰서는 {crime} 일당 {caught:을} [검거해|붙잡아] 이 중 [2명을|한 명을] [구속했|검찰에 넘겼]
# fact
[피해자는|확인된 피해자는] {victims}[으로 늘어났|에 이르렀]
[피해 금액은|이들이 가로챈 돈은] {damage:으로} [조사됐|파악됐]
[피해자 대다수는|피해자 가운데 상당수는] [혼자 사는 노인이었|사회 초년생이었|소규모 자영업자였]
이들은 [사무실을 옮겨 다니며|가짜 명함을 만들어] 수사망을 [피해 온 것으로 드러났|따돌린 것으로 조사됐]
경찰은 [달아난 공범을|총책을] [쫓고 있|추적하고 있]
[은행 직원의|시민의] [재빠른 신고가|눈썰미가] 검거에 [결정적인 도움이 됐|큰 몫을 했]
# quote: 경찰 관계자/수사 담당 경찰관/{city}경찰서 관계자
모르는 번호로 온 주소는 누르지 말아야 한다
돈을 먼저 보내라는 말은 무조건 의심해야 한다
피해자 대부분이 신고를 망설였다
# quote: 피해자 한 모 씨/70대 피해자
딸의 목소리와 똑같아 의심하지 못했다
평생 모은 돈이 하루아침에 사라졌다
""")
DONATION = blocks("""
# headline
{person}, {use}에 {amount} [기부|쾌척]
{person} “받은 사랑 돌려주고 싶어”…{amount} 기부
{org}에 {amount} 전한 {person}[의 선행|…올해로 다섯 번째]
# lead
{title} {person:이} {use:을} 위해 {amount:을} [내놓았|기부했]
{org:은} {day} {title} {person:이} {use}에 써 달라며 {amount:을} [맡겼|전달했]다고 밝혔
{title} {person}의 [조용한|따뜻한] 기부가 [뒤늦게 |]알려졌
# fact
[기부금은|성금은] {use}에 [쓰일 예정|사용하기로 했]
{person:은} [해마다 이맘때|몇 해 전부터] [기부를 이어 왔|봉사에 참여해 왔]
[전달식은|기부금 전달은] [본인의 뜻에 따라|번거롭다는 이유로] [생략됐|조용히 이뤄졌]
[소식을 들은|선행이 알려지자] [팬들도|이웃들도] [모금에 나섰|성금을 보탰]
{org:은} [투명한 사용을 위해|누리집에] 사용 내역을 [공개하기로 했|올릴 계획]
# quote: {person}
어려울 때 받은 도움을 잊지 않았다
큰돈은 아니지만 꼭 필요한 곳에 쓰이길 바란다
더 어려운 분들도 나누며 살더라는 말을 하고 싶었다
# quote: {org} 관계자
이름을 알리지 말아 달라고 거듭 부탁했다
한 사람의 마음이 많은 사람을 움직였다
""")
WEATHER = blocks("""
# headline
{city} {weather}에 주택 {homes} [피해|파손]…{people} 대피
{weather} 덮친 {city}…{people} [대피|불편]
{city} {weather} [특보|경보]…“외출 자제해야”
# lead
{city}에 {weather:이} [이어지면서|덮치면서] 주민 {people}이 [대피했|불편을 겪었]
{day} {city} 일대에 {weather} [특보가 내려졌|경보가 발효됐]
{city}에서 {day} {weather:으로} 주택 {homes:이} [피해를 입었|부서졌]
# fact
[집을 떠나|안전을 위해] {people}이 [마을 회관과 학교로|대피소로] [몸을 피했|옮겼]
피해를 본 집은 {homes:으로} [집계됐|조사됐]
[일부 도로는|산간 도로는] [통행이 금지됐|전면 통제됐]
[기상 당국은|예보에 따르면] [모레까지|주말까지] 비슷한 날씨가 [이어질 것으로 내다봤|계속될 전망]
[자원봉사자들이|군 장병들이] [복구 작업에|현장 정리에] [힘을 보탰|나섰]
[초등학교와|유치원과] 중학교 일부는 [하루 |]쉬[기로 했|었]
# quote: 주민 송 모 씨/마을 이장/과수원을 하는 배 모 씨
이런 날씨는 마을에 산 지 수십 년 만에 처음이다
하늘만 쳐다보고 있다
한 해 농사를 망칠까 봐 잠을 못 잤다
# quote: {city} 관계자/재난 담당자
위험한 지역부터 먼저 살피고 있다
물과 담요를 넉넉히 준비했다
""")
CRASH = blocks("""
# headline
{city} {road}서 {vehicles} [추돌|충돌]…{hurt} 부상
{road} {closed} 통제…{vehicles} 부딪쳐
{city} {road} 교통사고로 {hurt} [다쳐|병원행]
# lead
{day} {time}쯤 {city} {road}에서 {vehicles:이} [부딪쳐|충돌해] {hurt}이 다쳤
{city} {road}에서 {vehicles:이} 부딪치는 사고가 [나|발생해] {hurt}이 [병원으로 옮겨졌|치료를 받고 있]
출퇴근길 {city} {road}에서 사고가 나 {closed} 동안 [차량 흐름이 막혔|통행이 통제됐]
# fact
[다친 사람들의|부상자들의] 생명에는 지장이 없는 것으로 [알려졌|전해졌]
사고 수습으로 {closed} 동안 [한쪽 차로가|일부 차로가] [통제됐|막혔]
경찰은 [차량 블랙박스를|목격자 진술을] [바탕으로|확보해] 사고 원인을 [조사하고 있|살피고 있]
[빗길에 미끄러진|신호를 보지 못한|졸음운전을 한] 것으로 [추정됐|보였]
[이 구간은|해당 도로는] [평소에도 사고가 잦은|내리막이 심한] 곳으로 [알려져 있|꼽혔]
# quote: 사고를 목격한 시민/근처에서 가게를 하는 조 모 씨
쾅 소리가 나서 나가 보니 차가 돌아서 있었다
그 자리는 밤이면 앞이 잘 보이지 않는다
# quote: 경찰 관계자/도로 관리 담당자
그 자리는 밤이면 앞이 잘 보이지 않는다
과속 단속 장비를 더 달겠다
# quote: 다친 운전자
안전띠를 맨 덕분에 크게 다치지 않았다
눈 깜짝할 사이에 일어난 일이었다
""")
FESTIVAL = blocks("""
# headline
{work} [개막|막 올라]…{days} 동안 {doing}
{city} {work}에 {visitors} [몰려|다녀갔다]
“이 맛에 온다” {work} [성황|북적]
# lead
{work:이} {day} {city}에서 [막을 올렸|개막했]
{city}의 대표 축제인 {work:이} {day}부터 {days} 동안 [열렸|펼쳐졌]
{day} {city}에서 열린 {work}에 [가족 단위|이른 아침부터] 방문객이 [몰렸|줄을 이었]
# fact
올해는 {doing:이} [마련됐|가장 큰 인기를 끌었]
[주최 측은|시와 군은] 방문객을 {visitors:으로} [예상했|추산했]
[먹거리와 체험|체험] 부스 {booths:이} [손님을 맞았|차려졌]
{since}년 시작된 이 축제는 [지역을 대표하는 행사로|해마다 빼놓을 수 없는 잔치로] [자리 잡았|꼽혀 왔]
[일회용 그릇을 쓰지 않는|셔틀버스를 늘린] 점도 [눈길을 끌었|호응을 얻었]
[인근 숙박 시설은|주변 식당은] [빈자리를 찾기 어려울 만큼|문을 열자마자] [붐볐|손님으로 찼]
# quote: 가족과 함께 온 곽 모 씨/친구들과 온 유 모 씨/관광객 양 모 씨
아이들이 집에 가지 않겠다고 해서 하루 더 묵기로 했다
해마다 오는데 올해가 가장 알차다
사진보다 직접 보는 것이 훨씬 낫다
# quote: 축제 관계자/{city} 관계자
마을 어르신들이 직접 준비한 잔치다
바가지요금이 없도록 가격표를 미리 받았다
""")
EXHIBITION = blocks("""
# headline
{creator} 개인전 ‘{work}’, {publisher}서 [개막|열려]
{creator:이} 돌아왔다…‘{work}’전에 신작 {pieces}
‘{work}’…{creator:이} 빚은 {pieces}의 이야기
# lead
화가 {creator}의 개인전 ‘{work}’{:이} {day} {city} {publisher}에서 [막을 올렸|개막했]
{publisher:은} {day}부터 {creator}의 작품 {pieces:을} 모은 ‘{work}’전을 [연다고 밝혔|열고 있]
{creator}의 작업을 한자리에서 볼 수 있는 ‘{work}’전이 {city}에서 [열렸|시작됐]
# fact
전시에는 [회화와 설치 작업|그림과 드로잉] {pieces:이} [나왔|걸렸]
전시는 {weeks} 동안 [이어질 예정|계속하기로 했]
[관람료는|입장료는] [없으며|무료이며] 월요일에는 [문을 닫기로 했|쉴 예정]
[주말에는|토요일마다] [작가와의 대화가|어린이 체험 교실이] [열리고 있|마련됐]
[전시장 한쪽에는|마지막 방에는] 작가의 [낡은 작업 도구가|젊은 시절 공책이] [놓였|전시됐]
# quote: {creator} 작가/작가
버려진 것들에도 저마다의 빛이 있다
완성은 관람객의 눈에서 이뤄진다
손이 기억하는 대로 그렸다
조용히 앉아 오래 볼 수 있는 전시를 만들고 싶었다
""")
FILM = blocks("""
# headline
{creator} 감독 ‘{work}’ [개봉|베일 벗다]…{star}·{costar} 주연
영화 ‘{work}’ 관객 {audience} [돌파|넘어]
{star} “‘{work}’, 인생에서 가장 힘든 촬영”
# lead
{creator} 감독의 {genre} 영화 ‘{work}’{:이} {day} [개봉했|관객을 만났]
배우 {star:과} {costar:이} 주연한 영화 ‘{work}’{:이} {day} [극장에 걸렸|개봉했]
영화 ‘{work}’{:이} 관객 {audience:을} [넘어섰|불러 모았]
# fact
‘{work}’{:은} {premise} 이야기를 [그렸|담았]
[연출은|메가폰은] {creator} 감독이 [맡았|잡았]
{star}, {costar}, {third:이} [출연했|호흡을 맞췄]
[제작은|제작사는] {publisher:이} 맡았
[전국|개봉 첫날] {screens} 상영관에서 [관객을 만났|상영됐]
[누적 관객은|지금까지 본 관객은] {audience:으로} [집계됐|나타났]
# quote: {creator} 감독/감독
인물의 침묵을 믿고 찍었다
배우들의 눈빛만으로도 충분했다
관객이 저마다의 답을 가지고 나가면 좋겠다
# quote: 배우 {star}/{costar}/{third}
대본을 덮고 나서도 며칠 동안 마음이 아팠다
촬영장이 추워 입이 얼 정도였다
이 역할을 놓치면 후회할 것 같았다
""")
ALBUM = blocks("""
# headline
{creator}, 새 앨범 ‘{work}’ [발매|공개]
{creator} ‘{work}’{:으로} [돌아왔다|컴백]…{songs} 담아
{creator} 단독 공연 {seats} [매진|동났다]
# lead
{creator:이} {day} 새 앨범 ‘{work}’{:을} [발표했|내놓았]
{creator}의 새 앨범 ‘{work}’{:이} {day} [공개됐|발매됐]
{publisher:은} {day} {creator}의 새 앨범 ‘{work}’{:을} [발매한다고 밝혔|내놨]
# fact
앨범에는 [타이틀곡을 포함해|새로 쓴] {songs:이} [실렸|담겼]
[이번 앨범은|새 노래들은] {genre} [색채가 짙은 것이 특징|장르에 속해 있]
[앨범 발매를 기념하는|이어지는] 단독 공연의 {seats:이} [모두 팔렸|예매 시작 10분 만에 동났]
[작사와 작곡은|모든 노래는] [직접 맡았|멤버와 함께 만들었]
[뮤직비디오는|영상은] {city}의 [골목에서|바닷가에서] [촬영됐|찍었]
# quote: {creator}
일기를 쓰듯 한 곡씩 모았다
무대에서 다시 만날 날을 기다렸다
듣는 사람의 하루가 조금 가벼워지면 좋겠다
예전의 나에게 보내는 답장 같은 앨범이다
""")
BOOK = blocks("""
# headline
{creator} 새 책 ‘{work}’ [출간|펴내]
‘{work}’ {printing} [찍었다|돌파]…{creator} 열풍
{creator} {genre} ‘{work}’ [독자 곁으로|서점가 화제]
# lead
{creator:이} 새 {genre} ‘{work}’{:을} {day} [펴냈|출간했]
{publisher:은} {creator}의 {genre} ‘{work}’{:을} {day} 출간했다고 [밝혔|알렸]
{creator}의 {genre} ‘{work}’{:이} [독자의 사랑을 받고 있|서점가에서 주목받고 있]
# fact
책은 {premise} 이야기를 [담고 있|다뤘]
분량은 {pages}
출간 [한 달|보름|두 달] 만에 {printing:을} [찍었|넘겼]
[독자들은|서평가들은] [문장이 담백하다는|마지막 장이 오래 남는다는] 평을 [내놓았|남겼]
[출간 기념|저자] 강연은 {city}의 [작은 책방에서|도서관에서] [열렸|마련됐]
# quote: {creator} 작가/저자
쓰는 내내 고향의 냄새가 떠올랐다
한 문장을 고치는 데 일주일이 걸렸다
거창한 이야기 대신 작은 목소리를 적고 싶었다
# quote: 출판사 편집자
읽고 나서 부모님께 전화를 걸었다는 독자가 많았다
처음 원고를 받고 밤을 새워 읽었다
""")
KIND_TEMPLATES = {
    "fire": FIRE, "crime": CRIME, "donation": DONATION, "weather": WEATHER, "crash": CRASH, "festival": FESTIVAL,
    "exhibition": EXHIBITION, "film": FILM, "album": ALBUM, "book": BOOK,
}  # fmt: skip
