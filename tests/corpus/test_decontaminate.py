"""The pruned index decides as brute force with rank_bm25 does."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from corpus.config import DecontaminateConfig
from corpus.decontamination.benchmarks import find_benchmarks, read_benchmarks
from corpus.decontamination.index import ContaminationIndex, Hit, build_index
from corpus.folding import fold
from corpus.reading.files import read_blocks
from corpus.sentences import split_sentences

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


class BruteForce:
    """r(q, d) by the definition, with BM25Okapi's own score of each token."""

    def __init__(self, benchmark: list[str]) -> None:
        self.own = [trigrams(fold(text)) for text in benchmark]
        self.bm25 = BM25Okapi(self.own)
        self.weights = [
            {token: float(self.bm25.get_batch_scores([token], [d])[0]) for token in tokens}
            for d, tokens in enumerate(self.own)
        ]

    def ratios(self, sentence: str) -> dict[int, float]:
        """The ratios that reach the threshold, by benchmark sentence."""
        query = trigrams(fold(sentence))
        reached = {}
        for d, weights in enumerate(self.weights):
            width = math.ceil(CONFIG.window * len(self.own[d]))
            if self._covered(set(query), weights) >= CONFIG.threshold - 1e-9:  # else no part of it can
                windows = [set(query[at : at + width]) for at in range(max(1, len(query) - width + 1))]
                reached[d] = max(self._covered(window, weights) for window in windows)
        return {d: ratio for d, ratio in reached.items() if ratio >= CONFIG.threshold - 1e-9}

    @staticmethod
    def _covered(tokens: set[str], weights: dict[str, float]) -> float:
        return sum(weight for token, weight in weights.items() if token in tokens) / sum(weights.values())


def assert_decides_like_brute_force(benchmark: list[str], queries: list[str], at_least: int) -> None:
    """``benchmark`` holds distinct sentences, each long enough to be indexed."""
    index, numbers = build_index(benchmark, CONFIG)
    assert numbers == list(range(len(benchmark)))
    brute = BruteForce(benchmark)
    expected = {(n, d): r for n, query in enumerate(queries) for d, r in brute.ratios(query).items()}
    found = {(hit.sentence, hit.item): hit.ratio for hit in index.find(queries)}
    assert len(expected) >= at_least
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair]) for pair in found)


def random_sentence(rng: Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words)) + "."


def test_decisions_equal_brute_force() -> None:
    rng = Random(5)
    benchmark = list(dict.fromkeys(random_sentence(rng, rng.randint(6, 9)) for _ in range(60)))
    queries = [random_sentence(rng, rng.choice((3, 8, 30))) for _ in range(25)]
    queries += [f"{random_sentence(rng, 9)} {text[4:]}" for text in benchmark[:15]]
    assert_decides_like_brute_force(benchmark, queries, at_least=15)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(alphabet="가나다라", min_size=14, max_size=30), min_size=5, max_size=9, unique=True), st.data())
def test_decisions_equal_brute_force_on_repetitive_text(benchmark: list[str], data: st.DataObject) -> None:
    query = data.draw(st.text(alphabet="가나다라", min_size=3, max_size=90))
    if BM25Okapi([trigrams(text) for text in benchmark]).average_idf <= 1e-9:
        return  # too few, too similar sentences: weights are equal then, see the next test
    assert_decides_like_brute_force(benchmark, [query], at_least=0)


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


def test_very_short_benchmark_sentences_are_left_out_on_demand() -> None:
    config = DecontaminateConfig(min_item_chars=6)
    index, numbers = build_index(["감사합니다.", "안녕하세요!!!!", "고맙습니다요.", BENCHMARK[0]], config)
    assert numbers == [-1, -1, 1, 0]
    assert [hit[:2] for hit in index.find(["감사합니다.", "고맙습니다요!", BENCHMARK[0]])] == [(1, 1), (2, 0)]


def test_only_short_sentences_are_an_index_too() -> None:
    index, _ = build_index(["감사합니다.", "네."], CONFIG)
    assert [hit[:2] for hit in index.find(["아니요.", "네!"])] == [(1, 1)]


def test_a_saved_index_finds_the_same(tmp_path: Path) -> None:
    index, _ = build_index(BENCHMARK, CONFIG)
    index.save(tmp_path)
    queries = [*BENCHMARK, "다른 글이다."]
    assert ContaminationIndex.load(tmp_path).find(queries) == index.find(queries)


def test_the_number_of_sentences_looked_at_together_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(2)
    benchmark = [random_sentence(rng, 7) for _ in range(50)]
    index, _ = build_index(benchmark, CONFIG)
    queries = [random_sentence(rng, 9) for _ in range(200)] + [f"그래서 {text[3:]}" for text in benchmark]
    rng.shuffle(queries)
    together = index.find(queries)
    assert len(together) >= 50
    assert together == [Hit(n, *hit[1:]) for n, query in enumerate(queries) for hit in index.find([query])]
    monkeypatch.setattr("corpus.decontamination.ngrams.BATCH_CHARS", 100)
    assert index.find(queries) == together


def test_a_very_long_sentence_takes_linear_time_and_is_searched_to_its_end() -> None:
    index, _ = build_index(BENCHMARK, CONFIG)
    filler = "".join(Random(1).choices("가나다라마바사아자차카타파하거너더러머버", k=1_000_000))
    start = time.process_time()
    hits = index.find([filler + BENCHMARK[0] + filler[:50] + BENCHMARK[1]])
    assert [hit.item for hit in hits] == [0, 1]
    assert time.process_time() - start < 10  # about half a second


# --- real text: KLUE and the corpora ---

Shared = Callable[[str], Path]


@pytest.fixture(scope="module")
def klue_dev(shared: Shared) -> list[str]:
    """Distinct text fields of the STS, NLI, NER and DP dev files, in order."""
    tasks = {"klue-sts", "klue-nli", "klue-ner", "klue-dp"}
    paths = [path for path in find_benchmarks([str(shared("data/klue/official"))]) if "_dev" in path.name]
    texts: dict[str, list[str]] = {}
    for task, key, sentence in read_benchmarks(paths):
        if task in tasks:
            texts.setdefault(key, []).append(sentence)
    assert {key.split("-v1")[0] for key in texts} == tasks
    return list(dict.fromkeys(map(" ".join, texts.values())))


@pytest.fixture(scope="module")
def petitions(shared: Shared) -> list[str]:
    return [s for _, text in read_corpus(shared("data/corpora/petitions.jsonl.zst")) for s in split_sentences(text)]


def read_corpus(path: Path) -> Iterator[tuple[str, str]]:
    for line in b"".join(read_blocks(path)).splitlines():
        record = json.loads(line)
        yield record["id"], record["text"]


def without_some_blanks(words: list[str], rng: Random) -> str:
    return "".join(word + rng.choices(["", " "], [1, 3])[0] for word in words)


def with_a_word_replaced(words: list[str], rng: Random, others: list[str]) -> str:
    at = rng.randrange(len(words))
    return " ".join([*words[:at], rng.choice(rng.choice(others).split()), *words[at + 1 :]])


def test_changed_copies_of_benchmark_sentences_are_found(klue_dev: list[str]) -> None:
    """Of at least 4 eojeols and 12 letters; respaced means a quarter of the blanks gone."""
    rng = Random(3)
    index, numbers = build_index(klue_dev, CONFIG)
    chosen = [n for n, text in enumerate(klue_dev) if len(text.split()) >= 4 and len(fold(text)) >= CONFIG.min_chars]
    assert len(chosen) > 10_000

    def share_found(change: Callable[[list[str]], str]) -> float:
        hits = index.find([change(klue_dev[n].split()) for n in chosen])
        return len({hit.sentence for hit in hits if hit.item == numbers[chosen[hit.sentence]]}) / len(chosen)

    assert share_found(" ".join) == 1
    assert share_found(lambda words: without_some_blanks(words, rng)) == 1
    assert share_found(lambda words: f"{rng.choice(klue_dev)} {' '.join(words)} {rng.choice(klue_dev)}") == 1
    assert share_found(lambda words: with_a_word_replaced(words, rng, klue_dev)) >= 0.94


def test_petitions_are_left_alone(klue_dev: list[str], petitions: list[str]) -> None:
    """Above a ratio of .8 stand true copies: the constitution, quoted in petitions and in KLUE."""
    index, _ = build_index(klue_dev, CONFIG)
    wrong = {h.sentence for h in index.find(petitions) if h.item < len(index.total_D) and h.ratio < 0.8}
    assert len(petitions) > 60_000
    assert len(wrong) <= 0.0001 * len(petitions)


def test_decisions_on_real_text_equal_brute_force(klue_dev: list[str], petitions: list[str]) -> None:
    rng = Random(4)
    distinct = list({fold(text): text for text in klue_dev if len(fold(text)) >= CONFIG.min_chars}.values())
    benchmark = rng.sample(distinct, 1000)
    queries = rng.sample(petitions, 40) + sorted(petitions, key=len)[-5:] + benchmark[:20]
    queries += [with_a_word_replaced(text.split(), rng, petitions) for text in rng.sample(benchmark, 80)]
    queries += [f"{rng.choice(petitions)} {text} {rng.choice(petitions)}" for text in rng.sample(benchmark, 20)]
    assert_decides_like_brute_force(benchmark, queries, at_least=80)


def test_rank_bm25_is_at_least_500_times_slower(klue_dev: list[str], petitions: list[str]) -> None:
    benchmark, queries = klue_dev[:4000], Random(6).sample(petitions, 4000)
    bm25 = BM25Okapi([trigrams(fold(text)) for text in benchmark])
    index, _ = build_index(benchmark, CONFIG)
    index.find(queries[:100])
    start = time.process_time()
    index.find(queries)
    ours = (time.process_time() - start) / len(queries)
    start = time.process_time()
    for query in queries[:8]:
        bm25.get_scores(trigrams(fold(query)))
    assert (time.process_time() - start) / 8 >= 500 * ours


@pytest.mark.parametrize(
    ("corpora", "pairs", "least"),
    [
        (["wikinews"], 3175, 3175),
        pytest.param(["nsmc_reviews", "kowiki", "law", "petitions"], 12_118, 12_090, marks=pytest.mark.slow),
    ],
)
def test_known_contamination_of_the_corpora_is_found(
    shared: Shared, corpora: list[str], pairs: int, least: int
) -> None:
    """Missed are items that run over several corpus sentences, and laughter in another code block (U+110F)."""
    lines = b"".join(read_blocks(shared("data/klue/derived/contamination_truth.jsonl.zst"))).splitlines()
    truth: dict[str, set[str]] = {}
    for pair in map(json.loads, lines):
        truth.setdefault(pair["doc"], set()).add(pair["guid"])
    texts = read_benchmarks(find_benchmarks([str(shared("data/klue"))]))
    index, numbers = build_index([text.text for text in texts], CONFIG)
    guids: dict[int, set[str]] = {}
    for text, number in zip(texts, numbers, strict=True):
        guid = text.key.replace("#sentence1", "#1").replace("#sentence2", "#2").removesuffix("#sentence")
        guids.setdefault(number, set()).add(guid)
    known = found = 0
    for corpus in corpora:
        for document, text in read_corpus(shared(f"data/corpora/{corpus}.jsonl.zst")):
            if document in truth:
                hits = index.find(split_sentences(text))
                known += len(truth[document])
                found += len(truth[document] & set().union(*(guids[hit.item] for hit in hits)))
    assert (known, found >= least) == (pairs, True)
