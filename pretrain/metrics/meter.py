"""The lines of the log and of metrics.jsonl: loss, accuracy, rate, gradient norm, speed, MFU, memory and time left.

Sums of each step stay on the device and are read once per interval. Averages are over predictions, never means of
means. On a resume, later lines of metrics.jsonl are removed, and the steps of an unfinished interval are part of the
checkpoint, so the files of a resumed run and of an uninterrupted one differ in timing only.
"""

from __future__ import annotations

import json
import logging
import math
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from corpus.documents.accelerator import device_name
from corpus.documents.atomic_files import atomic_write, locate_errors
from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig, by_path
from pretrain.engine.memory import GIB
from pretrain.engine.start import is_partly_eager
from pretrain.engine.world import World, peak_memory, wait_for_device, widest_float
from pretrain.metrics.device_speed import Speed, peak_flops
from pretrain.metrics.divergence import NamesOfStep, StepSums, remember_norms, require_finite_losses, warn_of_jump
from pretrain.metrics.forecast import Forecast, OwnTime
from pretrain.model.loss import Sums

log = logging.getLogger(__name__)

# the only values that may differ between equal runs
TIMING_KEYS = ("seconds", "tokens_per_second", "mfu", "data_wait_share", "memory_gib", "rank_seconds_least",
               "rank_seconds_median", "rank_seconds_most", "slowest_rank", "slowest_factor", "eager")  # fmt: skip


class Meter:
    """Sums over an interval of steps, and the lines made from them; all processes call ``write`` and ``state``.

    Args:
        path: metrics.jsonl.
        resumed: step and state of the checkpoint, (0, None) for a new run.
        flops_of_step: operations to train on a token of a step, for the MFU.
        names_of_step: names of the rows of a step, for warnings; with a rank, only those of its part.
    """

    def __init__(
        self,
        path: Path,
        config: PretrainConfig,
        world: World,
        resumed: tuple[int, list[float] | None],
        flops_of_step: Callable[[int], float],
        names_of_step: NamesOfStep,
        speed: Speed | None = None,
    ) -> None:
        self._path, self._config, self._world, self._names_of_step = path, config, world, names_of_step
        last_step, state = resumed
        self._tokens_before, self._norms, self._steps = _unpack(state or [0.0, 0.0])
        self._float, steps = widest_float(world.device), config.watch.log_every
        self._sums_KF = torch.zeros(steps, len(Sums._fields), dtype=self._float, device=world.device)
        self._norms_K = torch.zeros(steps, dtype=self._float, device=world.device)
        self._counts = (0, 0, 0)  # predictions, tokens, others of the current step, in this process
        self._ended: list[tuple[int, float, tuple[int, int, int]]] = []  # steps: number, learning rate, counts
        self._flops_of_step = flops_of_step
        self._peak = peak_flops(device_name(world.device), config.engine.precision)
        self._forecast = Forecast(config, world, last_step + 1, flops_of_step, speed)
        self._is_first_line = True
        self._own = OwnTime(world.device)
        self._start_clock()
        if world.is_first:
            _cut_lines(path, last_step)
            if self._peak is None:
                log.info("no MFU: the peak speed of this device is not known")
            else:
                parts = (flops_of_step(last_step + 1) / 1e6, world.size, self._peak / 1e12)
                log.info("mfu = tokens a second x %.4g MFLOP a token / (%d devices x %.4g TFLOP/s)", *parts)
            self._forecast.before()

    def add(self, sums: Sums, predictions: int, tokens: int, others: int = 0) -> None:
        """Count one micro-batch of this process: masked targets, tokens without padding, next tokens or pairs."""
        self._sums_KF[len(self._ended)] += torch.stack([value.detach() for value in sums])
        before = self._counts
        self._counts = (before[0] + predictions, before[1] + tokens, before[2] + others)

    def record_point(self) -> None:
        """Record the begin or the end of this process's own part of a step (``OwnTime``)."""
        self._own.record_point()

    def end_step(self, step: int, lr: float, grad_norm: Tensor | float | None, waited_s: float) -> None:
        """Close the step; ``grad_norm``: None if the engine gives none; ``waited_s``: seconds without a batch."""
        if isinstance(grad_norm, Tensor):  # not read here; nan and -inf become inf
            grad_norm = grad_norm.detach().to(self._float).nan_to_num(math.inf, math.inf, math.inf)
        elif grad_norm is not None and not math.isfinite(grad_norm):
            grad_norm = math.inf
        self._norms_K[len(self._ended)] = math.nan if grad_norm is None else grad_norm
        self._ended.append((step, lr, self._counts))
        self._counts = (0, 0, 0)
        self._waited += waited_s
        self._forecast.end_step(step)

    def due(self, step: int) -> bool:
        """Whether a line is written after this step."""
        return step % self._config.watch.log_every == 0 or step == self._config.steps

    def state(self, step: int) -> list[float]:
        """The state for the checkpoint of ``step``; BadInput if a loss is not finite."""
        self._read_device()
        steps = [float(value) for ended in self._steps for value in ended]
        return [self._tokens_before, len(self._norms), *self._norms, *steps]

    @property
    def tokens(self) -> int:
        """Tokens trained on until the last ``state`` or ``write``, without padding."""
        return int(self._tokens_before + sum(step.tokens for step in self._steps))

    def write(self, step: int) -> None:
        """Log the interval that ends with ``step`` and start the next one; BadInput if a loss is not finite."""
        self._read_device()
        line = _averages(self._steps, self.tokens, self._config) | self._timing(step)
        if self._world.is_first:
            warn_of_jump(self._steps, self._norms, self._config, self._names_of_step)
            log.info(_readable(line, self._config, self._timed_steps, self._is_first_line))
            self._append(line)
        self._norms = remember_norms(self._norms, self._steps)
        self._tokens_before = line["tokens"]
        self._steps, self._is_first_line = [], False
        self._start_clock()

    def write_held_out(self, step: int, scores: dict[str, Any]) -> None:
        """Add a measurement on held-out rows after ``step``; BadInput if a number is not finite."""
        numbers = by_path(scores, "held_out/", "/")
        bad = [name for name, value in numbers.items() if not math.isfinite(value)]
        if bad:
            raise BadInput(f"step {step}: {bad[0]} is not finite; training has diverged: lower pretrain.optimizer.lr")
        if self._world.is_first:
            self._append({"step": step, "held_out": scores})

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time inside from the speed, for example a measurement or a checkpoint."""
        wait_for_device(self._world.device)  # steps that still run there count
        began = time.monotonic()
        yield
        self._clock += time.monotonic() - began

    def _append(self, line: dict[str, Any]) -> None:
        with locate_errors(self._path) as path, path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")

    def _read_device(self) -> None:
        """Move the ended steps from the device to ``_steps``, summed over all processes, and check the losses."""
        count = len(self._ended)
        counts_KC = torch.tensor([counts for *_, counts in self._ended], dtype=self._float).reshape(count, 3)
        totals_KF = self._world.total(torch.cat([self._sums_KF[:count], counts_KC.to(self._world.device)], dim=1))
        # the norm is the same in every process
        rows = torch.cat([totals_KF, self._norms_K[:count, None]], dim=1).tolist()
        new = [
            StepSums._make([n, *sums, lr, norm]) for (n, lr, _), (*sums, norm) in zip(self._ended, rows, strict=True)
        ]
        self._steps += new
        self._timed_steps += count
        self._timed_tokens += sum(step.tokens for step in new)
        bad = self._bad_ranks(new)
        self._sums_KF.zero_()
        self._ended = []
        require_finite_losses(self._steps, self._config, self._names_of_step, bad)

    def _bad_ranks(self, steps: list[StepSums]) -> dict[int, str]:
        """Host by rank of the processes whose part of the first bad step has a loss that is not finite."""
        bad = next((n for n, step in enumerate(steps) if not math.isfinite(step.loss)), None)
        if bad is None or self._world.size == 1:
            return {}
        is_bad = not bool(self._sums_KF[bad].isfinite().all())
        parts = self._world.gathered((is_bad, socket.gethostname()))  # all processes call this
        return {rank: host for rank, (is_bad, host) in enumerate(parts) if is_bad}

    def _start_clock(self) -> None:
        self._clock, self._waited, self._timed_steps, self._timed_tokens = time.monotonic(), 0.0, 0, 0.0

    def _timing(self, step: int) -> dict[str, float]:
        """Timing since the last line, or since the start; the first line includes start-up and compilation."""
        waited, own = zip(*self._world.gathered((self._waited, self._own.take(self._waited))), strict=True)
        seconds = max(time.monotonic() - self._clock, 1e-9)
        speed = self._timed_tokens / seconds
        timing = {
            "seconds": round(seconds, 3),
            "tokens_per_second": round(speed),
            "data_wait_share": round(sum(waited) / self._world.size / seconds, 4),
            "memory_gib": round(peak_memory(self._world.device) / GIB, 3),
        }
        if self._peak is not None:
            timing["mfu"] = round(speed * self._flops_of_step(step) / (self._peak * self._world.size), 4)
        if self._config.engine.compile is True and is_partly_eager():
            timing["eager"] = 1
        return timing | (spread(own) if self._world.size > 1 else {})


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Figures of each process's seconds for its part; ``slowest_factor``: compared with the median of the others.

    >>> spread([0.2, 0.2, 0.3])
    {'rank_seconds_least': 0.2, 'rank_seconds_median': 0.2, 'rank_seconds_most': 0.3, 'slowest_rank': 2, \
'slowest_factor': 1.5}
    """
    slowest = max(range(len(seconds)), key=seconds.__getitem__)
    others = median([*seconds[:slowest], *seconds[slowest + 1 :]])
    return {
        "rank_seconds_least": round(min(seconds), 6),
        "rank_seconds_median": round(median(seconds), 6),
        "rank_seconds_most": round(seconds[slowest], 6),
        "slowest_rank": slowest,
        "slowest_factor": round(seconds[slowest] / max(others, 1e-9), 3),
    }


def _averages(steps: list[StepSums], tokens: int, config: PretrainConfig) -> dict[str, float]:
    """The figures of an interval without timing; ``grad_norm`` is the largest finite one of the interval."""
    sums = StepSums._make(math.fsum(column) for column in zip(*steps, strict=True))
    line = {"step": steps[-1].step, "loss": sums.loss}
    if sums.predictions:
        line["masked_accuracy"] = sums.mlm_hits / sums.predictions
    if config.is_causal:
        line["causal_accuracy"] = sums.other_hits / sums.others
    line |= {"lr": steps[-1].lr, "tokens": tokens}
    norms = [step.grad_norm for step in steps if math.isfinite(step.grad_norm)]
    if norms:
        line["grad_norm"] = max(norms)
    if skipped := sum(step.grad_norm == math.inf for step in steps):
        line["skipped_steps"] = skipped
    if config.model.nsp:
        line |= {"mlm_loss": sums.mlm_loss / sums.predictions, "nsp_accuracy": sums.other_hits / max(sums.others, 1)}
    return line


def _readable(line: dict[str, float], config: PretrainConfig, timed_steps: int, is_first: bool) -> str:
    left = (config.steps - line["step"]) * line["seconds"] / max(timed_steps, 1)
    norm = f" norm {line['grad_norm']:.2f}" if "grad_norm" in line else ""
    mfu = f" mfu {100 * line['mfu']:.1f} %" if "mfu" in line else ""
    accuracy = line.get("masked_accuracy", line.get("causal_accuracy", 0.0))
    skipped = f" skipped {line['skipped_steps']}" if "skipped_steps" in line else ""
    slowest = f" slowest rank {line['slowest_rank']} x {line['slowest_factor']:.2f}" if "slowest_rank" in line else ""
    return (
        f"step {line['step']}/{config.steps} loss {line['loss']:.3f} accuracy {accuracy:.3f} "
        f"lr {line['lr']:.1e}{norm}{skipped} {line['tokens_per_second'] / 1000:.1f}k tok/s{mfu} "
        f"data wait {100 * line['data_wait_share']:.1f} % mem {line['memory_gib']:.1f} GiB"
        f"{slowest} "
        f"eta {timedelta(seconds=round(left))}{' (start-up included)' if is_first else ''}"
    )


def _unpack(state: list[float]) -> tuple[float, list[float], list[StepSums]]:
    """Tokens before the interval, earlier norms, and the steps of the interval."""
    tokens_before, count = state[0], int(state[1])
    rest, width = state[2 + count :], len(StepSums._fields)
    rows = [rest[first : first + width] for first in range(0, len(rest), width)]
    return tokens_before, state[2 : 2 + count], [StepSums._make([int(row[0]), *row[1:]]) for row in rows]


def _cut_lines(path: Path, last_step: int) -> None:
    """Keep the lines up to a step; lines that cannot be read are moved to another file.

    An unfinished last line is removed: it was written after the checkpoint.
    """
    kept_lines, damaged = [], []
    for line in path.read_bytes().splitlines(keepends=True) if path.is_file() else []:
        step = _step_of(line)
        if step is None and (line.endswith(b"\n") or not line.startswith(b'{"step": ')):
            damaged.append(line)
        elif step is not None and step <= last_step:
            kept_lines.append(line)
    if damaged:
        aside = path.with_name(path.name + ".damaged")
        log.warning("%s: moved %d damaged lines to %s", path, len(damaged), aside.name)
        atomic_write(aside, (aside.read_bytes() if aside.is_file() else b"") + b"".join(damaged))
    atomic_write(path, b"".join(kept_lines))


def _step_of(line: bytes) -> int | None:
    """The step of a complete line of metrics.jsonl, None for any other bytes."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_complete = line.endswith(b"\n") and isinstance(content, dict) and type(content.get("step")) is int
    is_valid = is_complete and isinstance(content.get("loss", content.get("held_out")), float | int | dict)
    return content["step"] if is_valid else None
