"""Sharded and gathered checkpoints in turns.

``torchrun --nproc-per-node 2 -m tests.pretrain.checkpoint.paired deepspeed 1`` runs it.

Prints, as medians over the rounds and as ratios: seconds that the training waits (the longest of all processes),
seconds until the checkpoint is there, bytes on the disk, and by how much the first process's memory rises meanwhile.
A second argument is the engine's ZeRO stage. Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from pretrain.checkpoint.checkpoints import Checkpoints
from pretrain.checkpoint.slices import write_tensors
from pretrain.config import PretrainConfig
from pretrain.engine.start import Engine, ready_for_engine, start_engine
from pretrain.engine.world import World, join_world
from pretrain.model.loss import PretrainingModule, mean_loss
from pretrain.model.networks import build_network

ROUNDS, VOCABULARY = 5, 32_000
SIZES = {"layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024, "positions": 130}
SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
GATHERED, SHARDED = "gathered", "sharded"


def save_model(folder: Path, *, weights: Mapping[str, Tensor], facts: dict[str, Any]) -> None:
    write_tensors(folder / "model.safetensors", weights, weights)


@contextmanager
def risen(found: dict[str, float]) -> Iterator[None]:
    """Notes by how many bytes the peak of the block is above where it began."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # or what the round before has freed would be filled again unseen
    Path("/proc/self/clear_refs").write_text("5")  # the peak is the current size
    before = _status("VmRSS")
    yield
    found["memory"] = max(_status("VmHWM") - before, 1)


def _status(name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text("utf-8"))
    assert found
    return 1024.0 * int(found[1])


def measure(engine: Engine, checkpoints: Checkpoints, step: int, folder: Path, world: World) -> dict[str, float]:
    found: dict[str, float] = {}
    world.gathered(None)  # all begin together
    with risen(found):
        start = time.monotonic()
        checkpoints.save(engine, {"step": step}, [], None)
        stood = time.monotonic() - start
        checkpoints.wait()
        found["there"] = time.monotonic() - start
    found["stood"] = max(world.gathered(stood))
    home = folder / f"step-{step:09}"
    found["bytes"] = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    return found


def compare(config: PretrainConfig, world: World, folder: Path) -> dict[str, dict[str, float]]:
    engine = start_engine(config, PretrainingModule(build_network(config, VOCABULARY, SPECIAL_IDS)), world)
    ids_BL = torch.randint(5, VOCABULARY, (1, 16))
    for _ in range(config.global_batch // world.size):
        engine.backward(mean_loss(engine(ids_BL, torch.tensor([[2]]), ids_BL[:, :1]), 1, 0))
    engine.update(1e-4)
    make = partial(Checkpoints, folder, config, {"vocabulary_sha256": ""}, world, save_model)
    ways = {GATHERED: make(is_sharded=False), SHARDED: make(is_sharded=True)}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for place, (name, checkpoints) in enumerate(ways.items(), 1):
            found = measure(engine, checkpoints, 2 * number + place, folder, world)
            rounds[name] += [found] if number else []  # the first is warm-up
    return {name: {key: median(one[key] for one in found) for key in found[0]} for name, found in rounds.items()}


if __name__ == "__main__":
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    settings = PretrainConfig(model=SIZES, rows={"sequence_length": 16}, global_batch=2, steps=1000)
    stage = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    settings = settings.replaced("engine", name=sys.argv[1], zero_stage=stage, precision="fp32", micro_batch=1)
    with join_world("cpu") as world, ready_for_engine(settings, world), TemporaryDirectory() as own:
        medians = compare(settings, world, Path(world.broadcast(own)) / "checkpoints")
        if world.is_first:
            for key in ("stood", "there", "bytes", "memory"):
                one, other = medians[GATHERED][key], medians[SHARDED][key]
                print(f"{key:7} gathered {one:14,.3f} sharded {other:14,.3f} ratio {other / one:.3f}", flush=True)
