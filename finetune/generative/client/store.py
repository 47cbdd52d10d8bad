"""Answers that were paid for, one line of JSON each, kept before the next question is asked.

```
{"key": digest of model, messages and settings, "id": …, "text": …, "stop": "stop", "tokens_in": 61, "tokens_out": 3,
 "began": seconds since 1970, "seconds": 0.41, "attempts": 1}
```
What a killed run leaves the next one does not ask again, with any limit or order. A line that a kill has cut goes.
Inspect's own cache is not used: it holds pickles, and this project reads none.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from corpus.documents.locks import hold_lock

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one question.

    Fields:
        text: as the model gave it, keys hidden; None where no answer came, and ``error`` says why.
        stop: why it ended, as Inspect says: "stop", "max_tokens", "content_filter" (the server refused) …
        tokens_in, tokens_out: as the provider counts; None where it does not.
        began: seconds since 1970; seconds: until it was there, failed attempts included.
        is_new: whether this call asked for it.
    """

    id: str
    text: str | None
    stop: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    began: float = 0.0
    seconds: float = 0.0
    attempts: int = 1
    error: str | None = None
    is_new: bool = True


KEPT = tuple(field.name for field in fields(Answer) if field.name not in ("error", "is_new"))


def digest_of(*parts: Any) -> str:
    """What answers are found by."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Store:
    """Answers by key. What is added is on the disk when ``add`` returns: no kill and no power cut loses it."""

    def __init__(self, answers: dict[str, Answer], descriptor: int) -> None:
        self.answers = answers
        self._descriptor = descriptor

    def add(self, key: str, answer: Answer) -> None:
        """Keep an answer."""
        self.answers[key] = replace(answer, is_new=False)
        kept = {name: value for name, value in asdict(answer).items() if name in KEPT}
        line = json.dumps({"key": key, **kept}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]
        os.fsync(self._descriptor)


@contextmanager
def open_store(path: Path) -> Iterator[Store]:
    """The answers of a file, made where there is none; ``BadInput`` while another command adds to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(path.with_name(path.name + ".lock")) as is_ours:
        if not is_ours:
            raise BadInput(f"{path}: another command is at work on these answers; wait for it or give another --out")
        answers = dict(_read(path))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            yield Store(answers, descriptor)
        finally:
            os.close(descriptor)


def _read(path: Path) -> Iterator[tuple[str, Answer]]:
    content = path.read_bytes() if path.is_file() else b""
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    lines = whole.splitlines()
    found = [pair for line in lines if (pair := _answer_of(line)) is not None]
    if left := len(lines) - len(found):
        log.warning("%s: %d of %d lines are no answers; their questions are asked again", path, left, len(lines))
    yield from found


def _answer_of(line: bytes) -> tuple[str, Answer] | None:
    try:
        record: Mapping[str, Any] = json.loads(line)
        answer = Answer(**{name: record[name] for name in KEPT}, is_new=False)
        key = record["key"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return (key, answer) if all(isinstance(text, str) for text in (key, answer.text, answer.id)) else None


def busy_seconds(answers: Iterable[Answer]) -> float:
    """Time in which at least one question was open, over all commands that asked; of answers side by side once."""
    total, end = 0.0, 0.0
    for began, until in sorted((one.began, one.began + one.seconds) for one in answers):
        total += max(0.0, until - max(began, end))
        end = max(end, until)
    return total
