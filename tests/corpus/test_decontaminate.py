"""The pruned index decides as brute force with rank_bm25 does."""

from __future__ import annotations

import math
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from corpus.config import DecontaminateConfig
from corpus.decontaminate import ContaminationIndex, build_index
from corpus.deduplicate import fold

CONFIG = DecontaminateConfig()
WORDS = ["토끼", "여우", "강아지", "고양이", "바람", "구름", "학교", "도서관", "아침", "저녁", "달렸다", "먹었다"]
WORDS += ["읽었다", "보았다", "높은", "푸른", "작은", "오래된", "천천히", "다시"]
BENCHMARK = [
    "강가의 오래된 도서관에서 소년이 책을 천천히 읽었다.",
    "저녁이 되자 바람이 불고 푸른 구름이 산을 넘어왔다.",
    "고양이 두 마리가 시장 골목에서 생선을 물고 달아났다.",
    "감사합니다.",
]


def trigrams(text: str) -> list[str]:
    return [text[at : at + CONFIG.ngram] for at in range(len(text) - CONFIG.ngram + 1)]


def brute_force(benchmark: list[str], sentence: str) -> dict[int, float]:
    """r(q, d) of every benchmark sentence, by BM25Okapi's own scores of every window."""
    bm25 = BM25Okapi([trigrams(fold(text)) for text in benchmark])
    query = trigrams(fold(sentence))
    ratios = {}
    for number, text in enumerate(benchmark):
        own = trigrams(fold(text))
        whole = bm25.get_batch_scores(sorted(set(own)), [number])[0]
        width = math.ceil(CONFIG.window * len(own))
        windows = [query[at : at + width] for at in range(max(1, len(query) - width + 1))]
        ratios[number] = max(bm25.get_batch_scores(sorted(set(w)), [number])[0] for w in windows) / whole
    return ratios


def random_sentence(rng: Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words)) + "."


def test_decisions_equal_brute_force() -> None:
    rng = Random(5)
    benchmark = list(dict.fromkeys(random_sentence(rng, rng.randint(6, 9)) for _ in range(60)))
    index, numbers = build_index(benchmark, CONFIG)
    assert numbers == list(range(len(benchmark)))
    queries = [random_sentence(rng, rng.choice((3, 8, 30))) for _ in range(25)]
    queries += [f"{random_sentence(rng, 9)} {text[4:]}" for text in benchmark[:15]]
    found = {(hit.sentence, hit.item): hit.ratio for hit in index.find(queries)}
    expected = {
        (n, item): ratio
        for n, query in enumerate(queries)
        for item, ratio in brute_force(benchmark, query).items()
        if ratio >= CONFIG.threshold - 1e-9
    }
    assert len(expected) >= 15
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair]) for pair in found)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(alphabet="가나다라", min_size=14, max_size=30), min_size=5, max_size=9, unique=True), st.data())
def test_decisions_equal_brute_force_on_repetitive_text(benchmark: list[str], data: st.DataObject) -> None:
    query = data.draw(st.text(alphabet="가나다라", min_size=3, max_size=90))
    if BM25Okapi([trigrams(text) for text in benchmark]).average_idf <= 0:
        return  # too few, too similar sentences: weights are equal then, see the next test
    index, _ = build_index(benchmark, CONFIG)
    expected = {n for n, ratio in brute_force(benchmark, query).items() if ratio >= CONFIG.threshold - 1e-9}
    assert {hit.item for hit in index.find([query])} == expected


def test_a_single_benchmark_sentence_is_found() -> None:
    index, _ = build_index(BENCHMARK[:1], CONFIG)
    assert [hit.ratio for hit in index.find([BENCHMARK[0], BENCHMARK[1]])] == [pytest.approx(1.0)]


@pytest.mark.parametrize(
    ("sentence", "is_found"),
    [
        (BENCHMARK[0], True),
        (BENCHMARK[0].replace(" ", ""), True),
        ("어느 날 " + BENCHMARK[0].replace(".", "!") + " 그리고 집으로 돌아가서 밥을 먹고 잠이 들었다.", True),
        (BENCHMARK[0].replace("천천히 ", ""), True),
        ("강가의 오래된 학교에서 소녀가 노래를 불렀다.", False),
        ("감사합니다!", True),
        ("정말 감사합니다.", False),
        ("...", False),
        ("", False),
    ],
)
def test_copies_are_found_and_relatives_are_not(sentence: str, is_found: bool) -> None:
    index, _ = build_index(BENCHMARK, CONFIG)
    assert bool(index.find([sentence])) == is_found


def test_words_scattered_over_a_long_text_do_not_add_up() -> None:
    index, _ = build_index(BENCHMARK, CONFIG)
    words = BENCHMARK[0].split()
    filler = "전혀 다른 이야기가 이어지고 또 이어지는 동안 아무도 말하지 않았다 "
    assert index.find([" ".join(words)])
    assert not index.find([filler.join(words)])


def test_equal_sentences_share_a_number_and_empty_ones_have_none() -> None:
    _, numbers = build_index([BENCHMARK[0], "네.", BENCHMARK[0] + "!", "네", "?!"], CONFIG)
    assert numbers == [0, 1, 0, 1, -1]


def test_only_short_sentences_are_an_index_too() -> None:
    index, _ = build_index(["감사합니다.", "네."], CONFIG)
    assert [hit[:2] for hit in index.find(["아니요.", "네!"])] == [(1, 1)]


def test_a_saved_index_finds_the_same(tmp_path: Path) -> None:
    index, _ = build_index(BENCHMARK, CONFIG)
    index.save(tmp_path)
    queries = [*BENCHMARK, "다른 글이다."]
    assert ContaminationIndex.load(tmp_path).find(queries) == index.find(queries)


def test_a_very_long_sentence_takes_linear_time_and_is_searched_to_its_end() -> None:
    index, _ = build_index(BENCHMARK, CONFIG)
    filler = "".join(Random(1).choices("가나다라마바사아자차카타파하거너더러머버", k=1_000_000))
    start = time.process_time()
    hits = index.find([filler + BENCHMARK[0] + filler[:50] + BENCHMARK[1]])
    assert [hit.item for hit in hits] == [0, 1]
    assert time.process_time() - start < 10  # about half a second
