"""Stock Hugging Face heads: one label or one number for a text, one tag for a token (KLUE paper 5.1).

As in the published baseline, BERT's goes through its pooler and RoBERTa's through dense, tanh and dropout; embeddings
grow where the tokenizer knows more tokens than they. Legend: ``B`` texts, ``L`` positions, ``K`` labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
)

from corpus.documents.errors import BadInput
from finetune.encoder import has_segments, load_pretrained, read_weights

TEXT, TOKENS = AutoModelForSequenceClassification, AutoModelForTokenClassification


class Labeller(nn.Module):
    """A head of transformers behind the interface of the tasks; ``read`` makes predictions of its logits and batch."""

    def __init__(self, net: nn.Module, read: Callable[[Tensor, dict[str, Tensor]], list[Any]]) -> None:
        super().__init__()
        self.net, self.read = net, read

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Loss of ``labels``: label ids (B) or (B, L), or numbers (B); and the logits."""
        found = self._run(batch)
        return {"loss": found.loss, "logits": found.logits}

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[Any]:
        """One raw output a text."""
        return self.read(self._run(batch).logits, batch)

    def _run(self, batch: dict[str, Tensor]) -> Any:
        segments = has_segments(self.net.config)  # type: ignore[arg-type]
        return self.net(**{name: x for name, x in batch.items() if segments or name != "token_type_ids"})


def _probabilities(logits_BK: Tensor, batch: dict[str, Tensor]) -> list[Any]:
    return list(logits_BK.float().softmax(dim=-1).cpu().numpy())


def _numbers(logits_B1: Tensor, batch: dict[str, Tensor]) -> list[Any]:
    numbers: list[Any] = logits_B1[:, 0].float().tolist()
    return numbers


def _token_scores(logits_BLK: Tensor, batch: dict[str, Tensor]) -> list[Any]:
    rows = logits_BLK.float().cpu().numpy()
    return [row_LK[:size] for row_LK, size in zip(rows, batch["attention_mask"].sum(dim=1).tolist(), strict=True)]


def load_text_labeller(name: str, tokenizer: PreTrainedTokenizerBase, labels: Sequence[str]) -> Labeller:
    """Encoder and fresh head; predicts the probability of each label, (K,) float32."""
    return Labeller(load_pretrained(TEXT, name, tokenizer, **_names(labels)), _probabilities)


def load_text_regressor(name: str, tokenizer: PreTrainedTokenizerBase) -> Labeller:
    """Encoder and fresh head with one output, trained with squared error; predicts a number that nothing bounds."""
    settings = {"num_labels": 1, "problem_type": "regression"}
    return Labeller(load_pretrained(TEXT, name, tokenizer, **settings), _numbers)


def load_token_labeller(name: str, tokenizer: PreTrainedTokenizerBase, labels: Sequence[str]) -> Labeller:
    """Encoder and fresh head over tokens; predicts the scores of each, padding left out, (L, K) float32."""
    return Labeller(load_pretrained(TOKENS, name, tokenizer, **_names(labels)), _token_scores)


def load_trained_labeller(folder: str, config: PreTrainedConfig) -> Labeller:
    """A trained head again, of the kind that its configuration names; ``BadInput`` if it names none of these."""
    architecture = (config.architectures or [""])[0]
    if architecture.endswith("ForTokenClassification"):
        return Labeller(read_weights(TOKENS, folder, is_whole=True), _token_scores)
    if not architecture.endswith("ForSequenceClassification"):
        raise BadInput(
            f"{folder}: {architecture or 'a model without a head'} labels neither texts nor tokens; give the model/ "
            "folder of a finished training"
        )
    is_number = config.problem_type == "regression"
    return Labeller(read_weights(TEXT, folder, is_whole=True), _numbers if is_number else _probabilities)


def _names(labels: Sequence[str]) -> dict[str, Any]:
    ids = {label: id_ for id_, label in enumerate(labels)}
    return {"id2label": dict(enumerate(labels)), "label2id": ids, "problem_type": None}  # of a kept model: another's
