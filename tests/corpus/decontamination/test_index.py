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

from corpus.decontamination.benchmarks import find_benchmarks, read_benchmarks
from corpus.decontamination.index import ContaminationIndex, Hit, build_index
from corpus.decontamination.match_rule import MatchRule
from corpus.decontamination.search import BORNE_SHARE, COVERED_SHARE, WHOLE_RATIO
from corpus.reading.files import read_blocks
from corpus.sentences.folding import fold
from corpus.sentences.split import split_sentences

CONFIG = MatchRule()
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
        every = [weight for weights in self.weights for weight in weights.values()]
        least = (CONFIG.min_item_chars - CONFIG.ngram + 1) * sum(every) / len(every)
        self.min_shares = [min(1.0, least / max(1e-300, sum(weights.values()))) for weights in self.weights]

    def ratios(self, sentence: str) -> dict[int, float]:
        """The ratios that reach the threshold, by benchmark sentence."""
        query = trigrams(fold(sentence))
        reached = {}
        for d, weights in enumerate(self.weights):
            width = math.ceil(CONFIG.window * len(self.own[d]))
            if self._covered(set(query), weights) >= CONFIG.threshold - 1e-9:  # else no part of it can
                windows = [set(query[at : at + width]) for at in range(max(1, len(query) - width + 1))]
                reached[d] = max(self._covered(window, weights) for window in windows)
        return {d: r for d, r in reached.items() if r >= max(CONFIG.threshold, self.min_shares[d]) - 1e-9}

    def sentences(self, documents: list[list[str]]) -> dict[tuple[int, int], float]:
        """All hits: of each sentence alone, and of those that hold an item together, by the definition."""
        flat = [sentence for document in documents for sentence in document]
        hits = {(n, d): r for n, sentence in enumerate(flat) for d, r in self.ratios(sentence).items()}
        first = 0
        for document in documents:
            for pair, ratio in self._across(document, first, hits).items():
                hits[pair] = max(ratio, hits.get(pair, 0.0))
            first += len(document)
        return hits

    def _across(
        self, document: list[str], first: int, alone: dict[tuple[int, int], float]
    ) -> dict[tuple[int, int], float]:
        letters = "".join(map(fold, document))
        owner = [first + n for n, sentence in enumerate(document) for _ in fold(sentence)]
        held: dict[tuple[int, int], float] = {}  # by item and token's place
        for d, weights in enumerate(self.weights):
            width = math.ceil(CONFIG.window_across * len(self.own[d]))
            whole = {n for (n, item), ratio in alone.items() if item == d and ratio >= WHOLE_RATIO}
            places = [
                (at, token)
                for at, token in enumerate(trigrams(letters))
                if token in weights and owner[at] not in whole and owner[at + CONFIG.ngram - 1] not in whole
            ]
            for end, _ in places:
                window = [(at, token) for at, token in places if end - width < at <= end]
                ratio = self._covered({token for _, token in window}, weights)
                if ratio >= max(CONFIG.threshold_across, self.min_shares[d]) - 1e-9:
                    for at, _ in window:
                        held[d, at] = max(ratio, held.get((d, at), 0.0))
        return self._sentences_to_drop(held, letters, owner)

    def _sentences_to_drop(
        self, held: dict[tuple[int, int], float], letters: str, owner: list[int]
    ) -> dict[tuple[int, int], float]:
        touched: dict[tuple[int, int], float] = {}
        borne: dict[tuple[int, int], float] = {}
        covered: dict[int, set[int]] = {}
        for (d, at), ratio in held.items():
            for place in range(at, at + CONFIG.ngram):
                covered.setdefault(owner[place], set()).add(place)
                touched[owner[place], d] = max(ratio, touched.get((owner[place], d), 0.0))
        for n, d in touched:
            tokens = {letters[at : at + CONFIG.ngram] for item, at in held if item == d and owner[at] == n}
            borne[n, d] = self._covered(tokens, self.weights[d])
        return {
            (n, d): ratio
            for (n, d), ratio in touched.items()
            if len(covered[n]) >= COVERED_SHARE * owner.count(n) or borne[n, d] >= BORNE_SHARE
        }

    @staticmethod
    def _covered(tokens: set[str], weights: dict[str, float]) -> float:
        return sum(weight for token, weight in weights.items() if token in tokens) / sum(weights.values())


def assert_decides_like_brute_force(benchmark: list[str], queries: list[str], at_least: int) -> None:
    """``benchmark`` holds distinct sentences, each long enough to be indexed."""
    index, numbers = build_index(benchmark, MatchRule(min_item_words=1))
    assert numbers == list(range(len(benchmark)))
    brute = BruteForce(benchmark)
    expected = {(n, d): r for n, query in enumerate(queries) for d, r in brute.ratios(query).items()}
    found = {(hit.sentence, hit.item): hit.ratio for hit in index.find(queries)}
    assert len(expected) >= at_least
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair]) for pair in found)


def assert_finds_in_documents_like_brute_force(
    benchmark: list[str], documents: list[list[str]], at_least: int = 0
) -> None:
    index, _ = build_index(benchmark, CONFIG)
    expected = BruteForce(benchmark).sentences(documents)
    found = {(hit.sentence, hit.item): hit.ratio for hit in index.find_in_documents(documents)}
    assert len(expected) >= at_least
    assert found.keys() == expected.keys()


def random_sentence(rng: Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words)) + "."


def test_decisions_equal_brute_force() -> None:
    rng = Random(5)
    benchmark = list(dict.fromkeys(random_sentence(rng, rng.randint(6, 9)) for _ in range(60)))
    queries = [random_sentence(rng, rng.choice((3, 8, 30))) for _ in range(25)]
    queries += [f"{random_sentence(rng, 9)} {text[4:]}" for text in benchmark[:20]]
    assert_decides_like_brute_force(benchmark, queries, at_least=15)


VARIED = st.text(alphabet="가나다라", min_size=14, max_size=30).filter(lambda text: len(set(trigrams(text))) > 5)


@settings(max_examples=100, deadline=None)
@given(st.lists(VARIED, min_size=5, max_size=9, unique=True), st.data())
def test_decisions_equal_brute_force_on_repetitive_text(benchmark: list[str], data: st.DataObject) -> None:
    query = data.draw(st.text(alphabet="가나다라", min_size=3, max_size=90))
    if BM25Okapi([trigrams(text) for text in benchmark]).average_idf <= 1e-9:
        return  # too few, too similar sentences: weights are equal then, see the next test
    assert_decides_like_brute_force(benchmark, [query], at_least=0)


def cut_at_random(text: str, rng: Random, longest: int) -> list[str]:
    words, pieces = text.split(), []
    while words:
        count = rng.randint(1, longest)
        pieces.append(" ".join(words[:count]))
        words = words[count:]
    return pieces


@pytest.mark.parametrize("seed", range(6))
def test_items_cut_into_pieces_are_found_like_brute_force(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    benchmark = list(dict.fromkeys(random_sentence(rng, rng.randint(6, 12)) for _ in range(40)))
    documents = []
    for _ in range(12):
        text = [random_sentence(rng, rng.randint(1, 9)) for _ in range(rng.randint(0, 6))]
        text += rng.sample(benchmark, rng.randint(0, 2))
        rng.shuffle(text)
        documents.append(cut_at_random(" ".join(text), rng, rng.choice((2, 5, 9))))
    assert_finds_in_documents_like_brute_force(benchmark, documents, at_least=10)
    monkeypatch.setattr("corpus.decontamination.letter_stream.BATCH_CHARS", 150)
    assert_finds_in_documents_like_brute_force(benchmark, documents, at_least=10)


@settings(max_examples=60)
@given(
    st.lists(st.text(alphabet="가나다라", min_size=14, max_size=30), min_size=5, max_size=9, unique=True),
    st.lists(st.lists(st.text(alphabet="가나다라", max_size=20), max_size=6), max_size=4),
)
def test_documents_of_repetitive_text_are_searched_like_brute_force(
    benchmark: list[str], documents: list[list[str]]
) -> None:
    if BM25Okapi([trigrams(text) for text in benchmark]).average_idf <= 1e-9:
        return
    config_words = MatchRule(min_item_words=1)
    index, _ = build_index(benchmark, config_words)
    expected = BruteForce(benchmark).sentences(documents)
    assert {hit[:2] for hit in index.find_in_documents(documents)} == expected.keys()


def test_a_sentence_cut_into_lines_goes_with_all_its_lines() -> None:
    index, _ = build_index(BENCHMARK, CONFIG)
    words = BENCHMARK[0].split()
    lines = ["어느 날의 일이다.", *(" ".join(words[n : n + 2]) for n in range(0, len(words), 2)), "모두 잠이 들었다."]
    assert [hit.sentence for hit in index.find_in_documents([lines])] == [1, 2, 3, 4]
    assert not index.find(lines)


def test_windows_do_not_run_from_one_document_into_the_next() -> None:
    index, _ = build_index(BENCHMARK, CONFIG)
    words = BENCHMARK[0].split()
    halves = " ".join(words[:3]), " ".join(words[3:])
    assert index.find_in_documents([halves])
    assert not index.find_in_documents([[half] for half in halves])


def test_text_next_to_a_whole_copy_stays() -> None:
    index, _ = build_index(BENCHMARK, CONFIG)
    assert [hit.sentence for hit in index.find_in_documents([["오래된 도서관", BENCHMARK[0], "책을 읽었다."]])] == [1]


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
        ("감사합니다!", False),  # too short to be an item
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
    assert numbers == [0, -1, 0, -1, -1]


def test_short_benchmark_sentences_are_left_out() -> None:
    """Fragments such as a lone "controversy" are in every other article, and twelve letters of one word are a name."""
    texts = ["논란", "예.", "12", "국립중앙박물관후원회장", "한국어정보처리연구회장단이다.", BENCHMARK[0]]
    index, numbers = build_index(texts, CONFIG)
    assert numbers == [-1, -1, -1, -1, -1, 0]
    assert [hit.sentence for hit in index.find(texts)] == [5]


def test_the_least_length_of_a_benchmark_sentence_can_be_set() -> None:
    config = MatchRule(min_item_chars=6, min_item_words=1)
    index, numbers = build_index(["감사합니다.", "안녕하세요!!!!", "고맙습니다요.", BENCHMARK[0]], config)
    assert numbers == [-1, -1, 0, 1]
    assert [hit[:2] for hit in index.find(["감사합니다.", "고맙습니다요!", BENCHMARK[0]])] == [(1, 0), (2, 1)]


def test_a_saved_index_finds_the_same(tmp_path: Path) -> None:
    index, _ = build_index(BENCHMARK, CONFIG)
    index.save(tmp_path)
    queries = [*BENCHMARK, "다른 글이다."]
    assert ContaminationIndex.load(tmp_path).find(queries) == index.find(queries)


def test_the_number_of_sentences_looked_at_together_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(2)
    benchmark = [random_sentence(rng, 7) for _ in range(60)]
    index, _ = build_index(benchmark, CONFIG)
    queries = [random_sentence(rng, 9) for _ in range(200)] + [f"그래서 {text[3:]}" for text in benchmark]
    rng.shuffle(queries)
    together = index.find(queries)
    assert len(together) >= 50
    assert together == [Hit(n, *hit[1:]) for n, query in enumerate(queries) for hit in index.find([query])]
    monkeypatch.setattr("corpus.decontamination.letter_stream.BATCH_CHARS", 100)
    assert index.find(queries) == together


def test_a_copy_drawn_apart_weighs_the_same_wherever_a_long_sentence_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves that only just lie in one window: 58 trigrams, twice the 29 of the item."""
    item = "강가의오래된도서관에서소년이책을천천히읽었다바람이불고푸른구름"
    index, _ = build_index([item], MatchRule(min_item_words=1))
    other = "zyxwvutsrqponmlkjihgfedcba0123456789" * 6
    monkeypatch.setattr("corpus.decontamination.letter_stream.BATCH_CHARS", 70)
    ratios = {
        round(hit.ratio, 6)
        for before in range(100, 170)
        for hit in index.find([other[:before] + item[:16] + other[:29] + item[16:] + other[:100]])
    }
    assert ratios == {0.931034}


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
    chosen = [
        n for n, text in enumerate(klue_dev) if len(text.split()) >= 4 and len(fold(text)) >= CONFIG.min_item_chars
    ]
    assert len(chosen) > 10_000
    chosen = rng.sample(chosen, 4_000)

    def share_found(change: Callable[[list[str]], str]) -> float:
        hits = index.find([change(klue_dev[n].split()) for n in chosen])
        return len({hit.sentence for hit in hits if hit.item == numbers[chosen[hit.sentence]]}) / len(chosen)

    assert share_found(" ".join) == 1
    assert share_found(lambda words: without_some_blanks(words, rng)) == 1
    assert share_found(lambda words: f"{rng.choice(klue_dev)} {' '.join(words)} {rng.choice(klue_dev)}") == 1
    assert share_found(lambda words: with_a_word_replaced(words, rng, klue_dev)) >= 0.94


def test_petitions_are_left_alone(klue_dev: list[str], petitions: list[str]) -> None:
    """Matches with a ratio above 0.8 are true copies: the constitution, quoted in petitions and in KLUE."""
    index, _ = build_index(klue_dev, CONFIG)
    wrong = {h.sentence for h in index.find(petitions) if h.item < len(index.total_D) and h.ratio < 0.8}
    assert len(petitions) > 60_000
    assert len(wrong) <= 0.0001 * len(petitions)


def test_decisions_on_real_text_equal_brute_force(klue_dev: list[str], petitions: list[str]) -> None:
    rng = Random(4)
    distinct = list({fold(text): text for text in klue_dev if len(fold(text)) >= CONFIG.min_item_chars}.values())
    benchmark = rng.sample(distinct, 1000)
    queries = rng.sample(petitions, 40) + sorted(petitions, key=len)[-5:] + benchmark[:20]
    queries += [with_a_word_replaced(text.split(), rng, petitions) for text in rng.sample(benchmark, 80)]
    queries += [f"{rng.choice(petitions)} {text} {rng.choice(petitions)}" for text in rng.sample(benchmark, 20)]
    assert_decides_like_brute_force(benchmark, queries, at_least=80)
