"""Files that somebody is writing while they are read: a torn line, or one of something else, is no line."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_BYTES = 4 << 20  # from the end of a file of lines


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file of lines, oldest first; of a long file those at its end."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            found += [value] if isinstance(value, dict) else []
    return found


def read_record(path: Path) -> dict[str, Any] | None:
    """The JSON object of a file; None where there is none, or it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        value = json.loads(path.read_text("utf-8"))
        return value if isinstance(value, dict) else None
    return None


def age_of(path: Path) -> float | None:
    """Seconds since a file or folder was written, 0 where its clock is ahead; None where it is not there."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None


def number_of(record: dict[str, Any], key: str) -> float | None:
    """A number under a key; None for anything else."""
    value = record.get(key)
    return value if isinstance(value, float | int) and not isinstance(value, bool) else None
