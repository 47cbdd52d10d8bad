"""CSV, TSV and Parquet through ``malmoi pii``; the csv module and pyarrow are the judges."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.pii.hide import PiiHider
from launch.pii.table_text import Table, change_row, choose_delimiter, looks_like_a_head, rows_of
from launch.pii.work import Hiding

Malmoi = Callable[..., subprocess.CompletedProcess[bytes]]
TEL = "010-0123-4567"
TAGS = Hiding(PiiHider("tag"))


@given(st.text(alphabet='가a,"\t;\r\n ', max_size=40), st.sampled_from(",\t;"), st.integers(1, 9))
@example('"a""b"c,d"e"\r\n"x\r\ny",\n', ",", 1)
def test_rows_are_those_of_the_csv_module_for_any_size_of_block(text: str, delimiter: str, size: int) -> None:
    blocks = [text[start : start + size] for start in range(0, len(text), size)]
    found = list(rows_of(blocks, delimiter))
    assert "".join(row.raw for row in found) == text
    wanted = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    # a line that holds nothing is one empty cell here, none there
    assert [[] if row.values == [""] and row.raw[:1] != '"' else row.values for row in found] == wanted


CELLS = st.lists(st.sampled_from([TEL, f"문의 {TEL}", "맑다.", 'a "b"', "x,y", "", "둘째\n줄"]), min_size=2, max_size=4)


@given(st.lists(CELLS, max_size=4), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_only_cells_with_personal_data_change(rows: list[list[str]], quoting: int) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    table = Table()
    table.is_known = True
    out = [change_row(table, row, TAGS, 0) for row in rows_of([written.getvalue()], ",")]
    assert "".join(out) == written.getvalue().replace(TEL, "[TEL]")


def test_a_value_that_needs_quotes_gets_them() -> None:
    class Odd(Hiding):
        def hidden(self, text: str, document: str, label: str = "") -> str:
            return 'a "b", c'

    [row] = rows_of(["x,y\n"], ",")
    assert change_row(Table(), row, Odd(PiiHider()), 0) == '"a ""b"", c","a ""b"", c"\n'


def test_the_head_of_a_column_announces_its_cells_and_stays(malmoi: Malmoi, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("\ufeff이름,계좌번호,비고\r\n김가온,110260549660,\r\n".encode())
    [record] = [json.loads(line) for line in malmoi("detect", "a.csv").stdout.splitlines()]
    assert record == {
        "이름": "김가온", "계좌번호": "110260549660", "비고": "", "spans": {"/계좌번호": [[0, 12, "ACCOUNT"]]},
    }  # fmt: skip
    out = malmoi("replace", "a.csv", "--mode", "mask").stdout.decode()
    assert out == "\ufeff이름,계좌번호,비고\r\n김가온,************,\r\n"


def test_a_table_without_a_head_loses_nothing_of_its_first_row(malmoi: Malmoi) -> None:
    text = f"1,{TEL},비고\n계좌번호,110-260-549660,\n"
    out = malmoi("replace", "-", "--format", "csv", "--mode", "tag", stdin=text).stdout.decode()
    assert out == "1,[TEL],비고\n계좌번호,[ACCOUNT],\n"
    first = json.loads(malmoi("detect", "-", "--format", "csv", stdin=text).stdout.splitlines()[0])
    assert first["spans"] == {"/2": [[0, 13, "TEL"]]}


def test_a_number_that_is_split_over_columns_is_hidden_in_all_of_them(malmoi: Malmoi) -> None:
    text = "이름,앞번호,뒷번호,tel1,tel2,tel3\n가온,870523,1234567,010,3847,2291\n나래,12,30,1,2,3\n"
    out = malmoi("replace", "-", "--format", "csv", "--mode", "mask", stdin=text).stdout.decode().splitlines()
    assert out[1:] == ["가온,******,*******,***,****,****", "나래,12,30,1,2,3"]
    tagged = malmoi("replace", "-", "--format", "csv", "--mode", "tag", stdin=text).stdout.decode().splitlines()
    assert tagged[1] == "가온,[RRN],[RRN],[TEL],[TEL],[TEL]"


@pytest.mark.parametrize(
    ("values", "is_head"),
    [(["이름", "전화"], True), (["이름", ""], False), (["a", "a"], False),
     (["이름", TEL], False), (["hong@naver.com"], False)],
)  # fmt: skip
def test_a_head_names_columns(values: list[str], is_head: bool) -> None:
    assert looks_like_a_head(values) == is_head


def test_columns_may_be_chosen(malmoi: Malmoi) -> None:
    text = f"전화\t메모\n{TEL}\t{TEL}\n"
    out = malmoi("replace", "-", "--format", "tsv", "--fields", "메모", "--mode", "tag", stdin=text).stdout.decode()
    assert out == f"전화\t메모\n{TEL}\t[TEL]\n"
    result = malmoi("replace", "-", "--format", "tsv", "--fields", "본문", stdin=text)
    assert result.returncode == 2 and "found: 전화, 메모" in result.stderr.decode()


def test_the_delimiter_is_the_one_there_is() -> None:
    assert [choose_delimiter(head, False) for head in ("a,b;c", "a;b", "a\tb", "a", "\n")] == [",", ";", "\t", ",", ","]
    assert choose_delimiter("a,b", True) == "\t"


def parquet(path: Path) -> Path:
    table = pa.table(
        {
            "id": ["a", "b", "a"],
            "text": pa.array([f"전화 {TEL}", None, TEL], pa.large_string()),
            "phones": [[TEL], [], None],
            "person": [{"phone": TEL, "n": 1}] * 3,
            "kind": pa.array([TEL] * 3).dictionary_encode(),
            "day": [date(2025, 3, 1)] * 3,
        }
    )
    pq.write_table(table.replace_schema_metadata({"made by": "a test"}), path)
    return path


def test_parquet_changes_in_chosen_columns_alone(malmoi: Malmoi, tmp_path: Path) -> None:
    before = pq.read_table(parquet(tmp_path / "a.parquet"))
    assert malmoi("replace", "a.parquet", "b.parquet", "--mode", "tag").returncode == 0
    after = pq.read_table(tmp_path / "b.parquet")
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after["text"].to_pylist() == ["전화 [TEL]", None, "[TEL]"]
    assert all(after[name].equals(before[name]) for name in before.column_names if name != "text")
    assert pq.ParquetFile(tmp_path / "b.parquet").metadata.row_group(0).column(1).compression == "ZSTD"
    assert malmoi("replace", "a.parquet", "c.parquet", "--all-fields", "--mode", "tag").returncode == 0
    rows = pq.read_table(tmp_path / "c.parquet")
    assert TEL not in str(rows.to_pylist()) and rows.schema.equals(before.schema)
    assert rows["person"].to_pylist() == [{"phone": "[TEL]", "n": 1}] * 3


def test_parquet_is_shown_as_json_lines(malmoi: Malmoi, tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet")
    first, second, _ = [json.loads(line) for line in malmoi("detect", "a.parquet").stdout.splitlines()]
    assert (first["spans"], first["day"], second["spans"]) == ([[3, 16, "TEL"]], "2025-03-01", [])
    named = json.loads(malmoi("detect", "a.parquet", "--fields", "phones,person.phone").stdout.splitlines()[0])
    assert named["spans"] == {"/phones/0": [[0, 13, "TEL"]], "/person/phone": [[0, 13, "TEL"]]}


def test_a_parquet_row_that_is_no_text_is_left_out(malmoi: Malmoi, tmp_path: Path) -> None:
    texts = pa.array([TEL.encode(), b"\xff", b"x" * 2_000, "맑다.".encode()]).view(pa.string())
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("corpus.reading.containers.RECORD_BYTES", 1_000)
        result = malmoi("replace", "a.parquet", "b.parquet")
        assert result.returncode == 2 and b"a.parquet, row 2: not valid UTF-8" in result.stderr
        assert not (tmp_path / "b.parquet").exists()
        result = malmoi("replace", "a.parquet", "b.parquet", "--mode", "tag", "--on-error", "skip")
    assert b"record_too_long 1, undecodable 1" in result.stderr
    assert pq.read_table(tmp_path / "b.parquet")["text"].to_pylist() == ["[TEL]", "맑다."]


def test_parquet_needs_files(malmoi: Malmoi, tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet")
    assert b"give an OUTPUT" in malmoi("replace", "a.parquet").stderr
    assert b"give its path" in malmoi("detect", "-", stdin=path.read_bytes()).stderr


@pytest.mark.parametrize("options", [[], ["--all-fields"], ["--fields", "text"]])
def test_parquet_text_that_is_stored_as_bytes_is_text(malmoi: Malmoi, tmp_path: Path, options: list[str]) -> None:
    schema = pa.schema({"text": pa.binary(), "more": pa.list_(pa.binary())})
    rows = [{"text": f"가 {TEL}".encode(), "more": [TEL.encode()]}, {"text": None, "more": None}]
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "a.parquet")
    assert malmoi("replace", "a.parquet", "b.parquet", "--mode", "tag", *options).returncode == 0
    found = pq.read_table(tmp_path / "b.parquet")
    assert found.schema.types == schema.types and found.column("text").to_pylist() == ["가 [TEL]".encode(), None]
    assert found.column("more").to_pylist() == [[b"[TEL]" if "--all-fields" in options else TEL.encode()], None]
    assert b'"TEL"' in malmoi("detect", "a.parquet", *options).stdout.splitlines()[0]


@pytest.mark.parametrize("command", ["replace", "detect"])
def test_parquet_bytes_that_are_no_utf8_are_refused_or_left_out(malmoi: Malmoi, tmp_path: Path, command: str) -> None:
    rows = pa.table({"text": pa.array([b"a", TEL.encode() + b" \xb0\xa1"], pa.binary())})
    pq.write_table(rows, tmp_path / "a.parquet")
    arguments = [command, "a.parquet", f"b.{'parquet' if command == 'replace' else 'jsonl'}", "--all-fields"]
    result = malmoi(*arguments)
    assert result.returncode == 2 and b"row 2: not valid UTF-8" in result.stderr
    assert malmoi(*arguments, "--on-error", "skip").returncode == 0


def test_a_quote_that_is_never_closed_is_a_row_that_cannot_be_read(malmoi: Malmoi, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f'이름,전화\n가,{TEL}\n나,"{TEL}\n다,{TEL}\n', "utf-8")
    result = malmoi("replace", "a.csv", "b.csv", "--mode", "tag")
    assert result.returncode == 2 and b"line 3: a quote in this row" in result.stderr
    assert malmoi("replace", "a.csv", "b.csv", "--mode", "tag", "--on-error", "skip").returncode == 0
    assert (tmp_path / "b.csv").read_text("utf-8") == "이름,전화\n가,[TEL]\n"
    assert json.loads((tmp_path / "b.csv.skipped.jsonl").read_text("utf-8"))["reason"] == "open_quote"
