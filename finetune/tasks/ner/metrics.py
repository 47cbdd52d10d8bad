"""Scores of KLUE-NER: strict entity F1 and character F1 (paper 3.4.2), vectorized.

An entity starts at ``B-`` and goes on over ``I-`` of its own type; a stray ``I-`` starts nothing; sentences never run
into each other. The published character F1 has oddities, kept under its name for comparability: the tag O is among
the 13 averaged, and a tag on neither side counts as 1. ``character_macro_f1_no_o`` is the paper's definition (12 tags);
``character_macro_f1_with_specials`` is what the published pipeline prints: two more positions a sentence, both O.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finetune.task import Row

NER_TAGS = (
    "B-PS", "I-PS", "B-LC", "I-LC", "B-OG", "I-OG", "B-DT", "I-DT", "B-TI", "I-TI", "B-QT", "I-QT", "O",
)  # fmt: skip
OUTSIDE = len(NER_TAGS) - 1
TYPES = tuple(tag[2:] for tag in NER_TAGS[:OUTSIDE:2])
LENGTHS = (1, 2, 3, 4, 5, 7, 10)  # shortest of each row of the table by length, in characters

Array = NDArray[Any]

_TAG_ID = {tag: number for number, tag in enumerate(NER_TAGS)}


class _Tags(NamedTuple):
    """The tags of all rows, one after the other."""

    gold: Array
    predicted: Array
    starts: Array  # True at the first position of each row
    is_special: Array  # predictions for [CLS] and [SEP]


class _Entities(NamedTuple):
    """Entities as numbers made of type, first and last-plus-one position; ``base`` parts the three."""

    gold: Array
    predicted: Array
    right: Array
    base: int

    def types(self, entities: Array) -> Array:
        return entities // self.base**2

    def lengths(self, entities: Array) -> Array:
        return entities % self.base - entities // self.base % self.base


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``entity_macro_f1`` (nan without any entity) and the character scores, 0..100.

    Golds and predictions are lists of tags, one per character that is not a space. Rows of protocol klue-baseline have
    in ``scores`` what its metrics count: ``characters``, as many from the beginning of gold and prediction, and
    ``ends``, two tags predicted for [CLS] and [SEP], which are gold O; an entity may run over them, as published.

    Raises:
        ValueError, KeyError, TypeError: gold and prediction of different length, an unknown tag, other ``scores``.
    """
    tags = _flatten(rows)
    without = tags.gold[~tags.is_special], tags.predicted[~tags.is_special]
    missing = np.full(2 * len(rows) - int(tags.is_special.sum()), OUTSIDE)
    f1_T = _character_f1(*without)
    with_specials_T = _character_f1(np.append(tags.gold, missing), np.append(tags.predicted, missing))
    return {
        "entity_macro_f1": 100 * _entity_macro_f1(_find_entities(tags)),
        "character_macro_f1": 100 * float(f1_T.mean()),
        "character_macro_f1_with_specials": 100 * float(with_specials_T.mean()),
        "character_macro_f1_no_o": 100 * float(f1_T[:OUTSIDE].mean()),
    }


def tables(rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    """Entities by type and by length in characters: counts, and precision, recall and F1 (0..100, None undefined).

    Where ``scores`` leave characters out, a third table says how many, so that nobody cuts a gold unseen.
    """
    entities = _find_entities(_flatten(rows))
    sides = (entities.gold, entities.predicted, entities.right)
    by_type = [np.bincount(entities.types(side), minlength=len(TYPES)) for side in sides]
    rows_of = [np.searchsorted(LENGTHS, entities.lengths(side), side="right") - 1 for side in sides]
    by_length = [np.bincount(row, minlength=len(LENGTHS)) for row in rows_of]
    lengths = [f"{low}" if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(LENGTHS)]
    cut = [len(row.gold) - row.scores["characters"] for row in rows if row.scores is not None]
    left_out = [{"sentences": sum(count > 0 for count in cut), "characters": sum(cut)}]
    return {
        "entity types": list(_table("type", TYPES, by_type)),
        "entity length": list(_table("characters", [*lengths, f"{LENGTHS[-1]}+"], by_length)),
        **({"characters left out": left_out} if any(cut) else {}),
    }


def _table(name: str, keys: Sequence[str], counts: Sequence[Array]) -> Iterator[dict[str, Any]]:
    for key, gold, predicted, right in zip(keys, *(count.tolist() for count in counts), strict=True):
        yield {
            name: key,
            "gold": gold,
            "predicted": predicted,
            "right": right,
            "precision": 100 * right / predicted if predicted else None,
            "recall": 100 * right / gold if gold else None,
            "f1": 200 * right / (gold + predicted) if gold + predicted else None,
        }


def _flatten(rows: Sequence[Row]) -> _Tags:
    golds, predictions = [row.gold for row in rows], [row.prediction for row in rows]
    for row in rows:
        if len(row.gold) != len(row.prediction):
            raise ValueError(f"{row.guid}: as many predicted tags as gold tags expected")
    with_ends = [index for index, row in enumerate(rows) if row.scores is not None]
    for index in with_ends:
        row = rows[index]
        count, (first, last) = row.scores["characters"], row.scores["ends"]
        if not 0 <= count <= len(row.gold):
            raise ValueError(f"{row.guid}: 'characters' is {count}, of {len(row.gold)}")
        golds[index] = ["O", *row.gold[:count], "O"]
        predictions[index] = [first, *row.prediction[:count], last]
    lengths = np.array([len(gold) for gold in golds], dtype=np.int64)
    bounds = np.append(0, np.cumsum(lengths))
    starts, is_special = np.zeros((2, bounds[-1] + 1), dtype=bool)
    starts[bounds] = True
    is_special[bounds[with_ends]] = True
    is_special[bounds[1:][with_ends] - 1] = True
    return _Tags(_ids(golds), _ids(predictions), starts[:-1], is_special[:-1])


def _ids(rows: Sequence[Sequence[str]]) -> Array:
    return np.array([_TAG_ID[tag] for tag in chain.from_iterable(rows)], dtype=np.int64)


def _character_f1(gold: Array, predicted: Array) -> Array:
    """F1 of each tag; a tag on neither side has F1 1."""
    size = len(NER_TAGS)
    right = np.bincount(gold[gold == predicted], minlength=size)
    seen = np.bincount(gold, minlength=size) + np.bincount(predicted, minlength=size)
    return np.where(seen == 0, 1.0, 2 * right / np.maximum(seen, 1))


def _entity_macro_f1(entities: _Entities) -> float:
    gold, predicted, right = (
        np.bincount(entities.types(side), minlength=len(TYPES))
        for side in (entities.gold, entities.predicted, entities.right)
    )
    seen = gold + predicted
    return float((2 * right[seen > 0] / seen[seen > 0]).mean()) if seen.any() else float("nan")


def _find_entities(tags: _Tags) -> _Entities:
    gold, predicted = (_entities(side, tags.starts) for side in (tags.gold, tags.predicted))
    return _Entities(gold, predicted, np.intersect1d(gold, predicted, assume_unique=True), len(tags.gold) + 1)


def _entities(tags: Array, starts: Array) -> Array:
    """Each entity as one number made of its type, first and last-plus-one position."""
    begins = (tags < OUTSIDE) & (tags % 2 == 0)
    goes_on = (tags < OUTSIDE) & (tags % 2 == 1) & ~starts  # an I- that could continue what stands before it
    goes_on[1:] &= tags[1:] // 2 == tags[:-1] // 2
    goes_on[:1] = False
    first = np.flatnonzero(begins)
    breaks = np.append(np.flatnonzero(~goes_on), len(tags))
    end = breaks[np.searchsorted(breaks, first, side="right")]
    return (tags[first] // 2) * (len(tags) + 1) ** 2 + first * (len(tags) + 1) + end
