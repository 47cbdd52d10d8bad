"""News of the topics IT과학 and 경제: headlines, leads, further facts and quotations for each kind of event. Data only.

Facts end like clauses of ``telling.py``; quotations end in 다 and go into quotation marks.
"""

# ruff: noqa: E501 - a Hangul syllable counts as two columns
from __future__ import annotations

from launch.sample.documents.telling import blocks

LAUNCH = blocks("""
# headline
{org}, {noun} ‘{product}’ [출시|공개|첫선]…가격 {price}
{org} 새 {noun} ‘{product}’ [베일 벗었다|나왔다]
{feature} {noun}…{org} ‘{product}’ 선보여
‘{product}’ {price}에 [판매 시작|출시]…{org} 반격 나서
# lead
{org:이} {day} [{city} 본사에서|온라인 행사를 열고] {feature} {noun} ‘{product}’{:을} [공개했|선보였]
{feature} {noun:이} 나왔
{org:은} {day} 새 {noun} ‘{product}’{:을} [출시한다고 밝혔|내놨|정식 출시했]
{city}에 본사를 둔 {org:이} {noun} ‘{product}’{:을} {day} [시장에 내놓았|처음 공개했]
# fact
‘{product}’{:은} {feature} 것이 [가장 큰 |]특징
가격은 {price:으로} [책정됐|정해졌]
[판매가는|소비자 가격은] {price}
회사는 올해 판매 목표를 {target:으로} [잡았|제시했]
[첫해|연말까지] {target} 판매를 [목표로 내걸었|자신하고 있]
[예약 판매는|사전 예약은] [공식 누리집과|온라인 매장과] 전국 [대리점에서|매장에서] [받고 있|진행됐]
개발에는 [2년|3년|18개월] 넘는 시간이 [들어갔|걸린 것으로 알려졌]
[업계에서는|시장에서는] 가격 경쟁이 [다시 불붙을|한층 치열해질] 것이라는 [전망이 나왔|관측이 나오고 있]
# quote: {org} 관계자/회사 관계자/개발 담당자/{org}의 한 임원
이용자가 가장 불편해하던 점부터 고쳤다
가격을 올리지 않으려고 부품부터 다시 설계했다
작은 기능 하나도 고객과 함께 만들었다
기술을 자랑하기보다 쓰기 편한 물건을 만들고 싶었다
첫 주 주문이 예상을 훌쩍 넘었다
""")
RESEARCH = blocks("""
# headline
{org} 연구진, {subject} 개발
{org} {person} {title} 연구진 “{subject} 찾았다”
{subject}, {org}서 [나왔다|개발]
{years} 연구 끝에…{org}, {subject} 공개
# lead
{org} {person} {title} 연구진이 {subject:을} [개발했|내놓았]다고 {day} 밝혔
{subject:이} [국내 연구진의 손에서|{city}의 한 연구실에서] [나왔|탄생했]
{org:은} {day} {person} {title}의 연구진이 {subject:을} 개발하는 데 성공했다고 [밝혔|발표했]
{day} {org}에 따르면 {person} {title} 연구진이 {years} 만에 {subject:을} 완성했
# fact
[연구 결과는|이번 성과는] {journal}에 [실렸|게재됐|발표됐]
연구진은 {years} 동안 [실험을 거듭했|같은 문제에 매달렸]
기존 방식보다 효율이 {gain} [높은 것으로 나타났|뛰었]
[실험에서|시험 결과] 성능이 기존보다 {gain} [높아졌|좋아졌]
[연구비는|연구에 든 비용은] [정부와 지역 기업이 함께|국가 연구 사업에서|졸업생이 세운 재단에서] 지원했
연구진은 [내년부터|이르면 올해 안에] [현장 실험에 들어갈|기업에 기술을 넘길] [계획|방침]
[다만|그러나] 상용화까지는 [안전성 검증이|대량 생산 기술이] [남아 있|더 필요한 상황]
# quote: {person} {title}/공동 연구자
실패한 실험 기록이 오히려 실마리가 됐다
학생 연구원들이 밤을 새운 덕분이다
비용을 절반 이하로 낮추는 것이 다음 목표다
현장에서 바로 쓸 수 있는 기술을 만들겠다
이 분야를 처음 시작할 때는 아무도 믿어 주지 않았다
""")
OUTAGE = blocks("""
# headline
{org} 서비스 {hours} 먹통…{users} [불편|발 묶여]
{org}, {cause:으로} {hours} 접속 장애
“왜 안 되나” {org} 장애에 신고 {reports}
# lead
{org}의 서비스가 {day} {time}부터 {hours} 동안 [멈춰|중단돼] 이용자들이 [불편을 겪었|큰 혼란을 겪었]
{day} {time}쯤 {org} [서비스에|누리집과 앱에] 접속 장애가 [발생했|일어났]
{org} 이용자 {users}이 {day} [갑작스러운 서비스 중단으로|접속 장애로] 불편을 [겪었|호소했]
# fact
[회사는|조사 결과] 원인[을|은] {cause:으로} [파악됐|알려졌]
장애는 {hours} 만에 [복구됐|해소됐]
[불편을 겪은|피해를 본] 이용자는 {users:으로} [추산됐|집계됐]
고객 센터에는 신고 {reports:이} [접수됐|몰렸]
회사는 [이용 요금을 감면하는|피해 접수 창구를 마련하는] 등 보상안을 [내놓기로 했|검토하고 있]
[같은 장애는|비슷한 사고는] 올해 들어 [두 번째|세 번째|처음]
# quote: {org} 관계자/회사 측
백업 장치가 제때 작동하지 않았다
이용자께 진심으로 사과드린다
같은 일이 되풀이되지 않도록 점검 절차를 바꾸겠다
# quote: 이용자 김 모 씨/자영업자 문 모 씨/직장인 이 모 씨
약속 시간에 늦어 하루가 엉망이 됐다
결제가 되지 않아 줄을 선 손님을 돌려보냈다
안내 문자가 두 시간 뒤에야 왔다
""")
AI_SERVICE = blocks("""
# headline
{org}, {use}에 인공지능 [도입|쓴다]…정확도 {accuracy}
인공지능이 {use} 맡는다…{org} {months} 시범 운영
{org} “{use} 시간 {saved} 줄였다”
# lead
{org:이} {use}에 인공지능을 [도입했|쓰기 시작했]다고 {day} 밝혔
{org:은} {day}부터 {use} 업무에 인공지능 체계를 [시범 도입했|적용했]
사람이 하던 {use} 업무를 인공지능이 [돕기 시작했|나눠 맡게 됐]
# fact
{months}의 시험에서 정확도는 {accuracy:으로} [나타났|측정됐]
[처리 시간은|업무에 드는 시간은] {saved} [줄어들었|짧아졌]
[시범 운영은|시험은] {months} 동안 [이어졌|진행됐]
[최종 판단은|마지막 결정은] [담당 직원이|사람이] [내리도록 했|맡고 있]
개인 정보는 [외부로 나가지 않도록 설계됐|이름을 지운 뒤 다루고 있]
[내년에는|하반기에는] 다른 [부서로도|지역으로도] 넓힐 [계획|방침]
# quote: {org} 관계자/담당 부서장/한 실무자
직원들이 반복되는 일에서 벗어나게 됐다
틀린 답을 걸러 내는 절차를 먼저 만들었다
기계가 사람을 대신하는 것이 아니라 곁에서 돕는 것이다
처음에는 걱정했지만 이제 없으면 불편하다
""")
SKY = blocks("""
# headline
{org}, {sky} 관측 [성공|포착]
{sky} [찾았다|나타났다]…{org} {nights} 관측 끝 성과
“숨이 멎는 줄”…{org} {sky} 포착
# lead
{org:이} {sky:을} [관측했|포착했]다고 {day} 발표했
{sky:이} {city} 하늘에서 [관측됐|포착됐]
{org} {person} {title:은} {day} [기자회견을 열고|설명회에서] {sky:을} [찾아냈|확인했]다고 밝혔
# fact
연구진은 {nights} 동안 [망원경을 돌렸|같은 하늘을 살폈]
[관측에는|이번 발견에는] [구경 1.8m|새로 들인] 망원경이 [쓰였|사용됐]
[시민 관측가들도|지역 고등학생들도] 자료를 [보태며 힘을 모았|함께 분석했]
[맑은 날이 이어진|구름이 걷힌] 덕분에 [선명한 사진을 얻었|자료의 질이 높았]
[관측 자료는|사진은] [누리집을 통해 |]누구나 내려받을 수 있
# quote: {person} {title}/{org} 관계자
화면을 보고 한동안 말을 잇지 못했다
우주의 나이를 재는 새 잣대가 될 수 있다
이 빛은 아주 먼 옛날에 출발한 것이다
다음 관측 때는 시민을 초대하겠다
""")
EARNINGS = blocks("""
# headline
{org} {season} 매출 {sales}…{change} {growth}
{org}, {season} 영업이익 {profit}
{org} {season} 실적 {change} {growth}[에 시장 들썩|…전망은 엇갈려]
# lead
{org:이} {season} 매출 {sales:을} [올렸|기록했]다고 {day} [공시했|밝혔]
{org}의 {season} 매출이 {sales:으로} 1년 전보다 {change} {grew}
{day} {org:은} {season} 영업이익이 {profit:으로} [집계됐|잠정 집계됐]다고 [공시했|발표했]
# fact
매출은 지난해 같은 기간보다 {change} {grew}
영업이익은 {profit:이었}
[매출은|분기 매출은] {sales:으로} [집계됐|나타났]
[해외 매출이|온라인 판매가] 전체의 [3분의 1을|절반 가까이를|20%를] [차지했|넘어섰]
회사는 주당 [150원|300원|450원]의 배당을 [결정했|지급하기로 했]
[증권가에서는|시장에서는] [하반기 실적을 좌우할 변수로|앞으로의 관건으로] [환율과 원자재값이|신제품 성적이] [꼽히고 있|거론됐]
# quote: {org} 관계자/회사 관계자/{org}의 한 임원
비용을 줄이기보다 제품을 다듬는 데 집중했다
원자재값이 안정되면 사정이 나아질 것으로 본다
새로운 시장에서 거둔 성과가 반영됐다
하반기에는 투자를 더 늘리겠다
""")
PLANT = blocks("""
# headline
{org}, {city}에 {amount} 들여 {plant} [짓는다|건설]
{city}에 {plant} 들어선다…일자리 {jobs} [기대|창출]
{org} {plant} [첫 삽|착공]…{done} 완공
# lead
{org:이} {city}에 {amount:을} 들여 {plant:을} 짓기로 [했|결정했]
{city:과} {org:은} {day} {plant} 건설을 위한 [업무 협약을|투자 협약을] [맺었|체결했]
{org:은} {day} {city}에서 {plant} [착공식을 열었|공사를 시작했]
# fact
[투자 금액은|총사업비는] {amount}
[들어설 터는|부지 면적은] {area}
{done}까지 공사를 마[칠 계획|치는 것이 목표]
[완공되면|가동이 시작되면] 일자리 {jobs}[ 안팎이 생길 것으로 기대를 모았|분이 생길 것으로 전망됐]
지자체는 [도로와 상수도를 먼저 놓아 주기로 했|진입 도로를 넓히기로 약속했]
[일부 주민은|환경 단체는] 소음과 먼지를 [걱정하고 있|우려했]
# quote: {org} 관계자/회사 대표
지역 청년이 고향을 떠나지 않아도 되는 일터를 만들겠다
주민과 한 약속을 지키는 것이 먼저다
지난 10년 사이 가장 큰 투자다
# quote: {city} 관계자
지역 청년이 고향을 떠나지 않아도 되는 일터를 만들겠다
협력 업체도 함께 옮겨 올 것으로 기대한다
지난 10년 사이 가장 큰 투자다
""")
MERGER = blocks("""
# headline
{org}, {org2} [품는다|인수]…{amount}에 지분 {share}
{org}·{org2} 한솥밥…{amount} 규모 인수
{org}, {org2} 인수 [본계약 체결|마무리]
# lead
{org:이} {org2:을} {amount}에 인수[한다|하기로 했다]고 {day} 밝혔
{org:은} {day} 이사회를 열고 {org2} 지분 {share:을} [사들이기로|인수하기로] [했|의결했]
{org2:이} {org}의 [품에 안기게 됐|계열사가 됐]
# fact
인수 금액은 {amount}
[사들이는|확보하는] 지분은 {share}
{org2} 직원의 고용은 [그대로 이어 가기로 했|3년 동안 보장하기로 했]
[두 회사의 결합은|인수는] 당국의 심사를 [거쳐야 하는 상황|남겨 두고 있]
[두 회사는|양사는] [유통망을|연구 시설을] [함께 쓰기로 했|하나로 합칠 방침]
{org2:은} 인수 뒤에도 [이름과 상표를 유지하기로 했|독립해서 운영될 예정]
# quote: {org} 관계자/{org}의 한 임원
서로 부족한 점을 채워 줄 수 있는 짝을 만났다
규모보다 기술을 보고 내린 결정이다
직원들의 불안이 없도록 소통하겠다
두 회사의 문화가 섞이는 데 시간이 걸릴 것이다
""")
PRICE = blocks("""
# headline
{city} {goods}값 {change} {direction}…{cause}
장바구니 물가 [비상|한숨]…{goods} {change} {direction}
{goods} 가격 {change} [껑충|출렁]…상인·소비자 엇갈린 표정
# lead
{goods} 가격이 {cause} 한 달 새 {change} {rose}
{city} [전통 시장에서|도매 시장에서] {goods} 가격이 {change} {risen} 것으로 {day} [조사됐|나타났]
{day} {city}에 따르면 지난달 {goods} 소매가격은 {cause} {change} {rose}
# fact
[상승과 하락의|이번 변동의] 원인으로는 [날씨와 물류비가|공급과 수요의 엇박자가] [꼽혔|지목됐]
{city} 시장의 {goods} 가격은 {change} {rose}
[이런 흐름은|{rise}는] [다음 달까지|당분간] [이어질 것으로 전망됐|계속될 것으로 보였]
당국은 [물가 점검반을 운영하기로 했|가격 안정 대책을 내놓을 예정]
[식당들은|음식점 주인들은] [차림표 가격을 두고|재료비 계산에] [고민에 빠졌|분주해졌]
# quote: 시장 상인 김 모 씨/채소 가게 주인 박 모 씨
지난달과 값이 너무 달라 손님에게 설명하기 어렵다
값이 널뛰면 농가도 소비자도 힘들다
# quote: 주부 윤 모 씨/장을 보던 정 모 씨
필요한 만큼만 조금씩 사게 된다
가격표를 보고 몇 번이나 내려놓았다
# quote: 농업 담당자/도매상 노 모 씨
산지 사정이 나아지려면 한 달은 걸린다
값이 널뛰면 농가도 소비자도 힘들다
""")
EXPORT = blocks("""
# headline
{org}, {country}에 {amount} 수출 계약
{org} {region} [시장 뚫었다|진출]…{country:과} {amount} 계약
{country} 향하는 {org}…{years} 동안 {amount}
# lead
{org:이} {country:과} {amount} 규모의 수출 계약을 [맺었|체결했]다고 {day} 밝혔
{org:은} {day} {country} 수도 {capital}에서 {amount} 규모의 공급 계약을 [맺었|체결했]
{city}의 {org:이} {region} 시장에 [발을 들였|진출했]
# fact
계약 금액은 {amount}[이며|이고] 기간은 {years}
{country:은} {region}에 있[는 나라로|으며] 수도는 {capital}
[첫 물량은|초도 물량은] [다음 달|석 달 뒤] [배편으로|항공편으로] [나갈 예정|보내기로 했]
[이번 계약은|계약은] [1년 넘는 협상 끝에|현지 전시회를 계기로] [이뤄졌|성사됐]
[회사는|앞으로] 현지에 [사무소를|서비스 센터를] [열기로 했|둘 방침]
# quote: {org} 관계자/회사 관계자/{org}의 한 임원
현지 입맛과 규격에 맞추려고 여러 번 시제품을 만들었다
값보다 품질로 인정받은 결과다
이웃 나라로도 판로를 넓히겠다
납기를 지켜 믿음을 쌓겠다
""")
KIND_TEMPLATES = {
    "launch": LAUNCH, "research": RESEARCH, "outage": OUTAGE, "ai_service": AI_SERVICE, "sky": SKY,
    "earnings": EARNINGS, "plant": PLANT, "merger": MERGER, "price": PRICE, "export": EXPORT,
}  # fmt: skip
