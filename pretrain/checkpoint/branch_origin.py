"""Branches: runs that start from the weights and optimizer of a checkpoint of another run (``pretrain.continue_from``).

A branch has its own steps, schedule and data, and starts with an epoch that the other run never reached; the held-out
rows stay the same. ``out/origin.json`` records the origin before the first step; after the first checkpoint of the
branch, the other run is not needed any more.
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
from pretrain.checkpoint.find_checkpoint import (
    LOOP_NAME,
    Checkpoint,
    bad_origin,
    checkpoint_folders,
    locate_checkpoint,
    read_loop,
    updates_of,
)
from pretrain.config import PretrainConfig
from pretrain.engine.world import World
from pretrain.model.families import sizes_of

log = logging.getLogger(__name__)

ORIGIN_NAME = "origin.json"
BRANCH_KEYS = ("step", "steps", "updates", "tokens", "first_epoch", "weights_sha256")
AGAIN = "delete it, and the run starts from pretrain.continue_from again"


class Origin(NamedTuple):
    """``folder``: of the checkpoint; ``facts``: its identity, without a path (``BRANCH_KEYS``)."""

    folder: Path
    facts: dict[str, Any]

    def checkpoint(self, config: PretrainConfig) -> Checkpoint:
        """The checkpoint to start from; its loss scaling is kept in fp16 only."""
        loop = read_loop(self.folder)
        return Checkpoint(self.folder, loop if config.engine.precision == "fp16" else loop | {"scaling": {}})


def find_origin(
    config: PretrainConfig, out: Path, network: PreTrainedModel, vocabulary_sha256: str, world: World
) -> Origin | None:
    """The origin of the run in ``out``, None if it is not a branch; all processes call it together."""
    if config.continue_from is None:
        return None
    origin: Origin = world.in_first(lambda: _read(config, out) or _start(config, out, network, vocabulary_sha256))
    return origin


def _read(config: PretrainConfig, out: Path) -> Origin | None:
    path = out / ORIGIN_NAME
    if not path.is_file():
        return None
    content = read_json_object(path, AGAIN)
    if not content.keys() >= {"continue_from", "folder", *BRANCH_KEYS} or not isinstance(content["folder"], str):
        raise BadInput(f"{path}: not the origin of a branch; {AGAIN}")
    is_needed = not checkpoint_folders(out / "checkpoints")
    # if another name is set, nothing is trained yet, or the checkpoints refuse it
    if content.get("continue_from") != config.continue_from or (
        is_needed and not (Path(content["folder"]) / LOOP_NAME).exists()
    ):
        return None
    return Origin(Path(content["folder"]), {key: content[key] for key in BRANCH_KEYS})


def _start(config: PretrainConfig, out: Path, network: PreTrainedModel, vocabulary_sha256: str) -> Origin:
    name = str(config.continue_from)
    checkpoint = locate_checkpoint(name)
    if checkpoint.loop["vocabulary_sha256"] != vocabulary_sha256:
        model = checkpoint.folder / MODEL_NAME
        what = f"another vocabulary than that of the token store; pack with its tokenizer (pretrain.init_from={model}"
        raise bad_origin(name, f"trained with {what} does so)")
    if problem := _model_problem(checkpoint, network):
        raise bad_origin(name, problem)
    loop, before = checkpoint.loop, checkpoint.loop.get("origin") or {}
    facts = {
        "step": loop["step"],
        "steps": loop["config"]["steps"],
        "updates": updates_of(loop),
        "tokens": loop["progress"]["tokens"] + before.get("tokens", 0),
        "first_epoch": before.get("first_epoch", 0) + int(loop["progress"]["epochs"]) + 1,
        "weights_sha256": loop["files"][f"{MODEL_NAME}/{WEIGHTS_NAME}"][1],
    }
    origin = Origin(checkpoint.folder.absolute(), facts)
    content = {"continue_from": name, "folder": str(origin.folder)} | facts
    atomic_write(out / ORIGIN_NAME, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    log.info("starting a branch from the weights and optimizer of step %d of %s", loop["step"], checkpoint.folder)
    return origin


def _model_problem(checkpoint: Checkpoint, network: PreTrainedModel) -> str | None:
    described = read_json_object(checkpoint.folder / MODEL_NAME / CONFIG_NAME, "give another checkpoint")
    kind, own_kind = described.get("model_type"), network.config.model_type
    if kind != own_kind:
        return f"it has a model of type {kind}, but the recipe has {own_kind}; a branch has the same model"
    its, ours = sizes_of(network.config.from_dict(described)), sizes_of(network.config)
    # learned positions are weights, compared below; rotary ones may become more
    for key in sorted(ours.keys() - {"positions"}):
        if its[key] != ours[key]:
            return (
                f"pretrain.model.{key} is {ours[key]}, but the checkpoint has {its[key]}; a branch has the same model"
            )
    with safe_open(checkpoint.folder / MODEL_NAME / WEIGHTS_NAME, "numpy") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    tied = network.all_tied_weights_keys
    own = {name: tuple(p.shape) for name, p in network.named_parameters() if name not in tied}
    differing = sorted(name for name in shapes.keys() | own.keys() if shapes.get(name) != own.get(name))
    if differing:
        name = differing[0]
        return f"weights {name} are {own.get(name, 'absent')}, but {shapes.get(name, 'absent')} in the checkpoint"
    return None
