"""Official KLUE files: finding, reading, writing and identifying them.

A benchmark folder has the layout of the KLUE repository (``ynat-v1.1/ynat-v1.1_dev.json``, plain or ``.zst``); the
given folder is one, or holds several (``official/``, ``derived/``). Every problem is a ``BadInput`` that names file and
record. The SHA-256 decides whether a file is "official v1.1"; an edited copy is "unknown", but never refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from unicodedata import is_normalized

from pydantic import TypeAdapter, ValidationError

from corpus.documents.atomic_files import atomic_file, atomic_write, parse_json, read_bytes
from corpus.documents.encoding import UTF8, detect_encoding
from corpus.documents.errors import BadInput, first_line
from corpus.documents.section import problem_text, warn_once
from finetune.task_names import TASK_NAMES, klue_facts

Model = TypeVar("Model")
ADAPTERS: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
CUSTOM_HINT = "give the KLUE file, or describe your own data in finetune.custom (docs/custom-task.md)"
MAX_BYTES = 1 << 30  # of one file after decompression; the largest official file has about 50 MB
SAMPLE_BYTES = 1 << 20  # from which the encoding is detected
SUFFIX = ".zst"
OFFICIAL, UNKNOWN = "official v1.1", "unknown"
SOURCE_NAME = "source.json"  # in a benchmark folder that was not copied file by file: {"source": …}

SHA256 = {name: digest for task in TASK_NAMES for name, digest in klue_facts(task)["files"].items()}  # official v1.1
_NAME_OF = {digest: name for name, digest in SHA256.items()}


class Block(NamedTuple):
    """One sentence of a KLUE tsv file: the header after ``## `` and the numbered lines below it."""

    header: str
    lines: list[tuple[int, str]]

    @property
    def guid(self) -> str:
        return self.header.split("\t")[0].strip()


@contextmanager
def in_one_sentence(name: str, problem: str, advice: str = "") -> Iterator[None]:
    """``BadInput`` with the first line of any error that a library raises for a file that it cannot read."""
    try:
        yield
    except Exception as error:  # the libraries raise what they like
        raise BadInput(f"{name}: {problem} ({first_line(error)}){advice}") from error


def find_file(folder: Path, name: str) -> Path | None:
    """The file ``name`` (``ynat-v1.1/ynat-v1.1_dev.json``), plain before ``.zst``; None if there is none. ``BadInput``
    if two benchmark folders have it, or the folder does not exist."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; expected a folder laid out like the KLUE repository")
    roots = [folder, *sorted(child for child in folder.iterdir() if child.is_dir())]
    pairs = [(root / name, root / (name + SUFFIX)) for root in roots]
    paths = [path for pair in pairs if (path := next(filter(Path.is_file, pair), None))]
    if len(paths) > 1:
        raise BadInput(f"{folder}: two files named {name} ({paths[0]} and {paths[1]}); keep one of them")
    return paths[0] if paths else None


def remark_on_nfd(path: Path, labels: Iterable[Any]) -> None:
    """Report labels that are not in NFC (Unicode's composed form), as macOS may write them."""
    if count := sum(isinstance(label, str) and not is_normalized("NFC", label) for label in labels):
        warn_once(f"{path}: {count:,} labels are not in NFC (Unicode's composed form); they are read in NFC")


def read_text(path: Path) -> str:
    """The decompressed content without byte order mark, in UTF-8, CP949 or UTF-16; ``BadInput`` for broken compression,
    too many bytes, or another encoding."""
    if not path.is_file():
        raise BadInput(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}; check the path")
    content = read_bytes(path, MAX_BYTES)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"{path}: not UTF-8 (byte {error.start}); save it as UTF-8 text (in Excel: CSV UTF-8)"
    with suppress(UnicodeDecodeError):
        if (encoding := detect_encoding(content[:SAMPLE_BYTES])) != UTF8:
            text = content.decode(encoding)
            warn_once(f"{path}: read as {encoding.upper()}")
            return text.removeprefix("\ufeff")
    raise BadInput(problem)


def sha256(path: Path) -> str:
    """Digest of the decompressed content, so plain and compressed copies are equal."""
    return hashlib.sha256(read_bytes(path, MAX_BYTES)).hexdigest()


def identify(path: Path, is_custom: bool) -> dict[str, str]:
    """``file``, ``sha256`` and ``version`` of a file, as recorded in results; ``own`` is a custom task's version."""
    digest = sha256(path)
    return {"file": path.name, "sha256": digest, "version": "own" if is_custom else version_of(path, digest)}


def version_of(path: Path, digest: str) -> str:
    """``official v1.1``, the source in ``source.json`` two folders up (``Hub klue/klue``), or ``unknown``; ``BadInput``
    for the content of another official file, such as train under the name of dev."""
    name = path.name.removesuffix(SUFFIX).removesuffix(".gz")
    official = _NAME_OF.get(digest, name)
    if official != name and name in SHA256:
        raise BadInput(f"{path}: its content is that of the official {official}; put the right file there")
    if official != name:
        warn_once(f"{path}: this is the official {official} under another name")
    if digest in _NAME_OF:
        return OFFICIAL
    try:
        source = json.loads((path.parent.parent / SOURCE_NAME).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return UNKNOWN
    origin = source.get("source") if isinstance(source, dict) else None
    return origin if isinstance(origin, str) else UNKNOWN


def read_json(path: Path) -> Any:
    """The parsed file; ``BadInput`` with line and column where it is not JSON."""
    text = read_text(path)
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno} ({error.msg})"
        raise BadInput(f"{path}: broken JSON at {where}; copy the file again") from None
    except ValueError as error:
        raise BadInput(f"{path}: {error}; copy the file again") from None


def validate(model: type[Model], value: Any, where: str) -> Model:
    """A JSON value as a pydantic model or a dataclass; ``BadInput`` names the first field that is wrong."""
    try:
        return ADAPTERS(model).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}: " for part in [".".join(map(str, first["loc"]))] if part)
        actual = "" if first["type"] == "missing" or not place else f", found {first['input']!r:.60}"
        raise BadInput(f"{where}: {place}{problem_text(first)}{actual}") from None


def write_json_lines(path: Path, records: Iterable[Any], *, private: bool = False) -> None:
    """Write one JSON object or dataclass per line, atomically; only the owner can read a private file."""
    lines = (json.dumps(record, ensure_ascii=False, default=asdict) + "\n" for record in records)
    with atomic_file(path) as temporary:
        temporary.touch(0o600 if private else 0o666)
        temporary.write_bytes("".join(lines).encode())


def format_json(records: Any) -> str:
    """Indented as officially."""
    return json.dumps(records, ensure_ascii=False, indent=4)


def read_records(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The records of a JSON list, each with ``where``, its file and guid, for messages."""
    records = read_json(path)
    if not isinstance(records, list) or not records:
        raise BadInput(f"{path}: expected one JSON list with at least one record; {CUSTOM_HINT}")
    for number, record in enumerate(records):
        if not isinstance(record, dict) or not isinstance(record.get("guid"), str):
            raise BadInput(f"{path}: record {number} is not an object with a text under 'guid'; {CUSTOM_HINT}")
    return [(f"{path}, {record['guid']}", record) for record in records]


def text_of(record: Mapping[str, Any], key: str, where: str) -> str:
    """The text under ``key``; ``BadInput`` if there is none."""
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{where}: '{key}' should be a text, found {value!r:.60}; {CUSTOM_HINT}")
    return value


def read_blocks(path: Path) -> list[Block]:
    """The sentences of a KLUE tsv file, separated by an empty line or a lone tab. Text before the first ``## `` line of
    a sentence is skipped; of several such lines the last one counts."""
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
                raise BadInput(f"{path}, line {lines[0][0]}: a sentence without its '## guid' line; {CUSTOM_HINT}")
            blocks.append(Block(header, lines))
            header, lines = "", []
    if not blocks:
        raise BadInput(f"{path}: no sentence here; expected lines of tab-separated columns below '## guid' lines")
    return blocks


def rewrite_blocks(source: Path, target: Path, rewrite: Callable[[Block], Iterable[str]]) -> None:
    """Write a tsv file with other lines in its sentences; all other lines and line ends are unchanged."""
    lines = read_text(source).split("\n")
    for block in read_blocks(source):
        for (number, _), line in zip(block.lines, rewrite(block), strict=True):
            lines[number - 1] = line + ("\r" if lines[number - 1].endswith("\r") else "")
    atomic_write(target, "\n".join(lines))


def format_blocks(rows: Sequence[Mapping[str, Any]], guid: str, columns: Mapping[str, str]) -> str:
    """A tsv file of numbered sentences below the five comment lines of official files; ``columns`` maps the columns of
    ``rows`` to their official names."""
    lines = ["## 열 구분: 탭", "## 토큰 구분: 줄바꿈", "## 문장 구분: 빈 줄", "## 설명: ##"]
    lines.append(f"## 열: {' '.join(columns.values())}")
    for number, row in enumerate(rows):
        here = f"{guid}_{number:05}"
        lines.append(f"## {here}\t{' '.join(row['sentence'].splitlines())}")
        values = [row[column] for column in columns]
        if len({len(value) for value in values}) != 1:
            raise BadInput(f"{here}: columns {', '.join(columns)} must have equal lengths")
        for line in zip(*values, strict=True):
            if any(mark in str(value) for value in line[1:] for mark in "\t\n\r") or str(line[0]) in "\n\r":
                raise BadInput(f"{here}: {line!r} has a tab, a line break or no token; no tsv file can hold it")
            lines.append("\t".join(map(str, line)))
        lines.append("")
    return "\n".join(lines) + "\n"
