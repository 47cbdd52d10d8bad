"""Answers that ended at the limit of tokens, and why an answer could not be parsed."""

from __future__ import annotations

import pytest

from corpus.documents.errors import BadInput
from finetune.generative.client.ask import Answer, check_cut
from finetune.generative.prompts.answers import outcome


def answers(stops: list[str]) -> list[Answer]:
    return [Answer(str(number), "경제", stop) for number, stop in enumerate(stops)]


def test_cut_answers_stop_the_run_only_if_they_cannot_be_parsed() -> None:
    stops = ["max_tokens"] * 10 + ["stop"] * 10
    check_cut("ynat", answers(stops), [True] * 20, 16)
    check_cut("ynat", answers(stops), [False] + [True] * 19, 16)  # 5 % of the answers
    with pytest.raises(BadInput, match=r"ynat: 2 of 20 answers were cut at 16 tokens .* --max-tokens 64"):
        check_cut("ynat", answers(stops), [False] * 2 + [True] * 18, 16)
    check_cut("ynat", answers(["stop"] * 20), [False] * 20, 16)


@pytest.mark.parametrize(
    ("answer", "is_parsed", "expected"),
    [
        ("경제", True, "parsed"),
        ("", False, "empty"),
        ("<think>정치일까", False, "empty"),
        (None, False, "empty"),
        ("죄송하지만 답할 수 없습니다.", False, "refused"),
        ("I'm sorry, I can't help with that.", False, "refused"),
        ("연예", False, "unread"),
        ("경제 또는 사회", False, "unread"),
    ],
)
def test_an_answer_without_a_prediction_is_empty_refused_or_unread(
    answer: str | None, is_parsed: bool, expected: str
) -> None:
    assert outcome(answer, is_parsed=is_parsed) == expected
