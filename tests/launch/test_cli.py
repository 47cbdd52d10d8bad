"""The command line: light help, worked examples, one sentence and exit code 2 for bad input."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from launch.cli import STAGE_VERBS
from launch.recipe import shipped_recipes


def malmoi(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "launch", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, input=stdin)


def test_help_imports_no_heavy_library() -> None:
    code = (
        "import sys, launch.cli, contextlib\n"
        "with contextlib.suppress(SystemExit): launch.cli.app(['--help'])\n"
        "heavy = {'torch', 'transformers', 'deepspeed', 'pyarrow', 'datasets'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("verb", [*(verb for verb, _, _ in STAGE_VERBS), "corpus", "tokenizer", "finetune"])
def test_every_verb_has_a_worked_example(verb: str, tmp_path: Path) -> None:
    result = malmoi(verb, "--help", cwd=tmp_path)
    assert result.returncode == 0
    assert "Example:" in result.stdout


@pytest.mark.parametrize("arguments", [["pii"], ["pii", "detect"]])
def test_brackets_in_help_are_shown(arguments: list[str], tmp_path: Path) -> None:
    shown = malmoi(*arguments, "--help", cwd=tmp_path).stdout
    assert "[start, end, TYPE]" in " ".join(shown.replace("│", " ").split())


@pytest.mark.parametrize("recipe", shipped_recipes())
def test_dry_run_says_what_is_missing_then_the_plan_and_writes_nothing(recipe: str, tmp_path: Path) -> None:
    result = malmoi("run", recipe, "--dry-run", cwd=tmp_path)
    needs_inputs = recipe != "smoke"
    assert result.returncode == (2 if needs_inputs else 0), result.stderr
    assert ("corpus.inputs is empty" in result.stdout) == ("finetune.data is empty" in result.stdout) == needs_inputs
    assert result.stdout.index("stop this run") < result.stdout.index("to do") < result.stdout.index("What differs")
    assert re.search(r"finetuning: (8|16) trainings", result.stdout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "smok"], "did you mean smoke"),
        (["run", "smoke", "corpus.seeed=1"], "did you mean corpus.seed"),
        (["corpus", "smoke", "corpus.inputs=absent.jsonl"], "absent.jsonl"),
        (["tokenizer", "smoke"], "not complete yet"),
        (["run", "smoke", "finetune.data=nowhere", "corpus.inputs=nowhere"], "nowhere"),
    ],
)
def test_bad_input_gets_one_sentence_and_code_2(arguments: list[str], words: str, tmp_path: Path) -> None:
    result = malmoi(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_output_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    result = malmoi("sample", "smoke", "--runs", "taken", cwd=tmp_path)
    assert result.returncode == 2
    assert "taken" in result.stderr
    assert "Traceback" not in result.stderr


def test_two_processes_may_only_pretrain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = malmoi("run", "smoke", cwd=tmp_path)
    assert result.returncode == 2
    assert "use the verb pretrain" in result.stderr
