"""Scores equal those of mteb's own classes on the local official files. mteb is not installed with the project."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from finetune.data.files import read_text
from finetune.embed import data
from finetune.embed.embedder import Embedder, build_net, save_embedder
from finetune.embed.evaluate import cosines, rows_of_pairs
from finetune.embed.retrieval import dense_scores, rank
from finetune.metrics import spearman
from finetune.tasks.similarity import score_ranking, similarity_task
from tests.finetune.conftest import build_tiny_encoder

mteb: Any = pytest.importorskip("mteb", reason="mteb is not installed: pip install mteb, then run this test again")


@pytest.fixture
def model(tmp_path: Path) -> tuple[Embedder, Path]:
    encoder, _ = build_tiny_encoder(tmp_path, [chr(code) for code in range(0xAC00, 0xD7A4)])
    embedder = Embedder(*build_net(encoder, "mean"), 64)
    save_embedder(tmp_path / "model", embedder, {}, "")
    return embedder, tmp_path / "model"


def scores_of(name: str, dataset: Any, folder: Path) -> dict[str, float]:
    """The scores of mteb's task, with its loading replaced."""
    from sentence_transformers import SentenceTransformer

    task = mteb.get_task(name)
    task.dataset, task.data_loaded, task.load_data = dataset, True, lambda **_: None
    found = mteb.evaluate(SentenceTransformer(str(folder), device="cpu"), task, cache=None)
    scores = next(iter(found.task_results[0].scores.values()))
    return dict(scores[0])


def test_klue_sts_and_nli_score_as_in_mteb(model: tuple[Embedder, Path], shared: Callable[[str], Path]) -> None:
    from datasets import Dataset

    embedder, folder = model
    path = shared("data/klue/official/klue-sts-v1.1/klue-sts-v1.1_dev.json")
    part, records = data._pairs_dev("klue-sts", path), json.loads(read_text(path))
    rounded = [record["labels"]["label"] for record in records]
    columns = {"sentence1": list(part.firsts), "sentence2": list(part.seconds), "score": rounded}
    theirs = scores_of("KLUE-STS", {"validation": Dataset.from_dict(columns)}, folder)
    ours = spearman(np.array(rounded, float), cosines(part, embedder.encode))
    assert theirs["cosine_spearman"] == pytest.approx(ours / 100, abs=1e-6)

    nli = data._pairs_dev("klue-nli", shared("data/klue/official/klue-nli-v1.1/klue-nli-v1.1_dev.json.zst"))
    columns = {"sentence1": [list(nli.firsts)], "sentence2": [list(nli.seconds)], "labels": [list(nli.golds)]}
    theirs = scores_of("KLUE-NLI", {"validation": Dataset.from_dict(columns)}, folder)
    own = similarity_task({"name": nli.name, "kind": nli.kind}).score(rows_of_pairs(nli, cosines(nli, embedder.encode)))
    assert theirs["cosine_ap"] == pytest.approx(own["average_precision"] / 100, abs=1e-6)


def test_klue_mrc_retrieval_scores_as_in_mteb(model: tuple[Embedder, Path], shared: Callable[[str], Path]) -> None:
    from datasets import Dataset

    embedder, folder = model
    part = data._mrc_dev(shared("data/klue/derived/klue-mrc-v1.1/klue-mrc-v1.1_dev.json.zst"))
    part = part._replace(guids=part.guids[:150], golds=part.golds[:150], firsts=part.firsts[:150])
    corpus = Dataset.from_dict(
        {"id": list(part.passages), "text": list(part.passages.values()), "title": [""] * len(part.passages)}
    )
    queries = Dataset.from_dict({"id": list(part.guids), "text": list(part.firsts)})
    right = {guid: dict.fromkeys(gold, 1) for guid, gold in zip(part.guids, part.golds, strict=True)}
    split = {"corpus": corpus, "queries": queries, "relevant_docs": right, "top_ranked": None}
    theirs = scores_of("Ko-StrategyQA", {"default": {"dev": split}}, folder)
    ranked = rank(part, dense_scores(part, embedder.encode))
    ours = np.mean([score_ranking(gold, names) for gold, names in zip(part.golds, ranked, strict=True)], axis=0)
    for value, name in zip(ours, ("ndcg_at_10", "mrr_at_10", "recall_at_100"), strict=True):
        assert theirs[name] == pytest.approx(value, abs=1e-5)  # they round to five digits
