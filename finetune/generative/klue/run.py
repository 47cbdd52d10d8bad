"""``malmoi llm TASK… --model …``: ask the questions of KLUE tasks, parse the answers, write scores.

```
OUT/finetune/<task>/<model>/<method, shots>/seed-<n>/predictions.jsonl   guid, gold, prediction, scores
                                                     answers.jsonl       guid, answer, is_parsed, stop, error
                                                     errors.json, scores.json
```
The files are those of the finetune stage, so ``score``, ``compare`` and the report read them. Examples are read and
limited as in fine-tuning, with the same seed, so an encoder with ``finetune.max_dev_examples`` of the same number is
scored on the same examples. An unparsed answer and a question without an answer are wrong predictions and are counted.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from corpus.documents.atomic_files import write_json
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import write_json_lines
from finetune.data.split import Data, find, load_data
from finetune.examples import Example, Prediction, Row
from finetune.generative.client import ask as client_ask
from finetune.generative.client.ask import Answer, Client, Question, sum_costs
from finetune.generative.prompts import PROMPTS
from finetune.generative.prompts.answers import outcome
from finetune.generative.prompts.ner import count_claims
from finetune.generative.prompts.prompt import Message, TaskPrompt, build_messages, draw_shots
from finetune.metrics import softmax
from finetune.queue.jobs import folder_name
from finetune.registry import TASKS
from finetune.score.bootstrap import SAMPLES, SEED
from finetune.score.scores import defined_tables, find_errors, installed_versions, scores_record
from finetune.task import Task
from finetune.task_names import full_name
from finetune.tasks.ner.task import find_entities

log = logging.getLogger(__name__)

PACKAGES = ("malmoi", "inspect-ai", "openai", "torch", "transformers", "numpy")


@dataclass(frozen=True, slots=True)
class PromptedTask:
    """A task with its prompt, its examples and the few-shot examples in each question."""

    task: Task
    prompt: TaskPrompt
    data: Data
    shots: tuple[Example, ...]

    def messages(self, example: Example) -> tuple[Message, ...]:
        """The turns before the answer to ``example``."""
        return build_messages(self.prompt, example, self.shots)

    def parse(self, text: str | None, example: Example) -> tuple[Any, bool]:
        """The prediction in an answer (None: no answer came), and whether it could be parsed; if not, a wrong one."""
        value = None if text is None else self.prompt.parse(text, example)
        return (self.prompt.unparsed(example), False) if value is None else (value, True)


def load_prompted_task(
    name: str, folder: Path, shots: int = 0, limit: int | None = None, seed: int = 1,
    config: FinetuneConfig | None = None,
) -> PromptedTask:  # fmt: skip
    """Read the examples of a task; ``BadInput`` if files are missing or have too few examples for the shots.

    Args:
        shots: number of few-shot examples from train, drawn by ``seed``.
        limit: number of scored examples, drawn by the seed of the finetune stage; None: all.
        config: how a recipe splits its files; None: dev is scored, and train may be missing.
    """
    name = full_name(name)
    if name not in PROMPTS:
        raise BadInput(f"{name}: no prompt for this task; choose from {', '.join(PROMPTS)}")
    task, prompt, needs_train = TASKS[name], PROMPTS[name], config is not None
    if shots and config is None and find(task, folder, "train") is None:
        raise BadInput(f"{folder}: {task.files.train} (or .zst) is missing; add it, or leave --shots out")
    chosen = config or FinetuneConfig()
    if limit is not None:
        chosen = chosen.model_copy(update={"max_dev_examples": limit})
    data = load_data(task, folder, chosen, needs_train=needs_train)
    if name == "klue-sts" and data.scored:
        mean = fmean(example.gold for example in data.scored)
        prompt = replace(prompt, unparsed=lambda example: mean)
    drawn = draw_shots(prompt, data.training, shots, seed, data.scored) if shots else ()
    return PromptedTask(task, prompt, data, tuple(drawn))


class ParsedAnswer(NamedTuple):
    """An answer with its prediction; if it could not be parsed, a wrong one."""

    answer: Answer
    prediction: Prediction
    is_parsed: bool


def run(
    tasks: Sequence[PromptedTask], client: Client, out: Path, *, seed: int = 1,
    prices: tuple[float, float] | None = None, max_tokens: int | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Ask all tasks and write their results; returns the content of each ``scores.json``.

    Args:
        seed: that drew the few-shot examples.
        prices: of a million input and output tokens; None if unknown.
        max_tokens: limit on the length of an answer; default: that of the task.

    Raises:
        BadInput: too many answers of a task were cut; its files are written.
    """
    client_ask.check_name(client.model)
    if client.is_likelihood:
        if not client.model.startswith("hf/"):
            no_probabilities = f"--method likelihood: --model {client.model} gives no probabilities"
            raise BadInput(f"{no_probabilities}; use hf/FOLDER, or another method")
        if unfit := [prompted.task.name for prompted in tasks if not prompted.prompt.choices]:
            raise BadInput(f"{unfit[0]}: no fixed set of answers to compare; use --method generation")
        import finetune.generative.client.likelihood  # noqa: F401 (registers the provider)
    results = []
    for prompted in tasks:
        prompt, shots = prompted.prompt, f"{len(prompted.shots)}-shot"
        choices = prompt.choices if client.is_likelihood else ()
        examples = prompted.data.scored
        limit = max_tokens or prompt.max_tokens
        questions = [Question(e.guid, prompted.messages(e), limit, choices) for e in examples]
        answers = client_ask.ask(questions, client)
        cut = sum(answer.stop == "max_tokens" for answer in answers)
        settings, more = shots, {"method": "generation", "max_tokens": limit, "cut_answers": cut}
        if client.is_likelihood:
            settings, more = f"likelihood, {shots}", {"method": "likelihood", "normalised_by": "character", "cut": cut}
        about = {"model": client.model, "settings": settings, "seed": seed}
        folder = out / "finetune" / prompted.task.name / folder_name(client.model) / folder_name(settings)
        parsed = parse_answers(prompted, answers, client.is_likelihood)
        results.append(write_result(folder / f"seed-{seed}", prompted, parsed, about, more, prices))
        _report(results[-1])
        if not client.is_likelihood:
            client_ask.check_cut(prompted.task.name, answers, [one.is_parsed for one in parsed], limit)
    return results


def parse_answers(prompted: PromptedTask, answers: Sequence[Answer], is_likelihood: bool = False) -> list[ParsedAnswer]:
    """The predictions in generated answers, or the most likely choices per character.

    KLUE-RE also gets probabilities for its precision-recall curves: a softmax over the likelihoods.
    """
    choices, parsed = prompted.prompt.choices, []
    lengths = np.array(list(map(len, choices)))
    for example, answer in zip(prompted.data.scored, answers, strict=True):
        text, scores = answer.text, None
        if is_likelihood and text is not None:
            values = np.array(json.loads(text)) / lengths
            text = choices[int(values.argmax())]
            scores = softmax(values).tolist() if prompted.task.name == "klue-re" else None
        value, is_parsed = prompted.parse(text, example)
        parsed.append(ParsedAnswer(answer, Prediction(value, scores), is_parsed))
    return parsed


def write_result(
    folder: Path, prompted: PromptedTask, parsed: Sequence[ParsedAnswer], about: Mapping[str, Any],
    more: Mapping[str, Any], prices: tuple[float, float] | None,
) -> dict[str, Any]:  # fmt: skip
    """Write the files of one task, ``scores.json`` last; returns its content: ``about``, scores, costs, ``more``."""
    task, data = prompted.task, prompted.data
    (folder / "scores.json").unlink(missing_ok=True)
    rows = [Row(e.guid, e.gold, *one.prediction) for e, one in zip(data.scored, parsed, strict=True)]
    write_json_lines(folder / "predictions.jsonl", (row._asdict() for row in rows))
    outcomes = Counter(outcome(p.answer.text, is_parsed=p.is_parsed) for p in parsed if p.answer.text is not None)
    wrong = sum(task.inspection.differs(row) for row, one in zip(rows, parsed, strict=True) if one.is_parsed)
    answers = (
        {"guid": a.id, "answer": a.text, "is_parsed": is_parsed, "stop": a.stop, "error": a.error}
        for a, _, is_parsed in parsed
    )
    write_json_lines(folder / "answers.jsonl", answers)
    write_json(folder / "errors.json", find_errors(task, data.scored, rows, seed=SEED))
    costs = sum_costs([one.answer for one in parsed])
    tokens = {
        "in": costs["tokens_in"] or 0, "out": costs["tokens_out"] or 0,
        "told_for": sum(one.answer.tokens_in is not None for one in parsed),
    }  # fmt: skip
    result = {
        "task": task.name, **about, "protocol": "malmoi", "split": data.split,
        "is_official_dev": data.is_official_dev, "n": len(rows), "n_train": 0,
        **scores_record(task, rows, data.training, data.scored, SAMPLES, SEED),
        "tables": defined_tables(task.inspection.tables(rows)), "shots": len(prompted.shots),
        "parse_rate": 100 * sum(one.is_parsed for one in parsed) / len(parsed), "unanswered": costs["unanswered"],
        "answers": {"wrong": wrong, **{name: outcomes[name] for name in ("unread", "refused", "empty")}},
        **_more_about(prompted, parsed, rows),
        "tokens": tokens, "price": prices and (tokens["in"] * prices[0] + tokens["out"] * prices[1]) / 1e6,
        "seconds": costs["seconds"], **more,
        **({"model_files": client_ask.read_version(about["model"])} if client_ask.is_local(about["model"]) else {}),
        "data": data.files, "versions": installed_versions(*PACKAGES), "revision": task.revision,
    }  # fmt: skip
    write_json(folder / "scores.json", result)
    return result


def _more_about(prompted: PromptedTask, parsed: Sequence[ParsedAnswer], rows: Sequence[Row]) -> dict[str, Any]:
    """KLUE-NER: share of the named entities that are right; KLUE-MRC: share of answers that are not in the passage."""
    examples = prompted.data.scored
    if prompted.task.name == "klue-ner":
        texts = [example.inputs["text"] for example in examples]
        right = sum(
            len({*find_entities(text, row.gold)} & {*find_entities(text, row.prediction)})
            for text, row in zip(texts, rows, strict=True)
        )
        named = sum(count_claims(one.answer.text or "", e) for one, e in zip(parsed, examples, strict=True))
        return {"named": named, "right_of_named": 100 * right / named if named else None}
    if prompted.task.name == "klue-mrc":
        is_out = [
            one.is_parsed and one.prediction.value not in example.inputs["context"]
            for one, example in zip(parsed, examples, strict=True)
        ]
        return {"not_in_passage": 100 * sum(is_out) / len(is_out)}
    return {}


def _report(result: Mapping[str, Any]) -> None:
    name, n, is_generated = result["task"], result["n"], result["method"] == "generation"
    parsed = f", {result['parse_rate']:.1f} % of the answers were parsed" if is_generated else ""
    log.info("%s: %d examples%s", name, n, parsed)
    if is_generated:
        counts = ", ".join(f"{count} {what}" for what, count in result["answers"].items())
        log.info("%s: %s; %d answers ended at the limit of tokens", name, counts, result["cut_answers"])
    if result["unanswered"]:
        log.warning(
            "%s: %d of %d questions have no answer and count as wrong; run the same command to send them again",
            name, result["unanswered"], n,
        )  # fmt: skip
    if result.get("cut"):
        log.warning("%s: %d questions are longer than the model reads and lost their beginning", name, result["cut"])
