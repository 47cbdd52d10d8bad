"""Anybody's predictions: read, held against the examples of an official file, written in that file's own layout.

A predictions file has JSON lines with ``guid``, ``prediction`` and, where a metric needs them (KLUE-RE), ``scores``; or
it is one JSON map, guid to prediction. Every example needs one prediction of its task's form: a label, a number, tags,
a tree, a text, a state. Anything else is refused with its guid, so no file is written or scored that says less.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from finetune.config import BadInput
from finetune.files import read_text
from finetune.task import Example, Prediction, Task

Check = Callable[[Example, Any], str | None]  # what is wrong with a prediction, in words; None where nothing is


def read_predictions(path: Path) -> dict[str, Prediction]:
    """Guid to prediction, of JSON lines or of one JSON map.

    Raises:
        BadInput: neither of these, nothing in it, or a guid named twice.
    """
    found = _read_map(path)
    if found is not None:
        return {guid: Prediction(value) for guid, value in found.items()}
    records = read_lines(path, ("guid", "prediction"))
    return {record["guid"]: Prediction(record["prediction"], record.get("scores")) for record in records}


def read_lines(path: Path, keys: Sequence[str]) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines; ``BadInput`` for a line without one of ``keys``, ``guid`` being a text."""
    records = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            record = None
        if not isinstance(record, dict) or not all(key in record for key in keys) or type(record["guid"]) is not str:
            wanted = " and ".join([", ".join(f"'{key}'" for key in keys[:-1]), f"'{keys[-1]}'"])
            raise BadInput(f"{path}, line {number}: expected a JSON object with {wanted}, found {line[:80]!r}")
        records.append(record)
    if not records:
        raise BadInput(f"{path}: no predictions in it")
    _refuse_twice(path, [record["guid"] for record in records])
    return records


def _read_map(path: Path) -> dict[str, Any] | None:
    """The file as one JSON map; None where it is anything else."""
    pairs: list[list[tuple[str, Any]]] = []

    def remember(found: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs.append(found)  # the outermost object comes last
        return dict(found)

    try:
        value = json.loads(read_text(path), object_pairs_hook=remember)
    except json.JSONDecodeError:
        return None
    if not isinstance(value, dict) or not value or {"guid", "prediction"} <= set(value):
        return None
    _refuse_twice(path, [guid for guid, _ in pairs[-1]])
    return value


def match(task: Task, examples: Sequence[Example], predictions: Path, source: Path) -> list[Prediction]:
    """The prediction of each example of the file ``source``; golds are not looked at.

    Raises:
        BadInput: a guid without prediction, unknown or used twice, or a prediction that is not of the task's form.
    """
    found = read_predictions(predictions)
    guids = dict.fromkeys(example.guid for example in examples)
    _refuse_twice(source, [example.guid for example in examples])
    if missing := [guid for guid in guids if guid not in found]:
        raise BadInput(f"{predictions}: no prediction for {_some(missing)} of {source}; every example needs one")
    if unknown := [guid for guid in found if guid not in guids]:
        raise BadInput(f"{predictions}: {_some(unknown)} not in {source}; are these predictions for another file?")
    check = check_of(task.name)
    for example in examples:
        fault = check(example, found[example.guid].value)
        if fault is None and task.name == "klue-re":
            fault = _fault_of_scores(found[example.guid].scores)
        if fault is not None:
            raise BadInput(f"{predictions}, {example.guid}: {fault}")
    return [found[guid] for guid in guids]


def _refuse_twice(path: Path, guids: Sequence[str]) -> None:
    twice = [guid for guid, count in Counter(guids).items() if count > 1]
    if twice:
        raise BadInput(f"{path}: {_some(twice)} more than once; an example has one guid and one prediction")


def _some(guids: Sequence[str]) -> str:
    """``guid klue-nli-v1_dev_00000``, or the number of them and the first."""
    return f"guid {guids[0]}" if len(guids) == 1 else f"{len(guids):,} guids (the first is {guids[0]})"


def check_of(name: str) -> Check:
    """What tells whether a prediction has the form of a task. Labels are imported when they are asked for."""
    if name == "ynat":
        from finetune.tasks.ynat import YNAT_LABELS

        return partial(_fault_of_label, YNAT_LABELS)
    if name == "klue-nli":
        from finetune.tasks.klue_nli import NLI_LABELS

        return partial(_fault_of_label, NLI_LABELS)
    if name == "klue-re":
        from finetune.metrics.re import RE_LABELS

        return partial(_fault_of_label, RE_LABELS)
    if name == "klue-ner":
        from finetune.metrics.ner import NER_TAGS

        return partial(_fault_of_tags, frozenset(NER_TAGS))
    if name == "klue-dp":
        from finetune.metrics.dp import DP_LABELS

        return partial(_fault_of_tree, frozenset(DP_LABELS))
    if name == "wos":
        from finetune.tasks.wos import SLOTS

        return partial(_fault_of_state, frozenset(SLOTS))
    return _fault_of_number if name == "klue-sts" else _fault_of_text


def _fault_of_label(labels: Sequence[str], example: Example, value: Any) -> str | None:
    return None if value in labels else f"no label {value!r}; labels here are {', '.join(labels)}"


def _fault_of_scores(scores: Any) -> str | None:
    from finetune.metrics.re import RE_LABELS

    if scores is None or (isinstance(scores, list) and len(scores) == len(RE_LABELS) and all(map(_is_finite, scores))):
        return None
    return f"'scores' should be {len(RE_LABELS)} numbers in the order of relation_list.json, found {scores!r:.60}"


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _fault_of_number(example: Example, value: Any) -> str | None:
    return None if _is_finite(value) else f"expected a finite number, found {value!r:.60}"


def _fault_of_tags(tags: frozenset[str], example: Example, value: Any) -> str | None:
    expected = sum(not character.isspace() for character in example.inputs["text"])
    if not isinstance(value, list) or len(value) != expected:
        found = f"{len(value)}" if isinstance(value, list) else repr(value)[:60]
        return f"expected {expected} tags, one a character that is not a space; found {found}"
    odd = next((tag for tag in value if not isinstance(tag, str) or tag not in tags), None)
    return None if odd is None else f"no tag {odd!r}; tags here are {', '.join(sorted(tags))}"


def _fault_of_tree(labels: frozenset[str], example: Example, value: Any) -> str | None:
    words = len(example.inputs["words"])
    heads, types = (value.get("heads"), value.get("types")) if isinstance(value, dict) else (None, None)
    if not isinstance(heads, list) or not isinstance(types, list) or not len(heads) == len(types) == words:
        return f"expected 'heads' and 'types', lists of {words}, one entry a word; found {value!r:.60}"
    for head in heads:
        if type(head) is not int or not 0 <= head <= words:
            return f"no head {head!r}; heads are 0 (root) and the words 1 to {words}"
    odd = next((name for name in types if not isinstance(name, str) or name not in labels), None)
    return None if odd is None else f"no relation {odd!r}; relations here are {', '.join(sorted(labels))}"


def _fault_of_text(example: Example, value: Any) -> str | None:
    return None if isinstance(value, str) else f"expected a text, empty for no answer; found {value!r:.60}"


def _fault_of_state(slots: frozenset[str], example: Example, value: Any) -> str | None:
    for entry in value if isinstance(value, list) else [None]:
        parts = entry.split("-", 2) if isinstance(entry, str) else []
        if len(parts) != 3 or "-".join(parts[:2]) not in slots or not parts[2]:
            found = value if entry is None else entry
            return f"expected a list of domain-slot-value with one of the {len(slots)} slots; found {found!r:.60}"
    return None
