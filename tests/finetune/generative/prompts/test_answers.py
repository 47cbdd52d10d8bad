"""Answers as models write them, and the label that a human reader would see in each."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finetune.examples import Example, Prediction, Row
from finetune.generative.prompts import PROMPTS
from finetune.generative.prompts.answers import clean, lines_of
from finetune.generative.prompts.choices import find_choice, find_number
from finetune.registry import TASKS

TOPIC = Example("a", "경제", {"title": "은행 금리 오른다"})
READ = {
    "경제": "경제",
    " 경제.\n": "경제",
    "정답은 '경제'입니다.": "경제",
    "**경제**": "경제",
    "- 경제": "경제",
    "경제입니다. 자세한 것은 알 수 없습니다.": "경제",
    "1. 경제": "경제",
    "```\n경제\n```": "경제",
    "```text\n답: 경제\n```": "경제",
    "“경제”": "경제",
    "「경제」": "경제",
    "답: 경제": "경제",
    "**정답**: 경제": "경제",
    "최종 답은 경제입니다": "경제",
    "답：경제": "경제",
    unicodedata.normalize("NFD", "정답은 경제입니다."): "경제",
    "\n\n경제\n\n": "경제",
    "ＩＴ과학": "IT과학",
    "IT/과학": "IT과학",
    "it·과학": "IT과학",
    "생활/문화": "생활문화",
    "Economy": "경제",
    "The answer is economy.": "경제",
    "경제\n\n제목에 금리가 나오므로 그렇게 보았습니다.": "경제",
    "경제\n정치와도 조금 관련이 있습니다.": "경제",
    "이 제목은 경제 분야에 해당합니다.": "경제",
    "이 기사는 정치가 아니라 경제 기사입니다.": "경제",
    "정치와 경제를 모두 다루지만 정답은 경제입니다.": "경제",
    "금리 이야기이므로\n\n답: 경제": "경제",
    "<think>정치일까 사회일까</think>경제": "경제",
    "죄송합니다. 다시 답합니다.\n경제": "경제",
    "사회입니다. 아니, 경제입니다.": "경제",
}
NOT_READ = [
    "",
    "   \n",
    "Based on the title, I pick this one.",
    "죄송하지만 답할 수 없습니다.",
    "경제인지 알 수 없습니다.",
    "경제입니다. 금리 이야기입니다.\n사회입니다.",
    "경제. 사회",
    "I'm sorry, I can't tell whether it is economy.",
    "경제 또는 사회",
    "경제 아니면 사회",
    "경제나 사회",
    "경제, 사회",
    "경제\n사회",
    "정답: 경제 또는 사회",
    "경제성장률이 나옵니다.",
    "정치적인 제목입니다.",
    "경제는 아닙니다.",
    "not economy",
    "It is neither economy nor politics.",
    "경제라고 보기 어렵습니다.",
    "경제가 아닐까요?",
    "경제일 수도 있지만 잘 모르겠습니다.",
    "경제는 어느 것도 아닌 듯합니다.",
    "Economy? Unclear.",
    "<think>경제 같은데",
    "연예",
    "{'label': None}",
]


@pytest.mark.parametrize(("answer", "label"), READ.items())
def test_an_answer_is_read_as_people_would_read_it(answer, label):
    assert PROMPTS["ynat"].parse(answer, TOPIC) == label


@pytest.mark.parametrize("answer", NOT_READ)
def test_an_answer_that_names_none_or_several_does_not_parse(answer):
    assert PROMPTS["ynat"].parse(answer, TOPIC) is None


@pytest.mark.parametrize("name", PROMPTS)
def test_a_long_answer_takes_time_in_proportion_to_its_length(name, sample):
    """These texts would take hours if a pattern were not linear."""
    example = sample(name, "dev")[0]
    for piece in (
        "정답은 ",
        "경제 ",
        "**",
        "- ",
        "'",
        "아니",
        "((",
        "답",
        " \t",
        "3.",
        "1: 2 NP\n",
        "식당-이름: 가\n",
        "가: 사람\n",
    ):
        PROMPTS[name].parse(piece * 100_000, example)


ANSWERS = st.text(
    st.sampled_from("경제정치사회 답:은는'\"*`-.,\n가나12345=()[]{}<>|식당이름:없음NP_SBJ\u1100\uff11"), max_size=80
)


@pytest.mark.parametrize("name", PROMPTS)
@settings(max_examples=50)
@given(answer=ANSWERS)
def test_any_answer_gives_a_prediction_of_the_form_of_the_task_or_none(name, answer, sample):
    example = sample(name, "dev")[0]
    value = PROMPTS[name].parse(answer, example)
    value = PROMPTS[name].unparsed(example) if value is None else value
    assert TASKS[name].inspection.validate(example, Prediction(value)) is None


@pytest.mark.parametrize("name", PROMPTS)
def test_what_does_not_parse_is_right_nowhere(name, sample):
    task, prompt = TASKS[name], PROMPTS[name]
    for example in sample(name, "dev"):
        if name != "klue-ner" or prompt.render_gold(example) != "없음":
            assert task.inspection.differs(Row(example.guid, example.gold, prompt.unparsed(example)))


def test_lines_lose_their_markdown():
    assert lines_of("# 답\n\n* **하나**\n2) 둘\n> 셋\n") == ["답", "하나", "둘", "셋"]


def test_every_full_width_character_becomes_half_width():
    """From the full-width exclamation mark to the tilde, and the ideographic space."""
    wide = "".join(map(chr, range(0xFF01, 0xFF5F)))
    assert clean(wide + "\u3000") == "".join(map(chr, range(0x21, 0x7F))) + " "
    assert clean("경제\u00a0뉴\u200b스\ufeff") == "경제 뉴스"
    assert find_choice("경제！", {"경제": "경제", "정치": "정치"}) == "경제"


def test_lines_of_an_answer_are_without_fences_and_rules() -> None:
    assert lines_of("```\n가: 사람\n---\n- 나: 장소\n***\n```") == ["가: 사람", "나: 장소"]


NLI = {"함의": "entailment", "모순": "contradiction", "중립": "neutral", "contradiction": "contradiction"}
TOPICS = {name: name for name in ("정치", "경제", "사회", "세계")}
OPTIONS, DIGITS = {name: name for name in "ABCD"}, {name: name for name in "1234"}
SIGNS, REPLIES = {name: name for name in ("-1", "0", "1")}, {name: name for name in ("예", "아니요")}


@pytest.mark.parametrize(
    ("names", "answer", "choice"),
    [
        (TOPICS, '{"정치": 0.1, "경제": 0.8}', None),
        (OPTIONS, '{"A": false, "B": true}', None),
        (TOPICS, '{"label": "경제", "reason": "정치 이야기가 아님"}', "경제"),
        (NLI, "중립. 전제만으로는 알 수 없습니다.", "neutral"),
        (NLI, "중립 (알 수 없음)", "neutral"),
        (NLI, "중립: 전제만으로는 가설이 참인지 거짓인지 정할 수 없다.", "neutral"),
        (NLI, "모순: 가설은 참일 수 없다.", "contradiction"),
        (NLI, "중립\n이유: 함의로 보기에는 근거가 부족합니다.", "neutral"),
        (NLI, "함의라고 답한 것은 오류입니다.", None),
        (NLI, "No contradiction.", None),
        (TOPICS, "정치로 분류하면 안 됩니다.", None),
        (TOPICS, "정치라고 답하면 틀립니다.", None),
        (TOPICS, "정치 이외의 분야입니다.", None),
        (TOPICS, "경제로 분류될 가능성은 낮습니다.", None),
        (TOPICS, "경제\n\n이 기사는 사회 문제를 다루고 있습니다.", "경제"),
        (TOPICS, "이 기사의 주제는 정치 자금입니다. 따라서 사회입니다.", None),
        (TOPICS, "정답은 경제입니다. 따라서 경제입니다.", "경제"),
        (TOPICS, "정답은 정치입니다. 아니요, 정정합니다. 경제입니다.", "경제"),
        (TOPICS, "정답: 정치\n정정: 경제", "경제"),
        (TOPICS, "정답은 정치입니다. 아니다, 경제다.", "경제"),
        (TOPICS, "정치. 다시 생각해 보니 경제입니다.", "경제"),
        (TOPICS, "정답은 정치입니다. 잘못 적었습니다. 정답은 경제입니다.", "경제"),
        (TOPICS, "정답은 정치입니다. 아니요, 경제는 아닙니다.", "정치"),
        (TOPICS, "정답은 경제입니다. 답을 정정합니다. 다른 설명은 없습니다.", "경제"),
        (REPLIES, "예입니다. 아니요, 정정합니다. 예입니다.", "예"),
        (REPLIES, "예. 아니요, 라고 할 수도 있습니다.", None),
        (REPLIES, '{"answer": true}', None),
        (REPLIES, "-1", None),
        (DIGITS, "정답은 -1입니다.", None),
        (DIGITS, "- 1", "1"),
        (SIGNS, "정답은 -1입니다.", "-1"),
        (SIGNS, "정답은 1입니다.", "1"),
        (TOPICS, '{"answer": "정치"}\n{"answer": "경제"}', None),
        (TOPICS, '{"answer": "경제"}\n{"answer": "경제"}', "경제"),
        (TOPICS, '{"draft": "정치"}\n{"answer": "경제"}', "경제"),
    ],
)
def test_denied_choices_scores_and_explanations(names: dict[str, str], answer: str, choice: str | None) -> None:
    assert find_choice(answer, names) == choice


def test_the_line_of_an_option_is_an_answer() -> None:
    names = {name: name for name in "1234"}
    assert find_choice("2: 해가 떴다.", names, "무엇인가?\n1: 비가 왔다.\n2: 해가 떴다.") == "2"


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        (".5", 0.5),
        ("점수: .5", 0.5),
        ("4점에 가까운 3.8", 3.8),
        ("3점 미만", None),
        ("≥ 3", None),
        ("3점대", None),
        ("3점", 3),
    ],
)
def test_bounds_are_no_numbers(answer: str, number: float | None) -> None:
    assert find_number(answer) == number


@pytest.mark.parametrize(
    "answer",
    ["지문에는 그런 내용이 없습니다.", "해당 정보는 지문에 없습니다.", "지문에 나와 있지 않습니다.", "N/A", "null"],
)
def test_ways_to_say_that_there_is_no_answer(answer: str) -> None:
    example = Example("a", None, {"context": "부산은 큰 도시이다.", "question": "어디인가?"})
    assert PROMPTS["klue-mrc"].parse(answer, example) == ""
