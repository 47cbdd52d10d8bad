"""`malmoi status`: the truth about runs that are begun, at work, torn, finished, failed, killed or none at all."""

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
from launch.cluster.events import EVENTS_NAME, read_events, recorded
from launch.cluster.status.look import look_at
from launch.cluster.status.training import last_checkpoint, read_training
from pretrain.checkpoint.found import LOOP_NAME, STATE_NAMES
from tests.command import run_command

HOLDS = """
import sys, time
from pathlib import Path
from launch.cluster.events import recorded
with recorded(Path(sys.argv[1]), sys.argv[2]):
    print("at work", flush=True)
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
def at_work(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A process that works on the pretrain stage of ``tmp_path / "run"``."""
    begin(tmp_path / "run", "pretrain", steps=400)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path / "run"), "pretrain"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "at work\n"
    yield process
    process.kill()
    process.communicate()


def test_a_run_at_work_says_who_holds_it_and_how_far_it_is(
    at_work: subprocess.Popen, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    for stage in ("corpus", "tokenizer", "tokens"):
        complete(run, stage)
    lines = [line(step, seconds=40.0 if step == 20 else 20.0) for step in (10, 20, 30, 40, 100)]
    (run / "pretrain" / "metrics.jsonl").write_text("".join(lines) + '{"step": 110, "lo', "utf-8")  # torn
    write_checkpoint(run / "pretrain" / "checkpoints", 100)
    told = look_at(run)
    assert (told["state"], told["stage"]) == ("running", "pretrain")
    assert told["stages"]["pretrain"]["process"]["pid"] == at_work.pid
    training = told["training"]
    assert (training["step"], training["steps"]) == (100, 400)
    assert training["seconds_a_step"] == 2.0  # the median: neither the slow line nor the long interval moves it
    assert training["seconds_left"] == 600.0
    assert training["checkpoint"]["is_whole"] and training["checkpoint"]["step"] == 100
    shown = run_command(capfd, "status", str(run))
    assert shown.code == 0
    for words in (
        "pretrain running, 100/400 (25%), 0:10:00 left",
        "corpus, tokenizer, tokens",
        f"{at_work.pid} on ",
        "loss 5.500",
        "norm 1.25",
        "step 100, ",
        "whole by the sizes",
    ):
        assert words in shown.output, shown.output


def test_a_killed_run_is_told_from_one_at_work(at_work: subprocess.Popen, tmp_path: Path) -> None:
    at_work.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, at_work.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the table of processes
    told = look_at(tmp_path / "run")
    assert (told["state"], told["stages"]["pretrain"]["lives"]) == ("killed", False)
    for start, ago, state in (
        ("20261122-1", 10**6, "killed"),
        ("20261123-1", 0, "failed"),
    ):  # an earlier hang, and its own
        home = tmp_path / "run" / "pretrain" / f"hang-{start}"
        home.mkdir()
        record = {"time": time.time() - ago, "sentence": "rank 3 hangs"}
        (home / "hang.json").write_text(json.dumps(record), "utf-8")
        told = look_at(tmp_path / "run")
        assert told["state"] == state
    assert told["stages"]["pretrain"]["reason"] == "rank 3 hangs"


def test_a_process_of_another_host_lives_as_long_as_it_writes(tmp_path: Path) -> None:
    home = begin(tmp_path, "pretrain", steps=10)
    event = {"time": time.time(), "stage": "pretrain", "kind": "began", "process": ["node-b.invalid", 1, 1]}
    (tmp_path / EVENTS_NAME).write_text(json.dumps(event) + "\n", "utf-8")
    (home / "metrics.jsonl").write_text(line(5), "utf-8")
    assert look_at(tmp_path)["state"] == "running"
    long_ago = time.time() - 900
    for path in (home / "metrics.jsonl", home):
        os.utime(path, (long_ago, long_ago))
    told = look_at(tmp_path)
    assert told["state"] == "silent"
    assert told["stages"]["pretrain"]["sign_seconds_ago"] == pytest.approx(900, abs=60)


def test_a_failed_stage_keeps_its_sentence_and_a_later_start_forgets_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begin(tmp_path, "pretrain", steps=10)
    with pytest.raises(BadInput), recorded(tmp_path, "pretrain"):
        raise BadInput("step 7: the loss is not finite (nan) \x1b[2J")
    told = look_at(tmp_path)
    assert told["state"] == "failed" and "step 7" in told["stages"]["pretrain"]["reason"]
    shown = run_command(capfd, "status", str(tmp_path)).output
    assert "the loss is not finite" in shown and "\x1b" not in shown
    with recorded(tmp_path, "pretrain"):
        assert look_at(tmp_path)["state"] == "running"


def test_warnings_are_kept_since_the_last_start(tmp_path: Path) -> None:
    import logging

    begin(tmp_path, "pretrain", steps=10)
    for text in ("of an earlier start", "gradient norm 90 is 30 times the median"):
        with recorded(tmp_path, "pretrain"):
            logging.getLogger("pretrain.metrics.health").warning(text)
    assert look_at(tmp_path)["warnings"] == {"count": 1, "last": ["gradient norm 90 is 30 times the median"]}


def test_damage_of_the_last_checkpoint_is_seen(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path) is None
    write_checkpoint(tmp_path, 100)
    newest = write_checkpoint(tmp_path, 200)
    assert last_checkpoint(tmp_path)["is_whole"]
    name = sorted(STATE_NAMES)[0]
    (newest / name).write_bytes(b"weightz " * 100)  # the size is right
    assert last_checkpoint(tmp_path)["is_whole"]
    assert name in last_checkpoint(tmp_path, reads=True)["fault"]
    (newest / name).write_bytes(b"weights")
    assert name in last_checkpoint(tmp_path)["fault"]
    (newest / LOOP_NAME).write_text('{"step"', "utf-8")
    assert not last_checkpoint(tmp_path)["is_whole"]


@pytest.mark.parametrize(
    "torn", [b"", b"\x00" * 40, b'{"step": true, "loss": 1}\n', b"[" * 9000 + b"\n", b'{"step": 3}\n']
)
def test_whatever_the_metrics_hold_is_no_traceback(torn: bytes, tmp_path: Path) -> None:
    begin(tmp_path, "pretrain")
    (tmp_path / "pretrain" / "metrics.jsonl").write_bytes(torn)
    (tmp_path / EVENTS_NAME).write_bytes(
        torn + b'{"time": "x", "stage": 3}\n{"time": 1, "stage": "pretrain", "kind": "began"}\n'
    )
    assert len(read_events(tmp_path)) == 1
    assert read_training(tmp_path / "pretrain", None)["checkpoint"] is None
    assert look_at(tmp_path)["stage"] == "pretrain"


def test_jobs_are_counted_by_host(tmp_path: Path) -> None:
    from finetune.config import FinetuneConfig
    from finetune.queue.claims import claimed
    from finetune.queue.identity import deciding

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
    with claimed(home / "ynat" / "model" / "seed-3"):
        told = look_at(tmp_path)
    jobs = told["jobs"]
    assert (jobs["planned"], jobs["done"], jobs["left"], jobs["failed"], jobs["abandoned"]) == (6, 1, 5, 1, 1)
    assert jobs["running"] == {os.uname().nodename: 1, "node-b.invalid": 1}
    assert jobs["failures"] == {"klue-ner/model/seed-1": "out of memory"}
    assert told["state"] == "running"  # by somebody, whoever began it
    assert not (home / "ynat" / "model" / "seed-3" / "claim.lock").exists()


def test_no_run_is_one_sentence_and_an_empty_one_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.mkdir()
    other.mkdir()
    (other / "letter.txt").write_text("no run", "utf-8")
    runs = ("--runs", str(tmp_path))
    assert "nothing begun yet" in run_command(capfd, "status", "empty", *runs).output
    run_command(capfd, "status", "other", *runs).refused("not the folder of a run")
    run_command(capfd, "status", str(other / "letter.txt"), *runs).refused("not the folder of a run")
    run_command(capfd, "status", "nowhere", *runs).refused("no such run")
    run_command(capfd, "status", *runs).refused("no runs there")


def test_all_runs_stand_in_one_table_and_in_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    complete(tmp_path / "first", "corpus")
    begin(tmp_path / "second", "pretrain", steps=20)
    (tmp_path / "second" / "pretrain" / "metrics.jsonl").write_text(line(5), "utf-8")
    shown = run_command(capfd, "status", "--runs", str(tmp_path)).output
    assert "first" in shown and "complete" in shown and "5/20" in shown
    told = json.loads(run_command(capfd, "status", "--json", "--runs", str(tmp_path)).output)["runs"]
    assert [Path(one["run"]).name for one in told] == ["first", "second"]
    assert told[1]["training"]["last_line"]["loss"] == 5.5
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
        f"sys.argv = ['malmoi', 'status', '--read', {str(tmp_path / 'run')!r}]\n"
        "try: launch.cli.main()\n"
        "finally: print({'torch', 'transformers'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.endswith("set()\n"), result.stdout + result.stderr
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
