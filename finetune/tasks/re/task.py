"""KLUE-RE: the relation between two marked entities of a sentence, 30 labels (paper 3.5).

The published architecture: markers around the entities, a label from [CLS]; the entity types of the data are not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.data.files import text_of
from finetune.task import Example, Feature, Files, Hyperparameters, Task, Tokenizer
from finetune.tasks import labels
from finetune.tasks.re import published
from finetune.tasks.re.markers import MARKERS, Span, continuation, keep_markers, mark_entities, mend_continuations
from finetune.tasks.re.metrics import RE_LABELS, score, tables


def read(path: Path) -> list[Example]:
    """Examples with ``sentence`` and the spans ``subject`` and ``object`` (end exclusive); gold is the label."""
    return [
        Example(
            guid=record["guid"],
            gold=gold,
            inputs={
                "sentence": _sentence(record, where),
                "subject": _span(record, "subject_entity", where),
                "object": _span(record, "object_entity", where),
            },
        )
        for where, record, gold in labels.read_labelled("label", RE_LABELS, path)
    ]


def _sentence(record: Mapping[str, Any], where: str) -> str:
    sentence = text_of(record, "sentence", where)
    for marker in MARKERS:
        if marker in sentence:
            raise BadInput(f"{where}: 'sentence' holds {marker!r}, which marks entities for the model; take it out")
    return sentence


def _span(record: Mapping[str, Any], key: str, where: str) -> Span:
    entity, sentence = record.get(key), record["sentence"]
    if not isinstance(entity, dict):
        raise BadInput(f"{where}: '{key}' should be an object with 'word', 'start_idx' and 'end_idx'")
    start, last = entity.get("start_idx"), entity.get("end_idx")
    if not isinstance(start, int) or not isinstance(last, int) or not 0 <= start <= last < len(sentence):
        raise BadInput(
            f"{where}: '{key}' spans characters {start!r} to {last!r}; expected 0 <= start_idx <= end_idx < "
            f"{len(sentence)}, the length of the sentence"
        )
    if "word" in entity and entity["word"] != sentence[start : last + 1]:
        raise BadInput(
            f"{where}: '{key}' names {entity['word']!r}, but its characters are {sentence[start : last + 1]!r}"
        )
    return start, last + 1


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """``[CLS] sentence with four markers [SEP]``; a long sentence is cut where no marker is."""
    texts = [mark_entities(*(example.inputs[key] for key in ("sentence", "subject", "object"))) for example in examples]
    features = labels.encode_texts(tokenizer, texts)
    mend_continuations(features, texts, tokenizer, continuation)
    vocabulary = tokenizer.get_vocab()
    marker_ids = [vocabulary[marker] for marker in MARKERS]
    sides = tokenizer("가").sequence_ids(0)  # None where the tokenizer adds [CLS] and [SEP]
    before, after = sides.index(0), sides[::-1].index(0)
    for index, feature in enumerate(features):
        length = len(feature["input_ids"])
        if length > max_tokens:
            inner = feature["input_ids"][before : length - after]
            kept = [before + position for position in keep_markers(inner, marker_ids, max_tokens - before - after)]
            features[index] = labels.keep_tokens(feature, [*range(before), *kept, *range(length - after, length)])
    return labels.with_labels(features, examples, RE_LABELS)


KLUE_RE = Task(
    name="klue-re",
    predicts="relation of two marked entities, 30 classes",
    files=Files(train="klue-re-v1.1/klue-re-v1.1_train.json", dev="klue-re-v1.1/klue-re-v1.1_dev.json"),
    read=read,
    featurize=featurize,
    collate=labels.collate_labels,
    record=partial(labels.record_gold, "class"),
    model=partial(labels.build_labeller, RE_LABELS),
    decode=partial(labels.decode_labels, RE_LABELS),
    score=score,
    trivial=partial(labels.predict_majority, RE_LABELS),
    fault=partial(labels.fault_of_label, RE_LABELS),
    select_by="micro_f1",
    defaults=Hyperparameters(lr=5e-5, epochs=3, batch_size=32, warmup_share=0.1, max_tokens=256),
    large=Hyperparameters(lr=2e-5, epochs=10, batch_size=16, warmup_share=0.2, max_tokens=256),
    paper_dev={
        "klue/bert-base": {"micro_f1": 65.58, "auprc": 68.11},
        "klue/roberta-small": {"micro_f1": 61.54, "auprc": 60.79},
        "klue/roberta-base": {"micro_f1": 66.01, "auprc": 69.56},
        "klue/roberta-large": {"micro_f1": 69.99, "auprc": 75.05},
    },
    special_tokens=MARKERS,
    as_published={"featurize": published.featurize},
    tables=tables,
    write=partial(labels.write_field, "label"),
)
