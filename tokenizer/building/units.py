"""Eojeol types to weighted words and training units; this is where the builders differ.

A segmented word is a BERT word with spaces between its morphemes: ``연구자 이 다``. A unit is a run of text inside
which pieces may be learned, written as pieces are: ``##는`` may only continue a word.

| builder | 연구자이다. becomes | pieces learned |
|---|---|---|
| bpe | 연구자이다 · . | across morphemes: 연구 ##자이 ##다 |
| klue | 연구자 · 이 · 다 · . | within morphemes, particles as starts of words: 으로, not ##으로 |
| malmoi | 연구자 · ##이 · ##다 · . | within morphemes, particles as ``##`` pieces: ##으로 |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokenizer.building.analysers import Analyse, finer, plain
from tokenizer.building.count import EojeolType, rows_of
from tokenizer.words import LONGEST_WORD, bert_words, decompose, is_separated, split_separated, split_words

WORDS_NAME, UNITS_NAME = "words.parquet", "units.parquet"


@dataclass(frozen=True, slots=True)
class Builder:
    """How a vocabulary is built."""

    analyser: Callable[[str], Analyse] | None  # from the name of an analyser; None if words are not split
    units: Callable[[list[str]], list[str]]  # training units of the morphemes of one BERT word
    prunes: bool  # more pieces are learned than needed, and those that cross morphemes are dropped
    weight: Callable[[str, int, int], int]  # of a word in one eojeol, by frequency and number of documents of that


def _by_frequency(word: str, frequency: int, documents: int) -> int:
    return frequency


def _by_spread(word: str, frequency: int, documents: int) -> int:
    """100 x the square root of the documents, so frequent repetition in one text counts once; Latin: half."""
    return isqrt(10_000 * documents) // (2 if word.isascii() else 1)


BUILDERS = {
    "bpe": Builder(analyser=None, units=lambda morphemes: morphemes, prunes=False, weight=_by_frequency),
    "klue": Builder(analyser=plain, units=lambda morphemes: morphemes, prunes=False, weight=_by_frequency),
    "malmoi": Builder(
        analyser=finer,
        units=lambda morphemes: [morphemes[0], *(f"##{morpheme}" for morpheme in morphemes[1:])],
        prunes=True,
        weight=_by_spread,
    ),
}


def weigh_partition(
    types: Path, scratch: Path, *, builder: str, analyser: str, lowest_frequency: int, jamo_fallback: bool
) -> dict[str, Any]:
    """Unit of work: a file of eojeol types to segmented words and units with counts; rarer eojeols are skipped."""
    table = pq.read_table(types, filters=pc.field("frequency") >= lowest_frequency)
    words = segment(rows_of(table), BUILDERS[builder], analyser=analyser, jamo_fallback=jamo_fallback)
    columns = zip(*words.values(), strict=True) if words else ((), ())
    named = {name: pa.array(values, pa.int64()) for name, values in zip(("count", "weight"), columns, strict=True)}
    pq.write_table(pa.table({"text": pa.array(words, pa.string()), **named}), scratch / WORDS_NAME)
    write_counts(scratch / UNITS_NAME, weigh({word: weight for word, (_, weight) in words.items()}, BUILDERS[builder]))
    return {"types": len(table)}


def segment(
    types: Iterable[EojeolType], builder: Builder, *, analyser: str = "mecab", jamo_fallback: bool = False
) -> dict[str, tuple[int, int]]:
    """Segmented words of the eojeol types with count and training weight, without those too long for WordPiece."""
    counts: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    analyse = builder.analyser and builder.analyser(analyser)
    for eojeol, frequency, left, right, documents in types:
        words = bert_words(eojeol)
        if jamo_fallback:
            words = split_separated(words)
        split = split_words(words, left, right, analyse) if analyse else [[word] for word in words]
        for morphemes in split:
            text = _in_jamo(morphemes) if jamo_fallback else " ".join(morphemes)
            if text and len(text) - text.count(" ") <= LONGEST_WORD:
                counts[text] += frequency
                weights[text] += builder.weight(text, frequency, documents)
    return {text: (count, weights[text]) for text, count in counts.items()}


def _in_jamo(morphemes: list[str]) -> str:
    """Morphemes in jamo; a separated character is not decomposed (が, not か)."""
    if len(morphemes) == 1 and len(morphemes[0]) == 1 and is_separated(morphemes[0]):
        return morphemes[0]
    return " ".join(filter(None, map(decompose, morphemes)))


def weigh(words: Mapping[str, int], builder: Builder) -> Counter[str]:
    """Training units of segmented words, from their weights."""
    units: Counter[str] = Counter()
    for word, weight in words.items():
        for unit in builder.units(word.split(" ")):
            units[unit] += weight
    return units


def write_counts(path: Path, counts: Mapping[str, int]) -> None:
    """Write texts and their counts."""
    columns = {"text": pa.array(counts, pa.string()), "count": pa.array(counts.values(), pa.int64())}
    pq.write_table(pa.table(columns), path)


def read_counts(paths: Iterable[Path]) -> dict[str, int]:
    """Texts of several files with the sums of their counts, sorted by text."""
    total: Counter[str] = Counter()
    for path in paths:
        table = pq.read_table(path)
        total.update(dict(zip(table["text"].to_pylist(), table["count"].to_pylist(), strict=True)))
    return {text: total[text] for text in sorted(total)}
