"""``malmoi llm TASK… --model …``: ask, read, score, tell. What can be wrong is found before the first question.

```
material ─ messages ─▶ ask, score_choices ─▶ OUT/llm/<model>/<task>.jsonl ─ parse ─▶ OUT/finetune/…/scores.json
```
A second run of the same command asks nothing; a killed one goes on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from finetune.queue.jobs import folder_name
from launch.console import peak_memory_mib
from launch.errors import LaunchError
from launch.llm.asking.ask import Asking, Question, Told, ask, is_local
from launch.llm.asking.cost import progress
from launch.llm.asking.models import provider_of, refuse_others, version_of
from launch.llm.klue.material import Material
from launch.llm.klue.results import Judged, Way, read_answers, read_sums, write_result
from launch.manifest import Head, finish, start

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
    """Ask all tasks and write their results and a manifest; returns what their ``scores.json`` say."""
    check(materials, request)
    way = request.way
    home = request.out / "llm" / folder_name(way.model)
    place = home / folder_name(way.settings) / f"seed-{way.seed}"
    head = Head("llm", _settings(materials, request), _inputs(materials))
    start(place, head, again=True)
    began, found = time.monotonic(), []
    work = _ask_task if way.method == "generation" else _score_task(request)
    for material in materials:
        with progress(material.task.name, len(material.data.scored)) as told:
            judged, more = work(material, request, home / f"{material.task.name}.jsonl", told)
        found.append(write_result(material, judged, way, request.out, more))
        _warn(found[-1])
    tokens = {side: sum(result["tokens"][side] for result in found) for side in ("in", "out")}
    finish(place, head, {"results": len(found), "tokens": tokens}, time.monotonic() - began, peak_memory_mib())
    return found


def check(materials: Sequence[Material], request: Request) -> None:
    """``LaunchError`` for what cannot be done: a method that the task or the provider does not have."""
    provider_of(request.way.model)
    if request.way.method == "generation":
        return
    refuse_others(request.way.model)
    for material in materials:
        if not material.generation.choices:
            raise LaunchError(
                f"{material.task.name} --method likelihood: its answers are no closed set; leave it out, or take "
                "--method generation"
            )


Work = Callable[[Material, Request, Path, Told], tuple[list[Judged], dict[str, Any]]]


def _ask_task(material: Material, request: Request, store: Path, told: Told) -> tuple[list[Judged], dict[str, Any]]:
    most = request.max_tokens or material.generation.max_tokens
    questions = [Question(e.guid, material.messages(e), most) for e in material.data.scored]
    return read_answers(material, ask(questions, request.asking, store, told)), {"max_tokens": most}


def _score_task(request: Request) -> Work:
    from launch.llm.klue.likelihood import Choices, load_scorer, score_choices

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


def _settings(materials: Sequence[Material], request: Request) -> dict[str, Any]:
    """What the results depend on; an address or a key is not among it."""
    way = request.way
    local = {"files": version_of(way.model)} if is_local(way.model) else {}
    return {
        "model": way.model, **local, "method": way.method, "shots": way.shots, "seed": way.seed,
        "temperature": request.asking.temperature, "max_tokens": request.max_tokens,
        "tasks": [material.task.name for material in materials],
        "examples": [len(material.data.scored) for material in materials],
    }  # fmt: skip


def _inputs(materials: Sequence[Material]) -> dict[str, str]:
    files = (file for material in materials for file in material.data.files.values())
    return {file["file"]: f"sha256:{file['sha256']}" for file in files}
