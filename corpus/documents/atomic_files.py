"""Read and write files atomically: a file is complete or missing, also after a crash or power loss.

Write to a temporary name, fsync the file, rename it, fsync the folder (the order of SQLite). A file that marks others
as complete, such as a manifest, is therefore on disk after them. Costs a few milliseconds per folder, because the files
of a folder are synced in parallel.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput, with_path
from corpus.documents.escaping import escape_json

# half of a surrogate pair: valid in JSON escapes, not in UTF-8
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
BLOCK_BYTES = 1 << 20
PARALLEL_FSYNCS = 8  # parallel calls share one commit of the file system journal: 3 times as fast on ext4
DIGEST_KEY = "sha256"  # key of the digest in a JSON object; it covers all other keys
PARTIAL_SUFFIX = ".partial"  # unfinished files and folders; the next run replaces leftovers of a killed run


def read_json(path: Path, advice: str) -> Any:
    """Read a JSON file; error messages end with ``advice``."""
    try:
        return parse_json(path.read_text("utf-8"))
    except ValueError as error:
        raise BadInput(f"{path}: not readable as JSON ({error}); {advice}") from None


def read_json_object(path: Path, advice: str) -> dict[str, Any]:
    """Read a JSON file that must contain an object."""
    value = read_json(path, advice)
    if not isinstance(value, dict):
        raise BadInput(f"{path}: expected a JSON object, found a {type(value).__name__}; {advice}")
    return value


def parse_json(text: str, **hooks: Any) -> Any:
    """Parse JSON; ``ValueError`` if it is invalid, nested too deeply, or contains half of a surrogate pair."""
    try:
        value = json.loads(text, **hooks)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    except ValueError as error:
        if "integer string conversion" in str(error):  # the message names a function of Python
            raise ValueError("a number of more than 4,300 digits") from None
        if not isinstance(error, UnicodeEncodeError):
            raise
        raise ValueError("half of a surrogate pair (such as \\ud800), which is not a character") from None
    return value


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically; invisible characters are escaped."""
    atomic_write(path, escape_json(json.dumps(value, ensure_ascii=False, indent=1)) + "\n")


def with_digest(content: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object plus the sha256 of its content; ``digest_matches`` verifies it."""
    rest = {name: value for name, value in content.items() if name != DIGEST_KEY}
    return {**rest, DIGEST_KEY: hashlib.sha256(json.dumps(rest, ensure_ascii=False).encode()).hexdigest()}


def digest_matches(content: Mapping[str, Any]) -> bool:
    """Whether an object read from a file is unchanged since ``with_digest``."""
    return content == with_digest(content)


def file_digest(path: Path, progress: Callable[[bytes], object] = lambda block: None) -> list[int | str]:
    """Size and sha256 of a file, [0, ""] if it is missing; calls ``progress`` with each block of ``BLOCK_BYTES``."""
    if not path.is_file():
        return [0, ""]
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
            progress(block)
    return [size, digest.hexdigest()]


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """The content of a file of at most ``max_bytes``, decompressed if its name ends in ``.zst`` or ``.gz``."""
    import pyarrow as pa

    content, packing = bytearray(), {".zst": "zstd", ".gz": "gzip"}.get(path.suffix.lower())
    try:
        with pa.input_stream(str(path), packing) as stream:
            while len(content) <= max_bytes and (block := stream.read(BLOCK_BYTES)):
                content += block
    except OSError as error:
        if error.errno:
            raise
        if "Truncated" in str(error):
            raise BadInput(f"{path}: the {packing} file ends in the middle; copy it again") from None
        raise BadInput(f"{path}: not a readable {packing} file ({error}); copy it again") from None
    if len(content) > max_bytes:
        raise BadInput(f"{path}: expected at most {max_bytes:,} bytes of text; check that this is the right file")
    return bytes(content)


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file atomically and fsync it; text is encoded as UTF-8, line ends are unchanged."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yields a temporary path; renames it to ``path`` on success. Creates parent folders."""
    temporary = path.with_name(path.name + PARTIAL_SUFFIX)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        fsync(temporary)
        temporary.replace(path)
        fsync(path.parent)
    except BaseException as error:
        with suppress(OSError):  # the first error has the better message
            temporary.unlink(missing_ok=True)
        raise with_path(error, path) from error


@contextmanager
def locate_errors(path: Path) -> Iterator[Path]:
    """For libraries that write files: errors about a full disk get the path of the file."""
    try:
        yield path
    except Exception as error:
        raise with_path(error, path) from error


@contextmanager
def atomic_dir(path: Path) -> Iterator[Path]:
    """Yields a temporary folder; it replaces ``path`` on success and is deleted on error."""
    temporary = path.with_name(path.name + PARTIAL_SUFFIX)
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
        fsync_tree(temporary)
        shutil.rmtree(path, ignore_errors=True)
        temporary.replace(path)
        fsync(path.parent)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise with_path(error, path) from error


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a file that is never written in place; copy it where links are impossible."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def fsync_tree(folder: Path) -> None:
    """fsync all files and folders below ``folder``; ignores files that another process deletes meanwhile."""
    walked = [(Path(root), names) for root, _, names in os.walk(folder)]
    files = [path for inner, names in walked for name in names if not (path := inner / name).is_symlink()]
    with ThreadPoolExecutor(PARALLEL_FSYNCS) as threads:
        for paths in ([path for path in files if path.is_file()], [inner for inner, _ in walked]):
            list(threads.map(_fsync_if_there, paths))


def _fsync_if_there(path: Path) -> None:
    with suppress(FileNotFoundError):  # deleted by another process
        fsync(path)


def fsync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if path.is_file():  # some network file systems cannot sync folders
            raise
    finally:
        os.close(descriptor)
