"""Training as a whole: it learns with any layout, and stops when it diverges."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.numpy import load_file

from corpus.documents.errors import BadInput
from pretrain.checkpoint.find_checkpoint import checkpoint_folders, read_checkpoint
from tests.pretrain.runs import (
    assert_same_training,
    lines_without_timing,
    rewind_to,
    train,
)

SHORT_FIRST = [{"until": 0.5, "sequence_length": 16, "masked_share": 0.3}, {"until": 0.9, "sequence_length": 16}, {}]


@pytest.mark.parametrize("settings", [{}, {"architecture": "bert", "nsp": True}])
def test_the_loss_falls_on_training_and_held_out_text(made: Path, tmp_path: Path, tiny, settings: dict) -> None:
    result = train(tiny(steps=150, log_every=25, checkpoint_every=100, **settings), made, tmp_path)
    losses = [line["loss"] for line in lines_without_timing(tmp_path) if "loss" in line]
    assert len(losses) == 6 and losses[-1] < losses[0] - 0.8
    assert result["held_out"]["mlm_loss"] < losses[0] - 0.6
    assert result["held_out"]["masked_accuracy"] > 0.1
    assert json.loads((tmp_path / "result.json").read_text("utf-8")) == result
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "checkpoints", "engine.json", "metrics.jsonl", "model", "ranks", "result.json", "tokens.checked",
    ]  # fmt: skip


@pytest.mark.parametrize("sharded", [False, True])
def test_exported_models_have_hidden_states_of_the_usual_size(
    made: Path, tmp_path: Path, tiny, sharded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are trained with small ones; an interrupted run resumes bit for bit."""
    monkeypatch.setattr("pretrain.run.is_sharded", lambda *_: sharded)
    first = {"output_bias": "frequency", "embedding_init": "cooccurrence", "attention_init": "from_counts"}
    sizes = {"architecture": "modernbert", "layers": 2, "dropout": 0.0, "keep_checkpoints": 3}
    if sharded:
        sizes |= {"engine": "deepspeed", "zero_stage": 1}
    config, once, twice = tiny(steps=9, **sizes, **first), tmp_path / "once", tmp_path / "twice"
    train(config, made, once)
    shutil.copytree(once, twice)
    rewind_to(twice, 6)
    train(config, made, twice)
    assert_same_training(once, twice)

    found = [read_checkpoint(folder) for folder in checkpoint_folders(once / "checkpoints")][-2:]
    assert all(set(one.loop["scales"].values()) == {8.0, 1 / 8} for one in found)
    written = [load_file(one.folder / "model" / "model.safetensors") for one in found]
    norm, matrix = "model.final_norm.weight", "head.dense.weight"
    for weights in (*written, load_file(once / "model" / "model.safetensors")):
        assert 0.7 < weights[norm].mean() < 1.5
    trained = [one.weights() for one in found]
    for name, weight in written[-1].items():
        scale = {norm: 1 / 8, matrix: 8.0}.get(name, 1.0)
        assert torch.equal(trained[-1][name], torch.from_numpy(weight) * scale)


def test_micro_batches_change_no_loss(made: Path, tmp_path: Path, tiny) -> None:
    found = []
    for size in (1, 3, 8):
        out = tmp_path / str(size)
        train(tiny(steps=6, dropout=0.0, log_every=1, global_batch=24, micro_batch=size), made, out)
        found.append([line["loss"] for line in lines_without_timing(out) if "loss" in line])
    assert found[0] == pytest.approx(found[1], rel=1e-6) and found[0] == pytest.approx(found[2], rel=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"packing": "documents"},
        {"packing": "documents", "architecture": "bert", "nsp": True},
        {"phases": SHORT_FIRST, "schedule": "wsd"},
        {"architecture": "modernbert", "layers": 2, "phases": SHORT_FIRST},
        {"architecture": "modernbert", "layers": 2, "phases": SHORT_FIRST, "packing": "documents"},
    ],
)
def test_other_layouts_train_and_resume_bit_for_bit(made: Path, tmp_path: Path, tiny, settings: dict) -> None:
    config = tiny(steps=20, checkpoint_every=9, keep_checkpoints=3, log_every=4, **settings)
    train(config, made, tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    rewind_to(tmp_path / "twice", 9)
    train(config, made, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")
    losses = [line["loss"] for line in lines_without_timing(tmp_path / "once") if "loss" in line]
    assert losses[-1] < losses[0]


def test_a_diverging_loss_stops_with_its_steps(made: Path, tmp_path: Path, tiny) -> None:
    with pytest.raises(BadInput, match=r"step 2: the loss is not finite.*rows 0:[0-9]+ .*lower pretrain.optimizer.lr"):
        train(tiny(lr=1e38, warmup_share=0.0), made, tmp_path)
