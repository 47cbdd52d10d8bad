"""KLUE-DP: trees from lines, word by word."""

from __future__ import annotations

import pytest

from finetune.examples import Example, Row
from finetune.generative.prompts.dp import KLUE_DP
from finetune.tasks.dp.task import KLUE_DP as TASK

WORDS = ["아이가", "3월", "밥을", "먹는다."]
GOLD = {"heads": [4, 3, 4, 0], "types": ["NP_SBJ", "NP_MOD", "NP_OBJ", "VP"]}
EXAMPLE = Example("a", GOLD, {"words": WORDS, "pos": ["JKS", "NNB", "JKO", "SF"]})
GOLD_ANSWER = "1: 4 NP_SBJ\n2: 3 NP_MOD\n3: 4 NP_OBJ\n4: 0 VP"

WHOLE = {
    "the form that is demanded": GOLD_ANSWER,
    "with words": "1 아이가: 4 NP_SBJ\n2 3월: 3 NP_MOD\n3 밥을: 4 NP_OBJ\n4 먹는다.: 0 VP",
    "a table": "| 번호 | 어절 | 지배소 | 관계 |\n|---|---|---|---|\n| 1 | 아이가 | 4 | NP_SBJ |\n"
    "| 2 | 3월 | 3 | NP_MOD |\n| 3 | 밥을 | 4 | NP_OBJ |\n| 4 | 먹는다. | 0 | VP |",
    "arrows and brackets": "1. 아이가 → 4 (NP_SBJ)\n2. 3월 → 3 (NP_MOD)\n3. 밥을 → 4 (NP_OBJ)\n4. 먹는다. → 0 (VP)",
    "bold, fenced": "```\n" + GOLD_ANSWER.replace("1:", "**1**:") + "\n```",
    "full width": GOLD_ANSWER.replace("1: 4 NP_SBJ", "１：　４　ＮＰ＿ＳＢＪ"),
    "lower case": GOLD_ANSWER.lower(),
    "talk around it": f"의존 관계는 다음과 같습니다.\n\n{GOLD_ANSWER}\n\n4번 어절이 중심입니다.",
    "columns": '{"heads": [4, 3, 4, 0], "relations": ["NP_SBJ", "NP_MOD", "NP_OBJ", "VP"]}',
    "Korean columns": '{"지배소": [4, 3, 4, 0], "관계": ["NP_SBJ", "NP_MOD", "NP_OBJ", "VP"]}',
    "columns of an answer": '{"answer": {"head": [4, 3, 4, 0], "deprel": ["NP_SBJ", "NP_MOD", "NP_OBJ", "VP"]}}',
    "pairs": '[[4, "NP_SBJ"], [3, "NP_MOD"], [4, "NP_OBJ"], [0, "VP"]]',
    "a line twice": f"{GOLD_ANSWER}\n1: 4 NP_SBJ",
}


def test_words_are_numbered_and_gold_has_one_line_per_word():
    assert KLUE_DP.render_input(EXAMPLE) == "어절:\n1 아이가\n2 3월\n3 밥을\n4 먹는다."
    assert KLUE_DP.render_gold(EXAMPLE) == GOLD_ANSWER


@pytest.mark.parametrize("answer", WHOLE.values(), ids=WHOLE)
def test_a_tree_is_read_from_its_lines(answer):
    assert KLUE_DP.parse(answer, EXAMPLE) == GOLD


@pytest.mark.parametrize(
    "line",
    [
        "",
        "1: 4",
        "1: 1 NP_SBJ",
        "1: 5 NP_SBJ",
        "1: 4 SUBJ",
        "1: 4 NP_SBJ\n1: 3 NP_SBJ",
        "1: -4 NP 그리고 VP",
        "1 이 4 NP",
    ],
)
def test_a_word_without_one_valid_line_is_wrong_and_the_others_count(line):
    answer = "\n".join([line, *GOLD_ANSWER.split("\n")[1:]])
    tree = KLUE_DP.parse(answer, EXAMPLE)
    assert tree == {"heads": [1, 3, 4, 0], "types": ["NP", "NP_MOD", "NP_OBJ", "VP"]}
    found = TASK.score([Row("a", GOLD, tree)])
    assert (found["uas_micro_f1"], found["las_exact"]) == (75, 75)


@pytest.mark.parametrize(
    "answer", ["", "죄송합니다. 분석할 수 없습니다.", "아이가 먹는다", "9: 1 NP", "0: 1 NP", "SBJ OBJ VP"]
)
def test_an_answer_without_a_valid_line_does_not_parse(answer):
    assert KLUE_DP.parse(answer, EXAMPLE) is None


def test_what_does_not_parse_scores_nothing():
    single = Example("b", {"heads": [0], "types": ["VP"]}, {"words": ["간다."], "pos": ["SF"]})
    rows = [Row(e.guid, e.gold, KLUE_DP.unparsed(e)) for e in (EXAMPLE, single)]
    assert set(TASK.score(rows).values()) == {0}


def test_known_errors_cost_what_they_should():
    """Of 8 words one has a wrong head, one a wrong type, four are not read: 3 heads are right, 2 with their types."""
    cut = "1: 3 NP_SBJ\n2: 3 NP_OBJ\n3: 4 NP_OBJ\n4: 0 VP"
    rows = [Row("a", GOLD, KLUE_DP.parse(cut, EXAMPLE)), Row("b", GOLD, KLUE_DP.unparsed(EXAMPLE))]
    found = TASK.score(rows)
    assert found["uas_micro_f1"] == pytest.approx(100 * 3 / 8)
    assert found["las_exact"] == pytest.approx(100 * 2 / 8)


def test_a_word_may_be_a_number():
    example = Example("c", None, {"words": ["1", "2", "11"], "pos": ["SN"] * 3})
    assert KLUE_DP.parse("1 1: 3 NP\n2 2: 3 NP\n3 11: 0 NP", example) == {"heads": [3, 3, 0], "types": ["NP"] * 3}


def test_a_long_answer_takes_time_in_proportion_to_its_length():
    for piece in ("1 ", "1: 3 ", "NP_", ": ", "아이가 ", "1 아이가"):
        KLUE_DP.parse(piece * 100_000, EXAMPLE)
