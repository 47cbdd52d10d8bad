"""The span head: cuts are rare before training, and only windows with an answer add to their loss."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional
from transformers import BertConfig, BertModel

from finetune.heads.span import SpanFinder


def make_finder(cuts: int) -> SpanFinder:
    torch.manual_seed(1)
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    return SpanFinder(BertModel(config, add_pooling_layer=False), cuts).eval()


def make_batch() -> dict[str, torch.Tensor]:
    """Three windows of five tokens; the second has no answer, the third is padded."""
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    return {
        "input_ids": torch.arange(15).reshape(3, 5) % 9, "attention_mask": mask, "candidates": mask.bool(),
        "start": torch.tensor([1, 0, 2]), "end": torch.tensor([3, 0, 2]), "cut": torch.tensor([2, 1, 0]),
    }  # fmt: skip


@pytest.mark.parametrize("cuts", [1, 3])
def test_cuts_are_initialized_as_rare_as_they_are(cuts: int) -> None:
    probabilities_C = make_finder(cuts).cuts(torch.randn(8)).softmax(dim=0).detach()
    assert float(probabilities_C[1:].sum()) == pytest.approx(0.01, abs=1e-5)
    torch.testing.assert_close(probabilities_C[1:], probabilities_C[1].expand(cuts))


@pytest.mark.parametrize("cuts", [0, 3])
@torch.no_grad()
def test_the_loss_is_the_mean_of_both_ends_and_that_of_the_cuts_of_answers(cuts: int) -> None:
    finder, batch = make_finder(cuts), make_batch()
    start_BL, end_BL, states_BLH = finder.score_ends(batch)
    assert (start_BL[2, 3:] < -1e3).all() and (end_BL[2, 3:] < -1e3).all() and (start_BL[:2] > -1e3).all()
    expected = functional.cross_entropy(torch.cat([start_BL, end_BL]), torch.cat([batch["start"], batch["end"]]))
    if cuts:
        cuts_BC = finder.cuts(torch.stack([states_BLH[0, 3], states_BLH[2, 2]]))
        expected += functional.cross_entropy(cuts_BC, torch.tensor([2, 0]))
    torch.testing.assert_close(finder(**batch)["loss"], expected)
    empty = batch | {"start": torch.zeros(3).long(), "end": torch.zeros(3).long()}
    assert bool(finder(**empty)["loss"].isfinite())


@pytest.mark.parametrize("cuts", [0, 3])
def test_predictions_lack_padding_and_the_threshold_is_taken_from_no_answer(cuts: int) -> None:
    finder, batch = make_finder(cuts), make_batch()
    with torch.no_grad():
        start_BL, end_BL, states_BLH = finder.score_ends(batch)
    finder.threshold.fill_(2.5)
    rows = finder.predict(**batch)
    assert [len(row["start"]) for row in rows] == [5, 5, 3]
    for n, row in enumerate(rows):
        size = len(row["start"])
        start = start_BL[n, :size].numpy().copy()
        start[0] -= 2.5
        assert row["start"] == pytest.approx(start, abs=1e-5) and row["end"] == pytest.approx(end_BL[n, :size].numpy())
        cut = finder.cuts(states_BLH[n, :size]).argmax(-1) if cuts else torch.zeros(size)
        assert row["cut"].tolist() == cut.int().tolist() and row["cut"].dtype == "uint8"
