"""KLUE-MRC beyond the published values: tables, brackets and long answers as intended, rows of another form, speed."""

from __future__ import annotations

import pytest

from finetune.examples import Row
from finetune.tasks.mrc.metrics import score, tables


def test_tables_tell_question_types_and_answerability_apart():
    golds = [(["1987년"], 1), (["서울", "서울로"], 1), ([], 3), (["부산"], None)]
    predicted = ["1987년", "", "민지", ""]
    found = tables(
        [Row("x", {"answers": a, "question_type": kind}, p) for (a, kind), p in zip(golds, predicted, strict=True)]
    )
    types = {row["question_type"]: (row["n"], row["exact_match"], row["no_answer"]) for row in found["question types"]}
    assert types == {"1 paraphrase": (2, 50, 50), "3 unanswerable": (1, 0, 0), "unknown": (1, 0, 100)}
    shares = {row["questions"]: (row["n"], row["no_answer"]) for row in found["answerability"]}
    assert shares == {"answerable": (3, pytest.approx(200 / 3)), "unanswerable": (1, 0)}


def test_brackets_go_only_from_the_values_as_intended():
    values = score([Row("x", {"answers": ["《토지》"]}, "토지")])
    assert values["exact_match"] == 0
    assert values["rouge_w"] == pytest.approx(100 * 2 * 2 / 6)
    assert values["exact_match_as_intended"] == values["rouge_w_as_intended"] == 100


def test_frequent_characters_of_a_long_answer_count_only_in_the_values_as_intended():
    values = score([Row("x", {"answers": ["나" + "가" * 200]}, "다" + "가" * 200)])
    assert values["rouge_w"] == 0  # difflib takes 가 for noise in texts of 200 characters or more
    assert values["rouge_w_as_intended"] == pytest.approx(100 * 400 / 402)


@pytest.mark.parametrize("row", [Row("x", {"answers": ["가"]}, None), Row("x", {"answers": "가"}, "가")])
def test_a_row_of_another_form_is_refused(row):
    with pytest.raises(ValueError, match="expected a list of texts under 'answers' and a text as prediction"):
        score([row])
