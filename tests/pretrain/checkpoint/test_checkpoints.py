"""Checkpoints by themselves: which are kept, found and refused, with a fake engine."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from corpus.documents.atomic_files import with_digest
from corpus.documents.errors import BadInput
from pretrain.checkpoint import checkpoints as module
from pretrain.checkpoint.checkpoints import Checkpoints, require_disk_space
from pretrain.checkpoint.find_checkpoint import newest_checkpoint, read_checkpoint
from pretrain.config import PretrainConfig
from pretrain.engine.world import World
from tests.damage import HARMS, flip_bits

ALONE = World(0, 1, torch.device("cpu"))
FACTS = {"vocabulary_sha256": "sha256:윤슬"}


class StandIn:
    """As much of an engine as a checkpoint asks for; its one weight is the step."""

    step = 0.0

    def state(self, keep: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return {"weight": torch.tensor([self.step])}, {"average": torch.tensor([-self.step])}

    def scaling(self) -> dict[str, float]:
        return {"scale": 2.0 + self.step}

    def restore(self, weights: dict[str, Tensor], moments: dict[str, Tensor], step: int) -> None:
        self.restored = (weights["weight"].item(), moments["average"].item(), step)

    def restore_scaling(self, scaling: dict[str, float]) -> None:
        self.scale = scaling["scale"]


def save_model(folder: Path, *, weights: dict[str, Tensor], facts: dict[str, Any]) -> None:
    save_file(weights, folder / "model.safetensors")
    (folder / "facts.json").write_text(json.dumps(facts), "utf-8")


def checkpoints_in(folder: Path, steps: int = 100, keep: int = 2) -> Checkpoints:
    config = PretrainConfig(steps=steps, saved={"keep_checkpoints": keep, "checkpoint_every": 10})
    return Checkpoints(folder / "checkpoints", config, dict(FACTS), ALONE, save_model)


def save(found: Checkpoints, *losses: float | None) -> None:
    """A checkpoint after each 10 steps, with that loss on held-out text."""
    for number, loss in enumerate(losses, 1):
        engine = StandIn()
        engine.step = 10.0 * number
        held_out = None if loss is None else {"mlm_loss": loss}
        found.save(engine, {"step": 10 * number}, [float(number)], held_out)
        found.wait()


def names(folder: Path) -> list[str]:
    return sorted(path.name.removeprefix("step-0000000") for path in (folder / "checkpoints").iterdir())


@pytest.mark.parametrize(
    ("losses", "kept", "best"),
    [
        ((3.0, 2.0, 1.0, 0.5), ["30", "40"], "step-000000040"),
        ((3.0, 1.0, 2.0, 2.5), ["20", "30", "40"], "step-000000020"),
        ((3.0, 1.0, 1.0, 1.0, 1.0), ["20", "40", "50"], "step-000000020"),  # the earlier one of equals
        ((3.0, None, None, None), ["10", "30", "40"], "step-000000010"),
    ],
)
def test_the_newest_and_the_best_stay(
    tmp_path: Path, losses: tuple[float | None, ...], kept: list[str], best: str
) -> None:
    save(checkpoints_in(tmp_path), *losses)
    assert names(tmp_path) == [*kept, "best"]
    assert (tmp_path / "checkpoints/best").read_text("utf-8") == best


def test_without_held_out_text_there_is_no_best(tmp_path: Path) -> None:
    save(checkpoints_in(tmp_path / "made" / "for it"), None, None, None)
    assert names(tmp_path / "made" / "for it") == ["20", "30"]


def test_the_newest_is_found_and_given_to_the_engine(tmp_path: Path) -> None:
    saved = checkpoints_in(tmp_path)
    assert saved.find() is None
    save(saved, 2.0, 1.0)
    found, engine = saved.find(), StandIn()
    assert found
    found.restore(engine)
    assert (engine.restored, engine.scale) == ((20.0, -20.0, 20), 22.0)
    assert found.loop["meter"] == [2.0] and found.loop["progress"] == {"step": 20}
    assert found.loop["held_out"] == {"mlm_loss": 1.0}
    facts = json.loads((found.folder / "model/facts.json").read_text("utf-8"))
    assert facts == FACTS | {"step": 20, "held_out": {"mlm_loss": 1.0}}


FILES = ("optimizer.safetensors", "model/model.safetensors", "model/facts.json", "loop.json")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    tmp_path: Path, file: str, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    saved = checkpoints_in(tmp_path, keep=3)
    save(saved, 1.0, 2.0, 0.5)
    HARMS[harm](tmp_path / "checkpoints/step-000000030" / file)
    found = saved.find()
    assert found and found.loop["step"] == 20
    (told,) = caplog.messages
    assert "step-000000030" in told and file in told and told.endswith("; using the checkpoint before it")
    assert newest_checkpoint(tmp_path / "checkpoints") == found


@pytest.mark.parametrize("harm", HARMS)
def test_saving_continues_next_to_damaged_checkpoints(tmp_path: Path, harm: str) -> None:
    """Neither a loop.json that cannot be read nor a folder of somebody else counts among those that are kept."""
    saved = checkpoints_in(tmp_path)
    save(saved, 1.0, 0.25)
    HARMS[harm](tmp_path / "checkpoints/step-000000020/loop.json")
    (tmp_path / "checkpoints/best").write_bytes(b"\xff")
    for name in ("step-000000005", "step-000000099"):
        (tmp_path / "checkpoints" / name).mkdir()
    (tmp_path / "checkpoints/step-000000098").write_text("a file")
    engine = StandIn()
    saved.save(engine, {"step": 25}, [], {"mlm_loss": 3.0})
    saved.wait()
    assert names(tmp_path) == ["10", "20", "25", "98", "99", "best"]
    assert (tmp_path / "checkpoints/best").read_text("utf-8") == "step-000000010"
    newest = newest_checkpoint(tmp_path / "checkpoints")
    assert newest and newest.loop["step"] == 25 and read_checkpoint(tmp_path / "checkpoints/step-000000010")


def test_flipped_bits_of_loop_json_are_seen(tmp_path: Path) -> None:
    save(checkpoints_in(tmp_path), 1.0)
    folder = tmp_path / "checkpoints/step-000000010"
    for _ in flip_bits(folder / "loop.json", every=11):
        with pytest.raises(BadInput, match=r"loop\.json"):
            read_checkpoint(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [("step", "10"), ("step", 20), ("meter", {}), ("held_out", []), ("config", None), ("files", {}), ("files", 3)],
)
def test_what_no_checkpoint_says_of_itself_is_refused_by_its_key(tmp_path: Path, key: str, value: object) -> None:
    save(checkpoints_in(tmp_path), 1.0)
    path = tmp_path / "checkpoints/step-000000010/loop.json"
    loop = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(with_digest({**loop, key: value})), "utf-8")
    with pytest.raises(BadInput, match=rf"loop\.json: .*{key}.* has an invalid value"):
        read_checkpoint(path.parent)


def test_where_every_checkpoint_is_damaged_nothing_is_trained_over_them(tmp_path: Path) -> None:
    saved = checkpoints_in(tmp_path)
    save(saved, None)
    (tmp_path / "checkpoints/step-000000010/optimizer.safetensors").unlink()
    with pytest.raises(BadInput, match="no checkpoint is complete"):
        saved.find()


def test_leftovers_of_a_killed_save_are_cleared(tmp_path: Path) -> None:
    save(checkpoints_in(tmp_path), None)
    (tmp_path / "checkpoints/step-000000020.partial/model").mkdir(parents=True)
    (tmp_path / "checkpoints/best.partial").write_text("step-00")
    assert checkpoints_in(tmp_path).find()
    assert names(tmp_path) == ["10"]


def test_other_settings_and_another_vocabulary_are_refused(tmp_path: Path) -> None:
    save(checkpoints_in(tmp_path), None)
    with pytest.raises(BadInput, match=r"pretrain\.steps: 100 -> 200"):
        checkpoints_in(tmp_path, steps=200).find()
    other = Checkpoints(
        tmp_path / "checkpoints", checkpoints_in(tmp_path)._config, {"vocabulary_sha256": "x"}, ALONE, save_model
    )
    with pytest.raises(BadInput, match="another vocabulary"):
        other.find()


def test_a_setting_newer_than_the_checkpoint_had_its_default(tmp_path: Path) -> None:
    saved = checkpoints_in(tmp_path)
    save(saved, None)
    path = tmp_path / "checkpoints/step-000000010/loop.json"
    loop = json.loads(path.read_text("utf-8"))
    del loop["config"]["optimizer"]["lr"], loop["sha256"]
    path.write_text(json.dumps(with_digest(loop)), "utf-8")
    assert saved.find()
    config = PretrainConfig(steps=100, saved=saved._config.saved, optimizer={"lr": 0.5})
    with pytest.raises(BadInput, match=r"pretrain\.optimizer\.lr: None -> 0\.5"):
        Checkpoints(tmp_path / "checkpoints", config, dict(FACTS), ALONE, save_model).find()


def test_checkpoints_are_due_at_their_distance_and_after_the_last_step(tmp_path: Path) -> None:
    saved = checkpoints_in(tmp_path, steps=25)
    assert [step for step in range(1, 26) if saved.due(step)] == [10, 20, 25]


def test_room_is_asked_for_what_the_training_will_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kept, the best, one being written and the model: 4 x 12 + 4 bytes a parameter, less existing files."""
    network = torch.nn.Linear(10, 10, bias=False)
    config = PretrainConfig(saved={"keep_checkpoints": 2})
    (tmp_path / "checkpoints/old").mkdir(parents=True)
    (tmp_path / "checkpoints/old/file").write_bytes(b"0" * 200)
    for free, is_enough in ((5_000, True), (4_999, False)):
        monkeypatch.setattr(module.shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        if is_enough:
            require_disk_space(tmp_path, network, config)
        else:
            with pytest.raises(BadInput, match=r"5\.00kB free, but 2 checkpoints of 100 parameters, .* need 5\.00kB"):
                require_disk_space(tmp_path, network, config)
    monkeypatch.setattr(module, "MODEL_BYTES", 1 << 25)  # 100 of them are 3.125 GiB
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=3 << 29))
    with pytest.raises(BadInput, match=r"1\.61GB free, .* need 3\.36GB"):
        require_disk_space(tmp_path, network, config)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]
