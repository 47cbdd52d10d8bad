"""KLUE-STS: parsing of one number."""

from __future__ import annotations

import pytest

from finetune.examples import Example
from finetune.generative.prompts import PROMPTS

STS = PROMPTS["klue-sts"]


def pair(gold, guid="a"):
    return Example(guid, gold, {"sentence1": "비가 온다.", "sentence2": "비가 내린다."})


READ = {
    "3.5": 3.5,
    "4": 4.0,
    "3.5점": 3.5,
    "**3.5**": 3.5,
    "답: 3.5": 3.5,
    "유사도는 3.5입니다.": 3.5,
    "３．５": 3.5,
    "3.5/5": 3.5,
    "3.5 / 5.0": 3.5,
    "5점 만점에 3.5점입니다.": 3.5,
    "0에서 5 사이에서 3.5라고 봅니다.": 3.5,
    "문장 1과 문장 2는 거의 같으므로 4.5입니다.": 4.5,
    "4.2\n\n1번 문장과 2번 문장은 낱말만 다릅니다.": 4.2,
    "Similarity score: 2.0": 2.0,
    "두 문장 3개 낱말이 같습니다.\n답: 2": 2.0,
    "0": 0.0,
    "5": 5.0,
}
NOT_READ = [
    "",
    "비슷합니다",
    "7",
    "-1",
    "3.5 또는 4",
    "3~4",
    "3, 4",
    "nan",
    "1e3",
    "삼 점",
    "모르겠습니다, 죄송합니다. 3",
]


@pytest.mark.parametrize(("answer", "number"), READ.items())
def test_the_stated_number_is_read(answer, number):
    assert STS.parse(answer, pair(1.0)) == number


@pytest.mark.parametrize("answer", NOT_READ)
def test_no_number_several_or_one_off_the_scale_do_not_parse(answer):
    assert STS.parse(answer, pair(1.0)) is None


def test_an_unread_answer_adds_nothing_to_the_correlation(score):
    """Golds 0, 1, 4, 5 and predictions 0, 1, 2.5, 5, of which 2.5, the mean of the golds, is for the unread third: sum
    of products of the differences 14.75, of squares 17 and 14.1875. Similar are two by gold, one by prediction: F1 2/3.
    """
    pairs = [pair(float(gold), str(gold)) for gold in (0, 1, 4, 5)]
    found = score("klue-sts", pairs, ["0", "1", "비슷합니다", "5"])
    assert found["pearsonr"] == pytest.approx(100 * 14.75 / (17 * 14.1875) ** 0.5)
    assert found["f1"] == pytest.approx(200 / 3)
    assert STS.unparsed(pair(1.0)) == 2.5


def test_a_gold_has_at_most_two_decimals():
    assert [STS.render_gold(pair(gold)) for gold in (0.0, 3.5, 26 / 7)] == ["0.0", "3.5", "3.71"]
