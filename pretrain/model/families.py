"""The families of models that can be trained, one row each: stock classes of transformers, and what differs.

Classes of networks are named, not imported: a recipe is checked in milliseconds, without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import transformers
from transformers import BertConfig, GPT2Config, ModernBertConfig, PreTrainedConfig, RobertaConfig

if TYPE_CHECKING:
    from pretrain.config import ModelConfig

ROPE_THETA = 160_000.0  # of ModernBERT's global layers, for 8,192 tokens
# Settings of the recipe that a checkpoint decides, by their names in its config.json
SIZES = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "intermediate": "intermediate_size",
}


@dataclass(frozen=True, slots=True)
class Family:
    """``settings`` are those of fresh models, by recipe and special ids; ``head`` turns states into scores."""

    title: str
    config: type[PreTrainedConfig]
    network: str
    settings: Callable[[ModelConfig, Mapping[str, int]], Mapping[str, Any]]
    head: Callable[[Any], Callable[[Any], Any]]
    with_pairs: str | None = None  # the class that has a head for sentence pairs as well
    causal: str | None = None  # the class whose tokens see nothing but those before them, if ``network`` is another
    is_causal: bool = False  # ``network`` itself is one
    sizes: Mapping[str, str] = field(default_factory=lambda: SIZES)
    dropouts: tuple[str, ...] = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    counts_from_padding: bool = False  # the first token's position is the padding's id + 1
    has_windows: bool = False  # some layers see near tokens only

    def class_for(self, model: ModelConfig) -> Any:
        """The class of transformers that has the heads of the objective."""
        special = self.with_pairs if model.nsp else self.causal if model.objective == "causal" else None
        return getattr(transformers, special or self.network)

    def settings_of_objective(self, model: ModelConfig) -> dict[str, Any]:
        """What makes the class ``causal`` of an encoder see as it should."""
        return {"is_decoder": True} if self.causal and model.objective == "causal" else {}


def _modernbert(model: ModelConfig, ids: Mapping[str, int]) -> dict[str, Any]:
    """As answerdotai/ModernBERT-base, but for the sizes."""
    return {
        "global_attn_every_n_layers": model.global_every,
        "local_attention": model.local_window,
        "global_rope_theta": model.rope_theta or ROPE_THETA,
        "initializer_cutoff_factor": 3.0,
        "cls_token_id": ids["cls"],
        "sep_token_id": ids["sep"],
    }


FAMILIES = {
    "bert": Family(
        "BERT",
        BertConfig,
        "BertForMaskedLM",
        settings=lambda model, ids: {"type_vocab_size": 2, "layer_norm_eps": 1e-12},
        head=lambda network: network.cls.predictions,
        with_pairs="BertForPreTraining",
        causal="BertLMHeadModel",
    ),
    "roberta": Family(
        "RoBERTa",
        RobertaConfig,
        "RobertaForMaskedLM",
        settings=lambda model, ids: {"type_vocab_size": 1, "layer_norm_eps": 1e-5},
        head=lambda network: network.lm_head,
        causal="RobertaForCausalLM",
        counts_from_padding=True,
    ),
    "modernbert": Family(
        "ModernBERT",
        ModernBertConfig,
        "ModernBertForMaskedLM",
        settings=_modernbert,
        head=lambda network: lambda states: network.decoder(network.head(states)),
        dropouts=("embedding_dropout", "attention_dropout", "mlp_dropout"),
        has_windows=True,
    ),
    "gpt": Family(
        "GPT",
        GPT2Config,
        "GPT2LMHeadModel",
        settings=lambda model, ids: {"activation_function": "gelu"},
        head=lambda network: network.lm_head,
        sizes={**SIZES, "intermediate": "n_inner"},
        dropouts=("resid_pdrop", "embd_pdrop", "attn_pdrop"),
        is_causal=True,
    ),
}
_BY_TYPE = {family.config.model_type: family for family in FAMILIES.values()}


def family_of(network: PreTrainedConfig) -> Family:
    return _BY_TYPE[network.model_type]


def first_position(network: PreTrainedConfig) -> int:
    """Position id of the first token of a text: 0, behind the padding's id for RoBERTa."""
    return int(network.pad_token_id) + 1 if family_of(network).counts_from_padding else 0


def longest_input(network: PreTrainedConfig) -> int:
    """Most tokens that the model takes; RoBERTa counts its positions from the padding id plus one."""
    return int(network.max_position_embeddings) - first_position(network)


def sizes_of(network: PreTrainedConfig) -> dict[str, int]:
    """What the recipe's model section calls the sizes that a model really has."""
    family = family_of(network)
    own = {ours: getattr(network, theirs) for ours, theirs in family.sizes.items()}
    own["intermediate"] = own["intermediate"] or 4 * own["hidden"]  # GPT-2's may be unsaid
    own["positions"] = longest_input(network)
    if family.has_windows:
        own |= {"local_window": network.local_attention, "global_every": _global_every(network)}
    return own


def set_rope_theta(network: PreTrainedConfig, theta: float) -> None:
    """The base of the rotary positions of ModernBERT's global layers."""
    network.rope_parameters["full_attention"]["rope_theta"] = theta


def readable_by_older(network: PreTrainedConfig) -> None:
    """Give a configuration the names that transformers 4 reads, beside those of 5."""
    if network.model_type == "modernbert":
        network.global_attn_every_n_layers = _global_every(network)
        network.global_rope_theta = network.rope_parameters["full_attention"]["rope_theta"]
        network.local_rope_theta = network.rope_parameters["sliding_attention"]["rope_theta"]


def _global_every(network: PreTrainedConfig) -> int:
    """Layers from one with global attention to the next; the first is one."""
    later = (n for n, kind in enumerate(network.layer_types) if n and kind == "full_attention")
    return next(later, len(network.layer_types))
