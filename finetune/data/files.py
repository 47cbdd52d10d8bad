"""Finding and reading official KLUE files: plain or ``.zst``, below one folder or several side by side.

A benchmark folder looks like the KLUE repository (``ynat-v1.1/ynat-v1.1_dev.json``); the folder given may be such a
folder or hold several (``official/``, ``derived/``). Every problem is a ``BadInput`` that names file and record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import parse_json, read_bytes
from finetune.task import Files

MAX_BYTES = 1 << 30  # of one file after decompression; the largest official file has about 50 MB
SUFFIX = ".zst"


class Found(NamedTuple):
    """The files of one task that exist; None where a split has no file."""

    train: Path | None
    dev: Path | None


class Block(NamedTuple):
    """One sentence of a KLUE tsv file: the header after ``## `` and the numbered lines below it."""

    header: str
    lines: list[tuple[int, str]]


def find_files(folder: Path, files: Files) -> Found:
    """Locate the train and the dev file of a task below ``folder``.

    Raises:
        BadInput: the folder is missing, or a file stands in two of its benchmark folders.
    """
    return Found(find_file(folder, files.train), find_file(folder, files.dev))


def find_file(folder: Path, name: str) -> Path | None:
    """The file ``name`` (``ynat-v1.1/ynat-v1.1_dev.json``), plain before ``.zst``; None where there is none.

    Raises:
        BadInput: the folder is missing, or the file stands in two of its benchmark folders.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; expected a folder laid out like the KLUE repository")
    roots = [folder, *sorted(child for child in folder.iterdir() if child.is_dir())]
    candidates = [(root / name, root / (name + SUFFIX)) for root in roots]
    found = [next(path for path in pair if path.is_file()) for pair in candidates if any(p.is_file() for p in pair)]
    if len(found) > 1:
        raise BadInput(f"{folder}: {name} stands here twice ({found[0]} and {found[1]}); keep one of them")
    return found[0] if found else None


def read_text(path: Path) -> str:
    """The whole file, decompressed where its name ends in ``.zst``.

    Raises:
        BadInput: broken compression, more than ``MAX_BYTES``, or not UTF-8.
    """
    try:
        return read_bytes(path, MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 (byte {error.start}); convert the file to UTF-8") from None


def sha256(path: Path) -> str:
    """Digest of the content after decompression, so plain and packed copies agree."""
    return hashlib.sha256(read_bytes(path, MAX_BYTES)).hexdigest()


def read_json(path: Path) -> Any:
    """The parsed file.

    Raises:
        BadInput: not UTF-8 or not JSON; the message gives line and column.
    """
    text = read_text(path)
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{path}: broken JSON at line {error.lineno}, column {error.colno} ({error.msg}); copy the file again"
        ) from None
    except ValueError as error:
        raise BadInput(f"{path}: {error}; copy the file again") from None


def read_records(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The records of a JSON file that is one list, each with ``where``, its file and guid, for messages.

    Raises:
        BadInput: no list, nothing in it, or a record that is no object with a ``guid``.
    """
    records = read_json(path)
    if not isinstance(records, list) or not records:
        raise BadInput(f"{path}: expected one JSON list with at least one record")
    for number, record in enumerate(records):
        if not isinstance(record, dict) or not isinstance(record.get("guid"), str):
            raise BadInput(f"{path}: record {number} is not an object with a text under 'guid'")
    return [(f"{path}, {record['guid']}", record) for record in records]


def text_of(record: Mapping[str, Any], key: str, where: str) -> str:
    """The text under ``key``; ``BadInput`` if there is none."""
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{where}: '{key}' should be a text, found {value!r}")
    return value


def label_of(record: Mapping[str, Any], key: str, labels: Sequence[str], where: str) -> str:
    """The label under ``key``; ``BadInput`` if it is not one of ``labels``."""
    value = record.get(key)
    if value not in labels:
        raise BadInput(f"{where}: '{key}' is {value!r}; labels here are {', '.join(labels)}")
    return str(value)


def read_blocks(path: Path) -> list[Block]:
    """The sentences of a KLUE tsv file, which an empty line or a lone tab parts.

    A block without a ``## `` line of its own (the description at the top of the file) is not a sentence; of several
    such lines the last is the sentence's.

    Raises:
        BadInput: not UTF-8, no sentence at all, or lines without a header.
    """
    blocks: list[Block] = []
    header, lines = "", list[tuple[int, str]]()
    for number, line in enumerate([*read_text(path).split("\n"), ""], start=1):
        line = line.removesuffix("\r")
        if line.startswith("##"):
            if lines:
                raise BadInput(f"{path}, line {number}: a new sentence begins without an empty line before it")
            header = line.lstrip("#").strip()
        elif line not in ("", "\t"):
            lines.append((number, line))
        elif lines:
            if not header:
                raise BadInput(f"{path}, line {lines[0][0]}: a sentence without its '## guid' line")
            blocks.append(Block(header, lines))
            header, lines = "", []
    if not blocks:
        raise BadInput(f"{path}: no sentence here; expected lines of tab-separated columns below '## guid' lines")
    return blocks
