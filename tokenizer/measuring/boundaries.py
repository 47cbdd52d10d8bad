"""How well the pieces of a tokenizer agree with morpheme boundaries: of annotators (gold) or of mecab-ko (silver).

A boundary is a place between two characters of one eojeol: 연구자이다. cut as 연구자|이|다|. has three. A piece that
ends inside a character (byte-level vocabularies, jamo) makes none. Against the annotators of KLUE-DP, the F1 of
mecab-ko is 0.93 without context. Every distinct eojeol is counted once; a sample gives its counts by place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenizer.building.count import EojeolType
from tokenizer.measuring.samples import Floats, Integers, Interval, interval
from tokenizer.words import bert_words, split_words

EOJEOLS_PER_BATCH = 10_000
LONGEST_JUDGED = 100  # characters; longer eojeols are addresses and tables, which are not analysed
SUMS = (
    "words", "tokens", "skipped",  # eojeols with a piece, their pieces, eojeols without a reference
    "judged", "true", "predicted", "hit", "true within", "predicted within", "hit within",  # of those with a reference
    "bounded", "complete", "pieces", "crossing",
)  # fmt: skip

Span = tuple[int, int]
Cutter = Callable[[Sequence[str]], Sequence[Sequence[Span]]]


class CutEojeol(NamedTuple):
    """An eojeol, and the positions inside it where morphemes (None: unknown) and BERT words begin, ascending."""

    text: str
    cuts: tuple[int, ...] | None
    words: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundaryScores:
    """Agreement of cuts with a reference, weighted by counts; shares are 0..1, None if the divisor is 0.

    ``f1_within_words`` leaves out the borders of BERT words, which every BERT vocabulary has.
    """

    eojeols: int  # those compared
    skipped: int  # those without a reference, which do not count in the other figures
    boundaries: int  # in the reference, over all eojeols
    precision: float | None  # share of the tokenizer's boundaries that are in the reference
    recall: float | None  # share of the reference's boundaries that the tokenizer has
    f1: float | None
    f1_within_words: float | None
    keeps_all: float | None  # share of eojeols with boundaries in which the tokenizer has all of them
    crossing: float | None  # share of pieces ([UNK] included) with a boundary of the reference inside
    intervals: Mapping[str, Interval]  # 95 %, by name of the figure (``measuring.samples``)


def score_boundaries(sums: Floats, resampled: Floats) -> BoundaryScores:
    """Scores of ``SUMS`` over a text, and over resamples of it, [resamples, sums]."""
    figures, spread = _figures(sums), _figures(resampled)
    totals = dict(zip(SUMS, sums.astype(np.int64).tolist(), strict=True))
    known = {name: None if np.isnan(value) else float(value) for name, value in figures.items()}
    intervals = {name: interval(values) for name, values in spread.items()}
    return BoundaryScores(
        eojeols=totals["judged"],
        skipped=totals["skipped"],
        boundaries=totals["true"],
        **known,
        intervals={name: limits for name, limits in intervals.items() if limits},
    )


def _figures(sums: Floats) -> dict[str, Floats]:
    of = dict(zip(SUMS, np.moveaxis(sums, -1, 0), strict=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "precision": of["hit"] / of["predicted"],
            "recall": of["hit"] / of["true"],
            "f1": 2 * of["hit"] / (of["predicted"] + of["true"]),
            "f1_within_words": 2 * of["hit within"] / (of["predicted within"] + of["true within"]),
            "keeps_all": of["complete"] / of["bounded"],
            "crossing": of["crossing"] / of["pieces"],
        }


def fertility_interval(resampled: Floats) -> Interval | None:
    """95 % interval of the pieces per word, from resampled ``SUMS``."""
    return interval(resampled[:, SUMS.index("tokens")] / resampled[:, SUMS.index("words")])


def count_boundaries(cutter: Cutter, reference: Sequence[CutEojeol]) -> Integers:
    """``SUMS`` of each eojeol, [eojeols, sums]; ``cutter`` gives the pieces of each as (begin, end) in characters."""
    parts = [np.zeros((0, len(SUMS)), np.int64)]
    for start in range(0, len(reference), EOJEOLS_PER_BATCH):
        batch = reference[start : start + EOJEOLS_PER_BATCH]
        parts.append(_count(batch, cutter([eojeol.text for eojeol in batch])))
    return np.concatenate(parts)


def _count(batch: Sequence[CutEojeol], pieces: Sequence[Sequence[Span]]) -> Integers:
    """``SUMS`` of a batch; its eojeols are concatenated with a gap after each, so that one index names a place."""
    spans = np.array([len(eojeol.text) + 1 for eojeol in batch], np.int64)
    starts = np.cumsum(spans) - spans
    owner = np.repeat(np.arange(len(batch)), spans)
    true = _mask_of(len(owner), starts, [eojeol.cuts or () for eojeol in batch])
    within = ~_mask_of(len(owner), starts, [eojeol.words for eojeol in batch])
    lengths = np.array([len(row) for row in pieces], np.int64)
    flat = np.fromiter(chain.from_iterable(chain.from_iterable(pieces)), np.int64).reshape(-1, 2)
    begins, ends = (flat + np.repeat(starts, lengths)[:, None]).T
    predicted = np.zeros(len(owner), bool)
    predicted[_openings(begins, ends)] = True
    predicted[starts] = False
    passed = np.cumsum(true)
    crossing = (ends > begins) & (passed[np.maximum(ends - 1, 0)] > passed[begins])

    def each(places: NDArray[np.bool_], owners: Integers = owner) -> Integers:
        return np.bincount(owners[places], minlength=len(batch))

    bounded = each(true) > 0
    columns = [
        each(true), each(predicted), each(true & predicted), each(true & within), each(predicted & within),
        each(true & predicted & within), bounded, bounded & (each(true & ~predicted) == 0), lengths,
        each(crossing, np.repeat(np.arange(len(batch)), lengths)),
    ]  # fmt: skip
    judged = np.array([eojeol.cuts is not None for eojeol in batch])
    rows = [lengths > 0, lengths, ~judged, judged, *(column * judged for column in columns)]
    return np.stack(rows, axis=1).astype(np.int64)


def _mask_of(size: int, starts: Integers, places: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    mask = np.zeros(size, bool)
    flat = np.fromiter(chain.from_iterable(places), np.int64)
    mask[np.repeat(starts, [len(row) for row in places]) + flat] = True
    return mask


def _openings(begins: Integers, ends: Integers) -> Integers:
    """Where pieces begin, without pieces that start inside a character and so overlap the piece before."""
    reached = np.maximum.accumulate(np.concatenate([[-1], ends[:-1]]))[: len(begins)]
    opens: Integers = begins[(begins >= reached) & (ends > begins)]
    return opens


def cut_by_mecab(row: EojeolType) -> CutEojeol:
    """The cuts of mecab-ko for an eojeol type in its window; every BERT word begins a morpheme."""
    words = bert_words(row.eojeol)
    if not words or len(row.eojeol) > LONGEST_JUDGED:  # only control characters, or a table
        return CutEojeol(row.eojeol, None, ())
    morphemes = chain.from_iterable(split_words(words, row.left, row.right))
    return CutEojeol(row.eojeol, locate_pieces(row.eojeol, list(morphemes)), locate_pieces(row.eojeol, words))


def locate_pieces(eojeol: str, pieces: Sequence[str]) -> tuple[int, ...]:
    """Where all pieces except the first begin; the pieces lack the control characters of the eojeol.

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


def locate_characters(eojeol: str, subsequence: str) -> list[int]:
    """Position in ``eojeol`` of each character of ``subsequence``, the eojeol without some of its characters."""
    places, position = [], 0
    for character in subsequence:
        position = eojeol.index(character, position)
        places.append(position)
        position += 1
    return places
