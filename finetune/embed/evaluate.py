"""Scores of embeddings and of the baselines that every table shows, in the form of all results.

```
<set>/<system>/seed-<n>/   predictions.jsonl, scores.json
```
Baselines without a seed are written for each, so that `malmoi compare` knows that they do not vary. Two of them count
character bigrams of words: tf-idf cosine for pairs, BM25 for search. Bigrams need no tokenizer and find a Korean noun
under any particle. On KLUE-MRC with 20,000 distractors they are as good as morphemes without function words (nDCG@10
88.4 and 89.1) at a tenth of the time to index.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.atomic_files import write_json
from finetune.data.files import in_one_sentence, write_json_lines
from finetune.embed.data import EvaluationSet
from finetune.examples import Row
from finetune.queue.jobs import PREDICTIONS_NAME, SCORES_NAME, folder_name
from finetune.score.baselines import bigrams
from finetune.score.bootstrap import SAMPLES, SEED, bootstrap
from finetune.score.scores import defined, installed_versions
from finetune.tasks.similarity import DEPTH, score_ranking, similarity_task

K1, B = 1.2, 0.75


def tfidf_cosines(firsts: Sequence[str], seconds: Sequence[str]) -> NDArray[np.float64]:
    """The cosine of each pair; document frequencies are those of the given texts, smoothed as in scikit-learn."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weighted = TfidfVectorizer(analyzer=bigrams).fit_transform([*firsts, *seconds])
    return np.asarray(weighted[: len(firsts)].multiply(weighted[len(firsts) :]).sum(axis=1)).ravel()


class Bm25:
    """BM25 over texts (package bm25s)."""

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def build(cls, token_lists: Sequence[list[str]]) -> Bm25:
        """Index tokenized texts, at least one of them not empty."""
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)
        index = bm25s.BM25(k1=K1, b=B)
        index.index(list(token_lists), show_progress=False)
        return cls(index)

    def save(self, folder: Path) -> None:
        self._index.save(folder, show_progress=False)

    @classmethod
    def load(cls, folder: Path) -> Bm25:
        """``BadInput`` if the folder holds no index of this kind; arrays are memory-mapped, never unpickled."""
        import bm25s

        with in_one_sentence(str(folder), "no readable BM25 index", "; build the index again"):
            return cls(bm25s.BM25.load(folder, mmap=True, allow_pickle=False, load_corpus=False))

    def scores(self, tokens: list[str]) -> NDArray[np.float64]:
        """The score of every text for a query; all 0 if no token is known."""
        ids = self._index.get_tokens_ids(tokens)
        size = int(self._index.scores["num_docs"])
        return np.asarray(self._index.get_scores_from_ids(ids), np.float64) if len(ids) else np.zeros(size)


Scores = NDArray[np.float64]
Encode = Callable[..., NDArray[np.float32]]  # of (texts, prompt="")
TFIDF, UNTRAINED, STATIC, WITH_TFIDF = "tf-idf", "untrained", "static", "with tf-idf"
PACKAGES = ("malmoi", "torch", "transformers", "tokenizers", "sentence-transformers", "bm25s", "numpy")


def cosines(part: EvaluationSet, encode: Encode) -> Scores:
    """The cosine of each pair; a text is encoded once."""
    texts = list(dict.fromkeys((*part.firsts, *part.seconds)))
    row_of = {text: row for row, text in enumerate(texts)}
    vectors = encode(texts).astype(np.float64)
    first, second = (vectors[[row_of[text] for text in side]] for side in (part.firsts, part.seconds))
    return np.asarray((first * second).sum(axis=1))


def pair_systems(part: EvaluationSet, encoders: Mapping[str, Encode], trained: str = "") -> dict[str, Scores]:
    """Similarities by system: tf-idf, the encoders, and the mean of tf-idf and the ``trained`` one as z-scores."""
    tfidf = tfidf_cosines(part.firsts, part.seconds)
    systems = {TFIDF: tfidf} | {name: cosines(part, encode) for name, encode in encoders.items()}
    if trained:
        systems[f"{trained} {WITH_TFIDF}"] = standardize(systems[trained]) + standardize(tfidf)
    return systems


def standardize(values: Scores) -> Scores:
    """Mean 0 and standard deviation 1."""
    return np.asarray((values - values.mean()) / (values.std() or 1.0))


def rows_of_pairs(part: EvaluationSet, scores: Scores) -> list[Row]:
    """Lines of predictions.jsonl. Scores are standardized, which changes no metric: `malmoi compare` swaps the
    predictions of two systems, so they need one scale."""
    even = standardize(scores)
    return [Row(g, gold, float(f"{s:.7g}")) for g, gold, s in zip(part.guids, part.golds, even, strict=True)]


def rows_of_rankings(part: EvaluationSet, ranked: Sequence[Sequence[str]]) -> list[Row]:
    """Lines of predictions.jsonl: the first passages, and the metrics of the question as its scores."""
    return [
        Row(guid, gold, list(names[:DEPTH]), [float(value) for value in score_ranking(gold, names)])
        for guid, gold, names in zip(part.guids, part.golds, ranked, strict=True)
    ]


def write_result(
    out: Path, part: EvaluationSet, system: str, seed: int, rows: list[Row], **about: Any
) -> dict[str, Any]:
    """Write predictions and, last, ``scores.json``; returns its content. ``about``: further keys of the record."""
    task = similarity_task({"name": part.name, "kind": part.kind})
    scores = task.score(rows)
    folder = out / part.name / folder_name(system) / f"seed-{seed}"
    result = {
        "task": part.name, "model": system, "settings": "", "seed": seed, "protocol": "malmoi", "split": "dev",
        "n": len(rows), "headline": next(iter(scores)), "bootstrap_samples": SAMPLES, "scores": defined(scores),
        "intervals": bootstrap(task, rows, part.guids, SAMPLES, SEED), "paper_dev": {}, "own": dict(task.custom or {}),
        "constant": dict.fromkeys(scores), "counting": {}, "counting_by": "",
        "passages": len(part.passages), "distractors": part.distractors, "versions": installed_versions(*PACKAGES),
        **about,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    write_json_lines(folder / PREDICTIONS_NAME, (row._asdict() for row in rows))
    write_json(folder / SCORES_NAME, result)
    return result
