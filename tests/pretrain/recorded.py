"""Trains as start.py does and leaves what it trained on: ``recorded.py made-folder out config.json``.

``OUT-rows-RANK.json`` next to ``out`` holds the digests of this process's rows by step, in their order.
"""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

from pretrain.batching.batches import Batch, TrainingBatches
from pretrain.batching.masking import IGNORED

NAME = "{out}-rows-{rank}.json"


def digests(batch: Batch) -> list[str]:
    """Of each row: its ids, and where to predict what; without the filling up to the longest of the micro-batch."""
    assert batch.positions_BM is not None
    found = []
    for ids_L, positions_M, targets_M in zip(batch.ids_BL, batch.positions_BM, batch.targets_BM, strict=True):
        is_target_M = targets_M != IGNORED
        row = [ids_L.tolist(), positions_M[is_target_M].tolist(), targets_M[is_target_M].tolist()]
        found.append(hashlib.sha256(json.dumps(row).encode()).hexdigest()[:16])
    return found


if __name__ == "__main__":
    of_step, seen = TrainingBatches.of_step, dict[int, list[str]]()

    def recorded(self: Any, step: int) -> list[Batch]:
        batches = of_step(self, step)
        seen[step] = [digest for batch in batches for digest in digests(batch)]
        return batches

    TrainingBatches.of_step = recorded  # type: ignore[method-assign]
    runpy.run_path(str(Path(__file__).with_name("start.py")), run_name="__main__")
    out = Path(sys.argv[-2])
    out.with_name(NAME.format(out=out.name, rank=os.environ.get("RANK", "0"))).write_text(json.dumps(seen), "utf-8")
