"""The generated batch scripts on a real Slurm of two hosts (``tests/launch/sites/cluster.py``), through the command."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.launch.sites.cluster import Slurm, slurm, until, why_not
from tests.launch.sites.conftest import MALMOI, TINY, assert_trained_like_one_process

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

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
    if reason := why_not():
        pytest.skip(f"a real Slurm {reason}")
    try:
        with slurm(tmp_path_factory.mktemp("slurm")) as found:
            yield found
    except OSError as error:
        pytest.skip(f"a real Slurm needs network namespaces: {error}")


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
    told = malmoi(cluster, home, "launch", "slurm", "smoke", *TINY, *FINETUNE, *words, "--submit")
    return dict(re.findall(r"^(\w+)\.sbatch: job (\d+)$", told, re.MULTILINE))


def wait_for(cluster: Slurm, job: str) -> dict[str, str]:
    until(lambda: cluster.job(job)["JobState"] in DONE, LONG)
    return cluster.job(job)


def log_of(home: Path, name: str) -> str:
    found = home / "runs" / "smoke" / "launch" / "logs" / f"{name}.log"
    return found.read_text("utf-8") if found.exists() else ""


def interrupt(cluster: Slurm, job: str, log: Callable[[], str]) -> dict[str, str]:
    """SIGUSR1, as Slurm sends when the time is nearly over, until it is back in the queue; what is then told of it.

    Again and again, as processes that are being started take no notice.
    """

    def is_back() -> bool:
        cluster.ask("scancel", "--signal=USR1", job)
        return "back into the queue" in log()

    until(is_back, LONG)
    return wait_for(cluster, job)


def test_a_run_goes_through_dependencies_two_requeues_and_an_array(cluster: Slurm, home: Path, packed: Path) -> None:
    jobs = hand_in(cluster, home)
    assert list(jobs) == ["corpus", "tokenizer", "pack", "pretrain", "finetune", "report"]
    assert cluster.job(jobs["report"])["Reason"] == "Dependency"

    corpus = jobs["corpus"]
    until(lambda: "corpus    →" in log_of(home, f"corpus-{corpus}"), LONG)
    assert interrupt(cluster, corpus, lambda: log_of(home, f"corpus-{corpus}"))["JobState"] == "COMPLETED"

    pretrain = jobs["pretrain"]
    until(lambda: "pretrain  →" in log_of(home, f"pretrain-{pretrain}"), LONG)
    found = interrupt(cluster, pretrain, lambda: log_of(home, f"pretrain-{pretrain}"))
    assert (found["JobState"], found["Restarts"], found["NumNodes"]) == ("COMPLETED", "1", "2")
    log = log_of(home, f"pretrain-{pretrain}")
    assert re.search(r"ended with 1 after saving \S+/step-0000000\d\d; back into the queue", log)
    assert "going on from" in log

    assert wait_for(cluster, jobs["report"])["JobState"] == "COMPLETED"
    tasks = [log_of(home, f"finetune-{jobs['finetune']}_{number}") for number in (0, 1)]
    assert all(re.search(r"(ynat|klue-sts), model, seed 1: ", task) for task in tasks), "each task took a job"
    assert (home / "runs" / "smoke" / "report" / "report.md").is_file()

    assert_trained_like_one_process(home / "runs", packed)


def test_deepspeed_trains_on_both_hosts_in_one_job(cluster: Slurm, home: Path, packed: Path) -> None:
    shutil.copytree(packed, home / "other")
    (home / "deepspeed.yaml").write_text(SITE + "launcher: deepspeed\n")
    words = ("--site", "deepspeed.yaml", "--runs", "other", "--one-job", "--stages", "corpus,tokenizer,pack,pretrain")
    jobs = hand_in(cluster, home, *words)
    assert wait_for(cluster, jobs["all"])["JobState"] == "COMPLETED"
    told = (home / "other" / "smoke" / "launch" / "logs" / f"all-{jobs['all']}.log").read_text("utf-8")
    assert "a step is 2 processes" in told
    assert "tokens    complete, nothing to do" in told
    assert_trained_like_one_process(home / "other", packed)


def test_stages_after_a_failed_one_leave_the_queue(cluster: Slurm, home: Path) -> None:
    text = home / "text.txt"
    text.write_text("다람쥐가 도토리를 모았다.\n")
    jobs = hand_in(cluster, home, "name=fails", "corpus.inputs=text.txt", "--stages", "corpus,tokenizer")
    text.unlink()
    states = [wait_for(cluster, jobs[name])["JobState"] for name in ("corpus", "tokenizer")]
    assert states == ["FAILED", "CANCELLED"]
