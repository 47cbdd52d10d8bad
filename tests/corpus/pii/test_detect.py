"""What is found and left alone, in texts and in sentences of a document, and check digits; all values are invented."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.pii.detect import Span, find_pii, find_pii_in_sentences
from corpus.pii.formats.account_brn_card import business_check_digit, luhn_check_digit
from corpus.pii.formats.rrn_frn import resident_check_digit
from corpus.pii.formats.shapes import is_birth_date, looks_typed
from corpus.pii.formats.table import BY_NAME, TABLE
from corpus.pii.labels import Labels
from corpus.pii.types import OTHER, PII_TYPES

# the value is between ⟦ and ⟧; particles are attached to it, as usual in Korean
FOUND = {
    "TEL": """제 폰은 ⟦010-0234-5678⟧이에요
        연락처: ⟦01002345678⟧로 주세요
        사무실 ⟦(02) 123-4567⟧로
        팩스 ⟦033 123 4567⟧입니다
        해외에서는 ⟦+82-10-0234-5678⟧로
        ⟦+82 2 123 4567⟧번
        인터넷전화 ⟦070-0123-4567⟧이
        안심번호 ⟦050712345678⟧은
        상담은 ⟦1511-3456⟧에서
        휴대폰(⟦010.0234.5678⟧)으로
        ⟦064-123-4567⟧~8번""",
    "RRN": """⟦850101-1970123⟧입니다
        주민번호는 ⟦850101 2970123⟧이고
        아이는 ⟦2302283970123⟧으로
        피고인(⟦850101 - 2970123⟧)은""",
    "FRN": """외국인등록번호 ⟦850101-5970123⟧을
        ⟦850101–6970123⟧과""",
    "EMAIL": """자료는 ⟦a.b-c_d@sub.example.com⟧으로
        홍길동⟦hong+1@example.org⟧입니다.
        ⟦HONG@EXAMPLE.NET⟧은""",
    "IP": """서버(⟦29.10.20.30⟧)에서
        ⟦245.1.2.3⟧:8080으로
        ip는 ⟦1.2.3.4⟧이다
        ⟦2e00:1:2::3⟧에서""",
    "MAC": """⟦AA:BB:CC:DD:EE:FF⟧를
        ⟦00-00-5E-00-53-0a⟧로
        ⟦0000.5e00.530a⟧이""",
    "MENTION": """고마워 ⟦@hong_gd⟧님
        인스타그램 ⟦@hong.gd⟧입니다
        구독 ⟦@길동이네_00⟧이
        인스타 ⟦@홍길동⟧입니다
        ⟦@홍길동⟧에게 물었다""",
    "ADDRESS": """어제 ⟦윤슬동 12-3⟧에서
        집은 ⟦서울특별시 강남구 윤슬나루로 123⟧입니다
        ⟦경기 성남시 분당구 윤슬로12번길 3, 101동 202호⟧로
        ⟦(06123) 부산광역시 해운대구 윤슬동 12-3⟧에
        ⟦강원특별자치도 평창군 윤슬면 나루리 산 12-3⟧ 일대
        ⟦세종특별자치시 윤슬대로 7 (나루동, 윤슬빌딩 3층)⟧이다
        ⟦서울 종로구 종로5가 12-3⟧에서""",
    "ACCOUNT": """신한은행 ⟦1101234567⟧로
        신한은행 ⟦123-45-67890⟧로
        ⟦110-123-123456⟧ 신한
        ⟦110-123-123456⟧ 하나로
        국민 ⟦123456-01-123456⟧으로
        계좌번호: 하나은행 ⟦619-042528-70307⟧
        ⟦110-123-123456⟧으로 입금
        카카오뱅크 ⟦3333-01-1234567⟧로
        신한 ⟦110123456789⟧로""",
    "PASSPORT": """여권번호 ⟦M123A4567⟧로
        예전 여권 ⟦m12345678⟧은
        관용 여권 ⟦G12345678⟧이""",
    "DRIVER": """면허 ⟦11-05-123456-12⟧를
        면허증 번호 ⟦110512345612⟧를
        구 면허증 ⟦서울 95-123456-83⟧으로""",
    "BRN": """세금계산서는 ⟦999-99-99997⟧으로
        사업자번호: ⟦9999999997⟧""",
    "HEALTH": """건강보험증 ⟦1-0123456789⟧를
        보험증번호 ⟦10123456789⟧이""",
    "CARD": """카드 ⟦9999-9999-9999-9995⟧로
        법인카드 ⟦9999999999999995⟧인데
        환불은 ⟦3782 822463 10005⟧ 카드로""",
    "PLATE": """흰색 ⟦66너0051⟧가
        차량 ⟦12 가 0034⟧를
        택시 ⟦서울30자0080⟧이
        오토바이(⟦경기수원가0070⟧)가""",
    "URL": """⟦https://news.example.org/a/b.php?id=1&p=2⟧를
        (⟦http://example.org/~hong/index.html⟧)
        ⟦www.example.com⟧에서
        누리집(⟦shop.example.com⟧)을
        ⟦https://example.com/a_(b)⟧.""",
}
CASES = [(name, line.strip()) for name, lines in FOUND.items() for line in lines.split("\n")]

NOTHING = """봉사활동 12-3에서
    110-123-123456  신한
    110-123-123456 우리요
    임진왜란은 1592-1598년에 일어났다
    이순신(1545-1598)은 조선의 장군이다
    1588-1598년 사이, 1800-1850년 무렵
    예산은 12조 3456억 원이다
    30대 1000명과 30주 2000명
    100도 1000시간, 12가지 1000개
    운송장번호 1112-3456-7890
    송장번호 111234567890
    주문번호 1234567891입니다
    법인등록번호 110111-1234567
    특허 제10-2019-0123456호
    ISBN 979-11-0000-123-4, 9788912345678
    시리얼 번호 1234-5678-9012-3456
    202403151230에 저장했다
    버전 29.10.20.30을 설치
    29.10.20.30 버전
    공유기 192.168.0.1, 10.0.0.1, 127.0.0.1
    1.2.3.4 편과 0.0.0.0
    @Override 애너테이션과 @property
    @babel/core 패키지, SELECT @@version
    3개@500원
    서울특별시 강남구에 50만 명
    강남구 12곳, 서울 중구 명동 2만 명
    서울 종로구 종로5가에서 만났다
    당시에봤다면 7점, 다시 새로 3개
    node.js와 ASP.NET, M.net 방송
    123-45-67890은 검증 숫자가 틀리다
    960303-9021413, 001332-1234567
    M1234567과 MM123A4567, M16 소총
    3.14159265358979
    대법원 선고 96도2753 판결(90누8503)
    [그림|1234567891.jpg|2075082103.png]
    @ECHO OFF, \\@StartDate, @CubeLength 변수
    2001:db00::/32 대역
    a1b2c3d4e5f60718293a4b5c6d7e8f90
    550e8400-e29b-41d4-a716-446655440000
    01-02-03-04-05-06"""


def test_the_table_has_the_sixteen_types_in_the_papers_order() -> None:
    assert len(PII_TYPES) == 16
    assert tuple(kind.name for kind in TABLE) == PII_TYPES


@pytest.mark.parametrize(("name", "marked"), CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CASES)])
def test_a_value_is_found_without_its_particle(name: str, marked: str) -> None:
    before, _, rest = marked.partition("⟦")
    value, _, after = rest.partition("⟧")
    assert find_pii(before + value + after) == [Span(len(before), len(before) + len(value), name)]


@pytest.mark.parametrize("line", [line.strip() for line in NOTHING.split("\n")])
def test_numbers_that_only_look_personal_are_left_alone(line: str) -> None:
    assert find_pii(line) == []


@pytest.mark.parametrize("kind", TABLE, ids=lambda kind: kind.name)
def test_the_example_of_a_row_is_found_next_to_its_label(kind) -> None:
    label = kind.context[0]
    end = len(label) + 1 + len(kind.example)
    assert find_pii(f"{label} {kind.example}") == [Span(len(label) + 1, end, kind.name)]


CONFIDENCE = {
    "건강보험증 번호 23456789012": 0.6,  # only with a label
    "8503141234567": 0.5,
    "M12345678": 0.65,
    "여권번호 M12345678": 0.85,
    "010-0234-5678": 0.8,
    "연락처 010-0234-5678": 1.0,
    "사업자번호: 9999999997": 0.8,  # weak, with a label and a check digit
    "999-99-99997": 0.9,
    "+82-10-0234-5678": 0.9,
    "9999-9999-9999-9995": 1.0,
    "hong@example.com": 0.95,
    "https://example.com": 0.95,
    "메일 hong@example.com": 1.0,
}


@pytest.mark.parametrize("text", CONFIDENCE)
def test_confidence_grows_with_strength_label_and_check_digit(text: str) -> None:
    assert [span.score for span in find_pii(text)] == [CONFIDENCE[text]]


def test_the_nearest_label_decides_between_types() -> None:
    account, phone = "110-123-123456", "010-0234-5678"
    text = f"국민은행 {account}, 연락처 {phone}, 여권 M12345678"
    assert [(text[s.start : s.end], s.type) for s in find_pii(text)] == [
        (account, "ACCOUNT"),
        (phone, "TEL"),
        ("M12345678", "PASSPORT"),
    ]
    assert [span.type for span in find_pii("면허번호 110512345612")] == ["DRIVER"]
    assert [span.type for span in find_pii("신한은행 110512345612")] == ["ACCOUNT"]


def test_labels_see_past_words_for_nobodys_numbers_that_are_too_far() -> None:
    labels = Labels([BY_NAME["TEL"]])
    near, far = "접수번호: 12345678", "접수번호 문의는 저희 전화 12345678"
    assert labels.nearest(near, near.index("1"), len(near)) == OTHER
    assert labels.nearest(far, far.index("1"), len(far)) == "TEL"


@given(st.text(alphabet="0123456789-. @:/()가로동서울 강남구은행AaFfMm_\n", max_size=200))
def test_spans_are_sorted_and_never_overlap(text: str) -> None:
    spans = find_pii(text)
    assert all(0 <= span.start < span.end <= len(text) and span.type in PII_TYPES for span in spans)
    assert all(left.end <= right.start for left, right in pairwise(spans))


# --- sentences: labels reach over their ends, values do not


def values(sentences: list[str]) -> list[tuple[str, str]]:
    found = find_pii_in_sentences(sentences)
    return [(s[span.start : span.end], span.type) for s, spans in zip(sentences, found, strict=True) for span in spans]


def test_label_in_the_sentence_before_announces_a_value() -> None:
    assert values(["건강보험증 번호를 불러 주세요.", "23456789012예요."]) == [("23456789012", "HEALTH")]
    assert find_pii("23456789012예요.") == []


def test_value_does_not_reach_into_the_next_sentence() -> None:
    assert values(["연락처는 02-123", "4567 다음은 010-0123-4567"]) == [("010-0123-4567", "TEL")]


def test_a_value_is_reported_in_each_sentence_that_has_a_part_of_it() -> None:
    found = find_pii_in_sentences(["전화 010", "0234", "5678로", "끝"], joint=" ")
    assert found == [[Span(3, 6, "TEL")], [Span(0, 4, "TEL")], [Span(0, 4, "TEL")], []]


def test_sentences_without_personal_data_give_nothing() -> None:
    assert find_pii_in_sentences(["오늘은 맑다.", "내일은 비가 온다."]) == [[], []]
    assert find_pii_in_sentences([]) == []


@given(st.lists(st.sampled_from(["문의 010-0123-4567", "a@example.com으로", "표 12장.", "주소는", ""]), max_size=6))
def test_spans_stay_inside_their_sentence(sentences: list[str]) -> None:
    for sentence, spans in zip(sentences, find_pii_in_sentences(sentences), strict=True):
        assert all(isinstance(span, Span) and 0 <= span.start < span.end <= len(sentence) for span in spans)


# --- check digits, against published example numbers


@pytest.mark.parametrize("number", ["4111111111111111", "378282246310005", "79927398713"])
def test_luhn_agrees_with_published_test_cards(number: str) -> None:
    assert luhn_check_digit(number[:-1]) == int(number[-1])


@pytest.mark.parametrize("number", ["1048656659", "1048213138", "1234567891"])
def test_business_numbers_that_are_known_to_be_right(number: str) -> None:
    assert business_check_digit(number[:-1]) == int(number[-1])


@pytest.mark.parametrize(("number", "base"), [("6004082764759", 11), ("9111245678906", 13)])
def test_old_registration_numbers_that_are_known_to_be_right(number: str, base: int) -> None:
    assert resident_check_digit(number[:-1], base) == int(number[-1])


def test_birth_dates_follow_the_calendar_of_their_century() -> None:
    assert is_birth_date("000229", "3")  # 2000 was a leap year, 1900 was not
    assert not is_birth_date("000229", "1")
    assert not is_birth_date("850431", "1")
    assert not is_birth_date("851301", "1")


@pytest.mark.parametrize(
    "digits", ["112233445555", "4455665544332", "1234543210", "9876543210", "8901234567", "1010101010"]
)
def test_neighboring_digits_of_the_keyboard_look_typed(digits: str) -> None:
    assert looks_typed(digits)


@pytest.mark.parametrize(("digits", "is_typed"), [("1246900", True), ("1246090", False), ("124690", True)])
def test_rising_digits_before_zeros_look_typed(digits: str, is_typed: bool) -> None:
    assert looks_typed(digits) is is_typed


@pytest.mark.parametrize("step", [2, 3, 4, 6, 7, 8])
def test_digits_two_or_more_apart_do_not_look_typed(step: int) -> None:
    assert not looks_typed("".join(str(step * n % 10) for n in range(10)))


@pytest.mark.parametrize(("digits", "is_typed"), [("4741741", True), ("4741742", False), ("3820176", False)])
def test_three_different_digits_look_typed_and_four_do_not(digits: str, is_typed: bool) -> None:
    assert looks_typed(digits) is is_typed


@pytest.mark.parametrize("first", [2100, 2101])
@pytest.mark.parametrize("last", [1499, 1500, 2100, 2101])
def test_two_years_are_no_local_number(first: int, last: int) -> None:
    found = [span.type for span in find_pii(f"전화 {first}-{last}")]
    assert found == ([] if first == 2100 and last in (1500, 2100) else ["TEL"])
