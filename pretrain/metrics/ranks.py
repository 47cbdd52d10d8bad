"""How long each process takes for its own part of a step, and who is persistently slower than the others.

All processes end a step together, so the time of a whole step says nothing. A process's own part is what it does before
it first waits for others: getting the batch, and everything up to the last backward pass, which adds the gradients up.
Under ``fsdp`` and ZeRO stage 3 layers are gathered in the forward pass as well, so there a slow process is hidden by
those that wait for it. Points in the work of a device are read when a line is due; nobody waits for it in between.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from statistics import median

import torch

from pretrain.metrics.forecast import Mark

log = logging.getLogger(__name__)

STRAGGLES = 1.2  # times the others' median
LINES_IN_A_ROW = 5


class OwnTime:
    """Seconds of this process's own parts since the last ``take``."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._marks: list[Mark] = []  # begin and end of each step's part, by turns
        self._waited = 0.0

    def mark(self) -> None:
        """Called twice in a step: where its part begins, and where it ends."""
        self._marks.append(Mark(self._device))

    def add_waiting(self, seconds: float) -> None:
        """Add the time the step waited for its batch."""
        self._waited += seconds

    def take(self) -> float:
        """The mean over the steps since, 0 where there was none; the device must be through them."""
        begins, ends = self._marks[::2], self._marks[1::2]
        total = self._waited + sum(a.seconds_to(b) for a, b in zip(begins, ends, strict=False))
        self._marks, self._waited = [], 0.0
        return total / max(len(ends), 1)


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


class Stragglers:
    """Warns of a process that is slower line after line."""

    def __init__(self) -> None:
        self._rank, self._factors = -1, list[float]()

    def note(self, rank: int, factor: float, hosts: Sequence[str]) -> None:
        """Take one line's slowest process into account; ``hosts``: where each runs, by rank.

        The warning comes once, when it has been so for some lines.
        """
        if rank != self._rank or factor < STRAGGLES:
            self._rank, self._factors = rank, []
        if factor < STRAGGLES:
            return
        self._factors.append(factor)
        if len(self._factors) == LINES_IN_A_ROW:
            log.warning(
                "rank %d on %s was the slowest in each of the last %d lines: it takes %.2f times as long as the others "
                "for its part of a step, and all wait for it; look at that machine (`malmoi doctor --cluster`, other "
                "programs, temperature), or leave it out",
                *(rank, hosts[rank], LINES_IN_A_ROW, median(self._factors)),
            )
