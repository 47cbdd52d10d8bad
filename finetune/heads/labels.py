"""Heads for one label or one number per text, or one tag per token (KLUE paper 5.1).

Encoders use the stock classes of transformers, as in the published baseline. Decoders have one linear map on their
states, because their stock classes find the last token by the padding id, which is often the end token.
For "choice", a batch has all pairs of its questions, (B, K, L), and each pair gets one score.
Legend: ``B`` texts, ``L`` positions, ``H`` hidden, ``K`` labels, or the answers of a question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

from corpus.documents.errors import BadInput
from finetune.encoder.loading import (
    ONNX_NAME,
    Encoder,
    OnnxNetwork,
    has_segments,
    load_config,
    load_encoder,
    load_pretrained,
    read_weights,
    reads_one_way,
)
from finetune.examples import IGNORED

OutputKind = Literal["label", "number", "tags", "choice"]
TEXT, TOKENS = transformers.AutoModelForSequenceClassification, transformers.AutoModelForTokenClassification


class _Predicts(nn.Module):
    """Raw outputs of a text: the probabilities of labels or answers, a number, or the scores of each token."""

    kind: OutputKind
    _score: Callable[[dict[str, Tensor]], Tensor]

    @torch.no_grad()
    def predict(self, **batch: Tensor) -> list[Any]:
        """One raw output a text."""
        logits = self._score(batch)
        if self.kind in ("label", "choice"):
            return list(logits.float().softmax(dim=-1).cpu().numpy())
        if self.kind == "number":
            return logits[:, 0].float().tolist()
        sizes = batch["attention_mask"].sum(dim=1).tolist()
        return [row_LK[:size] for row_LK, size in zip(logits.float().cpu().numpy(), sizes, strict=True)]


class Labeller(_Predicts):
    """A head of transformers with the interface of the tasks."""

    def __init__(self, net: nn.Module, kind: OutputKind) -> None:
        super().__init__()
        self.net, self.kind = net, kind

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Loss of ``labels``: label ids (B) or (B, L), or numbers (B); and the logits."""
        if self.kind == "choice":
            logits_BK = self._score(batch)
            return {"loss": functional.cross_entropy(logits_BK.float(), batch["labels"]), "logits": logits_BK}
        outputs = self.run_net(batch)
        return {"loss": outputs.loss, "logits": outputs.logits}

    def _score(self, batch: dict[str, Tensor]) -> Tensor:
        if self.kind != "choice":
            return self.run_net(batch).logits
        pairs = {name: x_BKL.flatten(0, 1) for name, x_BKL in batch.items() if name != "labels"}
        return self.run_net(pairs).logits.view(batch["input_ids"].shape[:2])

    def run_net(self, batch: dict[str, Tensor]) -> Any:
        """The output of the network; segment ids only if it has segments."""
        segments = has_segments(self.net.config)  # type: ignore[arg-type]
        return self.net(**{name: x for name, x in batch.items() if segments or name != "token_type_ids"})


class StateLabeller(_Predicts):
    """A linear map on the states of an encoder: on state 0 for texts, on all states for "tags"."""

    def __init__(self, encoder: Encoder, kind: OutputKind, outputs: int) -> None:
        super().__init__()
        self.encoder, self.kind, self.head = encoder, kind, {"kind": kind, "outputs": outputs}
        self.dropout = nn.Dropout(float(getattr(encoder.config, "hidden_dropout_prob", 0.0)))
        self.outputs = nn.Linear(int(encoder.config.hidden_size), outputs)

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Loss of ``labels``, label ids (B) or (B, L) or numbers (B), and ``logits``."""
        logits, labels = self._score(batch), batch["labels"]
        if self.kind == "number":
            loss = functional.mse_loss(logits[:, 0].float(), labels)
        else:
            loss = functional.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORED)
        return {"loss": loss, "logits": logits}

    def _score(self, batch: dict[str, Tensor]) -> Tensor:
        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = {name: batch[name].flatten(0, -2) for name in names if name in batch}
        states_BLH = self.encoder(**inputs).last_hidden_state
        states = states_BLH if self.kind == "tags" else states_BLH[:, 0]
        scores: Tensor = self.outputs(self.dropout(states))
        return scores.view(batch["input_ids"].shape[:2]) if self.kind == "choice" else scores


def load_labeller(
    name: str, tokenizer: transformers.PreTrainedTokenizerBase, kind: OutputKind, labels: Sequence[str] = ()
) -> nn.Module:
    """Encoder and new head.

    It predicts for "label" the probability of each of ``labels``, (K,) float32; for "choice" those of the answers, by
    one output a pair; for "number" an unbounded number, trained with squared error; for "tags" the scores of each token
    without padding, (L, K) float32.
    """
    if reads_one_way(load_config(name)):
        return StateLabeller(load_encoder(name, tokenizer), kind, len(labels) if labels and kind != "choice" else 1)
    ids = {label: id_ for id_, label in enumerate(labels)}
    settings: dict[str, Any] = {"id2label": dict(enumerate(labels)), "label2id": ids, "problem_type": None}
    if kind in ("number", "choice"):
        settings = {"num_labels": 1, "problem_type": "regression" if kind == "number" else None}
    return Labeller(load_pretrained(TOKENS if kind == "tags" else TEXT, name, tokenizer, **settings), kind)


def load_trained_labeller(folder: str, config: transformers.PreTrainedConfig) -> Labeller:
    """A trained stock head again, from safetensors or ONNX, of the kind that its configuration names; ``BadInput`` if
    it names none of these."""
    architecture = (config.architectures or [""])[0]
    kind: OutputKind = (
        "number" if config.problem_type == "regression" else "choice" if config.num_labels == 1 else "label"
    )
    if architecture.endswith("ForTokenClassification"):
        kind = "tags"
    elif not architecture.endswith("ForSequenceClassification"):
        raise BadInput(
            f"{folder}: {architecture or 'a model without a head'} labels neither texts nor tokens; give the model/ "
            "folder of a finished training"
        )
    if (graph := Path(folder) / ONNX_NAME).is_file():
        return Labeller(OnnxNetwork(graph, config), kind)
    return Labeller(read_weights(TOKENS if kind == "tags" else TEXT, folder, is_whole=True), kind)
