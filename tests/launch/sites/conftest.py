"""A tiny recipe up to its token store, and what one process trains from it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MALMOI = str(Path(sys.executable).with_name("malmoi"))
TINY = (
    "sample.share=0.035", "tokenizer.vocab_size=1500", "pretrain.model.hidden=32", "pretrain.model.intermediate=64",
    "pretrain.steps=16", "pretrain.optimizer.warmup_share=0", "pretrain.watch.log_every=1",
)  # fmt: skip


@pytest.fixture(scope="package")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder to be copied; beside it, as ``alone``, the same with the model."""
    runs = tmp_path_factory.mktemp("packed") / "runs"
    for verb in ("corpus", "tokenizer", "pack"):
        subprocess.run([MALMOI, verb, "smoke", *TINY, "--runs", str(runs)], check=True)
    shutil.copytree(runs, runs.with_name("alone"))
    subprocess.run([MALMOI, "pretrain", "smoke", *TINY, "--runs", str(runs.with_name("alone"))], check=True)
    return runs


def losses(runs: Path) -> list[float]:
    """Of every step, in the order of the file."""
    lines = map(json.loads, (runs / "smoke" / "pretrain" / "metrics.jsonl").read_text("utf-8").splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def assert_trained_like_one_process(runs: Path, packed: Path) -> None:
    """The same losses, step by step."""
    assert losses(runs) == pytest.approx(losses(packed.with_name("alone")), abs=1e-4)
