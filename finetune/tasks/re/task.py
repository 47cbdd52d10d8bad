"""KLUE-RE: the relation between two marked entities of a sentence, 30 labels (paper 3.5).

The published architecture: markers around the entities, a label from [CLS]. It ignores the types of the entities, which
two options use (``finetune.tasks.re.markers``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import text_of
from finetune.examples import ErrorView, Example, Row
from finetune.task import Files, HubLayout, Inference, Task, published_facts
from finetune.tasks import labels
from finetune.tasks.re import markers, published
from finetune.tasks.re.markers import MARKERS, Span
from finetune.tasks.re.metrics import RE_LABELS, score, tables


def read(path: Path, with_types: bool = False) -> list[Example]:
    """Examples with ``sentence``, the spans ``subject`` and ``object`` (end exclusive) and their two ``types``,
    which are checked if ``with_types``; gold is the label."""
    examples = []
    for where, record, gold in labels.read_labelled("label", RE_LABELS, path):
        sentence = text_of(record, "sentence", where)
        if marker := next((marker for marker in MARKERS if marker in sentence), None):
            raise BadInput(f"{where}: 'sentence' holds {marker!r}, which marks entities for the model; take it out")
        subject, object_ = (_span(record, key, where) for key in markers.ENTITIES)
        check: Callable[[Any, str], Any] = markers.type_of if with_types else lambda entity, where: entity.get("type")
        types = tuple(check(record[key], f"{where}: '{key}'") for key in markers.ENTITIES)
        inputs = {"sentence": sentence, "subject": subject, "object": object_, "types": types}
        examples.append(Example(record["guid"], gold, inputs))
    return examples


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
        raise BadInput(f"{where}: '{key}' is {entity['word']!r}, but its characters are {sentence[start : last + 1]!r}")
    return start, last + 1


def show(example: Example, row: Row) -> ErrorView:
    """The sentence, its two entities and both relations."""
    sentence = example.inputs["sentence"]
    subject, object_ = (sentence[slice(*example.inputs[name])] for name in ("subject", "object"))
    return {"sentence": sentence, "subject → object": f"{subject} → {object_}"}, [row.gold], [row.prediction]


def configure(task: Task, config: FinetuneConfig) -> Task:
    """The task with the options of a configuration."""
    changes: dict[str, Any] = {"featurize": markers.featurize_typed} if config.re_markers == "typed" else {}
    if config.re_restricted:
        changes |= {"learn": markers.find_relations, "decode": markers.decode_restricted}
    if not changes:
        return task
    read: Any = task.read
    return replace(
        task,
        read=partial(read, with_types=True),
        inference=task.inference._replace(parse=markers.parse_typed),
        **changes,
    )


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
    hub=HubLayout(("guid", "sentence", *markers.ENTITIES, "label"), partial(labels.convert_records, "label")),
    inference=Inference(markers.parse_input, markers.to_result, markers.format_lines),
    configure=configure,
)  # fmt: skip
