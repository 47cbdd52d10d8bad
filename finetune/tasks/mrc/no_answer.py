"""KLUE-MRC: windows without an answer, and the no-answer threshold.

In short windows of a long passage few contain the answer (12.7 % at 128 tokens, 49.9 % at 510, KLUE's vocabulary), so a
model that always predicts "no answer" loses little. Two remedies: train on a share of the windows without answer, and
choose the required lead of "no answer" on held-out examples.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Sequence

import numpy as np

from finetune.examples import Example, Feature, Prediction
from finetune.tasks.mrc.metrics import score_question

log = logging.getLogger(__name__)

FEW_ANSWERS = 0.25  # of the training windows; with fewer, "no answer" tends to win everywhere


def keep_some(features: Sequence[Feature], examples: Sequence[Example], share: float) -> list[Feature]:
    """The windows with an answer and a ``share`` (0..1) of the others, drawn by guid and position; each question keeps
    at least one."""
    draws = [_draw(examples[feature["example"]].guid, feature["begin"]) for feature in features]
    has_answer = [feature["start"] > 0 for feature in features]
    best: dict[int, float] = {}
    for feature, draw, answered in zip(features, draws, has_answer, strict=True):
        best[feature["example"]] = min(best.get(feature["example"], 1.0), -1.0 if answered else draw)
    return [
        feature
        for feature, draw, answered in zip(features, draws, has_answer, strict=True)
        if answered or draw < share or draw == best[feature["example"]]
    ]


def _draw(guid: str, begin: int) -> float:
    return int.from_bytes(hashlib.blake2b(f"{guid}:{begin}".encode(), digest_size=6).digest()) / (1 << 48)


def warn_of_empty(features: Sequence[Feature]) -> None:
    """Warn if less than a quarter of the training windows contain an answer."""
    share = sum(feature["start"] > 0 for feature in features) / max(1, len(features))
    if share < FEW_ANSWERS:
        log.warning(
            "klue-mrc: only %.0f %% of %d training windows hold an answer, so the model may learn to say that there is "
            "none; raise finetune.overrides.klue-mrc.max_tokens or lower finetune.mrc_empty_windows",
            100 * share, len(features),
        )  # fmt: skip


def choose_threshold(examples: Sequence[Example], answered: Sequence[Prediction]) -> float:
    """The lead of "no answer" above which a question is left unanswered, so that the mean of exact match and ROUGE-W is
    highest; the middle of the two neighboring leads, 0 if nothing can be chosen.

    Args:
        answered: for each example the best span, even if "no answer" leads, and its lead as ``null``.

    >>> examples = [Example(str(n), {"answers": ["봄"] if n else []}, {}) for n in range(3)]
    >>> choose_threshold(examples, [Prediction("봄", {"null": lead}) for lead in (5.0, 2.0, 1.0)])
    3.5
    """
    rows = [
        (found.scores["null"], sum(score_question(example.gold, found.value)), 2 * (not example.gold["answers"]))
        for example, found in zip(examples, answered, strict=True)
        if found.scores["null"] is not None
    ]  # fmt: skip
    rows.sort()
    if not rows:
        return 0.0
    leads_N, spans_N, empties_N = np.array(rows).T
    # value of a threshold after the first n leads: they are answered, the others are not
    value = np.concatenate(([0.0], np.cumsum(spans_N - empties_N)))
    between = np.concatenate(([True], np.diff(leads_N) > 0, [True]))  # equal leads cannot be parted
    value[~between] = -math.inf
    edges = np.concatenate(([leads_N[0] - 1], (leads_N[:-1] + leads_N[1:]) / 2, [leads_N[-1] + 1]))
    best = np.flatnonzero(value == value.max())
    return float(edges[best[np.abs(edges[best]).argmin()]])  # of equals the nearest to 0, which is no threshold
