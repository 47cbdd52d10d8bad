"""Eojeol types to weighted training units; this is where the builders differ.

A unit is a run of text inside which pieces may be learnt, written as pieces are: ``##는`` may only continue a word.

| builder | 연구자이다. becomes | pieces learnt |
|---|---|---|
| bpe | 연구자이다 · . | across morphemes: 연구 ##자이 ##다 |
| klue | 연구자 · 이 · 다 · . | within morphemes, particles as starts of words: 으로, not ##으로 |
| malmoi | 연구자 · ##이 · ##다 · . | within morphemes, particles as what they are: ##으로 |

(KLUE's released vocabulary shows the second: its particles stand without ``##`` at the head of the merges.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from tokenizer.count import EojeolType, read_types
from tokenizer.morphemes import split_words
from tokenizer.words import LONGEST_WORD, bert_words

UNITS_NAME = "units.tsv"


@dataclass(frozen=True, slots=True)
class Builder:
    """How a vocabulary is built: ``units`` makes training units of the morphemes of one BERT word."""

    uses_morphemes: bool
    units: Callable[[list[str]], list[str]]


BUILDERS = {
    "bpe": Builder(uses_morphemes=False, units=lambda morphemes: morphemes),
    "klue": Builder(uses_morphemes=True, units=lambda morphemes: morphemes),
    "malmoi": Builder(
        uses_morphemes=True,
        units=lambda morphemes: [morphemes[0], *(f"##{morpheme}" for morpheme in morphemes[1:])],
    ),
}


def units_of_chunk(chunk: Path, scratch: Path, *, builder: str) -> dict[str, Any]:
    """Unit of work: a types file to ``units.tsv`` (unit, count), sorted."""
    units = weigh(read_types(chunk), BUILDERS[builder])
    with (scratch / UNITS_NAME).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{unit}\t{count}\n" for unit, count in sorted(units.items()))
    return {}


def weigh(types: Iterable[EojeolType], builder: Builder) -> Counter[str]:
    """Units of the eojeol types, each as often as its eojeols occur; words that WordPiece refuses are left out."""
    units: Counter[str] = Counter()
    for row in types:
        words = bert_words(row.eojeol)
        split = split_words(words, row.left, row.right) if builder.uses_morphemes else [[word] for word in words]
        for word, morphemes in zip(words, split, strict=True):
            if len(word) <= LONGEST_WORD:
                for unit in builder.units(morphemes):
                    units[unit] += row.frequency
    return units


def merge_units(parts: Iterable[Path]) -> dict[str, int]:
    """Units of all chunks with their counts, sorted by unit."""
    rows = merge(*map(_read_units, parts))
    return {unit: sum(count for _, count in same) for unit, same in groupby(rows, key=itemgetter(0))}


def _read_units(path: Path) -> Iterator[tuple[str, int]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            unit, count = line[:-1].split("\t")
            yield unit, int(count)
