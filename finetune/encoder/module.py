"""The encoder as a torch module: the state that represents a text.

Heads read what a text says from state 0: that of [CLS], which in a decoder has seen nothing, so there it is replaced by
the state of the last token.
Legend: ``B`` texts, ``L`` positions, ``H`` hidden.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from corpus.documents.errors import BadInput
from finetune.encoder.loading import has_segments, load_pretrained, reads_one_way


class Encoder(nn.Module):
    """An encoder that ignores ``token_type_ids`` where it has no segments; the output has ``last_hidden_state``."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        config: Any = encoder.config
        self.config = config
        self.is_decoder = reads_one_way(config)
        if self.is_decoder and not getattr(config, "is_causal", True):
            raise BadInput("a decoder with attention in both directions, which was removed; train it again")

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Any:
        """Token ids, mask and segments, each (B, L), padding on the right, to the encoder's own output."""
        more: dict[str, Any] = {"token_type_ids": token_type_ids} if has_segments(self.config) else {}
        if not self.is_decoder:
            return self.encoder(input_ids=input_ids, attention_mask=attention_mask, **more)
        output = self.encoder(input_ids=input_ids, attention_mask=attention_mask, use_cache=False, **more)
        states_BLH = output.last_hidden_state
        row_B = torch.arange(len(states_BLH), device=states_BLH.device)
        last_BH = states_BLH[row_B, attention_mask.sum(dim=1) - 1]
        output.last_hidden_state = torch.cat([last_BH[:, None], states_BLH[:, 1:]], dim=1)
        return output


def load_encoder(name: str, tokenizer: PreTrainedTokenizerBase | None = None) -> Encoder:
    """The encoder alone, without a task's head."""
    return Encoder(load_pretrained(AutoModel, name, tokenizer))


def find_encoder(model: nn.Module) -> Any:
    """The encoder inside a task's model, without the head."""
    return next(part for part in model.modules() if isinstance(part, PreTrainedModel)).base_model
