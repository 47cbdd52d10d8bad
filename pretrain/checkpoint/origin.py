"""Branches: a run of its own that begins with weights and optimizer of a checkpoint of another run, left as it is.

Steps, schedule, data and masks are the branch's own. It begins with an epoch that the original never reached, so that
on the same store its order and masks are new ones, while the same rows are held out, under the same masks. What it
begins with is written to ``out/origin.json`` before the first step: after its first checkpoint nothing else is needed.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import safe_open
from transformers import PreTrainedModel

from corpus.documents.atomic_files import atomic_write, read_json_object
from corpus.documents.errors import BadInput
from pretrain.checkpoint.export import CONFIG_NAME, MODEL_NAME, WEIGHTS_NAME
from pretrain.checkpoint.found import (
    LOOP_NAME,
    Found,
    changed_settings,
    checkpoint_folders,
    read_checkpoint,
    read_loop,
    updates_of,
)
from pretrain.config import PretrainConfig
from pretrain.engine.world import World
from pretrain.model.families import sizes_of

log = logging.getLogger(__name__)

ORIGIN_NAME = "origin.json"
BRANCH_KEYS = ("step", "steps", "updates", "tokens", "first_epoch", "weights_sha256")
AGAIN = "delete it, and the run begins from pretrain.continue_from again"


class Origin(NamedTuple):
    """``folder``: of the checkpoint; ``facts``: which one it was, without a path (``BRANCH_KEYS``)."""

    folder: Path
    facts: dict[str, Any]

    def found(self, config: PretrainConfig) -> Found:
        """The checkpoint as one to go on from; what it remembers of loss scaling is of use in fp16 alone."""
        loop = read_loop(self.folder)
        return Found(self.folder, loop if config.engine.precision == "fp16" else loop | {"scaling": {}})


def find_origin(
    config: PretrainConfig, out: Path, network: PreTrainedModel, vocabulary_sha256: str, world: World
) -> Origin | None:
    """What the run in ``out`` is a branch of, None where it is none; all processes call it together.

    BadInput: there is no whole checkpoint, or it is of another model, vocabulary or optimizer.
    """
    if config.continue_from is None:
        return None
    found: Origin = world.in_first(lambda: _read(config, out) or _begin(config, out, network, vocabulary_sha256))
    return found


def _read(config: PretrainConfig, out: Path) -> Origin | None:
    path = out / ORIGIN_NAME
    if not path.is_file():
        return None
    kept = read_json_object(path, AGAIN)
    if not kept.keys() >= {"continue_from", "folder", *BRANCH_KEYS} or not isinstance(kept["folder"], str):
        raise BadInput(f"{path}: not what a branch notes of its origin; {AGAIN}")
    is_needed = not checkpoint_folders(out / "checkpoints")
    # nothing is trained yet, or the checkpoints refuse another name
    if kept.get("continue_from") != config.continue_from or (
        is_needed and not (Path(kept["folder"]) / LOOP_NAME).exists()
    ):
        return None
    return Origin(Path(kept["folder"]), {key: kept[key] for key in BRANCH_KEYS})


def _begin(config: PretrainConfig, out: Path, network: PreTrainedModel, vocabulary_sha256: str) -> Origin:
    name = str(config.continue_from)
    found = _locate(name)
    for misfit in (_other_vocabulary(found, vocabulary_sha256), _other_model(found, network), _other(found, config)):
        if misfit:
            raise _bad(name, misfit)
    loop, before = found.loop, found.loop.get("origin") or {}
    facts = {
        "step": loop["step"],
        "steps": loop["config"]["steps"],
        "updates": updates_of(loop),
        "tokens": loop["progress"]["tokens"] + before.get("tokens", 0),
        "first_epoch": before.get("first_epoch", 0) + int(loop["progress"]["epochs"]) + 1,
        "weights_sha256": loop["files"][f"{MODEL_NAME}/{WEIGHTS_NAME}"][1],
    }
    origin = Origin(found.folder.absolute(), facts)
    kept = {"continue_from": name, "folder": str(origin.folder)} | facts
    atomic_write(out / ORIGIN_NAME, json.dumps(kept, ensure_ascii=False, indent=1) + "\n")
    log.info("a branch of step %d of %s: its weights and optimizer; steps, rate and data are its own", *(
        loop["step"], found.folder,
    ))  # fmt: skip
    return origin


def _locate(name: str) -> Found:
    """The checkpoint itself, or the newest whole one of a run (its folder, or that of its pretrain stage)."""
    folder = Path(name).expanduser()
    runs = [place for place in (folder, folder / "pretrain") if (place / "checkpoints").is_dir()]
    is_checkpoint = (folder / LOOP_NAME).is_file()
    candidates = [folder] if is_checkpoint else checkpoint_folders(runs[0] / "checkpoints")[::-1] if runs else []
    for candidate in candidates:
        try:
            return read_checkpoint(candidate)
        except (BadInput, OSError) as error:
            if is_checkpoint:
                raise _bad(name, f"{str(error).removeprefix(f'{candidate}: ')}; give another checkpoint") from None
            log.warning("%s; looking at the checkpoint before", error)
    raise _bad(
        name,
        "no whole checkpoint there; give the folder of a run, or one of its checkpoints/step-… (to begin with the "
        "weights of a model alone, use pretrain.init_from)",
    )


def _other_vocabulary(found: Found, vocabulary_sha256: str) -> str | None:
    if found.loop["vocabulary_sha256"] == vocabulary_sha256:
        return None
    return (
        "trained with another vocabulary than the token store was packed with; pack with its tokenizer "
        f"(pretrain.init_from={found.folder / MODEL_NAME} takes that over)"
    )


def _other_model(found: Found, network: PreTrainedModel) -> str | None:
    described = read_json_object(found.folder / MODEL_NAME / CONFIG_NAME, "give another checkpoint")
    kind, own_kind = described.get("model_type"), network.config.model_type
    if kind != own_kind:
        return f"a model of type {kind} there, but {own_kind} here; a branch keeps its model"
    its, ours = sizes_of(network.config.from_dict(described)), sizes_of(network.config)
    for key in sorted(ours.keys() - {"positions"}):  # learned ones are weights, which follow; others may become more
        if its[key] != ours[key]:
            return f"pretrain.model.{key} is {ours[key]}, but {its[key]} there; a branch keeps its model"
    with safe_open(found.folder / MODEL_NAME / WEIGHTS_NAME, "numpy") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    tied = network.all_tied_weights_keys
    own = {name: tuple(p.shape) for name, p in network.named_parameters() if name not in tied}
    differing = sorted(name for name in shapes.keys() | own.keys() if shapes.get(name) != own.get(name))
    if differing:
        name = differing[0]
        return f"weights {name} are {own.get(name, 'absent')}, but {shapes.get(name, 'absent')} there; use its settings"
    return None


def _other(found: Found, config: PretrainConfig) -> str | None:
    """Whether its optimizer remembers other things."""
    change = changed_settings(found.loop["config"], config).get("optimizer.name")
    return f"its optimizer is {change[0]}, but pretrain.optimizer.name is {change[1]}" if change else None


def _bad(name: str, what: str) -> BadInput:
    return BadInput(f"pretrain.continue_from {name}: {what}")
