"""`malmoi status` of runs that are running, finished, failed, killed, damaged or absent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.atomic_files import file_digest, with_digest
from corpus.documents.errors import BadInput
from launch.cluster.events import EVENTS_NAME, read_events, record_events
from launch.cluster.status import _progress, last_checkpoint, read_run, read_training
from pretrain.checkpoint.find_checkpoint import LOOP_NAME, STATE_NAMES
from tests.command import run_command

HOLDS = """
import sys, time
from pathlib import Path
from launch.cluster.events import record_events
with record_events(Path(sys.argv[1]), sys.argv[2]):
    print("running", flush=True)
    time.sleep(600)
"""


def begin(run: Path, stage: str, **settings: Any) -> Path:
    """A stage as ``launch.manifest.start`` leaves it."""
    (run / stage).mkdir(parents=True)
    head = {"stage": stage, "settings": settings, "inputs": {}, "key": "sha256:0"}
    (run / stage / "started.json").write_text(json.dumps(head), "utf-8")
    return run / stage


def complete(run: Path, stage: str) -> Path:
    (run / stage).mkdir(parents=True)
    head = {"stage": stage, "settings": {}, "inputs": {}, "key": "sha256:0", "seconds": 4.0}
    (run / stage / "manifest.json").write_text(json.dumps(head), "utf-8")
    return run / stage


def line(step: int, **more: Any) -> str:
    figures = {"step": step, "loss": 5.5, "lr": 1e-3, "tokens": 10 * step, "grad_norm": 1.25, "seconds": 20.0}
    return json.dumps(figures | {"tokens_per_second": 2600} | more) + "\n"


def write_checkpoint(folder: Path, step: int) -> Path:
    home = folder / f"step-{step:09}"
    for name in STATE_NAMES:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(b"weights " * 100)
    loop = {"step": step, "progress": {}, "meter": [], "held_out": None, "scaling": {}, "config": {}}
    loop |= {"vocabulary_sha256": "0", "files": {name: file_digest(home / name) for name in STATE_NAMES}}
    (home / LOOP_NAME).write_text(json.dumps(with_digest(loop)), "utf-8")
    return home


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A process thrunnings on the pretrain stage of ``tmp_path / "run"``."""
    begin(tmp_path / "run", "pretrain", steps=400)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path / "run"), "pretrain"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "running\n"
    yield process
    process.kill()
    process.communicate()


def test_a_running_run_is_shown_with_its_process_and_progress(
    running: subprocess.Popen, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    for stage in ("corpus", "tokenizer", "tokens"):
        complete(run, stage)
    lines = [line(step, seconds=40.0 if step == 20 else 20.0) for step in (10, 20, 30, 40, 100)]
    (run / "pretrain" / "metrics.jsonl").write_text("".join(lines) + '{"step": 110, "lo', "utf-8")  # torn
    write_checkpoint(run / "pretrain" / "checkpoints", 100)
    state = read_run(run)
    assert (state["state"], state["stage"]) == ("running", "pretrain")
    assert state["stages"]["pretrain"]["process"]["pid"] == running.pid
    training = state["training"]
    assert (training["step"], training["steps"]) == (100, 400)
    assert training["seconds_per_step"] == 2.0  # the median: neither the slow line nor the long interval moves it
    assert training["seconds_left"] == 600.0
    assert training["checkpoint"]["is_complete"] and training["checkpoint"]["step"] == 100
    output = run_command(capfd, "status", str(run))
    assert output.code == 0
    for words in (
        "pretrain running, 100/400 (25%), 0:10:00 left",
        "corpus, tokenizer, tokens",
        f"{running.pid} on ",
        "loss 5.500",
        "norm 1.25",
        "step 100, ",
        "complete (file sizes checked)",
    ):
        assert words in output.output, output.output
    assert "eager" not in output.output
    with (run / "pretrain" / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n" + line(120, eager=1))
    assert "eager and slower: torch stopped compiling" in run_command(capfd, "status", str(run)).output


def test_a_killed_run_differs_from_a_running_one(running: subprocess.Popen, tmp_path: Path) -> None:
    running.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)  # a zombie: dead, but still in the process table
    state = read_run(tmp_path / "run")
    assert (state["state"], state["stages"]["pretrain"]["is_alive"]) == ("killed", False)
    for start, ago, expected in (
        ("20261122-1", 10**6, "killed"),
        ("20261123-1", 0, "failed"),
    ):  # an earlier hang, and its own
        home = tmp_path / "run" / "pretrain" / f"hang-{start}"
        home.mkdir()
        record = {"time": time.time() - ago, "sentence": "rank 3 hangs"}
        (home / "hang.json").write_text(json.dumps(record), "utf-8")
        state = read_run(tmp_path / "run")
        assert state["state"] == expected
    assert state["stages"]["pretrain"]["reason"] == "rank 3 hangs"


def test_a_process_of_another_host_is_running_while_it_writes(tmp_path: Path) -> None:
    home = begin(tmp_path, "pretrain", steps=10)
    event = {"time": time.time(), "stage": "pretrain", "kind": "began", "process": ["node-b.invalid", 1, 1]}
    (tmp_path / EVENTS_NAME).write_text(json.dumps(event) + "\n", "utf-8")
    (home / "metrics.jsonl").write_text(line(5), "utf-8")
    assert read_run(tmp_path)["state"] == "running"
    long_ago = time.time() - 900
    for path in (home / "metrics.jsonl", home):
        os.utime(path, (long_ago, long_ago))
    state = read_run(tmp_path)
    assert state["state"] == "silent"
    assert state["stages"]["pretrain"]["activity_seconds_ago"] == pytest.approx(900, abs=60)


def test_a_failed_stage_shows_its_message_until_the_next_start(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begin(tmp_path, "pretrain", steps=10)
    with pytest.raises(BadInput), record_events(tmp_path, "pretrain"):
        raise BadInput("step 7: the loss is not finite (nan) \x1b[2J")
    state = read_run(tmp_path)
    assert state["state"] == "failed" and "step 7" in state["stages"]["pretrain"]["reason"]
    output = run_command(capfd, "status", str(tmp_path)).output
    assert "the loss is not finite" in output and "\x1b" not in output
    with record_events(tmp_path, "pretrain"):
        assert read_run(tmp_path)["state"] == "running"


def test_a_damaged_checkpoint_is_detected(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path) is None
    write_checkpoint(tmp_path, 100)
    newest = write_checkpoint(tmp_path, 200)
    assert last_checkpoint(tmp_path)["is_complete"]
    name = sorted(STATE_NAMES)[0]
    (newest / name).write_bytes(b"weights")
    assert name in last_checkpoint(tmp_path)["error"]
    (newest / LOOP_NAME).write_text('{"step"', "utf-8")
    assert not last_checkpoint(tmp_path)["is_complete"]


@pytest.mark.parametrize(
    "torn", [b"", b"\x00" * 40, b'{"step": true, "loss": 1}\n', b"[" * 9000 + b"\n", b'{"step": 3}\n']
)
def test_damaged_metrics_raise_no_error(torn: bytes, tmp_path: Path) -> None:
    begin(tmp_path, "pretrain")
    (tmp_path / "pretrain" / "metrics.jsonl").write_bytes(torn)
    (tmp_path / EVENTS_NAME).write_bytes(
        torn + b'{"time": "x", "stage": 3}\n{"time": 1, "stage": "pretrain", "kind": "began"}\n'
    )
    assert len(read_events(tmp_path)) == 1
    assert read_training(tmp_path / "pretrain", None)["checkpoint"] is None
    assert read_run(tmp_path)["stage"] == "pretrain"


def test_jobs_are_counted_by_host(tmp_path: Path) -> None:
    from finetune.config import FinetuneConfig
    from finetune.queue.jobs import claim, deciding

    config = FinetuneConfig.model_validate({"tasks": ["ynat", "klue-ner"], "models": ["model"], "seeds": [1, 2, 3]})
    home = begin(tmp_path, "finetune", **config.model_dump(mode="json"))
    done = home / "ynat" / "model" / "seed-1"
    done.mkdir(parents=True)
    result = {"task": "ynat", "model": "model", "seed": 1, "recipe": deciding("ynat", config, "fp32", {})}
    (done / "scores.json").write_text(json.dumps(result), "utf-8")
    other = home / "ynat" / "model" / "seed-2"  # a result of settings that are no longer asked for
    other.mkdir()
    (other / "scores.json").write_text(json.dumps(result | {"recipe": {"overrides": {"lr": 1.0}}}), "utf-8")
    failed = home / "klue-ner" / "model" / "seed-1"
    failed.mkdir(parents=True)
    (failed / "failed.json").write_text('{"failure": "out of memory"}', "utf-8")
    killed = home / "klue-ner" / "model" / "seed-2"
    killed.mkdir()
    (killed / "claim.lock").write_text(json.dumps([os.uname().nodename, os.getpid(), 1]), "utf-8")  # another process
    elsewhere = home / "klue-ner" / "model" / "seed-3"
    elsewhere.mkdir()
    (elsewhere / "claim.lock").write_text('["node-b.invalid", 7, 1]', "utf-8")
    with claim(home / "ynat" / "model" / "seed-3"):
        state = read_run(tmp_path)
    jobs = state["jobs"]
    assert (jobs["planned"], jobs["done"], jobs["left"], jobs["failed"], jobs["abandoned"]) == (6, 1, 5, 1, 1)
    assert jobs["running"] == {os.uname().nodename: 1, "node-b.invalid": 1}
    assert jobs["failures"] == {"klue-ner/model/seed-1": "out of memory"}
    assert state["state"] == "running"  # by another process than the one that started it
    assert not (home / "ynat" / "model" / "seed-3" / "claim.lock").exists()


def test_a_folder_without_a_run_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.mkdir()
    other.mkdir()
    (other / "letter.txt").write_text("no run", "utf-8")
    runs = ("--runs", str(tmp_path))
    assert "nothing started yet" in run_command(capfd, "status", "empty", *runs).output
    run_command(capfd, "status", "other", *runs).refused("not the folder of a run")
    run_command(capfd, "status", str(other / "letter.txt"), *runs).refused("not the folder of a run")
    run_command(capfd, "status", "nowhere", *runs).refused("no such run")
    run_command(capfd, "status", *runs).refused("no runs in this folder")


def test_a_run_is_found_by_its_name_next_to_a_folder_of_that_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    complete(tmp_path / "runs" / "company", "corpus")
    (tmp_path / "company").mkdir()
    (tmp_path / "company" / "letter.txt").write_text("text", "utf-8")
    for name in ("company", "runs/company", str(tmp_path / "runs" / "company"), "runs/company/corpus"):
        assert "complete up to corpus" in run_command(capfd, "status", name).output
    run_command(capfd, "status", "company", "--runs", "elsewhere").refused("not the folder of a run")


def test_all_runs_are_listed_as_table_and_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    complete(tmp_path / "first", "corpus")
    begin(tmp_path / "second", "pretrain", steps=20)
    (tmp_path / "second" / "pretrain" / "metrics.jsonl").write_text(line(5), "utf-8")
    output = run_command(capfd, "status", "--runs", str(tmp_path)).output
    assert "first" in output and "complete" in output and "5/20" in output
    state = json.loads(run_command(capfd, "status", "--json", "--runs", str(tmp_path)).output)["runs"]
    assert [Path(one["run"]).name for one in state] == ["first", "second"]
    assert state[1]["training"]["last_line"]["loss"] == 5.5
    assert run_command(capfd, "status", str(tmp_path / "second" / "pretrain")).output.startswith(
        str(tmp_path / "second:")[:-1]
    )


def test_status_writes_nothing_and_imports_no_torch(tmp_path: Path) -> None:
    begin(tmp_path / "run", "pretrain", steps=4)
    begin(tmp_path / "run", "finetune", tasks=["ynat"])
    write_checkpoint(tmp_path / "run" / "pretrain" / "checkpoints", 2)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    code = (
        "import sys, launch.cli\n"
        f"sys.argv = ['malmoi', 'status', {str(tmp_path / 'run')!r}]\n"
        "try: launch.cli.main()\n"
        "finally: print({'torch', 'transformers'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.endswith("set()\n"), result.stdout + result.stderr
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(
    ("stage", "shown"), [("pretrain", "3/4 (75%)"), ("finetune", "1/2 jobs"), ("corpus", "units 5 of")]
)
def test_progress_is_that_of_the_current_stage(stage: str, shown: str) -> None:
    progress = {"title": "units", "done": 5, "total": 9, "is_bytes": False, "seconds": 1.0, "seconds_left": None}
    state = {
        "stage": stage, "state": "running", "training": {"step": 3, "steps": 4}, "jobs": {"planned": 2, "done": 1},
        "stages": {"corpus": {"progress": progress}},
    }  # fmt: skip
    assert (_progress(state) or "").startswith(shown)


def test_the_last_measurement_is_shown(tmp_path: Path) -> None:
    lines = [line(step, held_out={"loss": loss, "sources": {}}) for step, loss in ((10, 5.0), (20, 4.0), (30, 3.0))]
    (tmp_path / "metrics.jsonl").write_text("".join([*lines, line(40)]), "utf-8")
    assert read_training(tmp_path, 100)["held_out"] == {"step": 30, "loss": 3.0}
