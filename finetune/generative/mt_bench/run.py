"""MT-Bench: a model answers all turns; judges score each answer and compare pairs of answers in both orders.

```
questions ─ turn 1, turn 2 ─▶ answers.jsonl ─┬─ score of each turn ──────────────▶ judgments.jsonl ─▶ scores.json
                     another model's answers ┴─ comparison of each turn, two orders ─┘
```
Differences from the published pipeline: it has no pairs, does not report ties, position or length bias, and averages a
failed verdict as -1. Here an answer that never came and a truncated judgment are failures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from corpus.documents.errors import BadInput
from finetune.data.files import identify_custom, write_json, write_json_lines
from finetune.generative.client import ask as client_ask
from finetune.generative.client.ask import Answer, Client, sum_costs
from finetune.generative.mt_bench import statistics
from finetune.generative.mt_bench.judge import Verdict, ask_for_score, ask_for_winner, parse_score, parse_winner
from finetune.generative.mt_bench.questions import (
    BUILT_IN,
    Question,
    read_answers,
    read_questions,
    with_references,
    write_answers,
)
from finetune.generative.prompts.prompt import Message

Kind = Literal["single", "pair", "pair swapped"]
Answers = Mapping[str, Sequence[str | None]]  # by question, one per turn; None if no answer came
ANSWERS_NAME = "answers.jsonl"
MAX_TOKENS = 1_024  # of an answer and of a judgment
SWAPPED: Mapping[Verdict, Verdict] = {"a": "b", "b": "a", "tie": "tie"}


class Judgment(NamedTuple):
    """One verdict of one judge on a turn, counted from 1; ``score`` or ``winner`` is None if it failed."""

    judge: str
    question: Question
    turn: int
    kind: Kind
    text: str | None
    error: str | None
    score: float | None = None
    winner: Verdict | None = None

    def as_json(self) -> dict[str, Any]:
        about = {"question_id": self.question.id, "category": self.question.category, "turn": self.turn}
        verdict = {"score": self.score} if self.kind == "single" else {"winner": self.winner}
        return {"judge": self.judge, **about, "kind": self.kind, **verdict, "text": self.text, "error": self.error}


class Bench(NamedTuple):
    """What is asked: questions, optionally another model's answers, and the sources of both for ``scores.json``."""

    questions: Sequence[Question]
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
    about: dict[str, Any] = {"questions": identify_custom(path) if path else "eight of malmoi"}
    if references is not None:
        questions = with_references(questions, read_answers(references, questions))
        about["references"] = identify_custom(references)
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
    texts = {name: [text or "" for text in turns] for name, turns in answers.items()}
    write_answers(out / ANSWERS_NAME, model.model, questions, texts)
    judgments = [one for judge in judges for one in judge_answers(bench, answers, judge, spent)]
    write_json_lines(out / "judgments.jsonl", (one.as_json() for one in judgments))
    scores = {
        "task": "mt-bench", "model": model.model, "temperature": 0.0, "n": len(questions), **bench.about,
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


def answer_questions(questions: Sequence[Question], model: Client, spent: dict[str, list[Answer]]) -> Answers:
    """Answer all questions, one turn at a time; after a turn without an answer, the later turns have none either."""
    answers: dict[str, list[str | None]] = {question.id: [] for question in questions}
    for turn in range(max(len(question.turns) for question in questions)):
        asked = [question for question in questions if turn < len(question.turns) and None not in answers[question.id]]
        requests = [
            client_ask.Question(f"{q.id}, turn {turn + 1}", _conversation(q, answers[q.id]), MAX_TOKENS) for q in asked
        ]
        for question, answer in zip(asked, _ask(requests, model, spent), strict=True):
            answers[question.id].append(answer.text)
    return {q.id: answers[q.id] + [None] * (len(q.turns) - len(answers[q.id])) for q in questions}


def _conversation(question: Question, answers: Sequence[str | None]) -> tuple[Message, ...]:
    """The answered turns, and the next one."""
    turns = list[Message]()
    for text, answer in zip(question.turns, answers, strict=False):
        turns += [("user", text), ("assistant", answer or "")]
    return (*turns, ("user", question.turns[len(answers)]))


def judge_answers(bench: Bench, answers: Answers, judge: Client, spent: dict[str, list[Answer]]) -> list[Judgment]:
    """Judge every answer: a score, and both orders of a pair if the other model answered, too."""
    places = [(q, turn) for q in bench.questions for turn in range(len(q.turns)) if answers[q.id][turn] is not None]
    against = bench.against or {}
    asked: list[tuple[Question, int, Kind]] = [(q, turn, "single") for q, turn in places]
    for q, turn in places:
        asked += [(q, turn, "pair"), (q, turn, "pair swapped")] if q.id in against else []
    requests = []
    for q, turn, kind in asked:
        name = f"{judge.model} on {q.id}, turn {turn + 1}, {kind}"
        prompt = _judge_prompt(q, turn, kind, answers, against)
        requests.append(client_ask.Question(name, (("user", prompt),), MAX_TOKENS))
    replies = zip(asked, _ask(requests, judge, spent), strict=True)
    return [_parse(judge.model, q, turn, kind, reply) for (q, turn, kind), reply in replies]


def _judge_prompt(q: Question, turn: int, kind: Kind, answers: Answers, against: Mapping[str, Sequence[str]]) -> str:
    own = [text or "" for text in answers[q.id][: turn + 1]]
    if kind == "single":
        return ask_for_score(q, own)
    other = against[q.id][: turn + 1]
    return ask_for_winner(q, own, other) if kind == "pair" else ask_for_winner(q, other, own)


def _parse(judge: str, question: Question, turn: int, kind: Kind, reply: Answer) -> Judgment:
    text = complete_text(reply)
    if kind == "single":
        return Judgment(judge, question, turn + 1, kind, reply.text, reply.error, score=parse_score(text))
    winner = parse_winner(text)
    winner = SWAPPED[winner] if winner is not None and kind == "pair swapped" else winner
    return Judgment(judge, question, turn + 1, kind, reply.text, reply.error, winner=winner)


def complete_text(reply: Answer) -> str:
    """A judge's text; empty if it was cut off, because its last line is then not the verdict."""
    return "" if reply.text is None or reply.stop == "max_tokens" else reply.text


def summarize(
    questions: Sequence[Question], answers: Answers, judgments: Sequence[Judgment], judges: Sequence[str]
) -> dict[str, Any]:
    """Scores and pairs by judge, and the agreement of the first two judges, as JSON."""
    scores = {name: _scores_of(questions, answers, judgments, name) for name in judges}
    pairs = {name: _pairs_of(judgments, name) for name in judges}
    summary: dict[str, Any] = {
        "judges": {
            name: {"single": statistics.summarize_scores(scores[name])}
            | ({"pairs": statistics.summarize_pairs(pairs[name])} if pairs[name] else {})
            for name in judges
        }
    }
    if len(judges) > 1:
        first, second = judges[:2]
        summary["agreement"] = {"single": statistics.agreement(scores[first], scores[second])}
        if pairs[first]:
            summary["agreement"]["pairs"] = statistics.agreement_of_pairs(pairs[first], pairs[second])
    return summary


def _scores_of(
    questions: Sequence[Question], answers: Answers, judgments: Sequence[Judgment], judge: str
) -> list[statistics.Scored]:
    """One per turn of each question, including those without an answer."""
    by_turn = {
        (one.question.id, one.turn): one.score for one in judgments if one.judge == judge and one.kind == "single"
    }
    return [
        statistics.Scored(q.id, q.category, turn, by_turn.get((q.id, turn)), len(answers[q.id][turn - 1] or ""))
        for q in questions for turn in range(1, len(q.turns) + 1)
    ]  # fmt: skip


def _pairs_of(judgments: Sequence[Judgment], judge: str) -> list[statistics.Paired]:
    winners: dict[tuple[str, str, int], dict[str, Verdict | None]] = {}
    for one in judgments:
        if one.judge == judge and one.kind != "single":
            winners.setdefault((one.question.id, one.question.category, one.turn), {})[one.kind] = one.winner
    return [statistics.Paired(*place, own.get("pair"), own.get("pair swapped")) for place, own in winners.items()]
