"""The command line: light help, worked examples, one sentence and exit code 2 for bad input."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from finetune.registry import TASKS
from launch.checks.estimate import Machine, planned_tokens
from launch.cli import STAGE_VERBS, app
from launch.recipe import load_recipe, shipped_recipes
from malmoi import __version__ as malmoi_version
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
        "names = {'torch', 'transformers', 'deepspeed', 'pyarrow', 'datasets', 'inspect_ai', 'openai',\n"
        "         'fastapi', 'uvicorn', 'launch.recipe'}\n"
        "heavy = names & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("verb", [*(verb for verb, *_ in STAGE_VERBS)])
def test_every_verb_has_a_worked_example(verb: str, malmoi: Malmoi) -> None:
    result = malmoi(verb, "--help")
    assert result.code == 0
    assert "Example:" in result.output


def all_commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that help shows, by its words."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        yield (*path, name), command
        if hasattr(command, "commands"):
            yield from all_commands(command, (*path, name))


@pytest.mark.parametrize(("words", "command"), [pytest.param(*one, id=" ".join(one[0])) for one in all_commands()])
def test_brackets_in_help_are_shown(words: tuple[str, ...], command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [command.help or "", *(getattr(param, "help", None) or "" for param in command.params)]
    expected = re.findall(r"\[[^\]]+\]", " ".join(texts).replace("\\[", "["))
    monkeypatch.setenv("COLUMNS", "300")
    output = CliRunner().invoke(app, [*words, "--help"]).output
    assert [text for text in expected if text not in output] == []


def test_brackets_of_spans_are_shown(malmoi: Malmoi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert "[start, end, TYPE]" in malmoi("pii", "detect", "--help").output


@pytest.mark.parametrize(("stage", "tools"), [("tokenizer", ["stats", "extend"]),
                                              ("finetune", ["export"])])  # fmt: skip
def test_help_of_a_stage_with_tools_shows_both(stage: str, tools: list[str], malmoi: Malmoi) -> None:
    output = malmoi(stage, "--help").output
    assert f"malmoi {stage} RECIPE [KEY=VALUE]" in output
    for word in ("--runs", "--dry-run", *tools):
        assert word in output
    assert " build " not in output + malmoi(stage, "smoke", "--help").output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pretian"], "Did you mean 'pretrain'?"),
        (["tokenizer", "stat", "vocab.txt"], "did you mean `malmoi tokenizer stats`?"),
        (["finetune", "real-mni"], "did you mean real-mini?"),
        (["run", "recipes/mien.yaml"], "did you mean recipes/mine.yaml?"),
        (["corpus", "push", "runs/a/corpus"], "corpus push: use `malmoi push FOLDER NAME/REPOSITORY`"),
        (["run", "smoke", "pretrain.steps=many"], "pretrain.steps: must be a whole number (got 'many')"),
        (["run", "smoke", "finetune.seeds=a"], "1 problem in this recipe\n  finetune.seeds.0: must be a whole number"),
        (["run", "smoke", "finetune.overrides.ner.lrr=1"], "did you mean finetune.overrides.ner.lr?"),
        (["run", "smoke", "corpus.pii.seed=1"], "corpus.pii.seed: unknown key; keys here are: "),
    ],
)
def test_a_near_miss_is_answered_with_the_right_word(
    arguments: list[str], words: str, tmp_path: Path, malmoi: Malmoi
) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "mine.yaml").write_text("about: mine\n")
    result = malmoi(*arguments)
    assert result.code == 2
    assert words in result.errors


def test_version_is_printed(malmoi: Malmoi) -> None:
    assert malmoi("--version").output == f"malmoi {malmoi_version}\n"


def test_recipes_are_listed_with_purpose_cost_and_needs(malmoi: Malmoi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    output = malmoi("recipes").output
    for name in shipped_recipes():
        recipe = load_recipe(name)
        assert recipe.about and recipe.cost
        [row] = [line for line in output.splitlines() if line.startswith(f"│ {name} ")]
        assert recipe.about in row and recipe.cost in row and ("GPUs" in row) == ("gpu" in recipe.needs)


def test_tasks_are_listed_with_their_files_and_metrics(malmoi: Malmoi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    output = malmoi("tasks").output
    for name, task in TASKS.items():
        [row] = [line for line in output.splitlines() if line.startswith(f"│ {name} ")]
        assert task.files.dev.split("/")[0] in row and task.predicts in row


def test_a_recipe_is_printed_so_that_it_can_be_copied(tmp_path: Path, malmoi: Malmoi) -> None:
    (tmp_path / "mine.yaml").write_text(malmoi("recipes", "real-mini").output, "utf-8")
    assert load_recipe(str(tmp_path / "mine.yaml")).pretrain == load_recipe("real-mini").pretrain


@pytest.mark.parametrize("name", [name for name in shipped_recipes() if "tokens" in load_recipe(name).cost])
def test_tokens_of_a_recipe_are_counted_right(name: str) -> None:
    assert load_recipe(name).cost == f"{planned_tokens(load_recipe(name)):.1e} tokens".replace("+", "")


@pytest.mark.parametrize(("words", "offered"), [("malmoi run kl", "klue-bert-base"), ("malmoi tokenizer st", "stats")])
def test_shells_complete_recipes_and_tools(
    words: str, offered: str, malmoi: Malmoi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_MALMOI_COMPLETE", "complete_bash"), ("COMP_WORDS", words), ("COMP_CWORD", "2")):
        monkeypatch.setenv(name, value)
    assert offered in malmoi().output.split()


@pytest.mark.parametrize("recipe", shipped_recipes())
def test_dry_run_lists_problems_and_the_plan_and_writes_nothing(
    recipe: str, malmoi: Malmoi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(4, 16 << 30, None, 1)  # whose speed need not be measured, which takes seconds for large models
    monkeypatch.setattr("launch.conduct.this_machine", lambda recipe, trains: machine)
    result = malmoi("run", recipe, "--dry-run")
    needs_inputs = recipe != "smoke"
    assert result.code == (2 if needs_inputs else 0), result.errors
    for message, need in (("corpus.inputs: set files", "text"), ("finetune.data: set the folder", "klue")):
        assert (message in result.output) == (need in load_recipe(recipe).needs)
    assert result.output.index("stop this run") < result.output.index("to do") < result.output.index("Settings of this")
    if recipe not in ("kobest", "benchmark-demo"):  # their files must be there to count the trainings
        assert re.search(r"finetuning: (8|16|24|48|50|64) trainings", result.output)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("verb", "is_shown"), [("run", True), ("corpus", False)])
def test_trainings_are_counted_only_where_there_are_some(verb: str, is_shown: bool, malmoi: Malmoi) -> None:
    assert ("Jobs of finetune" in malmoi(verb, "smoke", "--dry-run").output) is is_shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "smok"], "did you mean smoke"),
        (["run", "smoke", "corpus.seeed=1"], "did you mean corpus.seed"),
        (["corpus", "smoke", "corpus.inputs=absent.jsonl"], "absent.jsonl"),
        (["tokenizer", "smoke"], "not complete; run"),
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
    assert "only the verb pretrain runs under torchrun" in result.errors


def test_json_is_one_flag_of_every_command_that_has_it(capfd: pytest.CaptureFixture[str]) -> None:
    group: Any = typer.main.get_command(app)
    tools = (tool for one in group.commands.values() for tool in getattr(one, "commands", {}).values())
    commands = [*group.commands.values(), *tools]
    options = {one.name: option for one in commands for option in one.params if "--json" in option.opts}
    assert {"predict", "score", "compare", "stats", "status", "recipes", "doctor"} <= options.keys()
    assert all(option.is_flag for option in options.values())
    listed = json.loads(run_command(capfd, "recipes", "--json").output)["recipes"]
    assert {"name": "smoke", "needs": []}.items() <= next(one for one in listed if one["name"] == "smoke").items()
    assert json.loads(run_command(capfd, "recipes", "smoke", "--json").output)["pretrain"]["steps"] > 0


def test_runs_in_object_storage_are_refused(malmoi: Malmoi) -> None:
    malmoi("tokenizer", "smoke", "--runs", "s3://bucket/runs", "--dry-run").refused("a run needs a file system")


@pytest.mark.parametrize("stage", ["corpus", "tokenizer"])
def test_the_old_spelling_of_push_names_the_new_one(stage: str, capfd: pytest.CaptureFixture[str]) -> None:
    run_command(capfd, stage, "push", "runs/smoke", "name/repository").refused("malmoi push FOLDER NAME/REPOSITORY")


@pytest.mark.parametrize(
    ("verb", "place"), [("bench", "python -m benchmarks"), ("plan", "--dry-run"), ("check", "doctor")]
)
def test_a_command_that_moved_says_where(malmoi: Malmoi, verb: str, place: str) -> None:
    malmoi(verb, "smoke").refused(f"malmoi {verb}: moved", place)
