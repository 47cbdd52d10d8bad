"""Stock Hugging Face heads: one label or one number for a text, one tag for a token (KLUE paper 5.1).

As in the published baseline, BERT's goes through its pooler and RoBERTa's through dense, tanh and dropout; embeddings
grow where the tokenizer knows more tokens than they. Legend: ``B`` texts, ``L`` positions, ``K`` labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, PreTrainedTokenizerBase

from finetune.encoder import has_segments, load_pretrained


class Labeller(nn.Module):
    """A head of transformers behind the interface of the tasks."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Loss of ``labels``: label ids (B) or (B, L), or numbers (B)."""
        return {"loss": self._run(batch).loss}

    def _run(self, batch: dict[str, Tensor]) -> Any:
        segments = has_segments(self.net.config)  # type: ignore[arg-type]
        return self.net(**{name: x for name, x in batch.items() if segments or name != "token_type_ids"})


class TextLabeller(Labeller):
    """One label a text."""

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[np.ndarray]:
        """Probability of each label, (K,) float32, for each text."""
        return list(self._run(batch).logits.float().softmax(dim=-1).cpu().numpy())


class TextRegressor(Labeller):
    """One number a text, trained with squared error."""

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[float]:
        """The number of each text; nothing bounds it."""
        values: list[float] = self._run(batch).logits[:, 0].float().tolist()
        return values


class TokenLabeller(Labeller):
    """One label a token."""

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[np.ndarray]:
        """The best label of each token, padding left out, (L,) int64, for each text."""
        best_BL = self._run(batch).logits.argmax(dim=-1).cpu().numpy()
        lengths = batch["attention_mask"].sum(dim=1).tolist()
        return [best_L[:length] for best_L, length in zip(best_BL, lengths, strict=True)]


def load_text_labeller(name: str, tokenizer: PreTrainedTokenizerBase, labels: Sequence[str]) -> TextLabeller:
    """Encoder and fresh head."""
    return TextLabeller(load_pretrained(AutoModelForSequenceClassification, name, tokenizer, **_names(labels)))


def load_text_regressor(name: str, tokenizer: PreTrainedTokenizerBase) -> TextRegressor:
    """Encoder and fresh head with one output."""
    settings = {"num_labels": 1, "problem_type": "regression"}
    return TextRegressor(load_pretrained(AutoModelForSequenceClassification, name, tokenizer, **settings))


def load_token_labeller(name: str, tokenizer: PreTrainedTokenizerBase, labels: Sequence[str]) -> TokenLabeller:
    """Encoder and fresh head over tokens."""
    return TokenLabeller(load_pretrained(AutoModelForTokenClassification, name, tokenizer, **_names(labels)))


def _names(labels: Sequence[str]) -> dict[str, Any]:
    return {"id2label": dict(enumerate(labels)), "label2id": {label: id_ for id_, label in enumerate(labels)}}
