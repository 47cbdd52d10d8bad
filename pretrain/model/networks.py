"""Models of transformers, unchanged: new ones in the sizes of the paper's Table 31, or from a checkpoint.

Special ids, positions, epsilon and token types of new models follow the released KLUE models: BERT 512 positions, 2
types, 1e-12; RoBERTa positions counted from pad id + 1 (514 with [PAD] = 1), 1 type, 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from pretrain.config import PretrainConfig
from pretrain.model.existing_model import NewRows, load_init_from
from pretrain.model.families import FAMILIES
from pretrain.model.isolation import attend_in_windows
from pretrain.rng import derive_key

AMPLITUDE = 0.05  # at .02, the scale of all other weights, the sinusoids have no effect; at .1 they dominate


def build_network(
    config: PretrainConfig, vocab_size: int, special_ids: dict[str, int], new_rows: NewRows = MappingProxyType({})
) -> PreTrainedModel:
    """The Hugging Face model to train; new weights depend on ``config.seed`` only.

    ``new_rows``: pieces that ``config.init_from`` does not have. BadInput: it contradicts the settings or vocabulary.
    """
    with torch.random.fork_rng():
        torch.manual_seed(int(derive_key(config.seed, "weights")))
        if config.init_from is not None:
            network = load_init_from(config, config.init_from, vocab_size, special_ids, new_rows)
        else:
            network = _new(config, vocab_size, special_ids)
    if FAMILIES[config.model.architecture].has_windows:
        attend_in_windows(network)
        _keep_float32(network.base_model.rotary_emb)
    if config.model.position_init == "sinusoidal" and config.init_from is None:
        base: Any = network.base_model
        positions: Tensor = (base.wpe if hasattr(base, "wpe") else base.embeddings.position_embeddings).weight
        with torch.no_grad():
            positions.copy_(sinusoids(positions.shape[0], positions.shape[1]))
    return network


def sinusoids(count: int, width: int) -> Tensor:
    """Positions 0 to ``count`` - 1 as in section 3.5 of arXiv 1706.03762, with ``AMPLITUDE``; count x width."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(count)[:, None] * rates
    return AMPLITUDE * torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


def _keep_float32(rotary: Any) -> None:
    """Keep the rotary frequencies in float32 when an engine casts the model; rounded, they are wrong at long range."""

    def move(change: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        for name, rates in rotary.named_buffers():
            setattr(rotary, name, rates.to(change(rates).device))
        return rotary

    rotary._apply = move


def _new(config: PretrainConfig, vocab_size: int, special_ids: dict[str, int]) -> PreTrainedModel:
    model, family = config.model, FAMILIES[config.model.architecture]
    settings: dict[str, Any] = {
        "vocab_size": vocab_size,
        **{theirs: getattr(model, ours) for ours, theirs in family.sizes.items()},
        **dict.fromkeys(family.dropouts, model.dropout),
        "max_position_embeddings": model.positions + (special_ids["pad"] + 1) * family.counts_from_padding,
        "pad_token_id": special_ids["pad"],
        "bos_token_id": special_ids["cls"],
        "eos_token_id": special_ids["sep"],
        **family.settings(model, special_ids),
        **family.settings_of_objective(model),
    }
    network: PreTrainedModel = family.class_for(model)(family.config(**settings))
    return network
