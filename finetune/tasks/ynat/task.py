"""YNAT: topic of a news headline, seven classes (paper 3.1). Only the title is read, as published."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from finetune.data.files import text_of
from finetune.task import Example, Feature, Files, Hyperparameters, Task
from finetune.tasks.label_metrics import class_tables, score_ynat
from finetune.tasks.labels import (
    collate_labels,
    decode_labels,
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

YNAT_LABELS = ("정치", "경제", "사회", "생활문화", "세계", "IT과학", "스포츠")


def read_ynat(path: Path) -> list[Example]:
    """Examples with ``title``; gold is the label."""
    return [
        Example(
            guid=record["guid"],
            gold=gold,
            inputs={"title": text_of(record, "title", where)},
        )
        for where, record, gold in read_labelled(path, "label", YNAT_LABELS)
    ]


def featurize_ynat(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int, is_training: bool
) -> list[Feature]:
    """``[CLS] title [SEP]``."""
    features = encode_texts(tokenizer, [example.inputs["title"] for example in examples], None, max_tokens)
    return with_labels(features, examples, YNAT_LABELS)


YNAT = Task(
    name="ynat",
    predicts="topic of a news headline, 7 classes",
    files=Files(train="ynat-v1.1/ynat-v1.1_train.json", dev="ynat-v1.1/ynat-v1.1_dev.json"),
    read=read_ynat,
    featurize=featurize_ynat,
    collate=collate_labels,
    record=record_gold("class"),
    model=text_labeller(YNAT_LABELS),
    decode=decode_labels(YNAT_LABELS),
    score=score_ynat,
    trivial=predict_majority(YNAT_LABELS),
    fault=partial(fault_of_label, YNAT_LABELS),
    select_by="macro_f1",
    defaults=Hyperparameters(lr=5e-5, epochs=4, batch_size=32, warmup_share=0.1, max_tokens=128),
    large=Hyperparameters(lr=5e-5, epochs=4, batch_size=32, warmup_share=0.2, max_tokens=128),
    paper_dev={
        "klue/bert-base": {"macro_f1": 86.59},
        "klue/roberta-small": {"macro_f1": 85.53},
        "klue/roberta-base": {"macro_f1": 86.03},
        "klue/roberta-large": {"macro_f1": 87.21},
    },
    tables=class_tables(YNAT_LABELS),
    write=label_writer("label", YNAT_LABELS),
)
