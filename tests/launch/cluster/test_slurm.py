"""The generated batch scripts on a real Slurm of two hosts (``slurm_cluster.py``)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.hosts import until
from tests.launch.cluster.conftest import MALMOI, TINY, assert_trained_like_one_process, losses
from tests.launch.cluster.slurm_cluster import Slurm, slurm

pytestmark = pytest.mark.cluster

SITE = """
environment: {DS_ACCELERATOR: cpu}
prepare: {cpus: 2, hours: 0.5}
pretrain: {nodes: 2, gpus: 1, cpus: 1, hours: 0.5}
finetune: {tasks: 2, gpus: 0, cpus: 1, hours: 0.5}
"""
FINETUNE = (
    "finetune.tasks=ynat,klue-sts", "finetune.max_train_examples=32",
    "finetune.overrides={ynat: {epochs: 1}, klue-sts: {epochs: 1}}",
)  # fmt: skip
LONG = 600  # seconds that a job may take on a machine that others use, too
DONE = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with slurm(tmp_path_factory.mktemp("slurm")) as found:
        yield found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a user on the login node is in."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "site.yaml").write_text(SITE)
    return folder


def malmoi(cluster: Slurm, home: Path, *words: str) -> str:
    done = subprocess.run([MALMOI, *words], env=cluster.environment, cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def hand_in(cluster: Slurm, home: Path, *words: str) -> dict[str, str]:
    """Numbers of the jobs by stage."""
    output = malmoi(cluster, home, "launch", "slurm", "smoke", *TINY, *FINETUNE, *words, "--submit")
    return dict(re.findall(r"^(\w+)\.sbatch: job (\d+)$", output, re.MULTILINE))


def wait_for(cluster: Slurm, job: str) -> dict[str, str]:
    until(lambda: cluster.job(job)["JobState"] in DONE, LONG)
    return cluster.job(job)


def log_of(home: Path, name: str) -> str:
    found = home / "runs" / "smoke" / "launch" / "logs" / f"{name}.log"
    return found.read_text("utf-8") if found.exists() else ""


def interrupt(cluster: Slurm, job: str, log: Callable[[], str], times: int = 1) -> dict[str, str]:
    """SIGUSR1, as Slurm sends when the time is nearly over, until it is back in the queue; what is then output of it.

    Again and again, as processes that are being started take no notice.
    """

    def is_back() -> bool:
        if log().count("requeued") == times:
            return True
        cluster.ask("scancel", "--signal=USR1", job)
        return False

    until(is_back, times * LONG)
    return wait_for(cluster, job)


@pytest.mark.slow
def test_a_run_goes_through_dependencies_three_requeues_and_an_array(cluster: Slurm, home: Path, packed: Path) -> None:
    jobs = hand_in(cluster, home)
    assert list(jobs) == ["corpus", "tokenizer", "pack", "pretrain", "finetune", "report"]
    assert cluster.job(jobs["report"])["Reason"] == "Dependency"

    corpus = jobs["corpus"]
    until(lambda: "corpus    →" in log_of(home, f"corpus-{corpus}"), LONG)
    assert interrupt(cluster, corpus, lambda: log_of(home, f"corpus-{corpus}"))["JobState"] == "COMPLETED"

    pretrain = jobs["pretrain"]
    until(lambda: "pretrain  →" in log_of(home, f"pretrain-{pretrain}"), LONG)
    found = interrupt(cluster, pretrain, lambda: log_of(home, f"pretrain-{pretrain}"), times=2)
    assert (found["JobState"], found["Restarts"], found["NumNodes"]) == ("COMPLETED", "2", "2")
    log = log_of(home, f"pretrain-{pretrain}")
    assert re.search(r"ended with 1 after saving \S+/step-0000000\d\d; requeued", log)
    assert "resuming from" in log

    assert wait_for(cluster, jobs["report"])["JobState"] == "COMPLETED"
    tasks = [log_of(home, f"finetune-{jobs['finetune']}_{number}") for number in (0, 1)]
    assert all(re.search(r"(ynat|klue-sts), model, seed 1: ", task) for task in tasks), "each task took a job"
    assert (home / "runs" / "smoke" / "report" / "report.md").is_file()

    assert_trained_like_one_process(home / "runs", packed)


@pytest.mark.slow
def test_deepspeed_trains_on_both_hosts_in_one_job(cluster: Slurm, home: Path, packed: Path) -> None:
    shutil.copytree(packed, home / "other")
    (home / "deepspeed.yaml").write_text(SITE + "launcher: deepspeed\n")
    words = ("--site", "deepspeed.yaml", "--runs", "other", "--one-job", "--stages", "corpus,tokenizer,pack,pretrain")
    jobs = hand_in(cluster, home, *words)
    assert wait_for(cluster, jobs["all"])["JobState"] == "COMPLETED"
    output = (home / "other" / "smoke" / "launch" / "logs" / f"all-{jobs['all']}.log").read_text("utf-8")
    assert "a step is 2 processes" in output
    assert "tokens    complete, nothing to do" in output
    assert_trained_like_one_process(home / "other", packed)


@pytest.mark.slow
def test_a_job_ended_by_the_watchdog_is_requeued_without_a_checkpoint(cluster: Slurm, home: Path, packed: Path) -> None:
    shutil.copytree(packed, home / "hangs")
    steps = ("pretrain.steps=300", "pretrain.watch.hang_minutes=0.5")
    jobs = hand_in(cluster, home, *steps, "--runs", "hangs", "--stages", "pretrain")
    until(lambda: len(losses(home / "hangs")) >= 20, LONG)
    os.kill(cluster.hosts[1].processes("-u -m launch pretrain")[0], signal.SIGSTOP)
    assert len(losses(home / "hangs")) < 300
    found = wait_for(cluster, jobs["pretrain"])
    assert (found["JobState"], found["Restarts"]) == ("COMPLETED", "1")
    log = (home / "hangs" / "smoke" / "launch" / "logs" / f"pretrain-{jobs['pretrain']}.log").read_text("utf-8")
    assert "no sign of life from rank 1" in log
    assert re.search(r"pretrain: the watchdog ended it \(code \d+\), see \S+/hang-\S+; requeued", log)
    shutil.copytree(packed, home / "whole")
    malmoi(cluster, home, "pretrain", "smoke", *TINY, *steps, "--runs", "whole")
    assert losses(home / "hangs") == pytest.approx(losses(home / "whole"), abs=1e-4)


def test_two_commands_queue_a_model_of_the_paper(cluster: Slurm, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("다람쥐가 도토리를 모았다.\n" * 50)
    (tmp_path / "site.yaml").write_text(malmoi(cluster, tmp_path, "launch", "site"))
    given = ("corpus.inputs=text.txt", "finetune.data=malmoi:sample")
    output = malmoi(cluster, tmp_path, "launch", "slurm", "klue-roberta-base", *given, "--submit")
    jobs = dict(re.findall(r"^(\w+)\.sbatch: job (\d+)$", output, re.MULTILINE))
    assert list(jobs) == ["corpus", "tokenizer", "pack", "pretrain", "finetune", "report"]
    queued = {name: cluster.job(job) for name, job in jobs.items()}
    cluster.ask("scancel", *jobs.values())
    assert {job["Partition"] for job in queued.values()} == {"main"}
    assert queued["corpus"]["JobState"] in ("PENDING", "RUNNING")
    assert [name for name, job in queued.items() if "(unfulfilled)" in job["Dependency"]] == list(jobs)[1:]
    assert "gpu" in queued["pretrain"]["TresPerNode"]


@pytest.mark.slow
def test_a_job_without_an_exported_environment_has_its_own_options(cluster: Slurm, tmp_path: Path) -> None:
    site = "slurm: {export: NONE}\nprepare: {cpus: 1, hours: 0.5, options: {nice: '7'}}\n"
    (tmp_path / "site.yaml").write_text(site)
    output = malmoi(cluster, tmp_path, "launch", "slurm", "smoke", *TINY, "--stages", "corpus", "--submit")
    job = wait_for(cluster, output.split("job ")[1].split()[0])
    assert job["JobState"] == "COMPLETED", log_of(tmp_path, f"corpus-{job['JobId']}")
    assert int(job["Nice"]) == 7


@pytest.mark.slow
def test_the_engine_tries_a_killed_task_again_without_an_exported_environment(cluster: Slurm, tmp_path: Path) -> None:
    settings = ("engine=slurm", "tasks=1", "mem_gb_per_cpu=1", "slurm={hours: 0.5, options: {export: NONE}}")
    command = [MALMOI, "corpus", "smoke", *TINY, *(f"launch.{setting}" for setting in settings)]

    def tasks() -> list[psutil.Process]:
        numbers = [number for host in cluster.hosts for number in host.processes("-m launch.executors.task")]
        found = [psutil.Process(number) for number in numbers]
        return [task for task in found if "python" in task.name() and task.cmdline()[-1] != "work"]

    with subprocess.Popen(command, env=cluster.environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        until(lambda: bool(tasks()), LONG)
        killed = tasks()[0]
        killed.kill()
        _, errors = running.communicate(timeout=LONG)
    assert running.returncode == 0, errors
    assert (tmp_path / "runs" / "smoke" / "corpus" / "manifest.json").is_file()


@pytest.mark.slow
def test_stages_after_a_failed_one_leave_the_queue(cluster: Slurm, home: Path) -> None:
    text = home / "text.txt"
    text.write_text("다람쥐가 도토리를 모았다.\n")
    jobs = hand_in(cluster, home, "name=fails", "corpus.inputs=text.txt", "--stages", "corpus,tokenizer")
    text.unlink()
    states = [wait_for(cluster, jobs[name])["JobState"] for name in ("corpus", "tokenizer")]
    assert states == ["FAILED", "CANCELLED"]
