"""Counting is held to a plain Counter; windows to one answer for every order and split of the documents."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from corpus.documents import Document, write_shard
from tokenizer.count import (
    TYPES_NAME,
    EojeolType,
    chunk_name,
    count_eojeols,
    count_shard,
    merge_shards,
    merge_types,
    read_types,
    write_types,
)

SENTENCE = st.lists(st.sampled_from(["나는", "책을", "읽고", "책을", "산다.", "漢字"]), max_size=6).map(" ".join)
DOCUMENTS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.lists(SENTENCE, max_size=3)).map(
        lambda pair: Document(pair[0], "출처", tuple(pair[1]))
    ),
    max_size=8,
)


def test_counts_and_neighbours_of_one_document() -> None:
    rows = count_eojeols([Document("1", "출처", ("책을 읽고 책을 산다.", "산다.\u3000\u00a0또\u2028산다."))])

    assert [(row.eojeol, row.frequency, row.left, row.right) for row in rows] == [
        ("또", 1, "산다.", "산다."),
        ("산다.", 3, "책을", ""),
        ("읽고", 1, "책을", "책을"),
        ("책을", 2, "", "읽고"),
    ]


@given(DOCUMENTS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_any_order_and_any_split_of_the_documents_give_the_same_rows(documents, random, parts) -> None:
    unique = list({document.id: document for document in documents}.values())
    together = count_eojeols(unique)
    random.shuffle(unique)

    assert list(merge_types(count_eojeols(unique[part::parts]) for part in range(parts))) == together


@given(DOCUMENTS)
def test_counts_equal_a_plain_counter(documents: list[Document]) -> None:
    expected = Counter(word for d in documents for sentence in d.sentences for word in sentence.split())

    assert {row.eojeol: row.frequency for row in count_eojeols(documents)} == dict(expected)


def test_odd_characters_survive_the_file(tmp_path: Path) -> None:
    rows = [EojeolType("가\x00나", 2, "00ff", "\u200b", "😀"), EojeolType("나\ufeff", 1, "0a", "", "")]
    write_types(tmp_path / "types.tsv", rows)

    assert list(read_types(tmp_path / "types.tsv")) == rows


def test_long_neighbours_are_cut_at_the_far_end() -> None:
    rows = {
        row.eojeol: row for row in count_eojeols([Document("1", "출처", ("가" * 99 + "나 는 " + "다" + "라" * 99,))])
    }

    assert len(rows["는"].left) == len(rows["는"].right) == 50
    assert rows["는"].left.endswith("나") and rows["는"].right.startswith("다")


def test_shards_are_counted_and_chunked(tmp_path: Path, documents: list[Document], monkeypatch) -> None:
    monkeypatch.setattr("tokenizer.count.TYPES_PER_CHUNK", 7)
    write_shard(tmp_path / "shard-00000.parquet", documents)

    counts = count_shard(tmp_path / "shard-00000.parquet", tmp_path)
    merged = merge_shards([tmp_path / TYPES_NAME], tmp_path)
    rows = [row for number in range(merged["chunks"]) for row in read_types(tmp_path / chunk_name(number))]

    assert counts["sources"] == {"뉴스": 8, "백과": 4}
    assert rows == count_eojeols(documents)
    assert merged == {
        "chunks": -(-len(rows) // 7), "types": len(rows), "eojeols": sum(row.frequency for row in rows),
    }  # fmt: skip
