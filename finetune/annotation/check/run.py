"""``malmoi benchmark check``: all checks of any benchmark, as one JSON value for the table and the page.

Official KLUE files, KoBEST, KorNLI, KorSTS, SQuAD, custom tasks and CoNLL files are read; the content decides how, the
name gives the split and, without it, the benchmark (``sts-dev.tsv``). Nothing is written, and no figure depends on the
process.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.annotation.check import records
from finetune.annotation.check.cells import check_ids, check_texts
from finetune.annotation.check.copies import check_copies, check_sets, check_shared_texts
from finetune.annotation.check.items import CHECKS, Dataset, File, Finding
from finetune.annotation.check.models import check_label_errors, check_one_side, score_baselines
from finetune.annotation.check.tagged import read_conll, read_tagged, read_tree
from finetune.custom_config import CustomColumns
from finetune.data import custom_files
from finetune.data.files import read_blocks, read_json
from finetune.task_names import TASK_NAMES
from finetune.tasks.mrc.reader import questions_of

SPLIT = re.compile(r"(?:^|[._-])(train|dev|valid|validation|test)(?=[._-]|$)", re.IGNORECASE)
ORDER = ("train", "dev", "valid", "validation", "test")
NO_DATA = re.compile(
    r"(?:ontology|relation_list|source|manifest|scores|settings|statistics|predictions|(?>.*sample_10(?=\.)))\.[\w.]+"
    "|README.*"
)  # files about a benchmark


def read_datasets(paths: Sequence[Path]) -> tuple[list[Dataset], dict[str, str]]:
    """The benchmarks in files and folders, and the files of folders that could not be read, with the reason.

    BadInput: a named file cannot be read, or a folder has no file of a benchmark.
    """
    groups, skipped = dict[tuple[str, str, str], list[File]](), dict[str, str]()
    for path in paths:
        before = sum(map(len, groups.values()))
        for file in _files_in(path) if path.is_dir() else [path]:
            try:
                name, read = read_file(file)
                groups.setdefault((name, read.kind, read.task or str(file.parent)), []).append(read)
            except BadInput as error:
                if file == path:
                    raise
                skipped[str(file)] = str(error)
        if sum(map(len, groups.values())) == before:
            first = next(iter(skipped.values()), "expected .json, .jsonl, .csv, .tsv or CoNLL files")
            raise BadInput(f"{path}: no file of a benchmark here ({first})")
    return [Dataset(name, _in_order(files)) for (name, *_), files in groups.items()], skipped


def _files_in(folder: Path) -> list[Path]:
    if (folder / "benchmark.yaml").is_file():  # made by `malmoi benchmark`; the other files belong to its steps
        folder = folder / "data"
    paths = [path for path in sorted(folder.rglob("*")) if "/." not in f"/{path.relative_to(folder)}"]
    data = [
        path
        for path in paths
        if custom_files.kind_of_file(path) in {*custom_files.TABLES, *custom_files.WORDS}
        and not NO_DATA.fullmatch(path.name)
    ]
    return [path for path in data if path.is_file()]


def _in_order(files: list[File]) -> list[File]:
    """Train first. Splits of one name get numbers, so that their files are compared, too."""
    ordered = sorted(files, key=lambda file: ORDER.index(file.split) if file.split in ORDER else len(ORDER))
    seen = Counter[str]()
    for place, file in enumerate(ordered):
        seen[file.split] += 1
        if seen[file.split] > 1:
            name = f"{file.split} {seen[file.split]}"
            ordered[place] = file._replace(split=name, items=[item._replace(split=name) for item in file.items])
    return ordered


def read_file(path: Path) -> tuple[str, File]:
    """Name of the benchmark, and the file; ``BadInput`` if it cannot be read."""
    stem = Path(re.sub(r"\.(?:gz|zst)$", "", path.name, flags=re.IGNORECASE)).stem
    task = next((name for name in TASK_NAMES if stem.startswith(f"{name}-v")), "")
    match = SPLIT.search(stem)
    split = match[1].lower() if match else stem
    file = (
        _read_json(path, task, split) if custom_files.kind_of_file(path) == ".json" else _read_lines(path, task, split)
    )
    if not file.items:
        raise BadInput(f"{path}: no items in it")
    rest = SPLIT.sub("", stem).strip("._-")
    folder = path.absolute().parent
    return file.task or (rest if match and rest else folder.parent.name if folder.name == "data" else folder.name), file


def _read_lines(path: Path, task: str, split: str) -> File:
    kind = custom_files.kind_of_file(path)
    first = next((line for line in custom_files.read_lines(path) if line.strip()), "")
    if kind not in (".jsonl", ".ndjson", ".csv") and first.startswith("## "):
        blocks = read_blocks(path)
        if blocks[0].lines[0][1].count("\t") >= 3:
            return File(path, split, "tree", "klue-dp", [read_tree(block, split) for block in blocks])
        return File(path, split, "tagging", "klue-ner", [read_tagged(block, split) for block in blocks])
    if custom_files.holds_words(path, [cell for cell in first.split("\t") if cell.lower() in custom_files.COLUMNS]):
        return File(path, split, "tagging", "", read_conll(path, split), columns=CustomColumns(kind="tagging"))
    return _as_table(path, split, custom_files.read_table(path, []))


def _read_json(path: Path, task: str, split: str) -> File:
    content = read_json(path)
    rows = content.get("data") if isinstance(content, Mapping) else content
    if isinstance(content, Mapping) and not any(
        isinstance(row, Mapping) and "question" in row for row in records.list_in(rows)[:1]
    ):
        pairs = [pair for pair in questions_of(content, path) if isinstance(pair[1], Mapping)]
        items = [records.read_question(question, context, split) for context, question in pairs]
        if any("guid" in question for _, question in pairs):
            return File(path, split, "span", "klue-mrc", items)
        return File(path, split, "span", "", items, columns=CustomColumns(kind="span", start="start", guid="id"))
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise BadInput(f"{path}: expected a list of objects, or data[].paragraphs[].qas[]")
    if "dialogue" in rows[0]:
        return File(path, split, "state", "wos", [records.read_dialogue(row, split) for row in rows])
    task = task or ("klue-re" if "subject_entity" in rows[0] else "")
    if task in records.RECORDS:
        items = [records.read_record(row, task, split) for row in rows]
        return File(path, split, records.RECORDS[task].kind, task, items, frozenset(chain.from_iterable(rows)))
    return _as_table(path, split, [custom_files.Record(f"{path}, record {n}", n, row) for n, row in enumerate(rows, 1)])


def _as_table(path: Path, split: str, rows: list[custom_files.Record]) -> File:
    columns = custom_files.find_columns(rows, path)
    items = [records.read_row(columns, record, split) for record in rows]
    return File(path, split, columns.kind, "", items, frozenset(chain.from_iterable(r.values for r in rows)), columns)


FindLeaks = Callable[[Sequence[str]], Iterable[tuple[int, str, float]]]  # texts to number, document, share of the text
MAX_LABELS = 30  # of which counts are shown


def check(paths: Sequence[Path], find_leaks: FindLeaks | None = None) -> dict[str, Any]:
    """Check the benchmarks in files and folders.

    Args:
        find_leaks: finds texts in a corpus; None: leaks are not searched.

    Returns:
        ``benchmarks``, each with name, kind, ``splits``, ``counts`` of findings by check, ``facts``, ``baselines``,
        ``one_side`` and all ``findings``; ``skipped``: files of folders that could not be read, with the reason.

    Raises:
        BadInput: a named file cannot be read, or a folder has no file of a benchmark.
    """
    datasets, skipped = read_datasets(paths)
    return {"benchmarks": [_check_dataset(dataset, find_leaks) for dataset in datasets], "skipped": skipped}


def _check_dataset(dataset: Dataset, find_leaks: FindLeaks | None) -> dict[str, Any]:
    sets, larger = check_sets(dataset)
    figures, refused = score_baselines(dataset)
    one_side, leads = check_one_side(dataset)
    note, label_errors = check_label_errors(dataset)
    leaks = _check_leaks(dataset, find_leaks) if find_leaks else ()
    findings = [*check_items(dataset), *larger, *_compare_splits(dataset), *refused, *leads, *label_errors, *leaks]
    counts, items = Counter(f.check for f in findings), Counter(f.check for f in {f[:3]: f for f in findings}.values())
    authors = [(file.split, [item for item in file.items if item.author]) for file in dataset.files]
    same = [(split, sum(item.author == item.gold for item in items), len(items)) for split, items in authors if items]
    return {
        "name": dataset.name, "kind": dataset.kind,
        "splits": [_describe(file) for file in dataset.files],
        "counts": [
            {"check": name, "level": level, "findings": counts[name], "items": items[name], "what": what}
            for name, (level, what) in CHECKS.items() if counts[name]
        ],
        "facts": [*sets, *(f"{split}: the author's label in {n:,} of {total:,}" for split, n, total in same), note],
        "baselines": figures, "one_side": one_side,
        "findings": [{"level": CHECKS[name][0], **f._asdict()} for name in CHECKS for f in findings if f.check == name],
    }  # fmt: skip


def check_items(dataset: Dataset) -> Iterator[Finding]:
    """What is wrong with items, alone and compared with one another."""
    for file in dataset.files:
        yield from check_ids(file.items)
        yield from (Finding(name, item.split, item.guid, text) for item in file.items for name, text in item.problems)
        yield from check_texts(file.items)
    yield from check_copies(dataset)
    yield from check_shared_texts(dataset)


def _describe(file: File) -> dict[str, Any]:
    labels = Counter(item.gold for item in file.items if isinstance(item.gold, str))
    shown = dict(sorted(labels.items())) if len(labels) <= MAX_LABELS else {}
    labelled = sum(item.gold is not None for item in file.items)
    facts = {"split": file.split, "file": file.path.name, "items": len(file.items)}
    return {**facts, "labelled": labelled, "labels": shown}


def _compare_splits(dataset: Dataset) -> Iterator[Finding]:
    first = dataset.files[0]
    for file in dataset.files:
        labels = sorted({item.gold for item in file.items if isinstance(item.gold, str)})
        spellings = Counter(label.lower() for label in labels)
        if alike := [label for label in labels if spellings[label.lower()] > 1]:
            yield Finding("spelling", file.split, "", ", ".join(alike[:MAX_LABELS]))
        if first.fields and file.fields and first.fields != file.fields:
            sides = (first.split, first.fields - file.fields), (file.split, file.fields - first.fields)
            message = "; ".join(f"only {split} has {', '.join(sorted(names))}" for split, names in sides if names)
            yield Finding("fields", file.split, "", message)


def _check_leaks(dataset: Dataset, find_leaks: FindLeaks) -> Iterator[Finding]:
    texts = [(item, text) for file in dataset.files for item in file.items for text in item.texts.values()]
    findings = dict[tuple[str, str], Finding]()
    for number, document, share in find_leaks([text for _, text in texts]):
        (item, text), name = texts[number], f"{100 * share:.0f} % of a sentence is in document {document}"
        findings.setdefault((item.split, item.guid), Finding("leak", item.split, item.guid, f"{name}: {text[:120]}"))
    yield from findings.values()
