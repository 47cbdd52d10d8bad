"""Training does not depend on the number of processes, and needs nothing around it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from corpus.documents.errors import BadInput
from tests.pretrain.runs import (
    TORCHRUN,
    finish,
    launch,
    lines_without_timing,
    numbers_of,
    rewind_to,
    train,
)


@pytest.mark.matrix
def test_two_processes_train_like_one(made: Path, tmp_path: Path, tiny) -> None:
    config = tiny(steps=4, dropout=0.0, log_every=1)
    train(config, made, tmp_path / "one")
    finish(launch(config, made, tmp_path / "many", TORCHRUN, DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1"))
    one, many = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("one", "many"))
    assert one.keys() == many.keys() and max(abs(one[name] - many[name]).max() for name in one) < 1e-5
    pairs = zip(lines_without_timing(tmp_path / "one"), lines_without_timing(tmp_path / "many"), strict=True)
    for a, b in pairs:
        assert numbers_of(a) == pytest.approx(numbers_of(b), rel=1e-6)
    settings = json.loads((tmp_path / "many" / "engine.json").read_text("utf-8"))
    assert settings["engine"] == "ddp" and settings["processes"] == 2


@pytest.mark.slow
def test_two_compiled_processes_train_like_one(made: Path, tmp_path: Path, tiny) -> None:
    """The compiled module inside DDP, with accumulated micro-batches; code by aot_eager, which needs no compiler."""
    config = tiny(steps=4, dropout=0.0, log_every=1, micro_batch=2)
    train(config, made, tmp_path / "one")
    variables = {"OMP_NUM_THREADS": "1", "MALMOI_TEST_BACKEND": "aot_eager"}
    finish(launch(config.replaced("engine", compile=True), made, tmp_path / "many", TORCHRUN, **variables))
    one, many = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("one", "many"))
    assert max(abs(one[name] - many[name]).max() for name in one) < 1e-5
    pairs = zip(lines_without_timing(tmp_path / "one"), lines_without_timing(tmp_path / "many"), strict=True)
    for a, b in pairs:
        assert numbers_of(a) == pytest.approx(numbers_of(b), rel=1e-6)
    assert json.loads((tmp_path / "many" / "engine.json").read_text("utf-8"))["settled"]["compile"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", [{"name": "ddp"}, pytest.param({"name": "deepspeed", "zero_stage": 2}, marks=pytest.mark.matrix)]
)
def test_two_processes_resume_from_one_and_one_from_two(made: Path, tmp_path: Path, tiny, engine) -> None:
    """3 steps alone, 3 of two processes, 3 alone: as nine steps alone."""
    config = tiny(steps=9, dropout=0.0, clip=0.5, keep_checkpoints=3)
    train(config, made, tmp_path / "alone")
    mixed = tmp_path / "mixed"
    shutil.copytree(tmp_path / "alone", mixed)
    rewind_to(mixed, 3)
    finish(launch(config.replaced("engine", **engine), made, mixed, TORCHRUN, DS_ACCELERATOR="cpu"))
    rewind_to(mixed, 6)
    train(config, made, mixed)
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("alone", "mixed"))
    assert max(abs(one[name] - two[name]).max() for name in one) < 1e-5


def test_training_needs_neither_compiler_nor_launcher(made: Path, tmp_path: Path, tiny) -> None:
    finish(
        launch(tiny(steps=2), made, tmp_path / "out", PATH="/nonexistent", TORCH_EXTENSIONS_DIR=str(tmp_path / "ops"))
    )
    assert not (tmp_path / "ops").exists()


def test_one_process_leaves_no_trace_of_a_launcher(made: Path, tmp_path: Path, tiny) -> None:
    train(tiny(steps=1), made, tmp_path)
    assert "LOCAL_RANK" not in os.environ and "WORLD_SIZE" not in os.environ


def test_a_half_set_launcher_is_refused(made: Path, tmp_path: Path, tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(BadInput, match="LOCAL_RANK, MASTER_ADDR, MASTER_PORT is not; start with torchrun"):
        train(tiny(), made, tmp_path)
