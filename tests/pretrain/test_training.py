"""Training as a whole: it learns, resumes bit for bit, and does not depend on the number of processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.numpy import load_file

from pretrain.config import BadInput, PretrainConfig
from pretrain.meter import TIMING_KEYS
from pretrain.run import PretrainInputs
from pretrain.run import run as pretrain
from tests.pretrain.conftest import invented_documents, write_tokenizer

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
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output.decode()


def lines_without_timing(out: Path) -> list[dict]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    return [{key: value for key, value in line.items() if key not in TIMING_KEYS} for line in lines]


def assert_same_training(out: Path, other: Path) -> None:
    weights = (out / "model" / "model.safetensors").read_bytes()
    assert weights == (other / "model" / "model.safetensors").read_bytes()
    assert lines_without_timing(out) == lines_without_timing(other)
    assert (out / "result.json").read_bytes() == (other / "result.json").read_bytes()
    assert (out / "model" / "config.json").read_bytes() == (other / "model" / "config.json").read_bytes()


@pytest.mark.parametrize("settings", [{}, {"architecture": "bert", "nsp": True}])
def test_the_loss_falls_on_training_and_held_out_text(made: Path, tmp_path: Path, tiny, settings: dict) -> None:
    result = train(tiny(steps=150, log_every=25, checkpoint_every=100, **settings), made, tmp_path)
    losses = [line["loss"] for line in lines_without_timing(tmp_path)]
    assert len(losses) == 6 and losses[-1] < losses[0] - 0.8
    assert result["held_out"]["mlm_loss"] < losses[0] - 0.6
    assert result["held_out"]["masked_accuracy"] > 0.1
    assert json.loads((tmp_path / "result.json").read_text("utf-8")) == result
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "checkpoints", "deepspeed.json", "metrics.jsonl", "model", "result.json",
    ]  # fmt: skip


def test_a_killed_run_goes_on_bit_for_bit(made: Path, tmp_path: Path, tiny) -> None:
    config = tiny(steps=60, checkpoint_every=7, log_every=5)  # dropout is on
    train(config, made, tmp_path / "undisturbed")
    killed = tmp_path / "killed"
    process = launch(config, made, killed)
    while not (killed / "checkpoints" / "latest").is_file():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (killed / "result.json").exists()
    assert (killed / "checkpoints" / "latest").read_text("utf-8") != "step-000000060"
    (killed / "checkpoints" / "step-000000099.partial").mkdir()
    with (killed / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step": 59, "loss": 0}\n{"step": 6')  # written after the checkpoint, the last one cut short
    finish(launch(config, made, killed))
    assert_same_training(tmp_path / "undisturbed", killed)
    assert sorted(p.name for p in (killed / "checkpoints").iterdir()) == [
        "latest", "step-000000056", "step-000000060",
    ]  # fmt: skip


def test_finished_training_run_again_only_measures_again(made: Path, tmp_path: Path, tiny) -> None:
    train(tiny(), made, tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    (tmp_path / "twice" / "result.json").unlink()
    train(tiny(), made, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")


@pytest.mark.parametrize(("precision", "zero_stage"), [("fp32", 1), ("bf16", 2), ("fp32", 3)])
def test_every_zero_stage_resumes_bit_for_bit(
    made: Path, tmp_path: Path, tiny, precision: str, zero_stage: int
) -> None:
    config = tiny(steps=6, precision=precision, zero_stage=zero_stage)
    train(config, made, tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    (tmp_path / "twice" / "checkpoints" / "latest").write_text("step-000000003", "utf-8")
    shutil.rmtree(tmp_path / "twice" / "model")
    train(config, made, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")


@pytest.mark.parametrize("launcher", [TORCHRUN, DEEPSPEED])
def test_two_processes_train_like_one(made: Path, tmp_path: Path, tiny, launcher: Sequence[str]) -> None:
    config = tiny(dropout=0.0, zero_stage=0 if launcher is TORCHRUN else 1)
    train(config, made, tmp_path / "one")
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    options = () if launcher is TORCHRUN else ("--master_port", str(port))
    finish(launch(config, made, tmp_path / "two", (*launcher, *options), DS_ACCELERATOR="cpu"))
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    assert max(abs(one[name] - two[name]).max() for name in one) < 1e-5
    pairs = zip(lines_without_timing(tmp_path / "one"), lines_without_timing(tmp_path / "two"), strict=True)
    assert all(a == pytest.approx(b, rel=1e-5) for a, b in pairs)
    settings = json.loads((tmp_path / "two" / "deepspeed.json").read_text("utf-8"))
    assert settings["train_batch_size"] == 8 and settings["gradient_accumulation_steps"] == 1


def test_training_needs_neither_compiler_nor_launcher(made: Path, tmp_path: Path, tiny) -> None:
    finish(
        launch(tiny(steps=2), made, tmp_path / "out", PATH="/nonexistent", TORCH_EXTENSIONS_DIR=str(tmp_path / "ops"))
    )
    assert not (tmp_path / "ops").exists()


def test_one_process_leaves_no_trace_of_a_launcher(made: Path, tmp_path: Path, tiny) -> None:
    train(tiny(steps=1), made, tmp_path)
    assert "LOCAL_RANK" not in os.environ and "WORLD_SIZE" not in os.environ


def test_bfloat16_keeps_exact_weights_beside(made: Path, tmp_path: Path, tiny) -> None:
    train(tiny(dropout=0.0), made, tmp_path / "fp32")
    train(tiny(dropout=0.0, precision="bf16", zero_stage=1), made, tmp_path / "bf16")
    exact, rounded = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("fp32", "bf16"))
    name = "roberta.embeddings.word_embeddings.weight"
    assert exact[name].dtype == rounded[name].dtype == "float32"
    assert 0 < abs(exact[name] - rounded[name]).max() < 0.05
    assert (rounded[name].view("uint32") & 0xFFFF).any()  # bits that bfloat16 does not have


def test_a_diverging_loss_stops_with_its_steps(made: Path, tmp_path: Path, tiny) -> None:
    with pytest.raises(BadInput, match="loss is not finite between steps 1 and 2"):
        train(tiny(lr=1e38, warmup_share=0.0), made, tmp_path)


def test_other_settings_or_another_vocabulary_are_refused(made: Path, tmp_path: Path, tiny) -> None:
    train(tiny(steps=3), made, tmp_path / "out")
    with pytest.raises(BadInput, match=r"pretrain\.lr: 0\.005 -> 0\.1"):
        train(tiny(steps=3, lr=0.1), made, tmp_path / "out")
    other = write_tokenizer(tmp_path / "tokenizer", invented_documents(2))
    with pytest.raises(BadInput, match="packed with vocabulary"):
        pretrain(tiny(), PretrainInputs(made / "tokens", other), tmp_path / "out")


def test_a_half_set_launcher_is_refused(made: Path, tmp_path: Path, tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(BadInput, match="LOCAL_RANK, MASTER_ADDR, MASTER_PORT is not; start with torchrun"):
        train(tiny(), made, tmp_path)
