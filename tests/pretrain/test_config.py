"""Settings of pretraining that do not go together are refused, and their neighbors are not."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import ValidationError

from pretrain.config import EngineConfig, MaskingConfig, ModelConfig, PretrainConfig, RowsConfig

MODERN = {"architecture": "modernbert", "embedding_init": "cooccurrence"}


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        (ModelConfig, {"hidden": 96, "heads": 12}, None),
        (ModelConfig, {"hidden": 96, "heads": 13}, "multiple of heads"),
        (ModelConfig, {"architecture": "bert", "nsp": True}, None),
        (ModelConfig, {"architecture": "roberta", "nsp": True}, "nsp needs architecture bert"),
        (ModelConfig, {"architecture": "bert", "nsp": True, "objective": "causal"}, "nsp needs objective masked"),
        (ModelConfig, {"architecture": "gpt"}, None),
        (ModelConfig, {"architecture": "gpt", "objective": "causal"}, None),
        (ModelConfig, {"architecture": "gpt", "objective": "masked"}, "from left to right"),
        (ModelConfig, {"architecture": "roberta", "objective": "causal"}, None),
        (ModelConfig, {"architecture": "modernbert", "objective": "causal"}, "needs architecture"),
        (ModelConfig, {**MODERN, "attention_init": "from_counts", "layers": 2}, None),
        (ModelConfig, {**MODERN, "attention_init": "from_counts", "layers": 1}, "from_counts needs"),
        (ModelConfig, {"architecture": "modernbert", "attention_init": "from_counts"}, "from_counts needs"),
        (ModelConfig, {"embedding_init": "cooccurrence", "attention_init": "from_counts"}, "from_counts needs"),
        (ModelConfig, {"architecture": "modernbert", "hidden": 36, "heads": 4}, "heads"),
        (ModelConfig, {"architecture": "roberta", "hidden": 36, "heads": 4}, None),
        (RowsConfig, {"short_length": 127}, "short_length was removed: use pretrain.phases"),
        (MaskingConfig, {"shares": [{"share": 0.3}]}, "shares was removed: use pretrain.phases"),
        (PretrainConfig, {"phases": [{"until": 0.5, "sequence_length": 128}, {}]}, None),
        (PretrainConfig, {"phases": [{"until": 0.5}, {"until": 0.9}]}, "until must rise"),
        (PretrainConfig, {"phases": [{"until": 1}, {"until": 1}]}, "until must rise"),
        (PretrainConfig, {"phases": [{"sequence_length": 513}]}, "exceeds rows.sequence_length 512"),
        (PretrainConfig, {"phases": [{"rope_theta": 10_000}]}, "rope_theta needs architecture modernbert"),
        (PretrainConfig, {"phases": [{"lr": 1e-4, "schedule": "wsd", "warmup_steps": 10}]}, None),
        (PretrainConfig, {"phases": [{"lr": 1e-4, "warmup_steps": 1_000_001}]}, "of 1000000 steps leaves none"),
        (PretrainConfig, {"phases": [{"warmup_steps": 5}]}, "need lr"),
        (PretrainConfig, {"rows": {"sources": {"law": -1}}}, "greater than or equal to 0"),
        (
            PretrainConfig,
            {"model": {"architecture": "bert", "nsp": True}, "rows": {"sources": {"law": 2}}},
            "leave out rows.sources",
        ),
        (EngineConfig, {"micro_batch": "auto"}, None),
        (EngineConfig, {"micro_batch": 1}, None),
        (EngineConfig, {"micro_batch": 0}, "greater than 0"),
        (EngineConfig, {"precision": "fp16", "name": "deepspeed", "zero_stage": 1}, None),
        (EngineConfig, {"precision": "fp16", "name": "auto", "zero_stage": 1}, None),
        (EngineConfig, {"precision": "fp16", "name": "ddp", "zero_stage": 0}, None),
        (EngineConfig, {"precision": "fp16", "name": "deepspeed", "zero_stage": 0}, "zero_stage 1 or more"),
        (EngineConfig, {"precision": "bf16", "name": "plain"}, None),
        (PretrainConfig, {"rows": {"sequence_length": 128}, "model": {"positions": 128}}, None),
        (PretrainConfig, {"rows": {"sequence_length": 129}, "model": {"positions": 128}}, "exceeds model.positions"),
        (PretrainConfig, {"rows": {"sequence_length": 129}, "model": {"positions": 128}, "init_from": "a"}, None),
        (PretrainConfig, {"steps": 10, "optimizer": {"warmup_steps": 9}}, None),
        (PretrainConfig, {"steps": 10, "optimizer": {"warmup_steps": 10}}, "leaves no step"),
        (PretrainConfig, {"steps": 10, "optimizer": {"warmup_share": 0.8, "schedule": "wsd"}}, None),
        (PretrainConfig, {"steps": 10, "optimizer": {"warmup_share": 0.81, "schedule": "wsd"}}, "leaves no step"),
        (PretrainConfig, {"init_from": "a"}, None),
        (PretrainConfig, {"model": {"embedding_init": "cooccurrence"}}, None),
        (PretrainConfig, {"init_from": "a", "model": {"embedding_init": "cooccurrence"}}, "brings trained weights"),
        (PretrainConfig, {"init_from": "a", "model": {"output_bias": "frequency"}}, "brings trained weights"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(kind: Any, settings: dict[str, Any], said: str | None) -> None:
    with pytest.raises(ValidationError, match=said) if said else nullcontext():
        kind.model_validate(settings)
