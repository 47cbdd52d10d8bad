"""Values and look-alikes as web pages, news, shops, logs and code write them, found by testers from outside."""

from __future__ import annotations

import pytest

from corpus.pii.detect import find_pii

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
"""


def lines(table: str) -> list[str]:
    return [line.strip() for line in table.strip().split("\n")]


@pytest.mark.parametrize("line", lines(VALUES))
def test_values_are_found(line: str) -> None:
    kind, _, marked = line.partition(" ")
    before, value, after = marked.replace("⟧", "⟦").split("⟦")
    found = [(span.start, span.end, span.type) for span in find_pii(before + value + after)]
    assert found == [(len(before), len(before) + len(value), kind)]


@pytest.mark.parametrize("line", lines(NOTHING))
def test_look_alikes_are_left_alone(line: str) -> None:
    assert find_pii(line) == []
