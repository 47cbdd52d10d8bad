"""Which drop reason counts if several apply; no sentence is dropped as the repeat of a dropped one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from corpus.assemble import REASONS, REASONS_NAME, RENAMED_NAME, Comparisons, write_drops
from corpus.duplicates.exact import REPEATS_NAME
from corpus.quality.toxicity import TOXIC_NAME
from corpus.unit_files import LENGTHS_NAME


def folder_with(path: Path, name: str, values: np.ndarray) -> Path:
    path.mkdir(exist_ok=True)
    np.save(path / name, values)
    return path


def repeats(path: Path, *places: int) -> list[Path]:
    """What ``find_repeats`` leaves of unit 0."""
    return [folder_with(path, REPEATS_NAME, np.array([[0] * len(places), places], np.uint32))]


def test_the_first_reason_in_the_order_of_the_list_is_reported(tmp_path: Path) -> None:
    """Three documents of two sentences; the first sentence of each is toxic, the second one repeats."""
    unit = folder_with(tmp_path / "unit", LENGTHS_NAME, np.array([2, 2, 2], np.uint32))
    compared = Comparisons(
        documents=repeats(tmp_path / "documents", 0),
        ids=repeats(tmp_path / "ids", 2),
        sentences=repeats(tmp_path / "sentences", 0, 1, 2, 3),
        toxic=[folder_with(tmp_path / "toxic", TOXIC_NAME, np.array([True, False] * 3))],
    )

    counts = write_drops((0, unit), tmp_path, compared=compared)

    assert [REASONS[reason] for reason in np.load(tmp_path / REASONS_NAME)] == [
        *("duplicate_document", "duplicate_document"),  # it holds a toxic sentence, too
        *("toxic", "duplicate_sentence"),  # the first one repeats as well
        *("toxic", ""),
    ]
    assert counts == {"documents": 3, "kept": 1}
    assert np.load(tmp_path / RENAMED_NAME).tolist() == [False, False, True]
