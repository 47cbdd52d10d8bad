"""Scores of KLUE-NER: strict entity F1 and character F1 (paper 3.4.2), vectorized.

An entity starts at ``B-`` and continues over ``I-`` of its type; a stray ``I-`` starts nothing; sentences are separate.
The published character F1 has quirks, kept under its name for comparability: the tag O is among the 13 averaged, and a
tag on neither side counts as 1. ``character_macro_f1_no_o`` is the paper's definition (12 tags);
``character_macro_f1_with_specials`` is what the published pipeline prints: two more positions per sentence, both O.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row, Table
from finetune.metrics import count_row, count_sides
from finetune.task_names import klue_facts

NER_TAGS = (*(f"{mark}-{kind}" for kind in klue_facts("klue-ner")["types"] for mark in "BI"), "O")
OUTSIDE = len(NER_TAGS) - 1

Array = NDArray[Any]


class _Tags(NamedTuple):
    """The tags of all rows, one after the other."""

    gold: Array
    predicted: Array
    starts: Array  # True at the first position of each row
    is_special: Array  # predictions for [CLS] and [SEP]
    outside: int = OUTSIDE  # id of O, after B- and I- of every type


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``entity_macro_f1`` (nan without any entity) and the character scores, 0..100, of lists of tags.

    Rows of protocol klue-baseline have in ``scores`` what its metrics count: ``characters``, the number of scored
    characters from the beginning, and ``ends``, two tags predicted for [CLS] and [SEP], which are gold O; an entity may
    continue over them, as published. ``ValueError``, ``KeyError`` or ``TypeError`` for anything else.
    """
    return score_counts(*(counts_NK.sum(axis=0) for counts_NK in count_by_row(rows)))


def score_counts(entities_K: Array, characters_K: Array, specials_K: Array) -> dict[str, float]:
    """``score`` of the sums of what ``count_by_row`` counts."""
    f1_T, with_specials_T = _character_f1(characters_K), _character_f1(specials_K)
    return {
        "entity_macro_f1": _entity_f1(*np.split(entities_K, 3))["entity_macro_f1"],
        "character_macro_f1": 100 * float(f1_T.mean()),
        "character_macro_f1_with_specials": 100 * float(with_specials_T.mean()),
        "character_macro_f1_no_o": 100 * float(f1_T[:OUTSIDE].mean()),
    }


def score_entities(names: Sequence[str], rows: Sequence[Row]) -> dict[str, float]:
    """``entity_macro_f1`` over the types that occur and ``entity_micro_f1``, both strict, of other tags ``names``."""
    tags = _flatten(rows, names)
    types = tags.outside // 2
    return _entity_f1(*(np.bincount(side[ends > 0] // 2, minlength=types) for side, ends in _find_entities(tags)))


def _entity_f1(gold: Array, predicted: Array, right: Array) -> dict[str, float]:
    sides = gold + predicted
    if not sides.any():
        return {"entity_macro_f1": float("nan"), "entity_micro_f1": float("nan")}
    macro = float((2 * right[sides > 0] / sides[sides > 0]).mean())
    return {"entity_macro_f1": 100 * macro, "entity_micro_f1": 100 * float(2 * right.sum() / sides.sum())}


def count_by_row(rows: Sequence[Row]) -> tuple[Array, Array, Array]:
    """The counts that ``score`` sums over the rows, three times (rows, 3 x classes): how often each class is gold,
    predicted, and both; of entities by type, of characters by tag, and of characters with the two positions for
    [CLS] and [SEP]."""
    tags = _flatten(rows)
    row_of = np.cumsum(tags.starts) - 1
    size, is_character = len(NER_TAGS), ~tags.is_special
    kinds = OUTSIDE // 2
    bins = (row_of[ends > 0] * kinds + side[ends > 0] // 2 for side, ends in _find_entities(tags))
    entities = [np.bincount(at, minlength=len(rows) * kinds).reshape(len(rows), kinds) for at in bins]
    plain = count_sides(tags.gold[is_character], tags.predicted[is_character], row_of[is_character], len(rows), size)
    special = count_sides(tags.gold, tags.predicted, row_of, len(rows), size)
    without = 2 - np.bincount(row_of[tags.is_special], minlength=len(rows))
    special[:, OUTSIDE::size] += without[:, None]  # right: O for [CLS] and [SEP]
    return np.hstack(entities), plain, special


def tables(rows: Sequence[Row], names: Sequence[str] = NER_TAGS) -> dict[str, Table]:
    """Entities by type. If ``scores`` leave characters out, a second table counts them."""
    kinds = [name[2:] for name in names[:-1:2]]
    sides = _find_entities(_flatten(rows, names))
    counts = [np.bincount(side[ends > 0] // 2, minlength=len(kinds)).tolist() for side, ends in sides]
    by_type = [{"type": kind, **count_row(*of_kind)} for kind, *of_kind in zip(kinds, *counts, strict=True)]
    cut = [len(row.gold) - row.scores["characters"] for row in rows if row.scores is not None]
    left_out = [{"sentences": sum(count > 0 for count in cut), "characters": sum(cut)}]
    return {"entity types": by_type, **({"characters left out": left_out} if any(cut) else {})}


def _flatten(rows: Sequence[Row], names: Sequence[str] = NER_TAGS) -> _Tags:
    golds, predictions = [], []
    for row in rows:
        gold, predicted = row.gold, row.prediction
        if len(gold) != len(predicted):
            raise ValueError(f"{row.guid}: as many predicted tags as gold tags expected")
        if row.scores is not None:
            count, (first, last) = row.scores["characters"], row.scores["ends"]
            if not 0 <= count <= len(gold):
                raise ValueError(f"{row.guid}: 'characters' is {count}, of {len(gold)}")
            gold, predicted = ["O", *gold[:count], "O"], [first, *predicted[:count], last]
        golds.append(gold)
        predictions.append(predicted)
    bounds = np.cumsum([0, *map(len, golds)])
    has_ends = np.array([row.scores is not None for row in rows], dtype=bool)
    starts, is_special = np.zeros((2, bounds[-1] + 1), dtype=bool)
    starts[bounds] = True
    is_special[bounds[:-1][has_ends]] = is_special[bounds[1:][has_ends] - 1] = True
    ids = {tag: number for number, tag in enumerate(names)}
    gold, predicted = (
        np.array([ids[tag] for tag in chain.from_iterable(side)], dtype=np.int64) for side in (golds, predictions)
    )
    return _Tags(gold, predicted, starts[:-1], is_special[:-1], len(names) - 1)


def _character_f1(counts_K: Array) -> Array:
    """F1 of each tag; a tag on neither side has F1 1."""
    gold, predicted, right = np.split(counts_K, 3)
    seen = gold + predicted
    return np.where(seen == 0, 1.0, 2 * right / np.maximum(seen, 1))


def _find_entities(tags: _Tags) -> list[tuple[Array, Array]]:
    """Tags, and the ends of the entities that begin at each position: of gold, of the predictions, and of both."""
    gold, predicted = (_entity_ends(side, tags.starts, tags.outside) for side in (tags.gold, tags.predicted))
    both = np.where((gold == predicted) & (tags.gold == tags.predicted), gold, 0)
    return [(tags.gold, gold), (tags.predicted, predicted), (tags.gold, both)]


def _entity_ends(tags: Array, starts: Array, outside: int) -> Array:
    """The end (last position plus one) of the entity that begins at each position; 0 where none begins."""
    continues = (tags < outside) & (tags % 2 == 1) & ~starts  # an I- that could continue the tag before it
    continues[1:] &= tags[1:] // 2 == tags[:-1] // 2
    continues[:1] = False
    first = np.flatnonzero((tags < outside) & (tags % 2 == 0))
    breaks = np.append(np.flatnonzero(~continues), len(tags))
    ends = np.zeros(len(tags), dtype=np.int64)
    ends[first] = breaks[np.searchsorted(breaks, first, side="right")]
    return ends
