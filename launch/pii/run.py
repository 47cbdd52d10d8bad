"""``malmoi pii``: files, folders, globs or standard input through the detector, each kind of file in its own way.

```
input ─ bytes ─ encoding ─ text ─ kind ─▶ lines, rows, records ─ found or hidden ─▶ output, whole or not at all
                                          └ cannot be read ─▶ stop, or counted and set aside
```
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from corpus.documents.errors import BadInput
from corpus.pii.records import EVERYTHING, Paths, paths_of
from corpus.reading import containers
from corpus.reading.containers import Unreadable, parse_json
from corpus.reading.encoding import AUTO, UTF8, text_of
from corpus.reading.files import format_of
from launch.pii import json_document, json_text, plain_text, table_text
from launch.pii.jobs import KINDS, Job, check_kind, plan_jobs
from launch.pii.parquet_rows import find_in_parquet, hide_in_parquet, refuse_packed
from launch.pii.streams import (
    STDIN,
    SUFFIX_OF_SKIPPED,
    Line,
    Problems,
    lines_of,
    open_output,
    refuse,
    source_blocks,
    tell,
)
from launch.pii.work import Finding, Hiding

FORMATS = ("auto", "text", "jsonl", "json", "csv", "tsv", "parquet")
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


def process(source: str, target: str, work: Finding | Hiding, choices: Choices) -> None:
    """Find or hide the personal data of all that ``source`` names.

    Raises:
        BadInput: it cannot be read, or the output would fall on the input; what was written whole stays.
    """
    jobs = plan_jobs(source, target, finds=isinstance(work, Finding))
    aside = choices.skipped or (None if target == "-" else Path(target.rstrip("/") + SUFFIX_OF_SKIPPED))
    problems = Problems(not choices.skips, aside)
    try:
        for job in jobs:
            _do(job, work, choices, problems)
    except BaseException:
        problems.give_up()
        raise
    problems.finish()


def _do(job: Job, work: Finding | Hiding, choices: Choices, problems: Problems) -> None:
    kind = _kind_by_name(job, choices)
    try:
        if kind == "parquet":
            _do_parquet(job, work, choices, problems)
            return
        reader = _Reader(job, choices, problems)
        with open_output(job.target) as out:
            for piece in reader.pieces(kind, work):
                out.write(piece)
    except Unreadable as error:
        refuse(job.name, str(error))


def _kind_by_name(job: Job, choices: Choices) -> str:
    kind = choices.format
    if kind == "auto" and job.source is not None:
        kind = KINDS.get(format_of(job.source).kind, "auto")
    return kind


def _do_parquet(job: Job, work: Finding | Hiding, choices: Choices, problems: Problems) -> None:
    if job.source is None:
        raise BadInput(f"{STDIN}: Parquet is read from files; give its path")
    refuse_packed(job.source, format_of(job.source).packing)
    meet = partial(problems.meet, job.name)
    paths = choices.paths("parquet")
    if isinstance(work, Finding):
        with open_output(job.target) as out:
            find_in_parquet(job.source, out, paths, work, choices.is_flat, meet)
    elif job.target is None:
        raise BadInput(f"{job.name}: Parquet is written to files; give an OUTPUT")
    else:
        check_kind(job, "parquet")
        hide_in_parquet(job.source, job.target, paths, work, meet)


class _Reader:
    """One text input on its way to pieces of output."""

    def __init__(self, job: Job, choices: Choices, problems: Problems) -> None:
        self.job, self.choices, self.problems = job, choices, problems
        self.encoding = UTF8 if choices.encoding == AUTO else choices.encoding

    def pieces(self, kind: str, work: Finding | Hiding) -> Iterator[str]:
        """The output as text, in order."""
        texts = text_of(source_blocks(self.job.source), self.choices.encoding, self._settle)
        head, texts = _peek(texts)
        if kind == "auto" or (kind == "json" and self.choices.format == "auto"):
            kind = sniff_kind(head, kind)
        if isinstance(work, Hiding):
            check_kind(self.job, kind)
        paths = self.choices.paths(kind)
        if kind == "text":
            yield from self._text(texts, work)
        elif kind == "jsonl":
            yield from self._lines(texts, paths, work)
        elif kind == "json":
            yield from self._checked(texts, paths, work)
        else:
            yield from self._table(texts, table_text.choose_delimiter(head, kind == "tsv"), paths, work)

    def _settle(self, found: str) -> None:
        if found != UTF8 and self.choices.encoding == AUTO:
            tell(f"{self.job.name}: read as {found.upper()}")
        self.encoding = found

    def _meet(self, place: str, reason: str, raw: str) -> None:
        self.problems.meet(self.job.name, place, reason, raw, self.encoding)

    def _text(self, texts: Iterator[str], work: Finding | Hiding) -> Iterator[str]:
        try:
            for block in plain_text.blocks_of(lines_of(texts), self._meet, self.choices.format == "auto"):
                if isinstance(work, Finding):
                    yield plain_text.find_in_block(block, work)
                else:
                    yield plain_text.hide_in_block(block, work)
        except BadInput as error:
            raise BadInput(str(error) if self.job.name in str(error) else f"{self.job.name}: {error}") from None

    def _lines(self, texts: Iterator[str], paths: Paths, work: Finding | Hiding) -> Iterator[str]:
        position = 0
        for line in lines_of(texts):
            if line.text.strip() or line.problem:
                try:
                    yield self._record(line, paths, work, position)
                except Unreadable as error:
                    self._meet(f"line {line.number}", str(error), line.text)
                position += 1
            elif isinstance(work, Hiding):
                yield line.text + line.end

    def _record(self, line: Line, paths: Paths, work: Finding | Hiding, position: int) -> str:
        if line.problem:
            raise Unreadable(line.problem)
        walker = json_text.Walker(paths)
        if isinstance(work, Finding):
            changed, end = json_text.find_in_record(line.text, walker, work, self.choices.is_flat)[0], "\n"
        else:
            changed, end = json_text.hide_in_record(line.text, walker, work, position), line.end
        json_text.require_field(walker)
        return changed + end

    def _checked(self, texts: Iterator[str], paths: Paths, work: Finding | Hiding) -> Iterator[str]:
        """A document; standard output gets nothing of it before a chosen field was there."""
        document = json_document.Document(paths, self.choices.is_flat)
        held: list[str] = []
        size = 0
        for piece in self._document(texts, document, work):
            if self.job.target or document.has_chosen:
                yield from (*held, piece)
                held.clear()
                continue
            held.append(piece)
            size += len(piece)
            if size > containers.RECORD_BYTES:
                document.check_end()
                yield from held  # numbers alone so far
                held, size = [], 0
        document.check_end()
        yield from held

    def _document(
        self, texts: Iterator[str], document: json_document.Document, work: Finding | Hiding
    ) -> Iterator[str]:
        pieces = json_document.pieces_of(texts)
        if isinstance(work, Finding):
            pieces = json_document.whole_or_pieces(pieces, document.paths)
        for piece in pieces:
            try:
                yield document.find(piece, work) if isinstance(work, Finding) else document.hide(piece, work)
            except Unreadable as error:
                if not piece.is_record:
                    raise
                self._meet(f"item {document.records}", str(error), piece.raw)
                yield "" if isinstance(work, Finding) else "null"  # a place holder, so that commas stay right

    def _table(self, texts: Iterator[str], delimiter: str, paths: Paths, work: Finding | Hiding) -> Iterator[str]:
        table = table_text.Table(paths)
        for position, row in enumerate(table_text.rows_of(texts, delimiter)):
            try:
                table_text.check_row(row)
            except Unreadable as error:
                self._meet(f"line {row.line}", str(error), row.raw)
                continue
            is_head = not table.is_known and table.learn(row)
            if isinstance(work, Hiding):
                yield row.raw if is_head else table_text.hide_in_row(table, row, work, position)
            elif not is_head and any(row.values):
                yield table_text.find_in_row(table, row, work)


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
        except Unreadable:
            return "json" if kind == "json" or (end and first.strip() == "{") else "jsonl"
        return "jsonl" if kind != "json" or rest.lstrip().startswith("{") else "json"
    return "json" if kind == "json" or _OBJECTS.match(head) else "text"
