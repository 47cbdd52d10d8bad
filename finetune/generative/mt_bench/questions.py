"""Question and answer files of MT-Bench: one JSON object per line, in the formats of FastChat and KoMT-Bench.

```
{"question_id": 81, "category": "writing", "turns": ["첫 질문", "다음 질문"], "reference": ["…", "…"]}
{"question_id": 81, "choices": [{"turns": ["…", "…"]}]}
```
``reference`` may be missing or null, and may come from a file of answers. Our own answers have the second format, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import parse_json
from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc
from finetune.data.files import read_text, write_json_lines

BUILT_IN = Path(__file__).with_name("korean_questions.jsonl")  # eight, one per category: too few for a leaderboard
NEEDS_REFERENCE = ("math", "reasoning", "coding")


@dataclass(frozen=True, slots=True)
class Question:
    """The turns that a user says, and optionally a reference answer to each."""

    id: str
    category: str
    turns: tuple[str, ...]
    reference: tuple[str, ...] = ()

    @property
    def lacks_reference(self) -> bool:
        return self.category in NEEDS_REFERENCE and len(self.reference) < len(self.turns)

    def reference_of(self, turn: int) -> str | None:
        """The reference answer to a turn, counted from 0, if the category is judged by one."""
        return self.reference[turn] if self.category in NEEDS_REFERENCE and turn < len(self.reference) else None


def read_questions(path: Path) -> list[Question]:
    """The questions of a file, in order; ``BadInput`` with file and line for any problem."""
    questions: dict[str, Question] = {}
    for where, record in _read_records(path):
        category, turns = record.get("category"), _texts(record.get("turns"), where, "turns")
        if not isinstance(category, str) or not category.strip():
            raise BadInput(f"{where}: 'category' should be a text, found {category!r:.60}")
        if not turns:
            raise BadInput(f"{where}: 'turns' is empty")
        reference = record.get("reference")
        reference = [reference] if isinstance(reference, str) else [] if reference is None else reference
        reference = _texts(reference, where, "reference")
        name = _id_of(record, where)
        if name in questions:
            raise BadInput(f"{where}: question_id {name} also occurs in an earlier line; ids must be unique")
        questions[name] = Question(name, category.strip(), turns, tuple(text for text in reference if text.strip()))
    if not questions:
        raise BadInput(f"{path}: no questions; expected one object per line with question_id, category and turns")
    return list(questions.values())


def read_answers(path: Path, questions: Sequence[Question]) -> dict[str, tuple[str, ...]]:
    """A model's answers by question: the first choice of each record; answers to other questions are ignored.

    ``BadInput`` for a malformed record or a question with fewer answers than turns.
    """
    turns = {question.id: len(question.turns) for question in questions}
    answers = {}
    for where, record in _read_records(path):
        choices = record.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise BadInput(f"{where}: 'choices' should be a list of objects with 'turns', found {choices!r:.60}")
        texts, name = _texts(choices[0].get("turns"), where, "turns"), _id_of(record, where)
        if len(texts) < turns.get(name, 0):
            raise BadInput(f"{where}: {len(texts)} answers to the {turns[name]} turns of question {name}")
        if name in turns:
            answers[name] = texts[: turns[name]]
    return answers


def with_references(questions: Sequence[Question], answers: Mapping[str, tuple[str, ...]]) -> list[Question]:
    """The questions with references from a file of answers; questions that it lacks are unchanged."""
    return [replace(question, reference=answers.get(question.id, question.reference)) for question in questions]


def write_answers(path: Path, model: str, questions: Sequence[Question], answers: Mapping[str, Sequence[str]]) -> None:
    """Write answers for the ``--against`` of another run, or for FastChat's tools."""
    records = [
        {"question_id": question.id, "model_id": model, "choices": [{"index": 0, "turns": [*answers[question.id]]}]}
        for question in questions
    ]
    write_json_lines(path, records)


def _read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = nfc(parse_json(line))
        except json.JSONDecodeError as error:
            raise BadInput(f"{where}: broken JSON ({error.msg}); expected one object per line") from None
        except ValueError as error:
            raise BadInput(f"{where}: {error}; correct or remove the line") from None
        if not isinstance(record, dict):
            raise BadInput(f"{where}: expected a JSON object, found {record!r:.60}")
        yield where, record


def _id_of(record: Mapping[str, Any], where: str) -> str:
    value = record.get("question_id")
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise BadInput(f"{where}: 'question_id' should be a number or a text, found {value!r:.60}")
    return str(value)


def _texts(value: Any, where: str, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadInput(f"{where}: '{key}' should be a list of texts, found {value!r:.60}")
    return tuple(text.replace("\r\n", "\n") for text in value)
