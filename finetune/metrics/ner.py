"""Scores of KLUE-NER: strict entity F1 and character F1 (paper 3.4.2), vectorized.

An entity starts at ``B-`` and goes on over ``I-`` of its own type; a stray ``I-`` starts nothing; sentences never run
into each other. The published character F1 has oddities, kept under its name for comparability: the tag O is among
the 13 averaged, and a tag on neither side counts as 1. ``character_macro_f1_no_o`` is the paper's definition (12 tags);
``character_macro_f1_with_specials`` is what the published pipeline prints: two right O positions more a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from finetune.task import Row

NER_TAGS = (
    "B-PS", "I-PS", "B-LC", "I-LC", "B-OG", "I-OG", "B-DT", "I-DT", "B-TI", "I-TI", "B-QT", "I-QT", "O",
)  # fmt: skip
OUTSIDE = len(NER_TAGS) - 1
TYPES = OUTSIDE // 2

_TAG_ID = {tag: number for number, tag in enumerate(NER_TAGS)}


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``entity_macro_f1`` (nan without any entity) and the character scores, 0..100.

    Golds and predictions are lists of tags, one per character that is not a space.
    """
    if any(len(row.gold) != len(row.prediction) for row in rows):
        guid = next(row.guid for row in rows if len(row.gold) != len(row.prediction))
        raise ValueError(f"{guid}: as many predicted tags as gold tags expected")
    lengths = np.array([len(row.gold) for row in rows])
    gold = np.array([_TAG_ID[tag] for row in rows for tag in row.gold], dtype=np.int64)
    predicted = np.array([_TAG_ID[tag] for row in rows for tag in row.prediction], dtype=np.int64)
    starts = np.zeros(len(gold) + 1, dtype=bool)  # the first character of each sentence
    starts[np.concatenate([[0], np.cumsum(lengths)])] = True
    f1_T = _character_f1(gold, predicted)
    specials = np.full(2 * len(rows), OUTSIDE)
    with_specials_T = _character_f1(np.append(gold, specials), np.append(predicted, specials))
    return {
        "entity_macro_f1": 100 * _entity_macro_f1(gold, predicted, starts[:-1]),
        "character_macro_f1": 100 * float(f1_T.mean()),
        "character_macro_f1_with_specials": 100 * float(with_specials_T.mean()),
        "character_macro_f1_no_o": 100 * float(f1_T[:OUTSIDE].mean()),
    }


def _character_f1(gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """F1 of each tag; a tag on neither side has F1 1."""
    size = len(NER_TAGS)
    right = np.bincount(gold[gold == predicted], minlength=size)
    seen = np.bincount(gold, minlength=size) + np.bincount(predicted, minlength=size)
    return np.where(seen == 0, 1.0, 2 * right / np.maximum(seen, 1))


def _entity_macro_f1(gold: np.ndarray, predicted: np.ndarray, starts: np.ndarray) -> float:
    gold_spans, spans = _entities(gold, starts), _entities(predicted, starts)
    gold_types, types = gold_spans // (len(gold) + 1) ** 2, spans // (len(gold) + 1) ** 2
    right = np.bincount(np.intersect1d(gold_spans, spans) // (len(gold) + 1) ** 2, minlength=TYPES)
    seen = np.bincount(gold_types, minlength=TYPES) + np.bincount(types, minlength=TYPES)
    return float((2 * right[seen > 0] / seen[seen > 0]).mean()) if seen.any() else float("nan")


def _entities(tags: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Each entity as one number made of its type, first and last-plus-one position."""
    begins = (tags < OUTSIDE) & (tags % 2 == 0)
    goes_on = (tags < OUTSIDE) & (tags % 2 == 1) & ~starts  # an I- that could continue what stands before it
    goes_on[1:] &= tags[1:] // 2 == tags[:-1] // 2
    goes_on[:1] = False
    first = np.flatnonzero(begins)
    breaks = np.append(np.flatnonzero(~goes_on), len(tags))
    end = breaks[np.searchsorted(breaks, first, side="right")]
    return (tags[first] // 2) * (len(tags) + 1) ** 2 + first * (len(tags) + 1) + end
