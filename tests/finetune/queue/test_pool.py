"""Processes that die, run out of memory, see one GPU each, or meet another command: the other jobs continue."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.queue import pool
from finetune.queue.jobs import Job, Outcome, attempt, claim, is_out_of_memory
from finetune.queue.pool import KILLED_TWICE, Slot, finish, gpu_slots

HOLD = """
import sys, time
from pathlib import Path
from finetune.queue.jobs import claim
with claim(Path(sys.argv[1])) as is_ours:
    print(is_ours, flush=True)
    time.sleep(60)
"""


def job(seed: int) -> Job:
    return Job("ynat", "model", "model", seed, FinetuneConfig())


def count(place: Path) -> int:
    """How often a job was tried, over processes."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a", encoding="utf-8") as file:
        file.write("x")
    return len(place.read_text("utf-8"))


def work(job: Job, *, parts: int, home: Path) -> dict[str, Any]:
    """By the seed: 1 dies once, 2 always, 3 has too little memory for one part, 4 for any, 5 and 6 fail."""
    tries = count(home / f"{job.seed}-{parts}")
    if job.seed == 2 or (job.seed == 1 and tries == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if job.seed == 4 or (job.seed == 3 and parts == 1):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
    if job.seed == 5:
        raise BadInput("a sentence")
    if job.seed == 6:
        raise KeyError("an error of ours")
    return {"seed": job.seed, "parts": parts, "sees": os.environ.get("CUDA_VISIBLE_DEVICES"), "process": os.getpid()}


def outcomes(jobs: Sequence[Job], home: Path, slots: Sequence[Slot]) -> dict[int, Outcome]:
    found = finish(jobs, partial(work, home=home / "tries"), home / "out", lambda job: None, slots)
    return {outcome.job.seed: outcome for outcome in found if outcome.result or outcome.failure}


@pytest.mark.parametrize("slots", [3])
def test_a_killed_process_costs_no_job_but_one_that_kills_twice(
    slots: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "START", "fork")
    found = outcomes([job(seed) for seed in (2, 1, 3, 4, 5, 6, 7)], tmp_path, [Slot({})] * slots)
    assert {seed for seed, outcome in found.items() if outcome.result} == {1, 3, 7}
    assert found[2].failure == KILLED_TWICE
    assert found[3].result and found[3].result["parts"] == 2
    assert "out of memory with half the micro-batch" in (found[4].failure or "")
    assert (found[5].failure, found[5].trace) == ("a sentence", "")
    assert "KeyError" in found[6].trace
    assert {path.name: path.read_text("utf-8") for path in (tmp_path / "tries").iterdir()} == {
        "1-1": "xx", "2-1": "xx", "3-1": "x", "3-2": "x", "4-1": "x", "4-2": "x", "5-1": "x", "6-1": "x", "7-1": "x",
    }  # fmt: skip


def test_each_gpu_has_one_process_that_sees_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-7f")
    slots = gpu_slots("CUDA_VISIBLE_DEVICES", 2)
    found = outcomes([job(seed) for seed in range(10, 16)], tmp_path, slots)  # really spawned
    seen = {outcome.result["process"]: outcome.result["sees"] for outcome in found.values() if outcome.result}
    assert len(found) == 6 and sorted(seen.values()) == ["3", "GPU-7f"]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3,GPU-7f"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert [slot.environment for slot in gpu_slots("CUDA_VISIBLE_DEVICES", 2)] == [
        {"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"},
    ]  # fmt: skip


@pytest.mark.parametrize("slots", [0, 2])
def test_a_job_of_another_command_is_waited_for_and_taken_when_that_is_killed(
    slots: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "START", "fork")
    monkeypatch.setattr(pool, "POLL_SECONDS", 0.05)
    folder = job(7).folder(tmp_path / "out")
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert other.stdout and other.stdout.readline() == "True\n"
    tries, results = 0, []
    jobs = [job(7), job(8)]
    for outcome in finish(jobs, partial(work, home=tmp_path), tmp_path / "out", lambda job: None, [Slot({})] * slots):
        if outcome.result:
            results.append(outcome.job.seed)
        else:
            tries += 1
            assert outcome.job.seed == 7 and not (tmp_path / "7-1").exists()
            if tries == 2:
                other.kill()
                other.communicate()
    assert results == [8, 7]
    assert tries >= 2


def test_a_claim_leaves_no_file_and_holds_against_a_second_in_the_same_process(tmp_path: Path) -> None:
    with claim(tmp_path) as first, claim(tmp_path) as second:
        assert (first, second) == (True, False)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_stops_all(tmp_path: Path) -> None:
    def fill(job: Job, *, parts: int) -> dict[str, Any]:
        raise OSError(28, "No space left on device")

    assert attempt(fill, job(1), tmp_path).stops is not None


def test_out_of_memory_is_known_by_its_kinds_and_words() -> None:
    class OutOfMemoryError(RuntimeError):
        """As torch's."""

    assert is_out_of_memory(OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
    assert not is_out_of_memory(ValueError("out of memory"))
