"""One thin module around an unchanged Hugging Face model; it computes the sums the loop needs.

The vocabulary head and most of the last layer run on the chosen positions only (77 of 512): the same gradients for
fewer operations. Rows of several segments need a network that ``isolate_documents`` has prepared: attention stays
within a segment, positions count anew in each, and the pooler reads the first token of each.

Shapes: B sequences, L positions, M most predictions in a sequence, S segments of a sequence, P = M, or M + S with
sentence pairs, H hidden.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from pretrain.isolation import find_borders, first_position, is_isolated
from pretrain.last_layer import narrow_last_layer, pick
from pretrain.losses import loss_and_hits


class Sums(NamedTuple):
    """Sums over a batch, float32 scalars; the last two are zero without sentence pairs."""

    mlm_loss: Tensor
    mlm_hits: Tensor
    nsp_loss: Tensor
    nsp_hits: Tensor


class PretrainingModule(nn.Module):
    """A Hugging Face model with its own heads, asked for the chosen positions only.

    Args:
        network: prepared by ``isolate_documents`` before, if rows are to hold several segments.
    """

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.network: Any = network  # heads are called lm_head or cls, by family
        self.is_isolated = is_isolated(network)
        if not self.is_isolated:
            narrow_last_layer(network)
        self.first_position = first_position(network)

    def forward(
        self,
        ids_BL: Tensor,
        positions_BM: Tensor,
        targets_BM: Tensor,
        types_BL: Tensor | None = None,
        lengths_BS: Tensor | None = None,
        is_random_BS: Tensor | None = None,
    ) -> Sums:
        """Loss sums and hits; the arguments are the fields of ``Batch``."""
        places_BP = positions_BM
        if is_random_BS is not None:
            assert lengths_BS is not None  # pairs differ in length
            # an unused segment picks the first padding, or the last token; its target does not count
            firsts_BS = (lengths_BS.cumsum(1) - lengths_BS).clamp(max=ids_BL.shape[1] - 1)
            places_BP = torch.cat([positions_BM, firsts_BS], dim=1)
        hidden_BPH = self._encode(ids_BL, places_BP, types_BL, lengths_BS)
        most = positions_BM.shape[1]
        head = self.network.lm_head if hasattr(self.network, "lm_head") else self.network.cls.predictions
        mlm_loss, mlm_hits = loss_and_hits(head(hidden_BPH[:, :most]).flatten(0, 1), targets_BM.flatten())
        if is_random_BS is None:
            nothing = torch.zeros_like(mlm_loss)
            return Sums(mlm_loss, mlm_hits, nothing, nothing)
        pooled_H = self.network.base_model.pooler(hidden_BPH[:, most:].flatten(0, 1)[:, None])
        nsp_scores_2 = self.network.cls.seq_relationship(pooled_H)
        return Sums(mlm_loss, mlm_hits, *loss_and_hits(nsp_scores_2, is_random_BS.flatten()))

    def _encode(self, ids_BL: Tensor, places_BP: Tensor, types_BL: Tensor | None, lengths_BS: Tensor | None) -> Tensor:
        """States at the places, (B, P, H)."""
        length = ids_BL.shape[1]
        extra: dict[str, Any] = {}
        if lengths_BS is not None and self.is_isolated:
            borders = find_borders(lengths_BS, length)
            extra = {"borders": borders, "position_ids": borders.places_BL + self.first_position}
        elif lengths_BS is not None:
            assert lengths_BS.shape[1] == 1  # several segments would see each other
            extra = {"attention_mask": (torch.arange(length, device=ids_BL.device) < lengths_BS).long()}
        if self.is_isolated:  # attention within segments needs the queries of all tokens
            states_BLH = self.network.base_model(input_ids=ids_BL, token_type_ids=types_BL, **extra).last_hidden_state
            return pick(states_BLH, places_BP)
        extra["places_BP"] = places_BP
        return self.network.base_model(input_ids=ids_BL, token_type_ids=types_BL, **extra).last_hidden_state
