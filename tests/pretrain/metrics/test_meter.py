"""Lines of the log: averages over predictions, the same after a resume and for any ranks, and warnings with causes."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.engine.world import World
from pretrain.metrics.meter import TIMING_KEYS, Meter, _readable, spread
from pretrain.model.loss import Sums

Configure = Callable[..., PretrainConfig]
ALONE = World(0, 1, torch.device("cpu"))
FRESH: tuple[int, list[float] | None] = (0, None)


def names_of_step(step: int) -> list[str]:
    return [f"0:{10 * step + row}" for row in range(8)]


def open_meter(
    folder: Path, config: PretrainConfig, resumed: tuple[int, list[float] | None] = FRESH, world: World = ALONE
) -> Meter:
    return Meter(folder / "metrics.jsonl", config, world, resumed, lambda step: 1e6, names_of_step)


def sums(*values: float) -> Sums:
    return Sums(*(torch.tensor(float(value), requires_grad=True) for value in values))


def parts_of(step: int) -> list[tuple[Sums, int, int, int]]:
    """Two uneven micro-batches of a step, different for every step: sums, predictions, tokens, pairs."""
    return [
        (sums(19.7 / step + 0.1, step % 3, 1.1 * step, 1.0), 5, 30, 2),
        (sums(7.3 + math.sin(step), 2.0, 0.3, step % 2), 3, 17, 1),
    ]


def go(
    meter: Meter, steps: Sequence[int], rank: int | None = None, norm: Callable[[int], float | None] = float
) -> None:
    """Meter some steps; a rank adds its part alone."""
    for step in steps:
        parts = parts_of(step) if rank is None else [parts_of(step)[rank]]
        for part in parts:
            meter.add(*part)
        meter.end_step(step, 1e-3 / step, norm(step), waited_s=0.25)
        if meter.due(step):
            meter.write(step)


def lines_of(folder: Path, keep_timing: bool = False) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    return [{key: line[key] for key in line if keep_timing or key not in TIMING_KEYS} for line in lines]


def test_averages_are_over_predictions_tokens_and_pairs_of_the_interval(tmp_path: Path, tiny: Configure) -> None:
    go(open_meter(tmp_path, tiny(architecture="bert", nsp=True, steps=5, log_every=3)), range(1, 6))
    for line, steps in zip(lines_of(tmp_path), ((1, 2, 3), (4, 5)), strict=True):
        parts = [part for step in steps for part in parts_of(step)]
        predictions, pairs = sum(part[1] for part in parts), sum(part[3] for part in parts)
        total = [sum(part[0][number].item() for part in parts) for number in range(4)]
        assert line["step"] == steps[-1] and line["lr"] == 1e-3 / steps[-1] and line["grad_norm"] == steps[-1]
        assert line["loss"] == pytest.approx(total[0] / predictions + total[2] / pairs)
        assert line["mlm_loss"] == pytest.approx(total[0] / predictions)
        assert line["masked_accuracy"] == pytest.approx(total[1] / predictions)
        assert line["nsp_accuracy"] == pytest.approx(total[3] / pairs)
        assert line["tokens"] == 47 * steps[-1]  # since the first step


@pytest.mark.parametrize("stops", [(1,), (3,), (2, 3, 5, 6)])
def test_a_resumed_file_equals_an_undisturbed_one(tmp_path: Path, tiny: Configure, stops: tuple[int, ...]) -> None:
    config = tiny(steps=8, log_every=3)
    for name in ("undisturbed", "resumed"):
        (tmp_path / name).mkdir()
    go(open_meter(tmp_path / "undisturbed", config), range(1, 9))
    resumed: tuple[int, list[float] | None] = (0, None)
    for last in (*stops, 8):
        meter = open_meter(tmp_path / "resumed", config, resumed)
        go(meter, range(resumed[0] + 1, last + 1))
        resumed = (last, json.loads(json.dumps(meter.state(last))))
        go(meter, range(last + 1, 9))  # what a run does behind its last checkpoint, until it is killed
        with (tmp_path / "resumed" / "metrics.jsonl").open("a") as file:
            file.write('{"step": 1')
    open_meter(tmp_path / "resumed", config, resumed)
    assert lines_of(tmp_path / "resumed") == lines_of(tmp_path / "undisturbed")
    assert len(lines_of(tmp_path / "resumed")) == 3


BAD_LINES: dict[str, bytes] = {
    "binary": b"\xff\x00\xfe\n",
    "zeros, as power loss leaves them": bytes(64),
    "zeros and a line": bytes(64) + b"\n",
    "cut in the middle of the file": b'{"step": 2, "lo\n',
    "of another program": b'{"epoch": 1, "loss": 2.5}\n',
    "no object": b"7\n",
    "a step that is none": b'{"step": true, "loss": 2.5}\n',
    "a loss that is none": b'{"step": 2, "loss": "low"}\n',
    "deep": b"[" * 100_000 + b"\n",
    "a long number": b'{"step": ' + b"9" * 5_000 + b"}\n",
}


@pytest.mark.parametrize("kind", BAD_LINES)
def test_bad_lines_are_set_aside_and_good_ones_stay(
    kind: str, tmp_path: Path, tiny: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    config, bad = tiny(steps=8, log_every=2), BAD_LINES[kind]
    meter = open_meter(tmp_path, config)
    go(meter, range(1, 9))
    path, state = tmp_path / "metrics.jsonl", (8, meter.state(8))
    good = path.read_bytes()
    lines = good.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], bad, *lines[2:]]) if bad.endswith(b"\n") else good + bad)
    (tmp_path / "metrics.jsonl.damaged").write_bytes(b"earlier\n")
    open_meter(tmp_path, config, state)
    assert path.read_bytes() == good
    assert (tmp_path / "metrics.jsonl.damaged").read_bytes() == b"earlier\n" + bad
    assert "metrics.jsonl: moved 1 damaged lines to metrics.jsonl.damaged" in caplog.text
    open_meter(tmp_path, config, state)
    assert (tmp_path / "metrics.jsonl.damaged").read_bytes() == b"earlier\n" + bad


def test_an_interval_changed_by_a_resume_is_divided_by_what_it_holds(tmp_path: Path, tiny: Configure) -> None:
    meter = open_meter(tmp_path, tiny(steps=8, log_every=4))
    go(meter, range(1, 4))
    go(open_meter(tmp_path, tiny(steps=8, log_every=5), (3, meter.state(3))), range(4, 9))
    first, second = lines_of(tmp_path)
    losses = [sum(part[0].mlm_loss.item() for part in parts_of(step)) / 8 for step in range(1, 9)]
    pairs = [sum(part[0].other_loss.item() for part in parts_of(step)) / 3 for step in range(1, 9)]
    assert first["loss"] == pytest.approx(sum(losses[:5]) / 5 + sum(pairs[:5]) / 5)
    assert second["loss"] == pytest.approx(sum(losses[5:]) / 3 + sum(pairs[5:]) / 3)


class Together:
    """Two worlds in two threads, whose sums meet."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2, timeout=20)
        self.given: dict[int, Any] = {}

    def world(self, rank: int) -> Any:
        class Part:
            size, device, is_first = 2, torch.device("cpu"), rank == 0

            def total(_, values: torch.Tensor) -> torch.Tensor:  # noqa: N805
                self.given[rank] = values
                self.barrier.wait()
                found = self.given[0] + self.given[1]
                self.barrier.wait()
                return found

            def gathered(_, thing: Any) -> list[Any]:  # noqa: N805
                self.given[rank] = thing
                self.barrier.wait()
                found = [self.given[0], self.given[1]]
                self.barrier.wait()
                return found

        return Part()


def test_two_processes_write_what_one_writes(tmp_path: Path, tiny: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 0.0)  # a nanosecond is counted
    monkeypatch.setattr("pretrain.metrics.meter.peak_flops", lambda *_: 1e12)
    config, together = tiny(steps=5, log_every=2), Together()
    folders = [tmp_path / "one", tmp_path / "two", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    go(open_meter(folders[0], config), range(1, 6))
    meters = [open_meter(folders[1 + rank], config, world=together.world(rank)) for rank in range(2)]
    threads = [threading.Thread(target=go, args=(meters[rank], range(1, 6), rank)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, two in zip(*(lines_of(folder, keep_timing=True) for folder in folders[:2]), strict=True):
        same = {key: one[key] for key in one if key not in ("memory_gib", "mfu")}
        assert {key: two[key] for key in same} == pytest.approx(same)  # data wait: mean of the two
        assert two["mfu"] == pytest.approx(one["mfu"] / 2)
    assert not list(folders[2].iterdir())
    states = [torch.tensor(meter._norms) for meter in meters]
    assert torch.equal(*states) and len(states[0]) == 5


def test_nothing_is_read_from_the_device_between_lines(tmp_path: Path, tiny: Configure) -> None:
    device = torch.device("meta")  # reading a number from there is an error
    meter = open_meter(tmp_path, tiny(steps=8, log_every=4), world=World(0, 1, device))
    for step in range(1, 4):
        meter.add(Sums(*torch.ones(4, device=device)), predictions=5, tokens=32)
        meter.end_step(step, 1e-3, torch.ones((), device=device), waited_s=0.0)
    with pytest.raises((NotImplementedError, RuntimeError)):
        meter.state(3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_metering_never_waits_for_a_gpu(tmp_path: Path, tiny: Configure) -> None:
    device = torch.device("cuda", 0)
    meter = open_meter(tmp_path, tiny(steps=8, log_every=4), world=World(0, 1, device))
    found, norm = Sums(*torch.ones(4, device=device)), torch.ones((), device=device)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step, given in ((1, norm), (2, 1.0), (3, None), (4, norm)):
            meter.add(found, predictions=5, tokens=32)
            meter.end_step(step, 1e-3, given, waited_s=0.0)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    meter.write(4)
    assert lines_of(tmp_path)[0]["loss"] == pytest.approx(0.2)


def test_speed_wait_and_time_left_follow_the_clock(
    tmp_path: Path, tiny: Configure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("pretrain.metrics.meter.peak_flops", lambda *_: 1e9)
    meter = open_meter(tmp_path, tiny(steps=3602, log_every=2))
    now[0] += 4.0
    with meter.paused():  # a measurement, a checkpoint
        now[0] += 1000.0
    go(meter, [1, 2])
    now[0] += 2.0
    go(meter, [3, 4])
    first, second = lines_of(tmp_path, keep_timing=True)
    assert (first["seconds"], first["tokens_per_second"], first["data_wait_share"]) == (4.0, round(94 / 4), 0.125)
    assert (second["seconds"], second["tokens_per_second"], second["data_wait_share"]) == (2.0, 47, 0.25)
    assert second["mfu"] == pytest.approx(47 * 1e6 / 0.001e12, abs=1e-4) and second["memory_gib"] > 0
    told = [record.getMessage() for record in caplog.records if record.name == "pretrain.metrics.meter"]
    assert told[0] == "mfu = tokens a second x 1 MFLOP a token / (1 devices x 0.001 TFLOP/s)"
    assert told[1].endswith("eta 2:00:00 (start-up included)") and "step 2/3602 loss" in told[1]
    assert told[2].endswith("eta 0:59:58") and "norm 4.00" in told[2] and "mfu 4.7 %" in told[2]
    assert "data wait 25.0 %" in told[2]


def test_what_is_not_known_is_absent(tmp_path: Path, tiny: Configure, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    go(open_meter(tmp_path, tiny(steps=2)), [1, 2], norm=lambda step: None)
    (line,) = lines_of(tmp_path, keep_timing=True)
    assert "mfu" not in line and "grad_norm" not in line and "nsp_accuracy" not in line
    assert caplog.messages[0].startswith("no MFU: the peak speed") and " norm " not in caplog.messages[-1]


@pytest.mark.parametrize("is_checkpoint", [False, True])
def test_neither_line_nor_checkpoint_holds_a_bad_loss(tmp_path: Path, tiny: Configure, is_checkpoint: bool) -> None:
    meter = open_meter(tmp_path, tiny(steps=8, log_every=6))
    go(meter, [1, 2, 3])
    meter.add(sums(math.nan, 0.0, 0.0, 0.0), predictions=5, tokens=32)
    meter.end_step(4, 2.5e-4, 7.0, waited_s=0.0)
    with pytest.raises(
        BadInput, match=r"step 4: the loss is not finite \(nan\) at learning rate 0.00025; .* rows 0:40"
    ):
        meter.state(4) if is_checkpoint else meter.write(4)
    assert not lines_of(tmp_path)


def test_what_is_usual_survives_a_resume(tmp_path: Path, tiny: Configure, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    config = tiny(steps=30, log_every=10)
    meter = open_meter(tmp_path, config)
    go(meter, range(1, 26), norm=lambda step: 1.0)
    go(
        open_meter(tmp_path, config, (25, meter.state(25))),
        range(26, 31),
        norm=lambda step: 50.0 if step == 27 else 1.0,
    )
    assert [message[:8] for message in caplog.messages] == ["step 27:"]


@pytest.mark.parametrize("bad", [math.inf, math.nan, torch.tensor(math.nan)])
def test_a_norm_that_is_not_finite_is_no_largest_norm(
    tmp_path: Path, tiny: Configure, caplog: pytest.LogCaptureFixture, bad: float
) -> None:
    caplog.set_level(logging.WARNING)
    go(open_meter(tmp_path, tiny(steps=4, log_every=4)), range(1, 5), norm=lambda step: bad if step == 2 else 1.5)
    assert lines_of(tmp_path)[0]["grad_norm"] == 1.5 and lines_of(tmp_path)[0]["skipped_steps"] == 1
    assert [message[:8] for message in caplog.messages] == ["step 2: "]


def test_held_out_figures_are_lines_of_the_same_file(tmp_path: Path, tiny: Configure) -> None:
    meter = open_meter(tmp_path, tiny(steps=4))
    go(meter, [1, 2])
    scores = {"rows": 3, "mlm_loss": 5.5, "sources": {"수필": {"mlm_loss": 5.0}}}
    meter.write_held_out(2, scores)
    assert lines_of(tmp_path)[1] == {"step": 2, "held_out": scores}
    with pytest.raises(BadInput, match="step 4: held_out/mlm_loss is not finite"):
        meter.write_held_out(4, {"mlm_loss": math.nan})


def test_the_slowest_rank_is_compared_with_the_median_of_the_others() -> None:
    assert spread([0.1, 0.3])["slowest_factor"] == 3.0
    assert spread([0.2] * 7 + [0.5]) == {
        "rank_seconds_least": 0.2, "rank_seconds_median": 0.2, "rank_seconds_most": 0.5, "slowest_rank": 7,
        "slowest_factor": 2.5,
    }  # fmt: skip
    assert spread([0.0, 0.0])["slowest_rank"] == 0


def test_eager_code_in_a_compiled_run_is_part_of_the_line(
    tmp_path: Path, tiny: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = open_meter(tmp_path, tiny(steps=2, log_every=1, compile=True))
    monkeypatch.setattr("pretrain.metrics.meter.is_partly_eager", lambda: False)
    go(meter, [1])
    monkeypatch.setattr("pretrain.metrics.meter.is_partly_eager", lambda: True)
    go(meter, [2])
    assert [line.get("eager") for line in lines_of(tmp_path, keep_timing=True)] == [None, 1]


def test_the_log_line_names_the_slowest_rank() -> None:
    line = {"step": 4, "loss": 2.0, "lr": 1e-3, "seconds": 1.0, "tokens_per_second": 9000, "data_wait_share": 0.0,
            "memory_gib": 1.0}  # fmt: skip
    assert " slowest rank 1 x 1.60 eta" in _readable(line | spread([0.1, 0.16]), PretrainConfig(), 2, False)
    assert "slowest" not in _readable(line, PretrainConfig(), 2, False)
    assert " lr 1.0e-03 skipped 3 9.0k tok/s" in _readable(line | {"skipped_steps": 3}, PretrainConfig(), 4, False)
