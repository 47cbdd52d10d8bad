"""File order and shuffled orders of a file, and the p value of their likelihoods."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from finetune.examples import Example
from finetune.generative.klue.contamination import SEPARATOR, Orders, make_orders, p_value
from finetune.generative.prompts import PROMPTS

YNAT = PROMPTS["ynat"]
TITLES = [Example(f"ynat-v1_dev_{number}", "사회", {"title": f"소식 {number}번"}) for number in range(12)]


def p_of(orders: Orders, likelihood: Callable[[str], float]) -> float:
    return p_value(
        [likelihood(text) for text in orders.in_file_order],
        [[likelihood(text) for text in own] for own in orders.shuffled],
    )


def test_the_file_order_is_by_guid_with_numbers_as_numbers():
    orders = make_orders(YNAT, TITLES[::-1], shuffles=1, seed=1, per_document=6)
    assert [text.split(SEPARATOR) for text in orders.in_file_order] == [
        [f"제목: 소식 {number}번" for number in range(start, start + 6)] for start in (0, 6)
    ]


def test_shuffled_documents_have_the_same_examples_and_no_gold():
    orders = make_orders(YNAT, TITLES, shuffles=20, seed=1, per_document=5)
    assert [len(text.split(SEPARATOR)) for text in orders.in_file_order] == [5, 5, 2]
    for own in orders.shuffled:
        assert [sorted(text.split(SEPARATOR)) for text in own] == [
            sorted(text.split(SEPARATOR)) for text in orders.in_file_order
        ]
    assert len(set(orders.shuffled)) > 15
    assert not any("사회" in text for own in (orders.in_file_order, *orders.shuffled) for text in own)


def test_the_seed_decides_and_the_order_of_the_file_does_not():
    orders = make_orders(YNAT, TITLES, shuffles=3, seed=1)
    assert orders == make_orders(YNAT, TITLES[::-1], shuffles=3, seed=1)
    assert orders.shuffled != make_orders(YNAT, TITLES, shuffles=3, seed=2).shuffled


def test_an_example_alone_has_no_order():
    assert len(make_orders(YNAT, TITLES[:7], shuffles=1, seed=1, per_document=3).in_file_order) == 2
    with pytest.raises(ValueError, match="1 groups of examples and 5 shuffles; at least 2 and 1 are needed"):
        make_orders(YNAT, TITLES[:1], shuffles=5, seed=1)


def test_neighbours_of_one_group_stay_together():
    orders = make_orders(YNAT, TITLES, 20, seed=1, group=lambda e: str(int(e.guid.rpartition("_")[2]) // 3))
    for own in orders.shuffled:
        titles = own[0].split(SEPARATOR)
        assert all(
            titles.index(f"제목: 소식 {n + 1}번") == titles.index(f"제목: 소식 {n}번") + 1 for n in (0, 1, 3, 4, 9)
        )


def test_p_is_that_computed_by_hand():
    """Sums: file order -6; shuffled -10, -6 and -8. One of three is as likely: (1 + 1) / (1 + 3)."""
    assert p_value([-2, -4], [[-5, -5], [-3, -3], [-6, -2]]) == 0.5
    assert p_value([0.0], [[0.0], [0.0]]) == 1  # a model that likes all orders alike


def test_a_model_that_has_read_the_file_is_found_and_one_that_has_not_is_not():
    """A fake model that likes each pair of neighbors that it has read."""
    orders = make_orders(YNAT, TITLES, shuffles=99, seed=1, per_document=6)
    read = set(pairwise(SEPARATOR.join(orders.in_file_order).split(SEPARATOR)))
    assert p_of(orders, lambda text: sum(pair in read for pair in pairwise(text.split(SEPARATOR)))) == 0.01
    assert p_of(orders, lambda text: -len(text)) == 1
