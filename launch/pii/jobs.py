"""Which file becomes which: one file, or all of a folder or a glob under the same names in another folder."""

from __future__ import annotations

import glob
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from corpus.documents.errors import BadInput
from corpus.reading.files import find_files, format_of, to_path
from launch.pii.streams import STDIN, tell

KINDS = {".txt": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv",
         ".parquet": "parquet"}  # fmt: skip


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
        found = find_files([source], lambda file: format_of(file).kind in KINDS, wanted)
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
    named = KINDS.get(format_of(job.target).kind) if job.target else None
    alike = job.source and job.target and format_of(job.source).kind == format_of(job.target).kind
    one_object = job.source is None and (kind, named) == ("jsonl", "json")  # a line may be the whole document
    if named and named != kind and not alike and not one_object:
        suffixes = " or ".join(suffix for suffix, its in KINDS.items() if its == kind)
        raise BadInput(
            f"{job.target}: {job.name} is read as {kind}, and what was read is written again; name the output "
            f"{suffixes}, or choose how to read with --format"
        )


def _output_name(name: Path, finds: bool) -> Path:
    """Spans are JSON lines, whatever they were found in."""
    kind, packing = format_of(name)
    if not finds or KINDS.get(kind) == "jsonl":
        return name
    bare = name.name[: len(name.name) - len(packing)]
    return name.with_name(f"{bare}.jsonl{packing}")
