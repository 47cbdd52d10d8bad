"""Benchmark folders for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from finetune.annotation.config import Benchmark, load_benchmark
from finetune.annotation.folder import ITEMS, Item
from finetune.annotation.take_in import READERS, take_in
from finetune.data.files import write_json_lines


def make_folder(folder: Path, items: Iterable[Item] = (), **settings: Any) -> Benchmark:
    """A folder with ``benchmark.yaml`` and items."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmark.yaml").write_text(yaml.safe_dump({"name": "mine", **settings}, allow_unicode=True), "utf-8")
    if items := list(items):
        write_json_lines(folder / ITEMS, items)
    return load_benchmark(folder)


def add_votes(benchmark: Benchmark, folder: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Take in a table of votes."""
    path = folder / "votes-in.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return take_in(benchmark, folder, [path], READERS["votes"])


def topics(count: int) -> list[Item]:
    """Items of a topic task."""
    return [Item(f"i{number}", "petitions", {"text": f"제목 {number}"}) for number in range(count)]
