"""KLUE-RE: the relation between two marked entities of a sentence, 30 labels (paper 3.5).

The published architecture: markers around the entities, a label from [CLS]. The entity types of the data are used only
with the options of ``entity_types.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.data.files import text_of
from finetune.examples import ErrorView, Example, Row
from finetune.task import Files, HubLayout, published_facts
from finetune.tasks import labels
from finetune.tasks.re import entity_types, markers, published
from finetune.tasks.re.markers import MARKERS, Span
from finetune.tasks.re.metrics import RE_LABELS, score, tables

ENTITIES = ("subject_entity", "object_entity")


def read(path: Path, with_types: bool = False) -> list[Example]:
    """Examples with ``sentence``, the spans ``subject`` and ``object`` (end exclusive) and their two ``types``,
    which are checked if ``with_types``; gold is the label."""
    examples = []
    for where, record, gold in labels.read_labelled("label", RE_LABELS, path):
        sentence = _sentence(record, where)
        subject, object_ = (_span(record, key, where) for key in ENTITIES)
        types: tuple[Any, ...] = tuple(record[key].get("type") for key in ENTITIES)
        if with_types:
            types = tuple(entity_types.type_of(record[key], f"{where}: '{key}'") for key in ENTITIES)
        inputs = {"sentence": sentence, "subject": subject, "object": object_, "types": types}
        examples.append(Example(record["guid"], gold, inputs))
    return examples


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


def show(example: Example, row: Row) -> ErrorView:
    """The sentence, its two entities and both relations."""
    sentence = example.inputs["sentence"]
    subject, object_ = (sentence[slice(*example.inputs[name])] for name in ("subject", "object"))
    return {"sentence": sentence, "subject → object": f"{subject} → {object_}"}, [row.gold], [row.prediction]


KLUE_RE = labels.make_label_task(
    RE_LABELS, "label", ("sentence",),
    name="klue-re",
    predicts="relation of two marked entities, 30 classes",
    files=Files("klue-re-v1.1", "json"),
    read=read,
    featurize=markers.featurize,
    score=score,
    select_by="micro_f1",
    special_tokens=MARKERS,
    published=published_facts(
        "klue-re", {"featurize": published.featurize, "configure": lambda task, config: task}
    ),
    inspection=labels.label_fields(RE_LABELS, ())["inspection"]._replace(tables=tables, show=show),
    hub=HubLayout(("guid", "sentence", *ENTITIES, "label"), partial(labels.convert_records, "label")),
    inference=markers.INFERENCE,
    configure=entity_types.configure,
)  # fmt: skip
