"""``malmoi llm run``: files of llm-kr-eval asked, read, scored with intervals, and the published value beside on wish.

```
FILE.json ─ conversations ─▶ ask ─▶ raw answers ─┬─ clean, read in the demanded form ─▶ metrics, control, read
                                                 └─ as published ─▶ the published values
OUT/asked.jsonl, OUT/NAME/predictions.jsonl, OUT/NAME/scores.json
```
An answer that cannot be read is wrong and stays in the count. ``guid`` of a prediction is ``NAME-0`` and so on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.data.files import identify_own
from finetune.generative.client.ask import Asking, Question
from finetune.generative.client.cost import ask_with_progress, cost_of
from finetune.generative.client.store import Answer
from finetune.generative.kr_eval.files import TaskFile, read_task_file
from finetune.generative.kr_eval.forms import Form, clean, form_of
from finetune.generative.kr_eval.metrics import RESAMPLES, Measured, measure
from finetune.generative.kr_eval.published import score_as_published

ASKED, PREDICTIONS, SCORES = "asked.jsonl", "predictions.jsonl", "scores.json"


@dataclass(frozen=True, slots=True)
class Read:
    """The answers of one file: as given (empty where none came), as read, and whether they have the demanded form."""

    raw: list[str]
    answers: list[str | None]
    is_demanded: list[bool] | None


def load(paths: Sequence[Path], samples: int | None, shots: int) -> dict[Path, TaskFile]:
    """All files, checked before the first question is asked; of each the first ``samples``."""
    found: dict[Path, TaskFile] = {}
    for path in paths:
        task = read_task_file(path)
        if any(other.name == task.name for other in found.values()):
            raise BadInput(f"{path}: another file is called {task.name}, too; rename one, as results go by that name")
        if shots > len(task.few_shots):
            raise BadInput(f"{path}: {shots} few-shot examples are wanted, 'few_shots' has {len(task.few_shots)}")
        found[path] = replace(task, samples=task.samples[:samples])
    return found


def run_files(
    paths: Sequence[Path], model: Asking, out: Path, *, shots: int = 0, samples: int | None = None,
    as_published: bool = False, resamples: int = RESAMPLES,
) -> list[dict[str, Any]]:  # fmt: skip
    """Ask, score and write each file; returns what their ``scores.json`` hold, in the order given."""
    tasks = load(paths, samples, shots)
    questions = [
        Question(f"{task.name}-{number}", task.conversation(sample, shots), task.output_length)
        for task in tasks.values() for number, sample in enumerate(task.samples)
    ]  # fmt: skip
    told = iter(ask_with_progress(questions, model, out / ASKED))  # all at once: a local model is loaded once
    results = []
    for path, task in tasks.items():
        answers, form = list(islice(told, len(task.samples))), form_of(task)
        read = read_answers(form, [answer.text or "" for answer in answers])
        golds = golds_of(task, form)
        result = {
            "task": task.name, "model": model.model, "method": "generation", "shots": shots, "n": len(golds),
            "file": identify_own(path), "output_length": task.output_length,
            **score_answers(task, form, golds, read, as_published, resamples), **cost_of(answers),
        }  # fmt: skip
        _write(out / task.name, task, golds, read, answers, result)
        results.append(result)
    return results


def golds_of(task: TaskFile, form: Form) -> list[str]:
    """The golds as answers are read, so that 3.50 is 3.5."""
    return [form.read(gold) or gold for gold in map(clean, task.golds)]


def read_answers(form: Form, raw: Sequence[str]) -> Read:
    """Answers as the form reads them; None where it cannot."""
    cleaned = [clean(answer) for answer in raw]
    is_demanded = [form.is_demanded(answer) for answer in cleaned] if form.is_demanded is not None else None
    return Read([*raw], [form.read(answer) for answer in cleaned], is_demanded)


def score_answers(
    task: TaskFile, form: Form, golds: Sequence[str], read: Read, as_published: bool = False, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """Metrics with intervals, the share that has the demanded form, the share that could be read, as JSON."""
    answers = ["" if answer is None else answer for answer in read.answers]
    found = {metric: measure(metric, golds, answers, resamples) for metric in task.metrics}
    result: dict[str, Any] = {
        "metrics": {metric: _as_json(one) for metric, one in found.items()},
        "form": form.about,
        "control": None if read.is_demanded is None else 100 * sum(read.is_demanded) / len(golds),
        "read": 100 * sum(answer is not None for answer in read.answers) / len(golds),
    }
    if "bleu" in task.metrics:
        from finetune.generative.kr_eval.bleu import signature

        result["bleu"] = signature()
    if as_published:
        values = {name: score_as_published(name, task.golds, read.raw, task.name) for name in task.metrics}
        result["as_published"] = values
    return result


def _as_json(found: Measured) -> dict[str, Any]:
    return {**asdict(found), "value": None if math.isnan(found.value) else found.value}


def _write(
    folder: Path, task: TaskFile, golds: Sequence[str], read: Read, answers: Sequence[Answer], result: dict[str, Any]
) -> None:
    lines = []
    for number, (gold, answer) in enumerate(zip(golds, answers, strict=True)):
        line = {
            "guid": f"{task.name}-{number}", "gold": gold, "prediction": read.answers[number], "answer": answer.text,
            "has_form": None if read.is_demanded is None else read.is_demanded[number], "error": answer.error,
        }  # fmt: skip
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    atomic_write(folder / PREDICTIONS, "".join(lines))
    atomic_write(folder / SCORES, json.dumps(result, ensure_ascii=False, indent=1) + "\n")
