"""KLUE-NLI: does the premise entail, contradict or leave open the hypothesis (paper 3.3)."""

from __future__ import annotations

from functools import partial

from finetune.task import Files, Hyperparameters, Task
from finetune.tasks import labels
from finetune.tasks.label_metrics import class_tables, score_nli

FIELDS = ("premise", "hypothesis")
NLI_LABELS = ("entailment", "contradiction", "neutral")

KLUE_NLI = Task(
    name="klue-nli",
    predicts="entailment, contradiction or neutral, of two sentences",
    files=Files(train="klue-nli-v1.1/klue-nli-v1.1_train.json", dev="klue-nli-v1.1/klue-nli-v1.1_dev.json"),
    read=partial(labels.read_texts, FIELDS, partial(labels.read_labelled, "gold_label", NLI_LABELS)),
    featurize=partial(labels.featurize_texts, FIELDS, NLI_LABELS, labels.encode_texts),
    collate=labels.collate_labels,
    record=partial(labels.record_gold, "class"),
    model=partial(labels.build_labeller, NLI_LABELS),
    decode=partial(labels.decode_labels, NLI_LABELS),
    score=score_nli,
    tables=partial(class_tables, NLI_LABELS),
    trivial=partial(labels.predict_majority, NLI_LABELS),
    fault=partial(labels.fault_of_label, NLI_LABELS),
    write=partial(labels.write_field, "gold_label"),
    select_by="accuracy",
    defaults=Hyperparameters(lr=5e-5, epochs=5, batch_size=32, warmup_share=0.1, max_tokens=128),
    large=Hyperparameters(lr=5e-5, epochs=5, batch_size=32, warmup_share=0.2, max_tokens=128),
    paper_dev={
        "klue/bert-base": {"accuracy": 79.87},
        "klue/roberta-small": {"accuracy": 79.90},
        "klue/roberta-base": {"accuracy": 85.50},
        "klue/roberta-large": {"accuracy": 89.70},
    },
    as_published={"featurize": partial(labels.featurize_texts, FIELDS, NLI_LABELS, labels.encode_pairs_as_published)},
)
