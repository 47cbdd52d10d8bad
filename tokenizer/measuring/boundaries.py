"""Does a tokenizer cut where morphemes begin? Its cuts against a person's (gold) or mecab-ko's (silver).

A boundary is a place between two characters of one eojeol, and only there: white space is given to everybody. So
연구자이다. cut as 연구자|이|다|. has three. A piece that ends inside a character (byte-level vocabularies) makes none.

Gold is the LEMMA column of a KLUE-DP file (paper section 3.6): where its morphemes join to the eojeol (눈물|을) they
are boundaries; where they do not (했다 is 하 었 다) no place in the text is one, and the eojeol is skipped and counted.
Silver is an analyser's opinion, and its price is known: against the people of KLUE-DP its F1 is 0.93 without context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import read_bytes
from tokenizer.building.count import EojeolType
from tokenizer.words import bert_words, split_words

EOJEOLS_PER_BATCH = 10_000
LONGEST_JUDGED = 100  # characters; longer eojeols are addresses and tables, which the analyser is not asked about
GOLD_COLUMNS = ("INDEX", "WORD_FORM", "LEMMA", "POS", "HEAD", "DEPREL")
LARGEST_GOLD_BYTES = 1 << 28  # unpacked; the official dev file has 1.2 MB

Span = tuple[int, int]
Cutter = Callable[[Sequence[str]], Sequence[Sequence[Span]]]
Integers = NDArray[np.int64]


class CutEojeol(NamedTuple):
    """An eojeol, how often it occurs, and where its morphemes begin.

    ``cuts`` and ``words`` are positions in ``text``, ascending, each above 0 and below its length: beginnings of
    morphemes, and of BERT words (a subset of neither).
    """

    text: str
    frequency: int
    cuts: tuple[int, ...]
    words: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundaryScores:
    """How well cuts agree with a reference; every eojeol weighs as often as it occurs.

    Shares are 0..1, None where there is nothing to divide by. ``f1_within_words`` is over places inside BERT words
    alone, without those that punctuation and Han characters give to every BERT vocabulary for nothing.
    """

    eojeols: int  # those compared
    skipped: int  # those without a usable reference, left out of everything else
    boundaries: int  # in the reference, over all eojeols
    precision: float | None  # share of the tokenizer's boundaries that are in the reference
    recall: float | None  # share of the reference's boundaries that the tokenizer has
    f1: float | None
    f1_within_words: float | None
    keeps_all: float | None  # share of eojeols, among those that have a boundary, in which the tokenizer has all
    crossing: float | None  # share of pieces with a boundary of the reference inside; an [UNK] is a piece like others


def score_boundaries(cutter: Cutter, reference: Sequence[CutEojeol], skipped: int = 0) -> BoundaryScores:
    """Scores of ``cutter``: for a list of eojeols, the pieces of each as (begin, end) in characters, in order.

    Args:
        skipped: eojeols that had no reference, for the record.
    """
    sums: Counter[str] = Counter()
    for start in range(0, len(reference), EOJEOLS_PER_BATCH):
        batch = reference[start : start + EOJEOLS_PER_BATCH]
        sums.update(_count(batch, cutter([eojeol.text for eojeol in batch])))
    return BoundaryScores(
        eojeols=sums["eojeols"],
        skipped=skipped,
        boundaries=sums["true"],
        precision=_ratio(sums["hit"], sums["found"]),
        recall=_ratio(sums["hit"], sums["true"]),
        f1=_ratio(2 * sums["hit"], sums["found"] + sums["true"]),
        f1_within_words=_ratio(2 * sums["hit within"], sums["found within"] + sums["true within"]),
        keeps_all=_ratio(sums["kept"], sums["bounded"]),
        crossing=_ratio(sums["crossing"], sums["pieces"]),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _count(batch: Sequence[CutEojeol], pieces: Sequence[Sequence[Span]]) -> dict[str, int]:
    """Sums over a batch. Its eojeols are laid in one row with a gap after each, so that places are one index."""
    counts = np.array([eojeol.frequency for eojeol in batch], np.int64)
    spans = np.array([len(eojeol.text) + 1 for eojeol in batch], np.int64)
    starts = np.cumsum(spans) - spans
    owner = np.repeat(np.arange(len(batch)), spans)
    weights = counts[owner]
    true = _mark(len(owner), starts, [eojeol.cuts for eojeol in batch])
    within = ~_mark(len(owner), starts, [eojeol.words for eojeol in batch])
    lengths = [len(row) for row in pieces]
    flat = np.fromiter(chain.from_iterable(chain.from_iterable(pieces)), np.int64).reshape(-1, 2)
    begins, ends = (flat + np.repeat(starts, lengths)[:, None]).T
    piece_counts = np.repeat(counts, lengths)
    found = np.zeros(len(owner), bool)
    found[_openings(begins, ends)] = True
    found[starts] = False
    bounded = np.bincount(owner[true], minlength=len(batch)) > 0
    missed = np.bincount(owner[true & ~found], minlength=len(batch)) > 0
    passed = np.cumsum(true)
    crossing = (ends > begins) & (passed[np.maximum(ends - 1, 0)] > passed[begins])

    def weigh(places: NDArray[np.bool_]) -> int:
        return int(weights[places].sum())

    return {
        "eojeols": int(counts.sum()),
        "true": weigh(true),
        "found": weigh(found),
        "hit": weigh(true & found),
        "true within": weigh(true & within),
        "found within": weigh(found & within),
        "hit within": weigh(true & found & within),
        "bounded": int(counts[bounded].sum()),
        "kept": int(counts[bounded & ~missed].sum()),
        "pieces": int(piece_counts.sum()),
        "crossing": int(piece_counts[crossing].sum()),
    }


def _mark(size: int, starts: Integers, places: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    marks = np.zeros(size, bool)
    flat = np.fromiter(chain.from_iterable(places), np.int64)
    marks[np.repeat(starts, [len(row) for row in places]) + flat] = True
    return marks


def _openings(begins: Integers, ends: Integers) -> Integers:
    """Where pieces begin that begin after all others end: one that starts inside a character overlaps its neighbour."""
    reached = np.maximum.accumulate(np.concatenate([[-1], ends[:-1]]))[: len(begins)]
    opens: Integers = begins[(begins >= reached) & (ends > begins)]
    return opens


def read_gold(path: Path) -> tuple[list[CutEojeol], int]:
    """Eojeols of a KLUE-DP file (plain or .zst) with their morpheme boundaries, and how many were skipped.

    Equal eojeols with equal boundaries are one row, rows in the order of the text.

    Raises:
        BadInput: not such a file, damaged, or without an eojeol that is the sum of its morphemes.
    """
    counts: Counter[tuple[str, tuple[int, ...]]] = Counter()
    skipped = 0
    for number, line in enumerate(_read(path).split("\n"), start=1):
        row = line.removesuffix("\r")
        if not row or row.startswith("##"):
            continue
        columns = row.split("\t")
        if len(columns) != len(GOLD_COLUMNS) or not columns[0].isdecimal():
            raise BadInput(
                f"{path}, line {number}: not a word of a KLUE-DP file; expected six columns {', '.join(GOLD_COLUMNS)} "
                f"with tabs between them, as in klue-dp-v1.1_dev.tsv"
            )
        eojeol, morphemes = columns[1], columns[2].split(" ")
        if "".join(morphemes) == eojeol:
            cuts = dict.fromkeys(accumulate(map(len, morphemes)))  # an empty morpheme makes no second boundary
            counts[eojeol, tuple(cut for cut in cuts if 0 < cut < len(eojeol))] += 1
        else:
            skipped += 1
    if not counts:
        raise BadInput(
            f"{path}: none of its {skipped} words is the sum of its morphemes (LEMMA); give a KLUE-DP file, "
            f"such as klue-dp-v1.1_dev.tsv"
        )
    return [
        CutEojeol(eojeol, count, cuts, locate_pieces(eojeol, bert_words(eojeol)))
        for (eojeol, cuts), count in counts.items()
    ], skipped


def _read(path: Path) -> str:
    if not path.is_file():
        raise BadInput(f"{path}: no such file; expected a KLUE-DP file, plain or .zst")
    try:
        return read_bytes(path, LARGEST_GOLD_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8; expected a KLUE-DP file") from None


def silver_cuts(types: Iterable[EojeolType]) -> tuple[list[CutEojeol], int]:
    """What mecab-ko makes of each eojeol type in its window, and how many eojeols were not given to it.

    The beginning of a BERT word is the beginning of a morpheme, whatever mecab-ko makes of 3.14 or 가나(伽羅). All
    types are in memory at once.
    """
    cut, skipped = [], 0
    for row in types:
        words = bert_words(row.eojeol)
        if not words:
            continue  # control characters: no tokenizer is asked for them either
        if len(row.eojeol) > LONGEST_JUDGED:
            skipped += row.frequency
            continue
        morphemes = chain.from_iterable(split_words(words, row.left, row.right))
        cuts = locate_pieces(row.eojeol, list(morphemes))
        cut.append(CutEojeol(row.eojeol, row.frequency, cuts, locate_pieces(row.eojeol, words)))
    return cut, skipped


def locate_pieces(eojeol: str, pieces: Sequence[str]) -> tuple[int, ...]:
    """Where all pieces but the first begin; what the eojeol has and they have not are control characters.

    >>> locate_pieces("연구\\u200b자이다", ["연구자", "이다"])
    (4,)
    """
    ends = list(accumulate(map(len, pieces)))
    if not ends:
        return ()
    if ends[-1] == len(eojeol):
        return tuple(ends[:-1])
    places = locate_characters(eojeol, "".join(pieces))
    return tuple(places[end] for end in ends[:-1])


def word_spans(eojeol: str) -> list[Span]:
    """(begin, end) of the BERT words of an eojeol, in its own characters."""
    words = bert_words(eojeol)
    places = locate_characters(eojeol, "".join(words))
    bounds = accumulate(map(len, words), initial=0)
    return [(places[begin], places[end - 1] + 1) for begin, end in pairwise(bounds)]


def locate_characters(eojeol: str, kept: str) -> list[int]:
    """Position in ``eojeol`` of each character of ``kept``, which is the eojeol without some kinds of character."""
    places, position = [], 0
    for character in kept:
        position = eojeol.index(character, position)
        places.append(position)
        position += 1
    return places
