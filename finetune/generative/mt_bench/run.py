"""MT-Bench: a model answers all turns; judges score each answer and compare pairs of answers in both orders.

Temperatures by category are those of FastChat. The published pipeline has no pairs, does not report ties, position or
length bias, and averages a failed verdict as -1. Here an answer that never came and a truncated judgment are failures.
Horangi uses the score without the penalty for another language.

Files of questions and answers have one JSON object per line, in the formats of FastChat and KoMT-Bench:
```
{"question_id": 81, "category": "writing", "turns": ["첫 질문", "다음 질문"], "reference": ["…", "…"]}
{"question_id": 81, "choices": [{"turns": ["…", "…"]}]}
```
``reference`` may be missing or null, and may come from a file of answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictStr, StringConstraints

from corpus.documents.atomic_files import write_json
from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc, read_json_lines
from finetune.data.files import identify, validate, write_json_lines
from finetune.generative.client import ask as client_ask
from finetune.generative.client.ask import Answer, Client, sum_costs
from finetune.generative.mt_bench import judge as judging
from finetune.generative.prompts.prompt import build_turns

Kind = Literal["single", "pair", "pair swapped"]
Answers = Mapping[str, Sequence[str | None]]  # by question, one per turn; None if no answer came
BUILT_IN = Path(__file__).with_name("korean_questions.jsonl")  # eight, one per category: too few for a leaderboard
ANSWERS_NAME = "answers.jsonl"
MAX_TOKENS = 1_024  # of an answer and of a judgment
SWAPPED: Mapping[judging.Verdict, judging.Verdict] = {"a": "b", "b": "a", "tie": "tie"}


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


def read_questions(path: Path) -> list[judging.Question]:
    """The questions of a file, in order; ``BadInput`` with file and line for any problem."""
    questions: dict[str, judging.Question] = {}
    for record in read_json_lines(path):
        question = validate(_QuestionRecord, nfc(record.values), record.where)
        name, reference = question.question_id, tuple(text for text in question.reference if text.strip())
        if name in questions:
            raise BadInput(f"{record.where}: question_id {name} also occurs in an earlier line; ids must be unique")
        questions[name] = judging.Question(name, question.category, question.turns, reference)
    if not questions:
        raise BadInput(f"{path}: no questions; expected one object per line with question_id, category and turns")
    return list(questions.values())


def read_answers(path: Path, questions: Sequence[judging.Question]) -> dict[str, tuple[str, ...]]:
    """A model's answers by question: the first choice of each record; answers to other questions are ignored.

    ``BadInput`` for a malformed record or a question with fewer answers than turns.
    """
    turns = {question.id: len(question.turns) for question in questions}
    answers = {}
    for record in read_json_lines(path):
        answer = validate(_AnswerRecord, nfc(record.values), record.where)
        name, texts = answer.question_id, answer.choices[0].turns
        if len(texts) < turns.get(name, 0):
            raise BadInput(f"{record.where}: {len(texts)} answers to the {turns[name]} turns of question {name}")
        if name in turns:
            answers[name] = texts[: turns[name]]
    return answers


class Bench(NamedTuple):
    """What is asked: questions, optionally another model's answers, and the sources of both for ``scores.json``."""

    questions: Sequence[judging.Question]
    against: Mapping[str, Sequence[str]] | None = None
    about: Mapping[str, Any] = {}


def load_bench(path: Path | None, references: Path | None, against: Path | None) -> Bench:
    """Read the files of a run.

    Args:
        path: a question file; None: the built-in questions.
        references: a file of reference answers.
        against: the folder of another run, or its ``answers.jsonl``.
    """
    questions = read_questions(path or BUILT_IN)
    about: dict[str, Any] = {"questions": identify(path, is_custom=True) if path else "eight of malmoi"}
    if references is not None:
        known = read_answers(references, questions)
        questions = [replace(question, reference=known.get(question.id, question.reference)) for question in questions]
        about["references"] = identify(references, is_custom=True)
    if against is None:
        return Bench(questions, None, about)
    against = against / ANSWERS_NAME if against.is_dir() else against
    if not (other := read_answers(against, questions)):
        raise BadInput(f"{against}: answers none of the questions; use answers to the same question file")
    return Bench(questions, other, about | {"against": str(against)})


def run_bench(bench: Bench, model: Client, judges: Sequence[Client], out: Path) -> dict[str, Any]:
    """Answer, judge and write ``answers.jsonl``, ``judgments.jsonl`` and ``scores.json``; returns the last one."""
    questions, spent = bench.questions, dict[str, list[Answer]]()
    answers = answer_questions(questions, model, spent)
    choices = {name: [{"index": 0, "turns": [text or "" for text in turns]}] for name, turns in answers.items()}
    records = ({"question_id": q.id, "model_id": model.model, "choices": choices[q.id]} for q in questions)
    write_json_lines(out / ANSWERS_NAME, records)
    judgments = [one for judge in judges for one in judge_answers(bench, answers, judge, spent)]
    write_json_lines(out / "judgments.jsonl", judgments)
    scores = {
        "task": "mt-bench", "model": model.model, "n": len(questions), **bench.about,
        "temperatures": {q.category: temperature_of(q, model) for q in questions},
        "unanswered": sum(text is None for turns in answers.values() for text in turns),
        "without_reference": [question.id for question in questions if question.lacks_reference],
        **summarize(questions, answers, judgments, [judge.model for judge in judges]),
        "spent": {name: sum_costs(own) for name, own in spent.items()},
    }  # fmt: skip
    write_json(out / "scores.json", scores)
    return scores


def _ask(questions: Sequence[client_ask.Question], client: Client, spent: dict[str, list[Answer]]) -> list[Answer]:
    answers = client_ask.ask(questions, client)
    spent.setdefault(client.model, []).extend(answers)
    return answers


def answer_questions(questions: Sequence[judging.Question], model: Client, spent: dict[str, list[Answer]]) -> Answers:
    """Answer all questions, one turn at a time; after a turn without an answer, the later turns have none either."""
    answers: dict[str, list[str | None]] = {question.id: [] for question in questions}
    for turn in range(max(len(question.turns) for question in questions)):
        asked = [question for question in questions if turn < len(question.turns) and None not in answers[question.id]]
        requests = []
        for question in asked:
            answered = zip(question.turns, (text or "" for text in answers[question.id]), strict=False)
            messages = build_turns(answered, question.turns[turn])
            name, temperature = f"{question.id}, turn {turn + 1}", temperature_of(question, model)
            requests.append(client_ask.Question(name, messages, MAX_TOKENS, temperature=temperature))
        for question, answer in zip(asked, _ask(requests, model, spent), strict=True):
            answers[question.id].append(answer.text)
    return {q.id: answers[q.id] + [None] * (len(q.turns) - len(answers[q.id])) for q in questions}


def temperature_of(question: judging.Question, model: Client) -> float:
    """The temperature of FastChat for the category of a question; 0 for ``hf/`` models, which decode greedily."""
    if model.model.startswith("hf/"):
        return 0.0
    return judging.TEMPERATURES.get(question.category, judging.TEMPERATURES["writing"])


def judge_answers(
    bench: Bench, answers: Answers, judge: Client, spent: dict[str, list[Answer]]
) -> list[dict[str, Any]]:
    """Judge every answer: a score, and both orders of a pair if the other model answered, too.

    Returns the lines of ``judgments.jsonl``; turns count from 1, and ``score`` or ``winner`` is None if it failed.
    """
    places = [(q, turn) for q in bench.questions for turn in range(len(q.turns)) if answers[q.id][turn] is not None]
    against = bench.against or {}
    asked: list[tuple[judging.Question, int, Kind]] = [(q, turn, "single") for q, turn in places]
    for q, turn in places:
        asked += [(q, turn, "pair"), (q, turn, "pair swapped")] if q.id in against else []
    requests = []
    for q, turn, kind in asked:
        own, other = [text or "" for text in answers[q.id][: turn + 1]], against.get(q.id, ())[: turn + 1]
        prompt = judging.ask_for_score(q, own) if kind == "single" else judging.ask_for_winner(q, own, other)
        prompt = judging.ask_for_winner(q, other, own) if kind == "pair swapped" else prompt
        name = f"{judge.model} on {q.id}, turn {turn + 1}, {kind}"
        requests.append(client_ask.Question(name, (("user", prompt),), MAX_TOKENS))
    return [
        {
            "judge": judge.model, "question_id": q.id, "category": q.category, "turn": turn + 1, "kind": kind,
            **_parse(kind, reply, [*q.turns, *(text or "" for text in answers[q.id]), *against.get(q.id, ())]),
            "is_penalized": kind == "single" and judging.is_penalized(q, turn, answers[q.id][turn] or ""),
            "text": reply.text, "error": reply.error,
        }
        for (q, turn, kind), reply in zip(asked, _ask(requests, judge, spent), strict=True)
    ]  # fmt: skip


def _parse(kind: Kind, reply: Answer, shown: Sequence[str] = ()) -> dict[str, Any]:
    """The verdict in a judge's text about the ``shown`` texts; a text that was cut off has none.

    The winner is ``a`` for the model, also where it was shown second.
    """
    text = "" if reply.text is None or reply.stop == "max_tokens" else reply.text
    if kind == "single":
        return {"score": judging.parse_score(text, shown)}
    winner = judging.parse_winner(text, shown)
    return {"winner": SWAPPED[winner] if winner is not None and kind == "pair swapped" else winner}


def summarize(
    questions: Sequence[judging.Question],
    answers: Answers,
    judgments: Sequence[Mapping[str, Any]],
    judges: Sequence[str],
) -> dict[str, Any]:
    """Scores and pairs by judge, and the agreement of the first two judges, as JSON."""
    of_judge = {name: [one for one in judgments if one["judge"] == name] for name in judges}
    scores = {name: _scores_of(questions, answers, own) for name, own in of_judge.items()}
    pairs = {name: _pairs_of(own) for name, own in of_judge.items()}
    summary: dict[str, Any] = {"judges": {name: {"single": judging.summarize_scores(scores[name])} for name in judges}}
    for name, own in summary["judges"].items():
        own["single"]["penalized"] = sum(one["is_penalized"] for one in of_judge[name])
        if pairs[name]:
            own["pairs"] = judging.summarize_pairs(pairs[name])
    if len(judges) > 1:
        first, second = judges[:2]
        summary["agreement"] = {"single": judging.agreement(scores[first], scores[second])}
        if pairs[first]:
            summary["agreement"]["pairs"] = judging.agreement_of_pairs(pairs[first], pairs[second])
    return summary


def _scores_of(
    questions: Sequence[judging.Question], answers: Answers, judgments: Sequence[Mapping[str, Any]]
) -> list[judging.Scored]:
    """One per turn of each question, including those without an answer."""
    by_turn = {(one["question_id"], one["turn"]): one for one in judgments if one["kind"] == "single"}
    scored = []
    for q, turn in [(question, turn + 1) for question in questions for turn in range(len(question.turns))]:
        one = by_turn.get((q.id, turn), {"score": None})
        score = math.sqrt(one["score"]) if one["score"] and one["is_penalized"] else one["score"]
        length = len(answers[q.id][turn - 1] or "")
        scored.append(judging.Scored(q.id, q.category, turn, score, length, one["score"]))
    return scored


def _pairs_of(judgments: Sequence[Mapping[str, Any]]) -> list[judging.Paired]:
    winners: dict[tuple[str, str, int], dict[str, judging.Verdict | None]] = {}
    for one in judgments:
        if one["kind"] != "single":
            winners.setdefault((one["question_id"], one["category"], one["turn"]), {})[one["kind"]] = one["winner"]
    return [judging.Paired(*place, own.get("pair"), own.get("pair swapped")) for place, own in winners.items()]
