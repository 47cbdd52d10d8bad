"""Which sentences of a unit stay: duplicates of documents and sentences, near-duplicates and toxic sentences go.

One byte a sentence, 0 for those that stay. A document that is dropped takes its sentences with it, and they do not
count as first occurrences, so nothing goes as the repeat of something that went.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpus.deduplicate import repeats_of
from corpus.near import NearConfig, near_duplicates
from corpus.parts import KEYS_NAME, LENGTHS_NAME, SIGNATURES_NAME
from corpus.score import TOXIC_NAME

HAS_PII = "has_personal_data"
REASONS = ("", "duplicate_document", "near_duplicate", "toxic", "duplicate_sentence", HAS_PII)
KEPT, DUPLICATE_DOCUMENT, NEAR_DUPLICATE, TOXIC, DUPLICATE_SENTENCE, PERSONAL = range(len(REASONS))
NEAR_NAME = "near-{:05}.npy"  # bool per document of a unit
VERDICT_NAME = "verdict.npy"
RENAMED_NAME = "renamed.npy"


class Judged(NamedTuple):
    """What was found before: folders of ``find_repeats`` for each range, of ``find_near``, of toxic scores by unit."""

    documents: Sequence[Path] = ()
    ids: Sequence[Path] = ()
    sentences: Sequence[Path] = ()
    near: Path | None = None
    toxic: Sequence[Path] = ()


def find_near(folders: Sequence[Path], scratch: Path, *, config: NearConfig) -> dict[str, Any]:
    """Near-duplicates over all units; writes a bool for each document of each."""
    signatures, keys = ([np.load(f / name, mmap_mode="r") for f in folders] for name in (SIGNATURES_NAME, KEYS_NAME))
    is_near = near_duplicates(signatures, keys, config)
    ends = np.cumsum([len(rows) for rows in signatures])
    for number, part in enumerate(np.split(is_near, ends[:-1])):
        np.save(scratch / NEAR_NAME.format(number), part)
    return {"near": int(is_near.sum())}


def judge_documents(number: int, folder: Path, judged: Judged) -> np.ndarray:
    """Reason per sentence, uint8, without the repeats of single sentences."""
    lengths_N = np.load(folder / LENGTHS_NAME, allow_pickle=False)
    document_N = np.zeros(len(lengths_N), np.uint8)
    if judged.near:
        document_N[np.load(judged.near / NEAR_NAME.format(number))] = NEAR_DUPLICATE
    document_N[repeats_of(judged.documents, number)] = DUPLICATE_DOCUMENT
    verdict_S = np.repeat(document_N, lengths_N)
    if judged.toxic:
        is_toxic = np.load(judged.toxic[number] / TOXIC_NAME)
        verdict_S[is_toxic & (verdict_S == KEPT)] = TOXIC
    return verdict_S


def judge_unit(numbered: tuple[int, Path], scratch: Path, *, judged: Judged) -> dict[str, Any]:
    """Write the reason of every sentence and the documents to rename; returns the number of documents that stay."""
    number, folder = numbered
    verdict_S = judge_documents(number, folder, judged)
    repeats = repeats_of(judged.sentences, number)
    verdict_S[repeats[verdict_S[repeats] == KEPT]] = DUPLICATE_SENTENCE
    np.save(scratch / VERDICT_NAME, verdict_S)
    lengths_N = np.load(folder / LENGTHS_NAME, allow_pickle=False)
    is_renamed = np.zeros(len(lengths_N), bool)
    is_renamed[repeats_of(judged.ids, number)] = True
    np.save(scratch / RENAMED_NAME, is_renamed)
    return {"documents": len(lengths_N), "kept": int(kept_documents(verdict_S, lengths_N).sum())}


def kept_documents(verdict_S: np.ndarray, lengths_N: np.ndarray) -> np.ndarray:
    """bool per document: is any of its sentences kept?"""
    document_S = np.repeat(np.arange(len(lengths_N)), lengths_N)
    return np.bincount(document_S[verdict_S == KEPT], minlength=len(lengths_N)) > 0
