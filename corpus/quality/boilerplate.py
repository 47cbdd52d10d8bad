"""Boilerplate: lines that occur in more than 50 documents of one source, such as menus, notices and section titles.

A sentence is compared if it is a line of its own or has at least 20 characters; short sentences within a paragraph may
repeat. Duplicate documents do not count. The result does not depend on units, because ranges of fingerprints are
compared over all units, as for duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corpus.duplicates.exact import PrintRange, Reasons, read_range, write_repeats
from corpus.unit_files import LENGTHS_NAME

BOILERPLATE = "is_boilerplate"
MAX_DOCUMENTS = 50


def find_boilerplate(part: PrintRange, scratch: Path, *, folders: Sequence[Path], reasons: Reasons) -> dict[str, Any]:
    """Write the places of boilerplate in a range, by unit."""
    print_N, place_N, unit_N = read_range(part, folders, reasons)
    document_N = np.zeros(len(place_N), np.int64)
    for unit in np.unique(unit_N).tolist():
        ends = np.cumsum(np.load(folders[unit] / LENGTHS_NAME), dtype=np.int64)
        document_N[unit_N == unit] = np.searchsorted(ends, place_N[unit_N == unit], side="right")
    order = np.argsort(print_N, kind="stable")  # then by unit and place
    is_new_print, is_new_document = (
        np.diff(values[order], prepend=values[order[:1]] + values.dtype.type(1)) != 0
        for values in (print_N, (unit_N.astype(np.int64) << 32) + document_N)
    )
    group_N = np.cumsum(is_new_print) - 1
    documents = np.bincount(group_N, weights=is_new_print | is_new_document)
    return write_repeats(part, scratch, place_N, unit_N, order[documents[group_N] > MAX_DOCUMENTS])
