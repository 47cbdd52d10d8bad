"""The launches that README and docs show: torchrun and deepspeed with two processes agree with one process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import SMALL_SAMPLE

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[2]
PAGES = "".join((ROOT / page).read_text("utf-8") for page in ("README.md", "docs/pretrain.md"))
TORCHRUN = "torchrun --nproc-per-node 2 -m launch pretrain"
DEEPSPEED = "deepspeed --num_gpus 2 --module launch pretrain"
SMALL = (f"corpus.inputs={SMALL_SAMPLE}", "tokenizer.vocab_size=1500")
STEPS = ("pretrain.steps=3", "pretrain.watch.log_every=1", "pretrain.optimizer.warmup_share=0")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder with a small corpus, its vocabulary and its tokens."""
    runs = tmp_path_factory.mktemp("packed")
    for verb in ("corpus", "tokenizer", "pack"):
        launch(f"malmoi {verb}", runs)
    return runs


def launch(command: str, runs: Path) -> None:
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "DS_ACCELERATOR": "cpu"}
    arguments = [*command.split(), "smoke", *SMALL, *STEPS, "--runs", str(runs)]
    result = subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]


def losses(runs: Path) -> list[float]:
    lines = (runs / "smoke" / "pretrain" / "metrics.jsonl").read_text("utf-8").splitlines()
    return [line["loss"] for line in map(json.loads, lines) if "loss" in line]


@pytest.mark.slow
@pytest.mark.parametrize("command", [TORCHRUN, DEEPSPEED])
def test_two_processes_train_as_one_does(command: str, packed: Path, tmp_path: Path) -> None:
    assert command in PAGES
    alone, together = tmp_path / "alone", tmp_path / "together"
    for runs, start in ((alone, "malmoi pretrain"), (together, command)):
        shutil.copytree(packed, runs)
        launch(start, runs)
    assert losses(together) == pytest.approx(losses(alone), abs=1e-4)
    assert (together / "smoke" / "model" / "model.safetensors").is_file()
