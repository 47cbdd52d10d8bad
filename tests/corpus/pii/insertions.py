"""A plain valid value between two words of a real sentence, with what people write before and after it.

Sentences come from the shared corpora, values from ``layouts.values``. Nothing in a sentence may hide a value whose
format is telling. ``python -m tests.corpus.pii.insertions 20000 0`` prints what is
missed by writing.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import zstandard

from corpus.pii.detect import find_pii
from corpus.pii.types import words
from tests.corpus.pii.layouts.values import WRITINGS, Writing, draw_value

CORPORA = ("petitions", "news_comments", "kowiki", "law", "book_reviews", "techdocs", "msdocs_business", "wikinews")
TELLING = {
    "TEL": ("mobile", "area", "070"),
    "RRN": ("hyphen",),
    "FRN": ("hyphen",),
    "EMAIL": ("plain",),
    "IP": ("v4", "v6"),
    "MAC": ("colons", "hyphens"),
    "CARD": ("hyphens",),
    "BRN": ("hyphens",),
    "PLATE": ("tight", "region"),
    "URL": ("host", "path", "www"),
}
"""Writings that are found next to anything; of the other writings that need no label, some are missed."""
TELLING_WRITINGS = [w for w in WRITINGS if w.name in TELLING.get(w.type, ())]
OTHER_WRITINGS = [w for w in WRITINGS if w.is_telling and w not in TELLING_WRITINGS and w.type != "MENTION"]

PARTICLES = words(
    "은 는 이 가 을 를 로 으로 에 에서 에게 와 과 도 만 의 부터 까지 처럼 보다 이나 나 라고 이라고 라는 이라는 "
    "입니다 이에요 예요 인데 이고 이며 이다 이었다 로만 로는 로도 에는 에도 에서는 에서도 께 께서 한테 한테서 랑 "
    "이랑 하고 밖에 마다 조차 뿐 요 이요 이네요 이죠 이지만 이라서 라서 이라 였습니다 이구요 구요 인지 이니 님 씨 "
    "쪽으로 으로는 으로도 이나마 든지 이든지"
)
OPENINGS = (
    "", "", "", "", "(", "[", "{", "<", "「", "『", "“", "‘", '"', "'", ":", ": ", "=", "|", "/", ", ", "·", "→",
    "~ ", "…", "..", "#", "* ", "- ", "— ", "-", "—", "※", "☎", "▶", "+ ", "& ", "; ", ">", "^^", "!", "?", "％",
    "。",
)  # fmt: skip
CLOSINGS = (
    "", "", "", "", ")", "]", "}", ">", "」", "』", "”", "’", '"', "'", ",", ".", ";", "!", "?", "~", "…", "..", "/",
    "|", " -", " —", "·", "→", "*", "ㅠㅠ", "ㅎㅎ", "^^", ":", " (", "[", "<", "&", "=", "#", "^", "。", "」로",
    ")로", "”라고",
)  # fmt: skip
BEFORE = words(
    "접수 접수처 접수자 접수한 접수되어 접수했더니 원서접수 피팅모델 모델 모델로 모델하우스 품번 품번확인 품번을 "
    "게시물 게시물에 게시글 게시글에서 특허 특허법인 특허청 특허받은 부품 부품점 부품을 부품가게 서명 서명운동 "
    "서명하고 버전 버전에 파일 파일을 파일로 커밋 커밋하고 해시 해시태그 좌표 좌표를 로또 로또명당 운송장 송장 "
    "송장을 운송장은 학번 학번은 수험번호 의안 의안과 출원 출원했고 출원인 실용신안 시리얼 시리얼이 일련번호 "
    "일련번호는 바코드 바코드를 승인번호 거래번호 주문번호 주문번호는 예약번호 예약번호와 회원번호 고객번호 "
    "고객번호는 문의번호 민원번호 민원 민원을 허가번호 공고번호 사건번호 사건번호는 접수번호 접수번호가 관리번호 "
    "문서번호 문서번호로 증권번호 인증번호 인증번호가 제품번호 상품번호 상품코드 제조번호 법인번호 법인등록번호 "
    "사서함 우체국택배 조합원번호 isbn doi uuid serial tracking order invoice commit 5월1일에 1일에 2일에 25일에 "
    "31일 일에 이에 사이에 그사이에 구사일생 사이 팔이 오이 이사 이사에 이사와 이삼일 삼일 구이 육이오 오구 "
    "칠팔월 영일 공일 공일에 이영이 오영구 사오 삼사 이일이 일이 구일 이오 팔구 1번이 2에 3일 4이 5구 7팔 10일 "
    "12에 3에서 100에 2024년 2025년에 3시 12시에 1,000원 30% 3.5 제3조 5,000 7명 2층 101동 15일이 1차 2호 20 7 "
    "010 02 3 1588 국민 국민이 신한 우리 우리가 하나 하나는 기업 산업 부산 대구 광주 제주 전북 경남 카카오 케이 "
    "새마을 제일 외환 계좌 통장 입금 송금 예금주 은행 농협 토스 카드 카드로 결제 아멕스 사업자 세금계산서 "
    "현금영수증 주민등록 주민번호 주민 외국인 외국인등록 여권 여권은 면허 면허증 운전면허 건강보험 보험증 "
    "의료급여 차량 번호판 자동차 택시 버스 주차 블랙박스 주소 소재지 배송지 이메일 메일 메일로 홈페이지 사이트 "
    "링크 아이피 서버 맥주소 맥 인스타 트위터 카톡 계정 전화 전화는 연락처 연락처로 휴대폰 팩스 문의 상담 오늘 "
    "어제 그래서 그리고 그러나 하지만 혹시 제발 바로 여기 저기 이것 저것 사람 학교 정부 대통령 국회 서울 경기 "
    "인천 영화 음악 게임 아이 엄마 안녕하세요 감사합니다 바랍니다 드릴께요 드릴께요. 했습니다 합니다. 였는데 "
    "이구요 니다~ 됩니다! 있나요? 해주세요... OK ok A B형 LG KT no No. NO id ID tel TEL fax hp e-mail mail card "
    "bank ver. v2 version build ㅋㅋ ㅠㅠ ^^ ** ... -- == // 1) (2) 3. ① ② 가. 나) [1] <b> </b> &nbsp; <br> <td> "
    "%, $ @ # ★ ○ ■ ◆ ○○ 홍길동 김가온(남) 이모씨( 박씨는 최OO 다시 다시는 대시 빼기 점 닷 골뱅이 앳 닷컴 컴 넷 "
    "at dot"
)
AFTER = (
    *BEFORE,
    *words(
        "번이나 3번이나 2명 1회 5분 이 삼 사 오 육 원 만원 억 년 월 일 시 건 개 점 호 층 동 로 에서 연락 입금 "
        "문의 차량 번호 이후 이전"
    ),
)


class Insertion(NamedTuple):
    """``text[start:end]`` is the inserted value."""

    text: str
    start: int
    end: int
    writing: Writing


@cache
def read_sentences(folder: Path, limit: int = 4_000) -> list[str]:
    """The start of each corpus, cut at line ends and after ``다.``."""
    sentences: list[str] = []
    for name in CORPORA:
        with (folder / f"{name}.jsonl.zst").open("rb") as packed:
            stream = zstandard.ZstdDecompressor(max_window_size=2**28).stream_reader(packed)
            read: list[str] = []
            for line in io.TextIOWrapper(stream, "utf-8"):
                text = json.loads(line)["text"].replace("다. ", "다.\n")
                read += [sentence for sentence in text.split("\n") if 10 < len(sentence) < 300]
                if len(read) >= limit:
                    break
            sentences += read[:limit]
    return [sentence for sentence in sentences if not find_pii(sentence)]


def insert(rng: Random, sentences: Sequence[str], writings: Sequence[Writing]) -> Insertion:
    """A value of one of the writings between two words, with signs, particles or context phrases next to it."""
    words = rng.choice(sentences).split(" ")
    at = rng.randrange(len(words) + 1)
    writing = rng.choice(writings)
    value = draw_value(rng, writing).text
    opening, closing = rng.choice(OPENINGS), rng.choice(CLOSINGS)
    before = " ".join(words[:at])
    if rng.randrange(3) == 0:
        before = f"{before} {rng.choice(BEFORE)}".strip()
    # Latin letters and digits next to a value are part of it
    glued = before[-1:].isspace() or not before or "가" <= before[-1] <= "힣"
    before += "" if opening.strip() and glued and rng.randrange(2) else " " * bool(before)
    tail = rng.choice(PARTICLES) if rng.randrange(3) == 0 else closing
    if writing.type == "URL" and tail[:1] in set("/&=#:~*|'"):
        tail = ""  # may continue a path
    after = " ".join(words[at:])
    if rng.randrange(3) == 0:
        after = f"{rng.choice(AFTER)} {after}"
    front = before + opening
    return Insertion(f"{front}{value}{tail} {after}", len(front), len(front) + len(value), writing)


def is_missed(case: Insertion) -> bool:
    """Whether a part of the value is in no span."""
    covered = set[int]()
    for span in find_pii(case.text):
        covered.update(range(span.start, span.end))
    return not covered.issuperset(range(case.start, case.end))


def is_misread(case: Insertion) -> bool:
    """Whether the value is not found as exactly itself, with its type."""
    return (case.start, case.end, case.writing.type) not in [(s.start, s.end, s.type) for s in find_pii(case.text)]


def draw_cases(rng: Random, sentences: Sequence[str], writings: Sequence[Writing], count: int) -> Iterator[Insertion]:
    """``count`` insertions, without those in which a label names another number of the same form."""
    while count:
        case = insert(rng, sentences, writings)
        is_company = case.writing.type in ("RRN", "FRN") and _COMPANY_LABEL.search(case.text[: case.start])
        if not is_company:
            count -= 1
            yield case


_COMPANY_LABEL = re.compile(r"법인(?:등록)?번호[^0-9a-zA-Z가-힣]*$")


if __name__ == "__main__":
    pool = read_sentences(Path(__file__).parents[3].parent / "shared/data/corpora")
    for chosen in (TELLING_WRITINGS, OTHER_WRITINGS):
        counts, misread, missed = Counter[str](), Counter[str](), defaultdict[str, list[str]](list)
        for case in draw_cases(Random(int(sys.argv[2])), pool, chosen, int(sys.argv[1])):
            key = f"{case.writing.type} {case.writing.name}"
            counts[key] += 1
            misread[key] += is_misread(case)
            if is_missed(case):
                missed[key].append(case.text)
        print(f"{counts.total()} values: {sum(map(len, missed.values()))} missed, {misread.total()} misread")
        for key in sorted(counts):
            print(f"  {key:20}{counts[key]:7}{len(missed[key]):6}{misread[key]:6}", *missed[key][:4], sep="\n      ")
