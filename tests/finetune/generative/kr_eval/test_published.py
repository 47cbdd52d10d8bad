"""Each bug of the published scoring code: its value and ours, both computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finetune.generative.kr_eval.metrics import clean_as_published, measure, score_as_published


def ours(metric: str, golds: list[str], answers: list[str]) -> float:
    return measure(metric, golds, answers, samples=0)["value"]


def test_a_perfect_answer_loses_points_where_a_line_is_gold_twice() -> None:
    gold = "한빛시(지역)\n한빛시(지역)\n김나래(사람)"
    assert score_as_published("set_f1", [gold], [gold]) == pytest.approx(80)  # precision 2/2, recall 2/3
    assert ours("set_f1", [gold], [gold]) == 100


def test_saying_one_entity_thrice_costs_nothing_as_published() -> None:
    gold, answer = "한빛시(지역)\n김나래(사람)", "한빛시(지역)\n한빛시(지역)\n한빛시(지역)"
    assert score_as_published("set_f1", [gold], [answer]) == pytest.approx(200 / 3)  # 1/1 and 1/2
    assert ours("set_f1", [gold], [answer]) == pytest.approx(40)  # 1/3 and 1/2


def test_wrong_classes_get_half_the_points_of_the_published_character_f1() -> None:
    gold, answer = "달숲(조직)\n바람(사람)", "달숲(지역)\n바람(날짜)"
    # words sorted: "달숲 바람 사람 조직" and "날짜 달숲 바람 지역", 11 characters each; in common in this order
    # "달숲 바람 " 6 of them: 12 / 22 = 0.545
    assert score_as_published("char_f1", [gold], [answer]) == pytest.approx(55)
    # 12 and 12 characters without spaces; in common 달숲바람(())  = 8, and nothing of 조직사람 in 지역날짜
    assert ours("char_f1", [gold], [answer]) == pytest.approx(100 * 8 / 12)
    assert ours("set_f1", [gold], [answer]) == 0  # sees wrong classes


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_correlations_are_zero_as_published_however_right_the_answers(metric: str) -> None:
    golds = ["0.0", "1.4", "3.2", "5.0"]
    assert score_as_published(metric, golds, golds) == 0
    assert ours(metric, golds, golds) == pytest.approx(100)
    # around the mean of 2.4: 2 * (-2.4 * 2.6 - 1 * 0.8) over 2.4² + 1² + 0.8² + 2.6²
    backwards = {"pearson": 100 * -14.08 / 14.16, "spearman": -100}[metric]
    assert ours(metric, golds, golds[::-1]) == pytest.approx(backwards)


@pytest.mark.parametrize("metric", ["macro_f1", "weighted_f1"])
def test_f1_over_classes_is_exact_match_as_published(metric: str) -> None:
    golds, answers = ["1", "1", "1", "0"], ["1", "1", "1", "1"]
    assert score_as_published(metric, golds, answers) == 75
    # class 1: 2 * 3 / (3 + 4) = 6/7; class 0: nothing found
    assert ours(metric, golds, answers) == pytest.approx({"macro_f1": 300 / 7, "weighted_f1": 450 / 7}[metric])


def test_bleu_of_one_pair_at_a_time_is_not_the_bleu_of_the_corpus() -> None:
    golds = ["아이가 공을 던진다", "비가 온다"]
    answers = ["아이가 공을 던진다", "눈이 온다"]
    published, whole = score_as_published("bleu", golds, answers), ours("bleu", golds, answers)
    # morphemes 아이|가|공|을|던진다 and 비|가|온다, answered 눈|이|온다. Second pair: 1/3 of single ones, the other
    # orders smoothed to 1/2 of 1/2 and 1/4 of 1/1: (1/3 * 1/4 * 1/4) ** (1/3) = 0.275
    assert published == pytest.approx(100 * (1 + (1 / 48) ** (1 / 3)) / 2, abs=0.01)
    # 6 of 8, 4 of 6, 3 of 4 and 2 of 2 over both
    assert whole == pytest.approx(100 * (6 / 8 * 4 / 6 * 3 / 4 * 2 / 2) ** 0.25, abs=0.01)


def test_an_answer_in_a_sentence_is_wrong_as_published() -> None:
    assert score_as_published("exact_match", ["neutral"], ["정답은 neutral입니다."]) == 0
    assert score_as_published("exact_match", ["neutral"], ["'neutral'\n\n왜냐하면 알 수 없기 때문입니다."]) == 100


def test_published_cleaning_keeps_its_order() -> None:
    assert clean_as_published("  '\"Ａ\"' \n\n그 밖", "kornli") == "A"
    assert clean_as_published("答え: b\n\n설명", "kmmlu_Law") == "B"
    assert clean_as_published("\"'예'\"", "kobest_wic") == "'예'"  # single quotes go before double ones


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [("바람 숲", "숲 바람", 100), ("", "숲", 0), ("!?", "...", 100), ("ABC", "abc", 100), ("가나다", "라마바", 0)],
)
def test_the_published_similarity_on_easy_cases(answer: str, gold: str, expected: float) -> None:
    assert score_as_published("char_f1", [gold], [answer]) == expected


def _longest_common(a: str, b: str) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for place, y in enumerate(b, start=1):
            before, row[place] = row[place], before + 1 if x == y else max(row[place], row[place - 1])
    return row[-1]


@given(st.text("가나다a1", min_size=1, max_size=12), st.text("가나다a1", min_size=1, max_size=12))
def test_the_published_similarity_is_that_of_insertions_and_deletions(a: str, b: str) -> None:
    found = score_as_published("char_f1", [b], [a])
    assert found == pytest.approx(round(200 * _longest_common(a, b) / (len(a) + len(b))))
