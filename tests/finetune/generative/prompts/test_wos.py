"""WoS: states from lines, with the ontology's own spaces."""

from __future__ import annotations

import pytest

from finetune.examples import Example, Row
from finetune.generative.prompts.wos import WOS
from finetune.tasks.wos.task import WOS as TASK

ONTOLOGY = {"식당-이름": {"별빛식당": ["별빛 식당"]}, "택시-출발지": {"달빛역": ["달빛역"]}}
TURNS = ("", "별빛 식당 예약해 주세요.", "몇 명이세요?", "5명이고 주차는 상관없어요. 새벽 찻집에도 들를게요. ")
GOLD = ["식당-이름-별빛 식당", "식당-예약 명수-5", "식당-주차 가능-dontcare"]
EXAMPLE = Example("d-1", GOLD, {"dialogue": "d", "turns": TURNS, "ontology": ONTOLOGY})
EMPTY = Example("d-0", [], {"dialogue": "d", "turns": TURNS[:2], "ontology": ONTOLOGY})
GOLD_ANSWER = "식당-이름: 별빛 식당\n식당-예약 명수: 5\n식당-주차 가능: 상관없음"

WHOLE = {
    "the form that is demanded": GOLD_ANSWER,
    "a bulleted list in bold": "- **식당-이름**: 별빛 식당\n- **식당-예약 명수**: 5\n- **식당-주차 가능**: 상관없음",
    "a numbered list": "1. 식당-이름: 별빛 식당\n2. 식당-예약 명수: 5\n3. 식당-주차 가능: 상관없음",
    "other signs, no spaces, units": "식당-이름 -> '별빛식당'\n식당-예약명수 = 5명\n식당 - 주차 가능: don't care",
    "as the official files": "식당-이름-별빛 식당\n식당-예약 명수-5\n식당-주차 가능-dontcare",
    "JSON": '{"식당-이름": "별빛 식당", "식당-예약 명수": "5", "식당-주차 가능": "dontcare"}',
    "JSON, a line each": '```json\n{\n  "식당-이름": "별빛 식당",\n  "식당-예약 명수": 5,\n'
    '  "식당-주차 가능": "상관없음"\n}\n```',
    "on one line": "식당-이름: 별빛 식당, 식당-예약 명수: 5, 식당-주차 가능: 상관없음",
    "full width": GOLD_ANSWER.replace("명수: 5", "명수：５"),
    "with talk": f"손님의 조건은 다음과 같습니다.\n\n{GOLD_ANSWER}\n\n식당을 찾고 있습니다.",
    "slots that are not filled": f"{GOLD_ANSWER}\n식당-지역: 없음\n식당-종류:\n숙소-이름: none",
    "an entry twice": f"{GOLD_ANSWER}\n식당-이름: 별빛식당",
}


def test_all_turns_are_asked_with_their_speakers():
    assert WOS.render_input(EXAMPLE) == (
        "대화:\n손님: 별빛 식당 예약해 주세요.\n상담원: 몇 명이세요?\n"
        "손님: 5명이고 주차는 상관없어요. 새벽 찻집에도 들를게요."
    )
    assert WOS.render_gold(EXAMPLE) == GOLD_ANSWER
    assert WOS.render_gold(EMPTY) == "없음"


@pytest.mark.parametrize("answer", WHOLE.values(), ids=WHOLE)
def test_a_state_is_read_from_its_lines(answer):
    assert WOS.parse(answer, EXAMPLE) == GOLD


@pytest.mark.parametrize(
    ("answer", "entry"),
    [
        ("택시-출발 시간-10:30", "택시-출발 시간-10:30"),
        ("식당-야외석 유무: 네", "식당-야외석 유무-yes"),
        ("식당-주차 가능: 아니오", "식당-주차 가능-no"),
        ('{"식당-주차 가능": true, "식당-이름": "?"}', "식당-주차 가능-yes"),
        ("택시-도착지: 새벽  찻집", "택시-도착지-새벽 찻집"),  # the dialogue's spaces
        ("식당-이름: 다른 곳", "식당-이름-다른 곳"),
    ],
)
def test_a_value_is_written_as_ontology_or_dialogue_do(answer, entry):
    assert WOS.parse(answer, EXAMPLE) == [entry]


@pytest.mark.parametrize("separator", [" / ", ", ", "; ", " | ", " · "])
@pytest.mark.parametrize("form", ["{}", "- {}", '["{}"]', '{{"answer": "{}"}}'])
def test_a_state_is_read_from_one_line(form: str, separator: str) -> None:
    assert WOS.parse(form.format(GOLD_ANSWER.replace("\n", separator)), EXAMPLE) == GOLD


@pytest.mark.parametrize(
    "answer",
    ["없음", "없음.", "**없음**", "[]", "{}", "식당-이름: 없음", "식당-이름: -\n식당-지역: ?"],
)
def test_an_empty_state_is_written_as_none(answer):
    assert WOS.parse(answer, EMPTY) == []


@pytest.mark.parametrize(
    "answer", ["", "죄송합니다.", "손님은 식당을 찾습니다.", "식당: 별빛", f"{GOLD_ANSWER}\n식당-주소: 5번지"]
)
def test_talk_alone_and_unknown_slots_do_not_parse(answer):
    assert WOS.parse(answer, EXAMPLE) is None


def test_what_does_not_parse_is_wrong_after_an_empty_state_too():
    """An empty list, as a refusal might be written down, would be right for every second turn here."""
    rows = [Row(e.guid, e.gold, WOS.unparsed(e)) for e in (EXAMPLE, EMPTY)]
    assert set(TASK.score(rows).values()) == {0}
    assert TASK.score([row._replace(prediction=[]) for row in rows])["joint_goal_acc"] == 50


def test_known_errors_cost_what_they_should():
    """One of three values wrong: F1 of the turn 2*2/(2*2+1+1); one missing: 2*2/(2*2+1); one turn right."""
    answers = [GOLD_ANSWER.replace("5", "6"), GOLD_ANSWER.split("\n", 1)[1], GOLD_ANSWER]
    rows = [Row("d-1", GOLD, WOS.parse(answer, EXAMPLE)) for answer in answers]
    found = TASK.score(rows)
    assert found["joint_goal_acc"] == pytest.approx(100 / 3)
    assert found["slot_micro_f1"] == pytest.approx(100 * (2 / 3 + 4 / 5 + 1) / 3)


def test_a_long_answer_takes_time_in_proportion_to_its_length():
    for piece in ("식당-", "식당 - 이름", "식당-이름: 가, ", "식당-이름:", "- ", "'", "식당-가-", "식당-이름: 가 나\n"):
        WOS.parse(piece * 100_000, EXAMPLE)
