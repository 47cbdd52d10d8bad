"""Trains as start.py does, but rank 1 fails: ``faulty.py KIND made-folder out config.json``."""

from __future__ import annotations

import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

from pretrain.batching.batches import TrainingBatches
from pretrain.model.loss import PretrainingModule

SLOWER_S, HANGS_AT, BAD_AT = 0.15, 14, 5


def slow_then_hanging() -> None:
    """Its forward passes take longer, and the batch of a late step never comes."""
    forward, of_step = PretrainingModule.forward, TrainingBatches.of_step

    def slow(self: Any, *fields: Any) -> Any:
        time.sleep(SLOWER_S)
        return forward(self, *fields)

    def late(self: Any, step: int) -> Any:
        while step == HANGS_AT:
            time.sleep(1)
        return of_step(self, step)

    PretrainingModule.forward, TrainingBatches.of_step = slow, late  # type: ignore[method-assign]


def not_a_number() -> None:
    """One of its steps has a loss that is none."""
    from pretrain.metrics.meter import Meter

    add, ended = Meter.add, []

    def bad(self: Any, sums: Any, *counts: int) -> None:
        ended.append(None)
        add(self, sums._replace(mlm_loss=sums.mlm_loss * float("nan")) if len(ended) == BAD_AT else sums, *counts)

    Meter.add = bad  # type: ignore[method-assign]


if __name__ == "__main__":
    fault = sys.argv.pop(1)
    if os.environ["RANK"] == "1" and fault != "none":
        {"slow": slow_then_hanging, "nan": not_a_number}[fault]()
    runpy.run_path(str(Path(__file__).with_name("start.py")), run_name="__main__")
