"""The encoder as a torch module: the state that represents a text, and attention in both directions.

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
        if not getattr(config, "is_causal", True):
            _drop_causal_mask(encoder)

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


def read_both_ways(encoder: Encoder, name: str) -> None:
    """Let a decoder's positions see those to their right, as LLM2Vec does; ``BadInput`` where transformers cannot mask
    its class so. The configuration keeps it, for the model that is loaded again."""
    encoder.config.is_causal = False  # what the masks of transformers ask for
    _drop_causal_mask(encoder.encoder)
    if not _sees_ahead(encoder):
        raise BadInput(
            f"{name}: this transformers cannot let a model of type {encoder.config.model_type!r} read in both "
            "directions; leave finetune.bidirectional out"
        )


def _drop_causal_mask(encoder: nn.Module) -> None:
    """Without padding there is no mask, and each attention decides for itself."""
    attentions: list[Any] = [module for module in encoder.modules() if hasattr(module, "is_causal")]
    for attention in attentions:
        attention.is_causal = False


@torch.no_grad()
def _sees_ahead(encoder: Encoder) -> bool:
    """Whether every position hears the last token, with and without padding; a layer that no mask reaches (a recurrent
    one) makes a model that reads one way in part."""
    if set(getattr(encoder.config, "layer_types", None) or ()) - {"full_attention", "sliding_attention"}:
        return False
    is_training, device = encoder.training, next(encoder.parameters()).device
    encoder.eval()
    ids_BL = torch.tensor([[3, 4, 5, 6, 0], [3, 4, 5, 7, 0]], device=device)
    seen = []
    for length in (4, 5):
        mask_BL = (torch.arange(length, device=device) < 4).long().expand(2, -1)
        states_BLH = encoder.encoder(input_ids=ids_BL[:, :length], attention_mask=mask_BL).last_hidden_state
        seen.append(bool((states_BLH[0, :3] - states_BLH[1, :3]).abs().amax(dim=-1).gt(0).all()))
    encoder.train(is_training)
    return all(seen)
