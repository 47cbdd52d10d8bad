"""Evidence is weighed: no word next to a value with a telling format hides it."""

from __future__ import annotations

import pytest

from corpus.pii.detect import find_pii
from tests.corpus.pii.marked_texts import unmark

MARKED = """
원서 접수 ⟦TEL:010-8879-6145⟧
접수처: ⟦RRN:870523-1234561⟧
고소장을 접수한 이모씨(⟦RRN:870523-1234561⟧)
사고가 접수되어 ⟦TEL:010-8879-6145⟧로
피팅모델 ⟦TEL:010-8879-6145⟧
게시물에 ⟦TEL:010-8879-6145⟧ 이 그대로
특허법인 다온 ⟦TEL:02-3278-9145⟧
부품점 ⟦TEL:02-3278-9145⟧
품번 확인은 ⟦TEL:010-8879-6145⟧
운송장번호 ⟦TEL:010-8879-6145⟧
5월 1일에 ⟦TEL:010-8879-6145⟧로 연락
그 사이에 ⟦TEL:010-8879-6145⟧로
이에 ⟦TEL:010-8879-6145⟧
⟦TEL:010-8879-6145⟧이 3번이나
25일에 ⟦CARD:5327-5012-3456-7891⟧
메일로 드릴께요.⟦EMAIL:gildong77@naver.com⟧
메일..⟦EMAIL:gildong77@naver.com⟧
메일-⟦EMAIL:gildong77@naver.com⟧
메일—⟦EMAIL:gildong77@naver.com⟧
*⟦EMAIL:gildong77@naver.com⟧
메일+⟦EMAIL:gildong77@naver.com⟧
메일%⟦EMAIL:gildong77@naver.com⟧*
⟦MENTION:@gildong_77⟧(길동)
⟦MENTION:@gildong_77⟧( 이모씨
접속.⟦IP:121.78.45.190⟧에서
버전 확인 ⟦IP:121.78.45.190⟧ 판매
⟦ADDRESS:경기도 고양시 일산서구 주엽로 70, 강선마을 14단지 309동 605호⟧에
⟦ADDRESS:주엽로 70, 강선마을 14단지 309동 605호⟧
주소: ⟦ADDRESS:서울 관악구 신림로 12 신림푸르지오 5단지 1203호⟧
주소: ⟦ADDRESS:서울 강남구 테헤란로 12, 마이타워 오피스텔 708호⟧
주소: ⟦ADDRESS:경기 파주시 탄현면 성동리 187의 12⟧
주소: ⟦ADDRESS:경기 파주시 탄현면 성동리 13번지의 4⟧
주소: ⟦ADDRESS:전북 남원시 산내면 대정리 123번지 3통 2반⟧
주소: ⟦ADDRESS:서울 영등포구 국제금융로 10 Two IFC 22층⟧
⟦ADDRESS:서울 마포구 월드컵북로 12 (04001)⟧
⟦ADDRESS:12, Teheran-ro 5-gil, Gangnam-gu, Seoul⟧
Address: ⟦ADDRESS:302-1204, 45 Gwangnaru-ro 56-gil, Gwangjin-gu, Seoul 05116, Korea⟧
수신자부담 ⟦TEL:0808371697⟧
⟦TEL:011-82-10-8879-6145⟧
①⟦TEL:⓪10-8879-6145⟧
연락 ⟦TEL:⓪①⓪-8879-6145⟧
차 번호가 ⟦PLATE:12가 3428⟧
사업자 ⟦BRN:123.45.67891⟧
⟦BRN:123.45.67891⟧
건강보험증 번호 ⟦HEALTH:1 2345 678901⟧
건강보험증 번호 ⟦HEALTH:1 234 567 8901⟧
MAC ⟦MAC:3c5ab4d71e2f⟧
단말 MAC주소: ⟦MAC:3C5AB4D71E2F⟧
⟦RRN:870523*1234567⟧
Shinhan Bank ⟦ACCOUNT:110-234-567890⟧
제 번호는 ⟦TEL:010에 8879에 6145⟧번이에요
⟦TEL:공삼일에 이칠삼에 오육칠팔⟧로 연락
Health insurance no. ⟦HEALTH:1-2345678901⟧
GitHub ⟦MENTION:@gildong-dev⟧
문의 ⟦MENTION:@gildong-dev⟧
인스타 ⟦MENTION:@gildong_dev⟧ 태그해 주세요
받으시는 번호는 ⟦TEL:공이에 삼이칠팔에 구일사오⟧이고 저녁에 가능해요
전화 ⟦TEL:공이에 삼이칠팔에 구일사오⟧이구요
전화 ⟦TEL:공일공에 팔팔칠구에 육일사이⟧고 저녁에
전화:⟦TEL:O2)3278-9145⟧ 고객용
전화 ⟦TEL:O31-278-9145⟧
⟦TEL:공일공ㅡ8879ㅡ6145⟧
제 번호요, ⟦TEL:010 다음에 8879 그리고 6145⟧입니다
⟦TEL:010이고 뒷자리는 8879-6145⟧예요
앞자리 ⟦RRN:870523 뒷자리 1234561⟧
앞자리는 ⟦RRN:870523이고 뒷자리는 1234561⟧이에요
주민번호 ⟦RRN:870523, 뒤 번호는 1234561⟧
면허 ⟦DRIVER:28에 14에 830472에 05⟧요
차 량 번 호 : ⟦PLATE:5 1 다 3 0 2 7⟧
차량번호 ⟦PLATE:이팔더 삼공육오⟧ 은색
차번 ⟦PLATE:일이가 삼사이팔⟧ 이라고
차량은 ⟦PLATE:27우 34 41⟧ 로 보였어요
예 금 주 계 좌 번 호 ⟦ACCOUNT:110-234-567890⟧
전화 ⟦TEL:010♥8879♥6145⟧
이름,전화1,전화2,전화3⏎길동,⟦TEL:010,8879,6145⟧
번호는 ⟦TEL:공일공, 팔팔칠구, 육일사오⟧ 요
⟦TEL:공 일 공 팔 팔 칠 구 육 일 사 오⟧
전화 ⟦TEL:010 - 88 79 - 6145⟧
⟦TEL:010-8879-614 5⟧ 연락
주민등록번호 ⟦RRN:87 05 23 - 1 234561⟧
주민등록번호: 앞 ⟦RRN:870523 뒤 1234561⟧
⟦RRN:87.05.23-1234561⟧
주민번호 ⟦RRN:870523-l234561⟧
사업자등록번호 ⟦BRN:123 -45- 67891⟧
국민은행 ⟦ACCOUNT:123456 -01 -234567⟧
축협 ⟦ACCOUNT:351-1234-5678-93⟧
증권계좌 ⟦ACCOUNT:12345678-01⟧
출금 200,000원 잔액 1,402,771원 ⟦ACCOUNT:110-234-567890⟧
거래는 국민⟦ACCOUNT:118204-04-427731⟧만 받음
⟦ACCOUNT:110-234-567890⟧ 하나로요
⟦ACCOUNT:1002-345-678901⟧ 우리 홍길동
기업은행 ⟦ACCOUNT:01088796145⟧ 이거 되나요? 평생계좌예요
보험은요? / ⟦HEALTH:2-7083914625⟧
여권번호 ( ⟦PASSPORT:M 6 2 0 8 4 1 7 7⟧ )
여권번호 ⟦PASSPORT:M1234 5678⟧
승합차 ⟦PLATE:74러 1204⟧번이 앞에 대기
⟦ADDRESS:서울 중구 을지로 12⟧, 차량 ⟦PLATE:118호4427⟧
{"plateNo":"⟦PLATE:12가 3456⟧"}
메일은 ⟦EMAIL:hong 골뱅이 example 쩜 com⟧
이메일 ⟦EMAIL:hong@example. com⟧
이메일 ⟦EMAIL:hong@example,com⟧ 으로
홈페이지 ⟦URL:www. example .com⟧
⟦URL:hxxps://evil.example.com/x⟧
⟦URL:t.me/gildong99⟧ 로
⟦MENTION:@gildong-k⟧ 님 리뷰 부탁
⟦ADDRESS:래미안 101동 1203호⟧ 택배요
⟦ADDRESS:서울 노원구 상계동 주공7단지 701동 1203호⟧
옆집 ⟦ADDRESS:솔내음빌라 나동 301호⟧ 에
⟦ADDRESS:Seoul, Gangnam-gu, Teheran-ro 152⟧
우리동네 ⟦ADDRESS:샛별로3길 17⟧ 그 집
"""
NOTHING = """
자산번호 M12345678
241225 1234567
Mail.net 서비스
운송장번호 123-4567-8901
특허 제10-1234567호
접수번호 2024-1234-5678
점수는 100에 2000에 3000에서
Chrome/126.0.0.0 Safari
장비 라벨 M30284417 (프로젝터)
문의번호 #250914-1203847 답변
2024년 100 다음에 2000 그리고 3000
앞줄 240101 뒷줄 1234567
오이가 삼이사오 개
이 자리 100000 뒷면 1000000
@babel-plugin 패키지
3에 12에 2000에
품번 010-2234-5567-A, 색상
모델명 M31204417
자산 M30201234 이동
DEFAULT 1588.0417;
{"ts":1760510417}
아이콘 support@2x.png
주문 1-2025101401 접수
2025-10-14 10:22 - 15 3
"""


@pytest.mark.parametrize("marked", MARKED.strip().split("\n"))
def test_a_telling_value_is_found_next_to_any_word(marked: str) -> None:
    text, spans = unmark(marked.replace("⏎", "\n"))
    assert [(span.start, span.end, span.type) for span in find_pii(text)] == spans


@pytest.mark.parametrize("text", NOTHING.strip().split("\n"))
def test_a_number_that_only_looks_personal_stays(text: str) -> None:
    assert find_pii(text) == []
