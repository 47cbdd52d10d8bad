"""``events.jsonl`` of a run: starts and ends of stages; and a reader for lines that are still being written.

One process per command appends lines; several commands may write at once. Readers skip incomplete lines. Nothing
depends on this file, so a failure to write it is ignored.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from corpus.documents.errors import first_line
from corpus.documents.escaping import escape_json
from corpus.documents.locks import current_process
from launch.console import world_size
from launch.errors import error_message, is_user_error
from pretrain.interruption import Interrupted

EVENTS_NAME = "events.jsonl"
BEGAN, DONE, INTERRUPTED, FAILED = "began", "done", "interrupted", "failed"
MAX_BYTES = 4 << 20  # read from the end of a file of lines


@contextmanager
def record_events(run: Path, stage: str) -> Iterator[None]:
    """Record the start and the end of the stage that runs inside the block."""
    _write(run, stage, BEGAN, processes=world_size())
    try:
        yield
    except BaseException as error:
        is_interrupt = isinstance(error, Interrupted | KeyboardInterrupt | SystemExit)
        text = ": ".join(dict.fromkeys((type(error).__name__, first_line(error))))
        text = error_message(error) if is_user_error(error) else text
        _write(run, stage, INTERRUPTED if is_interrupt else FAILED, text=text)
        raise
    _write(run, stage, DONE)


def read_events(run: Path) -> list[dict[str, Any]]:
    """The readable events, oldest first: "time" (seconds since 1970), "stage", "kind", "process" and more."""
    return [
        event
        for event in read_lines(run / EVENTS_NAME)
        if isinstance(event.get("time"), float | int) and {type(event.get(key)) for key in ("stage", "kind")} == {str}
    ]


def _write(run: Path, stage: str, kind: str, **more: Any) -> None:
    event = {"time": round(time.time(), 3), "stage": stage, "kind": kind, "process": current_process(), **more}
    line = escape_json(json.dumps(event, ensure_ascii=False)) + "\n"
    with suppress(OSError, ValueError), (run / EVENTS_NAME).open("a", encoding="utf-8") as file:
        file.write(line)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file of lines, oldest first; of a long file only those near its end."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return []
    records = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            records += [value] if isinstance(value, dict) else []
    return records
