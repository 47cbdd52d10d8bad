"""Parameters by formula against the stock classes of transformers, and against the paper's Table 31."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pretrain.config import ModelConfig, PretrainConfig
from pretrain.model.networks import build_network
from pretrain.model.sizes import count_parameters

SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
BERT_IDS = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture": "roberta"},
        {"architecture": "roberta", "objective": "causal"},
        {"architecture": "bert"},
        {"architecture": "bert", "nsp": True},
        {"architecture": "bert", "objective": "causal"},
        {"architecture": "modernbert"},
        {"architecture": "modernbert", "layers": 1},
        {"architecture": "gpt"},
    ],
    ids=lambda changes: "-".join(map(str, changes.values())),
)
def test_the_formula_counts_what_transformers_builds(tiny: Callable[..., PretrainConfig], changes: dict) -> None:
    config = tiny(**{"layers": 3, "hidden": 24, "heads": 4, "intermediate": 40} | changes)
    with torch.device("meta"):
        network = build_network(config, 101, BERT_IDS if config.model.architecture == "bert" else SPECIAL_IDS)
    assert count_parameters(config.model, 101) == sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize(
    ("sizes", "published"),  # millions
    [
        ({"layers": 6}, 68),
        ({}, 110),
        ({"layers": 24, "hidden": 1024, "heads": 16, "intermediate": 4096}, 337),
        ({"architecture": "bert", "nsp": True}, 110),
    ],
)
def test_the_sizes_of_table_31(sizes: dict, published: int) -> None:
    assert count_parameters(ModelConfig(**sizes), 32_000) / 1e6 == pytest.approx(published, rel=0.012)
