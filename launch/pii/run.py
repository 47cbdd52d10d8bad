"""``malmoi pii``: files, folders, globs or standard input through the detector, each kind of file in its own way.

```
input ─ bytes ─ encoding ─ text ─ kind ─▶ lines, rows, records ─ found or hidden ─▶ output, whole or not at all
                                          └ cannot be read ─▶ stop, or counted and set aside
```
"""

from __future__ import annotations

import codecs
import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path
from typing import NamedTuple

from corpus.documents.errors import BadInput
from corpus.reading.containers import UnreadableRecord, parse_json
from corpus.reading.encoding import AUTO, UTF8, decode_blocks
from corpus.reading.files import file_format, find_files, to_path
from launch.pii.json_text import change_document, change_lines
from launch.pii.parquet_rows import find_in_parquet, hide_in_parquet
from launch.pii.plain_text import change_blocks
from launch.pii.streams import STDIN, Problems, explain, lines_of, open_output, source_blocks, tell
from launch.pii.table_text import change_rows, choose_delimiter
from launch.pii.work import EVERYTHING, Finding, Hiding, Paths, Work, paths_of

KINDS = {".txt": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv",
         ".parquet": "parquet"}  # fmt: skip
FORMATS = ("auto", *dict.fromkeys(KINDS.values()))
SUFFIX_OF_SKIPPED = ".skipped.jsonl"
_OBJECT, _OBJECTS = re.compile(r'\s*+\{\s*+["}]'), re.compile(r'\s*+\[\s*+\{\s*+["}]')


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user chose; ``fields`` None is the field "text" of records, and all of a table."""

    fields: tuple[str, ...] | None = None
    all_fields: bool = False
    format: str = "auto"
    encoding: str = AUTO
    skips: bool = False
    skipped: Path | None = None

    def paths(self, kind: str) -> Paths:
        if self.all_fields or (self.fields is None and kind in ("csv", "tsv")):
            return EVERYTHING
        return paths_of(self.fields or ("text",))

    @property
    def is_flat(self) -> bool:
        """One string is looked at, so its spans are a list."""
        return self.fields is None and not self.all_fields


def read_choices(
    fields: str | None, all_fields: bool, format_: str, encoding: str, on_error: str, skipped: Path | None
) -> Choices:
    """The choices of a command line.

    Raises:
        BadInput: one that is none.
    """
    names = tuple(name.strip() for name in fields.split(",") if name.strip()) if fields is not None else None
    if names == () or (names and all_fields):
        raise BadInput("--fields takes names by commas, and not together with --all-fields")
    if format_ not in FORMATS:
        raise BadInput(f"--format {format_}: no such format; there are {', '.join(FORMATS)}")
    if on_error not in ("stop", "skip"):
        raise BadInput(f"--on-error {on_error}: stop or skip")
    if encoding != AUTO:
        try:
            encoding = codecs.lookup(encoding).name
            b"a".decode(encoding, "replace")  # refuses codecs that are no text encodings
        except LookupError:
            raise BadInput(f"--encoding {encoding}: no such text encoding; auto, utf-8, cp949, utf-16, …") from None
    return Choices(names, all_fields, format_, encoding, on_error == "skip", skipped)


def process(source: str, target: str, work: Work, choices: Choices) -> None:
    """Find or hide the personal data of all that ``source`` names.

    Raises:
        BadInput: it cannot be read, or the output would fall on the input; what was written whole stays.
    """
    jobs = plan_jobs(source, target, finds=isinstance(work, Finding))
    aside = choices.skipped or (None if target == "-" else Path(target.rstrip("/") + SUFFIX_OF_SKIPPED))
    with Problems(not choices.skips, aside) as problems:
        for job in jobs:
            problems.name, problems.encoding = job.name, UTF8
            try:
                _do(job, work, choices, problems)
            except UnreadableRecord as error:
                raise BadInput(f"{job.name}: {explain(str(error))}") from None


def _do(job: Job, work: Work, choices: Choices, problems: Problems) -> None:
    kind = choices.format
    if kind == "auto" and job.source is not None:
        kind = KINDS.get(file_format(job.source).kind, "auto")
    if kind != "parquet":
        pieces = _change_text(job, kind, work, choices, problems)
    elif job.source is None:
        raise BadInput(f"{STDIN}: Parquet is read from files; give its path")
    elif file_format(job.source).packing:
        raise BadInput(f"{job.source}: a packed Parquet file; unpack it first, Parquet packs its columns itself")
    elif isinstance(work, Finding):
        pieces = find_in_parquet(job.source, choices.paths(kind), work, choices.is_flat, problems.meet)
    elif job.target is None:
        raise BadInput(f"{job.name}: Parquet is written to files; give an OUTPUT")
    else:
        check_kind(job, kind)
        hide_in_parquet(job.source, job.target, choices.paths(kind), work, problems.meet)
        return
    with open_output(job.target) as out:
        for piece in pieces:
            out.write(piece.encode())


def _change_text(job: Job, kind: str, work: Work, choices: Choices, problems: Problems) -> Iterator[str]:
    """The output of one text input, in order."""

    def settle(found: str) -> None:
        if found != UTF8 and choices.encoding == AUTO:
            tell(f"{job.name}: read as {found.upper()}")
        problems.encoding = found

    problems.encoding = UTF8 if choices.encoding == AUTO else choices.encoding
    head, texts = _peek(decode_blocks(source_blocks(job.source), choices.encoding, settle))
    is_auto = choices.format == "auto"
    if kind == "auto" or (kind == "json" and is_auto):
        kind = sniff_kind(head, kind)
    if isinstance(work, Hiding):
        check_kind(job, kind)
    paths, flat, meet = choices.paths(kind), choices.is_flat, problems.meet
    if kind == "text":
        yield from change_blocks(lines_of(texts), work, meet, refuses_json=is_auto)
    elif kind == "jsonl":
        yield from change_lines(lines_of(texts), paths, work, flat, meet)
    elif kind == "json":
        yield from change_document(texts, paths, work, flat, meet, waits=job.target is None)
    else:
        yield from change_rows(texts, choose_delimiter(head, kind == "tsv"), paths, work, meet)


def _peek(texts: Iterator[str]) -> tuple[str, Iterator[str]]:
    """The beginning of a text, up to where something stands, and all of the text."""
    read: list[str] = []
    for text in texts:
        read.append(text)
        if text.strip():
            break
    return "".join(read), chain(read, texts)


def sniff_kind(head: str, kind: str = "auto") -> str:
    """The kind of a text by its beginning: JSON lines, a JSON document, or plain text.

    Args:
        kind: "json" where the file's name says so; it may hold JSON lines all the same.
    """
    if _OBJECT.match(head):
        first, end, rest = head.lstrip().partition("\n")
        try:
            parse_json(first.encode("utf-8", "surrogateescape"))
        except UnreadableRecord:
            return "json" if kind == "json" or (end and first.strip() == "{") else "jsonl"
        return "jsonl" if kind != "json" or rest.lstrip().startswith("{") else "json"
    return "json" if kind == "json" or _OBJECTS.match(head) else "text"


# --- which file becomes which: one file, or all of a folder or a glob under the same names in another folder


class Job(NamedTuple):
    """One file to read and one to write; None is standard input or output."""

    source: Path | None
    target: Path | None

    @property
    def name(self) -> str:
        return STDIN if self.source is None else str(self.source)


def plan_jobs(source: str, target: str, *, finds: bool) -> list[Job]:
    """The files that are read and written; of a folder or a glob, the same relative paths in the output folder.

    Raises:
        BadInput: nothing to read, or an output that is an input.
    """
    to = None if target == "-" else Path(target)
    if source == "-":
        return [Job(None, to)]
    path = to_path(source)
    if path.exists() and not path.is_dir():
        jobs = [Job(path, to / _output_name(Path(path.name), finds) if to and to.is_dir() else to)]
    else:
        wanted = f"file to read ({', '.join(KINDS)}, packed or not)"
        found = find_files([source], lambda file: file_format(file).kind in KINDS, wanted)
        if to is None or to.is_file():
            raise BadInput(f"{source} names {len(found)} files; give a folder for the output")
        fixed = takewhile(lambda part: not glob.has_magic(part), Path(source).parts[:-1])
        root = path if path.is_dir() else Path(*fixed)
        jobs = [Job(file, to / _output_name(file.relative_to(root), finds)) for file in found]
    inputs = {job.source.resolve() for job in jobs if job.source}
    if path.is_dir():
        others = sorted(str(file) for file in path.rglob("*") if file.is_file() and file.resolve() not in inputs)
        if others:
            tell(f"{len(others):,} files of other kinds are not read and not copied, such as {others[0]}")
    for job in jobs:
        if job.target and job.target.resolve() in inputs:
            raise BadInput(f"{job.target} is an input; write to another place, so that it is not lost")
    if to and path.is_dir() and path.resolve() in (to.resolve(), *to.resolve().parents):
        raise BadInput(f"{to} lies in the input folder {path}; write to another place, or it would be read next time")
    return jobs


def check_kind(job: Job, kind: str) -> None:
    """What is written is of the kind that was read.

    Raises:
        BadInput: the output's name says another kind.
    """
    named = KINDS.get(file_format(job.target).kind) if job.target else None
    alike = job.source and job.target and file_format(job.source).kind == file_format(job.target).kind
    one_object = job.source is None and (kind, named) == ("jsonl", "json")  # a line may be the whole document
    if named and named != kind and not alike and not one_object:
        suffixes = " or ".join(suffix for suffix, its in KINDS.items() if its == kind)
        raise BadInput(
            f"{job.target}: {job.name} is read as {kind}, and what was read is written again; name the output "
            f"{suffixes}, or choose how to read with --format"
        )


def _output_name(name: Path, finds: bool) -> Path:
    """Spans are JSON lines, whatever they were found in."""
    kind, packing = file_format(name)
    if not finds or KINDS.get(kind) == "jsonl":
        return name
    bare = name.name[: len(name.name) - len(packing)]
    return name.with_name(f"{bare}.jsonl{packing}")
