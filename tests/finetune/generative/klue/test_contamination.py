"""File order and shuffled orders of a file, and the p value of their likelihoods."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from corpus.documents.errors import BadInput
from finetune.examples import Example
from finetune.generative.klue.run import SEPARATOR, make_orders, p_value
from finetune.generative.prompts import PROMPTS

YNAT = PROMPTS["ynat"]
TITLES = [Example(f"ynat-v1_dev_{number}", "사회", {"title": f"소식 {number}번"}) for number in range(12)]


def p_of(orders: list[list[str]], likelihood: Callable[[str], float]) -> float:
    in_file_order, *shuffled = (sum(map(likelihood, documents)) for documents in orders)
    return p_value(in_file_order, shuffled)


def test_the_file_order_is_by_guid_with_numbers_as_numbers():
    orders = make_orders(YNAT, TITLES[::-1], shuffles=1, seed=1, per_document=6)
    assert [text.split(SEPARATOR) for text in orders[0]] == [
        [f"제목: 소식 {number}번" for number in range(start, start + 6)] for start in (0, 6)
    ]


def test_shuffled_documents_have_the_same_examples_and_no_gold():
    orders = make_orders(YNAT, TITLES, shuffles=20, seed=1, per_document=5)
    assert [len(text.split(SEPARATOR)) for text in orders[0]] == [5, 5, 2]
    for own in orders[1:]:
        assert [sorted(text.split(SEPARATOR)) for text in own] == [sorted(text.split(SEPARATOR)) for text in orders[0]]
    assert len(set(map(tuple, orders[1:]))) > 15
    assert not any("사회" in text for own in orders for text in own)


def test_the_seed_decides_and_the_order_of_the_file_does_not():
    orders = make_orders(YNAT, TITLES, shuffles=3, seed=1)
    assert orders == make_orders(YNAT, TITLES[::-1], shuffles=3, seed=1)
    assert orders[1:] != make_orders(YNAT, TITLES, shuffles=3, seed=2)[1:]


def test_an_example_alone_has_no_order():
    assert len(make_orders(YNAT, TITLES[:7], shuffles=1, seed=1, per_document=3)[0]) == 2
    with pytest.raises(BadInput, match="needs at least two groups of examples, found 1"):
        make_orders(YNAT, TITLES[:1], shuffles=5, seed=1)


def test_neighbours_of_one_group_stay_together():
    orders = make_orders(YNAT, TITLES, 20, seed=1, group=lambda e: str(int(e.guid.rpartition("_")[2]) // 3))
    for own in orders[1:]:
        titles = own[0].split(SEPARATOR)
        assert all(
            titles.index(f"제목: 소식 {n + 1}번") == titles.index(f"제목: 소식 {n}번") + 1 for n in (0, 1, 3, 4, 9)
        )


def test_p_is_that_computed_by_hand():
    """Sums: file order -6; shuffled -10, -6 and -8. One of three is as likely: (1 + 1) / (1 + 3)."""
    assert p_value(-6, [-10, -6, -8]) == 0.5
    assert p_value(0.0, [0.0, 0.0]) == 1  # a model that likes all orders alike


def test_a_model_that_has_read_the_file_is_found_and_one_that_has_not_is_not():
    """A fake model that likes each pair of neighbors that it has read."""
    orders = make_orders(YNAT, TITLES, shuffles=99, seed=1, per_document=6)
    read = set(pairwise(SEPARATOR.join(orders[0]).split(SEPARATOR)))
    assert p_of(orders, lambda text: sum(pair in read for pair in pairwise(text.split(SEPARATOR)))) == 0.01
    assert p_of(orders, lambda text: -len(text)) == 1
