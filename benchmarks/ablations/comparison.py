"""Compare figures of planted values or documents between two models, as ``malmoi compare`` compares scores.

An example is a planted value or a held-out document. It has an amount and a weight (an exposure and 1, bits and
characters). A figure is the sum of the amounts divided by the sum of the weights.

Shapes: S seeds, E examples, B resamples.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from finetune.score.bootstrap import RESAMPLES, SEED, SHUFFLES, draw
from finetune.score.significance import EXAMPLES_ONLY, Difference, Estimate, Sample, differ, estimate, holm

Array = NDArray[np.float64]
Amounts = Mapping[str, tuple[float, float]]  # amount and weight by example
Name = TypeVar("Name", bound=Hashable)


class Summary(NamedTuple):
    """One figure of the models of a variant, by seed and resampled."""

    sample: Sample
    examples: tuple[str, ...]
    amounts_SE: Array
    counts_SE: Array


@dataclass(frozen=True, slots=True)
class Comparison(Generic[Name]):
    """Comparison of two variants by one figure; ``difference`` is b - a."""

    name: Name
    estimates: tuple[Estimate, Estimate]
    difference: Difference | None
    p: float | None
    p_holm: float | None

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        difference = self.difference
        return {
            "a": self.estimates[0]._asdict(),
            "b": self.estimates[1]._asdict(),
            "difference": difference and difference.value,
            "interval": difference and difference.interval,
            "test": difference and difference.test,
            "p": self.p,
            "p_holm": self.p_holm,
        }


def summarize(by_seed: Mapping[int, Amounts]) -> Summary:
    """Compute one figure and resample it over the examples; all seeds have the same examples."""
    seeds = tuple(sorted(by_seed))
    examples = tuple(sorted(by_seed[seeds[0]]))
    both_SE2 = np.array([[by_seed[seed][name] for name in examples] for seed in seeds], np.float64)
    amounts_SE, counts_SE = both_SE2[..., 0], both_SE2[..., 1]
    drawn_BE = np.stack(list(draw(examples, RESAMPLES, SEED)))
    resampled_SB = amounts_SE[:, drawn_BE].sum(-1) / counts_SE[:, drawn_BE].sum(-1)
    sample = Sample(seeds, amounts_SE.sum(1) / counts_SE.sum(1), resampled_SB, len(examples))
    return Summary(sample, examples, amounts_SE, counts_SE)


def compare_summaries(pairs: Mapping[Name, tuple[Summary, Summary]]) -> list[Comparison[Name]]:
    """Compare each b with its a; all tests are one family for the Holm correction."""
    tests: dict[Name, tuple[Difference | None, float | None]] = {}
    for name, (a, b) in pairs.items():
        difference = differ(a.sample, b.sample)
        p = difference.p if difference else None
        if difference is not None and difference.test == EXAMPLES_ONLY:
            p = randomization_p(a, b)
        tests[name] = difference, p
    adjusted = holm({name: p for name, (_, p) in tests.items() if p is not None})
    return [
        Comparison(name, (estimate(a.sample, ""), estimate(b.sample, "")), *tests[name], adjusted.get(name))
        for name, (a, b) in pairs.items()
    ]


def randomization_p(a: Summary, b: Summary, shuffles: int = SHUFFLES) -> float | None:
    """Two-sided p of one seed each, by approximate randomization over the examples (Noreen 1989).

    The observed difference counts as one of the shuffles. None if the examples differ.
    """
    if a.examples != b.examples:
        return None
    coins_BE = np.random.default_rng(SEED).integers(2, size=(shuffles, len(a.examples))).astype(bool)
    coins_BE[0] = False

    def figures(one: Summary, other: Summary) -> Array:
        amounts, counts = (
            np.where(coins_BE, second[0], first[0]).sum(1)
            for first, second in ((one.amounts_SE, other.amounts_SE), (one.counts_SE, other.counts_SE))
        )
        return np.asarray(amounts / counts)

    differences_B = np.abs(figures(b, a) - figures(a, b))
    return float((differences_B >= differences_B[0] - 1e-12).mean())
