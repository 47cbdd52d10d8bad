"""Operations of a token against the published shapes, and against a count of every matrix product that is run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pretrain.config import PretrainConfig
from pretrain.metrics.flops import attended_length, flops_per_token
from pretrain.model import sizes
from pretrain.model.isolation import isolate_documents
from pretrain.model.loss import PretrainingModule
from pretrain.model.networks import build_network
from tests.pretrain.settings import in_sections

SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ({"layers": 6}, 271.7),
        ({}, 554.9),
        ({"packing": "documents"}, 561.9),  # the last layer's queries and attention as wide as the others'
        ({"layers": 24, "hidden": 1024, "heads": 16, "intermediate": 4096}, 1934.7),
    ],
)
def test_the_sizes_of_table_31_cost_what_their_matrices_say(size: dict[str, int], expected: float) -> None:
    assert flops_per_token(PretrainConfig.model_validate(in_sections(size)), 32_000) / 1e6 == pytest.approx(
        expected, abs=0.05
    )


@pytest.mark.parametrize("family", [{}, {"architecture": "modernbert", "layers": 3}])
@pytest.mark.parametrize("packing", ["blocks", "documents"])
def test_the_formula_counts_what_torch_counts(
    tiny: Callable[..., PretrainConfig], family: dict, packing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "LOCAL_WINDOW", 128)  # more than a row
    config, vocab_size = tiny(**{"layers": 2, "dropout": 0.0, "packing": packing} | family), 96
    network = build_network(config, vocab_size, SPECIAL_IDS)
    if packing == "documents":
        isolate_documents(network)
    module = PretrainingModule(network)
    length, most = config.rows.sequence_length, 5  # 15 % of 32
    ids_BL = torch.randint(5, vocab_size, (3, length))
    positions_BM = torch.arange(most).expand(3, -1)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:  # plain products, counted anywhere
        module(ids_BL, positions_BM, torch.full((3, most), 7), None, torch.full((3, 1), length)).mlm_loss.backward()
    assert flops_per_token(config, vocab_size) * 3 * length == counter.get_total_flops()


def test_isolated_documents_spare_attention_alone(tiny: Callable[..., PretrainConfig]) -> None:
    config = tiny(packing="documents")
    lengths_BS = np.array([[24, 8], [32, 0]])
    attended = attended_length(lengths_BS)
    assert attended == pytest.approx((24 * 24 + 8 * 8 + 32 * 32) / 64)
    spared = flops_per_token(config, 96) - flops_per_token(config, 96, lengths_BS)
    assert spared == pytest.approx(12 * config.model.layers * config.model.hidden * (32 - attended))


def test_local_layers_count_the_tokens_in_reach(
    tiny: Callable[..., PretrainConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths_BS = np.array([[24, 7, 1], [2, 0, 0]])
    seen = sum(abs(i - j) <= 3 for n in lengths_BS.flat for i in range(n) for j in range(n))
    assert attended_length(lengths_BS, 3) == pytest.approx(seen / 34)
    modern = {"architecture": "modernbert", "layers": 5, "packing": "documents"}
    flops = []
    for window in (64, 6):
        monkeypatch.setattr(sizes, "LOCAL_WINDOW", window)
        flops.append(flops_per_token(tiny(**modern), 96, lengths_BS))
    spared = flops[0] - flops[1]
    assert spared == pytest.approx(3 * 12 * 16 * (attended_length(lengths_BS) - seen / 34))  # layers 1, 2 and 4
