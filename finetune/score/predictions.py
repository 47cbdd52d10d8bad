"""Predictions of any system: read, matched with the examples of an official file, written in its format.

A predictions file, plain or compressed (.gz, .zst), has JSON lines with ``guid``, ``prediction`` and, if a metric needs
them (KLUE-RE), ``scores``; or it is one JSON map from guid to prediction. Every example needs one prediction in the
form of its task. Anything else is refused with its guid: an incomplete file is neither written nor scored.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import parse_json
from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc, read_json_lines
from finetune.data.files import read_text
from finetune.examples import Example, Prediction
from finetune.registry import find_task
from finetune.task import Task


def read_predictions(path: Path) -> dict[str, Prediction]:
    """Guid to prediction, from JSON lines or one JSON map; ``BadInput`` for anything else, or a repeated guid."""
    found = _read_map(path)
    if found is not None:
        return {guid: Prediction(value) for guid, value in found.items()}
    records = read_lines(path, ("guid", "prediction"))
    return {record["guid"]: Prediction(record["prediction"], record.get("scores")) for record in records}


def read_lines(path: Path, keys: Sequence[str]) -> list[dict[str, Any]]:
    """The objects of a JSON lines file; ``BadInput`` for a line without one of ``keys``, or whose ``guid`` is no
    text."""
    records = []
    for where, _, record in read_json_lines(path, object_pairs_hook=_without_doubles):
        if not all(key in record for key in keys) or type(record["guid"]) is not str:
            expected = " and ".join([", ".join(f"'{key}'" for key in keys[:-1]), f"'{keys[-1]}'"])
            raise BadInput(f"{where}: expected a JSON object with {expected}, found {record!r:.80}")
        records.append(dict(record))
    if not records:
        raise BadInput(f"{path}: no predictions in it")
    _refuse_twice(path, [record["guid"] for record in records])
    return records


def _read_map(path: Path) -> dict[str, Any] | None:
    """The file as one JSON map; None if it is anything else."""
    try:
        value = parse_json(read_text(path), object_pairs_hook=_without_doubles)
    except json.JSONDecodeError:
        return None
    except ValueError as error:
        raise BadInput(f"{path}: {error}; write the predictions again") from None
    if isinstance(value, list):
        raise BadInput(
            f"{path}: one JSON list; expected JSON lines with 'guid' and 'prediction', or one JSON map from guid to "
            "prediction"
        )
    return value if isinstance(value, dict) and value and not {"guid", "prediction"} <= set(value) else None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; ``ValueError`` if it repeats a key, of which only the last value would count."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"an object has {twice!r:.60} twice")
    return found


def match(task: Task, examples: Sequence[Example], predictions: Path, source: Path) -> list[Prediction]:
    """The prediction of each example of the file ``source``; ``BadInput`` for a missing, unknown or repeated guid, or a
    prediction that does not have the task's form."""
    found = read_predictions(predictions)
    guids = dict.fromkeys(example.guid for example in examples)
    _refuse_twice(source, [example.guid for example in examples])
    if missing := [guid for guid in guids if guid not in found]:
        raise BadInput(f"{predictions}: no prediction for {_some(missing)} of {source}; every example needs one")
    if unknown := [guid for guid in found if guid not in guids]:
        raise BadInput(f"{predictions}: {_some(unknown)} not in {source}; are these predictions for another file?")
    for example in examples:
        value, scores = found[example.guid]
        problem = task.inspection.validate(example, Prediction(nfc(value), scores))
        if problem is not None:
            raise BadInput(f"{predictions}, {example.guid}: {problem}")
    return [found[guid] for guid in guids]


def export_predictions(name: str, source: Path, predictions: Path, target: Path) -> int:
    """Write the official file ``source`` with predictions, one for each example, in place of its labels; returns their
    number. ``BadInput`` if they do not match."""
    task = find_task(name)
    if target.resolve() == source.resolve():
        raise BadInput(f"{target}: this is the official file itself; give the predictions a name of their own")
    examples = task.read(source)
    found = match(task, examples, predictions, source)
    values = {example.guid: prediction.value for example, prediction in zip(examples, found, strict=True)}
    task.write(source, values, target)
    return len(examples)


def _refuse_twice(path: Path, guids: Sequence[str]) -> None:
    twice = [guid for guid, count in Counter(guids).items() if count > 1]
    if twice:
        raise BadInput(f"{path}: {_some(twice)} more than once; an example has one guid and one prediction")


def _some(guids: Sequence[str]) -> str:
    """``guid klue-nli-v1_dev_00000``, or the number of them and the first."""
    return f"guid {guids[0]:.80}" if len(guids) == 1 else f"{len(guids):,} guids (the first is {guids[0]:.80})"
