"""What is said of a queue while it works."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from finetune.config import FinetuneConfig
from finetune.queue import progress as module
from finetune.queue.jobs import Job, Outcome
from finetune.queue.progress import Progress


def job(task: str, seed: int) -> Job:
    return Job(task, "mo\x1bdel", "model", seed, FinetuneConfig())


def outcome(job: Job, failure: str | None = None) -> Outcome:
    result = {
        "task": job.task, "model": job.model, "settings": "slow", "seed": job.seed, "headline": "accuracy", "n": 1_000,
        "scores": {"accuracy": 61.0}, "constant": {"accuracy": None}, "counting": {"accuracy": 40.25}, "seconds": 8.1,
    }  # fmt: skip
    return Outcome(job, failure=failure) if failure else Outcome(job, result)


def test_time_left_and_cost_follow_the_tasks_that_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [5.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    caplog.set_level(logging.INFO)
    jobs = [job("ynat", 1), job("ynat", 2), job("wos", 1), job("wos", 2), job("klue-nli", 1)]
    progress = Progress(jobs, finished=3, slots=2, log_file=tmp_path / "jobs.log", price=3600.0)
    assert progress.seconds_left() is None
    progress.began(jobs[0])
    progress.began(jobs[2])
    now[0] = 15.0
    progress.ended(outcome(jobs[0]))
    progress.began(jobs[1])
    now[0] = 35.0
    progress.ended(outcome(jobs[2]))
    now[0] = 37.0  # left: ynat of 10 s that runs for 22, wos of 30 s, NLI of the mean of 20 s; two at a time
    assert progress.seconds_left() == pytest.approx((0 + 30 + 20) / 2)
    progress.ended(outcome(jobs[1], failure="no memory"))
    lines = (tmp_path / "jobs.log").read_text("utf-8").splitlines()
    assert len(caplog.records) == len(lines) == 3
    assert (
        "ynat, mo⟨U+001B⟩del, slow, seed 1: accuracy 61.00 (constant undefined, counting 40.25), 1,000 examples, 8.1 s"
        in lines[0]
    )
    assert lines[0].endswith("(4 of 8 done, eta 0:00:15, cost 20.00 of about 50.00)")
    assert "failed: no memory (5 of 8 done, 1 failed, eta" in lines[2]
