"""Names that words announce: what is found and what is left, and precision and recall on the people of KLUE-NER."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.gold import match_spans
from corpus.pii.detect import Span, find_pii
from corpus.pii.extra.person_by_rules import PERSON, fake_name, find_names
from corpus.pii.types import words
from tests.corpus.pii.marked_texts import Found, unmark

MARKED = """
성명: ⟦PERSON:한보람⟧
성 명 : ⟦PERSON:홍 길 동⟧
성명 ⟦PERSON:국하늘⟧, 관계: 모
"이름": "⟦PERSON:나윤슬⟧"
제 이름은 ⟦PERSON:도하람⟧입니다
예금주 ⟦PERSON:마은결⟧(신한)
예금주=⟦PERSON:남궁민⟧
예금주⟨09⟩⟦PERSON:김솔⟧⟨09⟩신한
받는 분: ⟦PERSON:고은비⟧ 귀하
보내는 사람 | ⟦PERSON:표나라⟧ |
수취인 ⟦PERSON:옥지안⟧ 통관부호 P990000000000
담당자 ⟦PERSON:피재하⟧ 과장 / 총무팀
신청인 ⟦PERSON:제갈가람⟧은 다음과 같이 신청합니다
피고인 ⟦PERSON:맹지우⟧를 징역 1년에 처한다
참석: 대표 ⟦PERSON:길서온⟧, ⟦PERSON:변도윤⟧
환자명: ⟦PERSON:천유나⟧ (F/34)
⟦PERSON:엄태리⟧ 씨가 택배를 받아 줬다
⟦PERSON:민준⟧씨는 어제 왔어요
⟦PERSON:도미닉⟧ 씨의 사진
⟦PERSON:이소담⟧씨나오는 장면이 제일 좋았음
⟦PERSON:석다온⟧ 고객님, 주문하신 상품이 나왔습니다
안녕하세요 ⟦PERSON:옥지안⟧님 예약이 확정되었습니다
⟦PERSON:금별아⟧ 귀하께서 신청하신 민원
⟦PERSON:봉선율⟧ 선생님께 감사드립니다
⟦PERSON:김영희⟧·⟦PERSON:박철수⟧ 의원이 발의했다
⟦PERSON:윤새봄⟧ 전 장관은 말했다
이웃 ⟦PERSON:강한별⟧(42)이 다쳤다
⟦PERSON:오가람⟧(52) 씨
배우 ⟦PERSON:이소담⟧이 나온다
성명: ⟦PERSON:HONG GILDONG⟧
Name: ⟦PERSON:Gil-dong Hong⟧
성명 ⟦PERSON:洪吉童⟧
탑승객 (⟦PERSON:KIM/YUNSEUL⟧)
customer_name=⟦PERSON:한다솜⟧&amount=3
""".strip().splitlines()

NOT_NAMES = """
고객님, 사장님, 선생님, 부모님, 어머님, 하느님, 여러분께 알립니다
이용자님과 주무관님, 조국의 국민 여러분
정도 씨를 뿌린다
오늘 날씨, 솜씨 좋은 아저씨, 고운 글씨, 작은 불씨, 말씨
수박 씨는 뱉으세요
해바라기 씨를 심었다
피의자 홍*동 씨와 김○○ 씨, A씨, 이모씨, 김모 씨
성명: 홍○동
성명: 김**
성명, 연락처, 주소
담당자 연락처: 없음
이름 변경 안내
이름: 강아지
원고 마감은 금요일
저자는 도서관에서 썼다
피해자 지원 센터
환자 이송 중
공동성명 발표
공영주차장 이용 안내
사회복지사 선생님
심리학 교수와 경제학 교수
주민은 대통령을 만났다
유명한 배우와 대단한 감독
전화 문의는 고객센터로
남대문 시장에 갔다
경남 고성군에서 증평군까지
이번 대회 우리 군 선수
영화 전문지 씨네21이 뽑았다
이건담씨리즈 전부
product_name: iPhone case
담당자: 010-0000-0000
SEO/SEM 대행, TCP/IP
Name: New Project
""".strip().splitlines()


def names_in(text: str) -> list[Found]:
    return [(*name[:2], "PERSON") for name in find_names(text)]


@pytest.mark.parametrize("block", MARKED)
def test_announced_names_are_found(block: str) -> None:
    text, spans = unmark(block)
    assert names_in(text) == spans


@pytest.mark.parametrize("text", NOT_NAMES)
def test_common_words_and_masked_names_are_left_alone(text: str) -> None:
    assert [text[start:end] for start, end, _ in names_in(text)] == []


LABELS = words(
    """
    성명 성함 본명 실명 고객명 환자명 학생명 회원명 직원명 예금주 예금주명 수취인 수취인명 수령인 입금자명 송금인
    받는분 받는사람 받으실분 보내는분 보낸이 발송인 발신인 송하인 수하인 신청인 신청자 청원인 보호자 계약자 피보험자
    대표자 담당자 작성자 검토자 승인자 결재자 구매자 주문자 예약자 피고인 피고소인 고소인 고발인 참고인 신고인 민원인
    채무자 채권자 임대인 임차인 매도인 매수인 위임인 책임자 세대주 소유자 명의자 변호인 피의자 진정인 청구인 이름
    글쓴이 지은이 담당 원고 피고 환자 피해자 가해자 대표이사 대표 증인 고인 저자
    name full_name recipient Receiver applicant user_name sender_name buyer_name member_name owner_name author_name
    contact_name employee_name holder_name guest_name student_name
    """
)
ROLES = words(
    "배우 여배우 가수 감독 개그맨 개그우먼 방송인 작가 소설가 래퍼 변호사 기자 아나운서 교수 투수 포수 골키퍼 수비수 "
    "공격수 피아니스트 지휘자 남편 부인 아내"
)


@pytest.mark.parametrize("label", LABELS)
def test_every_label_announces_names(label: str) -> None:
    assert names_in(f"{label}: 한보람") == [(len(label) + 2, len(label) + 5, "PERSON")]


@pytest.mark.parametrize("role", ROLES)
def test_roles_announce_the_names_that_follow(role: str) -> None:
    assert names_in(f"{role} 한보람이") == [(len(role) + 1, len(role) + 4, "PERSON")]


@pytest.mark.parametrize(
    ("label", "text"), [("성명", "한보람"), ("customer_name", "한보람"), ("예금주", "KIM Yunseul")]
)
def test_the_name_of_a_column_announces_names(label: str, text: str) -> None:
    assert find_pii(text, ["PERSON"], label) == [Span(0, len(text), "PERSON")]
    assert find_pii(text, ["PERSON"], "비고") == []


VALUES = [
    "한보람", "김솔", "홍 길동", "홍 길 동", "남궁가람", "블라디미르", "HONG GILDONG", "Gil-dong Hong", "KIM/YUNSEUL",
    "John Smith", "洪吉童", "李純",
]  # fmt: skip


@given(st.sampled_from(VALUES), st.integers())
def test_invented_names_are_found_again_and_never_the_same(value: str, seed: int) -> None:
    fake = fake_name(Random(seed), value)
    label = PERSON.context[0]
    assert fake != value
    assert names_in(f"{label} {fake}") == [(len(label) + 1, len(label) + 1 + len(fake), "PERSON")]
    assert fake == fake_name(Random(seed), value)
    if len(value) <= 4 or value.isascii():
        assert re.sub("[^ ,/]+", "", fake) == re.sub("[^ ,/]+", "", value)
    if not value.isascii():
        assert len(fake) == min(len(value), 5 if " " in value else 4)


# --- KLUE-NER

NER = "data/klue/official/klue-ner-v1.1/klue-ner-v1.1_dev.tsv.zst"
_TITLE_AFTER = re.compile(
    r" ?(?:\([^()]{1,12}\) ?)?(?:[전현] )?(?:씨|님|군|양|옹|귀하|여사|선생|작가|감독|배우|기자|대표|이사|사장|회장"
    r"|부회장|과장|부장|팀장"
    "|실장|국장|차장|대리|교수|박사|의원|위원|변호사|판사|검사|경사|경위|장관|차관|총리|대통령|후보|시장|지사|의사"
    "|원장|총장"
    "|선수|코치|아나운서|앵커|PD|대변인|목사|신부|교황|추기경|상병|병장|대위|소장|장군|셰프|국왕|왕자|왕비)"
)
_TITLE_BEFORE = re.compile(
    "(?:배우|가수|감독|개그맨|개그우먼|작가|소설가|시인|방송인|멤버|래퍼|선수|기자|아나운서|교수|의사|변호사|담당자"
    "|피고인|피해자|원고|이름은|이름이|성명|본명) ?[:(]? ?$"
)


def read_people(path: Path) -> Iterator[tuple[str, list[Found]]]:
    """Each sentence with its spans of type PS."""
    with path.open("rb") as packed:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed), "utf-8").read()
    for block in lines.split("\n\n"):
        rows = [row.split("\t") for row in block.split("\n") if row and not row.startswith("##")]
        text, spans = "".join(row[0] for row in rows), []
        for at, (_, tag) in enumerate(rows):
            if tag == "B-PS":
                spans.append([at, at + 1])
            elif tag == "I-PS":
                spans[-1][1] = at + 1
        yield text, [(start, end, "PERSON") for start, end in spans]


def is_within_reach(text: str, span: Found) -> bool:
    """A title or honorific next to it, and more than a surname or a letter (``박씨``, ``A씨``)."""
    start, end, _ = span
    return end - start > 1 and bool(
        _TITLE_AFTER.match(text, end) or _TITLE_BEFORE.search(text, max(0, start - 10), start)
    )


def test_people_of_klue_ner_are_found_where_words_announce_them(shared: Callable[[str], Path]) -> None:
    """Every second sentence was looked at when the rules were written; the bars are for the others."""
    people = list(read_people(shared(NER)))[1::2]
    found = right = true = within = within_right = korean = korean_right = 0
    for text, spans in people:
        predicted = names_in(text)
        matched = match_spans(predicted, spans)
        found, right, true = found + len(predicted), right + len(matched), true + len(spans)
        reach = [span for span in spans if is_within_reach(text, span)]
        three = [span for span in reach if re.fullmatch("[가-힣]{3}", text[span[0] : span[1]])]
        within, within_right = within + len(reach), within_right + sum(span in matched for span in reach)
        korean, korean_right = korean + len(three), korean_right + sum(span in matched for span in three)
    assert len(people) == 2500
    assert true == 2239
    assert right / found >= 0.955, (right, found)
    assert right / true >= 0.125, (right, true)
    assert within_right / within >= 0.71, (within_right, within)
    assert korean_right / korean >= 0.85, (korean_right, korean)


@given(st.lists(st.sampled_from([text for block in MARKED for text in unmark(block)[0].split(" ")]), max_size=30))
def test_names_are_sorted_and_never_overlap(pieces: list[str]) -> None:
    assert all(left[1] <= right[0] for left, right in pairwise(names_in(" ".join(pieces))))


@pytest.mark.parametrize("value", ["一山", "龥山", "金大中"])
def test_hanja_names_stay_in_hanja(value: str) -> None:
    fake = fake_name(Random(1), value)
    assert len(fake) == len(value) and all("一" <= letter <= "龥" for letter in fake)
