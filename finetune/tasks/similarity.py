"""What embeddings are scored on, without torch: graded pairs, pairs of the same meaning or not, ranked passages.

The rows of a result are scored again by ``malmoi compare`` like those of any task; ``own`` in ``scores.json`` names the
kind. Legend: ``N`` rows.

```
kind     gold                       prediction              metrics, 0..100
graded   a number                   standardized cosine     Pearson, Spearman (from -100)
binary   1 or 0                     standardized cosine     average precision
ranking  ids of right passages      ids of 100 passages     nDCG@10, MRR@10, recall@100
```
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from finetune.examples import Example, Prediction, Row
from finetune.task import Files, Published, Task
from finetune.tasks.custom.task import score_numbers
from finetune.tasks.sts.task import KLUE_STS, numbers_of

DEPTH, TOP = 100, 10  # passages of a ranking that are kept; those that nDCG and MRR look at


def average_precision(gold_N: NDArray[np.float64], score_N: NDArray[np.float64]) -> float:
    """Area under precision and recall as in scikit-learn, 0..100; equal scores share a threshold; nan without a 1.

    >>> average_precision(np.array([1.0, 0, 1]), np.array([0.9, 0.8, 0.1]))
    83.33333333333333
    """
    if not gold_N.any():
        return math.nan
    order = np.argsort(-score_N, kind="stable")
    last_T = np.append(np.flatnonzero(np.diff(score_N[order])), len(order) - 1)  # the last row of each threshold
    right_T = gold_N[order].cumsum()[last_T]
    return float(100 * (np.diff(right_T, prepend=0.0) * right_T / (last_T + 1)).sum() / gold_N.sum())


def score_ranking(gold: Sequence[str], ranked: Sequence[str]) -> tuple[float, float, float]:
    """nDCG@10, MRR@10 and recall@100 of one question, 0..1; every right passage has gain 1."""
    right = set(gold)
    ranks = [rank for rank, name in enumerate(ranked[:DEPTH], 1) if name in right]
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= TOP)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(right), TOP) + 1))
    return gain / ideal, 1 / ranks[0] if ranks and ranks[0] <= TOP else 0.0, len(ranks) / len(right)


def _score_rankings(rows: Sequence[Row]) -> dict[str, float]:
    values_N3 = np.array([row.scores for row in rows])  # of ``score_ranking``: a resample only averages
    return dict(zip(("ndcg@10", "mrr@10", "recall@100"), (100 * values_N3.mean(axis=0)).tolist(), strict=True))


def _validate_ranking(example: Example, prediction: Prediction) -> str | None:
    value = prediction.value
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return f"expected a list of ids, found {value!r:.60}"
    scores, own = prediction.scores, score_ranking(example.gold, value) if example.gold and value else None
    if own is None or (isinstance(scores, list) and np.shape(scores) == (3,) and np.allclose(scores, own, atol=1e-6)):
        return None
    return f"'scores' should be nDCG@10, MRR@10 and recall@100 of this ranking, {[round(x, 6) for x in own]}"


KINDS: Mapping[str, tuple[str, Callable[[Sequence[Row]], dict[str, float]]]] = {
    "graded": ("similarity of two sentences", score_numbers),
    "binary": (
        "whether two sentences mean the same",
        lambda rows: {"average_precision": average_precision(*numbers_of(rows))},
    ),
    "ranking": ("passages that answer a question", _score_rankings),
}


def similarity_task(definition: Mapping[str, Any], place: str = "custom task") -> Task:
    """The task of a definition ``{"name", "kind"}``; it can be scored, not trained."""
    name, kind = definition.get("name"), str(definition.get("kind"))
    if not isinstance(name, str) or kind not in KINDS:
        raise BadInput(f"{place}: 'own' needs a name and a kind ({', '.join(KINDS)}); run `malmoi embed` again")
    predicts, score = KINDS[kind]
    inspection = KLUE_STS.inspection
    if kind == "ranking":
        inspection = inspection._replace(validate=_validate_ranking)
    base = KLUE_STS.published
    return replace(
        KLUE_STS, name=name, predicts=predicts, files=Files(name, "", {}), score=score, inspection=inspection,
        published=Published(0, {}, base.hyperparameters, base.large), custom=dict(definition), ensembling=None,
    )  # fmt: skip
