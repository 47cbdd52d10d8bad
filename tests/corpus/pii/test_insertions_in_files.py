"""No inserted value with a telling format passes through ``malmoi pii replace`` or the stage."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from corpus.documents.shards import read_documents, shard_paths
from launch.cli import main
from tests.corpus.pii.insertions import (
    OTHER_WRITINGS,
    TELLING_WRITINGS,
    Insertion,
    Writing,
    draw_cases,
    read_sentences,
)
from tests.corpus.pii.test_insertions import MAX_MISSED_SHARE
from tests.corpus.test_final_check import texts_of

COUNT = 4_000
KEY = "접수자"
"""Recipient of an application. A word in it, 접수 (receipt), once hid nine types of numbers."""

pytestmark = pytest.mark.slow


def as_text(texts: Sequence[str]) -> str:
    return "\n".join(texts) + "\n"


def as_json_lines(texts: Sequence[str]) -> str:
    return "".join(json.dumps({"id": f"d{n}", KEY: text}, ensure_ascii=False) + "\n" for n, text in enumerate(texts))


def as_table(texts: Sequence[str]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["id", KEY], *((f"d{n}", text) for n, text in enumerate(texts))])
    return file.getvalue()


def from_text(content: str) -> list[str]:
    return content.split("\n")[:-1]


def from_json_lines(content: str) -> list[str]:
    return [json.loads(line)[KEY] for line in content.split("\n")[:-1]]


def from_table(content: str) -> list[str]:
    return [row[KEY] for row in csv.DictReader(io.StringIO(content, newline=""))]


FORMS = {"txt": (as_text, from_text), "jsonl": (as_json_lines, from_json_lines), "csv": (as_table, from_table)}


def draw(folder: Path, writings: Sequence[Writing], seed: int) -> list[Insertion]:
    return list(draw_cases(Random(seed), read_sentences(folder), writings, COUNT))


def value_of(case: Insertion) -> str:
    return case.text[case.start : case.end]


def left_in(cases: Sequence[Insertion], texts: Sequence[str]) -> list[tuple[str, str]]:
    """Text before and after, where the value is left."""
    return [(case.text, text) for case, text in zip(cases, texts, strict=True) if value_of(case) in text]


def pii_replace(source: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What ``malmoi pii replace`` makes of a file."""
    target = source.with_name(f"safe-{source.name}")
    fields = [] if source.suffix == ".txt" else ["--fields", KEY]
    monkeypatch.setattr(sys, "argv", ["malmoi", "pii", "replace", str(source), str(target), "--seed", "1", *fields])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return target.read_bytes().decode()


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize(("writings", "max_share"), [(TELLING_WRITINGS, 0), (OTHER_WRITINGS, MAX_MISSED_SHARE)])
def test_no_inserted_value_is_left_in_a_file(
    tmp_path: Path,
    shared: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    writings: list[Writing],
    max_share: float,
) -> None:
    cases = draw(shared("data/corpora"), writings, 3)
    write, read = FORMS[kind]
    path = tmp_path / f"cases.{kind}"
    path.write_bytes(write([case.text for case in cases]).encode())
    left = left_in(cases, read(pii_replace(path, monkeypatch)))
    assert len(left) <= max_share * COUNT, left


def test_no_inserted_value_is_left_by_the_stage(
    tmp_path: Path, clean: Callable[..., Any], shared: Callable[[str], Path]
) -> None:
    cases = draw(shared("data/corpora"), TELLING_WRITINGS, 4)
    path = tmp_path / "a.jsonl"
    path.write_text(
        "".join(json.dumps({"id": f"d{n}", "text": case.text}) + "\n" for n, case in enumerate(cases)), "utf-8"
    )
    counts = clean(path, pii={"repeatable": True}, deduplicate={"documents": False, "sentences": False})
    shards = shard_paths(tmp_path / "out" / "documents")
    texts = {document.id: " ".join(document.sentences) for shard in shards for document in read_documents(shard)}
    kept = [int(name[1:]) for name in texts]
    assert len(kept) >= 0.95 * COUNT
    assert left_in([cases[n] for n in kept], list(texts.values())) == []
    assert counts["audit"] == {}
    everything = texts_of(tmp_path / "out")
    # some addresses of pages occur in the corpora, too
    assert [case.text for case in cases if case.writing.type != "URL" and value_of(case) in everything] == []
