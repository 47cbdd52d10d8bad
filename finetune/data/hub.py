"""KLUE from the Hugging Face Hub, or from a local clone of it, written as official files, so that one reader remains.

Labels are mapped by name, for the Hub numbers them in another order. What the copy lacks stays lacking: NER and DP have
no guid (counted here, without the official file's source after it), WoS no ontology.json, others no annotations. The
copy strips contexts and answers of MRC but keeps their offsets; nothing is moved here, the reader judges.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import write_whole
from finetune.data.versions import SOURCE_NAME
from finetune.registry import TASKS

if TYPE_CHECKING:
    from datasets import Dataset

log = logging.getLogger(__name__)

Record = dict[str, Any]

KLUE = "klue/klue"
ABOUT = ("title", "news_category", "source", "context")  # what questions of one passage share
SPLITS = {"train": "train", "dev": "validation"}  # official name to the Hub's
_NAME = re.compile(r"hub:(?P<name>[^@]+)(?:@(?P<revision>.+))?")


class Copy(NamedTuple):
    """Where a copy in the Hub's layout is: ``name`` (Hub) or folder, and the revision asked for."""

    name: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}" if self.revision else self.name


class Layout(NamedTuple):
    """One configuration: its name, the columns needed, and what makes the official file's text of its rows."""

    config: str
    columns: tuple[str, ...]
    convert: Callable[[Sequence[Record], str], str]


def find_copy(name_or_folder: str | Path) -> Copy | None:
    """The Hub copy that ``finetune.data`` names; None for a folder of official files.

    ``klue`` (unless a folder has that name) and ``hub:NAME[@REVISION]`` are on the Hub; a folder that holds
    ``ynat/train-….parquet`` and the like is a clone.
    """
    text, folder = str(name_or_folder), Path(name_or_folder)
    if folder.is_dir():
        is_clone = any(any((folder / layout.config).glob("*.parquet")) for layout in LAYOUTS.values())
        return Copy(text) if is_clone else None
    if found := _NAME.fullmatch(text):
        return Copy(found["name"], found["revision"])
    return Copy(KLUE) if text in ("klue", KLUE) else None


def materialize(name_or_folder: str | Path, cache: Path, tasks: Sequence[str]) -> Path:
    """The folder of official files: the given one, or what a Hub copy becomes below ``cache``.

    Writes ``<cache>/<name>/ynat-v1.1/ynat-v1.1_{train,dev}.json`` …, each file whole or not at all, and
    ``source.json``, which lists the tasks done; these are not loaded again.

    Args:
        tasks: names of the tasks whose files are needed.

    Raises:
        BadInput: the copy cannot be loaded or has not the columns or labels of KLUE.
    """
    copy = find_copy(name_or_folder)
    if copy is None:
        return Path(name_or_folder)
    folder = cache / re.sub(r"[^\w.]+", "-", str(copy)).strip("-.")
    source = _read_source(folder / SOURCE_NAME, copy)
    for task in tasks:
        if task not in source["tasks"]:
            source["tasks"][task] = _write_task(copy, task, folder)
            write_whole(folder / SOURCE_NAME, json.dumps(source, ensure_ascii=False, indent=1))
    if "wos" in tasks and not (folder / "wos-v1.1" / "ontology.json").exists():
        log.warning(
            "%s has no ontology.json; copy the official one to %s, or values of WoS are spelt as generated",
            copy, folder / "wos-v1.1",
        )  # fmt: skip
    return folder


def _read_source(path: Path, copy: Copy) -> dict[str, Any]:
    source = {"source": f"Hub {copy}", "tasks": {}}
    try:
        found = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):
        return source
    return found if isinstance(found, dict) and found.get("source") == source["source"] else source


def _write_task(copy: Copy, task: str, folder: Path) -> dict[str, Any]:
    layout, files = LAYOUTS[task], TASKS[task].files
    splits = _load(copy, layout.config)
    done: dict[str, Any] = {}
    for split, hub_split in SPLITS.items():
        if hub_split not in splits:
            continue
        rows = _named_rows(splits[hub_split], layout, f"{copy}, {layout.config}, {hub_split}")
        write_whole(folder / getattr(files, split), layout.convert(rows, split))
        done[split] = len(rows)
    if "dev" not in done:
        raise BadInput(f"{copy}, {layout.config}: no split 'validation'; found {', '.join(splits)}")
    return done


def _load(copy: Copy, config: str) -> Mapping[str, Dataset]:
    from datasets import load_dataset

    try:
        loaded: Mapping[str, Dataset] = load_dataset(copy.name, config, revision=copy.revision)
    except Exception as error:  # the Hub's client raises many kinds
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"{copy}, configuration {config}: cannot be loaded ({reason}); check name and network, or give "
            "finetune.data a folder of official files"
        ) from error
    return loaded


def _named_rows(dataset: Dataset, layout: Layout, where: str) -> list[Record]:
    """All rows, numbers of classes replaced by the names that the data set gives them."""
    from datasets import ClassLabel

    missing = [column for column in layout.columns if column not in dataset.column_names]
    if missing:
        raise BadInput(f"{where}: no column {', '.join(missing)}; found {', '.join(dataset.column_names)}")
    rows: list[Record] = dataset.to_list()
    for column, feature in dataset.features.items():
        label = getattr(feature, "feature", feature)
        if not isinstance(label, ClassLabel):
            continue
        for number, row in enumerate(rows):
            ids = row[column] if label is not feature else [row[column]]
            if any(id_ is None or not 0 <= id_ < len(label.names) for id_ in ids):
                raise BadInput(f"{where}, row {number}: {column} {row[column]!r} is none of {len(label.names)} labels")
            names = [label.names[id_] for id_ in ids]
            row[column] = names if label is not feature else names[0]
    return rows


def _json(records: Any) -> str:
    return json.dumps(records, ensure_ascii=False, indent=4)


def _as_records(renamed: Mapping[str, str]) -> Callable[[Sequence[Record], str], str]:
    """One object a row, columns ``renamed`` where the official file calls them otherwise."""
    return lambda rows, split: _json([{renamed.get(key, key): value for key, value in row.items()} for row in rows])


def _to_ner(rows: Sequence[Record], split: str) -> str:
    return _to_tsv(rows, f"klue-ner-v1_{split}", ("tokens", "ner_tags"), ("CHAR", "NE_TAG"))


def _to_dp(rows: Sequence[Record], split: str) -> str:
    names = ("index", "word_form", "lemma", "pos", "head", "deprel")
    return _to_tsv(rows, f"klue-dp-v1_{split}", names, tuple(name.upper() for name in names))


def _to_tsv(rows: Sequence[Record], guid: str, columns: Sequence[str], names: Sequence[str]) -> str:
    """Numbered sentences below the five lines that official files begin with and readers skip."""
    lines = [
        "## 열 구분: 탭",
        "## 토큰 구분: 줄바꿈",
        "## 문장 구분: 빈 줄",
        "## 설명: ##",
        f"## 열: {' '.join(names)}",
    ]
    for number, row in enumerate(rows):
        here = f"{guid}_{number:05}"
        lines.append(f"## {here}\t{' '.join(row['sentence'].splitlines())}")
        values = [row[column] for column in columns]
        if len({len(value) for value in values}) != 1:
            raise BadInput(f"{here}: columns {', '.join(columns)} differ in length")
        for line in zip(*values, strict=True):
            if any(mark in str(value) for value in line[1:] for mark in "\t\n\r") or str(line[0]) in "\n\r":
                raise BadInput(f"{here}: {line!r} has a tab, a line break or no token; no tsv file can hold it")
            lines.append("\t".join(map(str, line)))
        lines.append("")
    return "\n".join(lines) + "\n"


def _to_mrc(rows: Sequence[Record], split: str) -> str:
    articles = []
    for key, questions in groupby(rows, key=lambda row: tuple(row[name] for name in ABOUT)):
        title, category, source, context = key
        paragraph = {"context": context, "qas": [_to_question(row) for row in questions]}
        articles.append({"title": title, "paragraphs": [paragraph], "news_category": category, "source": source})
    return _json({"version": "KLUE-MRC, from the Hub", "data": articles})


def _to_question(row: Record) -> Record:
    """The Hub files plausible answers of an unanswerable question under its answers."""
    question = {key: row[key] for key in ("guid", "question", "question_type", "is_impossible")}
    answers = list(_answers(row["answers"]))
    return question | ({"answers": [], "plausible_answers": answers} if row["is_impossible"] else {"answers": answers})


def _answers(found: Any) -> Iterator[Record]:
    """Of a list of objects, or of an object of lists, as the release of ``datasets`` has it."""
    pairs: Iterable[tuple[str, int]]
    if isinstance(found, list):
        pairs = ((answer["text"], answer["answer_start"]) for answer in found)
    else:
        pairs = zip(found["text"], found["answer_start"], strict=True)
    return ({"text": text, "answer_start": start} for text, start in pairs)


def _to_wos(rows: Sequence[Record], split: str) -> str:
    """As in the official file, only the user's turns have a state."""
    for row in rows:
        for turn in row["dialogue"]:
            if turn["role"] == "sys":
                turn.pop("state", None)
    return _json(rows)


LAYOUTS: Mapping[str, Layout] = {
    "ynat": Layout("ynat", ("guid", "title", "label"), _as_records({})),
    "klue-sts": Layout("sts", ("guid", "sentence1", "sentence2", "labels"), _as_records({})),
    "klue-nli": Layout("nli", ("guid", "premise", "hypothesis", "label"), _as_records({"label": "gold_label"})),
    "klue-ner": Layout("ner", ("sentence", "tokens", "ner_tags"), _to_ner),
    "klue-re": Layout("re", ("guid", "sentence", "subject_entity", "object_entity", "label"), _as_records({})),
    "klue-dp": Layout("dp", ("sentence", "index", "word_form", "lemma", "pos", "head", "deprel"), _to_dp),
    "klue-mrc": Layout("mrc", (*ABOUT, "guid", "question", "question_type", "is_impossible", "answers"), _to_mrc),
    "wos": Layout("wos", ("guid", "domains", "dialogue"), _to_wos),
}
