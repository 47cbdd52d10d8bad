"""How a new vocabulary fits the corpus it was made from, by eojeol types, in parallel.

Encoding every type once and weighing it by its count gives the sums of the whole text. Morpheme boundaries are
those the builder trained on, so the share of crossing pieces is of the words that were analysed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from corpus.documents.units import map_units, unit_folder
from tokenizer.building.export import build_tokenizer
from tokenizer.building.pruning import USES_NAME, read_pieces, uses_in_file, write_pieces
from tokenizer.building.units import BUILDERS, WORDS_NAME
from tokenizer.config import TokenizerConfig
from tokenizer.measuring.statistics import Sums, add_up, summarize


def measure_fit(
    vocabulary: Sequence[str],
    types: Sequence[Path],
    segmented: Sequence[Path],
    config: TokenizerConfig,
    work: Path,
    workers: int,
) -> dict[str, Any]:
    """``TokenizerStatistics`` as JSON, and ``crossing_share``, 0..1, for builders that know morphemes.

    Args:
        vocabulary: entries by id.
        types: files of eojeol types (``building.count``).
        segmented: folders of segmented words (``building.units``).
    """
    listed = work / "vocabulary.txt"
    write_pieces(listed, vocabulary)
    add = partial(add_up_partition, vocabulary=listed, config=config)
    counted = map_units(add, list(zip(types, segmented, strict=True)), work / "fit", workers=workers, title="fit")
    crossing = [counts.pop("crossing") for counts in counted]
    sums = [
        Sums(
            np.load(unit_folder(work / "fit", number) / USES_NAME),
            **{**counts, "unknown_eojeols": tuple(map(tuple, counts["unknown_eojeols"]))},
        )
        for number, counts in enumerate(counted)
    ]
    fit = asdict(summarize(build_tokenizer(vocabulary, hardened=config.hardened), sums))
    if BUILDERS[config.builder].uses_morphemes:
        pieces, across = np.sum(crossing, axis=0)
        fit["crossing_share"] = float(across / pieces) if pieces else 0.0
    return fit


def add_up_partition(
    partition: tuple[Path, Path], scratch: Path, *, vocabulary: Path, config: TokenizerConfig
) -> dict[str, Any]:
    """Unit of work: sums over eojeol types, ``uses`` in ``uses.npy``, and over segmented words [pieces, crossing]."""
    types, words = partition
    table = pq.read_table(types, columns=["eojeol", "frequency"])
    counts = zip(table["eojeol"].to_pylist(), table["frequency"].to_pylist(), strict=True)
    entries = read_pieces(vocabulary)
    sums = asdict(add_up(build_tokenizer(entries, hardened=config.hardened), counts))
    np.save(scratch / USES_NAME, sums.pop("uses"))
    return {**sums, "crossing": uses_in_file(entries, words / WORDS_NAME).sum(axis=1).tolist()}
