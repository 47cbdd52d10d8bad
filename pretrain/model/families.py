"""Model families that can be trained, one row each: stock classes of transformers, and their differences.

Network classes are given by name and not imported, so a recipe is checked in milliseconds, without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import transformers
from transformers import BertConfig, GPT2Config, ModernBertConfig, PreTrainedConfig, RobertaConfig

from pretrain.model import sizes

if TYPE_CHECKING:
    from pretrain.config import ModelConfig

ROPE_THETA = 160_000.0  # base of the rotary positions of global layers, for 8,192 tokens
# Sizes in the recipe, and their names in the config.json of a checkpoint, which decides them
SIZES = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "intermediate": "intermediate_size",
}


@dataclass(frozen=True, slots=True)
class Family:
    """``settings``: of new models, from recipe and special ids. ``head``: maps hidden states to scores."""

    title: str
    config: type[PreTrainedConfig]
    network: str
    settings: Callable[[ModelConfig, Mapping[str, int]], Mapping[str, Any]]
    head: Callable[[Any], Callable[[Any], Any]]
    with_pairs: str | None = None  # the class with a head for sentence pairs
    causal: str | None = None  # the class with causal attention, if it is not ``network``
    is_causal: bool = False  # ``network`` has causal attention
    sizes: Mapping[str, str] = field(default_factory=lambda: SIZES)
    dropouts: tuple[str, ...] = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    counts_from_padding: bool = False  # the first token's position is the padding's id + 1
    has_windows: bool = False  # some layers have local attention

    def class_for(self, model: ModelConfig) -> Any:
        """The class of transformers with the heads of the objective."""
        special = self.with_pairs if model.nsp else self.causal if model.objective == "causal" else None
        return getattr(transformers, special or self.network)

    def settings_of_objective(self, model: ModelConfig) -> dict[str, Any]:
        """The setting that makes the class ``causal`` of an encoder attend causally."""
        return {"is_decoder": True} if self.causal and model.objective == "causal" else {}


def _modernbert(model: ModelConfig, ids: Mapping[str, int]) -> dict[str, Any]:
    """As answerdotai/ModernBERT-base, except for the sizes."""
    return {
        "global_attn_every_n_layers": sizes.GLOBAL_EVERY,
        "local_attention": sizes.LOCAL_WINDOW,
        "global_rope_theta": ROPE_THETA,
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
    """Position id of the first token of a text: 0, or pad id + 1 for RoBERTa."""
    return int(network.pad_token_id) + 1 if family_of(network).counts_from_padding else 0


def longest_input(network: PreTrainedConfig) -> int:
    """Longest input of the model, in tokens; RoBERTa counts positions from the padding id plus one."""
    return int(network.max_position_embeddings) - first_position(network)


def sizes_of(network: PreTrainedConfig) -> dict[str, int]:
    """The sizes of a model, by the names of the recipe's model section."""
    family = family_of(network)
    own = {ours: getattr(network, theirs) for ours, theirs in family.sizes.items()}
    own["intermediate"] = own["intermediate"] or 4 * own["hidden"]  # GPT-2 may leave it out
    own["positions"] = longest_input(network)
    return own


def readable_by_older(network: PreTrainedConfig) -> None:
    """Add the names that transformers 4 reads to a configuration of transformers 5."""
    if network.model_type == "modernbert":
        # the distance between layers with global attention, of which the first layer is one
        later = (n for n, kind in enumerate(network.layer_types) if n and kind == "full_attention")
        network.global_attn_every_n_layers = next(later, len(network.layer_types))
        network.global_rope_theta = network.rope_parameters["full_attention"]["rope_theta"]
        network.local_rope_theta = network.rope_parameters["sliding_attention"]["rope_theta"]
