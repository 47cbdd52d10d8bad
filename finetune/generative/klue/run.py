"""``malmoi llm TASK… --model …``: ask, read, score, tell. What can be wrong is found before the first question.

```
material ─ messages ─▶ ask, score_choices ─▶ OUT/llm/<model>/<task>.jsonl ─ parse ─▶ OUT/finetune/…/scores.json
```
A second run of the same command asks nothing; a killed one goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.generative.client.ask import Asking, Question, Told, ask, is_local
from finetune.generative.client.cost import progress
from finetune.generative.client.models import provider_of, refuse_others, version_of
from finetune.generative.klue.material import Material
from finetune.generative.klue.results import Judged, Way, read_answers, read_sums, write_result
from finetune.queue.jobs import folder_name

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """One command: what is asked of which model, and how. ``device``: of models in this process."""

    way: Way
    asking: Asking
    out: Path
    max_tokens: int | None = None
    device: str | None = None


def run(materials: Sequence[Material], request: Request) -> list[dict[str, Any]]:
    """Ask all tasks and write their results; returns the content of each ``scores.json``."""
    check(materials, request)
    way, found = request.way, []
    home = request.out / "llm" / folder_name(way.model)
    work = _ask_task if way.method == "generation" else _score_task(request)
    for material in materials:
        with progress(material.task.name, len(material.data.scored)) as told:
            judged, more = work(material, request, home / f"{material.task.name}.jsonl", told)
        found.append(write_result(material, judged, way, request.out, {**_settings(request), **more}))
        _warn(found[-1])
    return found


def _settings(request: Request) -> dict[str, Any]:
    """Further settings that decide the answers."""
    local = {"model_files": version_of(request.way.model)} if is_local(request.way.model) else {}
    return {"temperature": request.asking.temperature, **local}


def check(materials: Sequence[Material], request: Request) -> None:
    """``BadInput`` for what cannot be done: a method that the task or the provider does not have."""
    provider_of(request.way.model)
    if request.way.method == "generation":
        return
    refuse_others(request.way.model)
    for material in materials:
        if not material.generation.choices:
            raise BadInput(
                f"{material.task.name} --method likelihood: its answers are no closed set; leave it out, or take "
                "--method generation"
            )


Work = Callable[[Material, Request, Path, Told], tuple[list[Judged], dict[str, Any]]]


def _ask_task(material: Material, request: Request, store: Path, told: Told) -> tuple[list[Judged], dict[str, Any]]:
    most = request.max_tokens or material.generation.max_tokens
    questions = [Question(e.guid, material.messages(e), most) for e in material.data.scored]
    return read_answers(material, ask(questions, request.asking, store, told)), {"max_tokens": most}


def _score_task(request: Request) -> Work:
    from finetune.generative.klue.likelihood import Choices, load_scorer, score_choices

    @cache
    def scorer() -> Any:
        return load_scorer(request.way.model, request.device)

    def work(material: Material, request: Request, store: Path, told: Told) -> tuple[list[Judged], dict[str, Any]]:
        choices = material.generation.choices
        questions = [Choices(e.guid, scorer().context(material.messages(e)), choices) for e in material.data.scored]
        cut = scorer().cut
        found = score_choices(questions, request.way.model, scorer, store, told)
        judged = read_sums(material, found)
        sides = {"character": judged, "sum": read_sums(material, found, by_character=False)}
        accuracy = {name: _accuracy(material, side) for name, side in sides.items()}
        return judged, {"normalised_by": "character", "accuracy": accuracy, "cut": scorer().cut - cut}

    return work


def _accuracy(material: Material, judged: Sequence[Judged]) -> float:
    """0..100; by characters it is acc_norm of lm-evaluation-harness, by sums its acc."""
    rows = zip(material.data.scored, judged, strict=True)
    return 100 * sum(example.gold == j.prediction.value for example, j in rows) / len(judged)


def _warn(found: Mapping[str, Any]) -> None:
    """What a reader should know at once."""
    name, n = found["task"], found["n"]
    said = f", {found['parse_rate']:.1f} % of the answers parse" if found["method"] == "generation" else ""
    log.info("%s: %d examples%s", name, n, said)
    if found["unanswered"]:
        log.warning(
            "%s: %d of %d questions have no answer and count as wrong; the same command asks them again",
            name, found["unanswered"], n,
        )  # fmt: skip
    if found.get("cut"):
        log.warning("%s: %d questions are longer than the model reads and lost their beginning", name, found["cut"])
