"""The toxicity filter: score sentences with a Hugging Face classifier and drop those above thresholds (section 2.3).

The paper filters the sources of its benchmarks (gender bias at 0.5, hate at 0.9, not news), but not its pretraining
corpora; off by default. Sentences are scored after personal data is hidden. All scores are saved, so thresholds can be
chosen later. Any sequence classifier with safetensors weights works; code that comes with a model never runs. The last
digits of scores may depend on the other sentences of the batch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.config import ToxicityConfig
from corpus.documents import model_files
from corpus.documents.errors import BadInput
from corpus.documents.model_files import INDEX_NAME, check_weight_index, max_model_tokens, refuse_links
from corpus.unit_files import DOCUMENTS_NAME

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

log = logging.getLogger(__name__)

MAX_TOKENS = 256  # longer sentences are truncated
BATCH_SENTENCES = 64
PLACE_COLUMNS = ("id", "sentence")
SCORES_NAME = "scores.parquet"
TOXIC_NAME = "toxic.npy"  # bool per sentence


def score_unit(folder: Path, scratch: Path, *, config: ToxicityConfig) -> dict[str, Any]:
    """Write the scores of the sentences of a unit, and which of them are toxic."""
    classifier = load_once(config.model_dump_json())
    rows = pq.read_table(folder / DOCUMENTS_NAME, columns=["id", "source", "sentences"]).to_pylist()
    scores_SL = score_sentences([text for row in rows for text in row["sentences"]], classifier)
    source_S = np.array([row["source"] for row in rows for _ in row["sentences"]], dtype=object)
    is_toxic_S = np.zeros(len(source_S), bool)
    for source in {row["source"] for row in rows}:
        is_here = source_S == source
        is_toxic_S[is_here] = is_toxic(scores_SL[is_here], classifier.labels, source, config)
    ids = [row["id"] for row in rows for _ in row["sentences"]]
    numbers = [n for row in rows for n in range(len(row["sentences"]))]
    write_scores(scratch / SCORES_NAME, ids, numbers, scores_SL, classifier.labels)
    np.save(scratch / TOXIC_NAME, is_toxic_S)
    return {"sentences": len(ids), "toxic": int(is_toxic_S.sum())}


@lru_cache(maxsize=1)
def load_once(config: str) -> Classifier:
    """``load_classifier`` of settings in JSON, which loads the model at the first call only."""
    return load_classifier(ToxicityConfig.model_validate_json(config))


class Classifier(NamedTuple):
    """A model with its tokenizer; ``labels`` are in the order of its outputs."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    labels: tuple[str, ...]
    max_tokens: int


def load_classifier(config: ToxicityConfig) -> Classifier:
    """Load the model of the settings, on a GPU if there is one.

    Raises:
        BadInput: the model is missing, is not a trained classifier with safetensors weights, or lacks a label that has
            a threshold.
    """
    import torch
    from transformers import AutoModelForSequenceClassification

    name, place = config.model, f"corpus.toxicity.model {config.model}"
    if (folder := Path(name)).is_dir():  # transformers would follow an index to a pickle file
        refuse_links(folder)
        if (folder / INDEX_NAME).is_file():
            check_weight_index(folder / INDEX_NAME, place)
    model, tokenizer = model_files.load_classifier(AutoModelForSequenceClassification, name, place, "classifier")
    labels = tuple(model.config.id2label[number] for number in range(model.config.num_labels))
    _check_labels(config, labels)
    max_tokens = min(MAX_TOKENS, max_model_tokens(model.config, tokenizer.model_max_length))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    log.info("toxicity: %s with labels %s on %s", name, ", ".join(labels), device)
    return Classifier(model.to(device).eval(), tokenizer, labels, max_tokens)


def score_sentences(sentences: Sequence[str], classifier: Classifier) -> np.ndarray:
    """Scores in 0..1, float32 ``[sentences, labels]``: a sigmoid per label for multi-label models and models with one
    label, else a softmax."""
    import torch

    model, tokenizer, labels, max_tokens = classifier
    is_each_alone = model.config.problem_type == "multi_label_classification" or len(labels) == 1
    scores_SL = np.empty((len(sentences), len(labels)), np.float32)
    ids = tokenizer(list(sentences), truncation=True, max_length=max_tokens)["input_ids"] if sentences else []
    order = sorted(range(len(ids)), key=lambda n: len(ids[n]))  # little padding
    for start in range(0, len(order), BATCH_SENTENCES):
        chosen = order[start : start + BATCH_SENTENCES]
        batch = tokenizer.pad({"input_ids": [ids[n] for n in chosen]}, return_tensors="pt").to(model.device)
        with torch.inference_mode():
            logits_BL = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.float()
        scores_BL = logits_BL.sigmoid() if is_each_alone else logits_BL.softmax(dim=-1)
        scores_SL[chosen] = scores_BL.cpu().numpy()
    return scores_SL


def is_toxic(scores_SL: np.ndarray, labels: Sequence[str], source: str, config: ToxicityConfig) -> np.ndarray:
    """Whether each sentence of ``source`` reaches the threshold of any label, bool."""
    thresholds = config.sources.get(source, config.labels)
    columns = [labels.index(label) for label in thresholds]
    is_reached_ST = scores_SL[:, columns] >= np.array(list(thresholds.values()), np.float32)
    return np.asarray(is_reached_ST.any(axis=1))


def write_scores(
    path: Path, ids: Sequence[str], numbers: Sequence[int], scores_SL: np.ndarray, labels: Sequence[str]
) -> None:
    """One Parquet row per sentence: document id, number of the sentence, and a float32 column per label."""
    columns = [pa.array(ids, pa.string()), pa.array(numbers, pa.int32())]
    columns += [pa.array(np.ascontiguousarray(column), pa.float32()) for column in scores_SL.T]
    pq.write_table(pa.table(columns, names=[*PLACE_COLUMNS, *labels]), path, compression="zstd")


def _check_labels(config: ToxicityConfig, labels: Sequence[str]) -> None:
    tables = {"labels": config.labels} | {f"sources.{source}": table for source, table in config.sources.items()}
    for place, thresholds in tables.items():
        if unknown := [label for label in thresholds if label not in labels]:
            raise BadInput(
                f"corpus.toxicity.{place}: {config.model} has no label {', '.join(unknown)}; "
                f"expected any of {', '.join(labels)}"
            )
    if clash := sorted({*PLACE_COLUMNS} & {*labels}):
        raise BadInput(f"corpus.toxicity.model {config.model}: label {clash[0]} has the name of a column of the scores")
