"""One KLUE task ready to be asked: its scored examples, its few-shot examples and its prompt.

Examples are read and limited as in fine-tuning, with the same seed, so an encoder with ``finetune.max_dev_examples`` of
the same number is scored on the same examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import identify
from finetune.data.split import Data, find, load_data, sample
from finetune.examples import Example
from finetune.generative.prompts.prompt import PROMPTS, Message, TaskPrompt, build_messages, draw_shots
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


def load_prompted_task(
    name: str,
    folder: Path,
    shots: int = 0,
    limit: int | None = None,
    seed: int = 1,
    config: FinetuneConfig | None = None,
) -> PromptedTask:
    """Read the examples of a task; ``BadInput`` if files are missing or have too few examples for the shots.

    Args:
        shots: number of few-shot examples from train, drawn by ``seed``.
        limit: number of scored examples, drawn by the seed of the finetune stage; None: all.
        config: how a recipe splits its files; None: dev is scored, and train may be missing.
    """
    name = full_name(name)
    if name not in PROMPTS:
        raise BadInput(f"{name}: no prompt for this task; choose from {', '.join(PROMPTS)}")
    task, prompt, chosen = TASKS[name], PROMPTS[name], config or FinetuneConfig()
    if limit is not None:
        chosen = chosen.model_copy(update={"max_dev_examples": limit})
    if config is None and find(task, folder, "train") is None:
        data = _load_dev_only(task, folder, shots, chosen)
    else:
        data = load_data(task, folder, chosen.model_copy(update={"predict_test": False}))
    return PromptedTask(
        task, prompt, data, tuple(draw_shots(prompt, data.training, shots, seed, data.scored) if shots else ())
    )


def _load_dev_only(task: Task, folder: Path, shots: int, config: FinetuneConfig) -> Data:
    """The dev file without train: no shots and no trivial baseline."""
    dev = find(task, folder, "dev")
    if dev is None:
        raise BadInput(f"{folder}: {task.files.dev} (or .zst) is missing; expected a folder like the KLUE repository")
    if shots:
        raise BadInput(
            f"{folder}: {task.files.train} (or .zst) is missing; few-shot examples come from it, so add it, or leave "
            "--shots out"
        )
    examples = task.read(dev)
    if not examples or examples[0].gold is None:
        raise BadInput(f"{dev}: no labeled examples of {task.name}")
    kept = sample(examples, config.max_dev_examples, config.split_seed)
    split = "dev" if len(kept) == len(examples) else f"dev; {len(kept):,} of {len(examples):,} examples, by seed"
    is_official = split == "dev" and len(kept) == task.published.dev_examples
    return Data([], kept, split, is_official, {"dev": identify(dev)}, [], None)
