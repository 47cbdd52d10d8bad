"""Question and answer files of MT-Bench in the formats of FastChat and KoMT-Bench, and messages for broken ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from corpus.documents.errors import BadInput
from finetune.generative.mt_bench.judge import Question
from finetune.generative.mt_bench.run import read_answers, read_questions

ONE = {"question_id": 81, "category": "writing", "turns": ["봄 시를 써 주세요.", "더 짧게요."]}
TWO = {"question_id": "m1", "category": "math", "turns": ["2+3은?", "그 두 배는?"], "reference": ["5", "10"]}


def lines(path: Path, *records: Any) -> Path:
    texts = (record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text("\n".join(texts) + "\n", "utf-8")
    return path


def test_questions_of_both_forms_are_read_in_order(tmp_path: Path) -> None:
    found = read_questions(
        lines(tmp_path / "q.jsonl", ONE, "", {**TWO, "extra": 1}, {**ONE, "question_id": 5, "reference": None})
    )
    assert [question.id for question in found] == ["81", "m1", "5"]
    assert found[1] == Question("m1", "math", ("2+3은?", "그 두 배는?"), ("5", "10"))
    assert found[0].reference == found[2].reference == ()


def test_decomposed_text_and_foreign_line_ends_read_as_the_same(tmp_path: Path) -> None:
    plain = lines(tmp_path / "a.jsonl", ONE, TWO)
    (tmp_path / "b.jsonl").write_bytes(normalize("NFD", plain.read_text("utf-8")).replace("\n", "\r\n").encode())
    assert read_questions(tmp_path / "b.jsonl") == read_questions(plain)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([], "no questions; expected"),
        (["{"], "line 1: broken JSON"),
        ([[1]], "line 1: expected a JSON object"),
        ([ONE, {**TWO, "question_id": 81}], "line 2: question_id 81 also occurs in an earlier line"),
        ([{**ONE, "question_id": None}], "question_id: expected a number or a text, found None"),
        ([{**ONE, "question_id": True}], "question_id: expected a number or a text, found True"),
        ([{**ONE, "category": ""}], "category: must not be empty"),
        ([{**ONE, "turns": []}], "turns: must not be empty"),
        ([{**ONE, "turns": "글"}], "turns: must be a list, found '글'"),
        ([{**ONE, "turns": ["글", 3]}], "turns.1: must be text, found 3"),
        ([{**ONE, "reference": {"a": 1}}], "reference: must be a list"),
    ],
)
def test_a_broken_question_file_is_one_sentence(tmp_path: Path, records: list[Any], said: str) -> None:
    path = lines(tmp_path / "q.jsonl", *records)
    with pytest.raises(BadInput) as raised:
        read_questions(path)
    assert str(raised.value).startswith(str(path)) and said in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"choices": None},
        {"choices": {"turns": ["하나", "둘"]}},
        {"choices": []},
        {"choices": [["하나", "둘"]]},
        {"choices": ["하나"]},
        {"choices": [None]},
    ],
)
def test_a_malformed_answer_record_is_refused_with_file_and_line(tmp_path: Path, record: dict[str, Any]) -> None:
    questions = read_questions(lines(tmp_path / "q.jsonl", ONE))
    good = {"question_id": 81, "choices": [{"turns": ["하나", "둘"]}]}
    path = lines(tmp_path / "a.jsonl", good, {"question_id": 81, **record})
    with pytest.raises(BadInput, match=r"a\.jsonl, line 2: choices"):
        read_answers(path, questions)


def test_an_answer_file_with_too_few_turns_is_refused(tmp_path: Path) -> None:
    questions = read_questions(lines(tmp_path / "q.jsonl", ONE))
    path = lines(tmp_path / "a.jsonl", {"question_id": 81, "choices": [{"turns": ["하나"]}]})
    with pytest.raises(BadInput, match="1 answers to the 2 turns of question 81"):
        read_answers(path, questions)


def test_only_questions_of_three_categories_lack_a_reference(tmp_path: Path) -> None:
    short = {**TWO, "question_id": 3, "reference": ["5"]}
    found = read_questions(lines(tmp_path / "q.jsonl", ONE, TWO, short))
    assert [question.lacks_reference for question in found] == [False, False, True]
    assert found[2].reference_of(0) == "5" and found[2].reference_of(1) is None and found[0].reference_of(0) is None
