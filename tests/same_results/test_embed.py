"""Recorded results of data, batches, mined negatives and rankings for embeddings; vectors are counted, not trained."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from finetune.embed.config import EmbedConfig
from finetune.embed.data import EvaluationSet, read_evaluation, read_items
from finetune.embed.evaluate import pair_systems, rows_of_pairs, write_result
from finetune.embed.retrieval import (
    bm25_scores,
    choose_weight,
    combine,
    dense_scores,
    mine_negatives,
    ndcg,
    rank_baselines,
    rank_trained,
)
from finetune.embed.train import draw_batches
from tests.finetune.generative.answer_items import sample_folder
from tests.same_results.recording import check_recorded, groups
from tests.same_results.test_corpus import varied_texts
from tests.same_results.test_tokenizer import sample_documents, write_corpus

WIDTH = 24


def encode(texts: Sequence[str], prompt: str = "") -> np.ndarray:
    """Counts of hashed pairs of letters over 1024, whose products are exact on every processor."""
    vectors_NH = np.zeros((len(texts), WIDTH), np.float32)
    for row, text in enumerate(texts):
        for pair in pairwise(text):
            vectors_NH[row, blake2b("".join(pair).encode(), digest_size=1).digest()[0] % WIDTH] += 1
    return vectors_NH / 1024


def write_tables(folder: Path) -> tuple[list[str], list[str]]:
    """Files for training and for evaluation, one for each layout."""
    texts = [text.split("\n")[0][:60] for text in varied_texts()[:90]]
    triplets, graded = zip(texts[::3], texts[1::3], texts[2::3], strict=True), enumerate(pairwise(texts))
    tables: dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]] = {
        "triplets.csv": (("anchor", "positive", "negative"), list(triplets)),
        "graded.tsv": (("sentence1", "sentence2", "score"), [(*pair, n % 6) for n, pair in graded]),
        "titles.jsonl": (("title", "text"), [(text[:12], text + "\n" + text[::-1]) for text in texts]),
        "found.csv": (
            ("query", "passage", "label"),
            [(texts[n // 3][:9], texts[n], int(n % 3 == 0)) for n in range(60)],
        ),
    }
    for name, (heads, rows) in tables.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            if name.endswith("jsonl"):
                file.writelines(
                    json.dumps(dict(zip(heads, row, strict=True)), ensure_ascii=False) + "\n" for row in rows
                )
            else:
                csv.writer(file, delimiter="\t" if name.endswith("tsv") else ",").writerows([heads, *rows])
    return [str(folder / name) for name in ("triplets.csv", "titles.jsonl")], [str(folder / "found.csv")]


def test_data_and_batches(tmp_path: Path) -> None:
    documents, (train, found) = (
        write_corpus(tmp_path / "corpus", sample_documents()) / "documents",
        write_tables(tmp_path),
    )
    graded = str(tmp_path / "graded.tsv")
    results: dict[str, Any] = {}
    for purpose, klue in (("similarity", sample_folder()), ("similarity", None), ("search", sample_folder())):
        name = f"{purpose} {bool(klue)}"
        files = [*train, *([graded] if purpose == "similarity" else [])]
        own = {"for": purpose, "train": files, "max_pairs": 40, "batch_size": 8, "distractors": 30}
        own |= {"evaluate": [graded] if purpose == "similarity" else found}
        config = EmbedConfig.model_validate(own)
        items = read_items(config, documents, klue)
        results[f"{name} items"] = items
        lengths = [len(item.texts[0]) for item in items]
        results |= {f"{name} {key}": part for key, part in groups(draw_batches(items, lengths, config, 3), 20).items()}
        results[f"{name} mined"] = mine_negatives(items), mine_negatives(items, encode)
        parts = read_evaluation(config, documents, klue)
        results |= {f"{name} {part.name}": part for part in parts}
        for part in parts:
            results[f"{name} {part.name} results"] = rankings(part) if part.kind == "ranking" else pairs(part, tmp_path)
    check_recorded("embed", results, tmp_path)


def pairs(part: EvaluationSet, folder: Path) -> Any:
    systems = pair_systems(part, {"counted": encode}, "counted")
    rows = {name: rows_of_pairs(part, np.round(scores, 4)) for name, scores in systems.items()}
    record = write_result(folder / "results", part, "counted", 1, rows["counted"])
    del record["versions"]
    return [[row.guid for row in sorted(of, key=lambda row: -row.prediction)[:20]] for of in rows.values()], record


def rankings(part: EvaluationSet) -> Any:
    part = part._replace(golds=part.golds[:40], firsts=part.firsts[:40], guids=part.guids[:40])
    words_QP, dense_QP = bm25_scores(part), dense_scores(part, encode)
    combined_QP, weight = combine(part, words_QP, np.round(dense_QP, 3))
    trained, own_weight = rank_trained(part, {"counted": encode})
    gains = np.stack([ndcg(part, words_QP), ndcg(part, combined_QP)])
    return (
        trained,
        own_weight,
        rank_baselines(part, str.split),
        weight,
        gains,
        choose_weight(np.tile(gains[:1], (9, 1))),
    )
