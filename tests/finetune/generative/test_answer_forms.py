"""Answers in 120 forms, as ``answer_forms.py`` writes them, are read as people read them (both halves of the table)."""

from __future__ import annotations

from itertools import groupby

import pytest

from tests.finetune.generative.answer_forms import HALVES, Case, cases
from tests.finetune.generative.answer_items import Item, all_items

ROWS = 2  # of each task, in the fast test


def wrong_share(found: list[Case], kind: str) -> float:
    """Share of the texts of a kind that are not read as they should be."""
    own = [case for case in found if case.kind == kind]
    bad = 0
    for case in own:
        prediction = case.item.read(case.text)
        is_gold = prediction is not None and case.item.is_gold(prediction)
        bad += (
            is_gold != (kind == "right")
            if kind != "silent" or case.item.answer_kind == "span"
            else prediction is not None
        )
    return bad / len(own) if own else 0.0


def check(items: list[Item]) -> None:
    for task, own in groupby(items, key=lambda item: item.task):
        found = [case for item in own for half in HALVES for case in cases(item, half)]
        shares = {kind: wrong_share(found, kind) for kind in ("right", "wrong", "attack", "silent")}
        assert shares["right"] <= 0.02 and shares["wrong"] <= 0.005, (task, shares)
        assert shares["attack"] <= 0.01 and shares["silent"] <= 0.01, (task, shares)


def test_some_answers_of_every_task_in_all_forms() -> None:
    check([item for _, own in groupby(all_items(()), key=lambda item: item.task) for item in list(own)[:ROWS]])


@pytest.mark.slow
def test_all_answers_in_all_forms() -> None:
    check(list(all_items(())))
