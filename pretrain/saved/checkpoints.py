"""Checkpoints that are whole or absent, and exactly enough to go on, on any number of processes and any engine.

```
checkpoints/step-000000100/model/                 a Hugging Face folder, ready for use
checkpoints/step-000000100/optimizer.safetensors  the optimizer's averages; with ema, the weights
checkpoints/step-000000100/loop.json              step, meter, held-out scores, settings, size and sha256 of each file
checkpoints/best                                  name of the checkpoint with the lowest held-out loss
```
Order, masks and dropout are functions of the step, so nothing else must be remembered. A checkpoint is written under
another name and renamed when it is whole; one whose files have changed since is passed over for the one before. Room
on the disk is asked for before training, because a full disk hours later costs those hours.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import PARTIAL, read_object, settle_all, whole_folder, write_whole
from pretrain.config import SCHEDULE_KEYS, PretrainConfig, by_path
from pretrain.engine.start import Engine
from pretrain.engine.world import World
from pretrain.saved.export import MODEL_NAME, WEIGHTS_NAME
from pretrain.schedule import first_difference

log = logging.getLogger(__name__)

BEST_NAME = "best"
LOOP_NAME = "loop.json"
OPTIMIZER_NAME = "optimizer.safetensors"

GIB = 1 << 30
BYTES_OF_CHECKPOINT, BYTES_OF_MODEL = 12, 4  # a parameter: weights and Adam's two averages, float32; weights alone
SaveModel = Callable[..., None]  # writes a Hugging Face folder: (folder, weights=, facts=)


class Found(NamedTuple):
    """A whole checkpoint: its folder and what loop.json holds."""

    folder: Path
    loop: dict[str, Any]

    def weights(self) -> dict[str, Tensor]:
        return load_file(self.folder / MODEL_NAME / WEIGHTS_NAME)

    def give_to(self, engine: Engine) -> None:
        engine.restore(self.weights(), load_file(self.folder / OPTIMIZER_NAME), updates_of(self.loop))
        engine.restore_scaling(self.loop["scaling"])


class Checkpoints:
    """Saves, prunes and finds the checkpoints of one configuration on one token store; all processes call it together.

    ``facts`` is what the cards say of the run; "vocabulary_sha256" in it names the tokenizer of the token store.
    """

    def __init__(
        self, folder: Path, config: PretrainConfig, facts: dict[str, Any], world: World, save_model: SaveModel
    ) -> None:
        self._folder, self._config, self._facts, self._world = folder, config, facts, world
        self._save_model = save_model
        self._identity = {"config": config.identity(), "vocabulary_sha256": facts["vocabulary_sha256"]}
        if world.is_first:
            folder.mkdir(parents=True, exist_ok=True)
            for leftover in folder.glob(f"*{PARTIAL}"):
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()

    def due(self, step: int) -> bool:
        """Whether a checkpoint belongs after this step; always after the last."""
        return step % self._config.saved.checkpoint_every == 0 or step == self._config.steps

    def save(
        self, engine: Engine, progress: dict[str, Any], meter_state: list[float], held_out: dict[str, Any] | None
    ) -> None:
        """Write a checkpoint and drop the oldest ones, but never the best.

        ``progress`` holds "step", and what else the card says of how far the training is.
        """
        weights, moments = engine.state(keep=self._world.is_first)
        if self._world.is_first:
            with whole_folder(self._folder / f"step-{progress['step']:09}") as folder:
                (folder / MODEL_NAME).mkdir()
                facts = self._facts | progress | {"held_out": held_out}
                self._save_model(folder / MODEL_NAME, weights=weights, facts=facts)
                save_file(moments, folder / OPTIMIZER_NAME)
                files = sorted(path for path in folder.rglob("*") if path.is_file())
                loop = {
                    "step": progress["step"],
                    "origin": self._facts.get("continued_from"),
                    "progress": progress,
                    "meter": meter_state,
                    "held_out": held_out,
                    "scaling": engine.scaling(),
                    **self._identity,
                    "files": {str(path.relative_to(folder)): _seal(path) for path in files},
                }
                settle_all(folder)
                write_whole(folder / LOOP_NAME, json.dumps(loop, ensure_ascii=False))
            self._prune()
        self._world.wait_for_all()

    def find(self) -> Found | None:
        """The newest whole checkpoint, None where there is none yet; BadInput where they are of another run."""
        answer = self._world.broadcast(self._look() if self._world.is_first else None)
        if isinstance(answer, str):
            raise BadInput(answer)
        return answer

    def newest(self, count: int) -> list[Path]:
        """Model folders of the newest ``count`` checkpoints, oldest first."""
        return [folder / MODEL_NAME for folder in self._folders()[-count:]]

    def newest_loop(self) -> dict[str, Any]:
        return read_loop(self._folders()[-1])

    def _look(self) -> Found | str | None:
        folders = self._folders()
        for folder in reversed(folders):
            found = Found(folder, read_loop(folder))
            fault = self._contradiction(found)
            if fault:
                return fault
            damaged = damaged_files(found)
            if not damaged:
                if changed_settings(found.loop["config"], self._config):
                    log.info("another schedule, under which all steps so far are as they were; going on with it")
                return found
            log.warning("%s: %s is damaged; going on from the checkpoint before", folder, ", ".join(damaged))
        return f"{self._folder}: no checkpoint is whole; delete the folder to start afresh" if folders else None

    def _contradiction(self, found: Found) -> str | None:
        fault = why_not_under(found, self._config)
        if fault is None and found.loop["vocabulary_sha256"] != self._identity["vocabulary_sha256"]:
            return f"{found.folder}: written with another vocabulary; use that tokenizer, or another output folder"
        return fault

    def _folders(self) -> list[Path]:
        return checkpoint_folders(self._folder)

    def _prune(self) -> None:
        folders = self._folders()
        held_out = {folder: read_loop(folder)["held_out"] for folder in folders}
        kind = "causal_loss" if self._config.model.objective == "causal" else "mlm_loss"
        losses = {folder: scores[kind] for folder, scores in held_out.items() if scores is not None}
        best = min(losses, key=losses.__getitem__, default=None)  # the earlier one where they are equal
        if best is not None:
            write_whole(self._folder / BEST_NAME, best.name)
        for old in folders[: -self._config.saved.keep_checkpoints]:
            if old != best:
                shutil.rmtree(old)


def mean_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean over Hugging Face folders of one architecture (Izmailov et al. 2018, arXiv 1803.05407), float32 by name.

    Sums are in float64, so the mean of equal weights is those weights.
    """
    sums = {name: weight.double() for name, weight in load_file(folders[0] / WEIGHTS_NAME).items()}
    for folder in folders[1:]:
        for name, weight in load_file(folder / WEIGHTS_NAME).items():
            sums[name] += weight
    return {name: (total / len(folders)).float() for name, total in sums.items()}


def require_disk_space(out: Path, network: PreTrainedModel, config: PretrainConfig) -> None:
    """Write a little and count the rest: one more checkpoint than are kept must fit, the best one, and the model."""
    probe = out / "disk_space.partial"
    probe.write_bytes(b"\0" * 4096)
    probe.unlink()
    parameters = sum(parameter.numel() for parameter in network.parameters())
    there = sum(path.stat().st_size for path in (out / "checkpoints").rglob("*") if path.is_file())
    each = BYTES_OF_CHECKPOINT + (BYTES_OF_MODEL if config.optimizer.ema else 0)  # the average beside the weights
    needed = parameters * (each * (config.saved.keep_checkpoints + 2) + BYTES_OF_MODEL) - there
    free = shutil.disk_usage(out).free
    if free < needed:
        raise BadInput(
            f"{out}: {free / GIB:.1f} GiB free, but {config.saved.keep_checkpoints} checkpoints of "
            f"{parameters / 1e6:.0f} M parameters, the best one and the model need {needed / GIB:.1f} GiB; make room "
            "or lower pretrain.saved.keep_checkpoints"
        )


def checkpoint_folders(folder: Path) -> list[Path]:
    """Those in a folder "checkpoints", oldest first."""
    return sorted(folder.glob("step-" + "[0-9]" * 9))


def why_not_under(found: Found, config: PretrainConfig) -> str | None:
    """The sentence about settings under which a checkpoint's run cannot go on.

    Those of its schedule may differ where all that was trained is as they say: then the run equals one that had them
    from the start.
    """
    changes = changed_settings(found.loop["config"], config)
    if not changes:
        return None
    shown = ", ".join(f"pretrain.{key}: {was} -> {now}" for key, (was, now) in changes.items())
    told, step = f"{found.folder}: written with other settings ({shown})", found.loop["step"]
    if not changes.keys() <= SCHEDULE_KEYS:
        return f"{told}; use those, or another output folder"
    branch = f"begin a branch in another output folder with pretrain.continue_from={found.folder}"
    if config.steps < step:
        return f"{told}, and {step} steps are trained already; use those, or {branch}"
    differs = first_difference(PretrainConfig.model_validate(found.loop["config"]), config, step)
    if differs is not None:
        return (
            f"{told}, under which step {differs} would have been trained otherwise; delete the checkpoints of step "
            f"{differs} and later ones, if there is an earlier one to go on from, or {branch}"
        )
    return None


def require_extendable(folder: Path, config: PretrainConfig) -> None:
    """Refuse (BadInput) settings under which the run whose checkpoints ``folder`` holds cannot go on."""
    for newest in checkpoint_folders(folder)[-1:]:
        fault = why_not_under(Found(newest, read_loop(newest)), config)
        if fault:
            raise BadInput(fault)


def changed_settings(before: dict[str, Any], config: PretrainConfig) -> dict[str, tuple[Any, Any]]:
    """Settings by path that differ from those of a checkpoint (``identity``), with both values."""
    was, now = by_path(before), by_path(config.identity())
    defaults = by_path(PretrainConfig().identity())  # of a setting that is newer than the checkpoint
    keys = sorted(key for key in was.keys() | now.keys() if was.get(key, defaults.get(key)) != now.get(key))
    return {key: (was.get(key), now.get(key)) for key in keys}


def updates_of(loop: dict[str, Any]) -> int:
    """How often the weights of a checkpoint were moved, in its run and in those it is a branch of."""
    return int(loop["step"] + (loop.get("origin") or {}).get("updates", 0))


def damaged_files(found: Found) -> list[str]:
    return [name for name, seal in found.loop["files"].items() if _seal(found.folder / name) != seal]


def read_loop(folder: Path) -> dict[str, Any]:
    return read_object(folder / LOOP_NAME, "delete this checkpoint, and the run goes on from the one before")


def _seal(path: Path) -> list[int | str]:
    """Size and sha256; [0, ""] where there is no file."""
    if not path.is_file():
        return [0, ""]
    with path.open("rb") as file:
        return [path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()]
