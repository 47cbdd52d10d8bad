"""Fixtures of the speedrun's tests: a tiny text, races in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.material import invent_documents, invent_vocabulary, write_corpus
from benchmarks.speedrun import run
from benchmarks.speedrun.arena import Text, prepare_text
from benchmarks.speedrun.race import run_race
from launch import manifest
from tests.benchmarks.speedrun.course import OURS, PIECES, order_of


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with an invented corpus and its vocabulary; read only."""
    from transformers import BertTokenizer

    folder = tmp_path_factory.mktemp("given")
    vocabulary = invent_vocabulary(PIECES)
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "vocab.txt").write_text("\n".join(vocabulary) + "\n", "utf-8")
    BertTokenizer(
        vocab=str(folder / "tokenizer" / "vocab.txt"), do_lower_case=False, strip_accents=False
    ).save_pretrained(folder / "tokenizer")
    write_corpus(invent_documents(vocabulary, 30_000, np.random.default_rng(1)), folder / "corpus")
    for stage in ("corpus", "tokenizer"):
        manifest.finish(folder / stage, manifest.Head(stage, {}, {}), {}, 0.0, 0)
    return folder


@pytest.fixture(scope="session")
def text(given: Path, tmp_path_factory: pytest.TempPathFactory) -> Text:
    return prepare_text(given, tmp_path_factory.mktemp("arena") / "text", 1)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Races run in this process; the list gets what each was called."""
    called: list[str] = []

    def run_here(work: Callable[[Any], dict[str, Any]], order: Any, what: str, *rest: Any) -> dict[str, Any]:
        called.append(what)
        return dict(json.loads(json.dumps(work(json.loads(json.dumps(order))))))

    monkeypatch.setattr(run, "run_fresh", run_here)
    return called


@pytest.fixture(scope="session")
def raced(text: Text, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """One race of the paper's recipe, and its model."""
    model = tmp_path_factory.mktemp("raced") / "model"
    threads = torch.get_num_threads()
    try:
        return run_race(order_of(text, OURS, model)), model
    finally:
        torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def threads_stay() -> Iterator[None]:
    """A race sets the threads of its process."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
