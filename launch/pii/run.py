"""``malmoi pii``: find or hide personal data in files, folders, globs or standard input.

```
input ─ decompress ─ decode ─ detect kind ─▶ lines, rows, records ─ find or hide ─▶ output file, written atomically
                                             └ unreadable ─▶ stop, or count and save separately
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

from corpus.documents.encoding import AUTO, UTF8, decode_blocks
from corpus.documents.errors import BadInput
from corpus.reading.containers import UnreadableRecord, parse_json
from corpus.reading.files import file_format, find_files, to_path
from launch.pii import streams
from launch.pii.json_text import change_document, change_lines
from launch.pii.parquet_rows import find_in_parquet, hide_in_parquet
from launch.pii.plain_text import change_blocks
from launch.pii.table_text import change_rows, choose_delimiter
from launch.pii.work import EVERYTHING, Finding, Hiding, Paths, Work, paths_of

KINDS = {".txt": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv",
         ".parquet": "parquet"}  # fmt: skip
FORMATS = ("auto", *dict.fromkeys(KINDS.values()))
SUFFIX_OF_SKIPPED = ".skipped.jsonl"
_OBJECT, _OBJECTS = re.compile(r'\s*+\{\s*+["}]'), re.compile(r'\s*+\[\s*+\{\s*+["}]')


@dataclass(frozen=True, slots=True)
class Choices:
    """Options of the commands; ``fields=None``: the field "text" of records, all columns of tables."""

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


def read_choices(
    fields: str | None, all_fields: bool, format_: str, encoding: str, on_error: str, skipped: Path | None
) -> Choices:
    """Validate the options of a command; ``BadInput`` for an invalid one."""
    names = tuple(name.strip() for name in fields.split(",") if name.strip()) if fields is not None else None
    if names == () or (names and all_fields):
        raise BadInput("--fields: expected names separated by commas, without --all-fields")
    if format_ not in FORMATS:
        raise BadInput(f"--format {format_}: unknown format; expected one of {', '.join(FORMATS)}")
    if encoding != AUTO:
        try:
            encoding = codecs.lookup(encoding).name
            b"a".decode(encoding, "replace")  # fails for codecs that are no text encodings
        except LookupError:
            raise BadInput(f"--encoding {encoding}: unknown; expected auto, utf-8, cp949, utf-16 …") from None
    return Choices(names, all_fields, format_, encoding, on_error == "skip", skipped)


def process(source: str, target: str, work: Work, choices: Choices) -> None:
    """Find or hide the personal data of all files of ``source``; finished files are kept if an error stops it.

    ``BadInput`` if an input cannot be read, or an output would overwrite an input.
    """
    jobs = plan_jobs(source, target, finds=isinstance(work, Finding))
    aside = choices.skipped or (None if target == "-" else Path(target.rstrip("/") + SUFFIX_OF_SKIPPED))
    with streams.Problems(not choices.skips, aside) as problems:
        for job in jobs:
            problems.name, problems.encoding = job.name, UTF8
            try:
                _do(job, work, choices, problems)
            except UnreadableRecord as error:
                raise BadInput(f"{job.name}: {streams.explain_problem(str(error))}") from None


def _do(job: Job, work: Work, choices: Choices, problems: streams.Problems) -> None:
    kind = choices.format
    if kind == "auto" and job.source is not None:
        kind = KINDS.get(file_format(job.source).kind, "auto")
    if kind != "parquet":
        pieces = _change_text(job, kind, work, choices, problems)
    elif job.source is None:
        raise BadInput(f"{streams.STDIN}: Parquet is only read from files; give a path")
    elif file_format(job.source).packing:
        raise BadInput(f"{job.source}: a compressed Parquet file; decompress it first")
    elif isinstance(work, Finding):
        pieces = find_in_parquet(job.source, choices.paths(kind), work, problems.report)
    elif job.target is None:
        raise BadInput(f"{job.name}: Parquet is only written to files; give an OUTPUT")
    else:
        check_kind(job, kind)
        hide_in_parquet(job.source, job.target, choices.paths(kind), work, problems.report)
        return
    with streams.open_output(job.target) as out:
        for piece in pieces:
            out.write(piece.encode())


def _change_text(job: Job, kind: str, work: Work, choices: Choices, problems: streams.Problems) -> Iterator[str]:
    """The output for one text input."""

    def note_encoding(encoding: str) -> None:
        if encoding != UTF8 and choices.encoding == AUTO:
            streams.print_note(f"{job.name}: read as {encoding.upper()}")
        problems.encoding = encoding

    problems.encoding = UTF8 if choices.encoding == AUTO else choices.encoding
    blocks = streams.source_blocks(job.source)
    first = next(blocks, b"")
    head, texts = streams.peek(decode_blocks(chain([first], blocks), choices.encoding, note_encoding))
    is_auto = choices.format == "auto"
    if kind == "auto" or (kind == "json" and is_auto):
        kind = sniff_kind(head, kind)
    if isinstance(work, Hiding):
        check_kind(job, kind)
    paths, report = choices.paths(kind), problems.report
    if kind == "text":
        yield from change_blocks(chain.from_iterable(streams.line_blocks(texts)), work, report, refuses_json=is_auto)
    elif kind == "jsonl":
        yield from change_lines(chain.from_iterable(streams.line_blocks(texts)), paths, work, report)
    elif kind == "json":
        yield from change_document(texts, paths, work, report)
    else:
        yield "\ufeff" * (isinstance(work, Hiding) and first.startswith(codecs.BOM_UTF8))  # for Excel
        yield from change_rows(texts, choose_delimiter(head, kind == "tsv"), paths, work, report)


def sniff_kind(head: str, kind: str = "auto") -> str:
    """Detect the kind of a text: JSON lines, a JSON document, or plain text.

    ``kind`` is "json" for .json files, which may also contain JSON lines.
    """
    if _OBJECT.match(head):
        first, end, rest = head.lstrip().partition("\n")
        try:
            parse_json(first.encode("utf-8", "surrogateescape"))
        except UnreadableRecord:
            return "json" if kind == "json" or (end and first.strip() == "{") else "jsonl"
        return "jsonl" if kind != "json" or rest.lstrip().startswith("{") else "json"
    return "json" if kind == "json" or _OBJECTS.match(head) else "text"


# --- input and output files


class Job(NamedTuple):
    """An input file and an output file; None is standard input or output."""

    source: Path | None
    target: Path | None

    @property
    def name(self) -> str:
        return streams.STDIN if self.source is None else str(self.source)


def plan_jobs(source: str, target: str, *, finds: bool) -> list[Job]:
    """Input and output files; outputs of a folder or glob have the same relative paths in the output folder.

    ``BadInput`` if there is no input, or an output is an input.
    """
    to = None if target == "-" else Path(target)
    if source == "-":
        return [Job(None, to)]
    path = to_path(source)
    if path.exists() and not path.is_dir():
        jobs = [Job(path, to / _output_name(Path(path.name), finds) if to and to.is_dir() else to)]
    else:
        expected = f"file to read ({', '.join(KINDS)}, compressed or not)"
        files = find_files([source], lambda file: file_format(file).kind in KINDS, expected)
        if to is None or to.is_file():
            raise BadInput(f"{source} matches {len(files)} files; give a folder for the output")
        fixed = takewhile(lambda part: not glob.has_magic(part), Path(source).parts[:-1])
        root = path if path.is_dir() else Path(*fixed)
        jobs = [Job(file, to / _output_name(file.relative_to(root), finds)) for file in files]
    inputs = {job.source.resolve() for job in jobs if job.source}
    if path.is_dir():
        others = sorted(str(file) for file in path.rglob("*") if file.is_file() and file.resolve() not in inputs)
        if others:
            streams.print_note(f"{len(others):,} files of other kinds are ignored, such as {others[0]}")
    for job in jobs:
        if job.target and job.target.resolve() in inputs:
            raise BadInput(f"{job.target} is also an input; choose another output")
    if to and path.is_dir() and path.resolve() in (to.resolve(), *to.resolve().parents):
        raise BadInput(f"{to} is in the input folder {path}, so the next run would read it; choose another output")
    return jobs


def check_kind(job: Job, kind: str) -> None:
    """``BadInput`` if the name of the output says another kind than that of the input."""
    output_kind = KINDS.get(file_format(job.target).kind) if job.target else None
    alike = job.source and job.target and file_format(job.source).kind == file_format(job.target).kind
    one_object = job.source is None and (kind, output_kind) == ("jsonl", "json")  # one line may be a JSON document
    if output_kind and output_kind != kind and not alike and not one_object:
        suffixes = " or ".join(suffix for suffix, its in KINDS.items() if its == kind)
        raise BadInput(f"{job.target}: {job.name} is read as {kind}; name the output {suffixes}, or set --format")


def _output_name(name: Path, finds: bool) -> Path:
    """The name of an output file; the output of ``detect`` is JSON lines."""
    kind, packing = file_format(name)
    if not finds or KINDS.get(kind) == "jsonl":
        return name
    bare = name.name[: len(name.name) - len(packing)]
    return name.with_name(f"{bare}.jsonl{packing}")
