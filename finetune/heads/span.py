"""Span head: a start and an end score for each position, [CLS] standing for "no answer" (KLUE paper 5.1, KLUE-MRC).

Legend: ``B`` windows, ``L`` positions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from finetune.encoder import Encoder

IMPOSSIBLE = -1e4  # score of a position that is neither [CLS] nor context


class SpanFinder(nn.Module):
    """One linear map on the encoder, as published; only [CLS] and context compete, so padding changes nothing."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.ends = nn.Linear(int(encoder.config.hidden_size), 2)

    def score_ends(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        names = ("input_ids", "attention_mask", "token_type_ids")
        states_BLH = self.encoder(**{name: batch[name] for name in names}).last_hidden_state
        scores_BL2 = self.ends(states_BLH).masked_fill(~batch["candidates"][..., None], IMPOSSIBLE)
        return scores_BL2[..., 0], scores_BL2[..., 1]

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Loss: mean of start and end cross-entropy.

        Batch: ``input_ids``, ``attention_mask``, ``token_type_ids`` (B, L); ``candidates`` (B, L) bool, [CLS] and
        context; ``start``, ``end`` (B), 0 where the window has no answer.
        """
        start_BL, end_BL = self.score_ends(batch)
        loss = functional.cross_entropy(start_BL, batch["start"]) + functional.cross_entropy(end_BL, batch["end"])
        return {"loss": loss / 2}

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[dict[str, Any]]:
        """``start`` and ``end`` scores of each window, float32, without its padding."""
        start_BL, end_BL = (scores.float().cpu().numpy() for scores in self.score_ends(batch))
        lengths = batch["attention_mask"].sum(dim=1).tolist()
        return [{"start": start[:n], "end": end[:n]} for start, end, n in zip(start_BL, end_BL, lengths, strict=True)]
