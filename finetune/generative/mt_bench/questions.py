"""Question files of MT-Bench: a JSON object a line, as FastChat and KoMT-Bench have them.

``{"question_id": 81, "category": "writing", "turns": ["첫 질문", "다음 질문"], "reference": ["…", "…"]}``, where
``reference`` may be missing or null. References also come as FastChat's files of model answers (``read_answers``), the
form in which our answers are written, too. Every problem is a ``BadInput`` with file and line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import atomic_write, parse_json
from corpus.documents.errors import BadInput
from finetune.data.files import read_text
from finetune.data.tables import nfc

NEEDS_REFERENCE = ("math", "reasoning", "coding")
FORM = "expected question_id, category and turns, a list of texts"


@dataclass(frozen=True, slots=True)
class Question:
    """Turns that a user says one after the other; ``reference``: a right answer to each, or none."""

    id: str
    category: str
    turns: tuple[str, ...]
    reference: tuple[str, ...] = ()

    @property
    def lacks_reference(self) -> bool:
        return self.category in NEEDS_REFERENCE and len(self.reference) < len(self.turns)

    def reference_of(self, turn: int) -> str | None:
        """The right answer to a turn, from 0, of the categories that are judged by one."""
        is_judged_by_it = self.category in NEEDS_REFERENCE and turn < len(self.reference)
        return self.reference[turn] if is_judged_by_it else None


def read_questions(path: Path) -> list[Question]:
    """The questions of a file, in its order."""
    questions: dict[str, Question] = {}
    for where, record in _records(path):
        question = Question(
            _id_of(record, where), _text(record, "category", where),
            _texts(record.get("turns"), "turns", where), _reference(record, where),
        )  # fmt: skip
        if not question.turns:
            raise BadInput(f"{where}: 'turns' is empty; {FORM}")
        if question.id in questions:
            raise BadInput(f"{where}: question_id {question.id} stands in an earlier line, too; ids are unique")
        questions[question.id] = question
    if not questions:
        raise BadInput(f"{path}: no question in it; {FORM}, an object a line")
    return list(questions.values())


def with_references(questions: Sequence[Question], answers: Mapping[str, tuple[str, ...]]) -> list[Question]:
    """The questions with references of another file, those it lacks unchanged."""
    return [replace(question, reference=answers.get(question.id, question.reference)) for question in questions]


def read_answers(path: Path, questions: Sequence[Question]) -> dict[str, tuple[str, ...]]:
    """Answers of a model by question: FastChat's ``{"question_id": 81, "choices": [{"turns": ["…", "…"]}]}``, the first
    choice. Those to other questions are left out; ``BadInput`` for a question with fewer answers than turns."""
    turns = {question.id: len(question.turns) for question in questions}
    found = {}
    for where, record in _records(path):
        choices = record.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise BadInput(f"{where}: 'choices' should be a list of objects with 'turns', found {choices!r:.60}")
        answers = _texts(choices[0].get("turns"), "turns", where)
        name = _id_of(record, where)
        if len(answers) < turns.get(name, 0):
            raise BadInput(f"{where}: {len(answers)} answers to the {turns[name]} turns of question {name}")
        if name in turns:
            found[name] = answers[: turns[name]]
    return found


def write_answers(path: Path, model: str, questions: Sequence[Question], answers: Mapping[str, Sequence[str]]) -> None:
    """Answers in the same form, for another run's ``--against`` or FastChat's own tools."""
    records = [
        {"question_id": question.id, "model_id": model, "choices": [{"index": 0, "turns": [*answers[question.id]]}]}
        for question in questions
    ]
    atomic_write(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        try:
            record = nfc(parse_json(line))
        except json.JSONDecodeError as error:
            raise BadInput(f"{where}: broken JSON ({error.msg}); expected an object a line") from None
        except ValueError as error:
            raise BadInput(f"{where}: {error}; mend or remove the line") from None
        if not isinstance(record, dict):
            raise BadInput(f"{where}: expected a JSON object, found {record!r:.60}")
        yield where, record


def _id_of(record: Mapping[str, Any], where: str) -> str:
    value = record.get("question_id")
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise BadInput(f"{where}: 'question_id' should be a number or a text, found {value!r:.60}; {FORM}")
    return str(value)


def _text(record: Mapping[str, Any], key: str, where: str) -> str:
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{where}: '{key}' should be a text, found {value!r:.60}; {FORM}")
    return value.strip()


def _texts(value: Any, key: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadInput(f"{where}: '{key}' should be a list of texts, found {value!r:.60}")
    return tuple(text.replace("\r\n", "\n") for text in value)


def _reference(record: Mapping[str, Any], where: str) -> tuple[str, ...]:
    value = record.get("reference")
    value = [value] if isinstance(value, str) else value
    if value is None:
        return ()
    return tuple(text for text in _texts(value, "reference", where) if text.strip())
