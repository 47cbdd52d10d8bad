"""Span head: a start and an end score for each position; [CLS] represents "no answer" (KLUE paper 5.1, KLUE-MRC).

One linear map on the encoder, as published. A second one is ours: how many characters of an answer's last token are
after the answer, for tokens that contain a noun and its particle.
Legend: ``B`` windows, ``L`` positions, ``C`` numbers of characters, 0 first.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from finetune.encoder.loading import Encoder

CUT_SHARE = 0.01  # 9 of the 839 answers at hand
IMPOSSIBLE = -1e4  # score of a position that can be no end of a span


class SpanFinder(nn.Module):
    """Positions that are no candidates, such as padding, do not compete, so padding changes nothing.

    ``threshold``, part of the weights, is the required lead of "no answer" over the best span: ``predict`` subtracts it
    from the start score of [CLS]. It is 0 until ``finetune.tasks.mrc.task.tune`` sets it on held-out examples.
    """

    threshold: Tensor

    def __init__(self, encoder: Encoder, cuts: int) -> None:
        """``cuts``: most characters to cut off an answer's last token; 0: no such map."""
        super().__init__()
        self.encoder, self.head = encoder, {"cuts": cuts}
        self.ends = nn.Linear(int(encoder.config.hidden_size), 2)
        self.cuts = nn.Linear(int(encoder.config.hidden_size), cuts + 1) if cuts else None
        self.register_buffer("threshold", torch.zeros(()))
        if self.cuts is not None:  # begins with what it would have to learn first: how rare cuts are
            nn.init.zeros_(self.cuts.weight)
            nn.init.zeros_(self.cuts.bias)
            self.cuts.bias.data[0] = math.log(cuts * (1 - CUT_SHARE) / CUT_SHARE)

    def score_ends(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Start and end scores (B, L), hidden states (B, L, H)."""
        names = ("input_ids", "attention_mask", "token_type_ids")
        states_BLH = self.encoder(**{name: batch[name] for name in names if name in batch}).last_hidden_state
        scores_BL2 = self.ends(states_BLH).masked_fill(~batch["candidates"][..., None], IMPOSSIBLE)
        return scores_BL2[..., 0], scores_BL2[..., 1], states_BLH

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Loss: mean of start and end cross-entropy, plus that of the cuts over the windows with an answer.

        Batch: ``input_ids``, ``attention_mask`` and, if any, ``token_type_ids`` (B, L); ``candidates`` (B, L) bool,
        which positions can be ends; ``start``, ``end`` (B), 0 where the window has no answer; ``cut`` (B).
        """
        start_BL, end_BL, states_BLH = self.score_ends(batch)
        loss = functional.cross_entropy(start_BL, batch["start"]) + functional.cross_entropy(end_BL, batch["end"])
        if self.cuts is None:
            return {"loss": loss / 2}
        cut_BC = self.cuts(states_BLH[torch.arange(len(start_BL)), batch["end"]])
        losses_B = functional.cross_entropy(cut_BC, batch["cut"], reduction="none")
        has_answer_B = batch["end"] > 0
        return {"loss": loss / 2 + (losses_B * has_answer_B).sum() / has_answer_B.sum().clamp(min=1)}

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[dict[str, Any]]:
        """``start`` and ``end`` scores of each window, float32, and the likeliest ``cut`` after each position, uint8;
        all (L,), without padding."""
        start_BL, end_BL, states_BLH = self.score_ends(batch)
        cut_BL = torch.zeros_like(batch["input_ids"]) if self.cuts is None else self.cuts(states_BLH).argmax(dim=-1)
        start_BL = start_BL.float()
        start_BL[:, 0] -= self.threshold
        raws = (start_BL, end_BL.float(), cut_BL.to(torch.uint8))
        lengths = batch["attention_mask"].sum(dim=1).tolist()
        rows = zip(*(values.cpu().numpy() for values in raws), lengths, strict=True)
        return [{"start": start[:n], "end": end[:n], "cut": cut[:n]} for start, end, cut, n in rows]
