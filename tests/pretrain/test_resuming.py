"""A training that ends early resumes as if nothing had happened, or says why it cannot."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor
from transformers import AutoModelForMaskedLM, AutoTokenizer

from corpus.documents.errors import BadInput
from pretrain import loop
from pretrain.interruption import LAUNCHERS, REQUEUE_CODE, SIGNALS, Interrupted, StopRequest
from pretrain.model.loss import mean_loss
from pretrain.run import PretrainInputs
from pretrain.run import run as pretrain
from tests.pretrain.conftest import invented_documents, write_tokenizer
from tests.pretrain.runs import (
    assert_same_training,
    launch,
    lines_without_timing,
    rewind_to,
    steps_saved,
    train,
    wait_for_checkpoint,
)


@pytest.mark.slow
def test_a_killed_run_resumes_bit_for_bit(made: Path, tmp_path: Path, tiny) -> None:
    config = tiny(steps=60, checkpoint_every=7, log_every=5)  # dropout is on
    train(config, made, tmp_path / "undisturbed")
    killed = tmp_path / "killed"
    process = launch(config, made, killed)
    wait_for_checkpoint(killed, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (killed / "result.json").exists() and steps_saved(killed)[-1] < 60
    (killed / "checkpoints" / "step-000000099.partial").mkdir()
    with (killed / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step": 59, "loss": 0}\n{"step": 6')  # written after the checkpoint, the last one cut short
    train(config, made, killed)
    assert_same_training(tmp_path / "undisturbed", killed)
    assert steps_saved(killed) == steps_saved(tmp_path / "undisturbed")
    assert steps_saved(killed)[-2:] == [56, 60]


def test_finished_training_run_again_only_measures_again(made: Path, tmp_path: Path, tiny) -> None:
    train(tiny(), made, tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    (tmp_path / "twice" / "result.json").unlink()
    train(tiny(), made, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")


@pytest.mark.parametrize(("precision", "zero_stage"), [("fp32", 1), ("bf16", 2), ("fp32", 3)])
def test_every_zero_stage_resumes_bit_for_bit(
    made: Path, tmp_path: Path, tiny, precision: str, zero_stage: int
) -> None:
    config = tiny(steps=6, precision=precision, zero_stage=zero_stage, engine="deepspeed")
    train(config, made, tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    rewind_to(tmp_path / "twice", 3)
    train(config, made, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_are_noted_inside_and_not_outside(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopRequest() as stop:
        assert not stop.is_made
        signal.raise_signal(number)
        assert stop.is_made
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("variable", [*LAUNCHERS, "OF_ANOTHER_PARENT"])
def test_the_end_of_the_launcher_asks_for_an_end_and_that_of_a_shell_does_not(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    with StopRequest() as stop:
        assert not stop.is_made
        monkeypatch.setattr("os.getppid", lambda: 1)
        assert stop.is_made == (variable in LAUNCHERS)


WAITING = """
import sys, time
from pretrain import interruption
interruption.ECHO_SECONDS = float(sys.argv[1])
with interruption.StopRequest() as stop:
    print("ready", flush=True)
    while not stop.is_made:
        time.sleep(0.01)
    print("saving", flush=True)
    sys.stdin.readline()
    print("saved", flush=True)
"""


@pytest.mark.parametrize(("echo_seconds", "quits"), [(0, True), (600, False)])
def test_the_second_ctrl_c_quits_at_once_unless_it_echoes_the_first(echo_seconds: int, quits: bool) -> None:
    command = [sys.executable, "-c", WAITING, str(echo_seconds)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "saving\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate("continue\n", timeout=60)
    assert errors.startswith("\nmalmoi: saving a checkpoint after this step; Ctrl-C again quits at once\n")
    assert ("KeyboardInterrupt" in errors, process.returncode, output) == (
        (True, -signal.SIGINT, "") if quits else (False, 0, "saved\n")
    )


@pytest.mark.parametrize(
    ("micro_batch", "in_micro_batch", "saved", "every"),
    [
        pytest.param(8, 1, 5, 9, id="the-current-step-is-finished"),
        pytest.param(1, 8, 5, 9, id="so-is-one-in-its-last-micro-batch"),
        pytest.param(1, 3, 4, 9, id="a-step-of-many-micro-batches-is-given-up"),
        pytest.param(8, 1, 5, 5, id="the-step-has-its-checkpoint-already"),
    ],
)
def test_a_signal_during_step_5_saves_the_last_whole_step(
    made: Path,
    tmp_path: Path,
    tiny,
    monkeypatch: pytest.MonkeyPatch,
    micro_batch: int,
    in_micro_batch: int,
    saved: int,
    every: int,
) -> None:
    config = tiny(
        steps=9, checkpoint_every=every, log_every=2, measure_every=3, global_batch=8, micro_batch=micro_batch
    )
    calls, signalled = 0, 4 * 8 // micro_batch + in_micro_batch

    def losses(*arguments: Any) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == signalled:
            signal.raise_signal(signal.SIGTERM)
        return mean_loss(*arguments)

    monkeypatch.setattr(loop, "mean_loss", losses)
    with pytest.raises(Interrupted, match=f"after step {saved}; run the same command again to resume"):
        train(config, made, tmp_path / "stopped")
    assert calls < signalled + 2 + (8 // micro_batch) // 4, "no further step is trained"
    assert steps_saved(tmp_path / "stopped") == [saved]
    for name in ("stopped", "undisturbed"):
        train(config, made, tmp_path / name)
    assert_same_training(tmp_path / "undisturbed", tmp_path / "stopped")


@pytest.mark.slow
def test_a_signal_saves_and_leaves_and_the_same_command_resumes(made: Path, tmp_path: Path, tiny) -> None:
    config = tiny(steps=80, checkpoint_every=30, log_every=7)
    train(config, made, tmp_path / "undisturbed")
    for number in (signal.SIGTERM, signal.SIGINT):
        stopped = tmp_path / number.name
        process = launch(config, made, stopped)
        wait_for_checkpoint(stopped, process)
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
        last = steps_saved(stopped)[-1]
        assert "Traceback" not in output.decode()
        assert ("Ctrl-C again quits" in output.decode()) == (number == signal.SIGINT)
        assert (
            process.returncode == REQUEUE_CODE
            and f"after step {last}; run the same command again to resume" in output.decode()
        )
        train(config, made, stopped)
        assert_same_training(tmp_path / "undisturbed", stopped)


def test_a_damaged_checkpoint_is_passed_over(
    made: Path, tmp_path: Path, tiny, caplog: pytest.LogCaptureFixture
) -> None:
    config = tiny(steps=9)
    train(config, made, tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    weights = tmp_path / "twice" / "checkpoints" / "step-000000009" / "model" / "model.safetensors"
    damaged = bytearray(weights.read_bytes())
    damaged[-5] ^= 1
    weights.write_bytes(damaged)
    train(config, made, tmp_path / "twice")
    assert "step-000000009: model/model.safetensors is damaged; using the checkpoint before it" in caplog.text
    assert_same_training(tmp_path / "once", tmp_path / "twice")
    for step in steps_saved(tmp_path / "twice"):
        (tmp_path / "twice" / "checkpoints" / f"step-{step:09}" / "optimizer.safetensors").unlink()
    with pytest.raises(BadInput, match="no checkpoint is complete; delete the folder to start again"):
        train(config, made, tmp_path / "twice")


def test_every_checkpoint_is_a_model_and_the_best_one_stays(made: Path, tmp_path: Path, tiny) -> None:
    """A rate that grows until it destroys what was learnt: the best checkpoint is an early one."""
    config = tiny(steps=12, checkpoint_every=2, lr=2.0, warmup_share=0.99, keep_checkpoints=2)
    train(config, made, tmp_path)
    losses = {
        line["step"]: line["held_out"]["mlm_loss"] for line in lines_without_timing(tmp_path) if "held_out" in line
    }
    best = min(losses, key=losses.__getitem__)
    assert (tmp_path / "checkpoints" / "best").read_text("utf-8") == f"step-{best:09}"
    assert steps_saved(tmp_path) == sorted({best, 10, 12}) and best < 10
    for step in steps_saved(tmp_path):
        folder = tmp_path / "checkpoints" / f"step-{step:09}" / "model"
        model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        assert model(**tokenizer("윤슬은 [MASK]에서 노래했다.", return_tensors="pt")).logits.isfinite().all()


def test_settings_of_the_machine_may_change_in_between(made: Path, tmp_path: Path, tiny) -> None:
    train(tiny(steps=9, keep_checkpoints=3), made, tmp_path / "out")
    rewind_to(tmp_path / "out", 6)
    watch = {"log_every": 4, "keep_checkpoints": 1, "checkpoint_every": 2, "measure_every": 5, "measure_rows": 3}
    changed = tiny(steps=9, micro_batch=2, engine="deepspeed", zero_stage=1, **watch)
    train(changed, made, tmp_path / "out")
    assert steps_saved(tmp_path / "out")[-1] == 9
    lines = [line for line in lines_without_timing(tmp_path / "out") if "loss" in line]
    assert [line["step"] for line in lines] == [2, 4, 6, 8, 9]


def test_a_full_disk_is_seen_before_training(made: Path, tmp_path: Path, tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=50_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(
        BadInput, match=r"50.0kB free, but 2 checkpoints of [\d,]+ parameters, .* need [\d.]+[kM]B; make room or lower"
    ):
        train(tiny(), made, tmp_path)
    assert not (tmp_path / "metrics.jsonl").exists()


def test_other_settings_or_another_vocabulary_are_refused(made: Path, tmp_path: Path, tiny) -> None:
    train(tiny(steps=3), made, tmp_path / "out")
    with pytest.raises(BadInput, match=r"pretrain\.optimizer\.lr: 0\.005 -> 0\.1"):
        train(tiny(steps=3, lr=0.1), made, tmp_path / "out")
    other = write_tokenizer(tmp_path / "tokenizer", invented_documents(2))
    with pytest.raises(BadInput, match="packed with vocabulary"):
        pretrain(tiny(), PretrainInputs(made / "tokens", other), tmp_path / "out")
