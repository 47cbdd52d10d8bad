"""The shared format, which every stage may import without waiting for torch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus import documents
from corpus.documents.errors import BadInput
from corpus.documents.shards import (
    SCHEMA,
    Document,
    iter_documents,
    read_documents,
    shard_paths,
    split_into_portions,
    write_shard,
)

DOCUMENTS = [Document(f"d{n}", "동화", (f"토끼 {n}마리가 산다.", "여우는 없다.")) for n in range(2_500)]


def test_a_shard_gives_back_what_was_written(tmp_path: Path) -> None:
    assert write_shard(tmp_path / "shard-00000.parquet", DOCUMENTS) == len(DOCUMENTS)
    assert list(read_documents(tmp_path / "shard-00000.parquet")) == DOCUMENTS
    assert [path.name for path in tmp_path.iterdir()] == ["shard-00000.parquet"]


def test_a_folder_without_shards_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no document shards"):
        shard_paths(tmp_path)


@pytest.mark.parametrize("row_groups", [0, 1])
def test_a_shard_without_rows_is_nothing_among_others(tmp_path: Path, row_groups: int) -> None:
    paths = [tmp_path / f"shard-{number:05}.parquet" for number in range(2)]
    with pq.ParquetWriter(paths[0], SCHEMA) as writer:
        for _ in range(row_groups):
            writer.write_table(SCHEMA.empty_table())
    write_shard(paths[1], DOCUMENTS)
    assert pq.ParquetFile(paths[0]).num_row_groups == row_groups

    assert list(read_documents(paths[0])) == []
    tables = (table for portion in split_into_portions(paths, 50_000) for table in portion.tables())
    assert list(iter_documents(tables)) == DOCUMENTS


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ((None, "동화", ["숲."]), "id: 1"),
        (("d", None, ["숲."]), "source: 1"),
        (("d", "동화", None), "sentences: 1"),
        (("d", "동화", [None, "숲.", None]), "a sentence: 2"),
    ],
)
def test_null_where_text_is_expected_is_bad_input(tmp_path: Path, row: tuple[object, ...], place: str) -> None:
    shard = tmp_path / "shard-00000.parquet"
    pq.write_table(pa.table([[value] for value in row], schema=SCHEMA), shard)
    with pytest.raises(BadInput, match=rf"shard-00000\.parquet: null where text is expected \({place}\); delete"):
        list(read_documents(shard))


def test_text_in_other_types_is_read_and_what_is_no_text_is_bad_input(tmp_path: Path) -> None:
    shard, names = tmp_path / "shard-00000.parquet", pa.dictionary(pa.int32(), pa.string())
    fields = [("sentences", pa.large_list(pa.large_string())), ("source", names), ("id", pa.large_string())]
    pq.write_table(pa.table([[["숲.", "강."]], ["동화"], ["d"]], schema=pa.schema(fields)), shard)
    assert list(read_documents(shard)) == [Document("d", "동화", ("숲.", "강."))]

    pq.write_table(pa.table({"id": ["d"], "source": ["동화"], "sentences": ["숲."]}), shard)
    with pytest.raises(BadInput, match=r"damaged shard .*string to list"):
        list(read_documents(shard))


def test_a_shard_that_cannot_be_finished_leaves_nothing(tmp_path: Path) -> None:
    def documents() -> Iterator[Document]:
        yield from DOCUMENTS
        raise RuntimeError("the rest is broken")

    with pytest.raises(RuntimeError, match="the rest is broken"):
        write_shard(tmp_path / "shard-00000.parquet", documents())
    assert list(tmp_path.iterdir()) == []


def test_the_ground_is_imported_without_the_heavy_libraries() -> None:
    names = [path.stem for path in Path(documents.__path__[0]).glob("[a-z]*.py")]
    assert {"shards", "units", "errors", "atomic_files", "escaping", "mecab", "model_files"} <= set(names)
    code = (
        f"import sys; from corpus.documents import {', '.join(names)}\n"
        "sys.exit(', '.join(sorted({'torch', 'transformers', 'datasets', 'mecab'} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
