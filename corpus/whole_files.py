"""Files read whole and written whole: broken content ends in one sentence, and power loss leaves nothing half trusted.

Whatever says that files are complete (a manifest, a finished unit's counts) comes after them on the disk, not only in
the memory of the system: write under a temporary name, fsync the file, rename, fsync the folder, which is SQLite's
order. Price: some milliseconds a folder, since the files of one are waited for together.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# half of a surrogate pair: JSON can spell it, UTF-8 cannot hold it
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
SETTLED_TOGETHER = 8  # waits that overlap share one commit of the file system's journal: 3 times as fast on ext4
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# numpy's words for a write that stopped, which carry no errno, and those of Rust for EFBIG, ENOSPC, EDQUOT on Linux
FULL_WORDS = re.compile(r"^\d+ requested and \d+ written$|\bos error (?:27|28|122)\b")


class BadInput(ValueError):
    """What the user gave cannot be used; the message says what, where, what was expected and what to do."""


def read_json(path: Path, advice: str) -> Any:
    """The value of a JSON file.

    Args:
        advice: what to do about a broken one.

    Raises:
        BadInput: not UTF-8, not JSON, nested too deeply, or text that UTF-8 cannot hold.
        OSError: the file cannot be read.
    """
    try:
        text = path.read_text("utf-8")
        value = json.loads(text)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise BadInput(f"{path}: not readable as JSON (nested too deeply); {advice}") from None
    except ValueError as error:
        raise BadInput(f"{path}: not readable as JSON ({error}); {advice}") from None
    return value


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name, rename it once the disk has it; text becomes UTF-8, lines end as given."""
    temporary = path.with_name(path.name + ".partial")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        rename_settled(temporary, path)
    except OSError as error:
        raise located(error, path) from error


def rename_settled(temporary: Path, path: Path) -> None:
    """Give a finished file its name."""
    settle(temporary)
    temporary.replace(path)
    settle(path.parent)


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for a file that is never written in place; a copy where that cannot be."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def settle_all(folder: Path) -> None:
    """Wait until the disk has every file below ``folder``, and their names."""
    folders = [Path(root) for root, _, _ in os.walk(folder)]
    files = [path for inner in folders for path in inner.iterdir() if path.is_file() and not path.is_symlink()]
    with ThreadPoolExecutor(SETTLED_TOGETHER) as threads:
        for found in (files, folders):
            list(threads.map(settle, found))


def settle(path: Path) -> None:
    """Wait until the disk has a file's content, or the names that a folder holds."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if path.is_file():  # some network file systems have nothing to wait for in a folder
            raise
    finally:
        os.close(descriptor)


def refuse_links(folder: Path) -> None:
    """Refuse links out of a model or tokenizer folder: any file of this machine could be in what is published then.

    The Hub's cache links from ``snapshots/REVISION`` to ``blobs`` of the same model, which is allowed.

    Raises:
        BadInput: there is such a link.
    """
    home = folder.resolve()
    if home.parent.name == "snapshots":
        home = home.parent.parent
    for path in sorted(folder.iterdir()):
        if path.is_symlink() and not path.resolve().is_relative_to(home):
            raise BadInput(f"{path}: a link out of its folder; copy the file itself there")


def is_full_disk(error: BaseException) -> bool:
    """Whether an error of any library means that there was no room to write."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL
    return FULL_WORDS.search(str(error)) is not None


def located(error: OSError, path: Path) -> OSError:
    """The error with the place where it happened, if it says none."""
    if error.filename is not None or not (error.errno or is_full_disk(error)):
        return error
    code = error.errno or errno.ENOSPC
    return OSError(code, os.strerror(code), str(path))
