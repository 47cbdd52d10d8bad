"""KLUE-NER: lines of entities aligned with the characters of the sentence."""

from __future__ import annotations

import pytest

from finetune.examples import Example
from finetune.generative.prompts import PROMPTS
from finetune.tasks.ner.task import find_entities

NER = PROMPTS["klue-ner"]
TEXT = "윤슬은 7월 3일 한빛은행에서 윤슬 은행장을 만났다."


def tags(text, *entities):
    """Tags of the characters that are not spaces, of (first character, text, kind)."""
    marks = ["O"] * len(text)
    for begin, words, kind in entities:
        assert text[begin : begin + len(words)] == words
        marks[begin : begin + len(words)] = [f"B-{kind}", *[f"I-{kind}"] * (len(words) - 1)]
    return [tag for tag, character in zip(marks, text, strict=True) if character != " "]


GOLD = tags(TEXT, (0, "윤슬", "PS"), (4, "7월 3일", "DT"), (10, "한빛은행", "OG"), (17, "윤슬", "PS"))
EXAMPLE = Example("a", GOLD, {"text": TEXT})
GOLD_ANSWER = "윤슬: 사람\n7월 3일: 날짜\n한빛은행: 기관\n윤슬: 사람"


def found(answer):
    return [(TEXT[begin:end], kind, begin) for kind, begin, end in find_entities(TEXT, NER.parse(answer, EXAMPLE))]


def test_gold_has_one_line_per_entity_including_repeated_ones():
    assert NER.render_gold(EXAMPLE) == GOLD_ANSWER
    assert NER.parse(GOLD_ANSWER, EXAMPLE) == GOLD
    assert NER.render_input(EXAMPLE) == f"문장: {TEXT}"


@pytest.mark.parametrize(
    "answer",
    [
        "- **윤슬**: 사람\n- **7월 3일**: 날짜\n- **한빛은행**: 기관\n- **윤슬**: 사람",
        "```\n윤슬: 사람\n7월 3일: 날짜\n한빛은행: 기관\n윤슬: 사람\n```",
        "문장에서 찾은 개체입니다.\n\n1. 윤슬 (사람)\n2. 7월 3일 (날짜)\n3. 한빛은행 (기관)\n4. 윤슬 (사람)\n",
        "윤슬: 사람, 7월 3일: 날짜, 한빛은행: 기관, 윤슬: 사람",
        "'윤슬' - PS\n'7월 3일' - DT\n'한빛은행' - OG\n'윤슬' - PS",
        "| 윤슬 | 사람 |\n| 7월 3일 | 날짜 |\n| 한빛은행 | 기관 |\n| 윤슬 | 사람 |",
        "개체: 윤슬, 종류: 인물\n개체: 7월 3일, 종류: 날짜\n개체: 한빛은행, 종류: 기관\n개체: 윤슬, 종류: 인물",
        "1. 개체명: 윤슬\n   유형: 사람\n2. 개체명: 7월 3일\n   유형: 날짜\n3. 개체명: 한빛은행\n   유형: 기관\n"
        "4. 개체명: 윤슬\n   유형: 사람",
        "인물: 윤슬, 윤슬 / 날짜: 7월 3일 / 기관: 한빛은행",
        "**사람(PS)**: 윤슬, 윤슬\n**날짜(DT)**: 7월 3일\n**기관(OG)**: 한빛은행\n**시간(TI)**: 없음",
        "찾은 개체입니다.\n\n### 사람\n- 윤슬\n- 윤슬\n\n### 날짜\n- 7월 3일\n\n### 기관\n한빛은행\n\n이상입니다.",
        "윤슬/PS, 7월 3일/DT, 한빛은행/OG, 윤슬/PS",
        '{"text": "윤슬", "type": "사람"}\n{"text": "7월 3일", "type": "날짜"}\n{"text": "한빛은행", "type": "기관"}\n'
        '{"text": "윤슬", "type": "사람"}',
        '{"entities": ["윤슬", "7월 3일", "한빛은행", "윤슬"], "types": ["사람", "날짜", "기관", "사람"]}',
        "윤슬： 사람\n７월３일： 날짜\n한빛은행： 기관\n윤슬： 사람",
    ],
)
def test_other_forms_of_the_same_lines_are_read(answer):
    assert NER.parse(answer, EXAMPLE) == GOLD


def test_a_repeated_entity_takes_the_next_place_and_no_more_than_there_are():
    assert found("윤슬: 사람") == [("윤슬", "PS", 0)]
    assert found("한빛은행: 기관\n윤슬: 사람\n윤슬: 사람\n윤슬: 사람") == [
        ("윤슬", "PS", 0), ("한빛은행", "OG", 10), ("윤슬", "PS", 17),
    ]  # fmt: skip


def test_an_entity_in_another_writing_is_found_where_it_begins():
    assert found("윤슬은７월: 사람") == [("윤슬은 7월", "PS", 0)]
    assert found("3 일 한빛 은행: 기관") == [("3일 한빛은행", "OG", 7)]


def test_an_entity_that_is_not_in_the_sentence_has_no_place():
    assert found("서울: 장소\n한빛은행: 기관") == [("한빛은행", "OG", 10)]


def test_an_entity_never_covers_another():
    assert found("한빛은행: 기관\n은행: 기관") == [("한빛은행", "OG", 10), ("은행", "OG", 20)]


def test_none_is_an_answer_and_other_text_is_not():
    assert NER.parse("없음", EXAMPLE) == ["O"] * len(GOLD)
    for answer in ("개체가 없습니다.", "사람: 없음\n장소: 없음", '{"사람": [], "장소": []}'):
        assert NER.parse(answer, EXAMPLE) == ["O"] * len(GOLD)
    for answer in ("", "죄송하지만 답할 수 없습니다.", "윤슬과 한빛은행입니다.", "윤슬: 동물"):
        assert NER.parse(answer, EXAMPLE) is None


def test_hand_computed_scores_of_changed_answers(score):
    """Of persons one of two (F1 2/3), the date as time (DT and TI: 0), the bank right (1): (2/3 + 0 + 0 + 1) / 4. An
    unread answer finds nothing: of the two equal sentences half of the entities, F1 2/3 each."""
    changed = "윤슬: 사람\n7월 3일: 시간\n한빛은행: 기관"
    assert score("klue-ner", [EXAMPLE], [changed])["entity_macro_f1"] == pytest.approx(100 * (2 / 3 + 1) / 4)
    both = score("klue-ner", [EXAMPLE, EXAMPLE], [GOLD_ANSWER, "모르겠습니다."])
    assert both["entity_macro_f1"] == pytest.approx(200 / 3)
