"""Bilinear forms against those of torch."""

from __future__ import annotations

import torch
from torch.nn import functional

from finetune.heads.biaffine import Biaffine


def test_bilinear_forms_equal_those_of_torch():
    torch.manual_seed(1)
    forms = Biaffine(5, 3)
    with torch.no_grad():
        forms.weight.normal_()
    weight = forms.weight
    left_BWX, right_BPX = torch.randn(2, 4, 5), torch.randn(2, 6, 5)
    chosen_BWX = right_BPX[:, [0, 2, 5, 1]]
    expected_BWK = (
        functional.bilinear(left_BWX, chosen_BWX, weight[:, :-1, :-1].contiguous(), weight[:, -1, -1])
        + left_BWX @ weight[:, :-1, -1].T
        + chosen_BWX @ weight[:, -1, :-1].T
    )
    torch.testing.assert_close(forms.score_pairs(left_BWX, chosen_BWX), expected_BWK)
    all_BWPK = torch.stack([forms.score_all(left_BWX, right_BPX, form) for form in range(3)], dim=-1)
    torch.testing.assert_close(all_BWPK[:, [0, 1, 2, 3], [0, 2, 5, 1]], expected_BWK)
    heads_BWC = torch.tensor([[[5, 0], [1, 2], [3, 3], [0, 4]]] * 2)
    best_BWP, some_BWCK = forms.find_best(left_BWX, right_BPX, heads_BWC)
    assert torch.equal(best_BWP, all_BWPK.argmax(-1).to(torch.uint8))
    assert torch.equal(some_BWCK, all_BWPK.gather(2, heads_BWC[..., None].expand(-1, -1, -1, 3)))


def test_initial_forms_are_the_published_ones_by_block() -> None:
    """The square, both linear parts and the bias are initialized apart: Xavier's bounds, and 0 for the bias."""
    torch.manual_seed(1)
    weight_KXY = Biaffine(40, 30).weight.detach()
    assert not weight_KXY[:, -1, -1].any()
    for block in (weight_KXY[:, :-1, :-1], weight_KXY[:, :-1, -1], weight_KXY[:, -1, :-1]):
        receptive = block[0, 0].numel()
        bound = (6 / (block.shape[1] * receptive + block.shape[0] * receptive)) ** 0.5
        assert block.count_nonzero() == block.numel()
        assert 0.9 * bound < block.abs().max() <= bound
