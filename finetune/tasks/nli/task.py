"""KLUE-NLI: does the premise entail, contradict or leave open the hypothesis (paper 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from finetune.data.files import text_of
from finetune.task import Example, Feature, Files, Hyperparameters, Task
from finetune.tasks.label_metrics import class_tables, score_nli
from finetune.tasks.labels import (
    PairEncoder,
    collate_labels,
    decode_labels,
    encode_pairs_as_published,
    encode_texts,
    fault_of_label,
    label_writer,
    predict_majority,
    read_labelled,
    record_gold,
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
            gold=gold,
            inputs={key: text_of(record, key, where) for key in ("premise", "hypothesis")},
        )
        for where, record, gold in read_labelled(path, "gold_label", NLI_LABELS)
    ]


def featurize_nli(
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    is_training: bool,
    encode: PairEncoder = encode_texts,
) -> list[Feature]:
    """``[CLS] premise [SEP] hypothesis [SEP]``, too long a pair cut by ``encode``."""
    premises, hypotheses = ([example.inputs[key] for example in examples] for key in ("premise", "hypothesis"))
    return with_labels(encode(tokenizer, premises, hypotheses, max_tokens), examples, NLI_LABELS)


KLUE_NLI = Task(
    name="klue-nli",
    predicts="entailment, contradiction or neutral, of two sentences",
    files=Files(train="klue-nli-v1.1/klue-nli-v1.1_train.json", dev="klue-nli-v1.1/klue-nli-v1.1_dev.json"),
    read=read_nli,
    featurize=featurize_nli,
    collate=collate_labels,
    record=record_gold("class"),
    model=text_labeller(NLI_LABELS),
    decode=decode_labels(NLI_LABELS),
    score=score_nli,
    trivial=predict_majority(NLI_LABELS),
    fault=partial(fault_of_label, NLI_LABELS),
    select_by="accuracy",
    defaults=Hyperparameters(lr=5e-5, epochs=5, batch_size=32, warmup_share=0.1, max_tokens=128),
    large=Hyperparameters(lr=5e-5, epochs=5, batch_size=32, warmup_share=0.2, max_tokens=128),
    paper_dev={
        "klue/bert-base": {"accuracy": 79.87},
        "klue/roberta-small": {"accuracy": 79.90},
        "klue/roberta-base": {"accuracy": 85.50},
        "klue/roberta-large": {"accuracy": 89.70},
    },
    as_published={"featurize": partial(featurize_nli, encode=encode_pairs_as_published)},
    tables=class_tables(NLI_LABELS),
    write=label_writer("gold_label", NLI_LABELS),
)
