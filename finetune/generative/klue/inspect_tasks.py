"""The KLUE tasks for Inspect AI itself: ``inspect eval malmoi/klue_ner --model … -T data=FOLDER -T shots=5``.

Prompts, parsers and metrics are those of ``malmoi llm``; what is Inspect's own (its logs and viewer, its many options,
its sandboxes of providers) comes with it. The log holds the metrics of KLUE and the parse rate; its log of samples may
be scored elsewhere. ``malmoi llm`` is what goes on after a kill without asking twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, ModelOutput, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from corpus.documents.errors import BadInput
from finetune.examples import Example, Row
from finetune.generative.client.ask import chat
from finetune.generative.client.models import refuse_others
from finetune.generative.klue.material import Material, load_material
from finetune.registry import TASKS


def _task(name: str, data: Path, shots: int, seed: int, limit: int | None, method: str) -> Task:
    if method not in ("generation", "likelihood"):
        raise BadInput(f"method {method}: generation or likelihood")
    material = load_material(name, data, shots, limit, seed)
    if method == "likelihood" and not material.generation.choices:
        raise BadInput(f"method likelihood: the answers of {material.task.name} are no closed set")
    examples = {example.guid: example for example in material.data.scored}
    samples = [
        Sample(input=chat(material.messages(example)), target=material.generation.tell(example), id=guid)
        for guid, example in examples.items()
    ]
    return Task(
        dataset=MemoryDataset(samples, name=f"{material.task.name} {material.data.split}"),
        solver=generate() if method == "generation" else likeliest_choice(material.generation.choices),
        scorer=klue(material, examples),
        config=GenerateConfig(max_tokens=material.generation.max_tokens),
        metadata={"task": material.task.name, "shots": shots, "seed": seed, "method": method},
    )


@solver
def likeliest_choice(choices: Sequence[str]) -> Solver:
    """The answer of the closed set that the model finds likeliest by the character; Hugging Face models alone."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        from finetune.generative.klue.likelihood import Choices, Scorer, likeliest

        model = get_model()
        refuse_others(str(model))
        api: Any = model.api
        own = Scorer(api.model, api.tokenizer)
        turns = [(message.role, message.text) for message in state.messages]
        question = Choices(str(state.sample_id), own.context(turns), tuple(choices))  # type: ignore[arg-type]
        found = choices[likeliest(own.score(question), choices)]
        state.output = ModelOutput.from_content(str(model), found)
        return state

    return solve


def klue(material: Material, examples: dict[str, Example]) -> Scorer:
    """Each answer as a prediction; over all of them the metrics of the paper."""
    name, generation = material.task.name, material.generation

    @scorer(metrics=[klue_metrics(name)], name=f"malmoi/{name}")
    def of_task() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            example = examples[str(state.sample_id)]
            value = generation.parse(state.output.completion, example)
            prediction = generation.unparsed(example) if value is None else value
            row = Row(example.guid, example.gold, prediction)
            return Score(
                value=0.0 if TASKS[name].differs(row) else 1.0,
                answer=state.output.completion,
                metadata={"prediction": prediction, "gold": example.gold, "is_parsed": value is not None},
            )

        return score

    return of_task()


@metric(name="malmoi/klue")
def klue_metrics(name: str) -> Metric:
    """The metrics of a KLUE task, 0..100, and ``parse_rate``."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        found = [(str(score.sample_id), score.score.metadata or {}) for score in scores]
        rows = [Row(guid, about["gold"], about["prediction"]) for guid, about in found]
        if not found:  # Inspect asks before the first answer
            return dict.fromkeys((*TASKS[name].metrics, "parse_rate"), math.nan)
        parsed = sum(about["is_parsed"] for _, about in found)
        return {**TASKS[name].score(rows), "parse_rate": 100 * parsed / len(found)}

    return compute


def make_inspect_task(name: str, open_klue: Callable[[str], AbstractContextManager[Path]]) -> Callable[..., Task]:
    """The Inspect task ``malmoi/klue_…`` of a KLUE task.

    Args:
        open_klue: the folder of KLUE files for the value of ``-T data=``.
    """

    def build(
        data: str = "malmoi:sample", shots: int = 0, seed: int = 1, limit: int | None = None, method: str = "generation"
    ) -> Task:
        with open_klue(data) as folder:
            return _task(name, folder, shots, seed, limit, method)

    build.__name__ = f"klue_{name.removeprefix('klue-').replace('-', '_')}"
    build.__module__ = "malmoi"  # Inspect names a task after its package
    build.__doc__ = f"{name}: folder of KLUE files, shots, their seed, limit, method (generation or likelihood)."
    return task(build)
