"""MT-Bench as a run: a model answers all turns, judges score each answer and compare it in both orders.

```
questions ─ turn 1, turn 2 ─▶ answers.jsonl ─┬─ score of each turn ──────────▶ judgments.jsonl ─▶ scores.json
                     another model's answers ┴─ better? in both orders, each turn ─┘
```
All requests go through ``client.ask``, one file of what was answered: a killed run asks only for the rest.
Judges are asked at temperature 0. What the published pipeline does otherwise: it has no pairs, does not look at ties,
position or length, and keeps a failed verdict as -1. An answer that the server never gave, and a judgement that was cut
off at its longest length, are failures.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.files import identify_own
from finetune.generative.client.ask import Asking
from finetune.generative.client.ask import Question as Request
from finetune.generative.client.cost import ask_with_progress, cost_of
from finetune.generative.client.store import Answer
from finetune.generative.mt_bench.korean import EIGHT
from finetune.generative.mt_bench.prompts import Verdict, ask_for_score, ask_for_winner, score_of, winner_of
from finetune.generative.mt_bench.questions import (
    Question,
    read_answers,
    read_questions,
    with_references,
    write_answers,
)
from finetune.generative.mt_bench.statistics import (
    Paired,
    Scored,
    agreement,
    agreement_of_pairs,
    summarize_pairs,
    summarize_scores,
)

log = logging.getLogger(__name__)

Turn = tuple[Literal["system", "user", "assistant"], str]
Kind = Literal["single", "pair", "pair swapped"]
ASKED, ANSWERS, JUDGMENTS, SCORES = "asked.jsonl", "answers.jsonl", "judgments.jsonl", "scores.json"
ANSWER_TOKENS, JUDGEMENT_TOKENS = 1_024, 1_024
SWAPPED: Mapping[Verdict, Verdict] = {"a": "b", "b": "a", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class Judgement:
    """One verdict of one judge; ``score`` or ``winner`` is None where it failed. Turns count from 1."""

    judge: str
    question: Question
    turn: int
    kind: Kind
    text: str | None
    score: float | None = None
    winner: Verdict | None = None
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        about = {"question_id": self.question.id, "category": self.question.category, "turn": self.turn}
        verdict = {"score": self.score} if self.kind == "single" else {"winner": self.winner}
        return {"judge": self.judge, **about, "kind": self.kind, **verdict, "text": self.text, "error": self.error}


class Bench:
    """Where requests go, and what they cost by model: answers of an earlier run count, too."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.answers: dict[str, list[Answer]] = {}

    def ask(self, requests: Sequence[Request], asking: Asking) -> list[Answer]:
        """``finetune.generative.client.ask.ask`` with a bar of progress."""
        found = ask_with_progress(requests, asking, self.store)
        self.answers.setdefault(asking.model, []).extend(found)
        return found

    def spent(self) -> dict[str, dict[str, Any]]:
        return {model: cost_of(answers) for model, answers in self.answers.items()}


def run_bench(
    questions: Sequence[Question], model: Asking, judges: Sequence[Asking], out: Path,
    against: Mapping[str, Sequence[str]] | None = None, about: Mapping[str, Any] | None = None,
    answer_tokens: int = ANSWER_TOKENS,
) -> dict[str, Any]:  # fmt: skip
    """Answer, judge and write ``answers.jsonl``, ``judgments.jsonl`` and ``scores.json``; returns the latter.

    Args:
        against: another model's answers by question; none: no pairs.
        about: what else ``scores.json`` is to say, such as where the questions are from.
    """
    bench = Bench(out / ASKED)
    answers = answer_questions(questions, model, bench, answer_tokens)
    write_answers(
        out / ANSWERS, model.model, questions, {name: [a or "" for a in said] for name, said in answers.items()}
    )
    judgements: list[Judgement] = []
    for judge in judges:
        strict = replace(judge, temperature=0.0)
        judgements += judge_answers(questions, answers, strict, bench)
        if against is not None:
            judgements += judge_pairs(questions, answers, against, strict, bench)
    lines = (json.dumps(one.as_json(), ensure_ascii=False) + "\n" for one in judgements)
    atomic_write(out / JUDGMENTS, "".join(lines))
    scores = {
        "task": "mt-bench", "model": model.model, "temperature": model.temperature, "n": len(questions),
        **(about or {}), "unanswered": sum(answer is None for said in answers.values() for answer in said),
        "without_reference": [question.id for question in questions if question.lacks_reference],
        **summarize(questions, answers, judgements, [judge.model for judge in judges]), "spent": bench.spent(),
    }  # fmt: skip
    atomic_write(out / SCORES, json.dumps(scores, ensure_ascii=False, indent=1) + "\n")
    return scores


def load_bench(
    path: Path | None, references: Path | None, against: Path | None
) -> tuple[list[Question], dict[str, tuple[str, ...]] | None, dict[str, Any]]:
    """The questions, another model's answers to them, and the sources of both for ``scores.json``.

    Args:
        path: a question file; None: the eight built-in questions.
        references: a file of reference answers.
        against: another run's folder, or its ``answers.jsonl``.
    """
    questions = list(EIGHT) if path is None else read_questions(path)
    about: dict[str, Any] = {"questions": "eight of malmoi" if path is None else identify_own(path)}
    if references is not None:
        questions = with_references(questions, read_answers(references, questions))
        about["references"] = identify_own(references)
    if against is None:
        return questions, None, about
    against = against / ANSWERS if against.is_dir() else against
    if not (other := read_answers(against, questions)):
        raise BadInput(f"{against}: answers none of the questions; give the answers to the same question file")
    return questions, other, about | {"against": str(against)}


def answer_questions(
    questions: Sequence[Question], model: Asking, bench: Bench, tokens: int = ANSWER_TOKENS
) -> dict[str, list[str | None]]:
    """The answers by question, a turn at a time; None where none came, and for the turns after it."""
    answers: dict[str, list[str | None]] = {question.id: [] for question in questions}
    for turn in range(max(len(question.turns) for question in questions)):
        asked = [question for question in questions if turn < len(question.turns)]
        open_ones = [question for question in asked if None not in answers[question.id]]
        requests = []
        for question in open_ones:
            name = f"{question.id}, turn {turn + 1}"
            requests.append(Request(name, _conversation(question, answers[question.id]), tokens))
        found = bench.ask(requests, model)
        replies = {question.id: answer.text for question, answer in zip(open_ones, found, strict=True)}
        for question in asked:
            answers[question.id].append(replies.get(question.id))
    return answers


def _conversation(question: Question, answers: Sequence[str | None]) -> list[Turn]:
    """The turns that were answered, and the next one."""
    turns = list[Turn]()
    for said, answer in zip(question.turns, answers, strict=False):
        turns += [("user", said), ("assistant", answer or "")]
    return [*turns, ("user", question.turns[len(answers)])]


def judge_answers(
    questions: Sequence[Question], answers: Mapping[str, Sequence[str | None]], judge: Asking, bench: Bench
) -> list[Judgement]:
    """A score of every answer that came."""
    places = [(q, turn) for q in questions for turn in range(len(q.turns)) if answers[q.id][turn] is not None]
    requests = [
        Request(
            _name(judge, q, turn, "single"), [("user", ask_for_score(q, _upto(answers[q.id], turn)))], JUDGEMENT_TOKENS
        )
        for q, turn in places
    ]
    found = bench.ask(requests, judge)
    return [
        Judgement(judge.model, q, turn + 1, "single", one.text, score=score_of(whole_text(one)), error=one.error)
        for (q, turn), one in zip(places, found, strict=True)
    ]


def judge_pairs(
    questions: Sequence[Question], answers: Mapping[str, Sequence[str | None]], against: Mapping[str, Sequence[str]],
    judge: Asking, bench: Bench,
) -> list[Judgement]:  # fmt: skip
    """Both orders of every answer that came and that the other model has, too; winners are turned back."""
    places: list[tuple[Question, int, Kind]] = [
        (q, turn, kind)
        for q in questions if q.id in against
        for turn in range(len(q.turns)) if answers[q.id][turn] is not None
        for kind in ("pair", "pair swapped")
    ]  # fmt: skip
    requests = []
    for q, turn, kind in places:
        both = _upto(answers[q.id], turn), _upto(against[q.id], turn)
        prompt = ask_for_winner(q, *(both if kind == "pair" else both[::-1]))
        requests.append(Request(_name(judge, q, turn, kind), [("user", prompt)], JUDGEMENT_TOKENS))
    found = bench.ask(requests, judge)
    judgements = []
    for (q, turn, kind), one in zip(places, found, strict=True):
        winner = winner_of(whole_text(one))
        winner = SWAPPED[winner] if winner is not None and kind == "pair swapped" else winner
        judgements.append(Judgement(judge.model, q, turn + 1, kind, one.text, winner=winner, error=one.error))
    return judgements


def _upto(answers: Sequence[str | None], turn: int) -> list[str]:
    return [answer or "" for answer in answers[: turn + 1]]


def _name(judge: Asking, question: Question, turn: int, kind: Kind) -> str:
    return f"{judge.model} on {question.id}, turn {turn + 1}, {kind}"


def whole_text(answer: Answer) -> str:
    """A judge's text; nothing where it was cut off, as its last line is then not its verdict."""
    return "" if answer.text is None or answer.stop == "max_tokens" else answer.text


def summarize(
    questions: Sequence[Question], answers: Mapping[str, Sequence[str | None]], judgements: Sequence[Judgement],
    judges: Sequence[str],
) -> dict[str, Any]:  # fmt: skip
    """Scores and pairs by judge, and the agreement of the first two judges, as JSON."""
    scores = {name: _scores_of(questions, answers, judgements, name) for name in judges}
    pairs = {name: _pairs_of(judgements, name) for name in judges}
    found: dict[str, Any] = {"judges": {name: {"single": summarize_scores(scores[name])} for name in judges}}
    for name in judges:
        if pairs[name]:
            found["judges"][name]["pairs"] = summarize_pairs(pairs[name])
    if len(judges) > 1:
        first, second = judges[:2]
        found["agreement"] = {"single": agreement(scores[first], scores[second])}
        if pairs[first]:
            found["agreement"]["pairs"] = agreement_of_pairs(pairs[first], pairs[second])
    return found


def _scores_of(
    questions: Sequence[Question], answers: Mapping[str, Sequence[str | None]], judgements: Sequence[Judgement],
    judge: str,
) -> list[Scored]:  # fmt: skip
    """One for each turn of each question, those without an answer too."""
    found = {
        (one.question.id, one.turn): one.score for one in judgements if one.judge == judge and one.kind == "single"
    }
    return [
        Scored(q.id, q.category, turn, found.get((q.id, turn)), len(answers[q.id][turn - 1] or ""))
        for q in questions for turn in range(1, len(q.turns) + 1)
    ]  # fmt: skip


def _pairs_of(judgements: Sequence[Judgement], judge: str) -> list[Paired]:
    winners: dict[tuple[str, str, int], dict[str, Verdict | None]] = {}
    for one in judgements:
        if one.judge == judge and one.kind != "single":
            winners.setdefault((one.question.id, one.question.category, one.turn), {})[one.kind] = one.winner
    return [Paired(*place, found.get("pair"), found.get("pair swapped")) for place, found in winners.items()]
