"""Encoder folders: segments, lengths, and what is said about folders that are none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, DebertaV2Config, ElectraConfig, RobertaConfig

from finetune.config import BadInput
from finetune.encoder import digest, has_segments, load_config, load_encoder, load_tokenizer, most_tokens


def test_only_encoders_with_segments_get_segment_ids() -> None:
    assert has_segments(BertConfig())
    assert has_segments(ElectraConfig())
    assert not has_segments(RobertaConfig(type_vocab_size=1))
    assert not has_segments(DebertaV2Config())


def test_roberta_positions_begin_behind_the_padding_id() -> None:
    assert most_tokens(BertConfig(max_position_embeddings=512)) == 512
    assert most_tokens(RobertaConfig(max_position_embeddings=514, pad_token_id=1)) == 512


def test_a_roberta_with_bert_style_inputs_does_not_fail_on_segment_ids(tiny_encoder) -> None:
    folder, tokenizer = tiny_encoder(["가나다"], "roberta")
    pair = tokenizer("가나", "다", return_tensors="pt", return_token_type_ids=True)
    assert pair["token_type_ids"].max() == 1
    states = load_encoder(folder)(**pair).last_hidden_state
    assert states.shape == (1, pair["input_ids"].shape[1], 32)
    assert torch.isfinite(states).all()


def test_the_longest_input_that_is_allowed_runs(tiny_encoder) -> None:
    for kind in ("bert", "roberta"):
        folder, _ = tiny_encoder(["가나다"], kind)
        longest = most_tokens(load_config(folder))
        assert longest is not None
        ids = torch.full((1, longest), 5)
        assert load_encoder(folder)(ids, torch.ones_like(ids)).last_hidden_state.shape[1] == longest


def test_markers_are_added_once(tiny_encoder) -> None:
    folder, plain = tiny_encoder(["가나다"])
    tokenizer = load_tokenizer(folder, ("<subj>", "</subj>"))
    assert len(tokenizer) == len(plain) + 2
    assert tokenizer.tokenize("가<subj>나</subj>") == ["가", "<subj>", "나", "</subj>"]


def test_a_folder_without_an_encoder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no config.json here"):
        load_config(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', "utf-8")
    with pytest.raises(BadInput, match="its weights cannot be loaded"):
        load_encoder(str(tmp_path))


def test_the_digest_changes_with_the_weights(tiny_encoder) -> None:
    folder, _ = tiny_encoder(["가나다"])
    before = digest(folder)
    weights = Path(folder) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert digest(folder) != before
