"""The public module: fast to import, documented in full, with clear errors for bad input and foreign packages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import malmoi
from launch.errors import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")  # its examples run in test_docs


def test_importing_it_imports_none_of_the_packages() -> None:
    code = (
        "import sys; before = set(sys.modules); import malmoi\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)\n"
        "sys.exit(str(new - {'malmoi'}) if new - {'malmoi'} else 0)"
    )
    result = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", malmoi.PACKAGES)
def test_a_foreign_package_of_our_name_stops_the_import(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported')\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\ntry: import malmoi\nexcept ImportError as e: print(e)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f"the package `{name}` resolves to {tmp_path / name}, not to malmoi's" in result.stdout
    assert "separate virtual environment" in result.stdout and len(result.stdout.splitlines()) == 1


def test_command_refuses_to_start_with_a_foreign_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "__init__.py").write_text("raise SystemExit('imported')\n")
    result = subprocess.run([sys.executable, "-m", "malmoi", "--help"], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert "the package `tokenizer` resolves to" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_foreign_launch_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "launch").mkdir()
    (tmp_path / "launch" / "__init__.py").write_text("raise SystemExit('imported')\n")
    code = f"import sys; from malmoi import main; sys.path.insert(0, {str(tmp_path)!r}); main()"
    result = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith(f"malmoi: the package `launch` resolves to {tmp_path / 'launch'}, not to")


def test_unsupported_systems_are_sent_to_wsl() -> None:
    assert malmoi._unsupported_system("linux") is malmoi._unsupported_system("darwin") is None
    assert "WSL" in (malmoi._unsupported_system("win32") or "")


def test_tasks_scores_and_personal_data_need_no_torch() -> None:
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({sorted(EXTRAS)}))\n"
        "import malmoi, finetune.registry, finetune.score.scores\n"
        "import corpus.run, tokenizer.run, launch.tools.push, launch.pii.run\n"
        "malmoi.find_pii('010-0123-4567'), malmoi.split_sentences('가. 나.'), malmoi.load_recipe('smoke')\n"
        "for name in finetune.registry.TASKS: malmoi.load_task(name)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", ["__version__", *malmoi.__all__])
def test_every_public_name_is_used_on_its_page(name: str) -> None:
    assert re.search(rf"malmoi\.{name}\b", PAGE)


@pytest.mark.parametrize("call", ["load_task('./model')", "register_models()"])
def test_a_missing_extra_is_answered_as_by_the_command(call: str) -> None:
    code = (
        f"import sys; sys.modules['torch'] = None; import malmoi\ntry: malmoi.{call}\nexcept ValueError as e: print(e)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.stdout.endswith(" needs torch: pip install 'malmoi[train]'\n"), result.stderr


def test_the_version_is_that_of_the_citation_file() -> None:
    assert f"\nversion: {malmoi.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_equal_seeds_and_equal_keys_repeat_replacements() -> None:
    text = "문의 010-0123-4567"
    assert malmoi.pseudonymize(text, seed=1) == malmoi.pseudonymize(text, seed=1) != malmoi.pseudonymize(text, seed=2)
    key = b"a key of invented bytes"
    assert malmoi.pseudonymize(text, key=key) == malmoi.pseudonymize(text, key=key) != text


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: malmoi.find_pii("가", types=["PHONE"]), "unknown type PHONE; expected"),
        (lambda: malmoi.pseudonymize("가", mode="hide"), "mode 'hide': expected one of replace"),  # type: ignore[arg-type]
        (lambda: malmoi.pseudonymize("가", key=b"short"), "at least 16 bytes"),
        (lambda: malmoi.load_task("nothing"), "no such task"),
        (lambda: malmoi.run("smoke", verb="train"), "verb 'train': expected one of sample"),
    ],
)
def test_bad_input_is_a_value_error_that_says_what_to_do(call: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()  # type: ignore[operator]


def test_run_does_a_verb_and_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "news.txt").write_text("비가 오는 날에는 우산을 챙겨서 집을 나섭니다.\n" * 3, "utf-8")
    overrides = [f"corpus.inputs={tmp_path / 'news.txt'}", "workers=1", "name=tiny"]
    folder = malmoi.run("real-mini", *overrides, verb="corpus", runs=tmp_path)
    assert folder == tmp_path / "tiny"
    assert (folder / "corpus" / "manifest.json").is_file()
