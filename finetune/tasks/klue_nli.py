"""KLUE-NLI: does the premise entail, contradict or leave open the hypothesis (paper 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from finetune.files import label_of, read_records, text_of
from finetune.metrics.classification import score_nli
from finetune.task import Example, Feature, Files, Hyperparameters, Task
from finetune.tasks.labels import (
    collate_labels,
    decode_labels,
    encode_texts,
    predict_majority,
    record_label,
    text_labeller,
    with_labels,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

NLI_LABELS = ("entailment", "contradiction", "neutral")


def read_nli(path: Path) -> list[Example]:
    """Examples with ``premise`` and ``hypothesis``; gold is the label."""
    return [
        Example(
            guid=record["guid"],
            gold=label_of(record, "gold_label", NLI_LABELS, where),
            inputs={key: text_of(record, key, where) for key in ("premise", "hypothesis")},
        )
        for where, record in read_records(path)
    ]


def featurize_nli(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int, is_training: bool
) -> list[Feature]:
    """``[CLS] premise [SEP] hypothesis [SEP]``."""
    premises, hypotheses = ([example.inputs[key] for example in examples] for key in ("premise", "hypothesis"))
    return with_labels(encode_texts(tokenizer, premises, hypotheses, max_tokens), examples, NLI_LABELS)


KLUE_NLI = Task(
    name="klue-nli",
    files=Files(train="klue-nli-v1.1/klue-nli-v1.1_train.json", dev="klue-nli-v1.1/klue-nli-v1.1_dev.json"),
    read=read_nli,
    featurize=featurize_nli,
    collate=collate_labels,
    record=record_label,
    model=text_labeller(NLI_LABELS),
    decode=decode_labels(NLI_LABELS),
    score=score_nli,
    trivial=predict_majority(NLI_LABELS),
    select_by="accuracy",
    defaults=Hyperparameters(lr=5e-5, epochs=5, batch_size=32, warmup_share=0.1, max_tokens=128),
    paper_dev={
        "klue/bert-base": {"accuracy": 79.87},
        "klue/roberta-small": {"accuracy": 79.90},
        "klue/roberta-base": {"accuracy": 85.50},
        "klue/roberta-large": {"accuracy": 89.70},
    },
)
