"""FineWeb2's document rules: each rule by an example, and parity with datatrove's own filters on real text."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from corpus.noise.remove import remove_noise
from corpus.quality import fineweb2
from corpus.quality.characters import class_table, read_characters
from corpus.quality.fineweb2 import RULES, STOP_WORDS, failed_rules

PROSE = """할머니는 새벽마다 시장 어귀에 나가 갓 딴 호박과 고추를 펼쳐 놓으셨다.
비가 오는 날이면 파는 사람도 사는 사람도 드물어 골목이 조용했다.
그래도 단골들은 우산을 받쳐 들고 와서 안부를 묻고 갔다.
나는 방학이 되면 그 옆에 앉아 잔돈을 세는 일을 맡았다.
동전이 모자라면 건너편 방앗간에 뛰어가 바꿔 왔다.
점심때가 지나면 국숫집에서 김이 오르는 그릇이 배달되었다."""
FAILING = {
    "repeated_lines": f"{PROSE}\n" + "\n".join(["다음 글 보기 목록으로 돌아가기 버튼이 있는 긴 줄이다."] * 7),
    "top_2_gram": "비가 온다 그래도 비가 온다 하지만 비가 온다 어쩌면 비가 온다 그러면 비가 온다.",
    "top_3_gram": "아주 먼 옛날 눈이 왔다. 아주 먼 옛날 비가 갰다. 아주 먼 옛날 해가 떴다. 아주 먼 옛날 달이 졌다.",
    "top_4_gram": "".join(
        f"문의는 언제든지 저희에게 주세요 {n}번 {w} 봅시다 하고. " for n, w in enumerate("산강들논밭")
    ),
    "repeated_5_grams": PROSE.replace("\n", " 하고 나서 ") + " 또 " + " 또 ".join(PROSE.split("\n")),
    "few_final_lines": PROSE.replace(".", ""),
    "repeated_line_chars": f"{PROSE}\n{PROSE.splitlines()[0]}",
    "many_line_ends": PROSE.replace(" ", "\n"),
    "long_words": PROSE.replace(" ", ""),
    "many_hashes": PROSE.replace(" ", " #"),
    "many_ellipses": PROSE.replace(" ", "... "),
    "many_bullet_lines": "\n".join(f"- {line}" for line in PROSE.splitlines()),
    "many_ellipsis_lines": "\n".join(line + ("…" if n % 2 else "") for n, line in enumerate(PROSE.splitlines())),
    "few_letter_words": PROSE + " 10 20 30 40 50 60 70 80 90 11 21 31 41 51 61 71 81 91.",
    "few_stop_words": "The weather was cold, so we stayed at home and read an old book until the evening came again.",
}


def first_failed(texts: list[str]) -> list[str | None]:
    failed = failed_rules(read_characters(texts), texts)
    return [next((name for name in RULES if failed[name][n]), None) for n in range(len(texts))]


def test_prose_passes_and_each_rule_finds_its_example() -> None:
    assert first_failed([PROSE]) == [None]
    found = failed_rules(read_characters(list(FAILING.values())), list(FAILING.values()))
    for n, name in enumerate(FAILING):
        assert found[name][n], name
    assert tuple(found) == RULES


@pytest.mark.parametrize(
    ("ends", "is_enough"), [("서울에서 바다의", True), ("호수서 바다의", False), ("서울에서", False)]
)
def test_two_different_stop_words_are_enough(ends: str, is_enough: bool) -> None:
    text = f"{FAILING['few_stop_words']} {ends}"
    assert bool(failed_rules(read_characters([text]), [text])["few_stop_words"][0]) is not is_enough


def test_repeats_that_only_the_rule_for_the_longest_n_grams_finds() -> None:
    words = ["".join(pair) for pair in product("가나다라마바사", repeat=2)][:36]
    text = " ".join([*words, *words[:12]]) + "."
    failed = failed_rules(read_characters([text]), [text])
    assert [name for name in RULES if failed[name][0]] == ["repeated_10_grams"]


def test_documents_do_not_influence_each_other() -> None:
    texts = [PROSE, *FAILING.values(), PROSE, "", "글"] * 3
    alone = [rule for text in texts for rule in first_failed([text])]
    assert first_failed(texts) == alone


@pytest.mark.parametrize("piece", ["가나 다라 ", "가", "가 ", "가나다.\n", "...", "#", "- 가\n", "1 2 3\n"])
def test_time_grows_with_length_only(piece: str) -> None:
    seconds = []
    for size in (200_000, 400_000):
        text = (piece * (size // len(piece))).strip()
        start = time.process_time()
        failed_rules(read_characters([text]), [text])
        seconds.append(time.process_time() - start)
    assert seconds[1] < 3 * seconds[0] + 0.5


# --- parity

REASONS = {
    "dup_line_frac": "repeated_lines", "line_punct_ratio": "few_final_lines", "char_dup_ratio": "repeated_line_chars",
    "list_ratio": "many_line_ends", "gopher_below_avg_threshold": "short_words",
    "gopher_above_avg_threshold": "long_words", "gopher_too_many_hashes": "many_hashes",
    "gopher_too_many_ellipsis": "many_ellipses", "gopher_too_many_bullets": "many_bullet_lines",
    "gopher_too_many_end_ellipsis": "many_ellipsis_lines", "gopher_below_alpha_threshold": "few_letter_words",
    "gopher_enough_stop_words": "few_stop_words",
    **{f"top_{n}_gram": f"top_{n}_gram" for n in (2, 3, 4)},
    **{f"duplicated_{n}_n_grams": f"repeated_{n}_grams" for n in range(5, 11)},
}  # fmt: skip
DOCUMENTS, SEED = 8_000, 0


def cut_off_stop_words(text: str) -> list[str]:
    """Blank-space words, and the stop words at their ends, which a morpheme analyzer would split off."""
    words = text.split()
    return words + [stop for word in words for stop in STOP_WORDS if word.endswith(stop)]


def datatrove_filters(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str | None]:
    """FineWeb2's three filters with blank-space words; stop words are looked for in ``cut_off_stop_words``."""
    from datatrove.data import Document
    from datatrove.pipeline.filters import FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter
    from datatrove.utils import text as text_module

    words: dict[str, Callable[[str], list[str]]] = {"blank": str.split, "stop": cut_off_stop_words}

    class Splitter:
        def __init__(self, language: str) -> None:
            self.word_tokenize = words[language]

    monkeypatch.setattr("datatrove.utils.word_tokenizers.load_word_tokenizer", Splitter)
    text_module.split_into_parts.cache_clear()
    limits = ("min_doc_words", "max_doc_words", "min_avg_word_length", "max_avg_word_length", "max_symbol_word_ratio",
              "max_bullet_lines_ratio", "max_ellipsis_lines_ratio", "max_non_alpha_words_ratio")  # fmt: skip
    no_limits: dict[str, Any] = dict.fromkeys(limits, 0)
    filters = [
        GopherRepetitionFilter(
            language="blank", dup_para_frac=0, dup_line_char_frac=0, dup_para_char_frac=0, dup_line_frac=0.374,
            top_n_grams=((2, 0.282), (3, 0.228), (4, 0.185)),
            dup_n_grams=((5, 0.201), (6, 0.184), (7, 0.168), (8, 0.154), (9, 0.14), (10, 0.127)),
        ),
        FineWebQualityFilter(
            language="blank", short_line_thr=999, char_duplicates_ratio=0.1, line_punct_thr=0.062, new_line_ratio=0.196
        ),
        GopherQualityFilter(
            language="blank", min_doc_words=0, max_doc_words=0, min_avg_word_length=1, max_avg_word_length=6,
            max_non_alpha_words_ratio=0.791, min_stop_words=0,
        ),
        GopherQualityFilter(language="stop", stop_words=list(STOP_WORDS), min_stop_words=2, **no_limits),
    ]  # fmt: skip

    def first(text: str) -> str | None:
        for rule in filters:
            result = rule.filter(Document(text=text, id=""))
            if result is not True:
                return REASONS[result[1]]
        return None

    return first


def real_documents(folder: Path) -> list[str]:
    """20,000 cleaned documents of all corpora, evenly from each."""
    texts = []
    for path in sorted(folder.glob("*.jsonl.zst")):
        with path.open("rb") as file:
            lines = list(io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8"))
        count = min(len(lines), 11_200 if path.name.startswith("kowiki") else 1_900)
        rows = (json.loads(lines[n * len(lines) // count])["text"] for n in range(count))
        texts += [text for row in rows if (text := remove_noise(row, Counter()))]
    return texts[:: max(1, len(texts) // DOCUMENTS)][:DOCUMENTS]


def in_batches(texts: list[str], chars: int = 200_000) -> Iterator[list[str]]:
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if sum(map(len, batch[-1:])) > chars or len(batch) * 1_000 > chars:
            yield batch
            batch = []
    yield batch


@pytest.mark.slow
def test_parity_with_datatrove(shared: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = real_documents(shared("data/corpora"))
    theirs_of = datatrove_filters(monkeypatch)
    class_table()
    seconds = np.zeros(2)
    ours: list[str | None] = []
    theirs: list[str | None] = []
    for batch in in_batches(texts):  # in turns, so that other work on the machine slows down both
        start = time.process_time()
        ours += first_failed(batch)
        between = time.process_time()
        theirs += map(theirs_of, batch)
        seconds += [between - start, time.process_time() - between]
    assert len(texts) == DOCUMENTS
    different = [n for n in range(len(texts)) if ours[n] != theirs[n]]
    assert len(different) <= 0.005 * len(texts)  # measured: 0.002
    assert sum(rule is not None for rule in theirs) > 200
    assert all(_is_explained(texts[n], ours[n], theirs[n]) for n in different)
    assert seconds[0] < seconds[1] / 3  # measured: a ninth


def _is_explained(text: str, ours: str | None, theirs: str | None) -> bool:
    """Whether the most frequent n-gram occurs once or twice, in a text of few words; see the module docstring.

    Or both find repeated n-grams, of other lengths: datatrove joins their words, so that "가 나다" equals "가나 다".
    """
    if ours and theirs and ours.startswith("repeated_") and theirs.startswith("repeated_"):
        return True
    if theirs not in {f"top_{n}_gram" for n in fineweb2.MAX_TOP_NGRAMS}:
        return False
    n = int(theirs[4])
    words = text.split()
    counts = Counter(tuple(words[place : place + n]) for place in range(len(words) - n + 1))
    return max(counts.values()) < fineweb2.MIN_TOP_COUNT
