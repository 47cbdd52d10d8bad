"""The wheel holds exactly malmoi.py, five packages, recipes, templates and the sample: no tests, no runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from launch.errors import EXTRAS
from malmoi import PACKAGES

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in (*PACKAGES, "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("malmoi.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    [wheel] = out.glob("malmoi-*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_wheel_holds_every_module_and_nothing_else(names: list[str]) -> None:
    modules = {str(p.relative_to(ROOT)) for package in PACKAGES for p in (ROOT / package).rglob("*.py")}
    kinds = (".yaml", ".j2", ".css", ".txt", ".jsonl")
    data = {str(p.relative_to(ROOT)) for package in PACKAGES for p in (ROOT / package).rglob("*") if p.suffix in kinds}
    data |= {f"{package}/py.typed" for package in PACKAGES}
    data |= {f"launch/sample/{name}" for name in ("documents.tar.zst", "klue.tar.zst", "SHA256SUMS", "README.md")}
    held = {name for name in names if ".dist-info/" not in name}
    assert held == modules | data | {"malmoi.py"}
    assert any(name.endswith("recipes/smoke.yaml") for name in held)


def test_the_fixed_packages_are_in_base_and_extras_and_every_named_extra_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    base = {Requirement(line).name for line in project["dependencies"]}
    train = {Requirement(line).name for name in ("train", "hub") for line in extras[name]}
    fixed = {"tokenizers", "python-mecab-ko", "transformers", "torch", "datasets", "rank-bm25", "faker"}
    assert fixed <= base | train
    assert not base & {"torch", "deepspeed", "accelerate"}
    assert not {Requirement(line).name for line in extras["train"]} & {"deepspeed", "kiwipiepy"}
    assert set(EXTRAS.values()) <= extras.keys()


def test_wheel_has_the_command_and_the_licence(names: list[str]) -> None:
    assert any(name.endswith("entry_points.txt") for name in names)
    assert any(name.endswith("LICENSE") for name in names)


def test_each_version_is_pinned_once_and_what_only_tests_need_is_not_pinned_for_users() -> None:
    user, developer = (
        {line.partition("==")[0].lower() for line in (ROOT / name).read_text("utf-8").splitlines() if "==" in line}
        for name in ("constraints.txt", "constraints-dev.txt")
    )
    assert not user & developer
    assert not user & {"pytest", "mypy", "ruff", "flask", "moto", "sqlalchemy", "lm_eval"}
    assert "-c constraints.txt" in (ROOT / "constraints-dev.txt").read_text("utf-8").splitlines()


def test_the_container_gets_what_the_wheel_is_built_from() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert kept == {*PACKAGES, "malmoi.py", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"}
    assert all((ROOT / name).exists() for name in kept)
