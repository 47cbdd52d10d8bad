"""How well a masked model knows a planted value: its exposure, and whether it can be drawn out of the model.

Exposure (Carlini et al. 2019, "The Secret Sharer", section 4) is log2 |R| - log2 rank: the bits by which the model
narrows down a value among the values R of its format. |R| is too large to try, so R is a sample, as in their section
4.3, without a fitted distribution: the planted value among N others that nobody planted. It reaches log2 (N + 1) at
most, and of a value that was never seen it is ``chance`` on average, towards log2 e = 1.44 for many others.

A value's likelihood is the pseudo-log-likelihood of its pieces in its sentence (Salazar et al. 2020, arXiv 1910.14659):
each is hidden alone. That is how the data are met in training, so it tells the most. The attack hides the whole value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.ablations.plant import Canary
from benchmarks.ablations.reader import MaskedModel, Question, Reader, ask, masked

WIDTH = 10  # of the beam: what is drawn out is looked for among so many


class Hidden(NamedTuple):
    """A text as ids, and where its value stands in them."""

    ids: tuple[int, ...]
    places: tuple[int, ...]

    @property
    def value(self) -> tuple[int, ...]:
        """The pieces of the value."""
        return tuple(self.ids[place] for place in self.places)


def measure_exposure(
    model: MaskedModel, canaries: Sequence[Canary], others: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """Of each canary its "kind", "times", "exposure" (bits), and "extracted": whether the attack finds it.

    Args:
        others: by type, values that nobody planted.
    """
    found = []
    for canary in canaries:
        hidden = [hide(model.tokenizer, canary, value) for value in (canary.value, *others[canary.kind])]
        own, *rest = pseudo_log_likelihoods(model, hidden, model.mask_id)
        is_extracted = hidden[0].value in draw_out(model, hidden[0], model.mask_id)
        known = exposure(own, np.array(rest))
        found.append({"kind": canary.kind, "times": canary.times, "exposure": known, "extracted": is_extracted})
    return found


def hide(tokenizer: Any, canary: Canary, value: str) -> Hidden:
    """The sentence of a canary about ``value``; ``tokenizer``: a fast one of transformers."""
    start, end = len(canary.before), len(canary.before) + len(value)
    encoded = tokenizer(canary.with_value(value), return_offsets_mapping=True)
    spans = enumerate(encoded["offset_mapping"])
    return Hidden(tuple(encoded["input_ids"]), tuple(at for at, (begin, stop) in spans if begin < end and stop > start))


def exposure(own: float, others: NDArray[np.float64]) -> float:
    """Bits, 0 to log2 (N + 1), by which a likelihood stands out of those of N other values; of equal ones half count.

    >>> exposure(-1.0, np.array([-2.0, -3.0, -4.0])), exposure(-9.0, np.array([-2.0, -3.0, -4.0]))
    (2.0, 0.0)
    """
    rank = 1 + int((others > own).sum()) + int((others == own).sum()) / 2
    return math.log2(len(others) + 1) - math.log2(rank)


def chance(others: int) -> float:
    """Mean exposure where every rank is as likely.

    >>> round(chance(3), 3), round(chance(255), 3)
    (0.854, 1.422)
    """
    return math.log2(others + 1) - sum(math.log2(rank) for rank in range(1, others + 2)) / (others + 1)


def pseudo_log_likelihoods(read: Reader, texts: Sequence[Hidden], mask_id: int) -> list[float]:
    """Of the value of each text: the sum of the log-probabilities (nats) of its pieces, each hidden alone."""
    asked = [
        (number, Question(masked(text.ids, [place], mask_id), place, text.ids[place]))
        for number, text in enumerate(texts)
        for place in text.places
    ]
    sums = [0.0] * len(texts)
    for (number, _), score in zip(asked, ask(read, [question for _, question in asked]), strict=True):
        sums[number] += score
    return sums


def draw_out(read: Reader, text: Hidden, mask_id: int, width: int = WIDTH) -> list[tuple[int, ...]]:
    """The ``width`` likeliest values of as many pieces as the text's, found by beam search from left to right.

    The whole value is hidden, and what is not yet filled in stays so. The attacker knows the sentence and the number
    of pieces.
    """
    beam: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for place in text.places:
        rows = []
        for _, filled in beam:
            row = masked(text.ids, text.places, mask_id)
            for at, piece in zip(text.places, filled, strict=False):
                row[at] = piece
            rows.append(row)
        scores_NV = read(rows, [place] * len(rows))
        best = scores_NV.topk(min(width, scores_NV.shape[1]))
        further = [
            (score + more, (*filled, piece))
            for (score, filled), scores, pieces in zip(beam, best.values.tolist(), best.indices.tolist(), strict=True)
            for more, piece in zip(scores, pieces, strict=True)
        ]
        beam = sorted(further, reverse=True)[:width]
    return [filled for _, filled in beam]
