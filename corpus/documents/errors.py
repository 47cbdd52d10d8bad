"""What the user must change, and how a full disk is recognised in any library's words."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

FULL_DISK_CODES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# numpy's words for a write that stopped, which carry no errno, and those of Rust for EFBIG, ENOSPC, EDQUOT on Linux
FULL_DISK_MESSAGE = re.compile(r"^\d+ requested and \d+ written$|\bos error (?:27|28|122)\b")


class BadInput(ValueError):
    """What the user gave cannot be used; the message says what, where, what was expected and what to do."""


def first_line(error: BaseException) -> str:
    """What an error of somebody else's code says, cut to one line that fits into a sentence of ours.

    >>> first_line(OSError("no config.json\\nTraceback")), first_line(KeyError())
    ('no config.json', 'KeyError')
    """
    return (str(error).strip() or type(error).__name__).split("\n")[0][:200]


def is_full_disk(error: BaseException) -> bool:
    """Whether an error of any library means that the disk is full."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL_DISK_CODES
    return FULL_DISK_MESSAGE.search(str(error)) is not None


def with_path(error: BaseException, path: Path) -> BaseException:
    """The error with the place where it happened, if it says none and is the system's, or any library's full disk."""
    code = error.errno if isinstance(error, OSError) else None
    if (isinstance(error, OSError) and error.filename is not None) or not (code or is_full_disk(error)):
        return error
    code = code or errno.ENOSPC
    return OSError(code, os.strerror(code), str(path))
