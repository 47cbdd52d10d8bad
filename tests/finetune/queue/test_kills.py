"""The command or one of its processes is killed at a counted moment: nothing finished is lost, and what comes out is
that of an undisturbed run.

Processes are forked from the test, which has imported all that they need: a killed run costs no more than its jobs.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import corpus.documents.atomic_files as whole_files
from finetune import job
from finetune.config import FinetuneConfig
from finetune.queue import pool
from finetune.run import FinetuneInputs, run
from tests.finetune.conftest import build_tiny_encoder
from tests.finetune.test_run import TEXTS, write_klue

CONFIG = FinetuneConfig(
    tasks=("ynat",), seeds=(1, 2), max_train_examples=4,
    overrides={"ynat": {"epochs": 1, "batch_size": 4}},
)  # fmt: skip
MOMENTS = 20


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("kills"), CONFIG)


def finished(home: Path, config: FinetuneConfig) -> Path:
    """The folder with an encoder, data, and in ``out`` what one process trained of them."""
    build_tiny_encoder(home, TEXTS)
    write_klue(home / "klue")
    run(config, inputs(home), home / "out")
    return home


def inputs(home: Path) -> FinetuneInputs:
    return FinetuneInputs(home / "klue", {"model": str(home / "bert")})


def contents(out: Path) -> dict[str, str]:
    """Digests of all results; the time that a training took may differ, and a killed process leaves its lock file."""
    found = {}
    for path in sorted(p for p in out.rglob("[!.]*") if p.is_file() and p.suffix not in (".log", ".lock")):
        data = path.read_bytes()
        if path.name == "scores.json":
            data = json.dumps({**json.loads(data), "seconds": 0, "peak_mib": 0}).encode()
        found[str(path.relative_to(out))] = hashlib.sha256(data).hexdigest()
    return found


def kill_at(moment: int, counter: Path, victim: Callable[[], int]) -> None:
    """Kill a process at the moment of that number: before and after each training, each file and each model that is
    kept, counted over all processes; once, as the count continues."""

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def around(*given: Any, **named: Any) -> Any:
            tick()
            result = function(*given, **named)
            tick()
            return result

        return around

    def tick() -> None:
        with counter.open("ab", buffering=0) as file:
            file.write(b"x")
            number = file.tell()  # of this tick; the file's size may hold that of another thread by now
        if number == moment:
            os.kill(victim(), signal.SIGKILL)

    job.train = counted(job.train)
    job.save_or_remove = counted(job.save_or_remove)
    job.keep_best = counted(job.keep_best)
    for name in ("fsync", "fsync_tree"):
        setattr(whole_files, name, counted(getattr(whole_files, name)))


def disturb(
    home: Path, out: Path, workers: int, kills_command: bool, moment: int, config: FinetuneConfig = CONFIG
) -> bool:
    """Whether the command was killed; then it is run again, and what was finished before is not touched."""

    def work() -> None:
        command = os.getpid()  # also writes files itself
        kill_at(moment, out.with_suffix(".count"), (lambda: command) if kills_command else os.getpid)
        run(config, inputs(home), out, workers=workers)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    finished = {path: path.stat().st_mtime_ns for path in out.rglob("scores.json")}
    if process.exitcode != 0:
        assert process.exitcode == -signal.SIGKILL
        run(config, inputs(home), out, workers=workers)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert contents(out) == contents(home / "out")
    return process.exitcode != 0


KILLS = {  # how many processes train, and whether the command is killed, or the process that counts the moment
    "alone": (1, True),
    "one of two": (2, False),  # it is replaced
    "the command over two": (2, True),
}


@pytest.mark.parametrize(("who", "moment"), [("alone", 23), ("one of two", 12)])
def test_a_kill_loses_nothing_and_changes_nothing(
    who: str, moment: int, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "START", "fork")
    assert disturb(undisturbed, tmp_path / "out", *KILLS[who], moment) == (who != "one of two")


@pytest.mark.matrix
@pytest.mark.parametrize("who", KILLS)
def test_a_kill_at_any_moment_loses_nothing_and_changes_nothing(
    who: str, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "START", "fork")
    for moment in range(1, 2 * MOMENTS, 2):
        was_killed = disturb(undisturbed, tmp_path / f"{moment}", *KILLS[who], moment)
        assert was_killed or who == "one of two"  # whose moment may be one of the command itself
        assert (tmp_path / f"{moment}.count").stat().st_size >= moment
