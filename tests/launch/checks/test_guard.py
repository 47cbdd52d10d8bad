"""Before anything is imported: other systems, foreign packages of our names and missing extras get one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from launch.checks.guard import foreign_package, unsupported_system
from launch.errors import EXTRAS, NEEDED_BY_STAGE


def test_our_own_packages_pass() -> None:
    assert foreign_package() is None


def test_foreign_package_is_named(tmp_path: Path) -> None:
    assert (foreign_package(home=tmp_path) or "").startswith("the package `corpus` resolves to")


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
    assert unsupported_system("linux") is unsupported_system("darwin") is None
    assert "WSL" in (unsupported_system("win32") or "")


@pytest.mark.parametrize(
    ("arguments", "blocked", "sentence"),
    [
        (["pretrain", "smoke"], "torch", "pretrain needs torch: pip install 'malmoi[train]'"),
        (["run", "smoke"], "accelerate", "run needs accelerate: pip install 'malmoi[train]'"),
        (["pack", "smoke"], "transformers", "pack needs transformers: pip install 'malmoi[train]'"),
        (
            ["corpus", "real-mini", "corpus.inputs=hub:set"],
            "datasets",
            "corpus needs datasets: pip install 'malmoi[hub]'",
        ),
    ],
)
def test_a_missing_extra_is_one_sentence(tmp_path: Path, arguments: list[str], blocked: str, sentence: str) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_text('{"text": "가"}\n', "utf-8")
    code = f"import sys; sys.modules[{blocked!r}] = None; from launch.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert f"malmoi: {sentence}\n" in result.stderr
    assert "Traceback" not in result.stderr


def test_every_module_that_a_stage_needs_has_an_extra() -> None:
    assert {module for modules in NEEDED_BY_STAGE.values() for module in modules} <= EXTRAS.keys()
