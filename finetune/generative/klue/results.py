"""Results of generative models in the layout of the finetune stage, so that score, compare and the report read them.

```
OUT/finetune/<task>/<model>/<method, shots>/seed-<n>/predictions.jsonl   guid, gold, prediction, scores
                                                     answers.jsonl       guid, answer, whether it parsed, why not
                                                     errors.json scores.json
```
An answer that does not parse, and a question without an answer, count as a wrong prediction; both are counted.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from corpus.documents.atomic_files import atomic_write
from finetune.examples import Prediction, Row
from finetune.generative.client.keys import hide_keys
from finetune.generative.client.store import Answer, busy_seconds
from finetune.generative.klue.material import Material
from finetune.metrics import softmax
from finetune.queue.jobs import folder_name
from finetune.score.bootstrap import SAMPLES, SEED, bootstrap
from finetune.score.errors import find_errors
from finetune.score.scores import defined, defined_tables

MethodName = Literal["generation", "likelihood"]
PACKAGES = ("malmoi", "inspect-ai", "openai", "torch", "transformers", "numpy")


@dataclass(frozen=True, slots=True)
class Way:
    """How a model was asked; ``prices``: of a million tokens in and out, None where nobody said."""

    model: str
    method: MethodName
    shots: int
    seed: int
    prices: tuple[float, float] | None = None

    @property
    def settings(self) -> str:
        """What tells the results of a model apart: ``0-shot``, ``likelihood, 5-shot``."""
        return f"{self.shots}-shot" if self.method == "generation" else f"likelihood, {self.shots}-shot"

    def folder(self, out: Path, task: str) -> Path:
        """The folder of a result, as those of encoders."""
        return out / "finetune" / task / folder_name(self.model) / folder_name(self.settings) / f"seed-{self.seed}"


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer and what was made of it; ``is_parsed`` is False where it counts as wrong for its form alone."""

    answer: Answer
    prediction: Prediction
    is_parsed: bool


def read_answers(material: Material, answers: Sequence[Answer]) -> list[Judged]:
    """The predictions that the answers say, in the order of the scored examples."""
    generation, judged = material.generation, []
    for example, answer in zip(material.data.scored, answers, strict=True):
        value = generation.parse(answer.text, example) if answer.text is not None else None
        is_parsed = value is not None
        judged.append(Judged(answer, Prediction(value if is_parsed else generation.unparsed(example)), is_parsed))
    return judged


def read_sums(
    material: Material, found: Sequence[tuple[Sequence[float], Answer]], by_character: bool = True
) -> list[Judged]:
    """The likeliest answer of each closed set as a prediction. KLUE-RE gets probabilities, a softmax over the answers,
    for its curves."""
    import numpy as np

    generation, judged = material.generation, []
    lengths = np.array([len(answer) if by_character else 1 for answer in generation.choices])
    for example, (sums, answer) in zip(material.data.scored, found, strict=True):
        values = np.array(sums) / lengths
        value = generation.parse(generation.choices[int(values.argmax())], example)
        scores = softmax(values).tolist() if material.task.name == "klue-re" else None
        judged.append(Judged(answer, Prediction(value, scores), is_parsed=True))
    return judged


def write_result(
    material: Material, judged: Sequence[Judged], way: Way, out: Path, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the files of one task, ``scores.json`` last; returns its content.

    Args:
        more: further facts of the result.
    """
    task, data = material.task, material.data
    rows = [Row(e.guid, e.gold, *j.prediction) for e, j in zip(data.scored, judged, strict=True)]
    folder = way.folder(out, task.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scores.json").unlink(missing_ok=True)
    atomic_write(folder / "predictions.jsonl", _lines(row._asdict() for row in rows))
    told = (
        {"guid": row.guid, "answer": one.text, "is_parsed": j.is_parsed, "stop": one.stop, "error": one.error}
        for row, j in zip(rows, judged, strict=True)
        for one in (j.answer,)
    )
    atomic_write(folder / "answers.jsonl", _lines(told))
    _write(folder / "errors.json", find_errors(task, data.scored, rows, seed=SEED))
    result = {
        "task": task.name, "model": way.model, "settings": way.settings, "seed": way.seed, "protocol": "malmoi",
        "split": data.split, "is_official_dev": data.is_official_dev, "n": len(rows), "n_train": 0,
        **_scores(material, rows), "tables": defined_tables(task.tables(rows)),
        "method": way.method, "shots": way.shots,
        "parse_rate": 100 * sum(j.is_parsed for j in judged) / len(judged),
        "unanswered": sum(j.answer.error is not None for j in judged),
        **_cost([j.answer for j in judged], way.prices), **more,
        "data": data.files, "versions": _versions(), "revision": task.revision,
    }  # fmt: skip
    _write(folder / "scores.json", result)
    return result


def _scores(material: Material, rows: Sequence[Row]) -> dict[str, Any]:
    """As of an encoder: values, intervals over resampled examples, the trivial baseline, the paper's figures."""
    task, data = material.task, material.data
    scores = task.score(rows)
    trivial: dict[str, Any] = dict.fromkeys(scores)
    if data.training:
        guesses = task.trivial(data.training, data.scored)
        trivial = defined(task.score([Row(e.guid, e.gold, *g) for e, g in zip(data.scored, guesses, strict=True)]))
    found = bootstrap(task, rows, [task.group(example) for example in data.scored], SAMPLES, SEED)
    return {
        "headline": next(iter(scores)), "bootstrap_samples": SAMPLES, "scores": defined(scores),
        "intervals": {name: found.get(name) for name in scores}, "trivial": trivial,
        "paper_dev": {model: dict(figures) for model, figures in task.paper_dev.items()},
    }  # fmt: skip


def _cost(answers: Sequence[Answer], prices: tuple[float, float] | None) -> dict[str, Any]:
    """Tokens in and out of the answers whose provider tells them, what they cost, and the time they took; of all runs
    that asked, not of the last alone."""
    told = [answer for answer in answers if answer.tokens_in is not None and answer.tokens_out is not None]
    tokens = {
        "in": sum(answer.tokens_in or 0 for answer in told), "out": sum(answer.tokens_out or 0 for answer in told),
        "told_for": len(told),
    }  # fmt: skip
    price = None if prices is None else (tokens["in"] * prices[0] + tokens["out"] * prices[1]) / 1e6
    return {"tokens": tokens, "price": price, "seconds": round(busy_seconds(answers), 1)}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _lines(records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _write(path: Path, content: Any) -> None:
    atomic_write(path, hide_keys(json.dumps(content, ensure_ascii=False, indent=1)) + "\n")
