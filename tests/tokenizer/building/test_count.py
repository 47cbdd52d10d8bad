"""Counting is held to a plain Counter; windows to one answer for every order and split of the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.documents.shards import Document, to_table, write_shard
from tokenizer.building.count import (
    EojeolType,
    count_characters,
    count_eojeols,
    count_portion,
    count_table,
    divide,
    lowest_frequency,
    merge_partition,
    merge_types,
    rows_of,
    run_name,
)

SENTENCE = st.lists(st.sampled_from(["나는", "책을", "읽고", "책을", "산다.", "漢字"]), max_size=6).map(" ".join)
ODD = st.text("가나 \t\u3000\u2028\x00\x1c\x85\u200b😀e\u0301\u1100", max_size=12)
DOCUMENTS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.lists(st.one_of(SENTENCE, ODD), max_size=3)).map(
        lambda pair: Document(pair[0], "출처", tuple(pair[1]))
    ),
    max_size=8,
)


def slow_types(documents: Sequence[Document]) -> list[EojeolType]:
    """One eojeol after another; the window is that of the document with the smallest hash."""

    def key(document: Document) -> int:
        content = "\n".join((document.id, *document.sentences)).encode()
        return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")

    counts: Counter[str] = Counter()
    documents_of: Counter[str] = Counter()
    windows: dict[str, tuple[str, str]] = {}
    for document in sorted(documents, key=key):
        documents_of.update({eojeol for sentence in document.sentences for eojeol in sentence.split()})
        for sentence in document.sentences:
            eojeols = ["", *sentence.split(), ""]
            counts.update(eojeols[1:-1])
            for left, eojeol, right in zip(eojeols, eojeols[1:], eojeols[2:], strict=False):
                windows.setdefault(eojeol, (left[-4:], right[:3]))
    return [EojeolType(eojeol, counts[eojeol], *windows[eojeol], documents_of[eojeol]) for eojeol in sorted(counts)]


def test_counts_and_neighbours_of_one_document() -> None:
    rows = count_eojeols([Document("1", "출처", ("책을 읽고 책을 산다.", "산다.\u3000\u00a0또\u2028산다."))])

    assert rows == [
        EojeolType("또", 1, "산다.", "산다."),
        EojeolType("산다.", 3, "책을", ""),
        EojeolType("읽고", 1, "책을", "책을"),
        EojeolType("책을", 2, "", "읽고"),
    ]


@given(DOCUMENTS)
def test_rows_equal_those_of_a_slow_count(documents: list[Document]) -> None:
    assert count_eojeols(documents) == slow_types(documents)


@given(DOCUMENTS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_any_order_and_any_split_of_the_documents_give_the_same_rows(documents, random, parts) -> None:
    together = count_eojeols(documents)
    random.shuffle(documents)
    counted = [count_table(to_table(documents[part::parts])) for part in range(parts)]

    assert sorted(rows_of(merge_types(counted))) == together


@given(st.text(max_size=20))
def test_words_are_those_that_python_splits(text: str) -> None:
    rows = count_eojeols([Document("1", "출처", (text,))])

    assert {row.eojeol: row.frequency for row in rows} == dict(Counter(text.split()))


def test_long_neighbours_are_cut_at_the_far_end() -> None:
    sentence = "가" * 99 + "나 는 " + "다" + "라" * 99
    rows = {row.eojeol: row for row in count_eojeols([Document("1", "출처", (sentence,))])}

    assert (rows["는"].left, rows["는"].right) == ("가가가나", "다라라")


def count_shards(shards: list[Path], scratch: Path, partitions: int) -> list[EojeolType]:
    """All types of shards by way of runs and partitions."""
    runs = []
    for number, portion in enumerate(divide(shards)[0]):
        home = scratch / f"portion-{number}"
        home.mkdir()
        counts = count_portion(portion, home, partitions=partitions)
        runs += [home / run_name(run) for run in range(counts["runs"])]
    rows = []
    for partition in range(partitions):
        home = scratch / f"partition-{partition}"
        home.mkdir()
        merge_partition(partition, home, runs=runs)
        rows += rows_of(pa.parquet.read_table(home / "types.parquet"))
    return sorted(rows)


@pytest.mark.parametrize("max_types", [3, 2_000_000])
def test_runs_on_disk_and_partitions_change_nothing(
    tmp_path: Path, documents: list[Document], monkeypatch: pytest.MonkeyPatch, max_types: int
) -> None:
    monkeypatch.setattr("tokenizer.building.count.MAX_TYPES", max_types)  # 3: every batch of documents is a run
    monkeypatch.setattr("tokenizer.building.count.BATCH_BYTES", 1)
    monkeypatch.setattr("tokenizer.building.count.SMALLEST_PORTION", 1)
    monkeypatch.setattr("corpus.documents.shards.ROW_GROUP_DOCUMENTS", 2)
    shards = [tmp_path / "shard-00000.parquet", tmp_path / "shard-00001.parquet"]
    write_shard(shards[0], documents[:7])
    write_shard(shards[1], documents[7:])

    assert len(divide(shards)[0]) == 7  # 4 + 3 row groups
    assert count_shards(shards, tmp_path, 3) == slow_types(documents)


def test_row_groups_of_any_size_are_counted_in_batches_of_one_size(tmp_path: Path, monkeypatch) -> None:
    long, short = "가나다 라마바 " * 2_000, "가나다"
    documents = [Document(str(n), "출처", (long if n % 3 else short,)) for n in range(60)]
    write_shard(tmp_path / "shard-00000.parquet", documents)
    sizes = []

    def remember(table: pa.Table) -> pa.Table:
        sizes.append(table.nbytes)
        return count_table(table)

    monkeypatch.setattr("tokenizer.building.count.BATCH_BYTES", 200_000)
    monkeypatch.setattr("tokenizer.building.count.count_table", remember)
    count_portion(divide([tmp_path / "shard-00000.parquet"])[0][0], tmp_path, partitions=1)

    assert len(sizes) > 5 and max(sizes) < 400_000


def test_a_portion_reports_its_contents(tmp_path: Path, documents: list[Document]) -> None:
    shard = tmp_path / "shard-00000.parquet"
    write_shard(shard, documents)

    counts = count_portion(divide([shard])[0][0], tmp_path, partitions=1)
    merged = merge_partition(0, tmp_path, runs=[tmp_path / run_name(0)])
    eojeols = [eojeol for document in documents for sentence in document.sentences for eojeol in sentence.split()]

    assert counts["sources"] == {"뉴스": 8, "백과": 4}
    assert counts["characters"] == sum(len(sentence) for document in documents for sentence in document.sentences)
    assert (merged["types"], merged["eojeols"]) == (len(set(eojeols)), len(eojeols))
    assert merged["frequencies"] == {str(k): n for k, n in Counter(Counter(eojeols).values()).items()}
    assert merged["characters"] == dict(Counter("".join(eojeols)))


def test_characters_count_as_often_as_their_texts() -> None:
    assert count_characters(["가나", "나", "😀"], pa.array([2, 5, 1]).to_numpy()) == {"가": 2, "나": 7, "😀": 1}
    assert count_characters([], pa.array([], pa.int64()).to_numpy()) == {}


@pytest.mark.parametrize(("most", "lowest"), [(1, 9), (2, 9), (3, 5), (5, 5), (6, 2), (99, 1)])
def test_only_the_most_frequent_types_are_analysed(most: int, lowest: int) -> None:
    frequencies = {9: 2, 5: 1, 2: 3, 1: 10}

    assert lowest_frequency(frequencies, most) == lowest


def test_growth_of_a_corpus_adds_partitions_and_enlarges_portions(tmp_path, monkeypatch) -> None:
    sizes = {tmp_path / "small": [1 << 20], tmp_path / "large": [64 << 20] * 1_000}
    for module in ("tokenizer.building.count", "corpus.documents.shards"):
        monkeypatch.setattr(f"{module}.row_group_sizes", sizes.__getitem__)

    assert [len(divide([shard])[0]) for shard in sizes] == [1, 1_000]
    assert [divide([shard])[1] for shard in sizes] == [1, 2393]
