"""Bytes of tensors that each engine holds in a step, as JSON of the first process: started by torchrun, on CPUs.

Each setting is measured twice in its second step, after the first micro-batch and before the update.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

import torch

from pretrain.config import PretrainConfig
from pretrain.engine.start import ready_for_engine, start_engine
from pretrain.engine.world import World, join_world
from pretrain.model.loss import PretrainingModule, mean_loss
from pretrain.model.networks import build_network

SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
VOCAB_SIZE = 2_000


def held() -> int:
    """Bytes of all tensors that Python reaches, shared memory once."""
    gc.collect()
    sizes = {}
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, torch.nn.Parameter) or type(thing).__name__ == "DTensor":
            for tensor in (thing, thing.grad if thing.is_leaf else None):
                if tensor is not None:
                    storage = getattr(tensor, "_local_tensor", tensor).untyped_storage()
                    sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def measure(config: PretrainConfig, world: World) -> dict[str, Any]:
    before, rows = held(), 2
    network = build_network(config, VOCAB_SIZE, SPECIAL_IDS)
    parameters = sum(p.numel() for p in network.parameters())
    engine = start_engine(config, PretrainingModule(network), world)
    del network
    length = config.rows.sequence_length
    batch = torch.randint(5, VOCAB_SIZE, (rows, length)), torch.arange(5).expand(rows, -1), torch.full((rows, 5), 7)
    found: list[int] = []
    for _ in range(2):
        found = []
        for _ in range(config.global_batch // world.size // rows):
            engine.backward(mean_loss(engine(*batch), 40, 0))
            found.append(held() - before)
        engine.update(1e-4)
    return {"parameters": parameters, "held": [found[0], found[-1]]}


if __name__ == "__main__":
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    settings = PretrainConfig.model_validate_json(sys.argv[1])
    with join_world("cpu") as world, ready_for_engine(settings, world):
        results = measure(settings, world)
        if world.is_first:
            print("\n" + json.dumps(results))
