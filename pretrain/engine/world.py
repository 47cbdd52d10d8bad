"""The processes that train together: one on a laptop, or as many as torchrun, deepspeed or Slurm started.

The launcher's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) decide; without them the process is a
world of its own that needs no port. Collectives go through torch.distributed (each device's own backend, gloo on CPUs),
which DeepSpeed picks up; small numbers go through gloo also on GPU machines, so that nobody waits for a device.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import psutil
import torch
import torch.distributed as dist
from torch import Tensor

from corpus.documents.accelerator import DeviceName, find_device
from corpus.documents.errors import BadInput
from pretrain.interruption import ProcessLost

LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
LEAST_PATIENCE_MINUTES = 30.0  # gloo's own
# what gloo says of another process's end, with its address, and nccl
LOST = re.compile(
    r"(?:\S+ error )?\[\S+\]:\d+: (?:Connection reset|Broken pipe|Connection timed out|No route to host)[\w ]*|"
    r"Connection closed by peer \[\S+\]:\d+|Timed out waiting \d+ms|remote process exited[\w ]*"
)


@dataclass(frozen=True, slots=True)
class World:
    """This process among all: ``rank`` of ``size``, computing on ``device``; ``cpu_group`` talks without GPUs.

    ``other_group`` does too, for a background thread.
    """

    rank: int
    size: int
    device: torch.device
    cpu_group: Any = None
    other_group: Any = None

    def for_thread(self) -> World:
        """The same processes for their other thread: what those send does not mix with what the training sends."""
        return replace(self, cpu_group=self.other_group)

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def total(self, values: Tensor) -> Tensor:
        """Sum of a tensor over all processes, in place, on every process."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def totals(self, numbers: Sequence[int]) -> list[int]:
        """Sums of small whole numbers over all processes; no device is waited for."""
        if self.size == 1:
            return list(numbers)
        values = torch.tensor(numbers)
        dist.all_reduce(values, group=self.cpu_group)
        return [int(value) for value in values]

    def least(self, number: int) -> int:
        """The smallest of a small whole number over all processes."""
        if self.size == 1:
            return number
        value = torch.tensor(number)
        dist.all_reduce(value, dist.ReduceOp.MIN, group=self.cpu_group)
        return int(value)

    def broadcast(self, thing: Any) -> Any:
        """What the first process passed, on every process."""
        box = [thing]
        if self.size > 1:
            dist.broadcast_object_list(box, 0, group=self.cpu_group)
        return box[0]

    def gathered(self, thing: Any) -> list[Any]:
        """What each process passed, by rank, on every process; no device is waited for."""
        if self.size == 1:
            return [thing]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, thing, group=self.cpu_group)
        return found

    def in_first(self, work: Callable[[], Any]) -> Any:
        """What ``work`` gives in the first process, or the BadInput or OSError it raises there, on every process."""
        found: Any = None
        if self.is_first:
            try:
                found = work()
            except (BadInput, OSError) as error:
                if self.size == 1:
                    raise
                found = error
        found = self.broadcast(found)
        if isinstance(found, Exception):
            raise found
        return found

    def wait_for_all(self) -> None:
        if self.size > 1:
            dist.barrier()


@contextmanager
def join_world(asked: DeviceName = "auto", hang_minutes: float = 0.0) -> Iterator[World]:
    """This process's world, on the accelerator there is unless the processor is ``asked`` for.

    Processes wait for one another longer than ``hang_minutes``, so that the watchdog has its say first.

    BadInput: the launcher's variables are incomplete, torch cannot use the devices there are, or they are too few.
    """
    given = [name for name in LAUNCHER_VARIABLES if name in os.environ]
    if "WORLD_SIZE" in given and len(given) < len(LAUNCHER_VARIABLES):
        missing = sorted(set(LAUNCHER_VARIABLES) - set(given))
        raise BadInput(f"WORLD_SIZE is set but {', '.join(missing)} is not; start with torchrun or deepspeed")
    launched = len(given) == len(LAUNCHER_VARIABLES)
    device = find_device(asked, "pretrain.engine.device")
    if device.type != "cpu":
        device = _own_device(device.type, int(os.environ["LOCAL_RANK"]) if launched else 0)
    elif launched and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(_threads_here())  # deepspeed, unlike torchrun, lets every process take every core
    if launched:
        name_interface(os.environ["MASTER_ADDR"])
        patience = timedelta(minutes=max(LEAST_PATIENCE_MINUTES, 2 * hang_minutes))
        dist.init_process_group(dist.get_default_backend_for_device(device), timeout=patience)
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32: float32 sums of products rounded to 10 bits, far faster
    try:
        if launched and dist.get_world_size() > 1:
            groups = [dist.new_group(backend="gloo", timeout=patience) for _ in range(2)]
            yield World(dist.get_rank(), dist.get_world_size(), device, *groups)
        else:
            yield World(0, 1, device)
    finally:
        torch.set_float32_matmul_precision(before)
        if dist.is_initialized():
            dist.destroy_process_group()


@contextmanager
def explained_loss(world: World) -> Iterator[None]:
    """Around work with others: where one of them is gone, what gloo or nccl raise becomes a sentence (ProcessLost)."""
    try:
        yield
    except RuntimeError as error:  # of which torch.distributed's are kinds
        found = LOST.search(str(error)) if world.size > 1 else None
        if found is None:
            raise
        raise ProcessLost(
            f"lost another process: {found[0]}; it has ended, and its own log says why, or its host is gone; the same "
            "command resumes from the newest checkpoint"
        ) from error


def _own_device(kind: str, number: int) -> torch.device:
    there = torch.accelerator.device_count()
    if number >= there:
        raise BadInput(
            f"process {number + 1} of this machine has no device, torch sees {there}; start {there} a machine, or set "
            "pretrain.engine.device=cpu"
        )
    if there > 1:
        torch.accelerator.set_device_index(number)
    return torch.device(kind, number)


def wait_for_device(device: torch.device) -> None:
    """Let it finish what it was given."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def peak_memory(device: torch.device) -> int:
    """Most bytes in use so far: by tensors on a device, by the whole process on a CPU."""
    if device.type == "cpu":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if device.type == "mps":  # keeps no peak
        return torch.mps.driver_allocated_memory()
    return torch.accelerator.max_memory_allocated(device)


def widest_float(device: torch.device) -> torch.dtype:
    """For sums over many steps: float64 wherever the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def name_interface(master: str) -> None:
    """Tell gloo and nccl which network interface leads to the master, unless the user did.

    On a machine whose own name leads to 127.0.0.1 gloo would offer that address to the other machines.
    """
    name, here = route_to(master)
    if name and not here.startswith("127."):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
        os.environ.setdefault("NCCL_SOCKET_IFNAME", name)


def route_to(master: str) -> tuple[str, str]:
    """This machine's interface and IPv4 address that lead to a host; "" where there is none."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((master, 9))  # sends nothing; asks the routing table only
            here = probe.getsockname()[0]
    except OSError:
        return "", ""
    there = psutil.net_if_addrs().items()
    return next((name for name, addresses in there if any(a.address == here for a in addresses)), ""), here


def _threads_here() -> int:
    """A process's share of the cores; torchrun and deepspeed name the processes of one machine differently."""
    beside = os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("LOCAL_SIZE") or os.environ["WORLD_SIZE"]
    return max(1, (os.cpu_count() or 1) // int(beside))
