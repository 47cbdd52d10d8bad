"""Predictions of any system, without torch: scored against an official file or their own golds, or written as one.

A predictions file, plain or compressed (.gz, .zst), has JSON lines with ``guid``, ``prediction`` and, if a metric needs
them (KLUE-RE), ``scores``; or it is one JSON map from guid to prediction. Every example needs one prediction in the
form of its task. Anything else is refused with its guid: an incomplete file is neither written nor scored.

``errors.json`` has a sample of wrong predictions. With probabilities, the most certain errors come first; in KLUE-STS
the largest distances; otherwise a seeded draw decides. At most one error comes from a group (a dialogue, a passage).
The sample shows the worst errors of labels and model, not the average error.
"""

from __future__ import annotations

import json
import logging
import math
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.atomic_files import parse_json
from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc, read_json_lines
from finetune.data.files import identify, read_text
from finetune.data.split import draw_digest, refuse_twice, some_of
from finetune.examples import Example, Prediction, Row, Table, to_rows
from finetune.registry import find_task
from finetune.score.baselines import baselines
from finetune.score.bootstrap import SAMPLES, SEED, bootstrap
from finetune.task import Task

log = logging.getLogger(__name__)

NOT_NFC = "not in NFC (Unicode's composed form); compared in NFC"
MAX_ERRORS = 10  # of one task, encoder and seed, in errors.json
LONGEST_TEXT = 400  # characters


def read_predictions(path: Path) -> dict[str, dict[str, Any]]:
    """Guid to a record with ``prediction``, from JSON lines or one JSON map; ``BadInput`` for anything else, or a
    repeated guid."""
    if (values := _read_map(path)) is not None:
        return {guid: {"prediction": value} for guid, value in values.items()}
    return {record["guid"]: record for record in read_lines(path, ("guid", "prediction"))}


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
    refuse_twice(path, [record["guid"] for record in records])
    return records


def _read_map(path: Path) -> dict[str, Any] | None:
    """The file as one JSON map; None if it is anything else."""
    text = read_text(path)
    try:
        value = parse_json(text, object_pairs_hook=_without_doubles)
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
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"an object has {twice!r:.60} twice")
    return record


def match(task: Task, examples: Sequence[Example], predictions: Path, source: Path) -> list[Prediction]:
    """The prediction of each example of the file ``source``; ``BadInput`` for a missing, unknown or repeated guid, or a
    prediction that does not have the task's form."""
    records = read_predictions(predictions)
    guids = dict.fromkeys(example.guid for example in examples)
    refuse_twice(source, [example.guid for example in examples])
    if missing := [guid for guid in guids if guid not in records]:
        raise BadInput(f"{predictions}: no prediction for {some_of(missing)} of {source}; every example needs one")
    if unknown := [guid for guid in records if guid not in guids]:
        raise BadInput(f"{predictions}: {some_of(unknown)} not in {source}; are these predictions for another file?")
    for example in examples:
        record = records[example.guid]
        prediction = Prediction(_spell(task, record["prediction"]), record.get("scores"))
        if (problem := task.inspection.validate(example, prediction)) is not None:
            raise BadInput(f"{predictions}, {example.guid}: {problem}")
    pairs = [(example.gold, records[example.guid]["gold"]) for example in examples if "gold" in records[example.guid]]
    if others := sum(gold is not None and gold != recorded for gold, recorded in pairs):
        log.warning(
            "%s: %s of %s golds differ from %s; is it the file predicted?", predictions, others, len(pairs), source
        )
    return [Prediction(records[guid]["prediction"], records[guid].get("scores")) for guid in guids]


def export_predictions(name: str, source: Path, predictions: Path, target: Path) -> int:
    """Write the official file ``source`` with predictions, one for each example, in place of its labels; returns their
    number. ``BadInput`` if they do not match."""
    task = find_task(name)
    if target.resolve() in (source.resolve(), predictions.resolve()):
        raise BadInput(f"{target}: this is a file to read; give the file to write a name of its own")
    examples = task.read(source)
    paired = match(task, examples, predictions, source)
    values = {e.guid: _spell(task, prediction.value) for e, prediction in zip(examples, paired, strict=True)}
    task.write(source, values, target)
    return len(examples)


class Scored(NamedTuple):
    """``scores``: 0..100, the headline first; ``tables``: of ``Task.inspection``; ``gold``: the file compared with, if
    any; ``notes``: remarks about the predictions."""

    n: int
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float] | None]
    tables: dict[str, Table]
    gold: dict[str, str] | None = None
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As JSON, with null for undefined numbers."""
        return {**self._asdict(), "scores": defined(self.scores), "tables": defined_tables(self.tables)}


def installed_versions(*packages: str) -> dict[str, str]:
    """The versions of Python and of those packages that are installed."""
    versions = {"python": platform.python_version()}
    for name in packages:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def defined(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row for JSON, with null for undefined numbers."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


def scores_record(
    task: Task, rows: Sequence[Row], training: Sequence[Example], scored: Sequence[Example], samples: int, seed: int
) -> dict[str, Any]:
    """The part of ``scores.json`` with scores, intervals, baselines and the paper's figures."""
    scores = task.score(rows)
    return {
        "headline": next(iter(scores)),
        "bootstrap_samples": samples,
        "scores": defined(scores),
        "intervals": bootstrap(task, rows, [task.group(example) for example in scored], samples, seed),
        **baselines(task, training, scored),
        "paper_dev": {model: dict(figures) for model, figures in task.published.dev_scores.items()},
    }


def defined_tables(tables: Mapping[str, Table]) -> dict[str, Table]:
    """Tables of a task for JSON."""
    return {title: [defined(row) for row in rows] for title, rows in tables.items()}


def score_file(name: str, predictions: Path, gold: Path | None = None, samples: int = SAMPLES) -> Scored:
    """Score a predictions file; ``BadInput`` for a broken file, or predictions that do not match the examples.

    Args:
        gold: an official file of the task, plain or ``.zst``; None: the predictions file has the golds. It does not
            know the passages of KLUE-MRC, so its intervals treat each question separately.
        samples: bootstrap resamples; 0: no intervals.
    """
    task = find_task(name)
    if gold is None:
        rows, about = read_rows(predictions, task), None
        groups = [task.group_of_guid(row.guid) for row in rows]
    else:
        examples = task.read(gold)
        rows = _pair(task, examples, predictions, gold)
        groups = [task.group(example) for example in examples]
        about = identify(gold, is_custom=task.custom is not None)
    rows, notes = spelled(task, rows)
    try:
        intervals = bootstrap(task, rows, groups, samples, SEED)
        notes += remarks(task, rows)
        scored = Scored(len(rows), task.score(rows), intervals, task.inspection.tables(rows), about, tuple(notes))
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(
            f"{predictions}: its golds and predictions do not have the form of {task.name} "
            f"({type(error).__name__}: {error!s:.200})"
        ) from None
    for note in notes:
        log.warning("%s: %s", predictions, note)
    return scored


def read_rows(path: Path, task: Task | None = None) -> list[Row]:
    """The lines of a predictions file with golds; ``BadInput`` for a line without ``gold`` or ``prediction``, or with
    one that does not have the form of ``task``."""
    records = read_lines(path, ("guid", "gold", "prediction"))
    for record in records:
        if task is not None and (problem := _problem_of(task, record)) is not None:
            raise BadInput(f"{path}, {record['guid']}: {problem}")
        for key in ("gold", "prediction"):
            if isinstance(record[key], float) and not math.isfinite(record[key]):
                raise BadInput(f"{path}, {record['guid']}: '{key}' is {record[key]}, expected a label or a number")
    return [Row(r["guid"], r["gold"], r["prediction"], r.get("scores")) for r in records]


def _problem_of(task: Task, record: Mapping[str, Any]) -> str | None:
    """What is wrong with the prediction or the gold of a record; an example as long as the gold is enough to tell."""
    gold, prediction = _spell(task, record["gold"]), _spell(task, record["prediction"])
    words = gold["heads"] if isinstance(gold, dict) and isinstance(gold.get("heads"), list) else []
    example = Example(record["guid"], gold, {"text": "x" * len(gold) if isinstance(gold, list) else "", "words": words})
    problem = task.inspection.validate(example, Prediction(prediction, record.get("scores")))
    if problem is None and not (isinstance(gold, dict) and "answers" in gold):  # of KLUE-MRC
        return task.inspection.validate(example, Prediction(gold))
    return problem


def _pair(task: Task, examples: Sequence[Example], predictions: Path, gold: Path) -> list[Row]:
    """Each example with its prediction, in the order of the examples."""
    if any(example.gold is None for example in examples):
        raise BadInput(f"{gold}: it has no labels to score against; a test file can only be exported")
    paired = match(task, examples, predictions, gold)
    with_scores = sum(prediction.scores is not None for prediction in paired)
    if 0 < with_scores < len(paired):
        raise BadInput(f"{predictions}: 'scores' in {with_scores:,} of {len(paired):,} lines; give all of them or none")
    return to_rows(examples, paired)


def _spell(task: Task, value: Any) -> Any:
    return task.inspection.spell(nfc(value))


def spelled(task: Task, rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """The rows with golds and predictions as the task compares them, and what that changed."""
    same, notes = list(rows), list[str]()
    for key in ("prediction", "gold"):
        for spell, what in ((nfc, NOT_NFC), (task.inspection.spell, "spelled like {!r:.60}; compared as {!r:.60}")):
            pairs = [(getattr(row, key), spell(getattr(row, key))) for row in same]
            same = [row._replace(**{key: new}) for row, (_, new) in zip(same, pairs, strict=True)]
            if others := [pair for pair in pairs if pair[0] != pair[1]]:
                notes.append(f"{len(others):,} of {len(rows):,} {key}s are {what.format(*others[0])}")
    return same, notes


def remarks(task: Task, rows: Sequence[Row]) -> list[str]:
    """One sentence for each property of the predictions that the user may not expect."""
    kind = task.custom["kind"] if task.custom is not None else task.name
    return [
        said.format(count, len(rows))
        for name, counts, said in REMARKS
        if kind == name and (count := sum(map(counts, rows)))
    ]


def _has_slot_twice(row: Row) -> bool:
    slots = ["-".join(str(entry).split("-", 2)[:2]) for entry in row.prediction]
    return len(set(slots)) < len(slots)


def _strays(row: Row) -> int:
    """Runs of I- without a B- of their type."""
    return sum(
        tag.startswith("I-") and (before == "O" or before[2:] != tag[2:])
        for before, tag in zip(["O", *row.prediction], row.prediction, strict=False)
    )


def _has_other_scores(row: Row) -> bool:
    return row.scores is not None and (min(row.scores) < 0 or abs(sum(row.scores) - 1) > 0.01)


_STRAY = "{:,} entities in {:,} predictions begin with I-, without a B-; the strict entity F1 counts none of them"
REMARKS: tuple[tuple[str, Callable[[Row], int], str], ...] = (
    (
        "klue-re",
        _has_other_scores,
        "{:,} of {:,} predictions have scores that are no probabilities; AUPRC ranks by them",
    ),
    ("wos", _has_slot_twice, "{:,} of {:,} predicted states have two values of one slot; both are scored"),
    ("klue-ner", _strays, _STRAY),
    ("tagging", _strays, _STRAY),
)


def find_errors(
    task: Task, examples: Sequence[Example], rows: Sequence[Row], most: int = MAX_ERRORS, seed: int = 42
) -> dict[str, Any]:
    """The content of ``errors.json``, independent of the order of the rows; ``seed`` draws where nothing sorts.

    Returns:
        ``wrong`` of ``n`` rows with a gold, ``sorted_by`` ("probability", "distance" or None), and at most ``most``
            ``samples``: ``guid``, ``texts`` by field, ``gold`` and ``predicted``, and the ``value`` they are sorted by.
    """
    pairs = [pair for pair in zip(examples, rows, strict=True) if pair[1].gold is not None]
    distance = task.inspection.distance
    differs = (lambda row: distance(row) >= 1) if distance else task.inspection.differs
    wrong = [(example, row, _value(task, row)) for example, row in pairs if differs(row)]
    wrong.sort(key=lambda error: (-(error[2] or 0.0), draw_digest(seed, "errors", error[1].guid)))
    first_of_group: dict[str, tuple[Example, Row, float | None]] = {}
    for error in wrong:
        first_of_group.setdefault(task.group(error[0]), error)
    kind = "distance" if distance else "probability"
    sorted_by = kind if any(value is not None for _, _, value in wrong) else None
    samples = [_describe(task, *error) for error in list(first_of_group.values())[:most]]
    return {"task": task.name, "n": len(pairs), "wrong": len(wrong), "sorted_by": sorted_by, "samples": samples}


def _value(task: Task, row: Row) -> float | None:
    if task.inspection.distance:
        return round(task.inspection.distance(row), 4)
    return max(row.scores) if isinstance(row.scores, list) and row.scores else None


def _describe(task: Task, example: Example, row: Row, value: float | None) -> dict[str, Any]:
    texts, gold, predicted = task.inspection.show(example, row)
    shown = {name: " ".join(text.split()) for name, text in texts.items() if text}  # the first system turn is empty
    cut = {name: text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…" for name, text in shown.items()}
    return {"guid": row.guid, "texts": cut, "gold": gold, "predicted": predicted, "value": value}
