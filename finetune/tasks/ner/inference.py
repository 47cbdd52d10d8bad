"""KLUE-NER on new text: a sentence becomes an example, its tags become entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from finetune.examples import Example, Prediction
from finetune.task import Inference
from finetune.tasks.text_input import parse_texts

OUTSIDE = "O"


def find_entities(text: str, tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Type, start and end (exclusive) of each entity, ``tags`` being those of non-spaces; a stray ``I-`` (no entity by
    the metric) has its type in brackets."""
    positions = [number for number, character in enumerate(text) if not character.isspace()]
    entities: list[tuple[str, int, int]] = []
    previous = OUTSIDE
    for position, tag in zip(positions, tags, strict=False):  # klue-baseline may predict fewer tags than characters
        prefix, _, kind = tag.partition("-")
        if prefix == "I" and previous.endswith(f"-{kind}"):
            entities[-1] = (*entities[-1][:2], position + 1)
        elif prefix != OUTSIDE:
            entities.append((kind if prefix == "B" else f"({kind})", position, position + 1))
        previous = tag
    return entities


def to_result(example: Example, prediction: Prediction) -> dict[str, Any]:
    """``text`` and ``entities``, each with ``text``, ``type``, ``start`` and ``end`` (exclusive); a stray ``I-`` is no
    entity, as in the scores."""
    text = example.inputs["text"]
    entities = [
        {"text": text[begin:end], "type": kind, "start": begin, "end": end}
        for kind, begin, end in find_entities(text, prediction.value)
        if not kind.startswith("(")
    ]
    return {"text": text, "entities": entities}


def format_lines(result: Mapping[str, Any]) -> list[str]:
    """The sentence, and below it type, span and text of each entity."""
    entities = [f"  {e['type']}\t{e['start']}:{e['end']}\t{e['text']}" for e in result["entities"]]
    return [result["text"], *(entities or ["  no entity"])]


INFERENCE = Inference(partial(parse_texts, ("text",)), to_result, format_lines, is_block=True)
