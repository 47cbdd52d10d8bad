"""A tiny recipe up to its token store, and what one process trains from it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.command import SMALL_SAMPLE

MALMOI = str(Path(sys.executable).with_name("malmoi"))
TINY = (
    f"corpus.inputs={SMALL_SAMPLE}", "tokenizer.vocab_size=1500", "pretrain.model.hidden=32",
    "pretrain.model.intermediate=64", "pretrain.steps=16", "pretrain.optimizer.warmup_share=0",
    "pretrain.watch.log_every=1",
)  # fmt: skip


@pytest.fixture(scope="package")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder to be copied."""
    runs = tmp_path_factory.mktemp("packed") / "runs"
    for verb in ("corpus", "tokenizer", "pack"):
        subprocess.run([MALMOI, verb, "smoke", *TINY, "--runs", str(runs)], check=True)
    return runs


@cache
def trained_alone(packed: Path) -> list[float]:
    """The losses of one process."""
    runs = packed.with_name("alone")
    shutil.copytree(packed, runs)
    subprocess.run([MALMOI, "pretrain", "smoke", *TINY, "--runs", str(runs)], check=True)
    return losses(runs)


def lines_of(runs: Path) -> list[dict[str, Any]]:
    """Whole lines of metrics.jsonl about steps, in the order of the file."""
    path = runs / "smoke" / "pretrain" / "metrics.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.is_file() else []
    return [line for line in (json.loads(line) for line in lines if line.endswith("\n")) if "loss" in line]


def losses(runs: Path) -> list[float]:
    """Of every step that has a line."""
    return [line["loss"] for line in lines_of(runs)]


def assert_trained_like_one_process(runs: Path, packed: Path) -> None:
    """The same losses, step by step."""
    assert losses(runs) == pytest.approx(trained_alone(packed), abs=1e-4)
