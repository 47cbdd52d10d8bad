"""ModernBERT's rotary positions (RoFormer, arXiv 2104.09864) with fewer passes over memory than in transformers.

The backward pass rotates the gradient by the negative angle, so nothing of the forward pass is stored. Results equal
those of transformers except for the last bit of float32; only the attention objects get another ``forward``.

Shapes: B sequences, L positions, A attention heads, D size of a head, H hidden; cosines and sines are B x L x D, or
1 x L x D if all rows have the same positions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS


def turn_in_fewer_passes(network: PreTrainedModel) -> None:
    """Make the layers of a ModernBERT use ``turned``; other networks are not changed."""
    if network.config.model_type == "modernbert":
        base: Any = network.base_model
        for layer in base.layers:
            layer.attn.forward = partial(_attend, layer.attn)


@torch.no_grad()
def set_rope_theta(network: PreTrainedModel, theta: float) -> None:
    """Change the base of the rotary positions of a ModernBERT's global layers, in place."""
    rotary: Any = network.base_model.rotary_emb
    for config in (network.config, rotary.config):
        config.rope_parameters["full_attention"]["rope_theta"] = theta
    rates, _ = rotary.compute_default_rope_parameters(rotary.config, layer_type="full_attention")
    for name in ("full_attention_inv_freq", "full_attention_original_inv_freq"):
        getattr(rotary, name).copy_(rates)


def turned(heads_BALD: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Queries or keys, rotated by their positions in float32 and returned in their own precision."""
    turned_BALD: Tensor = _Turned.apply(heads_BALD, cosines[:, None].float(), sines[:, None].float())
    return turned_BALD


class _Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, heads_BALD: Tensor, cosines_B1LD: Tensor, sines_B1LD: Tensor) -> Tensor:
        ctx.save_for_backward(cosines_B1LD, sines_B1LD)
        return _turn(heads_BALD, cosines_B1LD, sines_B1LD)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cosines_B1LD, sines_B1LD = ctx.saved_tensors
        return _turn(gradients[0], cosines_B1LD, -sines_B1LD), None, None


def _turn(heads_BALD: Tensor, cosines_B1LD: Tensor, sines_B1LD: Tensor) -> Tensor:
    """Rotate pairs of columns c and c + D / 2, the two coordinates of a point, by the same angle."""
    half = heads_BALD.shape[-1] // 2
    exact_BALD = heads_BALD.float()
    turned_BALD = exact_BALD * cosines_B1LD
    turned_BALD[..., :half].addcmul_(exact_BALD[..., half:], sines_B1LD[..., :half], value=-1)
    turned_BALD[..., half:].addcmul_(exact_BALD[..., :half], sines_B1LD[..., half:])
    return turned_BALD.to(heads_BALD.dtype)


def _attend(
    attention: Any,
    hidden_BLH: Tensor,
    position_embeddings: tuple[Tensor, Tensor],
    attention_mask: Tensor | None = None,
    **extra: Any,
) -> tuple[Tensor, Tensor | None]:
    """Replaces ``ModernBertAttention.forward``."""
    mixed = attention.Wqkv(hidden_BLH).unflatten(-1, (3, -1, attention.head_dim))
    query_BALD, key_BALD, value_BALD = (part.transpose(1, 2) for part in mixed.unbind(-3))
    attend = ALL_ATTENTION_FUNCTIONS[attention.config._attn_implementation]
    attended_BLAD, weights = attend(
        attention,
        turned(query_BALD, *position_embeddings),
        turned(key_BALD, *position_embeddings),
        value_BALD,
        attention_mask,
        dropout=attention.attention_dropout if attention.training else 0.0,
        scaling=attention.head_dim**-0.5,
        sliding_window=attention.sliding_window,
        **extra,
    )
    return attention.out_drop(attention.Wo(attended_BLAD.flatten(2))), weights
