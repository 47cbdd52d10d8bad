"""Values and look-alikes as web pages, news, shops, logs and code write them, found by testers from outside."""

from __future__ import annotations

import re

import pytest

from corpus.pii.detect import find_pii
from corpus.pii.replace import Pseudonymizer

VALUES = """
    TEL "telephone":"⟦+8221342211⟧"
    TEL <a href="tel:⟦+82311342211⟧">
    TEL ⟦+82(2)134-2211⟧
    TEL receiver=⟦821001349911⟧
    TEL 전화 ⟦821001349911⟧
    TEL 민원실 : ⟦02-134-2211⟧-3
    TEL 퀵서비스 ⟦1511-1511⟧
    TEL 전화 ⟦134-2211⟧
    TEL 수신자 부담 ⟦0800345566⟧
    ADDRESS ⟦서울 강동구 고덕동 고덕윤슬리움 101동 1203호⟧
    ADDRESS ⟦서울 강남구 도곡동 여우비팰리스 A동 3201호⟧
    ADDRESS ⟦대구 달서구 월성1동 e여울세상 104동 1203호⟧
    MENTION 텔레그램 문의 ⟦@abcdefg⟧
    MENTION 출처 ⟦@goodman⟧
    MENTION 담당: ⟦@minsu⟧
    RRN 주민번호 ⟦240305-1234567⟧
    DRIVER 면허 ⟦112012345678⟧
    PASSPORT 여권 ⟦M20230512⟧
    TEL 이름,전화↵가온,⟦134-2211⟧
    TEL | 이름 | 전화 |↵|---|---|↵| 가온 | ⟦134-2211⟧ |
    TEL <th>전화</th>↵<td>⟦134-2211⟧</td>
    TEL 문의: 총무과 ⟦1133-1234⟧
    TEL 문의처: 시청 주택과(⟦1133-7654⟧)
    TEL 팩스는 ⟦134-2213⟧
    TEL 폰: ⟦1482-9911⟧
    TEL Cell⟦010-0482-9911⟧
    TEL ⟦0100-482-9911⟧
    TEL ⟦010-04-82-99-11⟧
    TEL 총무과 ⟦134-2218⟧ 로
    TEL 전화 ⟦134-2211⟧ 개인 상담
    TEL 문의 ⟦1511-1512⟧ 원하시는 분
    TEL ⟦1511-1511⟧ 통화 가능
    TEL 문의: 맑은물사업소 ⟦149-4418⟧
    ADDRESS 저는 ⟦103동 604호⟧ 살아요
    ADDRESS 안녕하세요 ⟦106동 1402호⟧입니다
    ADDRESS ⟦역삼1동 824-31⟧ 앞
    ADDRESS ⟦성수동2가 299-55⟧
    URL ⟦www.여울가게.kr⟧
    MENTION ⟦@dohyun⟧아 이거 봐
    MENTION ⟦@jisoo⟧ 언니 사진
    TEL ⟦01 0-0482-9911⟧
    ADDRESS ⟦헬리오윤슬 101동 1203호⟧ 거주
    ADDRESS ⟦e편한여울 101동 1203호⟧
    ADDRESS ⟦대치동 윤슬아파트 12-1203⟧
    ADDRESS ⟦더샵 101-1203⟧
    ADDRESS ⟦경기도 수원특례시 팔달구 윤슬로 1⟧
    ADDRESS ⟦대전 동구 4·19로 12⟧
    ADDRESS ⟦전남 구례군 구례읍 5일시장작은길 20⟧
    ADDRESS ⟦서울 강남구 역삼동 12⟧이에요
    EMAIL ⟦kong1985 골뱅이 네이버 닷컴⟧
    EMAIL ⟦kong1985골뱅이지메일닷컴⟧
    EMAIL ⟦kong1985@네이버⟧ 로
    EMAIL ⟦kong1985@naver⟧
    EMAIL GET /join?mail=⟦kong85%40example.com⟧&hp=1
    EMAIL ⟦kong1985(a)example.com⟧
    EMAIL ⟦kong@example.com⟧01012345
    URL ⟦https://example.com/?mail=kong%40example.com⟧
    URL ⟦https://example.com/wiki/사과_(과일)⟧ 참고
    URL ⟦https://example.com/search/여울%20맛집⟧ 참고
    URL ⟦여울가게.com⟧ 방문
    URL 홈페이지: ⟦EXAMPLE.CO.KR⟧
    URL ⟦wss://chat.example.com/room⟧
    MENTION 글·사진 ⟦@goodman⟧
    MENTION ig ⟦@goodman⟧
    MENTION 인스타 = ⟦@good_user_id⟧
    IP ip-⟦240.134.22.91⟧
    MAC "macAddress": "⟦00005E005301⟧"
    ACCOUNT a/c: ⟦110-234-567890⟧
    BRN 고유번호 ⟦999-82-12345⟧
    RRN 주민번호 ⟦850314--1234567⟧
    PLATE ⟦서울 12가 0056⟧
"""
NOTHING = """
    하루 1800~2400 kcal 섭취
    출력 1600~3200 와트
    messagingSenderId: "173286603007"
    arn:aws:iam::182939472839:role/x
    예산 총액은 123894561237원
    "createdAt": 1701234567890
    /js/app.js?v=1701234567890
    발주번호 240305-1234567
    주문 번호: 240305-1234567
    S/N 240305-1000123
    서울 강남구 역삼동 2호점 오픈
    용산구 한남동 3구역 재개발
    제주시 애월읍 300여 가구 정전
    경기 화성시 봉담읍 1234가구 분양
    서울 강남구 테헤란로 4중 추돌
    서울 서초구 서초동 7급 공무원
    대구 수성구 범어동 3선거구
    헝가리 2-1 그리스
    스토리 1-2 공략
    라이브러리 3-1
    @Slf4j 로그
    @login_required 뷰
    "@type": "Person"
    회의 @3pm
    FHD @144Hz 모니터
    점심 @안국역
    사번 S20191234
    문서 D20240101
    운영시간 1800-2200
    ISBN 0306406152
    이진수 01011010101
    p=0.02 1234 5678
    images/2023/02/123/4567.jpg
    제02-2023-1234호
    버전 0.10.3482.9911
    서울 강남구 대치동 3040 학부모
    서울 중구 명동 2023 축제
    대구 북구 칠성동 2지구
    서울 강남구 역삼동 8학군
    서울 강남구 역삼동 119안전센터
    서울 서초구 반포동 59제곱미터
    강남구 역삼동 2+1
    이탈리아 칼라브리 2-1
    기숙사 906동 203호 점호
    센트럴파크 2020-2021 시즌
    펌웨어 12.34.56.78
    23.12.25.15시
    11.12.13.14절
    대법원 04다1234 판결
    서울 1호 2023
    경기 성남 고 2012
    JAN 4901301236111
    관리코드 S12345678
    은행나무 2023-1234-5678
    WHERE id = @user_id
    SET @row_num = 0
    @font_size: 12px
    @functools.lru_cache
    점심 @성수동
    꼬리 재귀로 바꿉니다↵@tailrec fun sum(
    FETCH NEXT FROM cur INTO @no, @title, @writer
    @bot.event 로 받는다
    쇠고기미역국(5.6.13.16)
    Mozilla/5.0 Whale/3.25.232.19 Safari
    상계동 3·7단지
    장항동 500미터 구간
    대치동 2023-2024 입시
    서울 강남대로 10-12시
    항아리 10-12개
    주소지로 2~3일 내 발송
    아파트 250-300가구
    서울 강서구 0417 정모
    전화 500-1000통
    신고번호 033-2019-0447
    java.io 패키지
    this.app = app
    lang.kr = '한국어'
    4.@Builder.Default는
"""


def lines(table: str) -> list[str]:
    return [line.strip() for line in table.strip().split("\n")]


@pytest.mark.parametrize("line", lines(VALUES))
def test_values_are_found(line: str) -> None:
    kind, _, marked = line.partition(" ")
    before, value, after = marked.replace("↵", "\n").replace("⟧", "⟦").split("⟦")
    found = [(span.start, span.end, span.type) for span in find_pii(before + value + after)]
    assert found == [(len(before), len(before) + len(value), kind)]


@pytest.mark.parametrize("line", lines(NOTHING))
def test_look_alikes_are_left_alone(line: str) -> None:
    assert find_pii(line.replace("↵", "\n")) == []


@pytest.mark.parametrize("value", ["+82 51-123-4567", "+82 2-734-2211", "010 -1234 - 5678", "850314 - 1234567"])
def test_a_replacement_keeps_spaces_and_signs(value: str) -> None:
    [span] = find_pii(value)
    fake = Pseudonymizer(b"secret", "document").replacement(span.type, value) or ""
    assert re.sub("[0-9]", "0", fake) == re.sub("[0-9]", "0", value)


def test_the_replacement_of_a_lot_without_a_region_is_found_again() -> None:
    fakes = [Pseudonymizer(b"secret", f"{n}").replacement("ADDRESS", "서교동 447-9") or "" for n in range(50)]
    assert all([span.type for span in find_pii(f"{fake}에 새로 생긴 서점")] == ["ADDRESS"] for fake in fakes)
