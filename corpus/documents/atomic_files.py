"""Files read whole and written whole: broken content ends in one sentence, and power loss leaves nothing half trusted.

What says that files are complete (a manifest, a finished unit's counts) comes after them on the disk, not only in
the memory of the system: write under a temporary name, fsync the file, rename, fsync the folder, which is SQLite's
order. Price: some milliseconds a folder, since the files of one are waited for together.
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

# half of a surrogate pair: JSON can spell it, UTF-8 cannot hold it
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
BLOCK_BYTES = 1 << 20
PARALLEL_FSYNCS = 8  # waits that overlap share one commit of the file system's journal: 3 times as fast on ext4
DIGEST_KEY = "sha256"  # of all else in a JSON object that carries its digest
PARTIAL_SUFFIX = ".partial"  # of unfinished files and folders; the next run replaces those that a killed run left


def read_json(path: Path, advice: str) -> Any:
    """The value of a JSON file; where ``parse_json`` refuses it, the message ends with ``advice``."""
    try:
        return parse_json(path.read_text("utf-8"))
    except ValueError as error:
        raise BadInput(f"{path}: not readable as JSON ({error}); {advice}") from None


def read_json_object(path: Path, advice: str) -> dict[str, Any]:
    """The same where only a JSON object will do."""
    value = read_json(path, advice)
    if not isinstance(value, dict):
        raise BadInput(f"{path}: expected a JSON object, found a {type(value).__name__}; {advice}")
    return value


def parse_json(text: str, **hooks: Any) -> Any:
    """The value of a JSON text; ``ValueError`` where it is no JSON, nested too deeply, or holds half a character."""
    try:
        value = json.loads(text, **hooks)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair (\\ud800 or the like) in its JSON, which is no character") from None
    return value


def with_digest(content: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object plus the sha256 of its content, which ``digest_matches`` verifies."""
    rest = _without_digest(content)
    return {**rest, DIGEST_KEY: _digest(rest)}


def digest_matches(content: Mapping[str, Any]) -> bool:
    """Whether an object read from a file is what ``with_digest`` gave."""
    return content.get(DIGEST_KEY) == _digest(_without_digest(content))


def _without_digest(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name != DIGEST_KEY}


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def file_digest(path: Path, told: Callable[[int], object] = lambda count: None) -> list[int | str]:
    """Size and sha256 of a file, [0, ""] where there is none; ``told`` gets the bytes of each block read."""
    if not path.is_file():
        return [0, ""]
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
            told(len(block))
    return [size, digest.hexdigest()]


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a file of at most ``most`` bytes, unpacked where its name ends in ``.zst`` or ``.gz``."""
    import pyarrow as pa

    content, packing = bytearray(), {".zst": "zstd", ".gz": "gzip"}.get(path.suffix)
    try:
        with pa.input_stream(str(path), packing) as stream:
            while len(content) <= most and (block := stream.read(BLOCK_BYTES)):
                content += block
    except OSError as error:
        if error.errno:
            raise
        if "Truncated" in str(error):
            raise BadInput(f"{path}: the {packing} file ends in the middle; copy it again") from None
        raise BadInput(f"{path}: not a readable {packing} file ({error}); copy it again") from None
    if len(content) > most:
        raise BadInput(f"{path}: more than {most:,} bytes of text; no file of its kind is that large")
    return bytes(content)


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, on the disk by then; text becomes UTF-8, lines end as given."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A name to write to; ``path`` appears, on the disk for good, if nothing was raised. Folders above it are made."""
    temporary = path.with_name(path.name + PARTIAL_SUFFIX)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        fsync(temporary)
        temporary.replace(path)
        fsync(path.parent)
    except BaseException as error:
        with suppress(OSError):  # the reason why it cannot be written is the better message
            temporary.unlink(missing_ok=True)
        raise with_path(error, path) from error


@contextmanager
def locate_errors(path: Path) -> Iterator[Path]:
    """Around a library that writes a file: a full disk in its words becomes the system's, with the file's name."""
    try:
        yield path
    except Exception as error:
        raise with_path(error, path) from error


@contextmanager
def atomic_dir(path: Path) -> Iterator[Path]:
    """A folder to write to; it takes the place of ``path``, on the disk for good, if nothing was raised.

    If something was, nothing of it stays: a full disk gets its space back.
    """
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
    """A second name for a file that is never written in place; a copy where that cannot be."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def fsync_tree(folder: Path) -> None:
    """Wait until the disk has every file below ``folder``, and their names; what goes meanwhile is not waited for."""
    walked = [(Path(root), names) for root, _, names in os.walk(folder)]
    files = [path for inner, names in walked for name in names if not (path := inner / name).is_symlink()]
    with ThreadPoolExecutor(PARALLEL_FSYNCS) as threads:
        for found in ([path for path in files if path.is_file()], [inner for inner, _ in walked]):
            list(threads.map(_fsync_if_there, found))


def _fsync_if_there(path: Path) -> None:
    with suppress(FileNotFoundError):  # another command in the same folder
        fsync(path)


def fsync(path: Path) -> None:
    """Wait until the disk has a file's content, or the names that a folder holds."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if path.is_file():  # some network file systems have nothing to wait for in a folder
            raise
    finally:
        os.close(descriptor)
