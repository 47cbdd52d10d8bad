"""Sharded checkpoints: every process writes what it holds, and the whole is there or nothing is."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from corpus.documents.errors import BadInput
from pretrain.checkpoint import slices as module
from pretrain.checkpoint.checkpoints import Checkpoints, require_disk_space
from pretrain.checkpoint.slices import SLICES, StoredTensors, write_tensors
from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import Slice
from tests.damage import HARMS
from tests.pretrain.checkpoint.test_checkpoints import FACTS, StandIn, names
from tests.pretrain.runs import TORCHRUN, assert_same_training, launch, rewind_to, steps_saved, train

SLICED = Path(__file__).with_name("sliced.py")


def even_slice(full: Tensor, rank: int, ranks: int) -> tuple[int, Tensor]:
    """Start and values of an even share of a tensor."""
    flat = full.flatten()
    start, end = (len(flat) * part // ranks for part in (rank, rank + 1))
    return start, flat[start:end]


SHAPES = {"ㄱ.weight": (5, 3), "bias": (3,), "scale": (), "wide": (1, 17)}


def drawn() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}


# --- files


def test_tensors_are_written_as_safetensors_does(tmp_path: Path) -> None:
    tensors = {**drawn(), "half": torch.arange(6).reshape(2, 3).half()}
    write_tensors(tmp_path / "ours", tensors, tensors)
    save_file({name: tensor.float() for name, tensor in tensors.items()}, tmp_path / "theirs", {"format": "pt"})
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    write_tensors(tmp_path / "few", StoredTensors([tmp_path / "ours"]), ["wide", "half"])
    assert load_file(tmp_path / "few").keys() == {"wide", "half"}


def cut(tensors: dict[str, Tensor], rank: int, ranks: int) -> list[Slice]:
    return [Slice(name, tuple(tensor.shape), *even_slice(tensor, rank, ranks)) for name, tensor in tensors.items()]


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 20])
def test_slices_of_any_number_of_files_are_the_tensors(tmp_path: Path, ranks: int) -> None:
    tensors, paths = drawn(), []
    for rank in range(ranks):
        mine = [one for one in cut(tensors, rank, ranks) if one.values.numel()]
        paths.append(tmp_path / f"{rank}")
        places = {one.key: [one.shape, one.start] for one in mine}
        save_file({one.key: one.values for one in mine}, paths[-1], {SLICES: json.dumps(places)})
    for order in (paths, paths[::-1]):
        found = StoredTensors(order)
        assert dict(found.shapes) == SHAPES and len(found) == len(tensors)
        assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    if ranks == 3:
        with pytest.raises(RuntimeError, match=r"wide: slices with 5 consecutive values, expected 17"):
            StoredTensors([paths[0], paths[2]])["wide"]


# --- processes, simulated by threads


class Together:
    """What processes say to one another; a thread each."""

    def __init__(self, size: int) -> None:
        self.size, self.said = size, [None] * size
        self.barrier = threading.Barrier(size, timeout=60)

    def gathered(self, rank: int, thing: Any) -> list[Any]:
        self.said[rank] = thing
        self.barrier.wait()
        found = list(self.said)
        self.barrier.wait()
        return found


class Rank:
    """As much of a World as a checkpoint asks for."""

    def __init__(self, rank: int, talk: Together, beside: Together) -> None:
        self.rank, self.size, self.is_first, self._talk, self._beside = rank, talk.size, rank == 0, talk, beside

    def for_thread(self) -> Rank:
        return Rank(self.rank, self._beside, self._beside)

    def gathered(self, thing: Any) -> list[Any]:
        return self._talk.gathered(self.rank, thing)

    def in_first(self, work: Callable[[], Any]) -> Any:
        found: Any = None
        if self.is_first:
            try:
                found = work()
            except (BadInput, OSError) as error:
                found = error
        found = self.gathered(found)[0]
        if isinstance(found, Exception):
            raise found
        return found


class Sharded(StandIn):
    """Cut over processes; every value is of its step."""

    def __init__(self, step: float, rank: int, ranks: int) -> None:
        self.step, self._place = step, (rank, ranks)

    def slices(self) -> Iterator[Slice]:
        for name, tensor in drawn().items():
            for kind, sign in (("model", 1), ("exp_avg", -1)):
                whole = tensor + sign * self.step
                yield Slice(f"{kind}/{name}", tuple(tensor.shape), *even_slice(whole, *self._place))


class Given:
    def restore(self, *state: Any) -> None:
        self.state = state

    def restore_scaling(self, scaling: dict[str, float]) -> None:
        self.scaling = scaling


def save_model(folder: Path, *, weights: Any, facts: dict[str, Any]) -> None:
    write_tensors(folder / "model.safetensors", weights, weights)


class Group:
    """The same call in all processes of a run."""

    def __init__(self, folders: list[Path]) -> None:
        talk, beside = Together(len(folders)), Together(len(folders))
        config = PretrainConfig(steps=100, saved={"keep_checkpoints": 2, "checkpoint_every": 10})
        self.saved: list[Any] = []
        ranks: list[Any] = [Rank(rank, talk, beside) for rank in range(len(folders))]
        for folder, rank in zip(folders, ranks, strict=True):
            self.saved.append(
                Checkpoints(folder / "checkpoints", config, dict(FACTS), rank, save_model, is_sharded=True)
            )

    def each(self, work: Callable[[int, Checkpoints], Any]) -> list[Any]:
        """What the processes gave or raised."""
        found: list[Any] = [None] * len(self.saved)

        def call(rank: int) -> None:
            try:
                found[rank] = work(rank, self.saved[rank])
            except Exception as error:
                found[rank] = error

        threads = [threading.Thread(target=call, args=(rank,)) for rank in range(len(self.saved))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def save(self, step: int) -> list[Any]:
        def both(rank: int, saved: Checkpoints) -> None:
            saved.save(Sharded(step, rank, len(self.saved)), {"step": step}, [], {"mlm_loss": 1.0})
            saved.wait()

        return self.each(both)


def files_of(checkpoint: Path) -> set[str]:
    return {str(path.relative_to(checkpoint)) for path in checkpoint.rglob("*") if path.is_file()}


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_all_wrote_is_one_checkpoint_and_one_model(tmp_path: Path, ranks: int) -> None:
    group = Group([tmp_path] * ranks)
    for step in (10, 20, 30):
        assert group.save(step) == [None] * ranks
    assert names(tmp_path) == ["10", "20", "30", "best"]  # two, and the best
    for found in group.each(lambda rank, saved: saved.find()):
        parts = {f"optimizer-{number:05}-of-{ranks:05}.safetensors" for number in range(1, ranks + 1)}
        assert files_of(found.folder) == {"loop.json", "model/model.safetensors", *parts}
        assert found.loop["files"].keys() == files_of(found.folder) - {"loop.json"}
        engine: Any = Given()
        found.restore(engine)
        weights, moments, updates = engine.state
        assert updates == 30 and weights.keys() == SHAPES.keys() and len(moments) == len(SHAPES)
        for name, tensor in drawn().items():
            assert torch.equal(weights[name], tensor + 30) and torch.equal(moments[f"exp_avg/{name}"], tensor - 30)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("number", [1, 2])
def test_a_damaged_part_makes_the_checkpoint_none(
    tmp_path: Path, harm: str, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    group = Group([tmp_path] * 2)
    group.save(10), group.save(20)
    part = f"optimizer-{number:05}-of-00002.safetensors"
    HARMS[harm](tmp_path / "checkpoints/step-000000020" / part)
    found = group.saved[0].newest()
    assert found and found.loop["step"] == 10
    assert part in caplog.text and "using the checkpoint before it" in caplog.text


def test_a_list_of_files_without_one_of_the_parts_is_refused(tmp_path: Path) -> None:
    Group([tmp_path] * 2).save(10)
    loop = json.loads((tmp_path / "checkpoints/step-000000010/loop.json").read_text("utf-8"))
    del loop["files"]["optimizer-00001-of-00002.safetensors"], loop["sha256"]
    (tmp_path / "checkpoints/step-000000010/loop.json").write_text(json.dumps(loop), "utf-8")
    with pytest.raises(BadInput, match="step or files has an invalid value"):
        Group([tmp_path]).saved[0].newest()


def test_a_process_whose_disk_is_full_ends_them_all_and_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, write = Group([tmp_path] * 3), module.write_tensors
    group.save(10)

    def full(path: Path, *given: Any) -> None:
        if path.name == "optimizer-00002-of-00003.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, *given)

    monkeypatch.setattr(module, "write_tensors", full)
    for error in group.save(20):
        assert isinstance(error, BadInput)
        assert "optimizer-00002-of-00003.safetensors: could not be written (the disk is full" in str(error)
        assert "resumes from step-000000010" in str(error)
    assert names(tmp_path) == ["10", "best"]


def test_a_bug_of_our_own_in_one_process_ends_them_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group, write = Group([tmp_path] * 2), module._write_own

    def faulty(folder: Path, slices: list[Slice], world: Any) -> Any:
        return {}["a mistake"] if world.rank else write(folder, slices, world)

    monkeypatch.setattr(module, "_write_own", faulty)
    group.each(lambda rank, saved: saved.save(Sharded(1, rank, 2), {"step": 10}, [], None))
    for saved in group.saved:
        saved._thread.join()
        assert saved.has_failed and "a mistake" in str(saved._failure)
    assert names(tmp_path) == []


@pytest.mark.parametrize("shares", ["nothing", "folders"])
def test_nodes_without_a_shared_folder_are_reported(
    tmp_path: Path, shares: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VISIBLE_WITHIN_SECONDS", 0.2)
    if shares == "folders":  # as where an older run has left the same names on both
        (tmp_path / "b/checkpoints/step-000000010.partial").mkdir(parents=True)
    for error in Group([tmp_path / "a", tmp_path / "b"]).save(10):
        assert isinstance(error, BadInput)
        assert "put the folder of the run on a file system that all nodes share" in str(error)
    assert names(tmp_path / "a") == []


def test_a_slice_of_weights_that_changed_on_its_way_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = module.joined_weights

    def harmed(folder: Path, seals: Any) -> Any:
        HARMS["one bit flipped"](folder / "weights-00002-of-00002.safetensors")
        return put(folder, seals)

    monkeypatch.setattr("pretrain.checkpoint.checkpoints.joined_weights", harmed)
    errors = Group([tmp_path] * 2).save(10)
    assert all("weights-00002-of-00002.safetensors: changed after it was written" in str(error) for error in errors)
    assert names(tmp_path) == []


def test_room_is_asked_for_the_slices_of_the_weights_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network, config = torch.nn.Linear(10, 10, bias=False), PretrainConfig(saved={"keep_checkpoints": 2})
    for free, is_sharded in ((5_200, False), (5_599, False), (5_600, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        require_disk_space(tmp_path, network, config, is_sharded=is_sharded)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5_599))
    with pytest.raises(BadInput, match="make room"):
        require_disk_space(tmp_path, network, config, is_sharded=True)


# --- trainings


def test_a_sharded_run_of_one_process_equals_the_gathered_one(
    made: Path, tmp_path: Path, tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It resumes from its own checkpoints, and a gathered run resumes from sharded ones."""
    config = tiny(steps=9, keep_checkpoints=3, log_every=1, engine="deepspeed", zero_stage=1)
    train(config, made, tmp_path / "gathered")
    monkeypatch.setattr("pretrain.run.is_sharded", lambda *_: True)
    train(config, made, tmp_path / "sharded")
    assert_same_training(tmp_path / "gathered", tmp_path / "sharded")
    for sharded, step in ((True, 6), (False, 3)):
        monkeypatch.setattr("pretrain.run.is_sharded", lambda *_, sharded=sharded: sharded)
        rewind_to(tmp_path / "sharded", step)
        train(config, made, tmp_path / "sharded")
        assert_same_training(tmp_path / "gathered", tmp_path / "sharded")


ENGINES = {
    f"zero {n}": {"name": "deepspeed", "zero_stage": n} for n in (1, 2, 3)
}  # fmt: skip
BY_ENGINE = [pytest.param(e, id=n, marks=[] if n == "zero 2" else pytest.mark.matrix) for n, e in ENGINES.items()]


@pytest.mark.slow
@pytest.mark.parametrize("engine", BY_ENGINE)
def test_slices_of_all_processes_are_the_state(tiny, engine: dict[str, Any]) -> None:
    """Of three, among which 16 rows, or the parameters of a group, cannot be dealt out evenly; compared there."""
    config = tiny(dropout=0.0, global_batch=6, micro_batch=1).replaced("engine", **engine)
    command = [*TORCHRUN[:-1], "3", str(SLICED), "compare", config.model_dump_json()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("compared ")[1].split()[0].isdigit()


@pytest.mark.matrix
def test_a_process_killed_while_it_writes_leaves_the_checkpoint_before(made: Path, tmp_path: Path, tiny) -> None:
    """And the run resumes from there on one process; engine and number change the rounding alone."""
    config = tiny(steps=9, keep_checkpoints=3, dropout=0.0).replaced("engine", name="deepspeed", zero_stage=1)
    out = tmp_path / "killed"
    process = launch(config, made, out, [*TORCHRUN, str(SLICED), "killed"], DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1")
    output, _ = process.communicate(timeout=300)
    assert process.returncode, output.decode()
    assert str(-signal.SIGKILL) in output.decode() and steps_saved(out) == [3]
    train(config.replaced("engine", name="plain"), made, out)
    train(config.replaced("engine", name="plain"), made, tmp_path / "one")
    one, many = (load_file(folder / "model/model.safetensors") for folder in (tmp_path / "one", out))
    assert max((one[name] - many[name]).abs().max() for name in one) < 1e-5
    assert not list((out / "checkpoints").glob("*.partial"))
