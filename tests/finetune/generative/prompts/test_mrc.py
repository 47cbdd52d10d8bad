"""KLUE-MRC: an answer is found in the passage with or without quotes, Markdown and sentences around it."""

from __future__ import annotations

import pytest

from finetune.data.files import find_file
from finetune.examples import Example, Row
from finetune.generative.prompts.mrc import KLUE_MRC
from finetune.tasks.mrc.reader import read
from finetune.tasks.mrc.task import KLUE_MRC as TASK

CONTEXT = (
    '화가 김도윤은 2004년 부산에서 태어나 지분 3.1％를 가졌다. 그는 ‘빨강’이라는 모임에서 "푸른 밤(Blue)"을 그렸다. '
    "도난 신고는 거절되었다."
)
ANSWERABLE = Example("a", {"answers": ["김도윤", "화가 김도윤"], "question_type": 1}, {
    "question": "푸른 밤을 그린 사람은?", "context": CONTEXT, "start": 3,
})  # fmt: skip
UNANSWERABLE = Example("b", {"answers": [], "question_type": 3}, {**ANSWERABLE.inputs, "start": None})

FOUND = {
    "김도윤": "김도윤",
    "정답은 '김도윤'입니다.": "김도윤",
    "**김도윤**": "김도윤",
    "답:\n김도윤": "김도윤",
    "```\n김도윤\n```": "김도윤",
    "김도윤입니다.": "김도윤",
    "1. 김도윤": "김도윤",
    "김도윤 (첫 문장에 나옵니다)": "김도윤",
    "김도윤. 지문의 첫 문장에 나옵니다.": "김도윤",
    "그 화가는 '김도윤'입니다.": "김도윤",
    "지문에는 화가 이야기가 나온다.\n\n정답: 김도윤": "김도윤",
    "<think>부산일까?</think>김도윤": "김도윤",
    "‘빨강’": "‘빨강’",
    "빨강": "빨강",
    "3.1%": "3.1％",
    "푸른 밤(Blue)": "푸른 밤(Blue)",
    '"푸른 밤(Blue)"': '"푸른 밤(Blue)"',
    "도난 신고는 거절": "도난 신고는 거절",
    "정답: 은하수": "은하수",  # 은 is no particle here
    "정답은 부산입니다. 정정합니다. 김도윤입니다.": "김도윤",
    "박민수": "박민수",  # not in the passage: wrong, but an answer
    "2004년에 태어난 그 화가": "2004년에 태어난 그 화가",
}
NO_ANSWERS = (
    "답 없음", "답 없음.", "**답 없음**", "정답: 답 없음", "답없음", "지문에 답이 없습니다.", "정답은 없습니다",
    "질문에 대한 답을 지문에서 찾을 수 없습니다.", "답 없음 (언급되지 않음)", "답 없음. 지문은 화가만 말합니다.",
    "없음", "no answer", "답은 답 없음입니다.",
)  # fmt: skip
NOT_READ = (
    "", " \n", "```\n```", "답:", "죄송하지만 답할 수 없습니다.", "죄송하지만 '김도윤'에 대해 답할 수 없습니다.",
    "알 수 없음", "잘 모르겠습니다.", "I'm sorry, I can't help with '김도윤'.", "정답: 김도윤\n정답: 부산",
    "<think>김도윤인데",
)  # fmt: skip


@pytest.mark.parametrize(("answer", "text"), FOUND.items())
def test_an_answer_is_taken_as_the_passage_writes_it(answer, text):
    assert KLUE_MRC.parse(answer, ANSWERABLE) == text


@pytest.mark.parametrize("answer", NO_ANSWERS)
def test_several_ways_to_state_that_there_is_no_answer(answer):
    assert KLUE_MRC.parse(answer, UNANSWERABLE) == ""


@pytest.mark.parametrize("answer", NOT_READ)
def test_nothing_refusals_and_two_answers_do_not_parse(answer):
    assert KLUE_MRC.parse(answer, ANSWERABLE) is None


def test_what_does_not_parse_is_wrong_where_there_is_no_answer_too():
    """An empty text, as a refusal might be written down, would score 50 here."""
    rows = [Row(example.guid, example.gold, KLUE_MRC.unparsed(example)) for example in (ANSWERABLE, UNANSWERABLE)]
    assert set(TASK.score(rows).values()) == {0}
    empty = [row._replace(prediction="") for row in rows]
    assert TASK.score(empty)["exact_match"] == 50


def test_known_errors_cost_what_they_should():
    """Runs in common: 김도윤 in 김도윤은 화가, 2*3/(3+7); none; and "no answer" rightly said."""
    said = [("김도윤은 화가", ANSWERABLE), ("부산에서", ANSWERABLE), ("답 없음", ANSWERABLE), ("답 없음", UNANSWERABLE)]
    rows = [
        Row(str(n), {"answers": example.gold["answers"][:1]}, KLUE_MRC.parse(answer, example))
        for n, (answer, example) in enumerate(said)
    ]
    found = TASK.score(rows)
    assert found["exact_match"] == 25
    assert found["rouge_w"] == pytest.approx(100 * (0.6 + 0 + 0 + 1) / 4)


WRAPS = ("정답: {}", "**{}**", "답은 {}입니다.", "> {}", "정답은 '{}'입니다.", "{}\n\n지문에 그렇게 나옵니다.")


def test_wrapped_gold_answers_of_the_real_dev_file_are_found(shared):
    """At least 99 % of each: what quotes around an answer that has quotes itself mean cannot be known."""
    path = find_file(shared("data/klue/derived"), TASK.files.dev)
    assert path is not None
    examples = read(path)[::3]
    for wrap in WRAPS:
        found = [KLUE_MRC.parse(wrap.format(KLUE_MRC.render_gold(example)), example) for example in examples]
        right = sum(text in (e.gold["answers"] or [""]) for e, text in zip(examples, found, strict=True))
        assert right >= 0.99 * len(examples), wrap


def test_a_long_answer_takes_time_in_proportion_to_its_length():
    for piece in ("정답: ", "답은 ", "지문에서 ", "**", "'", " (", ". ", "이 지문에 답이 ", "없 "):
        KLUE_MRC.parse(piece * 100_000, ANSWERABLE)


@pytest.mark.parametrize("mark", ["！", "？", "～"])
def test_full_width_signs_of_the_passage_are_found_and_kept(mark):
    example = Example(
        "q", {"answers": [f"만세{mark}"]}, {"context": f"모두 만세{mark} 하고 외쳤다.", "question": "무엇을?"}
    )
    half = chr(ord(mark) - 0xFEE0)
    assert KLUE_MRC.parse(f"만세{half}", example) == f"만세{mark}"
    assert KLUE_MRC.parse(f"만세{mark}", example) == f"만세{mark}"
