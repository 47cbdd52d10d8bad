"""News of the topics 세계, 스포츠 and 정치: headlines, leads, further facts and quotations for each kind. Data only."""

from __future__ import annotations

from launch.sample.documents.telling import blocks

SUMMIT = blocks("""
# headline
{country}·{country2} 정상 만났다…{agenda} [논의|합의]
{leader} {leader_title}, {leader2} {leader_title2:과} {hours} 회담
{country}–{country2}, {agenda} [합의|손잡아]
# lead
{country:과} {country2}의 정상이 {day} {capital}에서 만나 {agenda} 문제를 [논의했|두고 머리를 맞댔]
{leader} {country} {leader_title:이} {day} {leader2} {country2} {leader_title2:과} 정상 회담을 [했|열었]
{country:과} {country2:이} {agenda}에 [뜻을 모았|합의했]
# fact
회담은 {hours} 동안 [이어졌|진행됐]
[두 나라는|양국은] {agenda:을} 위한 [실무 협의체를 꾸리기로 했|공동 선언문을 냈]
[두 정상의 만남은|이번 회담은] [3년|5년|8년] 만에 [이뤄졌|성사됐]
[현지 언론은|외신은] [관계 회복의 신호라고|예상 밖의 진전이라고] [평가했|전했]
회담장 밖에서는 [회담을 반기는|회담에 반대하는] 시민들이 [모였|집회를 열었]
# quote: {leader} {leader_title}/{leader2} {leader_title2}
국민의 삶을 바꾸는 합의여야 한다
어려운 대화였지만 솔직했다
이웃의 평화 없이는 우리의 번영도 없다
이번 만남은 끝이 아니라 시작이다
""")
QUAKE = blocks("""
# headline
{country}서 {magnitude} 지진…{dead} 사망
{country} 강진에 {dead} [숨지고|사망] {hurt} 부상
{magnitude} 강진 덮친 {country}…{helper} [구조대 급파|지원 나서]
# lead
{day} {region} {country}에서 {magnitude}의 지진이 [발생해|일어나] [적어도 |]{dead}이 숨졌
{country}에서 {day} {magnitude} 지진이 나 {hurt}이 다치는 등 피해가 [커지고 있|속출했]
{country} 정부는 {day} 발생한 지진으로 [지금까지 |]{dead}이 [숨진 것으로 집계됐|목숨을 잃었]다고 밝혔
# fact
[진원의 깊이는|지진은 지하] {depth:으로} [관측됐|조사됐]
[부상자는|다친 사람은] {hurt:으로} [늘어났|집계됐]
[수도 {capital}에서도|먼 도시에서도] 건물이 [흔들리는 것이 느껴졌|흔들렸]
{helper:은} [구조대와 구호품을|의료진과 담요를] [보냈|보내기로 했]
{leader} {leader_title:은} [비상사태를 선포했|현장을 찾아 유족을 위로했]
[한국 정부도|우리 정부는] [구호 물품을 보내기로|긴급 지원금을 내기로] 했
# quote: 현지 주민/가까스로 빠져나온 주민
땅이 파도처럼 출렁였다
무너진 건물 아래에서 아직 목소리가 들린다
맨발로 뛰쳐나와 밤새 길에서 떨었다
# quote: {helper} 관계자/현지 구조대원
시간과의 싸움이다
도로가 끊겨 구조가 늦어지고 있다
""")
ELECTION = blocks("""
# headline
{country} 대선서 {leader} [당선|승리]…득표율 {share}
{country} 선거 투표율 {turnout}…{leader} [연임|승리]
{leader}, {share} 득표로 {country} {leader_title}에
# lead
{country} 선거에서 {leader} 후보가 {share:을} 얻어 [당선됐|승리했]
{day} 치러진 {country} 선거에서 {leader} 후보가 [승리했|과반에 가까운 표를 얻었]
{country} 국민은 {day} {leader:을} 새 {leader_title:으로} [뽑았|선택했]
# fact
[투표율은|최종 투표율은] {turnout:으로} [집계됐|나타났]
{leader} 당선인은 {share:을} [득표했|얻었]
[패한 후보는|야당은] 결과를 [받아들인다고 밝혔|존중하겠다고 했]
[물가와|일자리와] [교육 문제가|부패 척결이] 선거의 [쟁점이었|핵심 주제로 떠올랐]
[취임식은|새 정부의 출범식은] [다음 달|석 달 뒤] 수도 {capital}에서 [열릴 예정|치르기로 했]
# quote: {leader} 당선인
나를 찍지 않은 국민의 목소리도 듣겠다
약속을 지키는 정부가 되겠다
가장 먼저 할 일은 물가를 잡는 것이다
# quote: 현지 정치 평론가/현지 기자
젊은 유권자가 변화를 만들었다
개표가 끝날 때까지 결과를 알 수 없었다
""")
TARIFF = blocks("""
# headline
{country}, {country2}산 {goods}에 {rate} 관세
{country}–{country2} [무역 갈등|통상 마찰]…{goods} 관세 {rate}
{country2} “{country} 관세 [부당|유감]”…{goods} 맞대응 예고
# lead
{country:이} {country2}에서 들여오는 {goods}에 {rate}의 관세를 매기[기로 했|겠다고 {day} 밝혔]
{country} 정부는 {day} {country2}산 {goods}에 {rate} 관세를 [물린다고 발표했|부과한다고 밝혔]
{goods:을} 둘러싼 {country:과} {country2}의 [무역 다툼이|갈등이] [커지고 있|다시 불거졌]
# fact
[새 관세율은|관세는] {rate}[이며|로] [다음 달부터 적용될 예정|석 달 뒤 시행하기로 했]
{country2} 정부는 [맞대응하겠다고|국제기구에 제소하겠다고] [밝혔|맞섰]
{leader2} {leader_title2:은} [대화로 풀자는|깊은 유감이라는] 뜻을 [나타냈|전했]
[국내 업계도|우리 수출 기업도] [영향을 따져 보고 있|원자재값을 걱정하고 있]
[전문가들은|국제 시장에서는] {goods} 가격이 [흔들릴|오를] 것으로 [내다봤|보고 있]
# quote: {country} 정부 관계자
자국 산업을 지키기 위한 조치다
협상의 문은 아직 열려 있다
# quote: {leader2} {leader_title2}/{country2} 정부 관계자
이웃을 상대로 한 공격이나 다름없다
결국 소비자가 비용을 치르게 된다
협상의 문은 아직 열려 있다
# quote: 통상 전문가/한 경제학자
결국 소비자가 비용을 치르게 된다
맞대응이 이어지면 누구도 이기지 못한다
""")
MATCH = blocks("""
# headline
{org}, {rival} {score} [제압|꺾고 {streak}]
‘{person} 맹활약’ {org}, {rival} 눌렀다
{rival} 울린 {person}…{org} {score} 승리
# lead
{org:이} {day} 열린 {sport} 경기에서 {rival:을} {score:으로} [이겼|꺾었|눌렀]
{sport} 구단 {org:이} {rival:을} {score:으로} 꺾고 {streak:을} [달렸|이어 갔]
{title} {person:이} 활약한 {org:이} {day} 안방에서 {rival:을} {score:으로} [제압했|이겼]
# fact
{person:은} [결정적인 순간에|승부처마다] {point:을} [올리며|만들어 내며] 승리를 [이끌었|거들었]
[경기장에는|이날 관중석에는] 관중 {crowd}이 [찾았|모였]
{org:은} 이 승리로 {streak:을} [기록했|달렸]
{rival:은} [막판까지 따라붙었|거센 추격전을 펼쳤]으나 [승부를 뒤집지 못했|끝내 고개를 떨궜]
[전반은|경기 초반은] [팽팽했|상대가 앞섰]으나 [교체 선수들이|수비가] [흐름을 바꿔 놓았|살아나면서 분위기가 달라졌]
{head} 감독은 [경기 뒤|승리를 확정한 뒤] [선수들을 한 명씩 안아 줬|관중석을 향해 고개를 숙였]
# quote: {person}
동료들이 만들어 준 기회를 살렸을 뿐이다
끝까지 응원해 준 팬 덕분에 이겼다
아직 보여 줄 것이 많다
다음 경기만 생각하겠다
# quote: {head} 감독
끝까지 응원해 준 팬 덕분에 이겼다
다음 경기만 생각하겠다
수비에서 약속한 대로 움직였다
""")
TRANSFER = blocks("""
# headline
{person}, {old} 떠나 {org} [유니폼|합류]
{org}, {title} {person} 영입…{years} {fee}
{person:을} 품은 {org}…“우승 위해 왔다”
# lead
{sport} {title} {person:이} {old:을} 떠나 {org:으로} [옮겼|둥지를 옮겼]
{org:은} {day} {old}의 {title} {person:을} [영입했|데려왔]다고 밝혔
{person:이} {org:과} {years} {fee}에 계약하고 [새 유니폼을 입었|새출발했]
# fact
계약 기간은 {years}[이며|이고] 총액은 {fee}
{person:은} {old}에서 [세 시즌|다섯 시즌] 동안 [뛰었|활약했]
{org:은} [약점으로 꼽히던|부상 선수가 많은] {title} 자리를 [보강하게 됐|채우게 됐]
{head} 감독은 {person:을} [오래전부터 눈여겨본 것으로 알려졌|직접 설득했]
[등번호는|새 등번호는] [7번|10번|21번|33번]
{person:은} [다음 주|이달 말] [훈련에 합류할 예정|팬들과 처음 만나기로 했]
# quote: {person}
새로운 도전이 필요한 때라고 느꼈다
예전 팬들께도 감사하다는 말을 전하고 싶다
등번호는 어릴 때부터 달고 싶던 번호다
# quote: {head} 감독/구단 관계자
경험과 패기를 두루 갖춘 선수다
훈련 태도부터 남다른 선수라고 들었다
""")
INJURY = blocks("""
# headline
{org} {person}, {part} 부상으로 {weeks} [결장|이탈]
{person} {part} 다쳐…{org} [비상|고민]
{org} ‘{person} 없는 {weeks}’ [버텨야|어떻게]
# lead
{org}의 {title} {person:이} {part} 부상으로 {weeks} 동안 경기에 나서지 [못하게 됐|못할 전망]
{org:은} {day} {person:이} {part:을} 다쳐 {weeks} 진단을 받았다고 [밝혔|알렸]
{sport} {title} {person:이} [훈련 중|경기 도중] {part:을} [다쳤|다쳐 병원으로 옮겨졌]
# fact
[정밀 검진 결과|병원에서는] 회복까지 {weeks:이} [걸린다는 진단이 나왔|필요하다고 봤]
[수술은|다행히 수술은] [필요하지 않은 것으로 알려졌|피했]
{head} 감독은 [젊은 선수에게 기회를 주기로 했|대체 선수를 고민하고 있]
{person:은} 올 시즌 {point} 부문 [상위권을 지켜 왔|팀 내 1위를 달려 왔]
[구단은|동료들은] [쾌유를 비는 영상을|응원 현수막을] [올렸|준비했]
# quote: {person}
서두르지 않고 완전히 나은 뒤에 돌아오겠다
경기를 못 뛰는 것보다 팬들께 미안하다
재활 계획은 이미 세워 두었다
# quote: {head} 감독/구단 관계자
본인이 가장 속상해하고 있다
빈자리가 크지만 함께 메우겠다
""")
RECORD = blocks("""
# headline
{person}, 통산 {games} 출전 [달성|금자탑]
{org} {person} ‘{games}’ [대기록|위업]
{games} 뛴 {person} “아직 배고프다”
# lead
{org}의 {title} {person:이} 통산 {games} 출전 기록을 [세웠|달성했]
{sport} {title} {person:이} {day} 통산 {games}째 [경기에 나섰|그라운드를 밟았]
{person:이} {day} {city}에서 열린 경기에 나서며 통산 {games} 출전을 [채웠|이뤘]
# fact
구단은 [경기 전 |][기념패와 꽃다발을|황금 열쇠를] [전달했|건넸]
{person:은} [데뷔 뒤 줄곧|큰 부상 없이] [한 팀을 지켜 왔|거의 모든 경기에 나섰]
[가족과 옛 스승도|팬 수백 명도] 경기장을 찾아 [축하했|손뼉을 쳤]
{head} 감독은 [후배들의 본보기라고|성실함이 남다르다고] [치켜세웠|칭찬했]
[이 부문|구단] 역대 [최다 기록까지는|1위와는] [30경기가|50여 경기가] 남았
# quote: {person}
하루하루 몸을 아낀 것이 비결이다
기록보다 팀의 순위가 먼저다
처음 유니폼을 받던 날이 떠올랐다
부모님께 가장 먼저 소식을 전했다
""")
BILL = blocks("""
# headline
‘{bill}’ 본회의 [통과|문턱 넘었다]…찬성 {yes}
{person} 의원 발의 ‘{bill}’ [국회 통과|가결]
{party} “{bill} [환영|늦었지만 다행]”
# lead
{party} {person} 의원이 대표 발의한 ‘{bill}’{:이} {day} 국회 본회의를 [통과했|넘었]
국회는 {day} 본회의를 열고 ‘{bill}’{:을} [의결했|통과시켰]
‘{bill}’{:이} {day} 찬성 {yes}, 반대 {no:으로} [가결됐|국회를 통과했]
# fact
[표결 결과|본회의 표결에서] 찬성은 {yes}, 반대는 {no}이었
법안은 {person} 의원이 [지난해|2년 전] [대표 발의했|처음 냈]
[법은|새 법은] [공포 뒤 6개월이 지나|내년 1월부터] [시행될 예정|효력을 갖게 됐]
[반대한 의원들은|일부 의원은] [예산 부담을|실효성을] [문제로 꼽았|문제 삼았]
[시민 단체는|관련 단체는] [환영한다는|보완이 필요하다는] 성명을 [냈|발표했]
# quote: {person} 의원/법안에 찬성한 한 의원
현장의 목소리가 법이 되기까지 너무 오래 걸렸다
여야를 떠나 꼭 필요한 법이다
작은 동네의 목소리도 법에 담고 싶었다
# quote: 시민 단체 관계자/반대표를 던진 한 의원
예산이 따르지 않으면 종이 위의 법에 그칠 것이다
시행령을 꼼꼼히 살피겠다
""")
BUDGET = blocks("""
# headline
{city} 새해 예산 {amount} [편성|확정]…{change} 늘어
{city}의회, {amount} 예산안 [의결|통과]
{mayor} {mayor_title} “{amount}, 민생에 쓰겠다”
# lead
{city:이} {amount} 규모의 예산안을 [짰|의회에 냈]다고 {day} 밝혔
{city}의회는 {day} {amount} 규모의 예산안을 [의결했|통과시켰]
{city}의 내년 살림 규모가 {amount:으로} [정해졌|확정됐]
# fact
[올해보다|지난해보다] {change} [늘어난 규모|증가했]
[복지 분야가|복지 예산이] 전체의 [가장 큰 몫을|3분의 1을] [차지했|넘었]
{mayor} {mayor_title:은} [의회에 협조를 구했|시정 연설에 나섰]
[도로와 다리|낡은 상수도] 정비 예산도 [크게 늘었|새로 포함됐]
[의원들은|의회에서는] [홍보비를|행사 예산을] [깎았|두고 공방을 벌였]
# quote: {mayor} {mayor_title}/예산 담당자
한 푼도 허투루 쓰지 않겠다
어려운 이웃을 먼저 살핀 예산이다
빚을 늘리지 않고 꼭 필요한 곳에 담았다
주민 참여 예산을 두 배로 늘렸다
""")
POLICY = blocks("""
# headline
{city}, ‘{policy}’ [시작|도입]…{people} 혜택
{mayor} {mayor_title} “‘{policy}’ 내년 [확대|시행]”
{city} ‘{policy}’에 {amount} [투입|푼다]
# lead
{city:이} {day}부터 ‘{policy}’ 사업을 [시작했|시행했]
{mayor} {mayor_title:은} {day} 기자회견을 열고 ‘{policy}’ 사업에 {amount:을} [쓰겠다고|들이겠다고] 밝혔
{city} 주민 {people}이 ‘{policy}’ 사업의 혜택을 [받게 됐|누리게 됐]
# fact
사업비는 {amount}
[혜택을 받는|지원 대상] 주민은 {people:으로} [예상됐|추산됐]
[신청은|신청서는] [주민 센터와|누리집과] 전화로 [받고 있|접수하기로 했]
{city:은} [반년 동안 시범 운영한 뒤|성과를 살펴] [대상을 넓힐 방침|전 지역으로 늘릴 계획]
[일부 의원은|야당은] [선심성 사업이라고|재원 대책이 없다고] [비판했|지적했]
# quote: {mayor} {mayor_title}/{city} 관계자
작은 불편부터 하나씩 줄여 가겠다
형편이 어려운 분들께 먼저 돌아가게 하겠다
다른 지역에서도 배우러 오고 있다
# quote: 주민 한 모 씨/두 아이를 키우는 권 모 씨
아이 키우는 집에서 가장 바라던 일이다
신청 방법을 더 쉽게 알려 주면 좋겠다
""")
RACE = blocks("""
# headline
{party} {person}, {race} [당선|선출]…득표율 {share}
{person} 의원, {share} 득표로 {party} {race}에
{rounds} 투표 끝에…{party} {race:으로} {person}
# lead
{party:은} {day} {person} 의원을 {race:으로} [뽑았|선출했]
{person} 의원이 {day} 열린 {party} 경선에서 {share:을} 얻어 {race:으로} [선출됐|뽑혔]
{party} {race} 경선에서 {person} 의원이 [승리했|이겼]
# fact
{person} 의원은 {rounds} 투표에서 {share:을} [얻었|득표했]
[경쟁 후보들은|낙선한 후보들은] [결과를 받아들이겠다고|당의 단합을 위해 힘쓰겠다고] [밝혔|했]
[당내에서는|당원들 사이에서는] [세대교체의 신호라는|안정을 택했다는] 평가가 [나왔|많았]
[임기는|새 임기는] [내일부터 2년|이날 곧바로 시작됐]
[투표에는|경선에는] 당원 [열 명 중 여섯 명이|절반 넘게] [참여했|표를 던졌]
# quote: {person} 의원
분열의 시간을 끝내겠다
당원의 명령을 무겁게 받들겠다
말이 아니라 결과로 보답하겠다
경쟁한 후보들의 공약도 함께 담겠다
""")
KIND_TEMPLATES = {
    "summit": SUMMIT, "quake": QUAKE, "election": ELECTION, "tariff": TARIFF, "match": MATCH, "transfer": TRANSFER,
    "injury": INJURY, "record": RECORD, "bill": BILL, "budget": BUDGET, "policy": POLICY, "race": RACE,
}  # fmt: skip
