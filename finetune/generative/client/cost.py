"""What answers cost, and the bar that shows them come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from finetune.generative.client.ask import Asking, Question, Told, ask
from finetune.generative.client.store import Answer, busy_seconds


@contextmanager
def progress(title: str, total: int) -> Iterator[Told]:
    """A bar on a terminal: answers, tokens, how many did not come."""
    counts = {"in": 0, "out": 0, "failed": 0}
    with tqdm(total=total, desc=title, unit=" answers", disable=None) as bar:

        def told(answer: Answer) -> None:
            counts["in"] += answer.tokens_in or 0
            counts["out"] += answer.tokens_out or 0
            counts["failed"] += answer.error is not None
            bar.set_postfix(counts, refresh=False)
            bar.update()

        yield told


def ask_with_progress(questions: Sequence[Question], asking: Asking, store: Path) -> list[Answer]:
    """``ask`` with a bar on a terminal; half a surrogate pair, which no file can hold, is ``?``, as in the store."""
    with progress(asking.model, len(questions)) as told:
        answers = ask(questions, asking, store, told)
    return [replace(one, text=None if one.text is None else _writable(one.text)) for one in answers]


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def cost_of(answers: Sequence[Answer]) -> dict[str, Any]:
    """Requests, those without an answer, tokens as the server counts them (None where it never does), seconds in which
    at least one was open; over all runs that asked."""
    tokens_in = [answer.tokens_in for answer in answers if answer.tokens_in is not None]
    tokens_out = [answer.tokens_out for answer in answers if answer.tokens_out is not None]
    return {
        "requests": len(answers),
        "unanswered": sum(answer.text is None for answer in answers),
        "tokens_in": sum(tokens_in) if tokens_in else None,
        "tokens_out": sum(tokens_out) if tokens_out else None,
        "seconds": round(busy_seconds(answers), 3),
    }
