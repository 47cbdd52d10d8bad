"""Started by torchrun. ``compare CONFIG``: the slices of all processes equal the gathered state, bit for bit.

``killed START MADE OUT CONFIG``: trains as start.py does, but the second process dies in its second checkpoint.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from typing import Any

import torch

from pretrain.checkpoint import slices as module
from pretrain.checkpoint.slices import copied
from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import MODEL, UPDATES
from pretrain.engine.start import ready_for_engine, start_engine
from pretrain.engine.world import World, join_world
from pretrain.model.loss import PretrainingModule, mean_loss
from pretrain.model.networks import build_network

SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
VOCAB_SIZE = 61


def compare(config: PretrainConfig, world: World) -> int:
    """How many tensors were compared; AssertionError names one that differs."""
    engine = start_engine(config, PretrainingModule(build_network(config, VOCAB_SIZE, SPECIAL_IDS)), world)
    generator = torch.Generator().manual_seed(world.rank)
    for _ in range(2):
        for _ in range(config.global_batch // world.size):
            ids_BL = torch.randint(5, VOCAB_SIZE, (1, 16), generator=generator)
            batch = ids_BL, torch.tensor([[2, 7]]), ids_BL[:, [3, 8]].clone()
            engine.backward(mean_loss(engine(*batch), 12, 0))
        engine.update(1e-2)
    weights, moments = engine.state(keep=True)
    expected = {f"{MODEL}/{name}": tensor for name, tensor in weights.items()} | moments
    own = copied(engine.slices())
    assert sum(cut.values.numel() for cut in own) < 0.6 * sum(tensor.numel() for tensor in expected.values())
    found = {name: torch.full((tensor.numel(),), float("nan")) for name, tensor in expected.items()}
    for cut in (cut for part in world.gathered(own) for cut in part):
        place = found[cut.key][cut.start : cut.start + len(cut.values)]
        assert cut.shape == tuple(expected[cut.key].shape) and place.isnan().all(), cut.key
        place.copy_(cut.values)
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor.flatten()), name
    assert float(found[UPDATES][0]) == 2
    return len(expected)


def dying(write: Any) -> Any:
    def write_half(path: Any, *given: Any) -> None:
        if "step-000000006" in str(path):
            path.write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
        write(path, *given)

    return write_half


if __name__ == "__main__":
    task = sys.argv.pop(1)
    if task == "killed":
        if os.environ["RANK"] == "1":
            module.write_tensors = dying(module.write_tensors)
        runpy.run_path(sys.argv[1], run_name="__main__")
    else:
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
        settings = PretrainConfig.model_validate_json(sys.argv[1])
        with join_world("cpu") as world, ready_for_engine(settings, world):
            count = compare(settings, world)
            if world.is_first:
                print(f"\ncompared {count}", flush=True)
