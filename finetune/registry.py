"""Tasks by name: the eight KLUE tasks, and custom tasks by configuration.

None of the tasks needs torch until its model is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from corpus.documents.errors import BadInput
from finetune.config import MODEL_INFO_NAME, FinetuneConfig
from finetune.data.files import find_file, read_json
from finetune.task import Task
from finetune.task_names import full_name
from finetune.tasks.custom.task import custom_task, define
from finetune.tasks.dp.task import KLUE_DP
from finetune.tasks.mrc.task import KLUE_MRC
from finetune.tasks.ner.task import KLUE_NER
from finetune.tasks.nli.task import KLUE_NLI
from finetune.tasks.re.task import KLUE_RE
from finetune.tasks.similarity import KINDS, similarity_task
from finetune.tasks.sts.task import KLUE_STS
from finetune.tasks.wos.task import WOS
from finetune.tasks.ynat.task import YNAT

TASKS: Mapping[str, Task] = {
    task.name: task for task in (YNAT, KLUE_STS, KLUE_NLI, KLUE_NER, KLUE_RE, KLUE_DP, KLUE_MRC, WOS)
}  # under protocol ``malmoi``


def find_task(name: str) -> Task:
    """The KLUE task of that name (``klue-ner``, ``ner``) under protocol ``malmoi``, or the task of a folder that holds
    a result or a saved model; ``BadInput`` if there is none."""
    files = [Path(name) / file for file in ("scores.json", MODEL_INFO_NAME)]
    if "/" in name and (file := next(filter(Path.is_file, files), None)):
        content = read_json(file)
        if isinstance(content, dict) and content.get("own") is not None:
            is_of_embedding = isinstance(content["own"], dict) and content["own"].get("kind") in KINDS
            return (similarity_task if is_of_embedding else custom_task)(content["own"], str(file))
        name = str(content.get("task")) if isinstance(content, dict) else name
    try:
        return TASKS[full_name(name)]
    except BadInput as error:
        raise BadInput(f"{error}; for a custom task, give the folder of a result or a saved model, as ./hate") from None


def task_of(name: str, config: FinetuneConfig) -> Task:
    """The task as a configuration changes it. For a custom task the training file is read, to find its labels."""
    if definition := config.custom.get(name):
        return custom_task(define(name, definition), files=definition.files)
    task = TASKS[name].with_protocol(config.protocol)
    return task.configure(task, config)


def klue_tasks(config: FinetuneConfig) -> tuple[str, ...]:
    """The KLUE tasks to train, without custom tasks."""
    return tuple(task for task in config.tasks if task not in config.custom)


def missing_files(config: FinetuneConfig, folder: Path, tasks: Iterable[str]) -> list[str]:
    """Names of the files that the KLUE tasks among ``tasks`` need and that ``folder`` does not have."""
    needed = [(TASKS[task].files, split) for task in tasks if task not in config.custom for split in ("train", "dev")
              if split == "dev" or task not in config.split_dev]  # fmt: skip
    return [files.of(split) for files, split in needed if find_file(folder, files.of(split)) is None]
