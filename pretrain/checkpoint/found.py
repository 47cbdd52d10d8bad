"""Checkpoints as they are found: whole or passed over, and under which settings their run may go on.

Who only looks at them, as ``malmoi status`` does, needs no torch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corpus.documents.atomic_files import DIGEST_KEY, digest_matches, file_digest, read_json_object
from corpus.documents.errors import BadInput
from corpus.documents.model_files import WEIGHTS_NAME
from pretrain.config import SCHEDULE_KEYS, PretrainConfig, by_path
from pretrain.schedule import first_difference

if TYPE_CHECKING:
    from torch import Tensor

    from pretrain.engine.start import Engine

log = logging.getLogger(__name__)

MODEL_NAME = "model"  # below the folder of the pretrain stage, and of a checkpoint
LOOP_NAME = "loop.json"
OPTIMIZER = "optimizer"
OPTIMIZER_NAME = f"{OPTIMIZER}.safetensors"
STATE_NAMES = {f"{MODEL_NAME}/{WEIGHTS_NAME}", OPTIMIZER_NAME}
LOOP_KINDS = {"step": int, "progress": dict, "meter": list, "held_out": dict | None, "scaling": dict, "config": dict,
              "vocabulary_sha256": str, "files": dict}  # fmt: skip


def part_name(stem: str, number: int, count: int) -> str:
    """Name of the file that the ``number``-th of ``count`` processes writes, as Hugging Face names parts.

    >>> part_name("optimizer", 1, 2)
    'optimizer-00001-of-00002.safetensors'
    """
    return f"{stem}-{number:05}-of-{count:05}.safetensors"


def optimizer_files(names: Iterable[str]) -> list[str]:
    """Of the files of a checkpoint those of the optimizer, one or one for each process; none where one is missing."""
    parts = sorted(name for name in names if name.startswith(f"{OPTIMIZER}-"))
    are_all = parts == [part_name(OPTIMIZER, number, len(parts)) for number in range(1, len(parts) + 1)]
    return [OPTIMIZER_NAME] if OPTIMIZER_NAME in names else parts if are_all else []


class Found(NamedTuple):
    """A whole checkpoint: its folder and what loop.json holds."""

    folder: Path
    loop: dict[str, Any]

    def weights(self) -> Mapping[str, Tensor]:
        """Those that training goes on with, read one by one; two of them were scaled when they were written."""
        from pretrain.checkpoint.slices import Stored

        scales: dict[str, float] = self.loop.get("scales", {})
        return Stored([self.folder / MODEL_NAME / WEIGHTS_NAME]).scaled({name: 1 / by for name, by in scales.items()})

    def give_to(self, engine: Engine) -> None:
        from pretrain.checkpoint.slices import Stored

        moments = Stored([self.folder / name for name in optimizer_files(self.loop["files"])])
        engine.restore(self.weights(), moments, updates_of(self.loop))
        engine.restore_scaling(self.loop["scaling"])


def checkpoint_folders(folder: Path) -> list[Path]:
    """Those in a folder "checkpoints", oldest first."""
    return sorted(path for path in folder.glob("step-" + "[0-9]" * 9) if path.is_dir())


def read_checkpoint(folder: Path) -> Found:
    """A checkpoint whose files are all as they were written; BadInput names those that are not."""
    loop = read_loop(folder)
    damaged = [name for name, seal in loop["files"].items() if file_digest(folder / name) != seal]
    if damaged:
        raise BadInput(f"{folder}: {', '.join(damaged)} is damaged")
    return Found(folder, loop)


def whole_checkpoints(folder: Path) -> Iterator[Found]:
    """Those in a folder "checkpoints", newest first; a warning names each one that is passed over.

    BadInput: there are some, and none is whole.
    """
    fault, are_none = "", True
    for one in reversed(checkpoint_folders(folder)):
        try:
            found = read_checkpoint(one)
        except (BadInput, OSError) as error:
            fault = fault or str(error)
            log.warning("%s; going on from the checkpoint before", error)
        else:
            are_none = False
            yield found
    if fault and are_none:
        raise BadInput(f"{folder}: no checkpoint is whole; delete the folder to start afresh (the newest: {fault})")


def read_loops(folder: Path) -> dict[Path, dict[str, Any]]:
    """What loop.json of each checkpoint holds, by folder, oldest first; without those that cannot be read."""
    loops = {}
    for one in checkpoint_folders(folder):
        with suppress(BadInput, OSError):
            loops[one] = read_loop(one)
    return loops


def read_loop(folder: Path) -> dict[str, Any]:
    """loop.json of a checkpoint; BadInput where it is missing or not as it was written."""
    path = folder / LOOP_NAME
    if not path.is_file():
        raise BadInput(f"{folder}: {LOOP_NAME} is missing")
    loop = read_json_object(path, "it is damaged")
    wrong = [key for key, kind in LOOP_KINDS.items() if key not in loop or not isinstance(loop[key], kind)]
    is_misnamed = not wrong and folder.name.startswith("step-") and folder.name != f"step-{loop['step']:09}"
    has_state = not wrong and f"{MODEL_NAME}/{WEIGHTS_NAME}" in loop["files"] and optimizer_files(loop["files"])
    if wrong or is_misnamed or not has_state:
        raise BadInput(f"{path}: {(wrong or ['step or files'])[0]} is not what the checkpoint of this name says there")
    # checkpoints of before there were seals have none, and end with "files"
    if not digest_matches(loop) and (DIGEST_KEY in loop or next(reversed(loop)) != "files"):
        raise BadInput(f"{path}: is damaged (its sha256 differs)")
    return loop


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
    for newest, loop in list(read_loops(folder).items())[-1:]:
        fault = why_not_under(Found(newest, loop), config)
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
