"""YNAT: topic of a news headline, seven classes (paper 3.1). Only the title is read, as published."""

from __future__ import annotations

from functools import partial

from finetune.task import Files, Hyperparameters, Task
from finetune.tasks import labels
from finetune.tasks.label_metrics import class_tables, score_ynat

FIELDS = ("title",)
YNAT_LABELS = ("정치", "경제", "사회", "생활문화", "세계", "IT과학", "스포츠")

YNAT = Task(
    name="ynat",
    predicts="topic of a news headline, 7 classes",
    files=Files(train="ynat-v1.1/ynat-v1.1_train.json", dev="ynat-v1.1/ynat-v1.1_dev.json"),
    read=partial(labels.read_texts, FIELDS, partial(labels.read_labelled, "label", YNAT_LABELS)),
    featurize=partial(labels.featurize_texts, FIELDS, YNAT_LABELS, labels.encode_texts),
    collate=labels.collate_labels,
    record=partial(labels.record_gold, "class"),
    model=partial(labels.build_labeller, YNAT_LABELS),
    decode=partial(labels.decode_labels, YNAT_LABELS),
    score=score_ynat,
    tables=partial(class_tables, YNAT_LABELS),
    trivial=partial(labels.predict_majority, YNAT_LABELS),
    fault=partial(labels.fault_of_label, YNAT_LABELS),
    write=partial(labels.write_field, "label"),
    select_by="macro_f1",
    defaults=Hyperparameters(lr=5e-5, epochs=4, batch_size=32, warmup_share=0.1, max_tokens=128),
    large=Hyperparameters(lr=5e-5, epochs=4, batch_size=32, warmup_share=0.2, max_tokens=128),
    paper_dev={
        "klue/bert-base": {"macro_f1": 86.59},
        "klue/roberta-small": {"macro_f1": 85.53},
        "klue/roberta-base": {"macro_f1": 86.03},
        "klue/roberta-large": {"macro_f1": 87.21},
    },
)
