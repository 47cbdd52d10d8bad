"""The eight tasks for generative models by full name; a task's module is imported when the task is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from finetune.generative.prompts.record import Generation
from finetune.task_names import TASK_NAMES

MODULES = {
    "ynat": "labels", "klue-sts": "similarity", "klue-nli": "labels", "klue-ner": "ner", "klue-re": "re",
    "klue-dp": "dp", "klue-mrc": "mrc", "wos": "wos",
}  # fmt: skip


class _Generations(Mapping[str, Generation]):
    def __getitem__(self, name: str) -> Generation:
        if name not in MODULES:
            raise KeyError(name)
        module = import_module(f"finetune.generative.prompts.{MODULES[name]}")
        generation: Generation = getattr(module, name.upper().replace("-", "_"))
        return generation

    def __iter__(self) -> Iterator[str]:
        return iter(name for name in TASK_NAMES if name in MODULES)

    def __len__(self) -> int:
        return len(MODULES)


GENERATIONS: Mapping[str, Generation] = _Generations()
