"""README and docs are correct: commands print what is shown; files, functions, settings and options exist.

A ``console`` block has commands after ``$`` and their output; ``…`` at the end of a line, or alone, replaces omitted
output. Commands that read ``runs/smoke`` are tested after the demo (mark ``demo``). ``tests/launch/test_launchers.py``
and the continuous integration run commands that start a launcher or make.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.reference import find_commands, find_settings, render_commands, render_settings
from launch.cluster.site import Site, load_site
from launch.recipe import Recipe, load_recipe
from tests.command import run_command
from tests.recorded_demo import RECORD, changed_settings, scores_of_runs, table

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "README.ko.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TWINS = [(ROOT / "README.md", ROOT / "README.ko.md"), (ROOT / "docs" / "tour.md", ROOT / "docs" / "ko" / "tour.md")]
STAGES = ("corpus", "tokenizer", "pretrain", "finetune", "launch")
DEMO_RUN = ROOT / "runs" / "smoke"
ELSEWHERE = ("make ", "pip ", "docker ", "torchrun ", "deepspeed ", "malmoi run")
BLOCK = re.compile(r"```.*?```", re.DOTALL)
FIGURE = re.compile(r"[0-9](?:[0-9.,]*[0-9])?")
NOT_PROSE = re.compile(r"\]\([^)]*\)|`[^`]*`")


def console_blocks() -> list[tuple[str, str, str]]:
    """(page, command, printed text) of every command shown; what twins show alike once."""
    found: dict[tuple[str, str], str] = {}
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, printed = part.partition("\n")
                found.setdefault((command.strip(), printed), page.name)
    return [(page, command, printed) for (command, printed), page in found.items()]


HERE = [block for block in console_blocks() if not block[1].startswith(ELSEWHERE)]
QUICK = [block for block in HERE if "runs/smoke" not in block[1]]
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
AFTER_DEMO = [block for block in HERE if "runs/smoke" in block[1]]


def matches(shown: str, printed: str) -> bool:
    """Whether ``printed`` holds the shown lines in order; "…" leaves out the rest of a line or whole lines."""
    lines = iter(line.rstrip() for line in printed.splitlines())
    wanted = [line.rstrip() for line in shown.strip("\n").splitlines() if line.strip() not in ("…", "")]
    return all(
        any(line.startswith(want[:-1].rstrip()) if want.endswith("…") else line == want for line in lines)
        for want in wanted
    )


def test_pages_show_commands() -> None:
    assert len(QUICK) >= 3


@pytest.mark.parametrize(("page", "command", "shown"), QUICK, ids=[f"{p}: {c[:50]}" for p, c, _ in QUICK])
def test_command_prints_what_the_page_shows(
    page: str,
    command: str,
    shown: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not command.startswith("malmoi ") or re.search(r"[|<>;&$\n]", command):
        run_and_compare(command, shown, tmp_path)
        return
    monkeypatch.chdir(tmp_path)
    for name, value in PLAIN.items():
        monkeypatch.setenv(name, value)
    outcome = run_command(capfd, *shlex.split(command)[1:])  # a process would first import torch
    assert outcome.code in (0, 2), outcome.errors
    assert matches(shown, outcome.output + outcome.errors), outcome.output + outcome.errors


STARTED = [command for _, command, _ in console_blocks() if command.startswith(ELSEWHERE)]
LONG = [command for command in STARTED if not command.startswith(ELSEWHERE[:3])]


@pytest.mark.parametrize("command", LONG)
def test_long_command_names_a_recipe_and_overrides_that_load(command: str) -> None:
    recipe, *overrides = re.split(r" (?:run|pretrain) ", command, maxsplit=1)[1].split()
    load_recipe(recipe, overrides)


@pytest.mark.demo
@pytest.mark.parametrize(("page", "command", "shown"), AFTER_DEMO, ids=[f"{p}: {c[:50]}" for p, c, _ in AFTER_DEMO])
def test_command_on_the_demo_prints_what_the_page_shows(page: str, command: str, shown: str) -> None:
    need_demo()
    run_and_compare(command, shown, ROOT)


def run_and_compare(command: str, shown: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | PLAIN | {"PATH": path}
    result = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=folder, env=environment, timeout=120
    )
    assert result.returncode in (0, 2), result.stderr
    assert matches(shown, result.stdout + result.stderr), result.stdout + result.stderr


def need_demo() -> None:
    if not (DEMO_RUN / "report" / "manifest.json").is_file():
        pytest.skip("needs the finished demo in runs/smoke (make demo)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_give_what_the_page_shows(page: Path) -> None:
    failures, _ = doctest.testfile(str(page), module_relative=False)
    assert failures == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_functions_named_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for name in re.findall(r"`((?:corpus|tokenizer|pretrain|finetune|launch|benchmarks|tests|docs)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name
    for name, attribute in re.findall(r"`([\w/]+\.py):(\w+)`", text):
        tree = ast.parse((ROOT / name).read_text("utf-8"))
        defined = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        names = [t for n in tree.body for t in getattr(n, "targets", [getattr(n, "target", None)])]
        defined |= {name.id for name in names if isinstance(name, ast.Name)}
        assert attribute in defined, f"{name}:{attribute}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("folder", [*STAGES, "benchmarks"])
def test_pages_named_in_code_exist(folder: str) -> None:
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".yaml", ".j2", ".txt")]
    named = {name for path in files for name in re.findall(r"docs/[\w/-]+\.md", path.read_text("utf-8"))}
    assert {name for name in named if not (ROOT / name).is_file()} == set()


@pytest.mark.parametrize(("english", "korean"), TWINS, ids=lambda page: page.name)
def test_korean_pages_have_the_commands_and_figures_of_the_english(english: Path, korean: Path) -> None:
    texts = [page.read_text("utf-8") for page in (english, korean)]
    blocks = [BLOCK.findall(text) for text in texts]
    assert blocks[0] == blocks[1]
    names = [re.findall(r"`[^`\n]+`", BLOCK.sub("", text)) for text in texts]
    assert sorted(names[0]) == sorted(names[1])
    prose = [NOT_PROSE.sub("", BLOCK.sub("", text)) for text in texts]
    assert sorted(FIGURE.findall(prose[0])) == sorted(FIGURE.findall(prose[1]))


SETTINGS = frozenset(setting.key for setting in find_settings())
KEY = re.compile(r"(?<![\w./-])(?:corpus|tokenizer|pack|pretrain|finetune|embed|launch)(?:\.[a-z_][\w-]*)+(?![\w/(])")
NOT_KEYS = re.compile(r"\.(?:md|py|yaml|json|jsonl|html)\b|```python.*?```|`inspect.*?`|https?:\S+", re.DOTALL)


def exists(key: str) -> bool:
    """Whether ``key`` is a setting, a section of settings, or a key below a map with names of the user's choice."""
    words = key.split(".")
    for setting in SETTINGS:
        known = setting.split(".")
        pairs = zip(words, known, strict=False)
        if len(words) <= len(known) and all(word == other or other in ("NAME", "N") for word, other in pairs):
            return True
    parents = [".".join(words[:end]) for end in range(2, len(words))]
    return any(parent in FREE_MAPS for parent in parents)


FREE_MAPS = {setting.key for setting in find_settings() if setting.type.startswith(("map of", "list of map"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_named_exist(page: Path) -> None:
    text = re.sub(
        r"```(?:python|console)?\n.*?```", lambda m: m[0] if "malmoi" in m[0] else "", page.read_text("utf-8")
    )
    text = NOT_KEYS.sub(" ", text)
    assert [key for key in KEY.findall(text) if not exists(key)] == []


def shown_commands(page: Path) -> Iterator[list[str]]:
    """Words of every ``malmoi`` command line in code blocks and code spans of a page."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    lines += re.findall(r"`(malmoi [^`]+)`", BLOCK.sub("", text))
    for line in lines:
        for part in re.split(r"\||&&|;|#", line):
            if found := re.search(r"(?:^|[ $])(?:malmoi|-m launch|--module launch) (.+)", part):
                yield found[1].replace("…", "").split()


COMMANDS = {path[1:]: command for path, command in find_commands()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_named_exist(page: Path) -> None:
    for words in shown_commands(page):
        if words[0].startswith("-") or not re.fullmatch(r"[a-z0-9-]+", words[0]):
            continue  # malmoi --help; malmoi COMMAND
        path = next((tuple(words[:n]) for n in (3, 2, 1) if tuple(words[:n]) in COMMANDS), None)
        assert path, f"malmoi {words[0]}"
        options = {option for parameter in COMMANDS[path].params for option in parameter.opts}
        named = {word.split("=")[0] for word in words if word.startswith("--") and len(word) > 2}
        assert named <= options | {"--help"}, f"malmoi {' '.join(path)}"


def recipes_on_pages() -> list[tuple[str, str]]:
    """(page, text) of every YAML block: a recipe or a part of one, or a site if the first line says so."""
    blocks = ((page.name, re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)) for page in PAGES)
    return [(name, text) for name, texts in blocks for text in texts]


@pytest.mark.parametrize(("page", "text"), recipes_on_pages(), ids=lambda value: value[:40])
def test_recipes_on_pages_load(page: str, text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "shown.yaml"
    path.write_text(text, "utf-8")
    if text.startswith("# site.yaml"):
        load_site(path)
    else:
        load_recipe(str(path))
    assert not caplog.messages  # no old names


STEP = re.compile(r"─+ ([a-z][\w ]*?) ─*▶")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_steps_in_diagrams_exist(page: Path) -> None:
    """A step between two arrows is called like a function, a module or a folder."""
    for block in BLOCK.findall(page.read_text("utf-8")):
        for step in STEP.findall(block):
            assert step.replace(" ", "_") in NAMES_IN_CODE, step


def names_in_code() -> frozenset[str]:
    """Names of folders, modules and functions of all stages; of ``decide_drops`` also ``decide``."""
    found: set[str] = set()
    for path in (path for stage in STAGES for path in (ROOT / stage).rglob("*.py")):
        found |= {path.stem, path.parent.name, *re.findall(r"def (\w+)", path.read_text("utf-8"))}
    return frozenset(found | {name.split("_")[0] for name in found})


NAMES_IN_CODE = names_in_code()


def test_every_setting_has_a_description_on_the_reference_page() -> None:
    page = render_settings()
    assert [s.key for s in [*find_settings(Recipe), *find_settings(Site)] if not s.description] == []
    assert all(f"| `{key}` |" in page for key in SETTINGS)


def test_every_command_is_on_the_reference_page_with_its_options() -> None:
    page = render_commands()
    assert {"run", "corpus", "score", "pii", "doctor"} <= {path[0] for path in COMMANDS}
    for path, command in COMMANDS.items():
        assert f"## {shlex.join(('malmoi', *path))}" in page
        assert command.help


def test_scores_in_the_readme_were_recorded_from_the_recipe_as_it_is() -> None:
    recorded = json.loads(RECORD.read_text("utf-8"))
    assert not changed_settings(recorded["settings"]), "run make demo, then python -m tests.recorded_demo"
    for page, _ in (TWINS[0], TWINS[0][::-1]):
        assert table(recorded["scores"]) in page.read_text("utf-8")


@pytest.mark.demo
def test_demo_scores_what_was_recorded() -> None:
    need_demo()
    recorded = json.loads(RECORD.read_text("utf-8"))
    tolerance = 10.0  # other processors round otherwise, and small dev sets make points of that
    found = scores_of_runs()
    assert [(row["task"], row["metric"], row["n"]) for row in found] == [
        (row["task"], row["metric"], row["n"]) for row in recorded["scores"]
    ]
    for row, was in zip(found, recorded["scores"], strict=True):
        assert was["low"] - tolerance <= row["mean"] <= was["high"] + tolerance, row


@pytest.mark.demo
def test_demo_learns_most_tasks() -> None:
    need_demo()
    results = [json.loads(path.read_text("utf-8")) for path in DEMO_RUN.glob("finetune/*/model/seed-*/scores.json")]
    learnt = {
        found["task"]
        for found in results
        if (found["scores"][found["headline"]] or 0.0) > (found["constant"][found["headline"]] or 0.0) + 5.0
    }
    assert {"ynat", "klue-sts", "klue-nli", "klue-ner", "klue-re", "klue-dp"} <= learnt


def modules_with_examples() -> list[str]:
    """Names of our modules whose docstrings hold examples after ``>>>``."""
    paths = (path for stage in STAGES for path in (ROOT / stage).rglob("*.py"))
    found = (path for path in paths if re.search("^ *>>> ", path.read_text("utf-8"), re.MULTILINE))
    return sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in found)


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings_give_what_they_show(name: str) -> None:
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert tried and not failures
