"""Records of experiments: complete headers, valid tables, and pages that show them as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import record_tables
from benchmarks.record_tables import RECORDS, Record, outdated_pages, read_record, render, render_page, select

FILES = sorted(RECORDS.glob("*/*.csv"))
RECORD = Record(
    "group/name",
    {"title": ["A"], "command": ["run"], "date": ["2026-11-25"], "processor": ["CPU"], "commit": ["abc1234"]},
    ["model", "loss", "note"],
    [["small", "4.5", "a|b"], ["large", "3.25", ""]],
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_record_states_command_date_processor_and_commit(path: Path) -> None:
    record = read_record(path)
    assert record.rows
    assert re.fullmatch(r"\d{4}-\d\d-\d\d( and \d{4}-\d\d-\d\d)?", record.header["date"][0])
    assert re.fullmatch(r"[0-9a-f]{7,40}", record.header["commit"][0])
    assert set(record.header) <= {*record_tables.REQUIRED, "note"}


def test_pages_and_index_show_the_records_as_they_are() -> None:
    assert not [page.name for page, _ in outdated_pages()], "run python -m benchmarks records"


def test_a_table_aligns_numbers_and_names_its_source() -> None:
    assert render(RECORD) == (
        "| model | loss | note |\n|---|---:|---|\n| small | 4.5 | a\\|b |\n| large | 3.25 |  |\n\n"
        "`benchmarks/records/group/name.csv`: 2026-11-25, commit abc1234; CPU.\n"
    )


def test_columns_and_rows_are_selected_by_name() -> None:
    assert select(RECORD, "loss; model", "model=large").rows == [["3.25", "large"]]


@pytest.mark.parametrize(
    ("columns", "filters", "message"), [("size", "", "no column 'size'"), ("", "model=x", "no row")]
)
def test_a_selection_without_a_match_is_an_error(columns: str, filters: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        select(RECORD, columns, filters)


def test_text_between_markers_is_replaced_and_stays_the_same_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_tables, "RECORDS", tmp_path)
    (tmp_path / "g").mkdir()
    header = "# title: A\n# command: run\n# date: 2026-11-25\n# processor: CPU\n# commit: abc1234\n"
    (tmp_path / "g" / "n.csv").write_text(header + "a,b\n1,x\n2,y\n", encoding="utf-8")
    page = "before\n\n<!-- record g/n: a | b=y -->\nold\n<!-- end record -->\nafter\n"
    once = render_page(page)
    assert "| a |\n|---:|\n| 2 |\n" in once and "old" not in once
    assert once.startswith("before\n") and once.endswith("<!-- end record -->\nafter\n")
    assert render_page(once) == once


def test_a_record_without_a_command_or_with_a_short_row_is_an_error(tmp_path: Path) -> None:
    header = "# title: A\n# date: 2026-11-25\n# processor: CPU\n# commit: abc1234\n"
    path = tmp_path / "n.csv"
    path.write_text(header + "a,b\n1,x\n", encoding="utf-8")
    with pytest.raises(ValueError, match="missing: command"):
        read_record(path)
    path.write_text("# command: run\n" + header + "a,b\n1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="row 1 has 1 cells; expected 2"):
        read_record(path)
