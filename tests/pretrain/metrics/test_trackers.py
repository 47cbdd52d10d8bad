"""TensorBoard files read back, W&B through a fake, and missing packages before training."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.metrics.trackers import open_trackers, require_trackers

Configure = Callable[..., PretrainConfig]


def test_tensorboard_shows_every_number_and_hides_what_a_killed_run_left(tmp_path: Path, tiny: Configure) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    config = tiny(trackers=["tensorboard"])
    (killed,) = open_trackers(config, tmp_path, {})
    for step, loss in ((2, 4.0), (4, 3.0), (6, 9.0)):
        killed.log(step, {"loss": loss, "held_out/mlm_loss": loss + 1})
    killed.close()
    (resumed,) = open_trackers(config, tmp_path, {}, first_step=5)  # the checkpoint was of step 4
    resumed.log(6, {"loss": 2.0})
    resumed.close()
    events = reader.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(2, 4.0), (4, 3.0), (6, 2.0)]
    assert [event.value for event in events.Scalars("held_out/mlm_loss")] == [5.0, 4.0]


class StandIn:
    """What is used of the package ``wandb``."""

    class Error(Exception):
        pass

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.is_finished = self.refuses = False
        self.__spec__ = SimpleNamespace()  # what a look for the package finds

    def init(self, **settings: Any) -> StandIn:
        if self.refuses:
            raise self.Error("api_key not configured")
        self.started.append(settings)
        return self

    def log(self, numbers: dict[str, float], step: int) -> None:
        self.logged.append((step, numbers))

    def finish(self) -> None:
        self.is_finished = True


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    found = StandIn()
    monkeypatch.setitem(sys.modules, "wandb", found)
    return found


def test_wandb_goes_on_in_the_same_run_after_a_resume(tmp_path: Path, tiny: Configure, wandb: StandIn) -> None:
    config = tiny(trackers=["wandb"])
    (tracker,) = open_trackers(config, tmp_path, {"lr": 0.005})
    tracker.log(2, {"loss": 4.0})
    tracker.close()
    open_trackers(config, tmp_path, {}, first_step=3)
    open_trackers(config, tmp_path, {})  # from the start again: another run
    first, resumed, fresh = wandb.started
    assert first["project"] == "malmoi" and first["config"] == {"lr": 0.005} and first["dir"] == str(tmp_path)
    assert first["id"] == resumed["id"] != fresh["id"] and resumed["resume"] == "allow"
    assert wandb.logged == [(2, {"loss": 4.0})] and wandb.is_finished


def test_wandb_that_lets_nobody_in_is_one_sentence(tmp_path: Path, tiny: Configure, wandb: StandIn) -> None:
    wandb.refuses = True
    with pytest.raises(BadInput, match=r"api_key not configured\); run `wandb login`, set WANDB_MODE=offline"):
        open_trackers(tiny(trackers=["wandb"]), tmp_path, {})


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_missing_package_is_named_with_the_command_that_brings_it(
    tmp_path: Path, tiny: Configure, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for check in (require_trackers, lambda config: open_trackers(config, tmp_path, {})):
        with pytest.raises(BadInput, match=f"{name} is not installed; `pip install {name}`"):
            check(tiny(trackers=[name]))
    require_trackers(tiny())
    assert not list(tmp_path.iterdir())
