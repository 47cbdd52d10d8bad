"""What happened to a run, in ``events.jsonl`` of its folder: who began which stage, what was warned of, how it ended.

One process of a command writes it, a line at a time; several commands may write at once, and whoever reads it passes
over what is torn. Nothing depends on it, so nothing stops where it cannot be written.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from corpus.documents.escaping import escape_json
from corpus.documents.locks import current_process
from launch.cluster.status.lines import read_lines
from launch.console import world_size
from launch.errors import is_for_user, one_sentence
from pretrain.interruption import Interrupted

EVENTS_NAME = "events.jsonl"
BEGAN, WARNED, DONE, INTERRUPTED, FAILED = "began", "warned", "done", "interrupted", "failed"
MOST_WARNINGS = 200  # of a stage of a command; the console has them all


class _Warnings(logging.Handler):
    """Writes down what the stage warns of."""

    def __init__(self, run: Path, stage: str) -> None:
        super().__init__(logging.WARNING)
        self._run, self._stage, self._left = run, stage, MOST_WARNINGS

    def emit(self, record: logging.LogRecord) -> None:
        if self._left:
            self._left -= 1
            _write(self._run, self._stage, WARNED, text=record.getMessage())


@contextmanager
def recorded(run: Path, stage: str) -> Iterator[None]:
    """Around the work of a stage in one process: its begin, its warnings and its end."""
    _write(run, stage, BEGAN, processes=world_size())
    handler, root = _Warnings(run, stage), logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    except BaseException as error:
        is_asked_for = isinstance(error, Interrupted | KeyboardInterrupt | SystemExit)
        _write(run, stage, INTERRUPTED if is_asked_for else FAILED, text=_say(error))
        raise
    else:
        _write(run, stage, DONE)
    finally:
        root.removeHandler(handler)


def read_events(run: Path) -> list[dict[str, Any]]:
    """What is readable of it, oldest first: "time" (seconds since 1970), "stage", "kind", "process" and more."""
    return [
        event
        for event in read_lines(run / EVENTS_NAME)
        if isinstance(event.get("time"), float | int) and {type(event.get(key)) for key in ("stage", "kind")} == {str}
    ]


def _say(error: BaseException) -> str:
    if is_for_user(error) and isinstance(error, Exception):
        return one_sentence(error)
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


_one_at_a_time = threading.Lock()


def _write(run: Path, stage: str, kind: str, **more: Any) -> None:
    event = {"time": round(time.time(), 3), "stage": stage, "kind": kind, "process": current_process(), **more}
    line = escape_json(json.dumps(event, ensure_ascii=False)) + "\n"
    with suppress(OSError, ValueError), _one_at_a_time, (run / EVENTS_NAME).open("a", encoding="utf-8") as file:
        file.write(line)
