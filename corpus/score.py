"""Toxicity scores of the sentences of a unit, in a map of their own: the expensive step, done once.

Sentences are scored after their personal data went. Thresholds decide which are dropped; all scores are kept.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from corpus.parts import PART_NAME
from corpus.toxicity import Classifier, ToxicityConfig, is_toxic, load_classifier, score_sentences, write_scores

SCORES_NAME = "scores.parquet"
TOXIC_NAME = "toxic.npy"  # bool per sentence


def score_unit(folder: Path, scratch: Path, *, config: ToxicityConfig) -> dict[str, Any]:
    """Write the scores of a unit's sentences and which of them are toxic."""
    classifier = _load(config.model_dump_json())
    rows = pq.read_table(folder / PART_NAME, columns=["id", "source", "sentences"]).to_pylist()
    places = [(row["id"], n) for row in rows for n in range(len(row["sentences"]))]
    source_S = np.array([row["source"] for row in rows for _ in row["sentences"]], dtype=object)
    scores_SL = score_sentences([text for row in rows for text in row["sentences"]], classifier, config)
    is_toxic_S = np.zeros(len(places), bool)
    for source in sorted({row["source"] for row in rows}):
        is_here = source_S == source
        is_toxic_S[is_here] = is_toxic(scores_SL[is_here], classifier.labels, source, config)
    ids, numbers = [id_ for id_, _ in places], [n for _, n in places]
    write_scores(scratch / SCORES_NAME, ids, numbers, scores_SL, classifier.labels)
    np.save(scratch / TOXIC_NAME, is_toxic_S)
    return {"sentences": len(places), "toxic": int(is_toxic_S.sum())}


@lru_cache(maxsize=1)
def _load(config: str) -> Classifier:
    return load_classifier(ToxicityConfig.model_validate_json(config))
