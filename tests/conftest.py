"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing import forkserver
from pathlib import Path

import pytest
import typer
from hypothesis import settings

from corpus.documents import units

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")  # a suite that was green stays green

# some tests fork workers; a forked process hangs if its parent has used the thread pool of tokenizers
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# hundreds of processes that tests start would each compile our packages; ``tests/mutants.py`` says "mutants", because a
# changed file may have the size and the time of the compiled one
if os.environ.get("PYTHONDONTWRITEBYTECODE") != "mutants":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

typer.main.get_command = cache(typer.main.get_command)  # builds all commands, in a tenth of a second, at every call

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("MALMOI_SHARED", ROOT.parent / "shared"))

LONGEST_FILES = ("test_whole_run.py", "test_real_text.py")  # the second would else come last


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first: where files run side by side, nothing then waits for them at the end."""
    items.sort(key=lambda item: item.path.name not in LONGEST_FILES)
    for mark in ("slow", "matrix", "cluster"):
        if mark not in config.option.markexpr:
            items[:] = [item for item in items if not item.get_closest_marker(mark)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Modules and tests stay to the end: no collection of garbage need go through them again, a quarter second each."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 100)  # a full collection takes a tenth of a second; ten times fewer, as most find nothing


@pytest.fixture(scope="session", autouse=True)
def quick_pools() -> Iterator[None]:
    """Processes of ``map_units`` that a test starts are forked from one that has imported the stages and nothing else.

    Like spawned ones they share no state with the test and get their work pickled, but they start in milliseconds.
    Commands that tests run as processes spawn theirs.
    """

    def get_context(method: str) -> multiprocessing.context.ForkServerContext:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(ROOT)  # the first call starts it, and it imports from its folder
            forkserver.ensure_running()
        return multiprocessing.get_context("forkserver")

    multiprocessing.set_forkserver_preload(["corpus.run", "tokenizer.run"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(units, "get_context", get_context)
        yield


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """Path of a file in the folder of real data and reference values; skips the test where it is not present."""

    def locate(relative: str) -> Path:
        path = SHARED / relative
        if not path.exists():
            pytest.skip(f"needs {relative} in the shared data folder (set MALMOI_SHARED)")
        return path

    return locate
