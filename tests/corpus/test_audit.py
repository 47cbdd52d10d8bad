"""The independent audit: what it finds by plain patterns, and that the stage reports what the first detector left."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from corpus import audit
from corpus.audit import MAX_PLACES, Audit, find_simply, texts_to_search
from corpus.pii.detect import Span, find_pii, find_pii_in_sentences
from tests.corpus.test_final_check import PHONE, STORY, write

Clean = Callable[..., dict[str, Any]]
VALUES = {
    "RRN": ("870523-1234561", "8705231234569", "010203-3123456"),
    "CARD": ("4111-1111-1111-1111", "4111 1111 1111 1111", "4111111111111111"),
    "BRN": ("123-45-67891",),
    "TEL": ("010-8879-6145", "01088796145", "010.8879.6145", "02-345-6789", "031-345-6789", "070-1234-5678"),
    "DRIVER": ("11-19-123456-78",),
    "EMAIL": ("gildong77@naver.com", "a.b@mail.example.co.kr"),
}
OTHERS = (
    "871323-1234561", "870532-1234561", "8705231234560", "4111-1111-1111-1112", "4111-1111 1111-1111", "123-45-67890",
    "110-8879-6145", "0108879614512", "09-345-6789", "1998-10-12", "3.14159265358979", "@gildong", "a@b",
    "99-19-123456-78",
)  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in VALUES.items() for value in values])
def test_plain_values_are_found_next_to_anything(name: str, value: str) -> None:
    for before, after in (("", ""), ("접수 ", "로"), ("메일로 드릴께요.", " 가"), ("(", ")"), ("5월 1일에 ", "이 3번")):
        text = f"{before}{value}{after}"
        assert (name, len(before), len(before) + len(value)) in find_simply(text)
        assert texts_to_search(pa.array(["가1234567", "", text, "가나다라마바", None, text]).slice(1)) == [1, 4]


@pytest.mark.parametrize("value", OTHERS)
def test_other_numbers_have_a_wrong_date_digit_or_form(value: str) -> None:
    assert find_simply(f"그것은 {value}이다.") == []


def test_the_audit_imports_nothing_of_the_first_detector() -> None:
    tree = ast.parse(Path(audit.__file__).read_text("utf-8"))
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert not [module for module in modules if module and module.startswith("corpus")]


@pytest.mark.parametrize("mode", ["replace", "mask", "tag", "drop"])
def test_replacements_are_no_finding(tmp_path: Path, clean: Clean, mode: str) -> None:
    counts = clean(write(tmp_path / "a.jsonl", STORY), pii={"mode": mode})
    report = json.loads((tmp_path / "out" / "audit.json").read_text("utf-8"))
    assert (report["left"], report["places"], counts["audit"]) == ({}, [], {})
    assert report["texts"] > 10


def blind(*given: Any, **more: Any) -> list[Span]:
    """The detector without numbers of telephones."""
    return [span for span in find_pii(*given, **more) if span.type != "TEL"]


def test_what_the_first_detector_misses_is_reported_by_place_and_not_replaced(
    tmp_path: Path, clean: Clean, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in ("hide", "replace", "cover", "detect"):
        if hasattr(__import__(f"corpus.pii.{module}", fromlist=["x"]), "find_pii"):
            monkeypatch.setattr(f"corpus.pii.{module}.find_pii", blind)
    monkeypatch.setattr("corpus.final_check.find_pii", blind)
    counts = clean(write(tmp_path / "a.jsonl", STORY), pii={"mode": "tag"})
    report = json.loads((tmp_path / "out" / "audit.json").read_text("utf-8"))
    assert counts["audit"]["TEL"] == report["left"]["TEL"] >= 3
    assert "documents/shard-00000.parquet, document 1: TEL" in report["places"]
    assert PHONE not in json.dumps(report)
    assert "the independent audit found what may be personal data (TEL " in caplog.text
    documents = (tmp_path / "out" / "documents").iterdir()
    assert any(find_pii_in_sentences([PHONE]) and path.stat().st_size for path in documents)


def test_places_are_limited_and_results_add_up() -> None:
    one, both = Audit(), Audit()
    one.read(pa.array([PHONE] * (MAX_PLACES + 5)), lambda n: f"row {n + 1}", lambda *given: False)
    both.add(one.result())
    both.add(one.result())
    assert both.result()["left"] == {"TEL": 2 * (MAX_PLACES + 5)}
    assert both.places == [f"row {n + 1}: TEL" for n in range(MAX_PLACES)]


def test_a_run_that_keeps_personal_data_is_not_audited(tmp_path: Path, clean: Clean) -> None:
    assert clean(write(tmp_path / "a.jsonl", STORY), pii={"mode": "keep"})["audit"] == {}
    assert not (tmp_path / "out" / "audit.json").exists()
