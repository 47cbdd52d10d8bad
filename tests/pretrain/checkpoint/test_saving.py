"""Checkpoints are written in the background: training waits only for the copy, and failures are reported at once."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from corpus.documents.errors import BadInput
from pretrain.checkpoint import checkpoints as module
from pretrain.checkpoint.checkpoints import Checkpoints
from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import on_host
from pretrain.interruption import Interrupted
from pretrain.metrics.meter import Meter
from tests.pretrain.checkpoint.test_checkpoints import StandIn, checkpoints_in, names
from tests.pretrain.runs import assert_same_training, lines_without_timing, rewind_to, steps_saved, train
from tests.test_durability import no_file_above


class Gate:
    """Holds every writer at the optimizer's file until it is opened."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.reached, self.open, self._save = threading.Event(), threading.Event(), module.save_file
        patch.setattr(module, "save_file", self.save)

    def save(self, *given: Any) -> None:
        self.reached.set()
        assert self.open.wait(60)
        self._save(*given)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    found = Gate(monkeypatch)
    yield found
    found.open.set()


class Live(StandIn):
    """An engine that trains on after it has given copies of its tensors."""

    def __init__(self) -> None:
        self.weights, self.moments = {"weight": torch.ones(3)}, {"average": torch.ones(3)}

    def state(self, keep: bool) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        weights, moments = ({name: on_host(x) for name, x in part.items()} for part in (self.weights, self.moments))
        return weights, moments


def test_a_checkpoint_holds_its_step_though_training_went_on_while_it_was_written(tmp_path: Path, gate: Gate) -> None:
    saved, engine = checkpoints_in(tmp_path), Live()
    progress = {"step": 10}
    saved.save(engine, progress, [1.0], {"mlm_loss": 1.0})
    assert gate.reached.wait(60)
    engine.weights["weight"].zero_()
    engine.moments["average"].zero_()
    engine.step = 7.0
    assert names(tmp_path) == ["10.partial"]  # not there before it is whole
    assert saved.find() is None and not saved.has_failed
    gate.open.set()
    saved.wait()
    found = saved.find()
    assert found and found.weights()["weight"].tolist() == [1.0] * 3
    found.restore(restored := Restored())  # type: ignore[arg-type]
    assert restored.moments["average"].tolist() == [1.0] * 3 and found.loop["scaling"] == {"scale": 2.0}


class Restored(StandIn):
    def restore(self, weights: Any, moments: Any, step: int) -> None:
        self.moments = moments


def test_one_checkpoint_is_written_at_a_time(tmp_path: Path, gate: Gate) -> None:
    saved = checkpoints_in(tmp_path)
    saved.save(StandIn(), {"step": 10}, [], None)
    assert gate.reached.wait(60)
    second = threading.Thread(target=saved.save, args=(StandIn(), {"step": 20}, [], None))
    second.start()
    second.join(0.05)
    assert second.is_alive()  # waits for the first
    gate.open.set()
    second.join(60)
    saved.wait()
    assert names(tmp_path) == ["10", "20"]


@pytest.fixture(scope="module")
def undisturbed(made: Path, tmp_path_factory: pytest.TempPathFactory, tiny) -> tuple[PretrainConfig, Path]:
    config, out = tiny(steps=9, log_every=1, keep_checkpoints=3), tmp_path_factory.mktemp("run") / "undisturbed"
    train(config, made, out)
    return config, out


def test_steps_do_not_wait_for_the_writer(
    undisturbed: tuple[PretrainConfig, Path], made: Path, tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first checkpoint's writer is held until two more steps are done: training that waited would never end.

    And what it wrote then is the state of its own step: resuming from there gives the same bytes.
    """
    config, whole = undisturbed
    open_after(5, gate, monkeypatch)
    train(config, made, tmp_path / "beside")
    assert_same_training(whole, tmp_path / "beside")
    rewind_to(tmp_path / "beside", 3)
    train(config, made, tmp_path / "beside")
    assert_same_training(whole, tmp_path / "beside")


def open_after(step: int, gate: Gate, patch: pytest.MonkeyPatch) -> None:
    """Open the gate when the line of a step is written."""
    write = Meter.write

    def writes(meter: Meter, at: int) -> None:
        write(meter, at)
        if at == step:
            gate.open.set()

    patch.setattr(Meter, "write", writes)


def full(folder: Path, **given: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / "model.safetensors"))


def over_quota(folder: Path, **given: Any) -> None:
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


def in_words(folder: Path, **given: Any) -> None:
    raise RuntimeError("Error while serializing: I/O error: File too large (os error 27)")


def read_only(folder: Path, **given: Any) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder / "config.json"))


FULL = r"could not be written \(the disk is full, or a quota or the limit of ulimit -f is reached\)"
FAILURES: dict[Callable[..., None], str] = {
    full: rf"model\.safetensors: {FULL}; make room and run the same command again, which resumes from step-000000010",
    over_quota: rf"step-000000020: {FULL}; make room and run .* from step-000000010",
    in_words: rf"step-000000020: {FULL}; make room and run .* from step-000000010",
    read_only: r"config\.json: could not be written \(permission denied\); check the folder .* from step-000000010",
}


@pytest.mark.parametrize("fails", FAILURES)
def test_a_checkpoint_that_cannot_be_written_ends_the_run_and_leaves_the_one_before(
    fails: Callable[..., None], tmp_path: Path
) -> None:
    saved = checkpoints_in(tmp_path)
    saved.save(StandIn(), {"step": 10}, [], None)
    saved.wait()
    saved._save_model = fails
    saved.save(StandIn(), {"step": 20}, [], None)
    assert saved._thread is not None
    saved._thread.join()
    assert saved.has_failed
    for ask in (saved.wait, lambda: saved.save(StandIn(), {"step": 30}, [], None)):
        with pytest.raises(BadInput, match=FAILURES[fails]):
            ask()
    assert names(tmp_path) == ["10"]  # nothing half written takes room
    found = checkpoints_in(tmp_path).find()
    assert found and found.loop["step"] == 10


def test_errors_of_our_own_come_out_as_they_are(tmp_path: Path) -> None:
    saved = checkpoints_in(tmp_path)
    saved._save_model = lambda folder, **given: {}["a mistake"]
    with pytest.raises(KeyError, match="a mistake"), saved.finishing():
        saved.save(StandIn(), {"step": 10}, [], None)


@pytest.mark.parametrize("error", [BadInput("diverged"), Interrupted("stopped")])
def test_what_is_being_written_is_finished_when_training_ends_by_an_error(
    error: Exception, tmp_path: Path, gate: Gate
) -> None:
    saved = checkpoints_in(tmp_path)
    with pytest.raises(type(error)), saved.finishing():
        saved.save(StandIn(), {"step": 10}, [], None)
        assert gate.reached.wait(60)
        threading.Timer(0.05, gate.open.set).start()
        raise error
    assert names(tmp_path) == ["10"]


class AtOnce:
    """In place of a thread: what it would do is done when it starts."""

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...], **named: Any) -> None:
        self.start, self.join = lambda: target(*args), lambda: None


def test_a_limit_on_file_sizes_is_one_sentence_before_the_next_step_and_with_more_room_the_run_resumes(
    undisturbed: tuple[PretrainConfig, Path], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config, whole), limited = undisturbed, tmp_path / "limited"
    shutil.copytree(whole, limited)
    rewind_to(limited, 3)
    size = (limited / "checkpoints/step-000000003/model/model.safetensors").stat().st_size
    sentence = rf"step-000000006\.partial/model/model\.safetensors: {FULL}; make room .* from step-000000003"
    monkeypatch.setattr(module, "Thread", AtOnce)
    with no_file_above(size // 2), pytest.raises(BadInput, match=sentence):
        train(config, made, limited)
    assert steps_saved(limited) == [3] and lines_without_timing(limited)[-1]["step"] == 6
    train(config, made, limited)
    assert_same_training(whole, limited)


def test_all_processes_learn_of_a_failure_of_the_first(tmp_path: Path) -> None:
    """The second has nothing to write and no thread; the word comes from the first."""
    told: list[Any] = []

    class First:
        rank, size, is_first = 0, 2, True

        def in_first(self, work: Callable[[], Any]) -> Any:
            try:
                return work()
            except BadInput as error:
                told.append(error)
                raise

    saved: Any = Checkpoints(
        tmp_path / "checkpoints",
        checkpoints_in(tmp_path)._config,
        {"vocabulary_sha256": "x"},
        First(),
        full,  # type: ignore[arg-type]
    )
    with pytest.raises(BadInput, match="resumes from the start"), saved.finishing():
        saved.save(StandIn(), {"step": 10}, [], None)
    assert len(told) == 1
