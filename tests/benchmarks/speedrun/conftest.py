"""Fixtures of the speedrun tests: a tiny text, runs in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.speedrun import run
from benchmarks.speedrun.candidate_run import run_candidate
from benchmarks.speedrun.setup import Text, prepare_text
from benchmarks.texts import invent_documents, invent_vocabulary, write_corpus
from launch import manifest
from tests.benchmarks.speedrun.small_run import OURS, PIECES, settings_of_run


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
    return prepare_text(given, tmp_path_factory.mktemp("setup") / "text", 1)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Candidates run in this process; the list gets the names of the runs."""
    called: list[str] = []

    def run_here(work: Callable[[Any], dict[str, Any]], order: Any, what: str, *rest: Any) -> dict[str, Any]:
        called.append(what)
        return dict(json.loads(json.dumps(work(json.loads(json.dumps(order))))))

    monkeypatch.setattr(run, "run_fresh", run_here)
    return called


@pytest.fixture(scope="session")
def finished(text: Text, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """One run of the paper's recipe, and its model."""
    model = tmp_path_factory.mktemp("finished") / "model"
    threads = torch.get_num_threads()
    try:
        return run_candidate(settings_of_run(text, OURS, model)), model
    finally:
        torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def threads_stay() -> Iterator[None]:
    """A run sets the threads of its process."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
