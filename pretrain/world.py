"""The processes that train together: one on a laptop, or as many as torchrun, deepspeed or Slurm started.

The launcher's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) decide; without them the process is a
world of its own that needs no port. Collectives go through torch.distributed (nccl on GPUs, gloo on CPUs), which
DeepSpeed picks up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

import torch
import torch.distributed as dist
from torch import Tensor

from pretrain.config import BadInput

LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True)
class World:
    """This process among all: ``rank`` of ``size``, computing on ``device``."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def total(self, values: Tensor) -> Tensor:
        """Sum of a tensor over all processes, in place, on every process."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def wait_for_all(self) -> None:
        """Return when every process has come here."""
        if self.size > 1:
            dist.barrier()


@contextmanager
def join_world() -> Iterator[World]:
    """Join the other processes, and part from them at the end.

    Raises:
        BadInput: a launcher set some of its variables but not all.
    """
    given = [name for name in LAUNCHER_VARIABLES if name in os.environ]
    if "WORLD_SIZE" in given and len(given) < len(LAUNCHER_VARIABLES):
        missing = sorted(set(LAUNCHER_VARIABLES) - set(given))
        raise BadInput(f"WORLD_SIZE is set but {', '.join(missing)} is not; start with torchrun or deepspeed")
    launched = len(given) == len(LAUNCHER_VARIABLES)
    local_rank = int(os.environ["LOCAL_RANK"]) if launched else 0
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    elif launched and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(_threads_here())  # deepspeed, unlike torchrun, lets every process take every core
    backend = "nccl" if device.type == "cuda" else "gloo"
    if launched:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
        os.environ["LOCAL_RANK"] = "0"  # DeepSpeed reads it; other libraries take it for a launcher's, so not for long
    try:
        deepspeed = _load_deepspeed(device)
        yield World(dist.get_rank(), dist.get_world_size(), device)
    finally:
        if not launched:
            os.environ.pop("LOCAL_RANK", None)
        deepspeed.comm.destroy_process_group()  # torch's, and the groups DeepSpeed made of it


def _load_deepspeed(device: torch.device) -> ModuleType:
    """Let DeepSpeed pick up the processes, without its compiled shared-memory collective for CPUs.

    The collective takes 23 s of C++ at first use, and without ninja and a compiler DeepSpeed would not start at all.
    """
    if device.type == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")  # spares a warning about missing GPUs
    import deepspeed

    if device.type == "cpu":
        # the table of compiled parts that may be built: private, but the only way past the collective, and filling it
        # tries the linker; a test without a compiler guards this line
        deepspeed.ops.__compatible_ops__ = {}
    deepspeed.init_distributed(verbose=False)
    return deepspeed


def _threads_here() -> int:
    """A process's share of the cores; torchrun and deepspeed name the processes of one machine differently."""
    beside = os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("LOCAL_SIZE") or os.environ["WORLD_SIZE"]
    return max(1, (os.cpu_count() or 1) // int(beside))
