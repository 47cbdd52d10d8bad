"""Votes made by rules, in place of workers: python votes.py FOLDER > votes.jsonl

Each of four workers knows three quarters of the words of each topic, and chooses the topic with most of them in the
sentence. A worker who knows none cannot decide. A fifth worker always says the first topic, so that one is excluded.
"""

import json
import random
import sys
from pathlib import Path

WORDS = {
    "정치": "대통령 국회 의원 정부 국민 정당 선거 장관 정치 탄핵 북한 외교 여당 야당 청와대 투표",
    "경제": "경제 집값 부동산 아파트 세금 월급 임금 최저임금 회사 기업 대출 은행 금리 주택 소득 일자리",
    "교육": "학교 학생 교사 교육 선생 대학 입시 수업 유치원 어린이집 교과서 시험 학부모 학원 수능 등록금",
    "범죄": "처벌 살인 폭행 사건 피해자 가해자 경찰 재판 판사 형량 성폭행 구속 수사 범죄 사형 음주운전",
    "연예": "드라마 배우 가수 노래 연기 방송 영화 팬 예능 아이돌 연예인 결혼 출연 데뷔 시청률 콘서트",
}


def main(folder: Path) -> None:
    """Print one vote of three workers for each item."""
    known = {}
    for worker in ("kim", "lee", "park", "choi"):
        rng = random.Random(worker)
        known[worker] = {topic: rng.sample(words.split(), 12) for topic, words in WORDS.items()}
    for line in (folder / "items.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        text = item["texts"]["text"]
        for worker in random.Random(item["id"]).sample([*known, "same"], 3):
            topic, hits = next(iter(WORDS)), 1
            if worker in known:
                counts = {topic: sum(text.count(word) for word in words) for topic, words in known[worker].items()}
                topic, hits = max(counts.items(), key=lambda pair: pair[1])
            vote = {"value": topic} if hits else {"value": "", "reports": "undecided"}
            print(json.dumps({"item": item["id"], "worker": worker, **vote}, ensure_ascii=False))


main(Path(sys.argv[1]))
