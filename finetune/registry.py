"""The eight tasks by name, and own ones by configuration. A task's module is imported when the task is asked for; none
of them needs torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from corpus.documents.errors import BadInput
from finetune.config import MODEL_INFO_NAME, FinetuneConfig
from finetune.data.files import find_file, read_json
from finetune.task import Task
from finetune.task_names import TASK_NAMES, full_name

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
    """The task of that name (``klue-ner``, ``ner``) under protocol ``malmoi``, or the own one that the folder of a
    result or of a kept model knows; ``BadInput`` if there is none."""
    files = [Path(name) / file for file in ("scores.json", MODEL_INFO_NAME)]
    if "/" in name and (file := next(filter(Path.is_file, files), None)):
        found = read_json(file)
        if isinstance(found, dict) and found.get("own") is not None:
            from finetune.tasks.own import own_task

            return own_task(found["own"], str(file))
        name = str(found.get("task")) if isinstance(found, dict) else name
    try:
        return TASKS[full_name(name)]
    except BadInput as error:
        raise BadInput(f"{error}; an own one is named by the folder of its result or kept model, as ./hate") from None


def task_of(name: str, config: FinetuneConfig) -> Task:
    """The task as a configuration wants it done; of an own one the train file is read, for its labels."""
    if own := config.custom.get(name):
        from finetune.tasks.own import define, own_task

        return own_task(define(name, own), files=own.files)
    task = TASKS[name].with_protocol(config.protocol)
    task = task.adapt(task, config)
    task = task if config.mrc_empty_windows == 1 else task.thin(task, config.mrc_empty_windows)
    return task if config.pos_tags else task.plain(task)


def klue_tasks(config: FinetuneConfig) -> tuple[str, ...]:
    """The tasks to train that are KLUE's."""
    return tuple(task for task in config.tasks if task not in config.custom)


def missing_files(config: FinetuneConfig, folder: Path) -> list[str]:
    """Names of the files that the tasks need and that are not there; those of KLUE should be in ``folder``."""
    own = [config.custom[task] for task in config.tasks if task in config.custom]
    missing = [path for task in own for path in task.files.values() if not Path(path).is_file()]
    missing += [
        f"finetune.custom.{task}.train"
        for task in config.tasks
        if task in config.custom and config.custom[task].train is None and task not in config.split_dev
    ]
    needed = [
        TASKS[task].files.of(split)
        for task in klue_tasks(config)
        for split in ("train", "dev")
        if split == "dev" or task not in config.split_dev
    ]
    return missing + [name for name in needed if find_file(folder, name) is None]
