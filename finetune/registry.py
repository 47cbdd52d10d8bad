"""The eight tasks by name. A task's module (torch, transformers) is imported when the task is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.task import Task

_HOMES = {
    "ynat": ("finetune.tasks.ynat.task", "YNAT"),
    "klue-sts": ("finetune.tasks.sts.task", "KLUE_STS"),
    "klue-nli": ("finetune.tasks.nli.task", "KLUE_NLI"),
    "klue-ner": ("finetune.tasks.ner.task", "KLUE_NER"),
    "klue-re": ("finetune.tasks.re.task", "KLUE_RE"),
    "klue-dp": ("finetune.tasks.dp.task", "KLUE_DP"),
    "klue-mrc": ("finetune.tasks.mrc.task", "KLUE_MRC"),
    "wos": ("finetune.tasks.wos.task", "WOS"),
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
