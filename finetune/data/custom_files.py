"""Files of custom tasks: rows with named columns (CSV, TSV, JSON lines, a JSON list) and tagged words (CoNLL).

Files may be compressed (``.gz``, ``.zst``). CSV cells are quoted as in Excel and pandas, and separated by commas, or by
semicolons or tabs if the first line has no comma; a TSV has no quotes, as in NSMC and KorNLI. Every problem is a
``BadInput`` with file and line. Text is normalized to NFC here, once.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import yaml

from corpus.documents.atomic_files import parse_json
from corpus.documents.errors import BadInput
from finetune.custom_config import CustomColumns
from finetune.data.files import read_json, read_text

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
WORDS = (".conll", ".conllu", ".bio", ".iob", ".iob2", ".txt", ".tsv")  # a .tsv is one where it names no column
LONGEST_CELL = 1 << 26  # characters; the csv module's own limit is 131,072, a long passage
SHOWN = 12  # columns named in a message
TAG = re.compile(r"O|[BIESUL]-\S+")
NO_WORD = "no word in it; expected a word and its tag on each line, and an empty line between sentences"
PART = re.compile(r"\d{1,6}[-.]\d{1,6}")  # number of a range of words or of an empty word in CoNLL-U

_NAMES = yaml.safe_load(Path(__file__).with_name("columns.yaml").read_text("utf-8"))
GUIDS, GOLDS, PAIRS = _NAMES["guids"], _NAMES["golds"], _NAMES["pairs"]
TEXTS = [*_NAMES["texts"], *(name for pair in PAIRS for name in pair)]
COLUMNS = (*GUIDS, *GOLDS, *TEXTS)  # names that tell what a column has, in lower case
PASSAGES = ("context", "passage", "text")
CHOICE = re.compile(r"(?:choice|option|ending|answer)?[ _]?\d", re.IGNORECASE)
HANGUL, DECIMAL = re.compile("[가-힣]"), re.compile(r"-?\d{1,3}(?:\.\d{1,20})?")
UNIQUE_SHARE = 0.9  # of different values in a column of ids; those of KorSTS count within their source
MAX_CLASSES = 10  # more different numbers than this are no classes
MAX_GUESSED = 100  # a column with more different values is not guessed to be the label


class Record(NamedTuple):
    """A row by column; ``where`` names its place in messages."""

    where: str
    line: int
    values: Mapping[str, Any]


class Words(NamedTuple):
    """A sentence of a CoNLL file: words, tags (empty in a file without tags), and the name from a ``##`` line above."""

    where: str
    line: int
    name: str
    words: list[str]
    tags: list[str]


def kind_of_file(path: Path) -> str:
    """``.csv`` of ``train.csv.gz``."""
    plain = path.with_suffix("") if path.suffix.lower() in (".gz", ".zst") else path
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


def squeeze(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def read_table(path: Path, needed: Sequence[str], advice: str = "") -> list[Record]:
    """The rows of a table; ``BadInput`` with ``advice`` if a row lacks one of the columns ``needed``."""
    kind = kind_of_file(path)
    if kind not in TABLES:
        raise BadInput(f"{path}: expected a file named {', '.join(TABLES)}, plain or .gz or .zst; rename or convert it")
    records = list(_read_rows(path, kind))
    if not records:
        raise BadInput(f"{path}: no rows in it")
    for record in records:
        if missing := [name for name in needed if name not in record.values]:
            raise BadInput(f"{record.where}: {missing_columns(record, missing, advice)}")
    return records


def text_in(value: Any) -> str:
    """A value as text, "" for none."""
    return "" if value is None else value if isinstance(value, str) else str(value)


def find_columns(records: Sequence[Record], path: Path, *, is_guess: bool = False) -> CustomColumns:
    """Kind and columns of a table, by the names of columns; texts without a known name are those with Hangul.

    Args:
        is_guess: without a known name, the column with the fewest values is the label, that of the longest texts the
            text; two texts are a pair only if their names say so.

    Raises:
        BadInput: no column has texts, or none has labels in a guess.
    """
    columns = list(dict.fromkeys(name for record in records for name in record.values))
    cells = {name: [text_in(record.values.get(name)) for record in records] for name in columns}
    names, sizes = {name.lower(): name for name in columns}, {name: len(set(cells[name])) for name in columns}
    guid, gold = (next((names[key] for key in keys if key in names), None) for keys in (GUIDS, GOLDS))
    guid = guid if guid and sizes[guid] > UNIQUE_SHARE * len(records) else None
    if is_guess and gold is None:
        few = [name for name in columns if 2 <= sizes[name] <= min(MAX_GUESSED, len(records) // 2)]
        gold = min((name for name in few if name.lower() not in TEXTS), key=sizes.__getitem__, default=None)
    choices = tuple(name for name in columns if CHOICE.fullmatch(name))
    rest = [name for name in columns if name not in (guid, gold, *choices)]
    texts = ["marked"] if "marked" in rest else [name for name in rest if name.lower() in TEXTS]
    texts = texts or [name for name in rest if 2 * sum(map(bool, map(HANGUL.search, cells[name]))) >= len(records)]
    texts = texts or (sorted(rest, key=lambda name: -sum(map(len, cells[name])))[:1] if is_guess else [])
    if not texts or (is_guess and gold is None):
        missing = "labels; call it label" if texts else "texts; call it text, or two sentence1 and sentence2"
        raise BadInput(f"{path}: among {', '.join(columns)}, no column was recognized as that of the {missing}")
    values = set(cells[gold]) if gold else set()
    if "tokens" in names:
        return CustomColumns(kind="tagging", tokens=names["tokens"], tags=gold, guid=guid)
    if gold and gold.lower() == "spans":
        return CustomColumns(kind="tagging", text=texts[0], spans=gold, guid=guid)
    passage, is_open = next((name for name in texts if name.lower() in PASSAGES), None), len(values) > MAX_CLASSES
    if gold and gold.lower().startswith("answer") and passage and "question" in names and (is_open or is_guess):
        return CustomColumns(kind="span", question=names["question"], context=passage, answer=gold, guid=guid)
    pair = next(((names[one], names[two]) for one, two in PAIRS if {one, two} <= names.keys()), None)
    if pair is None and len(texts) > 1 and not is_guess:
        pair = texts[-2], texts[-1]
    text = pair or min(texts, key=lambda name: TEXTS.index(name.lower()) if name.lower() in TEXTS else 0)
    if len(choices) > 1:
        return CustomColumns(kind="choice", text=text, choices=choices, label=gold, guid=guid)
    if pair is None:
        return CustomColumns(kind="label", text=text, label=gold, guid=guid)
    are_numbers = 2 * sum(map(bool, map(DECIMAL.fullmatch, values))) > len(values)
    is_score = are_numbers and (is_open or any("." in value for value in values))
    return CustomColumns(kind="similarity" if is_score else "pair", text=pair, label=gold, guid=guid)


def missing_columns(record: Record, missing: Sequence[str], advice: str = "") -> str:
    """Which columns are missing, which there are, and what to do."""
    names = list(record.values)
    shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    advice = advice or "name the right ones in finetune.custom"
    return f"no column {' and '.join(repr(name) for name in missing)}; there are {shown}; {advice}"


def unlabelled(path: Path, definition: Mapping[str, Any] | None) -> BadInput:
    """The error for a file without labels; ``definition``: of a custom task, None for a KLUE task."""
    problem = "its examples have no labels; give the labelled file under this name"
    if definition is not None:
        own = {key: value for key, value in definition.items() if key in CustomColumns.model_fields}
        columns = CustomColumns.model_validate(own)
        if columns.kind != "tagging" or columns.has_spans or not holds_words(path, [columns.tokens or "tokens"]):
            problem = missing_columns(read_table(path, [])[0], [columns.gold_field])
    return BadInput(f"{path}: {problem}")


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
    for number, line in enumerate(read_lines(path), start=1):
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
    return Record(where, line, {normalize("NFC", name): value for name, value in row.items()})


def read_lines(path: Path) -> list[str]:
    """The lines of a text file with the line ends of any system."""
    return read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _read_cells(path: Path, is_tsv: bool) -> Iterator[Record]:
    csv.field_size_limit(LONGEST_CELL)
    text = io.StringIO(read_text(path), newline="")
    first = text.readline()
    separator = next((mark for mark in ",;\t" if mark in first), ",")
    text.seek(0)
    rows = (
        csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
        if is_tsv
        else csv.reader(text, strict=True, delimiter=separator)
    )
    names: list[str] = []
    begins = 1
    try:
        for row in rows:
            where, line, begins = f"{path}, line {begins}", begins, rows.line_num + 1
            if not any(map(str.strip, row)):
                continue
            if not names:
                names = [normalize("NFC", name.strip()) for name in row]
                if len(set(names)) < len(names):
                    raise BadInput(f"{where}: two columns of one name in {', '.join(names)}; rename one")
            elif len(row) != len(names):
                raise BadInput(
                    f"{where}: {len(row)} cells, but the first line names {len(names)} columns; quote a cell that "
                    "holds the separator, or a line break"
                )
            else:
                yield Record(where, line, dict(zip(names, row, strict=True)))
    except csv.Error as error:
        raise BadInput(f"{path}, line {rows.line_num}: not readable as CSV ({error}); fix the quotes there") from None


def holds_words(path: Path, columns: Sequence[str]) -> bool:
    """Whether a file has one word and its tag per line, rather than a table with ``columns``."""
    kind = kind_of_file(path)
    if kind != ".tsv":
        return kind in WORDS
    return not set(read_lines(path)[0].split("\t")).intersection(columns)


class Layout(NamedTuple):
    """Columns of a CoNLL file: how many, which has the word and which the tag (None without tags)."""

    width: int
    word: int
    tag: int | None

    def is_row(self, cells: Sequence[str]) -> bool:
        """Whether a line that starts with # is a word, not a comment."""
        return not self.word and len(cells) == self.width and (self.tag is None or bool(TAG.fullmatch(cells[self.tag])))


def find_layout(path: Path, sentences: Sequence[Sequence[Sequence[str]]]) -> Layout:
    """The layout of sentences of rows; ``BadInput`` if no column has tags.

    The word is in the first column, or in the second if the first one counts the words of each sentence. The tag is in
    the last column in which at least half of the cells are tags.
    """
    rows = [cells for sentence in sentences for cells in sentence]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    columns = list(zip(*(cells for cells in rows if len(cells) == width), strict=True))
    tagged = [n for n, cells in enumerate(columns) if n and 2 * sum(map(bool, map(TAG.fullmatch, cells))) >= len(cells)]
    firsts = [[cells[0] for cells in sentence if not PART.fullmatch(cells[0])] for sentence in sentences]
    counts = all(cells == [str(n + (cells[0] == "1")) for n in range(len(cells))] for cells in firsts)
    word = int(counts and width > 1 and (width > 2 or not tagged))
    tags, others = [n for n in tagged if n > word], width - word - 1
    if not tags and others > 1:
        raise BadInput(f"{path}: none of the {others} columns after the word has tags such as B-PS and O; add them")
    return Layout(width, word, tags[-1] if tags else width - 1 if others else None)


def read_words(path: Path) -> list[Words]:
    """The sentences of a CoNLL file, separated by empty lines, in the columns of ``find_layout``.

    A ``##`` line names the sentence below it, as in KLUE; other comments and ``-DOCSTART-`` are skipped. ``BadInput``
    for a line with more or fewer columns than most.
    """
    lines = [(line, line.split("\t") if "\t" in line else line.split()) for line in [*read_lines(path), ""]]
    blocks = [list(block) for has_text, block in groupby(lines, lambda pair: bool(pair[0].strip())) if has_text]
    parts = [[cells for line, cells in block if not line.startswith(("#", "-DOCSTART-"))] for block in blocks]
    sentences = [part for part in parts if part] or [[cells for _, cells in block] for block in blocks]
    if not sentences:
        raise BadInput(f"{path}: {NO_WORD}")
    layout = find_layout(path, sentences)
    all_words: list[Words] = []
    name, now = "", Words("", 0, "", [], [])
    for number, (line, cells) in enumerate(lines, start=1):
        if not line.strip():
            all_words += [now] if now.words else []
            name, now = "" if now.words else name, Words("", 0, "", [], [])
        elif line.startswith("#") and not layout.is_row(cells):
            name = line.lstrip("#").split("\t")[0].strip() if line.startswith("##") else name
        elif cells[0] != "-DOCSTART-" and not (layout.word and PART.fullmatch(cells[0])):
            if len(cells) != layout.width:
                raise BadInput(f"{path}, line {number}: {len(cells)} columns, but most lines have {layout.width}")
            if not now.words:
                now = Words(f"{path}, line {number}", number, normalize("NFC", name), [], [])
            now.words.append(normalize("NFC", cells[layout.word]))
            now.tags.append("" if layout.tag is None else normalize("NFC", cells[layout.tag].strip()))
    if not all_words:
        raise BadInput(f"{path}: {NO_WORD}")
    return all_words
