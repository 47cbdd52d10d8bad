"""Models of the paper's Table 31, and sums equal to what transformers computes from full scores."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from pretrain.config import PretrainConfig
from pretrain.masking import IGNORED
from pretrain.model import PretrainingModule, build_network, weight_decay_groups

BERT_IDS = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
ROBERTA_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
SMALL, LARGE = {"layers": 6}, {"layers": 24, "hidden": 1024, "heads": 16, "intermediate": 4096}


@pytest.mark.parametrize(
    ("settings", "special_ids", "millions"),
    [
        (SMALL, ROBERTA_IDS, 68.12),
        ({}, ROBERTA_IDS, 110.65),
        (LARGE, ROBERTA_IDS, 336.69),
        ({"architecture": "bert", "nsp": True}, BERT_IDS, 111.24),
    ],
)
def test_parameter_counts_are_those_of_table_31(settings: dict, special_ids: dict, millions: float) -> None:
    with torch.device("meta"):
        network = build_network(PretrainConfig.model_validate(settings), 32_000, special_ids)
    assert round(sum(p.numel() for p in network.parameters()) / 1e6, 2) == millions


def test_settings_are_those_of_the_released_models() -> None:
    with torch.device("meta"):
        roberta = build_network(PretrainConfig(), 32_000, ROBERTA_IDS).config
        bert = build_network(PretrainConfig(architecture="bert", nsp=True), 32_000, BERT_IDS).config
    released = (514, 1, 1e-5, 1, 0, 2)
    names = ("max_position_embeddings", "type_vocab_size", "layer_norm_eps", "pad_token_id")
    assert tuple(getattr(roberta, n) for n in (*names, "bos_token_id", "eos_token_id")) == released
    assert tuple(getattr(bert, n) for n in names) == (512, 2, 1e-12, 0)


def test_weights_depend_on_the_seed_only(tiny) -> None:
    first = build_network(tiny(), 50, ROBERTA_IDS).state_dict()
    torch.manual_seed(99)
    again = build_network(tiny(), 50, ROBERTA_IDS).state_dict()
    other = build_network(tiny(seed=2), 50, ROBERTA_IDS).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    name = "roberta.embeddings.word_embeddings.weight"
    assert not torch.equal(first[name], other[name])


@pytest.mark.parametrize("nsp", [False, True])
def test_sums_equal_those_from_full_scores(tiny, nsp: bool) -> None:
    architecture = "bert" if nsp else "roberta"
    network = build_network(tiny(architecture=architecture, nsp=nsp, dropout=0.0), 50, ROBERTA_IDS)
    generator = torch.Generator().manual_seed(3)
    ids_BL = torch.randint(5, 50, (3, 12), generator=generator)
    positions_BM, targets_BM = torch.tensor([[1, 4], [2, 0], [7, 9]]), torch.tensor([[8, 9], [10, IGNORED], [11, 12]])
    labels_BL = torch.full_like(ids_BL, IGNORED)
    for row, place in ((0, 0), (0, 1), (1, 0), (2, 0), (2, 1)):
        labels_BL[row, positions_BM[row, place]] = targets_BM[row, place]
    pairs = (torch.ones_like(ids_BL) * (ids_BL > 25), torch.ones_like(ids_BL), torch.tensor([0, 1, 1])) if nsp else ()
    sums = PretrainingModule(network)(ids_BL, positions_BM, targets_BM, *pairs)
    if not nsp:
        assert sums.mlm_loss.item() / 5 == pytest.approx(network(ids_BL, labels=labels_BL).loss.item(), rel=1e-6)
        return
    full = network(ids_BL, attention_mask=pairs[1], token_type_ids=pairs[0])
    expected = cross_entropy(full.prediction_logits.flatten(0, 1), labels_BL.flatten(), ignore_index=IGNORED)
    assert sums.mlm_loss.item() / 5 == pytest.approx(expected.item(), rel=1e-6)
    expected = cross_entropy(full.seq_relationship_logits, pairs[2])
    assert sums.nsp_loss.item() / 3 == pytest.approx(expected.item(), rel=1e-6)


def test_biases_and_layer_norms_do_not_decay(tiny) -> None:
    network = build_network(tiny(), 50, ROBERTA_IDS)
    decayed, kept = weight_decay_groups(network, 0.01)
    shapes = {name: id(p) for name, p in network.named_parameters()}
    kept_ids = {id(p) for p in kept["params"]}
    assert kept["weight_decay"] == 0.0 and decayed["weight_decay"] == 0.01
    assert kept_ids == {place for name, place in shapes.items() if name.endswith("bias") or "LayerNorm" in name
                        or "layer_norm" in name}  # fmt: skip
