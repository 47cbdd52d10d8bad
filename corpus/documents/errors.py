"""Errors for users, and detection of full disks in the errors of any library."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

FULL_DISK_CODES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# messages without errno: of numpy, and of Rust libraries for EFBIG, ENOSPC and EDQUOT on Linux
FULL_DISK_MESSAGE = re.compile(r"^\d+ requested and \d+ written$|\bos error (?:27|28|122)\b")


class BadInput(ValueError):
    """Input that cannot be used; the message says what and where, what was expected, and what to do."""


def first_line(error: BaseException) -> str:
    """The first line of the message of a library's error, for use in our own messages.

    >>> first_line(OSError("no config.json\\nTraceback")), first_line(KeyError())
    ('no config.json', 'KeyError')
    """
    return (str(error).strip() or type(error).__name__).split("\n")[0][:200]


def explain_panic(error: BaseException) -> BadInput | None:
    """The message for a panic of the Rust library that encodes text; None for other errors.

    A panic is a ``BaseException`` of a module that cannot be imported, so no process can send it to another.
    """
    if type(error).__name__ != "PanicException":
        return None
    return BadInput(
        f"the tokenizer cannot encode this text ({first_line(error)}); its file has a pattern that takes too long or "
        "is broken, so use another tokenizer"
    )


def is_full_disk(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL_DISK_CODES
    return FULL_DISK_MESSAGE.search(str(error)) is not None


def with_path(error: BaseException, path: Path) -> BaseException:
    """The error with ``path``, if it is a system error or a full disk and has no path yet."""
    code = error.errno if isinstance(error, OSError) else None
    if (isinstance(error, OSError) and error.filename is not None) or not (code or is_full_disk(error)):
        return error
    code = code or errno.ENOSPC
    return OSError(code, os.strerror(code), str(path))
