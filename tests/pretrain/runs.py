"""Starting trainings in this process or in others, and comparing what they leave."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from pretrain.config import PretrainConfig
from pretrain.metrics.meter import TIMING_KEYS
from pretrain.run import PretrainInputs
from pretrain.run import run as pretrain

START = Path(__file__).with_name("start.py")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
DEEPSPEED = (str(Path(sys.executable).with_name("deepspeed")), "--no_local_rank", "--num_gpus", "2")


def train(config: PretrainConfig, made: Path, out: Path) -> dict:
    out.mkdir(exist_ok=True)
    return pretrain(config, PretrainInputs(made / "tokens", made / "tokenizer"), out)


def launch(
    config: PretrainConfig, made: Path, out: Path, launcher: Sequence[str] = (sys.executable,), **variables: str
) -> subprocess.Popen:
    """Start training in processes of its own, with as many threads as this one."""
    out.mkdir(exist_ok=True)
    settings = out.with_name(out.name + ".json")
    settings.write_text(config.model_dump_json(), "utf-8")
    command = [*launcher, str(START), str(made), str(out), str(settings)]
    environment = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())} | variables
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(process: subprocess.Popen) -> None:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output.decode()


def lines_without_timing(out: Path) -> list[dict]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    return [{key: value for key, value in line.items() if key not in TIMING_KEYS} for line in lines]


def numbers_of(line: dict) -> dict[str, float]:
    """A line without nesting, and without the norm, which not every engine gives."""
    held_out = line.get("held_out", {})
    flat = (
        line
        | held_out
        | {f"{name} {k}": v for name, part in held_out.get("sources", {}).items() for k, v in part.items()}
    )
    return {name: value for name, value in flat.items() if name != "grad_norm" and not isinstance(value, dict)}


def steps_saved(out: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step-")) for path in (out / "checkpoints").glob("step-*[0-9]"))


def wait_for_checkpoint(out: Path, process: subprocess.Popen) -> None:
    while not list((out / "checkpoints").glob("step-*[0-9]")):
        assert process.poll() is None, process.communicate()[0].decode()
        time.sleep(0.002)


def rewind_to(out: Path, step: int) -> None:
    """Remove everything after the checkpoint of a step."""
    for later in steps_saved(out):
        if later > step:
            shutil.rmtree(out / "checkpoints" / f"step-{later:09}")
    shutil.rmtree(out / "model")


def assert_same_training(out: Path, other: Path) -> None:
    weights = (out / "model" / "model.safetensors").read_bytes()
    assert weights == (other / "model" / "model.safetensors").read_bytes()
    assert lines_without_timing(out) == lines_without_timing(other)
    assert (out / "result.json").read_bytes() == (other / "result.json").read_bytes()
    assert (out / "model" / "config.json").read_bytes() == (other / "model" / "config.json").read_bytes()
