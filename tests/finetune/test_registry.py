"""Tasks are found by any of their names, and listed without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from corpus.documents.errors import BadInput
from finetune.config import TASK_NAMES, FinetuneConfig
from finetune.registry import TASKS, find_task, task_table


@pytest.mark.parametrize(
    ("name", "task"),
    [("klue-ner", "klue-ner"), ("ner", "klue-ner"), ("KLUE_NER", "klue-ner"), ("dst", "wos"), ("klue-tc", "ynat")],
)
def test_a_task_is_found_by_any_of_its_names(name: str, task: str) -> None:
    assert find_task(name).name == task
    assert FinetuneConfig(tasks=(name,), overrides={name: {"epochs": 1}}).model_dump()["overrides"].keys() == {task}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("klue-nre", "did you mean klue-ner or klue-re? The tasks"),
        ("ynatt", "did you mean ynat? The tasks"),
        ("wso", "did you mean wos"),
        ("summary", "no such task; the tasks are ynat, klue-sts"),
    ],
)
def test_a_misspelt_task_is_answered_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(BadInput, match=hint.replace("?", r"\?")):
        find_task(name)
    with pytest.raises(ValueError, match=hint.replace("?", r"\?")):
        FinetuneConfig(tasks=(name,))


def test_two_names_of_one_task_are_one_task_twice() -> None:
    with pytest.raises(ValueError, match="named twice: klue-ner"):
        FinetuneConfig(tasks=("ner", "klue-ner"))


def test_the_table_lists_every_task_with_its_headline() -> None:
    table = task_table()
    assert [row.name for row in table] == list(TASKS) == list(TASK_NAMES)
    for row in table:
        assert find_task(row.short_name).name == row.name
        assert row.select_by in row.metrics
        assert row.paper_dev["klue/roberta-base"] == TASKS[row.name].paper_dev["klue/roberta-base"][row.metrics[0]]
    ner = table[TASK_NAMES.index("klue-ner")]
    assert (ner.short_name, ner.metrics[0]) == ("ner", "entity_macro_f1")
    assert ner.files.dev == "klue-ner-v1.1/klue-ner-v1.1_dev.tsv"


def test_the_table_needs_neither_torch_nor_transformers() -> None:
    code = (
        "import sys; from finetune.registry import task_table; task_table(); "
        "sys.exit(bool({'torch', 'transformers', 'datasets'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
