"""Files of custom tasks: rows with named columns (CSV, TSV, JSON lines, a JSON list) and tagged words (CoNLL).

Files may be compressed (``.gz``, ``.zst``). CSV cells are quoted as in Excel and pandas; a TSV has no quotes, as in
NSMC and KorNLI. Every problem is a ``BadInput`` with file and line. Text is normalized to NFC here, once.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

from corpus.documents.atomic_files import parse_json
from corpus.documents.errors import BadInput
from finetune.data.files import read_json, read_text

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
WORDS = (".conll", ".conllu", ".bio", ".iob", ".iob2", ".txt", ".tsv")  # a .tsv is one where it names no column
LONGEST_CELL = 1 << 26  # characters; the csv module's own limit is 131,072, a long passage
SHOWN = 12  # columns named in a message


class Record(NamedTuple):
    """A row by column; ``where`` names its place in messages."""

    where: str
    line: int
    values: Mapping[str, Any]


class Words(NamedTuple):
    """A sentence of a CoNLL file: words, tags (empty in a file without tags), and the name from a ``##`` line above
    it."""

    where: str
    line: int
    name: str
    words: list[str]
    tags: list[str]


def kind_of_file(path: Path) -> str:
    """``.csv`` of ``train.csv.gz``."""
    plain = path.with_suffix("") if path.suffix in (".gz", ".zst") else path
    return plain.suffix.lower()


def nfc(value: Any, levels: int = 8) -> Any:
    """The value with all texts in NFC, also in lists and objects, at most ``levels`` deep."""
    if isinstance(value, str):
        return normalize("NFC", value)
    if isinstance(value, list) and levels:
        return [nfc(item, levels - 1) for item in value]
    if isinstance(value, dict) and levels:
        return {nfc(key): nfc(item, levels - 1) for key, item in value.items()}
    return value


def read_table(path: Path, needed: Sequence[str]) -> list[Record]:
    """The rows of a table; ``BadInput`` if a row lacks one of the columns ``needed``."""
    kind = kind_of_file(path)
    if kind not in TABLES:
        raise BadInput(f"{path}: expected a file named {', '.join(TABLES)}, plain or .gz or .zst; rename or convert it")
    records = list(_read_rows(path, kind))
    if not records:
        raise BadInput(f"{path}: no rows in it")
    for record in records:
        if missing := [name for name in needed if name not in record.values]:
            names = list(record.values)
            shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
            raise BadInput(
                f"{record.where}: no column {' and '.join(repr(name) for name in missing)}; there are {shown}; name "
                "the right ones in finetune.custom"
            )
    return records


def _read_rows(path: Path, kind: str) -> Iterator[Record]:
    if kind in (".csv", ".tsv"):
        yield from _read_cells(path, is_tsv=kind == ".tsv")
    elif kind == ".json":
        rows = read_json(path)
        rows = _flatten(rows.get("data"), path) if isinstance(rows, dict) else rows
        if not isinstance(rows, list):
            raise BadInput(f"{path}: expected a JSON list of objects, or one under 'data'")
        for number, row in enumerate(rows, start=1):
            yield _as_record(f"{path}, record {number}", number, row)
    else:
        yield from read_json_lines(path)


def read_json_lines(path: Path, **hooks: Any) -> Iterator[Record]:
    """The objects of a JSON lines file; ``hooks``: of ``json.loads``."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        where = f"{path}, line {number}"
        try:
            row = parse_json(line, **hooks) if line.strip() else None
        except json.JSONDecodeError as error:
            raise BadInput(f"{where}: broken JSON ({error.msg}); expected one object per line") from None
        except ValueError as error:
            raise BadInput(f"{where}: {error}; fix or remove the line") from None
        if line.strip():
            yield _as_record(where, number, row)


def _flatten(rows: Any, path: Path) -> Any:
    """Questions of SQuAD and KorQuAD as rows with id, question, context, answer and start; other lists unchanged."""
    if not isinstance(rows, list) or not any(isinstance(row, dict) and "paragraphs" in row for row in rows):
        return rows
    try:
        return [
            {
                "id": question["id"], "question": question["question"], "context": paragraph["context"],
                "answer": [answer["text"] for answer in question["answers"]],
                "start": [answer["answer_start"] for answer in question["answers"]],
            }
            for article in rows for paragraph in article["paragraphs"] for question in paragraph["qas"]
        ]  # fmt: skip
    except (KeyError, TypeError) as error:
        raise BadInput(f"{path}: not laid out as SQuAD or KorQuAD are ({type(error).__name__}: {error})") from None


def _as_record(where: str, line: int, row: Any) -> Record:
    if not isinstance(row, dict):
        raise BadInput(f"{where}: expected a JSON object, found {row!r:.60}")
    return Record(where, line, row)


def _read_cells(path: Path, is_tsv: bool) -> Iterator[Record]:
    csv.field_size_limit(LONGEST_CELL)
    text = io.StringIO(read_text(path), newline="")
    rows = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE) if is_tsv else csv.reader(text, strict=True)
    names: list[str] = []
    begins = 1
    try:
        for row in rows:
            where, line, begins = f"{path}, line {begins}", begins, rows.line_num + 1
            if not names:
                names = [name.strip() for name in row]
                if len(set(names)) < len(names):
                    raise BadInput(f"{where}: two columns of one name in {', '.join(names)}; rename one")
            elif row and len(row) != len(names):
                raise BadInput(
                    f"{where}: {len(row)} cells, but the first line names {len(names)} columns; quote a cell that "
                    "holds the separator, or a line break"
                )
            elif row:
                yield Record(where, line, dict(zip(names, row, strict=True)))
    except csv.Error as error:
        raise BadInput(f"{path}, line {rows.line_num}: not readable as CSV ({error}); fix the quotes there") from None


def holds_words(path: Path, columns: Sequence[str]) -> bool:
    """Whether a file has one word and its tag per line, rather than a table with ``columns``."""
    kind = kind_of_file(path)
    if kind != ".tsv":
        return kind in WORDS
    first = read_text(path).partition("\n")[0].removesuffix("\r")
    return not set(first.split("\t")).intersection(columns)


def read_words(path: Path) -> list[Words]:
    """The sentences of a CoNLL file, separated by empty lines: the first column is the word, the last its tag.

    A ``##`` line names the sentence below it, as in KLUE; other comments and ``-DOCSTART-`` are skipped.
    """
    found: list[Words] = []
    name, now = "", Words("", 0, "", [], [])
    for number, line in enumerate([*read_text(path).split("\n"), ""], start=1):
        line = line.removesuffix("\r")
        cells = line.split("\t") if "\t" in line else line.split()
        if line.startswith("##"):
            name = line.lstrip("#").split("\t")[0].strip()
        elif not line.strip():
            found += [now] if now.words else []
            name, now = "" if now.words else name, Words("", 0, "", [], [])
        elif not (line.startswith("# ") and len(cells) != 2) and cells[0] != "-DOCSTART-":
            if not now.words:
                now = Words(f"{path}, line {number}", number, normalize("NFC", name), [], [])
            now.words.append(normalize("NFC", cells[0]))
            now.tags.append(normalize("NFC", cells[-1].strip()) if len(cells) > 1 else "")
    if not found:
        raise BadInput(f"{path}: no word in it; expected a word and its tag a line, sentences parted by empty lines")
    return found
