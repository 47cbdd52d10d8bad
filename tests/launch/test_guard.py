"""The start-up guard: a foreign package of one of our names is refused before anything is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from launch.errors import LaunchError
from launch.guard import refuse_foreign_packages


def test_our_own_packages_pass() -> None:
    refuse_foreign_packages()


def test_foreign_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="the package `corpus` resolves to"):
        refuse_foreign_packages(home=tmp_path)


def test_command_refuses_to_start_beside_a_foreign_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "__init__.py").write_text("raise SystemExit('imported')\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from launch.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "the package `tokenizer` resolves to" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
