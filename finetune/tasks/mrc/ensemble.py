"""KLUE-MRC by several models: spans are compared by their characters, so tokenizers may differ.

Two means decide: the probability of "no answer" against a member's own best span, and the probability of each span
among a member's best spans, weighted by the probability that the member answers. A span that one tokenizer cannot
represent gets nothing from it; with one distribution over spans and "no answer", spans that differ by a particle would
lose to "no answer".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from finetune.examples import Example, Feature, Prediction
from finetune.metrics import softmax
from finetune.task import MemberRecord, MemberRecords

MOST_SPANS = 20  # of a question, as in the published n-best lists
Spans = Iterable[tuple[float, int, int]]  # score, first character and last plus one, the best first


def to_records(
    spans_of: Callable[[Feature, Any, int], Spans], examples: Sequence[Example], features: Sequence[Feature],
    raws: Sequence[Any],
) -> list[MemberRecord]:  # fmt: skip
    """``null``: the score of "no answer"; of the best spans ``scores``, ``places`` (two numbers each) and ``texts``.

    Args:
        spans_of: ``(feature, raw output, number)`` to the best spans of a window.
    """
    null = np.full(len(examples), np.inf, dtype=np.float32)
    found: list[dict[tuple[int, int], float]] = [{} for _ in examples]
    for feature, raw in zip(features, raws, strict=True):
        number, context = feature["example"], examples[feature["example"]].inputs["context"]
        null[number] = min(null[number], raw["start"][0] + raw["end"][0])
        for score, begin, end in spans_of(feature, raw, MOST_SPANS):
            text = context[begin:end]
            place = begin + len(text) - len(text.lstrip()), begin + len(text.rstrip())
            found[number][place] = max(found[number].get(place, -np.inf), score)
    records = []
    for example, least, spans in zip(examples, null, found, strict=True):
        best = sorted(spans, key=spans.__getitem__, reverse=True)[:MOST_SPANS]
        records.append(
            {
                "null": np.array([least]),
                "scores": np.array([spans[place] for place in best], dtype=np.float32),
                "places": np.array(best, dtype=np.int32).ravel(),
                "texts": [example.inputs["context"][slice(*place)] for place in best],
            }
        )
    return records


def merge(members: Sequence[MemberRecords]) -> list[Prediction]:
    """The best span of each question, or "" if "no answer" is likelier. Scores: ``null``, the log odds of "no
    answer"."""
    return [_answer(records) for records in zip(*members, strict=True)]


def _answer(records: Sequence[MemberRecord]) -> Prediction:
    votes: dict[tuple[int, int], float] = defaultdict(float)
    texts: dict[tuple[int, int], str] = {}
    ahead = []
    for record in records:
        scores, places = record["scores"], map(tuple, record["places"].reshape(-1, 2).tolist())
        best = float(scores[0]) if len(scores) else -np.inf
        ahead.append(float(record["null"][0]) - best)
        answered = float(np.exp(-np.logaddexp(0, ahead[-1])))
        for place, p, text in zip(places, softmax(scores) if len(scores) else (), record["texts"], strict=True):
            votes[place] += answered * float(p)
            texts[place] = text
    yes, no = (np.logaddexp.reduce(-np.logaddexp(0, sign * np.array(ahead))) for sign in (-1, 1))
    lead = float(yes - no)
    text = "" if lead > 0 or not votes else texts[max(votes, key=votes.__getitem__)]
    return Prediction(text, {"null": lead if np.isfinite(lead) else None})
