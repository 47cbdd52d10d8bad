"""Tasks that share one queue: the results are those of one process, whatever dies, fails or comes late."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from finetune import job
from finetune.config import FinetuneConfig
from finetune.queue import pool
from finetune.run import FAILED_NAME, Cluster, FinetuneInputs, run
from tests.finetune.queue.test_kills import contents, finished

CONFIG = FinetuneConfig(
    tasks=("ynat",), seeds=(1, 2), max_train_examples=4, precision="fp32", device="cpu",
    overrides={"ynat": {"epochs": 1, "batch_size": 4}}, save="best",
)  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("cluster"), CONFIG)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "START", "fork")
    monkeypatch.setattr(pool, "POLL_SECONDS", 0.05)


def inputs(home: Path) -> FinetuneInputs:
    return FinetuneInputs(home / "klue", {"model": str(home / "bert")})


def cluster_of(tasks: int, lead: Callable[[int], None] = lambda number: None) -> Cluster:
    """Tasks as processes of this machine, each of which calls ``lead`` first."""

    def work_in(work: Callable[[int, Path], dict[str, Any]], number: int, folder: Path) -> None:
        lead(number)
        work(number, folder)

    def run_tasks(work: Callable[[int, Path], dict[str, Any]], most: int, folder: Path) -> list[str]:
        fork = multiprocessing.get_context("fork")
        processes = [fork.Process(target=work_in, args=(work, n, folder)) for n in range(min(tasks, most))]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        return [f"task {n}: {process.exitcode}" for n, process in enumerate(processes) if process.exitcode]

    return Cluster(run_tasks, 1, 0)


def test_tasks_give_the_files_of_one_process_and_a_second_command_trains_nothing(home: Path, tmp_path: Path) -> None:
    counts = run(CONFIG, inputs(home), tmp_path / "out", cluster=cluster_of(2))
    assert contents(tmp_path / "out") == contents(home / "out")
    assert run(CONFIG, inputs(home), tmp_path / "out", cluster=Cluster(_never, 1, 0)) == counts


def _never(*given: Any) -> list[str]:
    raise AssertionError("all is done")


def test_jobs_of_tasks_that_died_are_handed_in_once_more(home: Path, tmp_path: Path) -> None:
    def die_once(number: int) -> None:
        """The first task at all, and its process, in the middle of a training."""
        flag = tmp_path / f"flag-{number}"
        train = job.train

        def deadly(*given: Any, **named: Any) -> Any:
            if not flag.exists():
                flag.touch()
                os.kill(os.getppid(), signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            return train(*given, **named)

        job.train = deadly

    run(CONFIG, inputs(home), tmp_path / "out", cluster=cluster_of(1, die_once))
    assert (tmp_path / "flag-0").exists()
    assert contents(tmp_path / "out") == contents(home / "out")


def test_a_job_that_fails_is_tried_by_one_task_reported_and_tried_again_by_the_next_command(
    home: Path, tmp_path: Path
) -> None:
    def fail(number: int) -> None:
        train = job.train

        def failing(task: Any, model: Any, features: Any, settings: Any, seed: int, *rest: Any, **named: Any) -> Any:
            if seed == wrong:
                with (tmp_path / "tries").open("a", encoding="utf-8") as file:
                    file.write("x")
                raise RuntimeError("loss is not a number")
            return train(task, model, features, settings, seed, *rest, **named)

        job.train = failing

    wrong = job.seed_everything(2, "ynat")
    with pytest.raises(BadInput, match=r"1 of 2 jobs failed; .*\n  ynat, model, seed 2: loss is not a number$"):
        run(CONFIG, inputs(home), tmp_path / "out", cluster=cluster_of(2, fail))
    assert (tmp_path / "tries").read_text("utf-8") == "x"
    told = json.loads((tmp_path / "out/ynat/model/seed-2" / FAILED_NAME).read_text("utf-8"))
    assert "RuntimeError" in told["trace"]
    run(CONFIG, inputs(home), tmp_path / "out")
    assert contents(tmp_path / "out") == contents(home / "out")


def test_a_cluster_is_asked_for_a_precision_by_name(home: Path, tmp_path: Path) -> None:
    auto = CONFIG.model_copy(update={"precision": "auto"})
    with pytest.raises(BadInput, match=r"finetune.precision=auto asks the machine that trains"):
        run(auto, inputs(home), tmp_path / "out", cluster=cluster_of(1))
