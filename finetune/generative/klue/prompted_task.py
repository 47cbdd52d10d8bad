"""One KLUE task ready to be asked: its scored examples, its few-shot examples and its prompt.

Examples are read and limited as in fine-tuning, with the same seed, so an encoder with ``finetune.max_dev_examples`` of
the same number is scored on the same examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.split import Data, find, load_data
from finetune.examples import Example
from finetune.generative.prompts import PROMPTS
from finetune.generative.prompts.prompt import Message, TaskPrompt, build_messages, draw_shots
from finetune.registry import TASKS
from finetune.task import Task
from finetune.task_names import full_name


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
        raise BadInput(
            f"{folder}: {task.files.train} (or .zst) is missing; few-shot examples come from it, so add it, or leave "
            "--shots out"
        )
    chosen = config or FinetuneConfig()
    if limit is not None:
        chosen = chosen.model_copy(update={"max_dev_examples": limit})
    data = load_data(task, folder, chosen, needs_train=needs_train)
    drawn = draw_shots(prompt, data.training, shots, seed, data.scored) if shots else ()
    return PromptedTask(task, prompt, data, tuple(drawn))
