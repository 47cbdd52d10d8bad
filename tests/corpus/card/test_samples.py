"""Samples of dropped and changed text contain no personal data, wherever the text is cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from corpus.card.samples import (
    CHANGED,
    CHANGED_NAME,
    DROPPED,
    DROPPED_NAME,
    UnitSamples,
    read_unit_samples,
    write_samples,
)
from corpus.pii.hide import DocumentHider, PiiHider
from corpus.reading.read import Record

PHONE, HEALTH = "010-0123-4567", "1-2345678901"
HIDER = DocumentHider(PiiHider(), b"salt")
RECORD = Record("a.txt@0", "a", "책", "")


def rows_of(shown: UnitSamples, folder: Path, name: str) -> list[dict[str, Any]]:
    shown.write(folder)
    write_samples(
        folder / "samples.parquet", read_unit_samples(folder / name), DROPPED if name == DROPPED_NAME else CHANGED
    )
    return list(pq.read_table(folder / "samples.parquet").to_pylist())


@pytest.mark.parametrize("distance", [*range(40, 76, 3), *range(100, 128, 3)])
@pytest.mark.parametrize("is_before", [True, False])
def test_a_value_at_the_edge_of_an_excerpt_is_never_shown_in_part(
    tmp_path: Path, distance: int, is_before: bool
) -> None:
    shown = UnitSamples(0, HIDER)
    filler = ("나무가 선다 " * 40)[:distance]
    parts = (f"문의 {PHONE} {filler}", "") if is_before else ("", f"{filler} 문의 {PHONE} 끝")
    shown.change("hashtag", RECORD, f"{parts[0]}#해시{parts[1]}", f"{parts[0]}{parts[1]}")
    [row] = rows_of(shown, tmp_path, CHANGED_NAME)
    assert "#해시" in row["before"] and "#해시" not in row["after"]
    assert not any(digit in row["before"] + row["after"] for digit in "0123456789")


def test_a_label_in_the_previous_sentence_counts(tmp_path: Path) -> None:
    shown = UnitSamples(0, HIDER)
    shown.drop("is_too_short", RECORD, f"{HEALTH}입니다.", "건강보험증 번호를 불러 주세요.")
    [row] = rows_of(shown, tmp_path, DROPPED_NAME)
    assert row["text"] == "[HEALTH]입니다."


def test_a_run_that_keeps_personal_data_shows_it(tmp_path: Path) -> None:
    shown = UnitSamples(0, DocumentHider(PiiHider(types=frozenset())))
    shown.drop("is_too_short", RECORD, PHONE)
    shown.change("hashtag", RECORD, f"#봄 {PHONE}", f" {PHONE}")
    assert rows_of(shown, tmp_path, DROPPED_NAME)[0]["text"] == PHONE
    assert rows_of(shown, tmp_path, CHANGED_NAME)[0]["after"] == PHONE


def test_names_of_sources_and_documents_are_public(tmp_path: Path, clean: Callable[..., Any]) -> None:
    mail = "gaeun.kim@example.com"
    record = {"id": mail, "source": f"{mail}의 글", "text": "첫 글이다."}
    address = {"id": "b", "source": "https://news.example.com", "text": "둘째 글이다."}
    lines = [json.dumps(row, ensure_ascii=False) for row in (record, address)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), "utf-8")
    clean(tmp_path / "a.jsonl")
    statistics = json.loads((tmp_path / "out" / "statistics.json").read_text("utf-8"))
    assert list(statistics["sources"]) == ["[EMAIL]의 글", "https://news.example.com"]


def test_documents_with_some_hidden_sentences_are_sampled(tmp_path: Path, clean: Callable[..., Any]) -> None:
    (tmp_path / "a.txt").write_text(f"오늘은 비가 왔다. 문의는 {PHONE} 으로 주세요.\n\n내일은 맑다.\n", "utf-8")
    clean(tmp_path / "a.txt", pii={"mode": "tag"})
    rows = pq.read_table(tmp_path / "out" / "changed" / "samples.parquet").to_pylist()
    [row] = [row for row in rows if "TEL" in row["rule"]]
    assert row["before"] == row["after"] == "문의는 [TEL] 으로 주세요."
