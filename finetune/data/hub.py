"""KLUE from the Hugging Face Hub, or a local clone of it, written as official files, so one reader is enough.

Labels are mapped by name, because the Hub numbers them differently. The copy lacks some information: NER and DP have no
guids (sentences are numbered here), WoS has no ontology.json, other tasks have no annotations. ``Task.hub`` converts
the rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.files import SOURCE_NAME, in_one_sentence
from finetune.registry import TASKS
from finetune.task_names import SHORT_NAMES

if TYPE_CHECKING:
    from datasets import Dataset

KLUE = "klue/klue"
SPLITS = {"train": "train", "dev": "validation"}  # official name to the Hub's
_NAME = re.compile(r"hub:(?P<name>[^@]+)(?:@(?P<revision>.+))?")


class Copy(NamedTuple):
    """A copy in the layout of the Hub: Hub name or folder, and the requested revision."""

    name: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}" if self.revision else self.name


def find_copy(name_or_folder: str | Path) -> Copy | None:
    """The Hub copy that ``finetune.data`` names; None for a folder of official files.

    ``klue`` (unless it is a folder) and ``hub:NAME[@REVISION]`` are on the Hub; a folder with ``ynat/train-….parquet``
    is a clone.
    """
    text, folder = str(name_or_folder), Path(name_or_folder)
    if folder.is_dir():
        is_clone = any(any((folder / short).glob("*.parquet")) for short in SHORT_NAMES)
        return Copy(text) if is_clone else None
    if match := _NAME.fullmatch(text):
        return Copy(match["name"], match["revision"])
    return Copy(KLUE) if text in ("klue", KLUE) else None


def materialize(name_or_folder: str | Path, cache: Path, tasks: Sequence[str]) -> Path:
    """The folder of official files: the given folder, or the Hub copy converted below ``cache``.

    Writes ``<cache>/<name>/ynat-v1.1/ynat-v1.1_{train,dev}.json`` … of ``tasks`` atomically, and ``source.json`` with
    the tasks that are done; these are not loaded again. ``BadInput`` if the copy cannot be loaded or lacks columns or
    labels of KLUE.
    """
    copy = find_copy(name_or_folder)
    if copy is None:
        return Path(name_or_folder)
    folder = cache / re.sub(r"[^\w.]+", "-", str(copy)).strip("-.")
    source = _read_source(folder / SOURCE_NAME, copy)
    for task in tasks:
        if task not in source["tasks"]:
            source["tasks"][task] = _write_task(copy, task, folder)
            atomic_write(folder / SOURCE_NAME, json.dumps(source, ensure_ascii=False, indent=1))
    return folder


def _read_source(path: Path, copy: Copy) -> dict[str, Any]:
    source = {"source": f"Hub {copy}", "tasks": {}}
    try:
        recorded = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):
        return source
    return recorded if isinstance(recorded, dict) and recorded.get("source") == source["source"] else source


def _write_task(copy: Copy, name: str, folder: Path) -> dict[str, Any]:
    from datasets import load_dataset

    task, config = TASKS[name], name.removeprefix("klue-")
    advice = "; check name and network, or give finetune.data a folder of official files"
    with in_one_sentence(f"{copy}, configuration {config}", "cannot be loaded", advice):
        splits: Mapping[str, Dataset] = load_dataset(copy.name, config, revision=copy.revision)
    done: dict[str, Any] = {}
    for split, hub_split in SPLITS.items():
        if hub_split in splits:
            rows = _named_rows(splits[hub_split], task.hub.columns, f"{copy}, {config}, {hub_split}")
            atomic_write(folder / task.files.of(split), task.hub.convert(rows, split))
            done[split] = len(rows)
    if "dev" not in done:
        raise BadInput(f"{copy}, {config}: no split 'validation'; found {', '.join(splits)}")
    return done


def _named_rows(dataset: Dataset, columns: Sequence[str], where: str) -> list[dict[str, Any]]:
    """All rows, with class numbers replaced by the class names of the data set."""
    from datasets import ClassLabel

    missing = [column for column in columns if column not in dataset.column_names]
    if missing:
        raise BadInput(f"{where}: no column {', '.join(missing)}; found {', '.join(dataset.column_names)}")
    rows: list[dict[str, Any]] = dataset.to_list()
    for column, feature in dataset.features.items():
        label = getattr(feature, "feature", feature)
        if not isinstance(label, ClassLabel):
            continue
        for number, row in enumerate(rows):
            try:
                row[column] = label.int2str(row[column])
            except (TypeError, ValueError):
                problem = f"{column} {row[column]!r} is none of {len(label.names)} labels"
                raise BadInput(f"{where}, row {number}: {problem}") from None
    return rows
