"""A race as it stood at its last point, in one file, so that one that was killed goes on from there.

The file belongs to its order: under other settings, another budget or text it is left aside. Batches and masks are
functions of the step, and the plan follows from what was spent, so the result is the same.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from corpus.documents.atomic_files import PARTIAL_SUFFIX, locate_errors
from pretrain.engine.start import Engine

WEIGHTS, MOMENTS = "weights", "moments"


class Kept:
    """``state``: what the race was at its last point, as JSON; None where nothing of this order is kept."""

    def __init__(self, path: Path, order: str) -> None:
        self._path, self._order = path, order
        self.state: dict[str, Any] | None = None
        with suppress(FileNotFoundError, SafetensorError), safe_open(path, "pt") as file:
            told = file.metadata()
            if told["order"] == order:
                self.state = json.loads(told["state"])

    def give_to(self, engine: Engine) -> None:
        """Restore what is kept."""
        assert self.state is not None
        parts: dict[str, dict[str, Tensor]] = {WEIGHTS: {}, MOMENTS: {}}
        for key, tensor in load_file(self._path).items():
            part, _, name = key.partition("/")
            parts[part][name] = tensor
        engine.restore(parts[WEIGHTS], parts[MOMENTS], self.state["step"])

    def save(self, engine: Engine, state: dict[str, Any]) -> None:
        """Put the newest point in the place of the one before, whole or not at all."""
        parts = zip((WEIGHTS, MOMENTS), engine.state(keep=True), strict=True)
        tensors = {f"{part}/{name}": tensor for part, found in parts for name, tensor in found.items()}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_name(self._path.name + PARTIAL_SUFFIX)
        with locate_errors(partial):
            save_file(tensors, partial, {"order": self._order, "state": json.dumps(state)})
        partial.replace(self._path)

    def drop(self) -> None:
        """The race is over."""
        self._path.unlink(missing_ok=True)
