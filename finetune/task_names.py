"""Names of the KLUE tasks: full as in the data folders (``klue-ner``), short (``ner``), and of the paper (``dst``).

What KLUE fixes for each of them is in ``klue.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from corpus.documents.errors import BadInput

TaskName = Literal["ynat", "klue-sts", "klue-nli", "klue-ner", "klue-re", "klue-dp", "klue-mrc", "wos"]
TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
SHORT_NAMES: dict[str, TaskName] = {name.removeprefix("klue-"): name for name in TASK_NAMES}
PAPER_NAMES: dict[str, TaskName] = {"tc": "ynat", "dst": "wos"}  # where the paper uses another name


@cache
def _facts() -> dict[str, dict[str, Any]]:
    facts: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("klue.yaml").read_text("utf-8"))
    return facts


def klue_facts(task: str) -> dict[str, Any]:
    """Labels, dev scores of the paper, hyperparameters and digests of the files of a task, from ``klue.yaml``."""
    return _facts()[task]


def full_name(name: str, custom: Iterable[str] = ()) -> str:
    """The full name of a task from any of its names.

    BadInput: no such task; the message names the nearest tasks, ``custom`` tasks included.

    >>> full_name("ner"), full_name("KLUE-NER"), full_name("klue-dst")
    ('klue-ner', 'klue-ner', 'wos')
    """
    known: dict[str, str] = {**SHORT_NAMES, **PAPER_NAMES, **{other: other for other in custom}}
    short = name if name in known else short_name(name)
    if short in known:
        return known[short]
    near = sorted(get_close_matches(short, known, n=2), key=lambda other: sorted(other) != sorted(short))
    near = [known[other] for other in near] or get_close_matches(short, TASK_NAMES, n=2, cutoff=0.8)  # klu-re
    hint = f"did you mean {' or '.join(near)}? The" if near else "the"
    raise BadInput(f"{name}: no such task; {hint} tasks are {', '.join([*TASK_NAMES, *custom])}")


def short_name(name: str) -> str:
    """The name in lower case, with hyphens and without the prefix ``klue-``."""
    return name.lower().replace("_", "-").removeprefix("klue-")


def sort_key(name: str) -> tuple[int, str]:
    """Sorts KLUE tasks as in the paper, then custom tasks by name."""
    return (TASK_NAMES.index(name), "") if name in TASK_NAMES else (len(TASK_NAMES), name)
