"""KLUE-MRC decoding: the best spans of a window, their characters, and the best answer over all windows.

Legend: ``L`` positions of a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Example, Feature, Prediction

ANSWER_TOKENS = 64  # longest answer; published: 30, but one of the 839 answers at hand has 36


def ends_of_starts(feature: Feature, end_L: NDArray[Any]) -> NDArray[Any]:
    """Scores of the ends that each start may have, (starts, ``ANSWER_TOKENS``), -inf after the context. Spans start
    where this window shows most around it."""
    begin, last = feature["max_context"]
    end = end_L[begin : feature["context_at"] + len(feature["offsets"])]
    padded = np.pad(end, (0, ANSWER_TOKENS - 1), constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(padded, ANSWER_TOKENS)[: last - begin + 1]


def best_span(feature: Feature, start_L: NDArray[Any], end_L: NDArray[Any]) -> tuple[float, int, int]:
    """Score and positions of the best span of a window, at most ``ANSWER_TOKENS`` long; -inf if there is none."""
    if feature["max_context"] is None:
        return -np.inf, 0, 0
    begin, last = feature["max_context"]
    ends = ends_of_starts(feature, end_L)
    length = ends.argmax(axis=1)
    total = start_L[begin : last + 1] + ends.max(axis=1)
    best = int(total.argmax())
    return float(total[best]), begin + best, begin + best + int(length[best])


def best_spans(feature: Feature, raw: Any, most: int) -> list[tuple[float, int, int]]:
    """Scores and characters of the best spans of a window, its ``best_span`` first."""
    if feature["max_context"] is None:
        return []
    begin, last = feature["max_context"]
    ends = ends_of_starts(feature, raw["end"])
    total = (raw["start"][begin : last + 1, None] + ends).ravel()
    some = np.argpartition(-total, min(most, len(total)) - 1)[:most]
    some = some[total[some] > -np.inf]
    start, length = np.divmod(some, ANSWER_TOKENS)
    order = np.lexsort((length, -ends[start, length], start, -total[some]))
    spans = zip(total[some], start + begin, start + length + begin, strict=True)
    found = [(float(score), *characters_of(feature, raw, first, end)) for score, first, end in spans]
    return [found[number] for number in order]


def characters_of(feature: Feature, raw: Any, first: int, last: int) -> tuple[int, int]:
    """The characters [begin, end) of a span of positions, without what the model cuts off the last token."""
    at = feature["context_at"]
    begin, (kept, end) = feature["offsets"][first - at, 0], feature["offsets"][last - at]
    return int(begin), max(int(end) - int(raw["cut"][last]), int(kept) + 1)


def decode(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], always_answers: bool = False
) -> list[Prediction]:
    """The best span over all windows as text of the context, or "". Scores: ``null``, how much "no answer" is ahead."""
    null = [np.inf] * len(examples)
    best: list[tuple[float, int, int]] = [(-np.inf, 0, 0)] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        example = feature["example"]
        null[example] = min(null[example], float(raw["start"][0] + raw["end"][0]))
        total, first, last = best_span(feature, raw["start"], raw["end"])
        if total > best[example][0]:
            best[example] = total, *characters_of(feature, raw, first, last)
    predictions = []
    for number, (total, begin, end) in enumerate(best):
        ahead = null[number] - total
        span = examples[number].inputs["context"][begin:end].strip()  # a token may bring the space before it
        text = "" if ahead > 0 and not always_answers else span
        predictions.append(Prediction(text, {"null": ahead if np.isfinite(ahead) else None}))
    return predictions
