"""Two processes of which one is stopped, hangs, is slow or sees no number: it is named, and the job ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pretrain.config import PretrainConfig
from pretrain.engine.world import World
from pretrain.interruption import REQUEUE_CODE
from pretrain.metrics.watchdog import HANG_NAME, Place, Watchdog, name_hanging
from tests.pretrain.faulty import BAD_AT, HANGS_AT
from tests.pretrain.runs import launch

FAULTY = Path(__file__).parents[1] / "faulty.py"
LIMIT_S = 20.0  # far longer than any place of these steps takes, on a busy machine, too
ALONE = World(0, 1, torch.device("cpu"))
Configure = Callable[..., PretrainConfig]
Start = Callable[..., list[subprocess.Popen]]


@pytest.fixture
def start(made: Path, tmp_path: Path) -> Iterator[Start]:
    """Two processes without a launcher, which would end one when the other ends."""
    processes: list[subprocess.Popen] = []

    def begin(config: PretrainConfig, fault: str) -> list[subprocess.Popen]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        for rank in ("0", "1"):
            join = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
            launcher = (sys.executable, str(FAULTY), fault)
            joined = launch(config, made, tmp_path / "out", launcher, MASTER_PORT=port, OMP_NUM_THREADS="1", **join)
            processes.append(joined)
        return processes

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def endless(tiny: Configure, **changes: Any) -> PretrainConfig:
    settings = {"steps": 100_000, "checkpoint_every": 10**6, "measure_every": 10**6, "hang_minutes": LIMIT_S / 60}
    return tiny(**settings | {"warmup_share": 0.0, "dropout": 0.0} | changes)


def lines_of(out: Path) -> list[dict[str, Any]]:
    path = out / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def wait_for_lines(out: Path, count: int, processes: list[subprocess.Popen]) -> None:
    while len(lines_of(out)) < count:
        assert all(process.poll() is None for process in processes), [p.communicate() for p in processes]
        time.sleep(0.05)


@pytest.mark.slow
def test_a_stopped_process_is_named_by_the_other(start: Start, tiny: Configure, tmp_path: Path) -> None:
    first, second = processes = start(endless(tiny), "none")
    wait_for_lines(tmp_path / "out", 2, processes)
    second.send_signal(signal.SIGSTOP)
    output, _ = first.communicate(timeout=240)
    assert first.returncode == REQUEUE_CODE, output.decode()
    (home,) = (tmp_path / "out").glob("hang-*")
    told = json.loads((home / HANG_NAME).read_text("utf-8"))
    assert f"no sign of life from rank 1 (process {second.pid} on " in told["sentence"]
    assert "the same command resumes" in told["sentence"]
    stacks = (home / "rank-00000.txt").read_text("utf-8")
    assert "rank 0 of 2" in stacks and "its rows (epoch:row): 0:" in stacks and "in train\n" in stacks
    assert not (home / "rank-00001.txt").exists()


@pytest.mark.slow
def test_the_metrics_name_a_slow_process_and_one_that_hangs_ends_the_job(
    start: Start, tiny: Configure, tmp_path: Path
) -> None:
    first, second = start(endless(tiny), "slow")
    outputs = [process.communicate(timeout=240)[0].decode() for process in (first, second)]
    assert [first.returncode, second.returncode] == [REQUEUE_CODE] * 2, outputs
    lines = lines_of(tmp_path / "out")
    assert len(lines) == (HANGS_AT - 1) // 2
    for line in lines[1:]:  # the first holds what is done once
        assert line["slowest_rank"] == 1 and line["slowest_factor"] > 1.5
        assert 0 < line["rank_seconds_least"] < line["rank_seconds_most"]
    (home,) = (tmp_path / "out").glob("hang-*")
    told = json.loads((home / HANG_NAME).read_text("utf-8"))
    assert f"rank 1 (process {second.pid} on " in told["sentence"]
    assert f"in step {HANGS_AT}, waiting for a batch" in told["sentence"]
    assert "in late\n" in (home / "rank-00001.txt").read_text("utf-8")  # where it sleeps
    assert [record["place"][0] for record in told["ranks"]] == [HANGS_AT] * 2


@pytest.mark.slow
def test_a_loss_that_is_no_number_names_rank_and_rows(start: Start, tiny: Configure, tmp_path: Path) -> None:
    """Rank 1 has 4 of the 8 rows of a step, in one micro-batch."""
    processes = start(endless(tiny), "nan")
    output = processes[0].communicate(timeout=240)[0].decode()
    assert processes[0].returncode not in (0, REQUEUE_CODE)
    (sentence,) = [line for line in output.splitlines() if "the loss is not finite" in line]
    assert f"step {BAD_AT}: " in sentence and f"on rank 1 ({socket.gethostname()})" in sentence
    from pretrain.batching.batches import TrainingBatches
    from pretrain.batching.held_out_split import split_rows
    from pretrain.batching.masking import describe_pieces
    from pretrain.pack.store import open_store, read_pieces

    made = Path(processes[0].args[-3])  # type: ignore[arg-type, index]
    store, config = open_store(made / "tokens", made / "tokenizer"), endless(tiny)
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    names = TrainingBatches(split_rows(store, config), pieces, config, 0, 2, 4).names_of_step(BAD_AT)
    assert f"rows {' '.join(names[4:])} (epoch:row)" in sentence


def place(step: int, number: int, doing: str = "updating", **more: Any) -> dict[str, Any]:
    return {"place": Place(step, number, doing), "process": ("node-a", 7, 1), "is_silent": False} | more


def test_whoever_is_behind_is_named() -> None:
    home = Path("hang-1")
    said = name_hanging({0: place(7, 3), 1: place(6, 9), 2: place(7, 3)}, 3, 900, home)
    assert said.startswith("rank 1 (process 7 on node-a) hangs: it has been in step 6, updating, for 900 s")
    said = name_hanging({0: place(7, 3), 1: place(7, 3)}, 2, 900, home)
    assert said.startswith("all 2 ranks have been in step 7")
    said = name_hanging({0: place(7, 3), 2: place(5, 1, is_silent=True)}, 3, 900, home)
    assert said.startswith("no sign of life from rank 1, rank 2 (process 7 on node-a), last seen in step 5")
    assert name_hanging({0: place(7, 3)}, 1, 900, home).startswith("the process has been in step 7")


def watched(out: Path, limit_s: float) -> tuple[Watchdog, list[int], threading.Event]:
    codes, left = list[int](), threading.Event()

    def leave(code: int) -> None:
        codes.append(code)
        left.set()

    return Watchdog(out, limit_s, ALONE, lambda step: [f"0:{step}"], leave), codes, left


def test_one_process_that_hangs_leaves_with_its_stacks_and_one_that_works_stays(tmp_path: Path) -> None:
    import faulthandler

    dog, codes, left = watched(tmp_path, 0.5)
    with dog:
        dog.at(3, "updating the weights")
        assert left.wait(60) and codes == [REQUEUE_CODE]
    faulthandler.cancel_dump_traceback_later()
    (home,) = tmp_path.glob("hang-*")
    assert "rows (epoch:row): 0:3" in (home / "rank-00000.txt").read_text("utf-8")
    for number, goes_on in enumerate(("at", "sign")):
        out = tmp_path / str(number)
        out.mkdir()
        dog, codes, left = watched(out, 30.0)
        dog._since -= 1000
        (lambda: dog.at(4, "a batch"))() if goes_on == "at" else dog.sign()
        with dog:
            assert not left.wait(3.0) and not codes
        assert json.loads((out / "ranks" / "rank-00000.json").read_text("utf-8"))["ended"]


def test_a_process_that_was_stopped_itself_leaves_the_reports_of_others(tmp_path: Path) -> None:
    import faulthandler

    dog, codes, left = watched(tmp_path, 5.0)
    dog._home.mkdir()
    (dog._home / HANG_NAME).write_text("rank 0 hangs", "utf-8")
    with dog:
        assert left.wait(60) and codes == [REQUEUE_CODE]
    faulthandler.cancel_dump_traceback_later()
    assert (dog._home / HANG_NAME).read_text("utf-8") == "rank 0 hangs"


def test_a_process_that_was_itself_stopped_for_long_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dog, codes, left = watched(tmp_path, 10.0)
    now, stopped = time.monotonic, [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now() + stopped[0])
    with dog:
        dog.at(3, "updating the weights")
        assert not left.wait(1.0)
        stopped[0] = 1000.0
        assert not left.wait(3.0) and not codes


def test_without_a_limit_nothing_is_watched_but_the_places_are_reported(tmp_path: Path) -> None:
    dog, codes, _ = watched(tmp_path, 0)
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks" / "rank-00007.json").write_text("{}", "utf-8")  # of an earlier start with more processes
    with dog:
        dog.at(3, "updating the weights")
        dog._since -= 10**6
        time.sleep(0.1)
    record = json.loads((tmp_path / "ranks" / "rank-00000.json").read_text("utf-8"))
    assert not codes and record["place"] == [3, 0, "updating the weights"]
    assert record["process"][:2] == [socket.gethostname(), os.getpid()]
    assert not (tmp_path / "ranks" / "rank-00007.json").exists()
