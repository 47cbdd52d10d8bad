"""Find input files and read their bytes in blocks: plain or compressed, local or at an fsspec URL.

Links inside a folder are not followed out of it, and files of other kinds are counted in one warning. Decompression
returns at most one block at a time, so a file of terabytes needs megabytes of memory. A truncated file is a
``DamagedFile``: the corpus keeps the part before the damage and counts the loss.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from corpus.documents.errors import BadInput
from corpus.documents.model_files import home_of_links
from corpus.documents.section import warn_once

CONTAINERS = {".txt": "text", ".jsonl": "lines", ".ndjson": "lines", ".parquet": "parquet"}
PACKINGS = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".xz": b"\xfd7zXZ\0", ".bz2": b"BZh"}
"""Suffixes of compressed files, and their first bytes."""
TEXT_FILE = "text file (.parquet, or .txt, .jsonl, .ndjson, which may be compressed: .gz, .zst, .xz, .bz2)"
OTHER, FOLDERS, RESULTS = "other", "folder(s)", "in results of malmoi runs"
HOW_TO_READ = {
    **dict.fromkeys((".csv", ".tsv", ".xlsx"), "save as .jsonl or .parquet; corpus.text_field names its column"),
    **dict.fromkeys((".html", ".htm", ".xml", ".pdf", ".docx", ".doc", ".hwp", ".hwpx"), "extract the text to .txt"),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar"), "unpack"),
    ".json": "set corpus.sources.NAME.format if it is a known one, else save as .jsonl, one object a line",
    ".parquet": "decompress: Parquet files are not packed as a whole",
    OTHER: "rename plain text to .txt",
    FOLDERS: "end the glob in /** to read them",
    RESULTS: "name the folder itself to read it",
}
"""What to do with files that are not read, by suffix or kind."""
STAGE_HEADS, STAGE_HEAD = ("manifest.json", "started.json"), re.compile(rb'\{\s*+"stage": "\w')
"""Names of the files that mark the folder of a stage (launch/manifest.py), and their first bytes."""
BLOCK_BYTES = 1 << 20
PACKED_BYTES = 1 << 16  # read from a compressed file at a time
UNPACKED_BYTES = 1 << 17  # output of a call that meets damage is lost, so calls are small
XZ_MEMORY_BYTES = 160 << 20  # xz -9 needs 65 MiB
MEMBERS: dict[str, Callable[[], Any]] = {
    ".xz": lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES),
    ".bz2": bz2.BZ2Decompressor,
}


class DamagedFile(BadInput):
    """A file is truncated, or its content does not match its name."""


class FileFormat(NamedTuple):
    kind: str  # ".jsonl"
    packing: str  # ".zst" or ""


def file_format(path: Path) -> FileFormat:
    """The kind and compression of a file: ``a.jsonl.zst`` is (".jsonl", ".zst"); both may be empty."""
    packing = path.suffix.lower() if path.suffix.lower() in PACKINGS else ""
    kind = (Path(path.stem) if packing else path).suffix.lower()
    return FileFormat(kind, packing)


def is_text_file(path: Path) -> bool:
    kind, packing = file_format(path)
    return kind in CONTAINERS and not (kind == ".parquet" and packing)


def find_texts(
    patterns: Sequence[str], accepts: Callable[[Path], bool] = is_text_file, expected: str = TEXT_FILE
) -> list[Path]:
    """Text files in the order of the patterns; folders and globs are sorted, each file appears once."""
    return find_files(patterns, accepts, expected, HOW_TO_READ)


def find_files(
    patterns: Sequence[str], accepts: Callable[[Path], bool], expected: str, how: Mapping[str, str] | None = None
) -> list[Path]:
    """Expand patterns to the files that ``accepts`` allows; ``expected`` describes them in error messages.

    ``how``: if given, a warning counts the other files of folders, with what to do, by suffix.
    """
    first: dict[Path, Path] = {}
    for path in chain.from_iterable(_expand(pattern, accepts, expected, how) for pattern in patterns):
        if is_local(path) and not os.access(path, os.R_OK):
            raise BadInput(f"{path}: no permission to read this file; change its permissions or exclude it")
        first.setdefault(path.resolve(), path)
    if not first:
        raise BadInput(f"the list of inputs is empty; expected at least one {expected}")
    return list(first.values())


def is_local(path: Path) -> bool:
    return isinstance(path, Path)


def to_path(name: str) -> Path:
    """A local path, or a path-like object for an fsspec URL (``s3://bucket/news/*.jsonl.gz``)."""
    if "://" not in name:
        try:
            return Path(name).expanduser()
        except RuntimeError:  # no such user: a file name that starts with ~
            return Path(name)
    from upath import UPath

    try:
        path: Any = UPath(name)
        assert path.fs, "raises an error if a package is missing"
        return cast(Path, path)
    except (ImportError, ValueError) as error:
        raise BadInput(f"{name}: cannot open URLs of this kind ({error}); install its fsspec package") from error


def _expand(pattern: str, accepts: Callable[[Path], bool], expected: str, how: Mapping[str, str] | None) -> list[Path]:
    path, others = to_path(pattern), ""
    try:
        if path.is_file():
            if not accepts(path):
                advice = how.get(file_format(path).kind, how[OTHER]) if how else "name another file"
                raise BadInput(f"{path}: not a {expected}; {advice}")
            return [path]
        folder, names = (path, "") if path.is_dir() else _split_glob(path)
        if not names and not folder.is_dir():
            raise BadInput(f"{pattern}: no such file or folder; expected a {expected}, a folder or a glob")
        paths = list(_within(folder, _matches(folder, names)))
        files = [path for path in paths if path.is_file()]
        results = _results_of_runs(folder, files) if how and is_local(folder) else set()
        accepted = {path for path in files if accepts(path) and path not in results}
        kinds = [RESULTS if path in results else file_format(path).kind for path in files if path not in accepted]
        if names and "**" not in names:
            kinds += [FOLDERS for path in paths if path.is_dir()]
        counts = Counter(kind if kind in how else OTHER for kind in kinds) if how else {}
        others = ", ".join(f"{count} {kind} ({how[kind]})" for kind, count in sorted(counts.items()) if how)
    except Exception as error:  # every storage package has its own
        if is_local(path) or isinstance(error, BadInput):
            raise
        raise BadInput(f"{pattern}: cannot be accessed ({error}); check the address and your permissions") from error
    if not accepted:
        raise BadInput(f"{pattern}: no {expected} here{others and f', only {others}'}")
    if others:
        warn_once(f"{pattern}: files that are read: {len(accepted)}; files that are not: {others}")
    return sorted(accepted, key=str)


def _split_glob(path: Path) -> tuple[Path, str]:
    """The folder before the first special character that is not part of an existing name, and the pattern after it."""
    folder = path
    while glob.has_magic(str(folder)) and not (is_local(path) and folder.is_dir()):
        folder = folder.parent
    return folder, "/".join(path.parts[len(folder.parts) :])


def _matches(folder: Path, names: str) -> Iterator[Path]:
    """The files and folders that a glob names, or all below ``folder``, without hidden ones."""
    if not names:
        return (path for path in folder.rglob("*") if "/." not in f"/{path.relative_to(folder)}")
    if is_local(folder):
        return (folder / name for name in glob.iglob(names, root_dir=folder, recursive=True))  # noqa: PTH207 (hidden)
    return folder.glob(names)


def _results_of_runs(folder: Path, files: Iterable[Path]) -> set[Path]:
    """The files below ``folder`` that a stage of malmoi wrote: they would be read again as text."""

    @cache
    def is_stage(inner: Path) -> bool:
        heads = [head for name in STAGE_HEADS if (head := inner / name).is_file() and os.access(head, os.R_OK)]
        return any(STAGE_HEAD.match(next(read_blocks(head), b"")) for head in heads)

    depth = len(folder.parts) + 1
    return {path for path in files if any(map(is_stage, path.parents[: len(path.parts) - depth]))}


def _within(folder: Path, paths: Iterable[Path]) -> Iterator[Path]:
    """Without links out of the folder, whose number is logged: they could add any file of this machine to a corpus."""
    home, skipped = home_of_links(folder) if is_local(folder) else None, 0
    for path in paths:
        if home and not path.resolve().is_relative_to(home):
            skipped += 1
        else:
            yield path
    if skipped:
        warn_once(
            f"{folder}: links to files outside of this folder are not read: {skipped}; name the files themselves as "
            "inputs, or copy them"
        )


def name_files(paths: Sequence[Path]) -> list[str]:
    """The shortest unique trailing part of each path: the file name, if it is unique."""
    depth, deepest = 1, max((len(path.parts) for path in paths), default=0)
    while True:
        names = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(names)) == len(names) or depth > deepest:
            return names
        depth += 1


def read_blocks(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The decompressed bytes of a file in blocks; ``start`` and ``end`` are byte offsets for plain files."""
    packing = file_format(path).packing
    if packing:
        with path.open("rb") as file:
            yield from unpack(cast(BinaryIO, file), packing, str(path))
        return
    left = (path.stat().st_size if end is None else end) - start
    with path.open("rb") as file:
        file.seek(start)
        while left > 0 and (block := file.read(min(BLOCK_BYTES, left))):
            left -= len(block)
            yield block


def unpack(file: BinaryIO, packing: str, name: str) -> Iterator[bytes]:
    """The decompressed bytes of a stream, in blocks of at most ``BLOCK_BYTES``; concatenated streams are read as one.

    Raises:
        DamagedFile: the stream is damaged or truncated; ``name`` is for the message.
    """
    import pyarrow as pa

    try:
        if packing in MEMBERS:
            yield from _unpack_members(file, MEMBERS[packing])
        else:
            zstd = packing == ".zst" and pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
            read = zstd.read if zstd else gzip.GzipFile(fileobj=file).read1
            while block := read(UNPACKED_BYTES):
                yield block
        if file.seekable() and not file.tell():
            raise EOFError
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, EOFError) or "Truncated" in str(error):
            raise DamagedFile(f"{name}: the {packing} file ends in the middle; fetch or pack it again") from None
        raise DamagedFile(f"{name}: damaged {packing} file ({error}); fetch or pack it again") from error


def _unpack_members(file: BinaryIO, new_member: Callable[[], Any]) -> Iterator[bytes]:
    """Limits memory and refuses trailing data, unlike the readers of the standard library."""
    member, rest = None, b""
    while packed := rest or file.read(PACKED_BYTES):
        member = member or new_member()
        while packed or not (member.eof or member.needs_input):
            if block := member.decompress(packed, BLOCK_BYTES):
                yield block
            packed = b""
        rest, member = (member.unused_data, None) if member.eof else (b"", member)
    if member:
        raise EOFError
