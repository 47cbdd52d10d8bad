"""What a person watching wants to know: loss, masked accuracy, rate, speed, memory, time left.

Sums stay on the device and are read once per interval, so logging costs no synchronisation in between. Averages are
over predictions, never means of means. Lines of metrics.jsonl behind a resumed step are cut off, so that file and an
undisturbed one differ in timing only.
"""

from __future__ import annotations

import json
import logging
import math
import resource
import time
from datetime import timedelta
from pathlib import Path

import torch

from pretrain.config import BadInput, PretrainConfig
from pretrain.model import Sums
from pretrain.world import World

log = logging.getLogger(__name__)

TIMING_KEYS = ("seconds", "tokens_per_second", "memory_gib")  # all that may differ between equal runs


class Meter:
    """Sums over an interval of steps, and the lines made of them.

    Args:
        path: metrics.jsonl; rank 0 appends to it.
        config: the configuration being trained.
        world: the processes; ``write`` and ``state`` must be called by all of them together.
        resumed: step and state to go on from, (0, None) for a fresh start.
    """

    def __init__(
        self, path: Path, config: PretrainConfig, world: World, resumed: tuple[int, list[float] | None]
    ) -> None:
        self._path, self._config, self._world = path, config, world
        self._step, state = resumed
        self._carried = state or [0.0] * (len(Sums._fields) + 1)
        self._sums = torch.zeros(len(self._carried), dtype=torch.float64, device=world.device)
        self._clock = time.monotonic()
        self._clock_step = self._step
        if world.is_first:
            _cut_lines(path, self._step)

    def add(self, sums: Sums, predictions: int) -> None:
        """Count one micro-batch of this process."""
        here = torch.stack([value.detach() for value in sums]).double()
        self._sums[:-1] += here
        self._sums[-1] += predictions

    def due(self, step: int) -> bool:
        """Whether a line belongs behind this step."""
        return step % self._config.log_every == 0 or step == self._config.steps

    def state(self, step: int) -> list[float]:
        """Sums of the running interval over all processes, for a checkpoint.

        Raises:
            BadInput: they are not finite.
        """
        totals = self._world.total(self._sums).tolist()
        self._carried = [carried + total for carried, total in zip(self._carried, totals, strict=True)]
        self._sums.zero_()
        self._check_finite(step)
        return self._carried

    def write(self, step: int, lr: float) -> None:
        """Log the interval that ends with ``step`` and begin the next one."""
        mlm_loss, mlm_hits, nsp_loss, nsp_hits, predictions = self.state(step)
        steps = step % self._config.log_every or self._config.log_every
        rows = steps * self._config.global_batch
        tokens_per_step = self._config.global_batch * self._config.sequence_length
        seconds = time.monotonic() - self._clock
        speed = (step - self._clock_step) * tokens_per_step / seconds
        line: dict[str, float] = {
            "step": step,
            "loss": mlm_loss / predictions + nsp_loss / rows,
            "masked_accuracy": mlm_hits / predictions,
            "lr": lr,
            "tokens": step * tokens_per_step,
            "seconds": round(seconds, 3),
            "tokens_per_second": round(speed),
            "memory_gib": round(_peak_memory_gib(self._world), 3),
        }
        if self._config.nsp:
            line |= {"mlm_loss": mlm_loss / predictions, "nsp_accuracy": nsp_hits / rows}
        if self._world.is_first:
            log.info(_readable(line, self._config, tokens_per_step))
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        self._carried = [0.0] * len(self._carried)
        self._clock, self._clock_step = time.monotonic(), step

    def _check_finite(self, step: int) -> None:
        if not all(map(math.isfinite, self._carried)):
            raise BadInput(
                f"the loss is not finite between steps {self._clock_step + 1} and {step}; training has diverged: lower "
                f"pretrain.lr ({self._config.lr}), raise pretrain.warmup_share or set pretrain.clip"
            )


def _readable(line: dict[str, float], config: PretrainConfig, tokens_per_step: int) -> str:
    left = (config.steps - line["step"]) * tokens_per_step / max(line["tokens_per_second"], 1)
    return (
        f"step {line['step']}/{config.steps} loss {line['loss']:.3f} accuracy {line['masked_accuracy']:.3f} "
        f"lr {line['lr']:.1e} {line['tokens_per_second'] / 1000:.1f}k tok/s mem {line['memory_gib']:.1f} GiB "
        f"eta {timedelta(seconds=round(left))}"
    )


def _peak_memory_gib(world: World) -> float:
    if world.device.type == "cuda":
        return torch.cuda.max_memory_allocated(world.device) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # kilobytes on Linux


def _cut_lines(path: Path, last_step: int) -> None:
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.is_file() else []
    whole = [line for line in lines if line.endswith("\n")]
    temporary = path.with_name(path.name + ".partial")
    temporary.write_text("".join(line for line in whole if json.loads(line)["step"] <= last_step), "utf-8")
    temporary.replace(path)
