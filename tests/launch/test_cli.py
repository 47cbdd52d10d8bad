"""The command line: light help, worked examples, one sentence and exit code 2 for bad input."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.cli import STAGE_VERBS
from launch.recipe import shipped_recipes
from tests.command import Outcome, run_command

Malmoi = Callable[..., Outcome]


@pytest.fixture
def malmoi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Malmoi:
    """The command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run_command(capfd, *arguments)


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
def test_every_verb_has_a_worked_example(verb: str, malmoi: Malmoi) -> None:
    result = malmoi(verb, "--help")
    assert result.code == 0
    assert "Example:" in result.output


@pytest.mark.parametrize("arguments", [["pii"], ["pii", "detect"]])
def test_brackets_in_help_are_shown(arguments: list[str], malmoi: Malmoi) -> None:
    shown = malmoi(*arguments, "--help").output
    assert "[start, end, TYPE]" in " ".join(shown.replace("│", " ").split())


@pytest.mark.parametrize("recipe", shipped_recipes())
def test_dry_run_says_what_is_missing_then_the_plan_and_writes_nothing(
    recipe: str, malmoi: Malmoi, tmp_path: Path
) -> None:
    result = malmoi("run", recipe, "--dry-run")
    needs_inputs = recipe != "smoke"
    assert result.code == (2 if needs_inputs else 0), result.errors
    assert ("corpus.inputs is empty" in result.output) == ("finetune.data is empty" in result.output) == needs_inputs
    assert result.output.index("stop this run") < result.output.index("to do") < result.output.index("What differs")
    assert re.search(r"finetuning: (8|16) trainings", result.output)
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
def test_bad_input_gets_one_sentence_and_code_2(arguments: list[str], words: str, malmoi: Malmoi) -> None:
    malmoi(*arguments).refused(words)


def test_output_folder_that_cannot_be_made_is_one_sentence(malmoi: Malmoi, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    malmoi("sample", "smoke", "--runs", "taken").refused("taken")


def test_two_processes_may_only_pretrain(malmoi: Malmoi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = malmoi("run", "smoke")
    assert result.code == 2
    assert "use the verb pretrain" in result.errors
