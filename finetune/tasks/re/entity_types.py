"""The types of the two entities of KLUE-RE, which the published architecture ignores: written as markers, or as a rule.

``finetune.re_markers=typed`` writes them into the text, as "typed entity marker (punct)" of Zhou and Chen 2022 in
Korean words: ``@ * 사람 * 윤슬 @ 의 # ^ 이름 ^ 대표 #``. Markers are replaced after tokenization and truncation, so
none is lost. ``finetune.re_restricted=true`` gives probability 0 to relations that no training example has between
these types; ``no_relation`` is always possible.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from corpus.documents.errors import BadInput
from finetune.examples import Example, Feature, Prediction, Tokenizer
from finetune.task import RawInput
from finetune.tasks import labels
from finetune.tasks.re import markers
from finetune.tasks.re.markers import MARKERS, OBJECT, OBJECT_END, SIDES, SUBJECT, SUBJECT_END
from finetune.tasks.re.metrics import NO_RELATION, RE_LABELS

ENTITIES = tuple(f"{side}_entity" for side in SIDES)
TYPES = {"PER": "사람", "ORG": "단체", "LOC": "장소", "DAT": "날짜", "POH": "이름", "NOH": "수량"}
TYPED_MARKER = re.compile(r"<(subj|obj):([A-Z]+)>")
Learned = Mapping[str, Sequence[str]]  # types as "PER-ORG" to the relations between them


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
