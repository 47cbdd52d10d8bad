"""The embedded sample, a tiny encoder of its characters, and short trainings with both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from finetune.config import FinetuneConfig
from finetune.run import FinetuneInputs, run
from launch.sample.unpack import read_archive
from tests.finetune.conftest import build_tiny_encoder

RECORDS = 24  # of each file
LONGEST = {"klue-mrc": 128, "wos": 96}


def configure(*tasks: str, **settings: Any) -> FinetuneConfig:
    """One short training of each task."""
    overrides = {task: {"epochs": 1, "max_tokens": LONGEST.get(task, 64)} for task in tasks}
    defaults = {"seeds": (1,), "max_train_examples": 8, "max_dev_examples": 12}
    return FinetuneConfig(**{**defaults, "tasks": tasks, "overrides": overrides, **settings})


def shorten(name: str, text: str, count: int = RECORDS) -> str:
    """The first records of a file of the sample, so that reading takes no time; the ontology stays whole."""
    if name.endswith(".tsv"):
        return "\n\n".join(text.split("\n\n")[:count]) + "\n\n"
    content = json.loads(text)
    if isinstance(content, dict) and "data" in content:
        return json.dumps({**content, "data": content["data"][:count]}, ensure_ascii=False)
    return json.dumps(content[:count], ensure_ascii=False) if isinstance(content, list) else text


@pytest.fixture(scope="session")
def sample_inputs(tmp_path_factory: pytest.TempPathFactory) -> FinetuneInputs:
    home = tmp_path_factory.mktemp("sample")
    for name, content in read_archive("klue.tar.zst").items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(shorten(name, content.decode()), "utf-8")
    text = "".join(path.read_text("utf-8") for path in home.rglob("*dev*"))
    folder, _ = build_tiny_encoder(home / "encoder", [text])
    return FinetuneInputs(home / "klue", {"model": folder})


@pytest.fixture(scope="session")
def trained(sample_inputs: FinetuneInputs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of two tasks, one with a stock head and one with ours; copy a model before changing it."""
    out = tmp_path_factory.mktemp("trained")
    run(configure("ynat", "klue-dp"), sample_inputs, out)
    return out


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As trainings on a processor have it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
