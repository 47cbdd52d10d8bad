"""Tasks are found by any of their names, and listed without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.registry import TASKS, find_task
from finetune.task_names import SHORT_NAMES, TASK_NAMES, full_name


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
        ("klu-dp", "did you mean klue-dp? The tasks"),
        ("Kleu_mrc", "did you mean klue-mrc"),
        ("summary", "no such task; the tasks are ynat, klue-sts"),
    ],
)
def test_a_misspelt_task_is_answered_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(BadInput, match=hint.replace("?", r"\?")):
        find_task(name)
    with pytest.raises(ValueError, match=hint.replace("?", r"\?")):
        FinetuneConfig(tasks=(name,))


def test_at_most_two_near_tasks_are_named() -> None:
    with pytest.raises(BadInput, match=r"did you mean topic\d or topic\d\? The tasks"):
        full_name("topic", ["topic1", "topic2", "topic3"])


def test_a_folder_of_a_result_gives_its_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ner").mkdir()
    (tmp_path / "ner" / "scores.json").write_text(json.dumps({"task": "ynat"}), "utf-8")
    monkeypatch.chdir(tmp_path)
    assert find_task("./ner").name == "ynat"
    assert find_task("ner").name == "klue-ner"  # a name without a slash is a task, even if there is a folder
    with pytest.raises(BadInput, match="no such task"):
        find_task("./summary")


def test_two_names_of_one_task_are_one_task_twice() -> None:
    with pytest.raises(ValueError, match="listed twice: klue-ner"):
        FinetuneConfig(tasks=("ner", "klue-ner"))


def test_every_task_has_a_short_name_and_a_headline() -> None:
    assert list(SHORT_NAMES.values()) == list(TASKS) == list(TASK_NAMES)
    for short, name in SHORT_NAMES.items():
        task = find_task(short)
        assert task.name == name
        assert task.select_by in task.metrics
        assert all(tuple(figures) == task.metrics for figures in task.published.dev_scores.values())
    ner = TASKS["klue-ner"]
    assert (ner.metrics[0], ner.published.dev_scores["klue/roberta-base"][ner.metrics[0]]) == ("entity_macro_f1", 85.18)
    assert ner.files.dev == "klue-ner-v1.1/klue-ner-v1.1_dev.tsv"


def test_the_tasks_need_neither_torch_nor_transformers() -> None:
    code = (
        "import sys; from finetune.registry import TASKS; list(TASKS.values()); "
        "sys.exit(bool({'torch', 'transformers', 'datasets'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
