"""The families of models that can be trained, one row each: stock classes of transformers, and what differs.

Classes of networks are named, not imported: a recipe is checked in milliseconds, without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import transformers
from transformers import BertConfig, GPT2Config, PreTrainedConfig, RobertaConfig

if TYPE_CHECKING:
    from pretrain.config import ModelConfig


# Settings of the recipe that a checkpoint decides, by their names in its config.json
SIZES = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "intermediate": "intermediate_size",
}


@dataclass(frozen=True, slots=True)
class Family:
    """``settings`` are those of fresh models; ``head`` gives what turns hidden states into scores of all pieces."""

    title: str
    config: type[PreTrainedConfig]
    network: str
    settings: Callable[[ModelConfig], Mapping[str, Any]]
    head: Callable[[Any], Callable[[Any], Any]]
    with_pairs: str | None = None  # the class that has a head for sentence pairs as well
    causal: str | None = None  # the class whose tokens see nothing but those before them, if ``network`` is another
    is_causal: bool = False  # ``network`` itself is one
    sizes: Mapping[str, str] = field(default_factory=lambda: SIZES)
    dropouts: tuple[str, ...] = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    counts_from_padding: bool = False  # the first token's position is the padding's id + 1

    def class_for(self, model: ModelConfig) -> Any:
        """The class of transformers that has the heads of the objective."""
        special = self.with_pairs if model.nsp else self.causal if model.objective == "causal" else None
        return getattr(transformers, special or self.network)

    def settings_of_objective(self, model: ModelConfig) -> dict[str, Any]:
        """What makes the class ``causal`` of an encoder see as it should."""
        return {"is_decoder": True} if self.causal and model.objective == "causal" else {}


FAMILIES = {
    "bert": Family(
        "BERT",
        BertConfig,
        "BertForMaskedLM",
        settings=lambda model: {"type_vocab_size": 2, "layer_norm_eps": 1e-12},
        head=lambda network: network.cls.predictions,
        with_pairs="BertForPreTraining",
        causal="BertLMHeadModel",
    ),
    "roberta": Family(
        "RoBERTa",
        RobertaConfig,
        "RobertaForMaskedLM",
        settings=lambda model: {"type_vocab_size": 1, "layer_norm_eps": 1e-5},
        head=lambda network: network.lm_head,
        causal="RobertaForCausalLM",
        counts_from_padding=True,
    ),
    "gpt": Family(
        "GPT",
        GPT2Config,
        "GPT2LMHeadModel",
        settings=lambda model: {"activation_function": "gelu"},
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
