"""KLUE-RE: the relation between two marked entities of a sentence, 30 labels (paper 3.5).

The published architecture: markers around the entities, a label from [CLS]. It ignores the types of the entities, which
two options use: ``finetune.re_markers=typed`` writes them into the text, as "typed entity marker (punct)" of Zhou and
Chen 2022 in Korean words: ``@ * 사람 * 윤슬 @ 의 # ^ 이름 ^ 대표 #``. Markers are replaced after tokenization and
truncation, so none is lost. ``finetune.re_restricted=true`` gives probability 0 to relations that no training example
has between these types; ``no_relation`` is always possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import text_of
from finetune.examples import ErrorView, Example, Feature, Prediction, Row, Tokenizer
from finetune.task import Files, HubLayout, Inference, RawInput, Task, published_facts
from finetune.tasks import labels
from finetune.tasks.re import markers, published
from finetune.tasks.re.markers import MARKERS, OBJECT, OBJECT_END, SIDES, SUBJECT, SUBJECT_END, Span
from finetune.tasks.re.metrics import NO_RELATION, RE_LABELS, score, tables

ENTITIES = tuple(f"{side}_entity" for side in SIDES)
TYPES = {"PER": "사람", "ORG": "단체", "LOC": "장소", "DAT": "날짜", "POH": "이름", "NOH": "수량"}
TYPED_MARKER = re.compile(r"<(subj|obj):([A-Z]+)>")
Learned = Mapping[str, Sequence[str]]  # types as "PER-ORG" to the relations between them


def read(path: Path, with_types: bool = False) -> list[Example]:
    """Examples with ``sentence``, the spans ``subject`` and ``object`` (end exclusive) and their two ``types``,
    which are checked if ``with_types``; gold is the label."""
    examples = []
    for where, record, gold in labels.read_labelled("label", RE_LABELS, path):
        sentence = text_of(record, "sentence", where)
        if marker := next((marker for marker in MARKERS if marker in sentence), None):
            raise BadInput(f"{where}: 'sentence' holds {marker!r}, which marks entities for the model; take it out")
        subject, object_ = (_span(record, key, where) for key in ENTITIES)
        check: Callable[[Any, str], Any] = type_of if with_types else lambda entity, where: entity.get("type")
        types = tuple(check(record[key], f"{where}: '{key}'") for key in ENTITIES)
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
    changes: dict[str, Any] = {"featurize": featurize_typed} if config.re_markers == "typed" else {}
    if config.re_restricted:
        changes |= {"learn": find_relations, "decode": decode_restricted}
    if not changes:
        return task
    read: Any = task.read
    return replace(
        task, read=partial(read, with_types=True), inference=task.inference._replace(parse=parse_typed), **changes
    )


def type_of(entity: Any, where: str) -> str:
    """The type of an entity of the official files."""
    found = entity.get("type") if isinstance(entity, dict) else None
    if found not in TYPES:
        raise BadInput(
            f"{where} has type {found!r:.40}; expected one of {', '.join(TYPES)}, which finetune.re_markers=typed and "
            "finetune.re_restricted need"
        )
    return str(found)


def parse_typed(raw: RawInput, where: str) -> dict[str, Any] | None:
    """New text with types: an official record, or ``<subj:PER>윤슬</subj>의 <obj:POH>대표</obj>``."""
    if isinstance(raw, str):
        marked: dict[str, str] = dict(TYPED_MARKER.findall(raw))
        entities: list[Any] = [{"type": marked.get(name)} for name in ("subj", "obj")]
        raw = TYPED_MARKER.sub(r"<\1>", raw)
    else:
        entities = [raw.get(key) if isinstance(raw, Mapping) else None for key in ENTITIES]
    found = markers.parse_input(raw, where)
    names = (f"{where}: the {side}" for side in SIDES)
    return None if found is None else {**found, "types": tuple(map(type_of, entities, names))}


def featurize_typed(
    examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool
) -> list[Feature]:
    """``[CLS] sentence with both entities and their types marked [SEP]``, truncated outside the markers."""
    ids_of = partial(_ids_of, tokenizer)
    starts = {
        marker: {name: ids_of(f"{sign} {bracket} {word} {bracket}") for name, word in TYPES.items()}
        for marker, sign, bracket in ((SUBJECT, "@", "*"), (OBJECT, "#", "^"))
    }
    ends = {SUBJECT_END: ids_of("@"), OBJECT_END: ids_of("#")}
    longest = sum(max(map(len, ids.values())) for ids in starts.values()) + sum(map(len, ends.values()))
    most = max_tokens - longest + len(MARKERS)
    features = markers.featurize(examples, tokenizer, most, is_training)
    marker_ids = {marker: tokenizer.get_vocab()[marker] for marker in MARKERS}
    for feature in features:
        subject, object_ = examples[feature["example"]].inputs["types"]
        written = {SUBJECT: starts[SUBJECT][subject], OBJECT: starts[OBJECT][object_], **ends}
        ids_by_marker = {marker_ids[marker]: ids for marker, ids in written.items()}
        pieces = (ids_by_marker.get(id_, [id_]) for id_ in feature["input_ids"])
        feature["input_ids"] = list(chain.from_iterable(pieces))
        feature["token_type_ids"] = [0] * len(feature["input_ids"])
    return features


def _ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    if tokenizer.unk_token_id in ids:
        raise BadInput(
            f"finetune.re_markers=typed writes {text!r}, which this tokenizer does not know; use plain, or an encoder "
            "whose vocabulary has the signs and words"
        )
    return ids


def find_relations(training: Sequence[Example]) -> Learned:
    """The relations between each pair of types in the training examples, in the order of the labels."""
    seen: dict[str, set[str]] = {}
    for example in training:
        seen.setdefault("-".join(example.inputs["types"]), {NO_RELATION}).add(example.gold)
    return {types: [label for label in RE_LABELS if label in seen[types]] for types in sorted(seen)}


def decode_restricted(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], learned: Learned
) -> list[Prediction]:
    """The most likely relation among those that training has between these types; the others have probability 0."""
    masks = {types: np.isin(RE_LABELS, relations) for types, relations in learned.items()}
    kept = []
    for example, raw in zip(examples, raws, strict=True):
        mask = masks.get("-".join(example.inputs["types"]))
        values = raw if mask is None else np.where(mask, np.maximum(raw, np.finfo(np.float32).tiny), 0)
        kept.append(values / values.sum())
    return labels.decode_labels(RE_LABELS, examples, features, kept)


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
    inference=Inference(markers.parse_input, markers.to_result, markers.format_lines),
    configure=configure,
)  # fmt: skip
