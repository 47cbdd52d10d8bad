"""Slurm, as far as one machine can show it: the batch script run by simulated Slurm commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from corpus.documents.units import map_units
from corpus.run import CorpusInputs
from finetune.config import FinetuneConfig
from finetune.run import Cluster, FinetuneInputs
from finetune.run import run as run_finetune
from launch.config import LaunchConfig
from launch.errors import LaunchError
from launch.executors import slurm
from launch.executors.mapper import engine_mapper, run_tasks
from tests.finetune.queue.test_kills import contents as finetune_contents
from tests.finetune.queue.test_kills import finished
from tests.launch.executors.conftest import build_and_pack, contents, deadly_engine, run_corpus
from tests.launch.executors.fake_slurm import install

CONFIG = LaunchConfig.model_validate(
    {
        "engine": "slurm",
        "tasks": 3,
        "at_once": 2,
        "slurm": {
            "hours": 1.5,
            "setup": "export GREETING=hello",
            "options": {"partition": "cpu", "account": "nlp"},
        },
    }
)

TINY_FINETUNING = {
    "tasks": ["ynat"], "seeds": [1, 2], "max_train_examples": 4, "precision": "fp32",
    "device": "cpu", "overrides": {"ynat": {"epochs": 1, "batch_size": 4}}, "save": "best",
}  # fmt: skip


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toy: ModuleType) -> Iterator[Path]:
    """A queue for this test only; jobs that still run at the end are killed."""
    folder = tmp_path / "slurm"
    for name in ("jobs", "scripts"):
        (folder / name).mkdir(parents=True)
    install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(folder))
    monkeypatch.setattr(slurm, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(slurm, "VISIBLE_SECONDS", 0.3)
    yield folder
    for runner in (folder / "runners").glob("*"):
        try:
            os.killpg(int(runner.name), signal.SIGKILL)
        except ProcessLookupError:
            continue


def scripts(state: Path) -> list[str]:
    return [path.read_text("utf-8") for path in sorted((state / "scripts").iterdir())]


def test_a_job_array_gives_the_files_and_counts_of_the_embedded_map(
    toy: ModuleType, words: list[str], tmp_path: Path, state: Path
) -> None:
    expected = map_units(toy.shout, words, tmp_path / "embedded")
    assert engine_mapper(CONFIG)(toy.shout, words, tmp_path / "units") == expected
    assert contents(tmp_path / "units") == contents(tmp_path / "embedded")
    assert len(list((tmp_path / "units").glob("engine-*/logs/*.out"))) == 3


@pytest.mark.slow
def test_a_job_array_with_a_killed_task_leaves_the_bytes_of_the_embedded_corpus_stage(
    toy: ModuleType, texts: CorpusInputs, tmp_path: Path
) -> None:
    embedded = run_corpus(tmp_path / "embedded", texts)
    engine, flags = deadly_engine(toy.lose_the_task, tmp_path / "engine", engine_mapper(CONFIG), {"clean"})
    assert run_corpus(tmp_path / "engine", texts, map_units=engine) == embedded
    assert [flag.name for flag in flags.iterdir()] == ["clean"]


@pytest.mark.slow
def test_job_arrays_with_killed_tasks_leave_the_bytes_of_the_embedded_tokenizer_and_pack(
    toy: ModuleType, shards: Path, built_here: dict[str, bytes], tmp_path: Path, state: Path
) -> None:
    maps = {"count", "fit", "tokens-units"}
    engine, flags = deadly_engine(toy.lose_the_task, tmp_path / "run", engine_mapper(CONFIG), maps)
    assert build_and_pack(tmp_path / "run", shards, engine) == built_here
    assert {flag.name for flag in flags.iterdir()} == maps
    assert len(scripts(state)) == 9  # four are rounds of pruning; the merges stay here


@pytest.mark.slow
def test_a_killed_task_of_fine_tuning_is_tried_again(toy: ModuleType, tmp_path: Path, state: Path) -> None:
    config = FinetuneConfig.model_validate(TINY_FINETUNING)
    home = finished(tmp_path / "home", config)
    flag = tmp_path / "flag"

    def run_once_killed(work: Any, most: int, folder: Path) -> list[str]:
        return run_tasks(CONFIG, partial(toy.lose_the_task, work=work, flag=flag), most, folder)

    inputs = FinetuneInputs(home / "klue", {"model": str(home / "bert")})
    run_finetune(config, inputs, tmp_path / "out", cluster=Cluster(run_once_killed, 1, 0))
    assert flag.exists() and len(scripts(state)) == 1
    assert finetune_contents(tmp_path / "out") == finetune_contents(home / "out")


def test_the_batch_script_has_the_options_of_the_settings(
    toy: ModuleType, words: list[str], tmp_path: Path, state: Path
) -> None:
    """``export=NONE`` hides the script's environment from srun; without PATH, the tasks would fail."""
    slurm_settings = CONFIG.slurm.model_copy(update={"options": CONFIG.slurm.options | {"export": "NONE"}})
    engine_mapper(CONFIG.model_copy(update={"slurm": slurm_settings}))(toy.shout, words, tmp_path / "units")
    [script] = scripts(state)
    options = dict(re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", script, re.MULTILINE))
    [home] = (tmp_path / "units").glob("engine-*")
    assert options == {
        "cpus-per-task": "1",
        "mem-per-cpu": "2G",
        "nodes": "1",
        "partition": "cpu",
        "job-name": f"malmoi-{home.name.removeprefix('engine-')}",
        "time": "01:30:00",
        "output": f"{home}/logs/%A_%a.out",
        "array": "0-2%2",
        "account": "nlp",
        "export": "NONE",
        "requeue": "",
    }
    assert "\nexport GREETING=hello\nexport PATH=" in script


def test_without_a_partition_the_cluster_chooses(
    toy: ModuleType, words: list[str], tmp_path: Path, state: Path
) -> None:
    engine_mapper(LaunchConfig(engine="slurm"))(toy.shout, words, tmp_path / "units")
    assert "#SBATCH --partition" not in scripts(state)[0]


def test_killed_work_is_tried_again_in_the_same_task(
    toy: ModuleType, words: list[str], tmp_path: Path, state: Path
) -> None:
    work = partial(toy.die_once, deadly="나무", flag=tmp_path / "flag")
    expected = map_units(toy.shout, words, tmp_path / "embedded")
    assert engine_mapper(CONFIG)(work, words, tmp_path / "units") == expected
    assert contents(tmp_path / "units") == contents(tmp_path / "embedded")
    assert len(scripts(state)) == 1
    logs = "".join(path.read_text("utf-8") for path in (tmp_path / "units").glob("engine-*/logs/*.out"))
    assert "attempt 1 of 3: the task was killed, usually too little memory" in logs


def test_work_that_is_always_killed_is_an_error_that_names_memory_and_the_logs(
    toy: ModuleType, words: list[str], tmp_path: Path, state: Path
) -> None:
    work = partial(toy.die_always, deadly="나무", flag=tmp_path / "tries")
    message = r"unit 1: its process ended with SIGKILL \(usually too little memory: raise .*mem_gb.*logs: .*logs"
    with pytest.raises(LaunchError, match=message):
        engine_mapper(CONFIG)(work, words, tmp_path / "units")
    assert (tmp_path / "tries").read_text() == "xxx"
    with pytest.raises(LaunchError, match="SIGKILL"):
        engine_mapper(CONFIG)(work, words, tmp_path / "units")
    assert "--array=0-1%2" in scripts(state)[1]  # units 1 and 4, the share of the killed task


def test_a_task_that_is_always_lost_is_an_error_that_names_memory(
    toy: ModuleType, words: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    work = partial(toy.lose_the_task, work=toy.shout, flag=tmp_path / "flag", number=2)
    message = r"task 2: Slurm ended it as FAILED \(.*too little memory: raise launch\.mem_gb_per_cpu\)\); logs"
    with pytest.raises(LaunchError, match=message):
        engine_mapper(CONFIG)(work, words, tmp_path / "units")
    assert "task 2: Slurm ended it as FAILED" in caplog.text, "while other tasks may still run"


def test_bad_input_passes_through(toy: ModuleType, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^다리: cannot be read; remove it$"):
        engine_mapper(CONFIG)(partial(toy.reject, bad=["다리"]), words, tmp_path / "units")


def test_text_of_a_failing_document_reaches_no_file_and_no_message(
    toy: ModuleType, words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LaunchError, match=r"unit 0: ValueError at .*toy_work\.py:\d+ \(stumble\)") as caught:
        engine_mapper(CONFIG)(toy.stumble, words, tmp_path / "units")
    printed = "".join(capfd.readouterr())
    paths = (tmp_path / "units").rglob("*")
    logs = [path.read_bytes() for path in paths if path.is_file() and path.name != "plan.pickle"]
    assert any(b"unit 0 failed" in log for log in logs)
    assert not any(b"010-0000" in log for log in [*logs, str(caught.value).encode(), printed.encode()])


CONDUCTOR = """
import sys
from functools import partial
from pathlib import Path
from toy_work import wait_for
from launch.config import LaunchConfig
from launch.executors import slurm
from launch.executors.mapper import engine_mapper
slurm.POLL_SECONDS = 0.1
config = LaunchConfig.model_validate_json(sys.argv[1])
print(engine_mapper(config)(partial(wait_for, gate=Path(sys.argv[3])), sys.argv[4:], Path(sys.argv[2])))
"""


def test_a_command_started_again_waits_for_the_job_it_had_submitted(
    toy: ModuleType, words: list[str], tmp_path: Path, state: Path
) -> None:
    gate, folder = tmp_path / "gate", tmp_path / "units"
    arguments = [sys.executable, "-c", CONDUCTOR, CONFIG.model_dump_json(), str(folder), str(gate), *words]
    with subprocess.Popen(arguments) as first:
        deadline = time.monotonic() + 60
        while not list((state / "jobs").iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        first.kill()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as second:
        time.sleep(1)
        gate.touch()
        printed, _ = second.communicate(timeout=120)
    assert printed.strip() == str(map_units(toy.shout, words, tmp_path / "embedded"))
    assert contents(folder) == contents(tmp_path / "embedded")
    assert len(scripts(state)) == 1


def test_tasks_are_limited_by_the_number_of_jobs_and_clean_up(toy: ModuleType, tmp_path: Path, state: Path) -> None:
    config = CONFIG.model_copy(update={"gpus_per_task": 2, "tasks": 5})
    assert run_tasks(config, partial(toy.serve, folder=tmp_path), 2, tmp_path / "plans") == []
    assert len(list(tmp_path.glob("served-*"))) == 2
    assert not (tmp_path / "plans").exists()
    [script] = scripts(state)
    assert "--array=0-1%2" in script and "--gpus=2" in script


def test_a_failed_task_is_reported_with_its_log_and_the_others_continue(
    toy: ModuleType, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "MAX_ATTEMPTS", 1)
    [problem] = run_tasks(CONFIG, partial(toy.serve, folder=tmp_path, deadly=1), 9, tmp_path / "plans")
    assert re.fullmatch(r"task 1: its process ended with SIGKILL .*\(logs: (.*)\)", problem)
    assert len(list(Path(problem.split("logs: ")[1][:-1]).glob("*.out"))) == 3
    assert {path.name for path in tmp_path.glob("served-*")} == {"served-0", "served-2"}


def test_a_silent_controller_is_asked_again(toy: ModuleType, words: list[str], tmp_path: Path, state: Path) -> None:
    (state / "down").write_text("5")
    assert len(engine_mapper(CONFIG)(toy.shout, words, tmp_path / "units")) == len(words)
    assert (state / "down").read_text() == "0"


def test_a_controller_that_never_answers_is_an_error(
    toy: ModuleType, words: list[str], tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "UNREACHABLE_SECONDS", 0.5)
    (state / "down").write_text("1000")
    with pytest.raises(LaunchError, match="squeue does not answer; job malmoi-"):
        engine_mapper(CONFIG)(toy.shout, words, tmp_path / "units")


def test_a_refused_job_is_an_error(toy: ModuleType, words: list[str], tmp_path: Path, state: Path) -> None:
    (state / "refuse").touch()
    with pytest.raises(LaunchError, match=r"sbatch rejected .*job\.sbatch with status 1"):
        engine_mapper(CONFIG)(toy.shout, words, tmp_path / "units")


def test_unsafe_paths_are_refused(toy: ModuleType, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="Slurm scripts cannot hold ' ' in a path"):
        engine_mapper(CONFIG)(toy.shout, words, tmp_path / "two words")


def test_the_engine_does_not_start_inside_a_job_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "0")
    with pytest.raises(LaunchError, match="cannot start inside a task of a job array"):
        engine_mapper(CONFIG)


def test_a_machine_without_slurm_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="needs the command sbatch"):
        engine_mapper(CONFIG)


@pytest.mark.parametrize(
    ("hours", "limit"), [(1.5, "01:30:00"), (24, "24:00:00"), (0.001, "00:01:00"), (100, "100:00:00")]
)
def test_time_limits_are_spelled_as_slurm_reads_them(hours: float, limit: str) -> None:
    assert slurm.time_limit(hours) == limit
