"""KLUE-RE on new text: two entities marked in the sentence, or given by offsets as in the official files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc
from finetune.examples import Example, Prediction
from finetune.task import Inference, RawInput
from finetune.tasks.re.markers import MARKERS, OBJECT, OBJECT_END, SUBJECT, SUBJECT_END, Span
from finetune.tasks.re.metrics import RE_LABELS
from finetune.tasks.text_input import certainty, parse_texts, share

SIDES = ("subject", "object")


def parse_input(raw: RawInput, where: str) -> dict[str, Any] | None:
    """``sentence`` and the spans ``subject`` and ``object`` of a marked sentence, or of a record like the official
    ones; offsets are adjusted where NFC changes the text."""
    found = parse_texts(("sentence",), raw, where)
    if found is None:
        return None
    if not isinstance(raw, Mapping) or not all(f"{side}_entity" in raw for side in SIDES):
        return read_markers(found["sentence"], where)
    spans = {side: _moved(raw["sentence"], raw[f"{side}_entity"], f"{where}: '{side}_entity'") for side in SIDES}
    return {**found, **spans}


def read_markers(text: str, where: str) -> dict[str, Any]:
    """
    >>> read_markers("<subj>윤슬</subj>의 <obj>대표</obj>", "line 1")
    {'sentence': '윤슬의 대표', 'subject': (0, 2), 'object': (4, 6)}
    """
    pieces = re.split("(" + "|".join(MARKERS) + ")", text)
    places: dict[str, int] = {}
    length = 0
    for piece in pieces:
        if piece not in MARKERS:
            length += len(piece)
        elif piece in places:
            raise BadInput(f"{where}: {piece} occurs twice; mark one subject and one object")
        else:
            places[piece] = length
    spans = [
        (places.get(begin, 0), places.get(end, 0)) for begin, end in ((SUBJECT, SUBJECT_END), (OBJECT, OBJECT_END))
    ]
    if len(places) < len(MARKERS) or any(begin >= end for begin, end in spans):
        raise BadInput(
            f"{where}: expected two marked entities, {SUBJECT}…{SUBJECT_END} and {OBJECT}…{OBJECT_END}, each with text"
        )
    sentence = "".join(piece for piece in pieces if piece not in MARKERS)
    return {"sentence": sentence, **dict(zip(SIDES, spans, strict=True))}


def _moved(sentence: str, entity: Any, where: str) -> Span:
    """The span of an official entity (last character included), in the sentence in NFC."""
    start, last = (entity.get(key) if isinstance(entity, dict) else None for key in ("start_idx", "end_idx"))
    if not (type(start) is int and type(last) is int and 0 <= start <= last < len(sentence)):
        raise BadInput(f"{where} should be an object with 'start_idx' and 'end_idx', characters of the sentence")
    before, inside, after = (nfc(text) for text in (sentence[:start], sentence[start : last + 1], sentence[last + 1 :]))
    if before + inside + after != nfc(sentence):
        raise BadInput(f"{where} begins or ends inside a character of the sentence; give the sentence in NFC")
    return len(before), len(before) + len(inside)


def to_result(example: Example, prediction: Prediction) -> dict[str, Any]:
    """``sentence``, ``subject`` and ``object`` with text and offsets, and the certainty of the relation."""
    sentence = example.inputs["sentence"]
    entities = {
        side: {"text": sentence[begin:end], "start": begin, "end": end}
        for side in SIDES
        for begin, end in [example.inputs[side]]
    }
    return {"sentence": sentence, **entities, **certainty(RE_LABELS, prediction)}


def format_lines(result: Mapping[str, Any]) -> list[str]:
    """Relation, probability, the two entities and the sentence."""
    between = " → ".join(result[side]["text"] for side in SIDES)
    return ["\t".join([result["prediction"], share(result), between, result["sentence"]])]


INFERENCE = Inference(parse_input, to_result, format_lines)
