"""What was measured of each example under each seed, compared as ``malmoi compare`` compares scores.

An example is a planted value or a held-out document. Its amount counts for so much (an exposure for 1, bits for their
characters), and a figure is the sum of all amounts over the sum of what they count for.

Shapes: S seeds, E examples, B resamples.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from finetune.score.bootstrap import RESAMPLES, SEED, SHUFFLES, Sample, draw
from finetune.score.significance import EXAMPLES_ONLY, Difference, Estimate, differ, estimate, holm

Array = NDArray[np.float64]
Amounts = Mapping[str, tuple[float, float]]  # by example: amount, and what it counts for
Name = TypeVar("Name", bound=Hashable)


class Measured(NamedTuple):
    """One figure of the models of a cell."""

    sample: Sample
    examples: tuple[str, ...]
    amounts_SE: Array
    counts_SE: Array


@dataclass(frozen=True, slots=True)
class Compared(Generic[Name]):
    """Two cells by one figure; ``difference`` is b - a."""

    name: Name
    estimates: tuple[Estimate, Estimate]
    difference: Difference | None
    p: float | None
    p_holm: float | None

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        found = self.difference
        return {
            "a": self.estimates[0]._asdict(), "b": self.estimates[1]._asdict(), "difference": found and found.value,
            "interval": found and found.interval, "test": found and found.test, "p": self.p, "p_holm": self.p_holm,
        }  # fmt: skip


def measured(by_seed: Mapping[int, Amounts]) -> Measured:
    """One figure, resampled over the examples; the same examples under all seeds."""
    seeds = tuple(sorted(by_seed))
    examples = tuple(sorted(by_seed[seeds[0]]))
    both_SE2 = np.array([[by_seed[seed][name] for name in examples] for seed in seeds], np.float64)
    amounts_SE, counts_SE = both_SE2[..., 0], both_SE2[..., 1]
    drawn_BE = np.stack(list(draw(examples, RESAMPLES, SEED)))
    resampled_SB = amounts_SE[:, drawn_BE].sum(-1) / counts_SE[:, drawn_BE].sum(-1)
    sample = Sample(seeds, amounts_SE.sum(1) / counts_SE.sum(1), resampled_SB, len(examples))
    return Measured(sample, examples, amounts_SE, counts_SE)


def compare_all(pairs: Mapping[Name, tuple[Measured, Measured]]) -> list[Compared[Name]]:
    """Each b beside its a, all tests corrected together."""
    found: dict[Name, tuple[Difference | None, float | None]] = {}
    for name, (a, b) in pairs.items():
        difference = differ(a.sample, b.sample)
        p = difference.p if difference else None
        if difference is not None and difference.test == EXAMPLES_ONLY:
            p = swapped(a, b)
        found[name] = difference, p
    adjusted = holm({name: p for name, (_, p) in found.items() if p is not None})
    return [
        Compared(name, (estimate(a.sample, ""), estimate(b.sample, "")), *found[name], adjusted.get(name))
        for name, (a, b) in pairs.items()
    ]


def swapped(a: Measured, b: Measured, shuffles: int = SHUFFLES) -> float | None:
    """Two-sided p of one seed each: how often a difference as large comes out when the examples' amounts of the two are
    swapped or not by a coin (Noreen 1989). The observed difference counts as one of the shuffles."""
    if a.examples != b.examples:
        return None
    coins_BE = np.random.default_rng(SEED).integers(2, size=(shuffles, len(a.examples))).astype(bool)
    coins_BE[0] = False

    def number_table(one: Measured, other: Measured) -> Array:
        amounts, counts = (
            np.where(coins_BE, theirs[0], own[0]).sum(1)
            for own, theirs in ((one.amounts_SE, other.amounts_SE), (one.counts_SE, other.counts_SE))
        )
        return np.asarray(amounts / counts)

    differences_B = np.abs(number_table(b, a) - number_table(a, b))
    return float((differences_B >= differences_B[0] - 1e-12).mean())
