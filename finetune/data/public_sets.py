"""Public Korean data sets as questions with short answers; their columns, labels and instructions are a YAML file.

```
published file ─▶ rows ─▶ columns ─▶ input by the template, gold by the labels ─▶ Example
```
Rows are in TSV, CSV, JSON lines, or JSON, also nested. Names of columns are compared without case, as KoBEST writes
Answer and ANSWER. KoBBQ lists "알 수 없음" (unknown) last in every row, so its options are rotated by seed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from corpus.documents.errors import BadInput
from finetune.data.custom_files import Record, kind_of_file, nfc, read_json_lines, read_lines, read_table
from finetune.data.files import read_json
from finetune.examples import Example

COLUMN = re.compile(r"\{([^{}]+)\}")
LETTERS = "ABCDEFGHIJ"
NUMBER = re.compile(r"-?\d{1,9}(?:\.\d{1,20})?")


@dataclass(frozen=True)
class DataSet:
    """An entry of ``public_sets.yaml``, where the fields are described."""

    source: str
    input: str
    gold: Mapping[str, Any]
    metrics: Sequence[str]
    output_length: int
    instruction: str
    columns: Mapping[str, str] = field(default_factory=dict)
    replace: Mapping[str, str] = field(default_factory=dict)
    rows: str = ""
    options: str = ""
    biased: str = ""
    unknown: str = ""

    @property
    def choices(self) -> tuple[str, ...]:
        """The answers of a closed set; () if any number or text is allowed."""
        if self.options:
            return tuple(letter for letter in COLUMN.findall(self.input) if letter in LETTERS)
        values = next(iter(self.gold.values()))
        return tuple(dict.fromkeys(values.values())) if isinstance(values, dict) else ()


@cache
def data_sets() -> Mapping[str, DataSet]:
    """All data sets by the name of their file."""
    entries = yaml.safe_load(Path(__file__).with_name("public_sets.yaml").read_text("utf-8"))
    return {name: DataSet(**entry) for name, entry in entries.items()}


def read_examples(name: str, paths: Sequence[Path], seed: int) -> list[Example]:
    """The rows of published files: inputs ``input`` and, for KoBBQ, ``biased`` and ``unknown``; the gold as demanded.

    ``BadInput`` for an unknown name, a file in another layout, and a gold that is not in the table.
    """
    if name not in data_sets():
        raise BadInput(f"{name}: no such data set; choose from {', '.join(data_sets())}")
    entry, rng = data_sets()[name], Random(seed)
    records = [record for path in paths for record in _read_rows(path, entry)]
    return [_example(f"{name}-{number}", record, name, rng) for number, record in enumerate(records)]


def _read_rows(path: Path, entry: DataSet) -> list[Record]:
    if kind_of_file(path) != ".json":
        return read_table(path, [])
    with suppress(ValueError):  # JSON lines under the name .json, as Korean CommonGen
        if isinstance(json.loads(read_lines(path)[0]), dict) and len(read_lines(path)) > 1:
            return list(read_json_lines(path))
    rows = [nfc(row) for row in _objects(read_json(path), entry.rows)]
    if not rows:
        raise BadInput(f"{path}: no rows in it; expected a JSON list of objects as in {entry.source}")
    return [Record(f"{path}, record {number}", number, row) for number, row in enumerate(rows, start=1)]


def _objects(value: Any, key: str, levels: int = 4) -> Iterator[dict[str, Any]]:
    """The objects of a list, or of the lists in an object; those below ``key`` where an object has it."""
    if isinstance(value, dict) and levels:
        inner = [value[key]] if key in value else [part for part in value.values() if isinstance(part, list)]
        yield from (row for part in inner for row in _objects(part, key, levels - 1))
    for row in value if isinstance(value, list) else ():
        if isinstance(row, dict) and key in row:
            yield from _objects(row, key, levels - 1)
        elif isinstance(row, dict):
            yield row


def _example(guid: str, record: Record, name: str, rng: Random) -> Example:
    entry = data_sets()[name]
    others = {other.casefold(): column.casefold() for other, column in entry.columns.items()}
    cells = {key.strip().casefold(): value for key, value in record.values.items()}
    cells = {others.get(key, key) if others.get(key) not in cells else key: value for key, value in cells.items()}

    def cell(column: str) -> str:
        value = cells.get(column.casefold())
        if value is None:
            shown = ", ".join(list(record.values)[:12])
            raise BadInput(f"{record.where}: no column '{column}'; there are {shown}; expected files of {entry.source}")
        return str(value[0] if isinstance(value, list) and value else value).strip()  # the first of several references

    inputs, letters = dict[str, str](), dict[str, str]()
    if entry.options:
        options = _options(cells.get(entry.options.casefold()) or cell(entry.options), record.where)
        turn = rng.randrange(len(options))
        letters = dict(zip([*options[turn:], *options[:turn]], LETTERS, strict=False))
        cells |= {letter.casefold(): option for option, letter in letters.items()}
        inputs = {"biased": letters.get(cell(entry.biased), ""), "unknown": letters.get(entry.unknown, "")}
    column = next((column for column in entry.gold if column.casefold() in cells), next(iter(entry.gold)))
    gold = _gold(cell(column), letters or entry.gold[column], f"{record.where}: {column}")
    text = COLUMN.sub(lambda match: cell(match[1]), entry.input)
    for sign, other in entry.replace.items():
        text = text.replace(sign, other)
    return Example(guid, gold, inputs | {"input": text})


def _options(value: Any, where: str) -> list[str]:
    """A list of options, in JSON or as Python writes it: ``['손자', '할머니', '알 수 없음']``."""
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        value = ast.literal_eval(value) if isinstance(value, str) else value
    if not isinstance(value, list) or not 1 < len(value) <= len(LETTERS) or len({*map(str, value)}) < len(value):
        raise BadInput(f"{where}: expected a list of different options such as ['가', '나'], found {value!r:.60}")
    return [nfc(str(option).strip()) for option in value]


def _gold(value: str, kind: Any, where: str) -> str:
    """The demanded answer of a gold: of a table by its value, a number in the shortest form with a decimal, or text."""
    if isinstance(kind, dict):
        answers = {str(key).casefold(): answer for key, answer in kind.items()}
        if value.casefold() not in answers:
            raise BadInput(f"{where}: {value!r:.60}; expected one of {', '.join(map(str, kind))}")
        return str(answers[value.casefold()])
    if not value or (kind == "number" and not NUMBER.fullmatch(value)):
        raise BadInput(f"{where}: {value!r:.60}; expected {'a number' if kind == 'number' else 'a text'}")
    return str(float(value)) if kind == "number" else value
