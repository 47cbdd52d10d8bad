"""The eight tasks by name. A task's module (torch, transformers) is imported when the task is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.task import Task

_HOMES = {
    "ynat": ("finetune.tasks.ynat", "YNAT"),
    "klue-sts": ("finetune.tasks.klue_sts", "KLUE_STS"),
    "klue-nli": ("finetune.tasks.klue_nli", "KLUE_NLI"),
    "klue-ner": ("finetune.tasks.klue_ner", "KLUE_NER"),
    "klue-re": ("finetune.tasks.klue_re", "KLUE_RE"),
    "klue-dp": ("finetune.tasks.klue_dp", "KLUE_DP"),
    "klue-mrc": ("finetune.tasks.klue_mrc", "KLUE_MRC"),
    "wos": ("finetune.tasks.wos", "WOS"),
}


class _Tasks(Mapping[str, Task]):
    def __getitem__(self, name: str) -> Task:
        module, record = _HOMES[name]
        task: Task = getattr(import_module(module), record)
        return task

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


TASKS: Mapping[str, Task] = _Tasks()


def find_task(name: str) -> Task:
    """The task of that name, under protocol ``malmoi``.

    Raises:
        BadInput: there is none.
    """
    if name not in TASKS:
        raise BadInput(f"{name}: no such task; the tasks are {', '.join(TASKS)}")
    return TASKS[name]


def task_of(name: str, config: FinetuneConfig) -> Task:
    """The task as a configuration wants it done."""
    task = TASKS[name].under(config.protocol)
    return task if config.pos_tags else task.plain(task)
