"""What is asked of one task: the examples that are scored, the shots, the record of the generation task.

The examples come from the reader of the finetune stage, a ``limit`` drawn by the same seed, so that an encoder with
``finetune.max_dev_examples`` of that number is scored on the very same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import identify
from finetune.data.split import Data, find, load_data, sample
from finetune.examples import Example
from finetune.generative.prompts.record import Generation, Message, few_shot, messages
from finetune.generative.prompts.registry import GENERATIONS
from finetune.registry import TASKS
from finetune.task import Task
from finetune.task_names import full_name


@dataclass(frozen=True, slots=True)
class Material:
    """One task, ready to be asked."""

    task: Task
    generation: Generation
    data: Data
    shown: tuple[Example, ...]

    def messages(self, example: Example) -> list[Message]:
        """The turns before the answer to ``example``."""
        return messages(self.generation, example, self.shown)


def load_material(
    name: str,
    folder: Path,
    shots: int = 0,
    limit: int | None = None,
    seed: int = 1,
    config: FinetuneConfig | None = None,
) -> Material:
    """Read the examples of a task (any of its names); ``BadInput`` where files are missing or too few for the shots.

    Args:
        shots: solved examples of the train file in each question, chosen by ``seed``.
        limit: of the scored examples, by the seed of the finetune stage; None: all.
        config: how the finetune stage of a recipe divides its files; None: dev is scored, train may be missing.
    """
    name = full_name(name)
    if name not in GENERATIONS:
        raise BadInput(f"{name}: no generation task; there are {', '.join(GENERATIONS)}")
    task, generation = TASKS[name], GENERATIONS[name]
    chosen = config or FinetuneConfig()
    if limit is not None:
        chosen = chosen.model_copy(update={"max_dev_examples": limit})
    if config is None and find(task, folder, "train") is None:
        data = _dev_alone(task, folder, shots, chosen)
    else:
        data = load_data(task, folder, chosen.model_copy(update={"predict_test": False}))
    shown = few_shot(generation, data.training, shots, seed, data.scored) if shots else []
    return Material(task, generation, data, tuple(shown))


def _dev_alone(task: Task, folder: Path, shots: int, config: FinetuneConfig) -> Data:
    """The whole dev file; there is nothing to take shots from, and no trivial baseline."""
    dev = find(task, folder, "dev")
    if dev is None:
        raise BadInput(f"{folder}: {task.files.dev} (or .zst) is missing; give a folder like the KLUE repository")
    if shots:
        raise BadInput(f"{folder}: {task.files.train} (or .zst) is missing; shots come from it, so add it or ask for 0")
    examples = task.read(dev)
    if not examples or examples[0].gold is None:
        raise BadInput(f"{dev}: no labelled examples of {task.name} in it")
    kept = sample(examples, config.max_dev_examples, config.split_seed)
    split = "dev" if len(kept) == len(examples) else f"dev; {len(kept):,} of {len(examples):,} examples, by seed"
    is_official = split == "dev" and len(kept) == task.dev_examples
    return Data([], kept, split, is_official, {"dev": identify(dev)}, [], None)
