"""Full trainings with the causal objective."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

from corpus.documents.errors import BadInput
from pretrain.checkpoint.export import ExportInputs
from pretrain.checkpoint.export import run as export
from pretrain.model.existing_model import check_init_from
from tests.pretrain.runs import (
    TORCHRUN,
    assert_same_training,
    finish,
    launch,
    lines_without_timing,
    rewind_to,
    train,
)

SHORT_FIRST = [{"until": 0.9, "sequence_length": 16}, {}]
GPT: dict[str, Any] = {"architecture": "gpt"}


@pytest.fixture(scope="module")
def trained(made: Path, tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty steps of a tiny GPT."""
    out = tmp_path_factory.mktemp("gpt")
    train(tiny(steps=60, checkpoint_every=60, log_every=10, measure_rows=8, **GPT), made, out)
    return out


@pytest.mark.parametrize(
    "settings",
    [
        GPT | {"packing": "documents"},
        pytest.param({"architecture": "bert", "objective": "causal"}, marks=pytest.mark.matrix),
        pytest.param({"objective": "causal", "phases": SHORT_FIRST}, marks=pytest.mark.matrix),
        pytest.param(GPT | {"engine": "deepspeed", "zero_stage": 3, "precision": "bf16"}, marks=pytest.mark.matrix),
    ],
)
def test_the_loss_falls_and_a_resumed_run_is_the_same_bit_for_bit(
    made: Path, tmp_path: Path, tiny, settings: dict[str, Any]
) -> None:
    config = tiny(steps=30, checkpoint_every=14, keep_checkpoints=3, log_every=5, measure_rows=8, **settings)
    train(config, made, tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    rewind_to(tmp_path / "twice", 14)
    train(config, made, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")
    lines = [line for line in lines_without_timing(tmp_path / "once") if "loss" in line]
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.3


@pytest.mark.matrix
def test_two_processes_train_like_one(made: Path, tmp_path: Path, tiny) -> None:
    config = tiny(steps=4, dropout=0.0, log_every=1, **GPT)
    train(config, made, tmp_path / "one")
    finish(launch(config, made, tmp_path / "two", TORCHRUN, DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1"))
    one, many = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("one", "two"))
    assert one.keys() == many.keys() and max(abs(one[name] - many[name]).max() for name in one) < 1e-5


def test_greedy_generation_is_what_stepping_by_hand_gives(made: Path, trained: Path, tmp_path: Path, tiny) -> None:
    out = tmp_path / "model"
    out.mkdir()
    export(tiny(**GPT), ExportInputs(trained, made / "tokenizer"), out)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    assert type(model).__name__ == "GPT2LMHeadModel" and model.config.n_inner == 32
    assert (tokenizer.bos_token, tokenizer.eos_token, model.config.eos_token_id) == ("[CLS]", "[SEP]", 2)
    start = tokenizer("윤슬은", return_tensors="pt")
    assert start["input_ids"][0].tolist() == [0, *tokenizer("윤슬은", add_special_tokens=False)["input_ids"]]
    assert list(start) == ["input_ids", "attention_mask"]  # GPT-2 would add token types to the embeddings
    ids = start["input_ids"]
    found = model.generate(**start, max_new_tokens=12, do_sample=False)
    with torch.no_grad():
        while ids.shape[1] < found.shape[1]:
            assert tokenizer.eos_token_id not in ids[0]
            ids = torch.cat([ids, model(ids, use_cache=False).logits[:, -1:].argmax(-1)], dim=1)
    assert found.tolist() == ids.tolist() and ids.shape[1] > start["input_ids"].shape[1]
    generate = pipeline("text-generation", model=str(out))
    texts = generate("윤슬은", max_new_tokens=12, do_sample=False)
    assert (
        texts
        == [{"generated_text": tokenizer.decode(ids[0], skip_special_tokens=True)}]
        != [{"generated_text": "윤슬은"}]
    )


def test_the_card_and_the_result_say_what_was_trained(trained: Path) -> None:
    card = (trained / "model" / "README.md").read_text("utf-8")
    assert "pipeline_tag: text-generation" in card and "causal language modelling" in card and "| masks |" not in card
    assert "next-token loss" in card and "AutoModelForMaskedLM" not in card
    held_out = json.loads((trained / "result.json").read_text("utf-8"))["held_out"]
    assert held_out["perplexity"] < 60 and set(held_out["baselines"]) == {"unigram_accuracy", "bigram_accuracy"}
    lines = [line for line in lines_without_timing(trained) if "loss" in line]
    assert lines[-1]["tokens"] == 60 * 8 * 32 and lines[-1]["loss"] < lines[0]["loss"] - 1
    assert (trained / "checkpoints" / "best").read_text("utf-8") == "step-000000060"


def test_an_encoder_trained_causally_continues_masked(made: Path, tmp_path: Path, tiny) -> None:
    """The way of arXiv 2507.00994: with its weights alone, or as a branch."""
    sizes = {"steps": 2, "measure_rows": 8, "log_every": 1}
    train(tiny(objective="causal", **sizes), made, tmp_path / "causal")
    start = str(tmp_path / "causal" / "model")
    described = json.loads((Path(start) / "config.json").read_text("utf-8"))
    assert (described["architectures"], described["is_decoder"]) == (["RobertaForCausalLM"], True)
    train(tiny(continue_from=str(tmp_path / "causal"), **sizes), made, tmp_path / "branch")
    train(tiny(init_from=start, **sizes), made, tmp_path / "masked")
    described = json.loads((tmp_path / "masked" / "model" / "config.json").read_text("utf-8"))
    assert described["architectures"] == ["RobertaForMaskedLM"] and not described.get("is_decoder")
    with pytest.raises(BadInput, match="a model of type roberta, but"):
        check_init_from(tiny(init_from=start, **GPT))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (GPT | {"objective": "masked"}, "gpt reads from left to right; choose objective causal"),
        ({"architecture": "bert", "nsp": True, "objective": "causal"}, "nsp needs objective masked"),
        (
            {"architecture": "modernbert", "objective": "causal"},
            "objective causal needs architecture roberta, bert or gpt",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_sentence(tiny, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        tiny(**settings)


def test_the_default_objective_of_gpt_is_causal(tiny) -> None:
    assert tiny(**GPT).is_causal and not tiny().is_causal
