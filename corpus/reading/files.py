"""Finding input files and reading their bytes: plain or packed, local or at an fsspec URL, a block at a time.

No call that unpacks returns more than a block, so a file that unpacks to terabytes costs megabytes of memory. A file
that ends in the middle is an error of its own kind: the corpus keeps what stands before it and counts the loss.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from corpus.documents.errors import BadInput

TEXT_FORMATS = (".txt", ".jsonl", ".ndjson", ".parquet")
PACKINGS = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".xz": b"\xfd7zXZ\0", ".bz2": b"BZh"}
"""Suffixes of packed files, and the bytes that such files begin with."""
BLOCK_BYTES = 1 << 20
PACKED_BYTES = 1 << 16  # what is taken from a packed file at a time
UNPACKED_BYTES = 1 << 17  # what stands before damage within one call is lost, so calls are short
XZ_MEMORY_BYTES = 160 << 20  # xz -9 needs 65 MiB to unpack
MEMBERS: dict[str, Callable[[], Any]] = {
    ".xz": lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES),
    ".bz2": bz2.BZ2Decompressor,
}


class DamagedFile(BadInput):
    """A file ends in the middle or is not what its name says."""


class FileFormat(NamedTuple):
    kind: str  # ".jsonl"
    packing: str  # ".zst" or ""


def file_format(path: Path) -> FileFormat:
    """``petition.jsonl.zst`` is (".jsonl", ".zst"); either part may be empty."""
    packing = path.suffix.lower() if path.suffix.lower() in PACKINGS else ""
    kind = (Path(path.stem) if packing else path).suffix.lower()
    return FileFormat(kind, packing)


def is_text_file(path: Path) -> bool:
    kind, packing = file_format(path)
    return kind in TEXT_FORMATS and not (kind == ".parquet" and packing)


def find_texts(patterns: Sequence[str]) -> list[Path]:
    """Input files in the order of the patterns, folders and globs sorted; each file once."""
    return find_files(
        patterns, is_text_file, "text file (.txt, .jsonl, .ndjson, packed as .gz, .zst, .xz, .bz2 or not, or .parquet)"
    )


def find_files(patterns: Sequence[str], accepts: Callable[[Path], bool], wanted: str) -> list[Path]:
    """Expand patterns to files that ``accepts`` takes; ``wanted`` says what these are, where one finds none of them."""
    first: dict[Path, Path] = {}
    for path in chain.from_iterable(_expand(pattern, accepts, wanted) for pattern in patterns):
        if is_local(path) and not os.access(path, os.R_OK):
            raise BadInput(f"{path}: no permission to read this file; change its mode or leave it out")
        first.setdefault(path.resolve(), path)
    if not first:
        raise BadInput(f"no input: the list of paths is empty; name at least one {wanted}")
    return list(first.values())


def is_local(path: Path) -> bool:
    return isinstance(path, Path)


def to_path(name: str) -> Path:
    """A local path, or one at an fsspec URL (``s3://bucket/news/*.jsonl.gz``), which acts alike."""
    if "://" not in name:
        try:
            return Path(name).expanduser()
        except RuntimeError:  # no user of that name: then it is a file's
            return Path(name)
    from upath import UPath

    try:
        path: Any = UPath(name)
        assert path.fs, "opening the file system finds out what is not installed"
        return cast(Path, path)
    except (ImportError, ValueError) as error:
        raise BadInput(f"{name}: cannot open URLs of this kind ({error}); install its fsspec package") from error


def _expand(pattern: str, accepts: Callable[[Path], bool], wanted: str) -> list[Path]:
    path = to_path(pattern)
    try:
        if path.is_file():
            if not accepts(path):
                raise BadInput(f"{path}: not a {wanted}")
            return [path]
        if path.is_dir():
            found = [p for p in path.rglob("*") if p.is_file() and accepts(p) and not p.name.startswith(".")]
        elif glob.has_magic(pattern):
            found = [p for p in _glob(path) if p.is_file() and accepts(p)]
        else:
            raise BadInput(f"{pattern}: no such file or folder; expected a {wanted}, a folder or a glob")
    except OSError as error:
        if is_local(path):
            raise
        raise BadInput(f"{pattern}: cannot be reached ({error}); check address and access") from error
    if not found:
        raise BadInput(f"{pattern}: no {wanted} here")
    return sorted(found, key=str)


def _glob(path: Path) -> Iterator[Path]:
    if is_local(path):
        return map(Path, glob.iglob(str(path), recursive=True))  # noqa: PTH207 (absolute patterns)
    fixed = path
    while glob.has_magic(str(fixed)):
        fixed = fixed.parent
    return fixed.glob(str(path)[len(str(fixed)) :].lstrip("/"))


def name_files(paths: Sequence[Path]) -> list[str]:
    """The shortest trailing part of each path that tells them apart: file names where these differ."""
    depth, deepest = 1, max((len(path.parts) for path in paths), default=0)
    while True:
        names = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(names)) == len(names) or depth > deepest:
            return names
        depth += 1


def read_blocks(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Unpacked bytes of a file in blocks; ``start`` and ``end`` are byte offsets into plain files."""
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
    """The unpacked bytes of a stream, in blocks of at most ``BLOCK_BYTES``; several packed streams in a row are one.

    Raises:
        DamagedFile: the stream is damaged or ends too early; ``name`` says which.
    """
    try:
        if packing in MEMBERS:
            yield from _unpack_members(file, MEMBERS[packing])
        else:
            read = gzip.GzipFile(fileobj=file).read1 if packing == ".gz" else _open_zstd(file).read
            while block := read(UNPACKED_BYTES):
                yield block
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, EOFError) or "Truncated" in str(error):
            raise DamagedFile(f"{name}: the {packing} file ends in the middle; fetch or pack it again") from None
        raise DamagedFile(f"{name}: damaged {packing} file ({error}); fetch or pack it again") from error


def _open_zstd(file: BinaryIO) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")


def _unpack_members(file: BinaryIO, new_member: Callable[[], Any]) -> Iterator[bytes]:
    """Unlike the readers of the standard library, this one limits memory and refuses what stands after a stream."""
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
