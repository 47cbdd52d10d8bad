"""Reranking: a cross-encoder reads a question together with each of the best passages of BM25.

The model is one of kind ``choice`` of `malmoi finetune`, trained to tell the right passage from hard negatives. Its
folder is a stock sequence classifier with one output, so CrossEncoder of sentence-transformers loads it, too.
``write_choices`` writes its training file.
Legend: ``Q`` questions, ``P`` passages, ``K`` of them read again, ``N`` pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from corpus.documents.accelerator import DeviceName
from corpus.documents.errors import BadInput
from finetune.data.files import write_json_lines
from finetune.embed.data import EvaluationSet, Item
from finetune.embed.evaluate import rows_of_rankings
from finetune.embed.retrieval import bm25_scores, combine, rank
from finetune.examples import Row, pad_inputs
from finetune.heads.labels import Labeller
from finetune.saved_models.load import load_model
from finetune.tasks.labels import encode_texts
from finetune.train.batched_prediction import batches_by_length, to_tensors

CHOICES_NAME = "choices.jsonl"
READ_AGAIN = 20  # passages of BM25


class Reranker:
    """A trained model of kind ``choice``; ``BadInput`` for any other."""

    def __init__(self, folder: str, device: DeviceName = "auto") -> None:
        saved = load_model(folder, device)
        if not isinstance(saved.model, Labeller) or saved.model.kind != "choice":
            raise BadInput(f"{folder}: a model for {saved.task.name}; give one of a custom task of kind choice")
        self.model, self.tokenizer, self.max_tokens = saved.model, saved.tokenizer, int(saved.settings["max_tokens"])

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """How well each passage answers its question, 0..1."""
        firsts, seconds = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        features = encode_texts(self.tokenizer, firsts, seconds, self.max_tokens)
        device, scores_N = next(self.model.parameters()).device, np.zeros(len(pairs))
        with torch.inference_mode():
            for batch in batches_by_length(features):
                inputs = to_tensors(pad_inputs([features[i] for i in batch], int(self.tokenizer.pad_token_id)), device)
                scores_N[batch] = self.model.run_net(inputs).logits[:, 0].float().sigmoid().cpu().numpy()
        return scores_N


def rank_again(part: EvaluationSet, reranker: Reranker) -> dict[str, list[Row]]:
    """Results with the best ``READ_AGAIN`` passages of BM25 in the order of the reranker, and of both together, its
    weight chosen as that of cosines."""
    words_QP, texts = bm25_scores(part), list(part.passages.values())
    count = min(READ_AGAIN, words_QP.shape[1])
    best_QK = np.argpartition(-words_QP, count - 1, axis=1)[:, :count]
    pairs = [(question, texts[i]) for question, row in zip(part.firsts, best_QK, strict=True) for i in row]
    again_QP = np.zeros_like(words_QP)
    np.put_along_axis(again_QP, best_QK, reranker.score(pairs).reshape(best_QK.shape).astype(np.float32), axis=1)
    found = {"BM25 reranked": again_QP, "BM25 with reranker": combine(part, words_QP, again_QP)[0]}
    return {system: rows_of_rankings(part, rank(part, scores_QP)) for system, scores_QP in found.items()}


def write_choices(items: Sequence[Item], out: Path) -> None:
    """Write questions with a hard negative as a file of choices (columns question, right, wrong, label), if any."""
    rows = [
        {"question": item.texts[0], "right": item.texts[1], "wrong": wrong, "label": "right"}
        for item in items if item.score is None for wrong in item.texts[2:]
    ]  # fmt: skip
    if rows:
        write_json_lines(out / CHOICES_NAME, rows)
