"""The summed loss against torch's cross-entropy."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from pretrain.losses import loss_and_hits
from pretrain.masking import IGNORED


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
