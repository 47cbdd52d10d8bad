"""The sample's files and the real ones as examples, and how answers are scored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finetune.data.files import find_file
from finetune.examples import Example, Row
from finetune.generative.prompts import PROMPTS
from finetune.registry import TASKS
from launch.sample.unpack import unpack

Score = Callable[[str, list[Example], list[str]], dict[str, float]]


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], list[Example]]:
    """``(task, split)`` to examples of the embedded sample."""
    home = tmp_path_factory.mktemp("sample")
    unpack(home)

    def read(task: str, split: str) -> list[Example]:
        path = find_file(home / "klue", TASKS[task].files.of(split))
        assert path is not None
        return TASKS[task].read(path)

    return read


@pytest.fixture(scope="session")
def rows_of() -> Callable[[str, list[Example], list[str]], list[Row]]:
    """``(task, examples, answers)`` to rows of predictions, unparsed ones among them."""

    def rows(task: str, examples: list[Example], answers: list[str]) -> list[Row]:
        prompt, found = PROMPTS[task], []
        for example, answer in zip(examples, answers, strict=True):
            value: Any = prompt.parse(answer, example)
            value = prompt.unparsed(example) if value is None else value
            found.append(Row(example.guid, example.gold, value))
        return found

    return rows


@pytest.fixture(scope="session")
def score(rows_of: Callable[..., list[Row]]) -> Score:
    """``(task, examples, answers)`` to the metrics."""
    return lambda task, examples, answers: TASKS[task].score(rows_of(task, examples, answers))


@pytest.fixture
def real_files(shared: Callable[[str], Path]) -> Callable[[str], list[Path]]:
    """All labelled files of a task at hand, official and derived, train and dev; skips where there are none."""

    def find(task: str) -> list[Path]:
        names = [TASKS[task].files.of(split) for split in ("dev", "train")]
        folders = [shared("data/klue/official"), shared("data/klue/derived")]
        return [path for folder in folders for name in names if (path := find_file(folder, name)) is not None]

    return find
