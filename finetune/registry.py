"""The eight tasks by name. A task's module is imported when the task is asked for; none of them needs torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from finetune.config import TASK_NAMES, FinetuneConfig, full_name
from finetune.data.files import find_file
from finetune.task import Task

MODULES = {"ynat": "labels", "klue-nli": "labels", "klue-sts": "similarity"}  # the others: a folder of their own


class _Tasks(Mapping[str, Task]):
    def __getitem__(self, name: str) -> Task:
        if name not in TASK_NAMES:
            raise KeyError(name)
        module = import_module(f"finetune.tasks.{MODULES.get(name) or name.removeprefix('klue-') + '.task'}")
        task: Task = getattr(module, name.upper().replace("-", "_"))
        return task

    def __iter__(self) -> Iterator[str]:
        return iter(TASK_NAMES)

    def __len__(self) -> int:
        return len(TASK_NAMES)


TASKS: Mapping[str, Task] = _Tasks()


def find_task(name: str) -> Task:
    """The task of that name (``klue-ner``, ``ner``) under protocol ``malmoi``; ``BadInput`` if there is none."""
    return TASKS[full_name(name)]


def task_of(name: str, config: FinetuneConfig) -> Task:
    """The task as a configuration wants it done."""
    task = TASKS[name].under(config.protocol)
    task = task if config.mrc_empty_windows == 1 else task.thin(task, config.mrc_empty_windows)
    return task if config.pos_tags else task.plain(task)


def missing_files(config: FinetuneConfig, folder: Path) -> list[str]:
    """Names of the official files that the tasks need and ``folder`` lacks."""
    needed = [
        TASKS[task].files.of(split)
        for task in config.tasks
        for split in ("train", "dev")
        if split == "dev" or task not in config.split_dev
    ]
    return [name for name in needed if find_file(folder, name) is None]
