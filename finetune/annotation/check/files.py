"""Find the files of a benchmark and read them: official KLUE files, KoBEST, KorNLI, KorSTS, SQuAD, custom tasks, CoNLL.

The content decides how a file is read; its name gives the split and, without it, the benchmark (``sts-dev.tsv``). Files
of one benchmark are compared with one another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.annotation.check.items import Dataset, File, Item
from finetune.annotation.check.records import RECORDS, find_columns, read_dialogue, read_question, read_record, table_item
from finetune.annotation.check.tagged import read_conll, read_tagged, read_tree
from finetune.data.custom_files import TABLES, WORDS, Record, holds_words, kind_of_file, read_lines, read_table
from finetune.data.files import read_blocks, read_json
from finetune.task_names import TASK_NAMES
from finetune.tasks.mrc.reader import questions_of
from finetune.tasks.wos.ontology import find_ontology, read_ontology

SPLIT = re.compile(r"(?:^|[._-])(train|dev|valid|validation|test)(?=[._-]|$)", re.IGNORECASE)
ORDER = ("train", "dev", "valid", "validation", "test")
KINDS = {
    "ynat": "label", "klue-sts": "similarity", "klue-nli": "pair", "klue-ner": "tagging", "klue-re": "relation",
    "klue-dp": "tree", "klue-mrc": "span", "wos": "state",
}  # fmt: skip
NO_DATA = re.compile(
    r"(?:ontology|relation_list|source|manifest|scores|settings|excluded|statistics|items|votes|gold|dropped|adjudicate|"
    r"predictions|.*sample_10|README.*|requirements)\.\w+"
)  # in folders: files about a benchmark, and the steps of `malmoi benchmark` before its splits
WORD_NAMES = ("tokens", "words", "text", "sentence", "label", "title", "document", "sentence1", "question", "guid")


def read_datasets(paths: Sequence[Path]) -> tuple[list[Dataset], dict[str, str]]:
    """The benchmarks in files and folders, and the files of folders that could not be read, with the reason.

    BadInput: a named file cannot be read, or a folder has no file of a benchmark.
    """
    groups, skipped = dict[str, list[File]](), dict[str, str]()
    for path in paths:
        found = _files_in(path) if path.is_dir() else [path]
        reasons = dict[str, str]()
        for file in found:
            try:
                name, read = read_file(file)
            except BadInput as error:
                if file in paths:
                    raise
                reasons[str(file)] = str(error)
                continue
            groups.setdefault(name, []).append(read)
        if len(reasons) == len(found):
            first = next(iter(reasons.values()), "expected .json, .jsonl, .csv, .tsv or CoNLL files, plain, .gz or .zst")
            raise BadInput(f"{path}: no file of a benchmark here ({first})")
        skipped |= reasons
    return [Dataset(name, _in_order(files)) for name, files in groups.items()], skipped


def _files_in(folder: Path) -> list[Path]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and kind_of_file(path) in {*TABLES, *WORDS}]
    hidden = [path for path in files if any(part.startswith(".") for part in path.relative_to(folder).parts)]
    return [path for path in files if path not in hidden and not NO_DATA.fullmatch(_plain(path))]


def _plain(path: Path) -> str:
    return re.sub(r"\.(gz|zst)$", "", path.name, flags=re.IGNORECASE)


def _in_order(files: list[File]) -> list[File]:
    """Train first. Splits of one name get numbers: their files are compared, too."""
    ordered = sorted(files, key=lambda file: ORDER.index(file.split) if file.split in ORDER else len(ORDER))
    seen = dict[str, int]()
    for place, file in enumerate(ordered):
        seen[file.split] = seen.get(file.split, 0) + 1
        if seen[file.split] > 1:
            name = f"{file.split} {seen[file.split]}"
            items = [Item(i.guid, name, i.texts, i.gold, i.exact, i.problems, i.cells, i.about) for i in file.items]
            ordered[place] = file._replace(split=name, items=items)
    return ordered


def read_file(path: Path) -> tuple[str, File]:
    """Name of the benchmark, and the file; ``BadInput`` if it cannot be read."""
    plain = _plain(path)
    task = next((name for name in TASK_NAMES if plain.startswith(f"{name}-v")), "")
    match = SPLIT.search(Path(plain).stem)
    split = match[1].lower() if match else Path(plain).stem
    file = _read(path, task, split)
    if not file.items:
        raise BadInput(f"{path}: no items in it")
    stem = SPLIT.sub("", Path(plain).stem).strip("._-")
    return file.task or (stem if match and stem else path.absolute().parent.name), file


def _read(path: Path, task: str, split: str) -> File:
    kind = kind_of_file(path)
    if kind == ".json":
        return _read_json(path, task, split)
    if kind in (".jsonl", ".ndjson", ".csv"):
        return _as_table(path, split, read_table(path, []))
    first = next((line for line in read_lines(path) if line.strip()), "")
    if first.startswith("## "):
        blocks = read_blocks(path)
        if len(blocks[0].lines[0][1].split("\t")) >= 4:
            return File(path, split, "tree", "klue-dp", [read_tree(block, split) for block in blocks])
        return File(path, split, "tagging", "klue-ner", [read_tagged(block, split) for block in blocks])
    if kind == ".tsv" and task and first.count("\t") == 1:  # guid and text, unlabelled
        rows = [line.split("\t", 1) for line in read_lines(path) if line.count("\t") == 1]
        items = [Item(guid, split, {_text_name(task): text}) for guid, text in rows if guid != "guid"]
        return File(path, split, KINDS[task], task, items)
    if holds_words(path, [*WORD_NAMES, *(name.upper() for name in WORD_NAMES), *(n.title() for n in WORD_NAMES)]):
        return File(path, split, "tagging", "", read_conll(path, split), columns={"kind": "tagging"})
    return _as_table(path, split, read_table(path, []))


def _text_name(task: str) -> str:
    return RECORDS[task][0][0] if task in RECORDS else "text"


def _as_table(path: Path, split: str, records: list[Record]) -> File:
    columns = find_columns(records, path)
    items = [table_item(columns, record, split, record.line) for record in records]
    fields = frozenset(key for record in records for key in record.values)
    return File(path, split, columns.kind, "", items, fields, columns.as_custom())


def _read_json(path: Path, task: str, split: str) -> File:
    content = read_json(path)
    if isinstance(content, Mapping) and isinstance(content.get("data"), list):
        content = content["data"] if _has(content["data"], "question") else content
    if isinstance(content, Mapping):
        questions = questions_of(content, path)
        return File(path, split, "span", "klue-mrc", [read_question(question, text, split) for text, question in questions])
    records: list[Any] = content if isinstance(content, list) else []
    if not records or not all(isinstance(record, Mapping) for record in records):
        raise BadInput(f"{path}: expected a list of objects, or data[].paragraphs[].qas[]")
    if "dialogue" in records[0]:
        place = find_ontology(path)
        ontology = read_ontology(place) if place else {}
        return File(path, split, "state", "wos", [read_dialogue(record, ontology, split) for record in records])
    task = task or ("klue-re" if "subject_entity" in records[0] else "")
    if task in RECORDS:
        fields = frozenset(key for record in records for key in record)
        return File(path, split, KINDS[task], task, [read_record(task, record, split) for record in records], fields)
    return _as_table(path, split, [Record(f"{path}, record {n}", n, record) for n, record in enumerate(records, 1)])


def _has(rows: Sequence[Any], key: str) -> bool:
    return bool(rows) and isinstance(rows[0], Mapping) and key in rows[0]
