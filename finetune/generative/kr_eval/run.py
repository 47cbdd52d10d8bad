"""``malmoi llm run``: ask the questions of llm-kr-eval files, parse the answers, compute metrics with intervals.

```
FILE.json ─ conversations ─▶ ask ─▶ raw answers ─┬─ clean, parse in the demanded form ─▶ metrics, form, read
                                                 └─ as published ─▶ the published values
OUT/NAME/predictions.jsonl, OUT/NAME/scores.json
```
An answer that cannot be parsed is wrong and stays in the count. The ``guid`` of a prediction is ``NAME-0`` and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.data.files import identify, write_json, write_json_lines
from finetune.generative.client.ask import Answer, Client, Question, ask, sum_costs
from finetune.generative.kr_eval.files import Form, TaskFile, clean, detect_form, read_task_file
from finetune.generative.kr_eval.metrics import RESAMPLES, bleu_signature, measure, score_as_published


def load_files(paths: Sequence[Path], samples: int | None, shots: int) -> dict[Path, TaskFile]:
    """All files, checked before the first question is sent; of each the first ``samples``."""
    tasks: dict[Path, TaskFile] = {}
    for path in paths:
        task = read_task_file(path)
        if any(other.name == task.name for other in tasks.values()):
            raise BadInput(f"{path}: another file is also called {task.name}; rename one, as results use that name")
        if shots > len(task.few_shots):
            raise BadInput(f"{path}: --shots {shots}, but 'few_shots' has {len(task.few_shots)}")
        tasks[path] = task.model_copy(update={"samples": task.samples[:samples]})
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
        lines = [_parse(form, gold, answer) for gold, answer in zip(task.golds, own, strict=True)]
        result = {
            "task": task.name, "model": client.model, "method": "generation", "shots": shots, "n": len(own),
            "file": identify(path, is_custom=True), "output_length": task.output_length,
            **_score(task, form, lines, as_published, resamples), **sum_costs(own),
        }  # fmt: skip
        write_json_lines(out / task.name / "predictions.jsonl", lines)
        write_json(out / task.name / "scores.json", result)
        results.append(result)
    return results


def parse_gold(form: Form, gold: str) -> str:
    """A gold, parsed like answers, so that 3.50 equals 3.5."""
    return form.parse(clean(gold)) or clean(gold)


def _parse(form: Form, gold: str, answer: Answer) -> dict[str, Any]:
    """A line of ``predictions.jsonl``; ``prediction`` is None for an answer that cannot be parsed."""
    cleaned = clean(answer.text or "")
    return {
        "guid": answer.id, "gold": parse_gold(form, gold), "prediction": form.parse(cleaned), "answer": answer.text,
        "has_form": form.is_exact and form.is_exact(cleaned), "error": answer.error,
    }  # fmt: skip


def _score(
    task: TaskFile, form: Form, lines: Sequence[dict[str, Any]], as_published: bool, resamples: int
) -> dict[str, Any]:
    """Metrics with intervals; the shares of answers in the exact form and of parsed answers."""
    golds, answers = [line["gold"] for line in lines], [line["prediction"] or "" for line in lines]
    result: dict[str, Any] = {
        "metrics": {metric: measure(metric, golds, answers, resamples) for metric in task.metrics},
        "form": form.about,
        "control": 100 * sum(line["has_form"] for line in lines) / len(lines) if form.is_exact else None,
        "read": 100 * sum(line["prediction"] is not None for line in lines) / len(lines),
    }
    if "bleu" in task.metrics:
        result["bleu"] = bleu_signature()
    if as_published:
        raw = [line["answer"] or "" for line in lines]
        result["as_published"] = {name: score_as_published(name, task.golds, raw, task.name) for name in task.metrics}
    return result
