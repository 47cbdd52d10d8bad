"""Parquet files of other writers: encodings of strings, columns without text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus.documents.errors import BadInput
from corpus.reading.inputs import find_inputs
from corpus.reading.read import Record, Unit, check_first_records, read_unit

ROWS = {"id": [f"a{n}" for n in range(300)], "text": [f"오늘은 {n}번째 맑은 날이다." for n in range(300)]}


@pytest.mark.parametrize("column", ["id", "text"])
@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_strings_of_every_encoding_are_read(encoding: str, column: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(ROWS), path, use_dictionary=False, column_encoding={column: encoding}, row_group_size=100)
    (item,) = find_inputs([str(path)], {}, "text")
    found = list(read_unit(Unit(item.inspected()), Counter()))
    assert [row.text for row in found if isinstance(row, Record)] == ROWS["text"]


def test_a_column_of_numbers_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"label": [1, 2, 3]}), path)
    with pytest.raises(BadInput, match="no text under 'label'"):
        check_first_records(find_inputs([str(path)], {}, "label"))


@pytest.mark.parametrize("is_here", [False, True])
def test_hidden_files_and_folders_are_not_read(is_here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", ".git/b.txt", "more/.ipynb_checkpoints/c.txt", "more/d.txt", ".e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("맑은 날이다.", "utf-8")
    found = find_inputs(["." if is_here else str(tmp_path)], {}, "text")
    assert sorted(Path(item.path).name for item in found) == ["a.txt", "d.txt"]
