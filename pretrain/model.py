"""BERT and RoBERTa from transformers, unchanged, inside one thin module that computes the sums the loop needs.

Special ids, positions, epsilon and token types follow the released KLUE models: BERT 512 positions, 2 types, 1e-12;
RoBERTa positions counted from pad id + 1 (514 with [PAD] = 1), 1 type, 1e-5. The vocabulary head runs on the chosen
positions only (77 of 512): 1.2 times fewer operations for the base model, the same gradients.

Shapes: B sequences, L positions, M most predictions in a sequence, H hidden, V vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    PreTrainedModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

from pretrain.config import PretrainConfig
from pretrain.draws import derive_key
from pretrain.masking import IGNORED


class Sums(NamedTuple):
    """Sums over a batch, float32 scalars; the last two are zero without sentence pairs."""

    mlm_loss: Tensor
    mlm_hits: Tensor
    nsp_loss: Tensor
    nsp_hits: Tensor


class PretrainingModule(nn.Module):
    """A Hugging Face model with its own heads, asked for the chosen positions only."""

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.network: Any = network  # heads are called lm_head or cls, by family

    def forward(
        self,
        ids_BL: Tensor,
        positions_BM: Tensor,
        targets_BM: Tensor,
        types_BL: Tensor | None = None,
        attention_BL: Tensor | None = None,
        is_random_B: Tensor | None = None,
    ) -> Sums:
        """Loss sums and hits; the arguments are the fields of ``Batch``."""
        output = self.network.base_model(input_ids=ids_BL, attention_mask=attention_BL, token_type_ids=types_BL)
        hidden_BLH = output.last_hidden_state
        chosen_BMH = hidden_BLH.gather(1, positions_BM[..., None].expand(-1, -1, hidden_BLH.shape[-1]))
        head = self.network.lm_head if hasattr(self.network, "lm_head") else self.network.cls.predictions
        mlm_loss, mlm_hits = _loss_and_hits(head(chosen_BMH).flatten(0, 1), targets_BM.flatten())
        if is_random_B is None:
            nothing = torch.zeros_like(mlm_loss)
            return Sums(mlm_loss, mlm_hits, nothing, nothing)
        nsp_scores_B2 = self.network.cls.seq_relationship(output.pooler_output)
        return Sums(mlm_loss, mlm_hits, *_loss_and_hits(nsp_scores_B2, is_random_B))


def build_network(config: PretrainConfig, vocab_size: int, special_ids: dict[str, int]) -> PreTrainedModel:
    """A freshly initialised Hugging Face model; the weights depend on ``config.seed`` only."""
    common: dict[str, Any] = {
        "vocab_size": vocab_size,
        "hidden_size": config.hidden,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.intermediate,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "pad_token_id": special_ids["pad"],
        "bos_token_id": special_ids["cls"],
        "eos_token_id": special_ids["sep"],
    }
    with torch.random.fork_rng():
        torch.manual_seed(int(derive_key(config.seed, "weights")))
        if config.architecture == "roberta":
            positions = config.positions + special_ids["pad"] + 1
            return RobertaForMaskedLM(
                RobertaConfig(**common, max_position_embeddings=positions, type_vocab_size=1, layer_norm_eps=1e-5)
            )
        bert = BertConfig(**common, max_position_embeddings=config.positions, type_vocab_size=2, layer_norm_eps=1e-12)
        return BertForPreTraining(bert) if config.nsp else BertForMaskedLM(bert)


def weight_decay_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups for AdamW: no decay on biases and LayerNorm, as BERT and RoBERTa do."""
    parameters = list(module.parameters())
    return [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]


def _loss_and_hits(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    loss = cross_entropy(scores.float(), targets, ignore_index=IGNORED, reduction="sum")
    return loss, (scores.argmax(-1) == targets).sum().float()
