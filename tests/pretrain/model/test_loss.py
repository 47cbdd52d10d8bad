"""Models of the paper's Table 31, and sums equal to what transformers computes from full scores."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from pretrain.batching.masking import IGNORED
from pretrain.config import ModelConfig, PretrainConfig
from pretrain.model.isolation import isolate_documents
from pretrain.model.loss import PretrainingModule, loss_and_hits
from pretrain.model.networks import build_network
from tests.pretrain.settings import in_sections

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
        network = build_network(PretrainConfig.model_validate(in_sections(settings)), 32_000, special_ids)
    assert round(sum(p.numel() for p in network.parameters()) / 1e6, 2) == millions


def test_settings_are_those_of_the_released_models() -> None:
    with torch.device("meta"):
        roberta = build_network(PretrainConfig(), 32_000, ROBERTA_IDS).config
        bert = build_network(PretrainConfig(model=ModelConfig(architecture="bert", nsp=True)), 32_000, BERT_IDS).config
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


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("nsp", [False, True])
def test_sums_equal_those_from_full_scores(tiny, nsp: bool, isolated: bool) -> None:
    architecture = "bert" if nsp else "roberta"
    config = tiny(architecture=architecture, nsp=nsp, dropout=0.0)
    network, stock = (build_network(config, 50, ROBERTA_IDS) for _ in range(2))
    if isolated:
        isolate_documents(network)
    generator = torch.Generator().manual_seed(3)
    ids_BL = torch.randint(5, 50, (3, 12), generator=generator)
    positions_BM, targets_BM = torch.tensor([[1, 4], [2, 0], [7, 9]]), torch.tensor([[8, 9], [10, IGNORED], [11, 12]])
    labels_BL = torch.full_like(ids_BL, IGNORED)
    for row, place in ((0, 0), (0, 1), (1, 0), (2, 0), (2, 1)):
        labels_BL[row, positions_BM[row, place]] = targets_BM[row, place]
    lengths_B1 = torch.tensor([[12], [5], [10]])
    padding_BL = torch.arange(12) >= lengths_B1
    ids_BL[padding_BL] = ROBERTA_IDS["pad"]
    types_BL = (torch.arange(12) > 3).long().expand(3, 12) * ~padding_BL if nsp else None
    is_random_B1 = torch.tensor([[0], [1], [1]]) if nsp else None
    sums = PretrainingModule(network)(ids_BL, positions_BM, targets_BM, types_BL, lengths_B1, is_random_B1)
    full = stock(ids_BL, attention_mask=(~padding_BL).long(), token_type_ids=types_BL)
    scores = full.prediction_logits if nsp else full.logits
    expected = cross_entropy(scores.flatten(0, 1), labels_BL.flatten(), ignore_index=IGNORED, reduction="sum")
    assert sums.mlm_loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert sums.mlm_hits.item() == (scores.argmax(-1) == labels_BL).sum().item()
    if is_random_B1 is not None:
        expected = cross_entropy(full.seq_relationship_logits, is_random_B1[:, 0], reduction="sum")
        assert sums.other_loss.item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("isolated", [False, True])
def test_full_blocks_need_no_lengths(tiny, isolated: bool) -> None:
    network, stock = (build_network(tiny(dropout=0.0), 50, ROBERTA_IDS) for _ in range(2))
    if isolated:
        isolate_documents(network)
    ids_BL = torch.randint(5, 50, (2, 8), generator=torch.Generator().manual_seed(4))
    labels_BL = torch.full_like(ids_BL, IGNORED)
    labels_BL[:, 3] = torch.tensor([7, 9])
    sums = PretrainingModule(network)(ids_BL, torch.tensor([[3], [3]]), torch.tensor([[7], [9]]))
    assert sums.mlm_loss.item() / 2 == pytest.approx(stock(ids_BL, labels=labels_BL).loss.item(), rel=1e-6)


def test_several_segments_need_an_isolated_network(tiny) -> None:
    module = PretrainingModule(build_network(tiny(), 50, ROBERTA_IDS))
    ones = torch.ones(1, 8, dtype=torch.long)
    with pytest.raises(AssertionError):
        module(ones, ones[:, :1], ones[:, :1], None, torch.tensor([[4, 4]]))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
def test_values_and_gradients_are_those_of_torch(dtype: torch.dtype, tolerance: float) -> None:
    generator = torch.Generator().manual_seed(1)
    scores = (torch.randn(40, 300, generator=generator) * 9).to(dtype)
    targets = torch.randint(0, 300, (40,), generator=generator)
    targets[:7], targets[7:12] = IGNORED, scores[7:12].argmax(-1)
    ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    loss, hits = loss_and_hits(ours, targets)
    expected = cross_entropy(theirs.float(), targets, ignore_index=IGNORED, reduction="sum")
    assert loss.dtype == torch.float32 and loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert hits.item() == (scores.argmax(-1) == targets).sum().item() >= 5
    (loss / 7).backward()
    (expected / 7).backward()
    assert ours.grad.dtype == dtype and torch.allclose(ours.grad, theirs.grad, atol=tolerance)
    assert not ours.grad[:7].any()


def test_nothing_to_predict_is_no_loss_and_large_scores_do_not_overflow() -> None:
    scores = torch.tensor([[1e4, -1e4], [3e38, 0.0]], requires_grad=True)
    loss, hits = loss_and_hits(scores, torch.full((2,), IGNORED))
    assert loss.item() == hits.item() == 0.0
    loss, hits = loss_and_hits(scores, torch.tensor([1, 0]))
    assert loss.item() == pytest.approx(2e4) and hits.item() == 1
    loss.backward()
    assert scores.grad.tolist() == [[1.0, -1.0], [0.0, 0.0]]
