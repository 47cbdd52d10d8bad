"""Exact duplicates by 64-bit fingerprints of folded text, in bounded memory.

Each unit of work writes its fingerprints sorted, with their places. Ranges of fingerprints are then compared over all
units, in parallel; only one range is in memory. With 473 million sentences, the probability of one false match is below
1 %. The paper does not remove duplicates.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpus.sentences.folding import fold_all, letter_table

FINGERPRINT_BYTES = 8
RANGE_PRINTS = 8 << 20  # about 350 MB while a range is compared
MAY_REPEAT = 0
MIN_REPEAT_CHARS = 20  # shorter sentences may repeat: greetings, interjections
REPEATS_NAME = "repeats.npy"
Reasons = Callable[[int, Path], np.ndarray]
"""Gives why each sentence of a unit, named by number and folder, was already dropped; 0 for those to compare."""


def fingerprint(content: bytes | memoryview) -> int:
    """A 64-bit hash, never 0."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=FINGERPRINT_BYTES).digest(), "little") or 1


def fingerprint_documents(
    documents: Sequence[Sequence[str]], min_chars: int = MIN_REPEAT_CHARS
) -> tuple[list[int], list[int]]:
    """Fingerprints of documents and of all their sentences after folding; unfolded if nothing remains.

    Sentences of fewer than ``min_chars`` characters get ``MAY_REPEAT``.
    """
    sentences = [sentence for document in documents for sentence in document]
    letters, sizes = fold_all(sentences, letter_table())
    content = memoryview(letters.tobytes())
    ends = [0, *(np.cumsum(sizes) * letters.itemsize).tolist()]
    of_sentence = [
        MAY_REPEAT if len(sentence) < min_chars else fingerprint(content[start:end] or sentence.encode())
        for sentence, (start, end) in zip(sentences, itertools.pairwise(ends), strict=True)
    ]
    firsts = itertools.accumulate(map(len, documents), initial=0)
    of_document = [
        fingerprint(content[ends[first] : ends[last]] or "\n".join(document).encode())
        for document, (first, last) in zip(documents, itertools.pairwise(firsts), strict=True)
    ]
    return of_document, of_sentence


def write_fingerprints(folder: Path, name: str, prints: Sequence[int]) -> None:
    """Write the sorted fingerprints of a unit, without those that may repeat."""
    prints_N = np.array(prints, np.uint64)
    place_N = np.argsort(prints_N, kind="stable").astype(np.uint32)
    is_compared = prints_N[place_N] != MAY_REPEAT
    np.save(folder / f"{name}.prints.npy", prints_N[place_N][is_compared])
    np.save(folder / f"{name}.places.npy", place_N[is_compared])


class PrintRange(NamedTuple):
    """Fingerprints of kind ``name`` from ``low`` (inclusive) to ``high`` (exclusive)."""

    name: str
    low: int
    high: int


def split_ranges(folders: Sequence[Path], name: str) -> list[PrintRange]:
    """Equal ranges with about ``RANGE_PRINTS`` fingerprints of all units each."""
    total = sum(len(_load(folder, name, "prints")) for folder in folders)
    count = max(1, -(-total // RANGE_PRINTS))
    bounds = [(1 << 64) * n // count for n in range(count + 1)]
    return [PrintRange(name, low, high) for low, high in itertools.pairwise(bounds)]


def find_repeats(
    part: PrintRange, scratch: Path, *, folders: Sequence[Path], reasons: Reasons | None = None
) -> dict[str, Any]:
    """Write the places in a range that repeat an earlier one, by unit."""
    print_N, place_N, unit_N = read_range(part, folders, reasons)
    order = np.argsort(print_N, kind="stable")  # stable: the first one in input order is kept
    is_repeat = np.zeros(len(order), bool)
    is_repeat[1:] = print_N[order[1:]] == print_N[order[:-1]]
    return write_repeats(part, scratch, place_N, unit_N, order[is_repeat])


def read_range(
    part: PrintRange, folders: Sequence[Path], reasons: Reasons | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The fingerprints of a range in all units, their places, and the numbers of their units."""
    prints, places, units = [], [], []
    for number, folder in enumerate(folders):
        sorted_N = _load(folder, part.name, "prints")
        first, last = (
            len(sorted_N) if bound >> 64 else int(np.searchsorted(sorted_N, np.uint64(bound)))
            for bound in (part.low, part.high)
        )
        place = np.array(_load(folder, part.name, "places")[first:last])
        is_compared = reasons(number, folder)[place] == 0 if reasons and len(place) else np.ones(len(place), bool)
        prints.append(sorted_N[first:last][is_compared])
        places.append(place[is_compared])
        units.append(np.full(int(is_compared.sum()), number, np.uint32))
    return np.concatenate(prints), np.concatenate(places), np.concatenate(units)


def write_repeats(
    part: PrintRange, scratch: Path, place_N: np.ndarray, unit_N: np.ndarray, repeats: np.ndarray
) -> dict[str, Any]:
    by_unit = repeats[np.lexsort((place_N[repeats], unit_N[repeats]))]
    np.save(scratch / REPEATS_NAME, np.stack([unit_N[by_unit], place_N[by_unit]]))
    return {"name": part.name, "repeats": len(by_unit)}


def load_repeats(compared: Sequence[Path], unit: int) -> np.ndarray:
    """The places of repeats in a unit, from the results of all ranges."""
    places = [np.zeros(0, np.uint32)]
    for folder in compared:
        unit_N, place_N = np.load(folder / REPEATS_NAME, mmap_mode="r", allow_pickle=False)
        places.append(np.array(place_N[slice(*np.searchsorted(unit_N, (unit, unit + 1)))]))
    return np.concatenate(places)


def _load(folder: Path, name: str, part: str) -> np.ndarray:
    loaded: np.ndarray = np.load(folder / f"{name}.{part}.npy", mmap_mode="r", allow_pickle=False)
    return loaded
