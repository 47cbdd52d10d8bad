"""How well a masked model knows a planted value: its exposure, and whether it can be extracted.

Exposure (Carlini et al. 2019, "The Secret Sharer", section 4) is log2 |R| - log2 rank: the bits by which the model
narrows down a value among the values R of its format. R is too large, so it is sampled as in their section 4.3,
without a fitted distribution: the planted value and N others that were not planted. Exposure is at most log2 (N + 1);
a value that was never seen has ``chance`` on average, which approaches log2 e = 1.44 for many others.

The likelihood of a value is the pseudo-log-likelihood of its pieces in its sentence (Salazar et al. 2020, arXiv
1910.14659), with one piece masked at a time as in training. The extraction attack masks the whole value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.ablations.canaries import Canary
from benchmarks.ablations.masked_model import MaskedModel, Question, ScorePieces, mask_row, score_questions

BEAM_WIDTH = 10


class HiddenValue(NamedTuple):
    """A text as ids, and the places of its value."""

    ids: tuple[int, ...]
    places: tuple[int, ...]

    @property
    def value(self) -> tuple[int, ...]:
        """The pieces of the value."""
        return tuple(self.ids[place] for place in self.places)


def measure_exposure(
    model: MaskedModel, canaries: Sequence[Canary], others: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """For each canary: "kind", "times", "exposure" (bits), and "extracted" (whether the attack finds it).

    Args:
        others: values that were not planted, by type.
    """
    measured = []
    for canary in canaries:
        texts = [locate_value(model.tokenizer, canary, value) for value in (canary.value, *others[canary.kind])]
        own, *rest = pseudo_log_likelihoods(model, texts, model.mask_id)
        is_extracted = texts[0].value in extract(model, texts[0], model.mask_id)
        bits = exposure(own, np.array(rest))
        measured.append({"kind": canary.kind, "times": canary.times, "exposure": bits, "extracted": is_extracted})
    return measured


def locate_value(tokenizer: Any, canary: Canary, value: str) -> HiddenValue:
    """Encode the sentence of a canary with ``value``; ``tokenizer``: a fast tokenizer of transformers."""
    start, end = len(canary.before), len(canary.before) + len(value)
    encoded = tokenizer(canary.with_value(value), return_offsets_mapping=True)
    spans = enumerate(encoded["offset_mapping"])
    return HiddenValue(
        tuple(encoded["input_ids"]), tuple(at for at, (begin, stop) in spans if begin < end and stop > start)
    )


def exposure(own: float, others: NDArray[np.float64]) -> float:
    """Exposure in bits, 0 to log2 (N + 1), of a likelihood among those of N other values; ties count half.

    >>> exposure(-1.0, np.array([-2.0, -3.0, -4.0])), exposure(-9.0, np.array([-2.0, -3.0, -4.0]))
    (2.0, 0.0)
    """
    rank = 1 + int((others > own).sum()) + int((others == own).sum()) / 2
    return math.log2(len(others) + 1) - math.log2(rank)


def chance(others: int) -> float:
    """Mean exposure if every rank is equally likely.

    >>> round(chance(3), 3), round(chance(255), 3)
    (0.854, 1.422)
    """
    return math.log2(others + 1) - sum(math.log2(rank) for rank in range(1, others + 2)) / (others + 1)


def pseudo_log_likelihoods(score: ScorePieces, texts: Sequence[HiddenValue], mask_id: int) -> list[float]:
    """For the value of each text, the sum of the log-probabilities (nats) of its pieces, each masked alone."""
    asked = [
        (number, Question(mask_row(text.ids, [place], mask_id), place, text.ids[place]))
        for number, text in enumerate(texts)
        for place in text.places
    ]
    sums = [0.0] * len(texts)
    for (number, _), nats in zip(asked, score_questions(score, [question for _, question in asked]), strict=True):
        sums[number] += nats
    return sums


def extract(score: ScorePieces, text: HiddenValue, mask_id: int, width: int = BEAM_WIDTH) -> list[tuple[int, ...]]:
    """The ``width`` most likely values with the same number of pieces, by beam search from left to right.

    The whole value is masked at first. The attacker knows the sentence and the number of pieces.
    """
    beam: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for place in text.places:
        rows = []
        for _, filled in beam:
            row = mask_row(text.ids, text.places, mask_id)
            for at, piece in zip(text.places, filled, strict=False):
                row[at] = piece
            rows.append(row)
        scores_NV = score(rows, [place] * len(rows))
        best = scores_NV.topk(min(width, scores_NV.shape[1]))
        extended = [
            (total + nats, (*filled, piece))
            for (total, filled), scores, pieces in zip(beam, best.values.tolist(), best.indices.tolist(), strict=True)
            for nats, piece in zip(scores, pieces, strict=True)
        ]
        beam = sorted(extended, reverse=True)[:width]
    return [filled for _, filled in beam]
