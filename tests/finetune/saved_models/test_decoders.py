"""A decoder under all tasks through the whole stage: trained with adapters, kept, loaded again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, LlamaConfig

from finetune.run import FinetuneInputs, run
from finetune.saved_models.load import load_model
from finetune.score.scores import read_rows
from tests.finetune.encoder.test_kinds import SIZES, llama_like
from tests.finetune.saved_models.conftest import configure
from tests.finetune.saved_models.test_load import predict_again


@pytest.fixture
def decoder(tmp_path: Path) -> str:
    torch.manual_seed(1)
    tokenizer = llama_like()
    changed = {"vocab_size": len(tokenizer), "num_key_value_heads": 1, "max_position_embeddings": 512}
    AutoModel.from_config(LlamaConfig(**{**SIZES, **changed})).save_pretrained(tmp_path / "llama")
    tokenizer.save_pretrained(tmp_path / "llama")
    return str(tmp_path / "llama")


def test_a_kept_decoder_predicts_what_its_training_predicted_and_needs_no_peft(
    decoder: str, sample_inputs: FinetuneInputs, tmp_path: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = "ynat", "klue-re", "wos"  # labels, added tokens, embeddings that are read again
    config = configure(*tasks, models=("llama",), lora={"rank": 2})
    inputs = FinetuneInputs(sample_inputs.data, {"llama": decoder})
    run(config, inputs, tmp_path / "runs")
    monkeypatch.setitem(sys.modules, "peft", None)
    for task in tasks:
        folder = tmp_path / "runs" / task / "llama" / "seed-1"
        scores = json.loads((folder / "scores.json").read_text("utf-8"))
        assert scores["recipe"]["lora"]["rank"] == 2
        assert 0 < scores["parameters"]["trained"] < scores["parameters"]["all"]
        assert not [name for name in load_file(folder / "model" / "model.safetensors") if "lora" in name]
        kept = load_model(folder / "model", "cpu")
        assert predict_again(kept, config, sample_inputs.data) == read_rows(folder / "predictions.jsonl"), task
