"""Question and answer files of MT-Bench: one JSON object per line, in the formats of FastChat and KoMT-Bench.

```
{"question_id": 81, "category": "writing", "turns": ["첫 질문", "다음 질문"], "reference": ["…", "…"]}
{"question_id": 81, "choices": [{"turns": ["…", "…"]}]}
```
``reference`` may be missing or null, and may come from a file of answers. Our own answers have the second format, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictStr, StringConstraints

from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc, read_json_lines
from finetune.data.files import validate, write_json_lines

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


def _read_id(value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise ValueError("expected a number or a text")
    return str(value)


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else [] if value is None else value


Id = Annotated[str, BeforeValidator(_read_id)]
Text = Annotated[StrictStr, AfterValidator(lambda text: text.replace("\r\n", "\n"))]
Name = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1)]


class _QuestionRecord(BaseModel):
    question_id: Id
    category: Name
    turns: tuple[Text, ...] = Field(min_length=1)
    reference: Annotated[tuple[Text, ...], BeforeValidator(_as_list)] = ()


class _Choice(BaseModel):
    turns: tuple[Text, ...]


class _AnswerRecord(BaseModel):
    question_id: Id
    choices: tuple[_Choice, ...] = Field(min_length=1)


def read_questions(path: Path) -> list[Question]:
    """The questions of a file, in order; ``BadInput`` with file and line for any problem."""
    questions: dict[str, Question] = {}
    for record in read_json_lines(path):
        found = validate(_QuestionRecord, nfc(record.values), record.where)
        name, reference = found.question_id, tuple(text for text in found.reference if text.strip())
        if name in questions:
            raise BadInput(f"{record.where}: question_id {name} also occurs in an earlier line; ids must be unique")
        questions[name] = Question(name, found.category, found.turns, reference)
    if not questions:
        raise BadInput(f"{path}: no questions; expected one object per line with question_id, category and turns")
    return list(questions.values())


def read_answers(path: Path, questions: Sequence[Question]) -> dict[str, tuple[str, ...]]:
    """A model's answers by question: the first choice of each record; answers to other questions are ignored.

    ``BadInput`` for a malformed record or a question with fewer answers than turns.
    """
    turns = {question.id: len(question.turns) for question in questions}
    answers = {}
    for record in read_json_lines(path):
        found = validate(_AnswerRecord, nfc(record.values), record.where)
        name, texts = found.question_id, found.choices[0].turns
        if len(texts) < turns.get(name, 0):
            raise BadInput(f"{record.where}: {len(texts)} answers to the {turns[name]} turns of question {name}")
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
