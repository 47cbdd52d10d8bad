"""Finding checkpoints on disk, and deciding whether a run can resume from one with the present settings.

Reading checkpoints, as ``malmoi status`` does, needs no torch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corpus.documents.atomic_files import digest_matches, file_digest, read_json_object
from corpus.documents.errors import BadInput
from corpus.documents.model_files import OPTIMIZER, WEIGHTS_NAME, part_name
from pretrain.config import MACHINE_PATHS, SCHEDULE_KEYS, PretrainConfig, by_path
from pretrain.schedule import first_difference

if TYPE_CHECKING:
    from torch import Tensor

    from pretrain.engine.start import Engine

log = logging.getLogger(__name__)

MODEL_NAME = "model"  # in the folder of the pretrain stage, and in a checkpoint
LOOP_NAME = "loop.json"
OPTIMIZER_NAME = f"{OPTIMIZER}.safetensors"
STATE_NAMES = {f"{MODEL_NAME}/{WEIGHTS_NAME}", OPTIMIZER_NAME}
LOOP_KINDS = {"step": int, "progress": dict, "meter": list, "held_out": dict | None, "scaling": dict, "config": dict,
              "vocabulary_sha256": str, "files": dict}  # fmt: skip


def optimizer_files(names: Iterable[str]) -> list[str]:
    """The optimizer files of a checkpoint, one or one per process; empty if one is missing."""
    parts = sorted(name for name in names if name.startswith(f"{OPTIMIZER}-"))
    is_complete = parts == [part_name(OPTIMIZER, number, len(parts)) for number in range(1, len(parts) + 1)]
    return [OPTIMIZER_NAME] if OPTIMIZER_NAME in names else parts if is_complete else []


class Checkpoint(NamedTuple):
    """A complete checkpoint: its folder and the content of loop.json."""

    folder: Path
    loop: dict[str, Any]

    def weights(self) -> Mapping[str, Tensor]:
        """The trained weights, read one by one; the export scales of ModernBERT are reversed."""
        from pretrain.checkpoint.slices import StoredTensors

        scales: dict[str, float] = self.loop.get("scales", {})
        return StoredTensors([self.folder / MODEL_NAME / WEIGHTS_NAME]).scaled(
            {name: 1 / by for name, by in scales.items()}
        )

    def restore(self, engine: Engine) -> None:
        """Give weights, moments and loss scaling to an engine."""
        from pretrain.checkpoint.slices import StoredTensors

        moments = StoredTensors([self.folder / name for name in optimizer_files(self.loop["files"])])
        engine.restore(self.weights(), moments, updates_of(self.loop))
        engine.restore_scaling(self.loop["scaling"])


def checkpoint_folders(folder: Path) -> list[Path]:
    """Checkpoint folders in a folder "checkpoints", oldest first."""
    return sorted(path for path in folder.glob("step-" + "[0-9]" * 9) if path.is_dir())


def read_checkpoint(folder: Path) -> Checkpoint:
    """A checkpoint whose files are unchanged since they were written; BadInput names those that are not."""
    loop = read_loop(folder)
    damaged = [name for name, digest in loop["files"].items() if file_digest(folder / name) != digest]
    if damaged:
        raise BadInput(f"{folder}: {', '.join(damaged)} is damaged")
    return Checkpoint(folder, loop)


def newest_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest complete checkpoint in a folder; BadInput if there are checkpoints and none is complete."""
    problem = ""
    for one in reversed(checkpoint_folders(folder)):
        try:
            return read_checkpoint(one)
        except (BadInput, OSError) as error:
            problem = problem or str(error)
            log.warning("%s; using the checkpoint before it", error)
    if problem:
        raise BadInput(f"{folder}: no checkpoint is complete; delete the folder to start again (the newest: {problem})")
    return None


def read_loops(folder: Path) -> dict[Path, dict[str, Any]]:
    """Content of the loop.json of each checkpoint by folder, oldest first; unreadable ones are left out."""
    loops = {}
    for one in checkpoint_folders(folder):
        with suppress(BadInput, OSError):
            loops[one] = read_loop(one)
    return loops


def read_loop(folder: Path) -> dict[str, Any]:
    """Content of the loop.json of a checkpoint; BadInput if it is missing or damaged."""
    path = folder / LOOP_NAME
    if not path.is_file():
        raise BadInput(f"{folder}: {LOOP_NAME} is missing")
    loop = read_json_object(path, "it is damaged")
    wrong = [key for key, kind in LOOP_KINDS.items() if key not in loop or not isinstance(loop[key], kind)]
    is_misnamed = not wrong and folder.name.startswith("step-") and folder.name != f"step-{loop['step']:09}"
    has_state = not wrong and f"{MODEL_NAME}/{WEIGHTS_NAME}" in loop["files"] and optimizer_files(loop["files"])
    if wrong or is_misnamed or not has_state:
        raise BadInput(f"{path}: {(wrong or ['step or files'])[0]} has an invalid value")
    if not digest_matches(loop):
        raise BadInput(f"{path}: damaged (its sha256 differs)")
    return loop


def resume_problem(checkpoint: Checkpoint, config: PretrainConfig) -> str | None:
    """The error message if the run of a checkpoint cannot resume with these settings.

    Settings of the schedule may change if all completed steps stay the same.
    """
    changes = changed_settings(checkpoint.loop["config"], config)
    if not changes:
        return None
    listed = ", ".join(f"pretrain.{key}: {was} -> {now}" for key, (was, now) in changes.items())
    problem, step = f"{checkpoint.folder}: written with other settings ({listed})", checkpoint.loop["step"]
    if not changes.keys() <= SCHEDULE_KEYS:
        return f"{problem}; use those, or another output folder"
    branch = f"start a branch in another output folder with pretrain.continue_from={checkpoint.folder}"
    if config.steps < step:
        return f"{problem}, and {step} steps are already trained; use those, or {branch}"
    differs = first_difference(PretrainConfig.model_validate(checkpoint.loop["config"]), config, step)
    if differs is not None:
        return (
            f"{problem}, which change step {differs}; delete the checkpoints of step {differs} and later to resume "
            f"from an earlier one, or {branch}"
        )
    return None


def require_extendable(folder: Path, config: PretrainConfig) -> None:
    """Raise BadInput if the run with these checkpoints cannot resume with the settings."""
    for newest, loop in list(read_loops(folder).items())[-1:]:
        problem = resume_problem(Checkpoint(newest, loop), config)
        if problem:
            raise BadInput(problem)


def changed_settings(before: dict[str, Any], config: PretrainConfig) -> dict[str, tuple[Any, Any]]:
    """Settings by path that differ from those of a checkpoint (``identity``), with both values."""
    was, now = by_path(before), by_path(config.identity())
    defaults = by_path(PretrainConfig().identity())  # for settings that are newer than the checkpoint
    keys = sorted((was.keys() | now.keys()) - MACHINE_PATHS)
    return {key: (was.get(key), now.get(key)) for key in keys if was.get(key, defaults.get(key)) != now.get(key)}


def updates_of(loop: dict[str, Any]) -> int:
    """Number of updates of the weights of a checkpoint, in its run and in the runs it is a branch of."""
    return int(loop["step"] + (loop.get("origin") or {}).get("updates", 0))


def locate_checkpoint(name: str) -> Checkpoint:
    """The checkpoint itself, or the newest complete one of a run (its folder, or that of its pretrain stage)."""
    folder = Path(name).expanduser()
    runs = [place for place in (folder, folder / "pretrain") if (place / "checkpoints").is_dir()]
    is_checkpoint = (folder / LOOP_NAME).is_file()
    candidates = [folder] if is_checkpoint else checkpoint_folders(runs[0] / "checkpoints")[::-1] if runs else []
    for candidate in candidates:
        try:
            return read_checkpoint(candidate)
        except (BadInput, OSError) as error:
            if is_checkpoint:
                what = str(error).removeprefix(f"{candidate}: ")
                raise bad_origin(name, f"{what}; give another checkpoint") from None
            log.warning("%s; using the checkpoint before it", error)
    advice = (
        "the folder of a run, or one of its checkpoints/step-… (for weights of a model only, use pretrain.init_from)"
    )
    raise bad_origin(name, f"no complete checkpoint there; give {advice}")


def bad_origin(name: str, what: str) -> BadInput:
    return BadInput(f"pretrain.continue_from {name}: {what}")
