"""The whole pipeline at toy size: it completes, survives being killed in every stage, and repeats itself byte for byte.

One undisturbed run is made once; the other tests compare with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launch.pipeline import VERBS
from tests.command import SMALL_SAMPLE, run_command

TOY = (
    f"corpus.inputs={SMALL_SAMPLE}",
    "tokenizer.vocab_size=2000",
    "pretrain.steps=12",
    "pretrain.saved.checkpoint_every=4",
    "finetune.tasks=ynat,klue-nli",  # the demo scores all eight
    "finetune.max_train_examples=32",
    "finetune.max_dev_examples=24",
)
STAGES = VERBS["run"]
LONG_STAGES = ("sample", "corpus", "tokenizer", "tokens", "pretrain", "finetune")  # a kill meets them at work
DATA_FILES = ("*.parquet", "*.jsonl", "vocab.txt", "tokenizer.json", "tokens.bin", "*.idx", "*.safetensors")
SIGNS = {  # the moment of the kill: work has begun and part of it is done
    "corpus": ".work-*/clean/unit-*",
    "tokenizer": "*/count/unit-*",
    "pretrain": "checkpoints/step-*",
    "finetune": "*/*/seed-*/scores.json",
}
TIMED_FILES = ("metrics.jsonl",)  # hold tokens per second and the like


def start(runs: Path, *extra: str, verb: str = "run") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "launch", verb, "smoke", *TOY, *extra, "--runs", str(runs)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def complete(runs: Path, *extra: str, verb: str = "run") -> str:
    process = start(runs, *extra, verb=verb)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output[-4000:]
    return output


def digests(run: Path, *stages: str) -> dict[str, str]:
    files = [p for stage in stages for pattern in DATA_FILES for p in sorted((run / stage).rglob(pattern))]
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.name not in TIMED_FILES
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("undisturbed")
    complete(runs, "workers=2", verb="corpus")
    complete(runs, "workers=2", verb="tokenizer")
    # the rest here: processes that train import torch first
    assert run_command(None, "run", "smoke", *TOY, "workers=1", "--runs", str(runs)).code == 0
    return runs / "smoke"


def test_every_stage_leaves_a_manifest_with_counts(undisturbed: Path) -> None:
    for stage in STAGES:
        manifest = json.loads((undisturbed / stage / "manifest.json").read_text("utf-8"))
        assert manifest["counts"], stage
        assert not (undisturbed / stage / "started.json").exists()


def test_no_temporary_file_is_left(undisturbed: Path) -> None:
    assert not [p for p in undisturbed.rglob("*") if "partial" in p.name or p.name == "parts"]


def test_second_run_has_nothing_to_do(undisturbed: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = {p: p.stat().st_mtime_ns for p in undisturbed.rglob("*")}
    outcome = run_command(capfd, "run", "smoke", *TOY, "--runs", str(undisturbed.parent))
    assert outcome.code == 0
    assert outcome.errors.count("complete, nothing to do") == len(STAGES)
    assert {p: p.stat().st_mtime_ns for p in undisturbed.rglob("*")} == before


def test_changed_recipe_stops_and_shows_what_differs(undisturbed: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = run_command(capfd, "run", "smoke", *TOY, "corpus.seed=99", "--runs", str(undisturbed.parent))
    assert outcome.code == 2
    assert "settings.seed" in outcome.errors


@pytest.mark.slow
def test_killed_in_every_stage_that_lasts_it_finishes_with_the_same_bytes(undisturbed: Path, tmp_path: Path) -> None:
    killed = []
    for stage in LONG_STAGES:
        process = start(tmp_path, "workers=2")
        folder = tmp_path / "smoke" / stage
        while process.poll() is None and not list(folder.glob(SIGNS.get(stage, "started.json"))):
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if not (folder / "manifest.json").exists():
            killed.append(stage)
    complete(tmp_path, "workers=2")
    assert killed == list(LONG_STAGES)
    assert digests(tmp_path / "smoke", *STAGES) == digests(undisturbed, *STAGES)


def test_one_worker_and_another_hash_seed_give_the_same_bytes(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    for verb in ("corpus", "tokenizer", "pack"):
        complete(tmp_path, "workers=1", verb=verb)
    stages = ("sample", "corpus", "tokenizer", "tokens")
    assert digests(tmp_path / "smoke", *stages) == digests(undisturbed, *stages)


def test_wrong_label_in_a_klue_file_is_named(
    undisturbed: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    runs, data = tmp_path / "runs", tmp_path / "klue"
    shutil.copytree(undisturbed / "sample" / "klue", data)
    for stage in ("tokenizer", "pretrain", "model"):
        shutil.copytree(undisturbed / stage, runs / "smoke" / stage)
    file = data / "ynat-v1.1" / "ynat-v1.1_dev.json"
    file.write_text(file.read_text("utf-8").replace('"label": "스포츠"', '"label": "체육"', 1), "utf-8")
    outcome = run_command(capfd, "finetune", "smoke", *TOY, f"finetune.data={data}", "--runs", str(runs))
    assert outcome.code == 2
    last = outcome.errors.strip().splitlines()[-1]
    assert last.startswith("malmoi: ")
    assert "ynat-v1.1_dev.json" in last
    assert "체육" in last
