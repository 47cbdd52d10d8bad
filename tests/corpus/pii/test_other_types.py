"""Company numbers, handles, customs codes, parcels and memberships: found after their words, and only there."""

from __future__ import annotations

import io
import json
import string
import time
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.gold import score_spans
from corpus.pii.detect import Span, find_pii
from corpus.pii.extra.other_types import EXTRA_TABLE, find_extra, org_check_digit
from corpus.pii.types import EXTRA_TYPES, PII_TYPES
from tests.corpus.pii.marked_texts import FOLDER, Found, read_marked, unmark

BY_NAME = {kind.name: kind for kind in EXTRA_TABLE}

MARKED = """
법인등록번호 ⟦ORG_NUMBER:990011-0417825⟧ 사업자번호 999-99-99997
(주)예시상사 (법인번호: ⟦ORG_NUMBER:994511-0118204⟧)
법인등록번호란에 ⟦ORG_NUMBER:9901110447715⟧ 이라고 돼 있음
법인등록번호=⟦ORG_NUMBER:990111 - 0220417⟧
⟦ORG_NUMBER:990111-0220417⟧ (법인등록번호)
카톡 ID: ⟦HANDLE:mysecretid77⟧
카톡ID : ⟦HANDLE:mango_ssam⟧
인스타 ⟦HANDLE:mysecretid77⟧
카톡아이디는⟦HANDLE:mysecretid77⟧입니다
카카오톡 아이디 ⟦HANDLE:malmoi⟧로 연락 주세요
kakao_id=⟦HANDLE:malmoi.00⟧
텔레그램 ⟦HANDLE:@malmoi_00⟧ / 위챗 ⟦HANDLE:bada2204⟧
디코 ⟦HANDLE:rabbit#0417⟧ 친추
디스코드 닉 ⟦HANDLE:yunseul.dev⟧ 로 초대
라인아이디 ⟦HANDLE:sora-line18⟧ 추가
트위터는 ⟦HANDLE:quiet_pine⟧ 이고
Instagram: ⟦HANDLE:haneul.film⟧
skype ID ⟦HANDLE:live.malmoi⟧
아이디는 ⟦HANDLE:hong_0000⟧이고 비밀번호는
개인통관고유부호 ⟦CUSTOMS:P990000000001⟧ 로 신고
통관번호: ⟦CUSTOMS:P-990000000001⟧
통관부호 ⟦CUSTOMS:p990000000001⟧ 소문자
PCCC: ⟦CUSTOMS:P 9900 0000 0001⟧
customs=⟦CUSTOMS:P990000000001⟧
받는 곳 ⟦CUSTOMS:P990000000001⟧
운송장번호 ⟦COURIER:3000-0000-0009⟧
송장: ⟦COURIER:300000000009⟧ (대한통운)
CJ대한통운 ⟦COURIER:300000000009⟧
한진택배 송장번호 ⟦COURIER:3000 0000 0009⟧로 조회
등기번호 ⟦COURIER:11204-0000-0009⟧
tracking number ⟦COURIER:EE000000001KR⟧
회원번호는 ⟦MEMBERSHIP:2204417⟧ 이고
멤버십번호 ⟦MEMBERSHIP:8810-2204-4177-1826⟧ 적립
마일리지 회원번호 ⟦MEMBERSHIP:BX204417718⟧
도서관 대출증 번호 ⟦MEMBERSHIP:D-2204-4177⟧
회원카드 No. ⟦MEMBERSHIP:G-004177⟧ 양도
고객 ID: ⟦MEMBERSHIP:AB12-3456⟧
학번 ⟦MEMBERSHIP:20990001⟧
군번 ⟦MEMBERSHIP:99-70000001⟧
"customer_id": "⟦MEMBERSHIP:C00012345⟧"
""".strip().splitlines()

LOOKALIKES = """
인스타 릴스 찍는 법
카톡 message 보내기
텔레그램 bot 만들기, 텔레그램 bot_token 넣기
Instagram API 문서와 discord.py, discord.js
유튜브 1080p 영상, 유튜브 mp3, 페이스북 2.0
카톡 아이디 변경 안내, 카톡 ID card
파이프라인 stage_2, 온라인 game1234, 라인 A-1234
스레드는 Lock.release 를 부른다
https://www.instagram.com/p/CxYz_123
카톡 hong_00@example.com
텔레그램 file_01.pdf
법인등록번호를 적으세요
주민 990011-0417825
제품 P01234567890, P9900000000012, AP990000000001
https://example.com/products/P990000000001
송장이 안 와요 2099-12-31
운송장 12345
택배 010-0000-0000 으로 연락
우체국 택배 1511-3000
회원번호를 잊었어요, 회원번호 10명
사번 2000년 입사, 학번 99학번
고객번호 앞 3자리
마일리지 50000점 적립
비밀번호 12345678
""".strip().splitlines()


def found_in(text: str) -> list[Found]:
    return [value[:3] for value in find_extra(text, EXTRA_TYPES)]


@pytest.mark.parametrize("block", MARKED)
def test_announced_values_are_found(block: str) -> None:
    text, spans = unmark(block)
    assert [value[:3] for value in find_extra(text, set(EXTRA_TYPES) - {"PERSON"})] == spans


@pytest.mark.parametrize("text", LOOKALIKES)
def test_what_nothing_announces_is_left_alone(text: str) -> None:
    assert [text[start:end] for start, end, _ in found_in(text)] == []


@pytest.mark.parametrize(
    ("label", "text", "kind"),
    [
        ("카톡 ID", "malmoi", "HANDLE"),
        ("kakao_id", "malmoi", "HANDLE"),
        ("법인등록번호", "9901110447715", "ORG_NUMBER"),
        ("통관부호", "p990000000001", "CUSTOMS"),
        ("운송장번호", "300000000009", "COURIER"),
        ("회원번호", "00012345", "MEMBERSHIP"),
    ],
)
def test_the_name_of_a_column_announces_values(label: str, text: str, kind: str) -> None:
    assert find_pii(text, EXTRA_TYPES, label) == [Span(0, len(text), kind)]
    assert find_pii(text, EXTRA_TYPES, "비고") == []


def test_only_the_types_that_are_asked_for_are_found() -> None:
    text = "성명: 한보람, 카톡 ID: malmoi, 회원번호 00012345"
    assert [value.type for value in find_extra(text, EXTRA_TYPES)] == ["PERSON", "HANDLE", "MEMBERSHIP"]
    assert [value.type for value in find_extra(text, ["HANDLE"])] == ["HANDLE"]
    assert find_extra(text, PII_TYPES) == []


def test_values_say_score_and_why() -> None:
    assert find_extra("법인등록번호 110111-0062432", EXTRA_TYPES)[0][3:] == (1.0, "checksum")
    assert find_extra("법인등록번호 110111-0062433", EXTRA_TYPES)[0][3:] == (0.9, "label")
    announced, alone = (find_extra(f"{front} P990000000001", EXTRA_TYPES)[0] for front in ("통관부호", "번호"))
    assert (announced.why, alone.why) == ("label", "pattern")
    assert announced.score > alone.score


def test_the_check_digit_of_company_numbers_is_that_of_the_register() -> None:
    """The worked example of the rules of the commercial register, and one whose digit is 0."""
    assert org_check_digit("110111006243") == 2
    assert org_check_digit("000000000005") == 0


@pytest.mark.parametrize("name", sorted(set(EXTRA_TYPES) - {"COURIER"}))  # no parcel number is marked there
def test_texts_with_marked_values_are_scored_above_the_bars(name: str) -> None:
    rows = read_marked(FOLDER / "extra_types.txt")
    labelled = [(row.text, [span for span in row.spans if span[2] == name]) for row in rows]
    assert sum(len(spans) for _, spans in labelled) >= 4
    scores = score_spans(labelled, lambda text: [value[:3] for value in find_extra(text, [name])])
    assert scores["precision"] >= 0.95
    assert scores["recall"] >= 0.95


VALUES = [(span[2], unmark(block)[0][span[0] : span[1]]) for block in MARKED for span in unmark(block)[1]]


@given(st.sampled_from(VALUES + [(kind.name, kind.example) for kind in EXTRA_TABLE]), st.integers())
def test_replacements_are_found_again_and_never_the_same(pair: tuple[str, str], seed: int) -> None:
    name, value = pair
    kind = BY_NAME[name]
    fake = kind.fake(Random(seed), value)
    announced = f"{kind.context[0]} {fake}"
    assert fake != value
    assert fake == kind.fake(Random(seed), value)
    assert [found[:3] for found in find_extra(announced, [name])] == [(len(kind.context[0]) + 1, len(announced), name)]
    if name != "PERSON":
        shapes = str.maketrans(string.digits, "0" * 10)
        assert [c.isalpha() or c for c in fake.translate(shapes)] == [c.isalpha() or c for c in value.translate(shapes)]


@given(st.integers())
def test_replacements_belong_to_nobody_where_numbers_are_kept_free(seed: int) -> None:
    company = BY_NAME["ORG_NUMBER"].fake(Random(seed), "110111-0062432").replace("-", "")
    assert company.startswith("99")
    assert org_check_digit(company[:12]) != int(company[12])
    assert BY_NAME["CUSTOMS"].fake(Random(seed), "P180012345678").startswith("P99")
    assert BY_NAME["COURIER"].fake(Random(seed), "123456789012")[-1] in "789"


def test_the_table_has_a_row_for_each_type() -> None:
    assert tuple(BY_NAME) == EXTRA_TYPES
    assert not set(EXTRA_TYPES) & set(PII_TYPES)


PLAIN = st.text(st.sampled_from("다람쥐 헌 쳇바퀴에 타고파.,!?\n"), max_size=200)


@given(PLAIN)
def test_text_without_such_words_holds_nothing(text: str) -> None:
    assert found_in(text) == []


@given(st.lists(st.sampled_from([unmark(block)[0] for block in MARKED] + [" ", ", ", "\n", "김민준 씨"]), max_size=8))
def test_values_are_sorted_and_never_overlap(pieces: list[str]) -> None:
    assert all(left[1] <= right[0] for left, right in pairwise(found_in("".join(pieces))))


def test_petitions_hold_hardly_any_but_names(shared: Callable[[str], Path]) -> None:
    """In all ten megabytes of the file there is one handle and one parcel number; here a quarter of it is read."""
    with shared("data/corpora/petitions.jsonl.zst").open("rb") as packed:
        stream = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(packed)
        texts = [json.loads(line)["text"] for line in islice(io.TextIOWrapper(stream, "utf-8"), 900)]
    assert sum(len(text.encode()) for text in texts) >= 2.5e6
    types = set(EXTRA_TYPES) - {"PERSON"}
    assert sum(len(find_extra(text, types)) for text in texts) <= 2


UNITS = [
    "가", "김", "김민", "김민준", "김민준 ", "김민준,", "김민준·", "씨", " 씨", "님", "성명", "성 ", "성명: ",
    "성명: 김 ", "이름 ", "(", "김민준(", "김성명,", "김성명과 ", "배우 ", "의원", "A", "Kim ", "KIM/", "kim/ga",
    "洪", "성명 洪", "1", "1-", "1 ", "12345 ", "P", "P1", "p 1234 ", "법인번호", "법인번호 1", "카톡", "카톡 ",
    "카톡 a", "카톡a.", "카톡 a_", "아이디", "송장", "송장 1", "송장 123-", "회원번호", "회원번호 1-",
    "회원번호 a-", "\n", " ", '"',
]  # fmt: skip


def seconds_for(text: str) -> float:
    started = time.process_time()
    find_extra(text, EXTRA_TYPES)
    return time.process_time() - started


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    """Four times the length takes at most about four times the time; squared growth would take sixteen."""
    quarter, whole = (min(seconds_for(unit * (size // len(unit))) for _ in range(2)) for size in (16_000, 64_000))
    assert whole < 8 * quarter + 0.02
