"""The exported folder is what transformers loads."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from pretrain.config import BadInput
from pretrain.export import ExportInputs
from pretrain.export import run as export
from pretrain.run import PretrainInputs
from pretrain.run import run as pretrain
from tests.pretrain.conftest import invented_documents, write_tokenizer


@pytest.mark.parametrize("settings", [{}, {"architecture": "bert"}, {"architecture": "bert", "nsp": True}])
def test_the_folder_loads_with_trained_weights(made: Path, tmp_path: Path, tiny, settings: dict) -> None:
    config = tiny(steps=2, **settings)
    trained, out = tmp_path / "pretrain", tmp_path / "model"
    trained.mkdir()
    out.mkdir()
    pretrain(config, PretrainInputs(made / "tokens", made / "tokenizer"), trained)
    counts = export(config, ExportInputs(trained, made / "tokenizer"), out)
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    saved = load_file(trained / "model" / "model.safetensors")
    loaded = model.state_dict()
    assert all(torch.equal(loaded[name], saved[name]) for name in loaded.keys() & saved.keys())
    assert len(loaded.keys() & saved.keys()) >= len(loaded) - 2  # the two tied ones are stored once
    assert counts["parameters"] == sum(tensor.numel() for tensor in saved.values())
    assert model.config.pad_token_id == tokenizer.pad_token_id == 1
    assert tokenizer.model_max_length == config.positions
    assert {"README.md", "vocab.txt", "tokenizer.json"} <= {path.name for path in out.iterdir()}
    encoder = AutoModel.from_pretrained(out)
    longest = tokenizer("윤슬은 바다에서 노래했다. " * 30, "가람은 별을 보았다.", truncation=True, return_tensors="pt")
    assert encoder(**longest).last_hidden_state.shape == (1, config.positions, config.hidden)
    assert ("token_type_ids" in longest) == (config.architecture == "bert")


def test_unfinished_training_or_another_tokenizer_is_refused(made: Path, tmp_path: Path, tiny) -> None:
    with pytest.raises(BadInput, match="training has not finished"):
        export(tiny(), ExportInputs(tmp_path, made / "tokenizer"), tmp_path)
    trained = tmp_path / "pretrain"
    trained.mkdir()
    pretrain(tiny(steps=1), PretrainInputs(made / "tokens", made / "tokenizer"), trained)
    other = write_tokenizer(tmp_path / "tokenizer", invented_documents(2))
    with pytest.raises(BadInput, match="another vocabulary"):
        export(tiny(steps=1), ExportInputs(trained, other), tmp_path)
