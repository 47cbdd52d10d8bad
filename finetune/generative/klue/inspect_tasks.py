"""The KLUE tasks for Inspect AI: ``inspect eval malmoi/klue_ner --model … -T data=FOLDER -T shots=5``.

Prompts, parsers and metrics are those of ``malmoi llm``; logs, viewer and ``eval-retry`` are Inspect's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from finetune.examples import Example, Row
from finetune.generative.client.ask import plain_turns, to_chat
from finetune.generative.klue.run import PromptedTask, load_prompted_task
from finetune.generative.prompts import PROMPTS
from finetune.registry import TASKS


def make_inspect_task(name: str) -> Callable[..., Task]:
    """The Inspect task ``malmoi/klue_…`` of a KLUE task."""

    def build(data: str, shots: int = 0, seed: int = 1, limit: int | None = None) -> Task:
        prompted = load_prompted_task(name, Path(data), shots, limit, seed)
        prompt, examples = prompted.prompt, {example.guid: example for example in prompted.data.scored}
        samples = [
            Sample(input=to_chat(prompted.messages(example)), target=prompt.render_gold(example), id=guid)
            for guid, example in examples.items()
        ]
        return Task(
            dataset=MemoryDataset(samples, name=f"{prompted.task.name} {prompted.data.split}"),
            solver=answer_greedily(),
            scorer=klue_scorer(prompted, examples),
            config=GenerateConfig(max_tokens=prompt.max_tokens),
            metadata={"task": prompted.task.name, "shots": shots, "seed": seed},
        )

    build.__name__ = PROMPTS[name].file_name
    build.__module__ = "malmoi"  # Inspect names a task after its package
    build.__doc__ = f"{name}: folder of KLUE files, shots, their seed, limit."
    return task(build)


@solver
def answer_greedily() -> Solver:
    """Answer as ``malmoi llm`` does: at temperature 0, and ``hf/`` models without a chat template with plain text."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        api: Any = get_model().api
        if not hasattr(api, "do_sample"):
            return await generate(state, temperature=0.0)
        api.do_sample = False
        if not api.chat_template:
            vars(api).update(plain_turns(api.tokenizer))
        return await generate(state)

    return solve


def klue_scorer(prompted: PromptedTask, examples: dict[str, Example]) -> Scorer:
    """Each answer as a prediction; over all of them the metrics of the paper."""
    name = prompted.task.name

    @scorer(metrics=[klue_metrics(name)], name=f"malmoi/{name}")
    def make() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            example = examples[str(state.sample_id)]
            prediction, is_parsed = prompted.parse(state.output.completion, example)
            is_wrong = TASKS[name].inspection.differs(Row(example.guid, example.gold, prediction))
            about = {"prediction": prediction, "gold": example.gold, "is_parsed": is_parsed}
            return Score(value=0.0 if is_wrong else 1.0, answer=state.output.completion, metadata=about)

        return score

    return make()


@metric(name="malmoi/klue")
def klue_metrics(name: str) -> Metric:
    """The metrics of a KLUE task, 0..100, and ``parse_rate``."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        if not scores:  # Inspect asks before the first answer
            return dict.fromkeys((*TASKS[name].metrics, "parse_rate"), math.nan)
        answers = [(str(score.sample_id), score.score.metadata or {}) for score in scores]
        rows = [Row(guid, about["gold"], about["prediction"]) for guid, about in answers]
        parsed = sum(about["is_parsed"] for _, about in answers)
        return {**TASKS[name].score(rows), "parse_rate": 100 * parsed / len(answers)}

    return compute
