"""Batches made ready while the device computes: one thread, two steps ahead.

A batch is a pure function of its step, so looking ahead changes nothing and a resumed run has nothing to skip. numpy
lets go of the interpreter in its loops, so one thread is enough: it makes some 10 million tokens a second.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import torch

from pretrain.batches import Batch, TrainingBatches

AHEAD = 2


class ReadyStep(NamedTuple):
    """A step's micro-batches of this process, pinned where there is a GPU.

    Fields:
        waited_s: seconds the training stood still for them.
    """

    step: int
    batches: list[Batch]
    waited_s: float


def ready_steps(batches: TrainingBatches, first: int, last: int, device: torch.device) -> Iterator[ReadyStep]:
    """Steps ``first`` to ``last``, both included."""

    def prepare(step: int) -> list[Batch]:
        found = batches.of_step(step)
        return [batch.pinned() for batch in found] if device.type == "cuda" else found

    with ThreadPoolExecutor(1, "batches") as thread:
        coming: deque[tuple[int, Future[list[Batch]]]] = deque()
        step = first
        try:
            while step <= last or coming:
                while step <= last and len(coming) < AHEAD:
                    coming.append((step, thread.submit(prepare, step)))
                    step += 1
                began = time.monotonic()
                number, future = coming.popleft()
                found = future.result()
                yield ReadyStep(number, found, time.monotonic() - began)
        finally:
            for _, future in coming:
                future.cancel()
