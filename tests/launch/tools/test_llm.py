"""``malmoi llm export``: the files and what to run next."""

from __future__ import annotations

from pathlib import Path

import pytest

from finetune.task_names import TASK_NAMES
from launch.errors import LaunchError
from launch.tools.llm import load_tasks
from tests.command import run_command


def test_tasks_are_exported_with_the_command_that_runs_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tasks"
    done = run_command(capfd, "llm", "export", "lm-eval", str(folder), "ynat", "klue-nli", "--limit", "2")
    assert done.code == 0, done.errors
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    assert len(names) == 2
    command = f"lm_eval --model hf --model_args pretrained=MODEL,add_bos_token=True --include_path {folder} --tasks "
    _, _, named = done.output.strip().partition(f"2 tasks: {command}")
    assert sorted(named.split(",")) == names
    assert done.output.strip().partition(": ")[2] in (folder / "README.md").read_text("utf-8")
    assert all(len(path.read_text("utf-8").splitlines()) == 2 for path in folder.glob("*.jsonl"))


def test_a_recipe_brings_its_tasks_its_data_and_its_folder(tmp_path: Path) -> None:
    def load(*names: str) -> tuple[list[str], Path]:
        prompted, out = load_tasks(names, None, None, tmp_path, shots=0, limit=1, seed=1)
        return [one.task.name for one in prompted], out

    assert load("smoke") == ([*TASK_NAMES], tmp_path / "smoke")
    assert load("smoke", "ner", "ynat") == (["klue-ner", "ynat"], tmp_path / "smoke")
    with pytest.raises(LaunchError, match=r"set --data FOLDER"):
        load("ynat")
