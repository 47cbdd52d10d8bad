"""``malmoi llm run``: ask the questions of llm-kr-eval files, parse the answers, compute metrics with intervals.

```
FILE.json ─ conversations ─▶ ask ─▶ raw answers ─┬─ clean, parse in the demanded form ─▶ metrics, form, read
                                                 └─ as published ─▶ the published values
OUT/NAME/predictions.jsonl, OUT/NAME/scores.json
```
An answer that cannot be parsed is wrong and stays in the count. The ``guid`` of a prediction is ``NAME-0`` and so on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.data.files import identify_custom, write_json, write_json_lines
from finetune.generative.client.ask import Answer, Client, Question, ask, sum_costs
from finetune.generative.kr_eval.answer_forms import Form, clean, detect_form
from finetune.generative.kr_eval.files import TaskFile, read_task_file
from finetune.generative.kr_eval.metrics import RESAMPLES, Measured, bleu_signature, measure
from finetune.generative.kr_eval.published import score_as_published


def load_files(paths: Sequence[Path], samples: int | None, shots: int) -> dict[Path, TaskFile]:
    """All files, checked before the first question is sent; of each the first ``samples``."""
    tasks: dict[Path, TaskFile] = {}
    for path in paths:
        task = read_task_file(path)
        if any(other.name == task.name for other in tasks.values()):
            raise BadInput(f"{path}: another file is also called {task.name}; rename one, as results use that name")
        if shots > len(task.few_shots):
            raise BadInput(f"{path}: --shots {shots}, but 'few_shots' has {len(task.few_shots)}")
        tasks[path] = replace(task, samples=task.samples[:samples])
    return tasks


def run_files(
    paths: Sequence[Path], client: Client, out: Path, *, shots: int = 0, samples: int | None = None,
    as_published: bool = False, resamples: int = RESAMPLES,
) -> list[dict[str, Any]]:  # fmt: skip
    """Ask, score and write each file; returns the content of each ``scores.json``, in the given order."""
    tasks = load_files(paths, samples, shots)
    questions = [
        Question(f"{task.name}-{number}", task.conversation(sample, shots), task.output_length)
        for task in tasks.values() for number, sample in enumerate(task.samples)
    ]  # fmt: skip
    answers = ask(questions, client)  # all files at once, so that a local model is loaded once
    results = []
    for path, task in tasks.items():
        own, answers = answers[: len(task.samples)], answers[len(task.samples) :]
        form = detect_form(task)
        result = {
            "task": task.name, "model": client.model, "method": "generation", "shots": shots, "n": len(own),
            "file": identify_custom(path), "output_length": task.output_length,
            **score_answers(task, form, [answer.text or "" for answer in own], as_published, resamples),
            **sum_costs(own),
        }  # fmt: skip
        _write(out / task.name, task, form, own, result)
        results.append(result)
    return results


def parse_golds(task: TaskFile, form: Form) -> list[str]:
    """The golds, parsed like answers, so that 3.50 equals 3.5."""
    return [form.parse(gold) or gold for gold in map(clean, task.golds)]


def score_answers(
    task: TaskFile, form: Form, raw: Sequence[str], as_published: bool = False, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """Metrics with intervals; the shares of answers in the exact form and of parsed answers.

    Args:
        raw: the answers as the model wrote them; "" for a question without an answer.
    """
    golds, cleaned = parse_golds(task, form), list(map(clean, raw))
    parsed = list(map(form.parse, cleaned))
    answers = ["" if answer is None else answer for answer in parsed]
    exact = None if form.is_exact is None else 100 * sum(map(form.is_exact, cleaned)) / len(golds)
    result: dict[str, Any] = {
        "metrics": {metric: _as_json(measure(metric, golds, answers, resamples)) for metric in task.metrics},
        "form": form.about,
        "control": exact,
        "read": 100 * sum(answer is not None for answer in parsed) / len(golds),
    }
    if "bleu" in task.metrics:
        result["bleu"] = bleu_signature()
    if as_published:
        result["as_published"] = {name: score_as_published(name, task.golds, raw, task.name) for name in task.metrics}
    return result


def _as_json(measured: Measured) -> dict[str, Any]:
    return {**asdict(measured), "value": None if math.isnan(measured.value) else measured.value}


def _write(folder: Path, task: TaskFile, form: Form, answers: Sequence[Answer], result: dict[str, Any]) -> None:
    lines = []
    for number, (gold, answer) in enumerate(zip(parse_golds(task, form), answers, strict=True)):
        cleaned = clean(answer.text or "")
        line = {
            "guid": f"{task.name}-{number}", "gold": gold, "prediction": form.parse(cleaned), "answer": answer.text,
            "has_form": form.is_exact and form.is_exact(cleaned), "error": answer.error,
        }  # fmt: skip
        lines.append(line)
    write_json_lines(folder / "predictions.jsonl", lines)
    write_json(folder / "scores.json", result)
