"""Training as a whole: it learns, whatever the layout, and stops when it diverges."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForMaskedLM

from corpus.documents.errors import BadInput
from tests.pretrain.runs import (
    assert_same_training,
    go_on_from,
    lines_without_timing,
    train,
)


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


@pytest.mark.parametrize("engine", [{}, {"engine": "deepspeed", "zero_stage": 3, "precision": "bf16"}])
def test_the_mean_of_the_last_checkpoints_is_the_model(made: Path, tmp_path: Path, tiny, engine: dict) -> None:
    result = train(tiny(steps=9, average_last=3, keep_checkpoints=3, **engine), made, tmp_path)
    parts = [
        load_file(tmp_path / "checkpoints" / f"step-00000000{n}" / "model" / "model.safetensors") for n in (3, 6, 9)
    ]
    mean = load_file(tmp_path / "model" / "model.safetensors")
    for name, weight in mean.items():
        assert abs(weight - sum(part[name].astype("float64") for part in parts) / 3).max() < 1e-7
    last = json.loads((tmp_path / "checkpoints" / "step-000000009" / "loop.json").read_text("utf-8"))
    assert 0 < abs(result["held_out"]["mlm_loss"] - last["held_out"]["mlm_loss"]) < 0.5


def test_the_model_has_large_states_though_it_was_trained_with_small_ones(made: Path, tmp_path: Path, tiny) -> None:
    first = {"output_bias": "frequency", "embedding_start": "cooccurrence", "attention_start": "counted"}
    train(tiny(steps=3, architecture="modernbert", layers=2, dropout=0.0, **first), made, tmp_path)
    folders = (tmp_path / "checkpoints" / "step-000000003" / "model", tmp_path / "model")
    trained, finished = (AutoModelForMaskedLM.from_pretrained(folder) for folder in folders)
    ids_BL = torch.arange(7, 23)[None]
    with torch.no_grad():
        assert torch.equal(trained(input_ids=ids_BL).logits, finished(input_ids=ids_BL).logits)
    small, large = (float(network.model.final_norm.weight.detach().mean()) for network in (trained, finished))
    assert small < 0.2 and 0.7 < large < 1.5


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
        {"short_length": 16, "masking": {"shares": [{"share": 0.3, "until": 0.5}, {"share": 0.1}]}, "schedule": "wsd"},
        {"architecture": "modernbert", "layers": 2, "local_window": 8, "short_length": 16},
        {"architecture": "modernbert", "layers": 2, "local_window": 8, "short_length": 16, "packing": "documents"},
    ],
)
def test_other_layouts_train_and_resume_bit_for_bit(made: Path, tmp_path: Path, tiny, settings: dict) -> None:
    config = tiny(steps=20, checkpoint_every=9, keep_checkpoints=3, log_every=4, **settings)
    train(config, made, tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    go_on_from(tmp_path / "twice", 9)
    train(config, made, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")
    losses = [line["loss"] for line in lines_without_timing(tmp_path / "once") if "loss" in line]
    assert losses[-1] < losses[0]


def test_a_diverging_loss_stops_with_its_steps(made: Path, tmp_path: Path, tiny) -> None:
    with pytest.raises(BadInput, match=r"step 2: the loss is not finite.*rows 0:[0-9]+ .*lower pretrain.optimizer.lr"):
        train(tiny(lr=1e38, warmup_share=0.0), made, tmp_path)
