"""The processes that train together: one, or those that torchrun, deepspeed or Slurm started.

The variables RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT of the launcher decide. Tensors are sent by the
backend of the device; small numbers are sent by gloo on GPU machines too, so that no process waits for its device.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import psutil
import torch
import torch.distributed as dist
from torch import Tensor

from corpus.documents.accelerator import DeviceName, find_device, process_peak
from corpus.documents.errors import BadInput
from pretrain.interruption import ProcessLost

log = logging.getLogger(__name__)

LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
MIN_TIMEOUT_MINUTES = 30.0  # the default of gloo
# messages of gloo (with an address) and nccl if another process has ended
LOST = re.compile(
    r"(?:\S+ error )?\[\S+\]:\d+: (?:Connection reset|Broken pipe|Connection timed out|No route to host)[\w ]*|"
    r"Connection closed by peer \[\S+\]:\d+|Timed out waiting \d+ms|remote process exited[\w ]*"
)

# variables that undo what training relies on, and their effect; the first one is set otherwise
HARMFUL = {
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=0": "the other processes wait forever for one that has ended",
    "TORCH_NCCL_BLOCKING_WAIT=1": "each step waits for its all-reduce instead of computing meanwhile",
    "CUDA_LAUNCH_BLOCKING=1": "each kernel waits for the one before",
}


@dataclass(frozen=True, slots=True)
class World:
    """This process (``rank`` of ``size``, on ``device``); the groups send without GPUs, one of them for a thread."""

    rank: int
    size: int
    device: torch.device
    cpu_group: Any = None
    other_group: Any = None

    def for_thread(self) -> World:
        """The same processes with a group of their own for a background thread."""
        return replace(self, cpu_group=self.other_group)

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and logs."""
        return self.rank == 0

    def total(self, values: Tensor) -> Tensor:
        """Sum of a tensor over all processes, in place, on every process."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def totals(self, numbers: Sequence[int]) -> list[int]:
        """Sums of small integers over all processes, without waiting for a device."""
        if self.size == 1:
            return list(numbers)
        values = torch.tensor(numbers)
        dist.all_reduce(values, group=self.cpu_group)
        return [int(value) for value in values]

    def broadcast(self, thing: Any) -> Any:
        """The object of the first process, in every process."""
        box = [thing]
        if self.size > 1:
            dist.broadcast_object_list(box, 0, group=self.cpu_group)
        return box[0]

    def gathered(self, thing: Any) -> list[Any]:
        """The objects of all processes by rank, in every process, without waiting for a device."""
        if self.size == 1:
            return [thing]
        things: list[Any] = [None] * self.size
        dist.all_gather_object(things, thing, group=self.cpu_group)
        return things

    def in_first(self, work: Callable[[], Any]) -> Any:
        """The result of ``work`` in the first process, or its BadInput or OSError, in every process."""
        outcome: Any = None
        if self.is_first:
            try:
                outcome = work()
            except (BadInput, OSError) as error:
                if self.size == 1:
                    raise
                outcome = error
        outcome = self.broadcast(outcome)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def wait_for_all(self) -> None:
        if self.size > 1:
            dist.barrier()


@contextmanager
def join_world(requested: DeviceName = "auto", hang_minutes: float = 0.0) -> Iterator[World]:
    """Join the processes of the launcher; the device is the accelerator, or the CPU if it is ``requested``.

    Processes wait for each other longer than ``hang_minutes``, so that the watchdog reports first. BadInput: variables
    of the launcher are missing, or devices are missing or not usable.
    """
    present = [name for name in LAUNCHER_VARIABLES if name in os.environ]
    if "WORLD_SIZE" in present and len(present) < len(LAUNCHER_VARIABLES):
        missing = sorted(set(LAUNCHER_VARIABLES) - set(present))
        raise BadInput(f"WORLD_SIZE is set but {', '.join(missing)} is not; start with torchrun or deepspeed")
    launched = len(present) == len(LAUNCHER_VARIABLES)
    device = find_device(requested, "pretrain.engine.device")
    if device.type != "cpu":
        device = own_device(device.type, int(os.environ["LOCAL_RANK"]) if launched else 0)
    elif launched and "OMP_NUM_THREADS" not in os.environ:
        # deepspeed, unlike torchrun, sets no number of threads
        processes = os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("LOCAL_SIZE") or os.environ["WORLD_SIZE"]
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(processes)))
    if device.type == "cuda":
        prepare_nccl()
    if launched:
        name_interface(os.environ["MASTER_ADDR"])
        timeout = timedelta(minutes=max(MIN_TIMEOUT_MINUTES, 2 * hang_minutes))
        dist.init_process_group(dist.get_default_backend_for_device(device), timeout=timeout)
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32: float32 sums of products rounded to 10 bits, far faster
    try:
        if launched and dist.get_world_size() > 1:
            groups = [dist.new_group(backend="gloo", timeout=timeout) for _ in range(2)]
            world = World(dist.get_rank(), dist.get_world_size(), device, *groups)
            _require_own_devices(world)
            yield world
        else:
            yield World(0, 1, device)
    finally:
        torch.set_float32_matmul_precision(before)
        if dist.is_initialized():
            dist.destroy_process_group()


def prepare_nccl() -> None:
    """Make an all-reduce that takes longer than the time-out end its process; warn of variables that do harm."""
    os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "3")  # the default of torch; 0 in old job scripts
    for setting, effect in HARMFUL.items():
        name, _, value = setting.partition("=")
        if os.environ.get(name) == value:
            log.warning("%s: %s; unset it", setting, effect)


@contextmanager
def explained_loss(world: World) -> Iterator[None]:
    """Turn an error of gloo or nccl about a process that has ended into a ProcessLost with advice."""
    try:
        yield
    except RuntimeError as error:  # the base class of the errors of torch.distributed
        match = LOST.search(str(error)) if world.size > 1 else None
        if match is None:
            raise
        raise ProcessLost(
            f"lost another process: {match[0]}; it has ended (see its log), or its host is down; the same command "
            "resumes from the newest checkpoint"
        ) from error


def own_device(kind: str, number: int) -> torch.device:
    """The device of process ``number`` of this machine: the only one that it sees, or that of its number."""
    devices = torch.accelerator.device_count()
    if devices == 1:  # srun --gpus-per-task=1 shows each process its own device
        return torch.device(kind, 0)
    if number >= devices:
        raise BadInput(
            f"process {number + 1} of this machine has no device: torch finds {devices}; start {devices} processes per "
            "machine, or set pretrain.engine.device=cpu"
        )
    torch.accelerator.set_device_index(number)
    return torch.device(kind, number)


def _require_own_devices(world: World) -> None:
    """Raise BadInput in all processes if two of them use the same GPU."""
    if world.device.type != "cuda":
        return
    properties: Any = torch.cuda.get_device_properties(world.device)
    devices = world.gathered((socket.gethostname(), str(properties.uuid)))
    shared = [rank for rank, device in enumerate(devices) if devices.index(device) < rank]
    if shared:
        raise BadInput(
            f"process {shared[0]} of the training uses the same GPU of {devices[shared[0]][0]} as another; start one "
            "process per GPU, or set pretrain.engine.device=cpu"
        )


def wait_for_device(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def peak_memory(device: torch.device) -> int:
    """Peak memory in bytes: of tensors on a device, of the process on a CPU."""
    if device.type == "cpu":
        return process_peak()
    if device.type == "mps":  # has no peak
        return torch.mps.driver_allocated_memory()
    return torch.accelerator.max_memory_allocated(device)


def widest_float(device: torch.device) -> torch.dtype:
    """For sums over many steps: float64 if the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def name_interface(master: str) -> None:
    """Set the network interface for gloo and nccl to the route to the master, unless the user has set it.

    If the host name of a machine resolves to 127.0.0.1, gloo would announce that address to the other machines.
    """
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((master, 9))  # looks up the route and sends nothing
        here = probe.getsockname()[0]
        own = (name for name, addresses in psutil.net_if_addrs().items() if any(a.address == here for a in addresses))
        if not here.startswith("127.") and (name := next(own, None)):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
            os.environ.setdefault("NCCL_SOCKET_IFNAME", name)
