"""Where processes train: one on each GPU, or several on a CPU with one thread each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from finetune.queue.pool import Slot

VISIBLE = {"cuda": "CUDA_VISIBLE_DEVICES", "xpu": "ZE_AFFINITY_MASK"}  # the variable that shows devices to a process


def slots_of(device: torch.device, workers: int, *, apart: bool = False) -> list[Slot]:
    """One slot for each GPU, or ``workers`` on a CPU; none if this process does the work, which ``apart`` forbids."""
    if device.type == "cpu":
        return [Slot({}, _use_one_thread)] * workers if workers > 1 or apart else []
    variable = VISIBLE.get(device.type)
    return gpu_slots(variable, torch.accelerator.device_count()) if variable and workers else []


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread while this process trains."""
    threads = torch.get_num_threads()
    _use_one_thread()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _use_one_thread() -> None:
    torch.set_num_threads(1)  # results on a CPU do not depend on the number of its cores


def gpu_slots(variable: str, count: int) -> list[Slot]:
    """One process for each of ``count`` GPUs, which sees no other; ``variable`` may already list the GPUs to use."""
    visible = [name for name in os.environ.get(variable, "").split(",") if name]
    return [Slot({variable: name}) for name in (visible or map(str, range(count)))][:count]
