"""Two processes never work on one stage of a run, unless its jobs are claimed one by one."""

from __future__ import annotations

import errno
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import pytest

from corpus.documents.locks import NO_LOCKS_HERE
from launch.conduct import run_stage
from launch.errors import LaunchError
from launch.manifest import lock_stage, read_manifest
from launch.pipeline import Stage
from launch.recipe import Recipe, load_recipe

HOLD = """
import sys, time
from pathlib import Path
from launch.manifest import lock_stage
with lock_stage(Path(sys.argv[1]), "pretrain"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    first = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert first.stdout and first.stdout.readline() == "held\n"
    refusal = pytest.raises(LaunchError, match="pretrain: another malmoi process works here; wait")
    with refusal, lock_stage(tmp_path, "pretrain"):
        pass
    with lock_stage(tmp_path, "finetune"):
        pass
    first.kill()
    first.communicate()
    with lock_stage(tmp_path, "pretrain"):
        pass


@pytest.mark.parametrize("number", [*sorted(NO_LOCKS_HERE), errno.EACCES])
def test_a_file_system_without_locks_is_used_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(self: object) -> None:
        raise OSError(number, "as the system says")

    monkeypatch.setattr("corpus.documents.locks.FileLock.acquire", refuse)
    ending = nullcontext() if number in NO_LOCKS_HERE else pytest.raises(OSError, match="as the system says")
    with ending, lock_stage(tmp_path / "runs" / "mine", "pretrain"):
        pass


@pytest.mark.parametrize("if_busy", ["join", "refuse"])
def test_a_second_command_joins_where_jobs_are_claimed_and_leaves_its_own_manifest(
    tmp_path: Path, if_busy: Literal["join", "refuse"]
) -> None:
    """The second, with other seeds, begins and ends while the first is at work."""
    ours, theirs = (load_recipe("smoke", [f"finetune.seeds={seed}"]) for seed in (1, 2))

    def seeds(recipe: Recipe) -> dict[str, Any]:
        return {"seeds": list(recipe.finetune.seeds)}

    def work(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
        (out / f"seed-{recipe.finetune.seeds[0]}").touch()
        if recipe is ours:
            assert run_stage(stage, theirs, run)
            assert (read_manifest(out) or {})["counts"] == seeds(theirs)
        return seeds(recipe)

    stage = Stage("finetune", seeds, lambda recipe: (), work, is_additive=True, if_busy=if_busy)
    if if_busy == "refuse":
        with pytest.raises(LaunchError, match="another malmoi process works"):
            run_stage(stage, ours, tmp_path)
        return
    assert run_stage(stage, ours, tmp_path)
    assert (read_manifest(tmp_path / "finetune") or {})["counts"] == seeds(ours)
    assert not run_stage(stage, ours, tmp_path)
