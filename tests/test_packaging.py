"""The wheel holds exactly our five packages, the recipes, the report's templates and the sample: no tests, no runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from launch.guard import PACKAGES

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in (*PACKAGES, "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    [wheel] = out.glob("malmoi-*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_wheel_holds_every_module_and_nothing_else(names: list[str]) -> None:
    modules = {str(p.relative_to(ROOT)) for package in PACKAGES for p in (ROOT / package).rglob("*.py")}
    kinds = (".yaml", ".j2", ".css")
    data = {str(p.relative_to(ROOT)) for package in PACKAGES for p in (ROOT / package).rglob("*") if p.suffix in kinds}
    data |= {f"launch/sample/{name}" for name in ("documents.tar.zst", "klue.tar.zst", "SHA256SUMS", "README.md")}
    held = {name for name in names if ".dist-info/" not in name}
    assert held == modules | data
    assert any(name.endswith("recipes/smoke.yaml") for name in held)


def test_wheel_has_the_command_and_the_licence(names: list[str]) -> None:
    assert any(name.endswith("entry_points.txt") for name in names)
    assert any(name.endswith("LICENSE") for name in names)
