"""``malmoi llm TASK… --model …``: ask the questions of KLUE tasks, parse the answers, write scores.

```
prompted task ─ messages ─▶ ask ─▶ answers ─ parse ─▶ predictions ─▶ scores
OUT/finetune/<task>/<model>/<method, shots>/seed-<n>/predictions.jsonl   guid, gold, prediction, scores
                                                     answers.jsonl       guid, answer, is_parsed, stop, error
                                                     errors.json, scores.json
```
The files are those of the finetune stage, so ``score``, ``compare`` and the report read them. An unparsed answer and a
question without an answer count as wrong predictions; both are counted.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpus.documents.errors import BadInput
from finetune.data.files import write_json, write_json_lines
from finetune.examples import Prediction, Row
from finetune.generative.client.ask import Answer, Client, Question, ask, sum_costs
from finetune.generative.client.models import check_name, is_local, read_version, require_hf
from finetune.generative.klue.prompted_task import PromptedTask
from finetune.metrics import softmax
from finetune.queue.jobs import folder_name
from finetune.score.bootstrap import SAMPLES, SEED
from finetune.score.errors import find_errors
from finetune.score.scores import defined_tables, installed_versions, scores_record

log = logging.getLogger(__name__)

PACKAGES = ("malmoi", "inspect-ai", "openai", "torch", "transformers", "numpy")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a model is asked, and where its results go.

    Fields:
        shots, seed: number of few-shot examples, and the seed that draws them.
        prices: of a million input and output tokens; None if unknown.
    """

    client: Client
    out: Path
    shots: int = 0
    seed: int = 1
    prices: tuple[float, float] | None = None

    @property
    def settings(self) -> str:
        """The name of these settings among the results of a model: ``0-shot``, ``likelihood, 5-shot``."""
        return f"likelihood, {self.shots}-shot" if self.client.is_likelihood else f"{self.shots}-shot"

    def folder(self, task: str) -> Path:
        """The folder of a task's result."""
        model, settings = folder_name(self.client.model), folder_name(self.settings)
        return self.out / "finetune" / task / model / settings / f"seed-{self.seed}"


class ParsedAnswer(NamedTuple):
    """An answer with its prediction; if it could not be parsed, a wrong one."""

    answer: Answer
    prediction: Prediction
    is_parsed: bool


def run(tasks: Sequence[PromptedTask], evaluation: Evaluation) -> list[dict[str, Any]]:
    """Ask all tasks and write their results; returns the content of each ``scores.json``."""
    check(tasks, evaluation.client)
    results = []
    for prompted in tasks:
        answers = ask(build_questions(prompted, evaluation.client), evaluation.client)
        if evaluation.client.is_likelihood:
            parsed = parse_likelihoods(prompted, answers)
            by_sum = parse_likelihoods(prompted, answers, by_character=False)
            accuracy = {"character": _accuracy(prompted, parsed), "sum": _accuracy(prompted, by_sum)}
            cut = sum(answer.stop == "max_tokens" for answer in answers)
            more: dict[str, Any] = {"normalised_by": "character", "accuracy": accuracy, "cut": cut}
        else:
            parsed, more = parse_answers(prompted, answers), {"max_tokens": prompted.prompt.max_tokens}
        results.append(write_result(prompted, parsed, evaluation, more))
        _report(results[-1])
    return results


def check(tasks: Sequence[PromptedTask], client: Client) -> None:
    """``BadInput`` if the method does not fit a task or the model."""
    check_name(client.model)
    if not client.is_likelihood:
        return
    require_hf(client.model)
    for prompted in tasks:
        if not prompted.prompt.choices:
            raise BadInput(
                f"{prompted.task.name} --method likelihood: the task has no fixed set of answers; leave the task out, "
                "or use --method generation"
            )


def build_questions(prompted: PromptedTask, client: Client) -> list[Question]:
    """One question per scored example."""
    prompt = prompted.prompt
    choices = prompt.choices if client.is_likelihood else ()
    return [Question(e.guid, prompted.messages(e), prompt.max_tokens, choices) for e in prompted.data.scored]


def parse_answers(prompted: PromptedTask, answers: Sequence[Answer]) -> list[ParsedAnswer]:
    """The predictions in generated answers, in the order of the scored examples."""
    pairs = zip(answers, prompted.data.scored, strict=True)
    parsed = [(answer, *prompted.parse(answer.text, example)) for answer, example in pairs]
    return [ParsedAnswer(answer, Prediction(value), is_parsed) for answer, value, is_parsed in parsed]


def parse_likelihoods(
    prompted: PromptedTask, answers: Sequence[Answer], by_character: bool = True
) -> list[ParsedAnswer]:
    """The most likely choice of each answer as its prediction.

    KLUE-RE also gets probabilities for its precision-recall curves: a softmax over the choices.
    """
    choices, parsed = prompted.prompt.choices, []
    lengths = np.array([len(choice) if by_character else 1 for choice in choices])
    for example, answer in zip(prompted.data.scored, answers, strict=True):
        text, scores = None, None
        if answer.text is not None:
            values = np.array(json.loads(answer.text)) / lengths
            text = choices[int(values.argmax())]
            scores = softmax(values).tolist() if prompted.task.name == "klue-re" else None
        value, is_parsed = prompted.parse(text, example)
        parsed.append(ParsedAnswer(answer, Prediction(value, scores), is_parsed))
    return parsed


def _accuracy(prompted: PromptedTask, parsed: Sequence[ParsedAnswer]) -> float:
    """0..100; by characters it is acc_norm of lm-evaluation-harness, by sums its acc."""
    pairs = zip(prompted.data.scored, parsed, strict=True)
    return 100 * sum(example.gold == one.prediction.value for example, one in pairs) / len(parsed)


def write_result(
    prompted: PromptedTask, parsed: Sequence[ParsedAnswer], evaluation: Evaluation, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the files of one task, ``scores.json`` last; returns its content, which includes ``more``."""
    task, data, client = prompted.task, prompted.data, evaluation.client
    folder = evaluation.folder(task.name)
    (folder / "scores.json").unlink(missing_ok=True)
    rows = [Row(e.guid, e.gold, *one.prediction) for e, one in zip(data.scored, parsed, strict=True)]
    write_json_lines(folder / "predictions.jsonl", (row._asdict() for row in rows))
    write_json_lines(folder / "answers.jsonl", (_answer_record(one.answer, one.is_parsed) for one in parsed))
    write_json(folder / "errors.json", find_errors(task, data.scored, rows, seed=SEED))
    costs, prices = sum_costs([one.answer for one in parsed]), evaluation.prices
    tokens = {
        "in": costs["tokens_in"] or 0, "out": costs["tokens_out"] or 0,
        "told_for": sum(one.answer.tokens_in is not None for one in parsed),
    }  # fmt: skip
    result = {
        "task": task.name, "model": client.model, "settings": evaluation.settings, "seed": evaluation.seed,
        "protocol": "malmoi", "split": data.split, "is_official_dev": data.is_official_dev, "n": len(rows),
        "n_train": 0, **scores_record(task, rows, data.training, data.scored, SAMPLES, SEED),
        "tables": defined_tables(task.inspection.tables(rows)),
        "method": "likelihood" if client.is_likelihood else "generation", "shots": evaluation.shots,
        "parse_rate": 100 * sum(one.is_parsed for one in parsed) / len(parsed), "unanswered": costs["unanswered"],
        "tokens": tokens, "price": prices and (tokens["in"] * prices[0] + tokens["out"] * prices[1]) / 1e6,
        "seconds": costs["seconds"], **more,
        **({"model_files": read_version(client.model)} if is_local(client.model) else {}),
        "data": data.files, "versions": installed_versions(*PACKAGES), "revision": task.revision,
    }  # fmt: skip
    write_json(folder / "scores.json", result)
    return result


def _answer_record(answer: Answer, is_parsed: bool) -> dict[str, Any]:
    return {
        "guid": answer.id, "answer": answer.text, "is_parsed": is_parsed, "stop": answer.stop, "error": answer.error,
    }  # fmt: skip


def _report(result: Mapping[str, Any]) -> None:
    name, n = result["task"], result["n"]
    parsed = f", {result['parse_rate']:.1f} % of the answers were parsed" if result["method"] == "generation" else ""
    log.info("%s: %d examples%s", name, n, parsed)
    if result["unanswered"]:
        log.warning(
            "%s: %d of %d questions have no answer and count as wrong; run the same command to send them again",
            name, result["unanswered"], n,
        )  # fmt: skip
    if result.get("cut"):
        log.warning("%s: %d questions are longer than the model reads and lost their beginning", name, result["cut"])
