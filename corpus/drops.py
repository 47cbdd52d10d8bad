"""Decide which sentences to drop: duplicate documents and sentences, toxic sentences, boilerplate.

One byte per sentence, 0 for kept sentences. Sentences of a dropped document are dropped too and do not count as first
occurrences, so no sentence is dropped as the repeat of a dropped one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpus.duplicates.exact import load_repeats
from corpus.quality.boilerplate import BOILERPLATE
from corpus.quality.toxicity import TOXIC_NAME
from corpus.unit_files import LENGTHS_NAME

HAS_PII = "has_personal_data"
REASONS = ("", "duplicate_document", "toxic", BOILERPLATE, "duplicate_sentence", HAS_PII)
KEPT, DUPLICATE_DOCUMENT, TOXIC, IN_MANY, DUPLICATE_SENTENCE, PERSONAL = range(len(REASONS))
REASONS_NAME = "reasons.npy"
RENAMED_NAME = "renamed.npy"


class Comparisons(NamedTuple):
    """Result folders: of ``find_repeats`` and ``find_boilerplate`` for each range, and of toxicity scores by unit."""

    documents: Sequence[Path] = ()
    ids: Sequence[Path] = ()
    sentences: Sequence[Path] = ()
    toxic: Sequence[Path] = ()
    lines: Sequence[Path] = ()


def reasons_of_documents(number: int, folder: Path, compared: Comparisons) -> np.ndarray:
    """Drop reasons per sentence, uint8, without repeated sentences."""
    lengths_N = np.load(folder / LENGTHS_NAME, allow_pickle=False)
    document_N = np.zeros(len(lengths_N), np.uint8)
    document_N[load_repeats(compared.documents, number)] = DUPLICATE_DOCUMENT
    reason_S = np.repeat(document_N, lengths_N)
    if compared.toxic:
        is_toxic = np.load(compared.toxic[number] / TOXIC_NAME)
        reason_S[is_toxic & (reason_S == KEPT)] = TOXIC
    lines = load_repeats(compared.lines, number)
    reason_S[lines[reason_S[lines] == KEPT]] = IN_MANY
    return reason_S


def write_drops(numbered: tuple[int, Path], scratch: Path, *, compared: Comparisons) -> dict[str, Any]:
    """Write the drop reason of every sentence and which ids to change; returns the number of kept documents."""
    number, folder = numbered
    reason_S = reasons_of_documents(number, folder, compared)
    repeats = load_repeats(compared.sentences, number)
    reason_S[repeats[reason_S[repeats] == KEPT]] = DUPLICATE_SENTENCE
    np.save(scratch / REASONS_NAME, reason_S)
    lengths_N = np.load(folder / LENGTHS_NAME, allow_pickle=False)
    is_renamed = np.zeros(len(lengths_N), bool)
    is_renamed[load_repeats(compared.ids, number)] = True
    np.save(scratch / RENAMED_NAME, is_renamed)
    return {"documents": len(lengths_N), "kept": int(kept_documents(reason_S, lengths_N).sum())}


def kept_documents(reason_S: np.ndarray, lengths_N: np.ndarray) -> np.ndarray:
    """Whether any sentence of a document is kept, bool per document."""
    document_S = np.repeat(np.arange(len(lengths_N)), lengths_N)
    return np.bincount(document_S[reason_S == KEPT], minlength=len(lengths_N)) > 0
