"""What is to be started where: stages, their commands, and the problems that would stop them on any machine.

Files on a cluster start the same verbs that a person would type: ``malmoi corpus RECIPE …``; whoever reads one can
repeat it by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from launch.checks.preflight import find_problems
from launch.cluster.jobs.config import PretrainTask, Site, Task
from launch.errors import LaunchError
from launch.pipeline import STAGES, VERBS
from launch.recipe import Recipe, load_recipe, locate_recipe, shipped_recipes

CLUSTER_VERBS = ("corpus", "tokenizer", "pack", "pretrain", "finetune", "report")  # in the order of a run
FOLDER_NAME = "launch"  # in the run's folder: scripts, manifests and logs


@dataclass(frozen=True, slots=True)
class Launch:
    """A recipe on a site. ``name``: what a command calls the recipe; ``directory``: where relative paths start."""

    recipe: Recipe
    name: str
    overrides: tuple[str, ...]
    verbs: tuple[str, ...]
    runs: Path
    directory: Path
    site: Site

    @property
    def run(self) -> Path:
        """The run's folder."""
        return self.runs / self.recipe.name

    @property
    def folder(self) -> Path:
        """Where the files go."""
        return self.run / FOLDER_NAME

    def task(self, verb: str) -> Task:
        """What the verb asks for."""
        site = self.site
        return {"pretrain": site.pretrain, "finetune": site.finetune}.get(verb, site.prepare)

    def arguments(self, verb: str, task: Task) -> list[str]:
        """Words after ``malmoi`` for one task of the verb, with the processes that its cores allow."""
        more = [] if verb == "pretrain" else [f"workers={task.cpus}"]
        if verb == "finetune":
            more.append("launch.engine=local")  # each task joins the queue by itself
        return [verb, self.name, *self.overrides, *more, "--runs", str(self.runs)]

    def variables(self) -> dict[str, str]:
        """Environment on every node."""
        site = self.site
        own = {"GLOO_SOCKET_IFNAME": site.interface, "NCCL_SOCKET_IFNAME": site.interface} if site.interface else {}
        own |= {"HF_HOME": f"{site.shared}/huggingface"} if site.shared else {}
        return own | site.environment

    def threads(self) -> int:
        """Of each process of pretraining."""
        task: PretrainTask = self.site.pretrain
        return max(1, task.cpus // task.processes_here)


def plan_launch(
    name: str, overrides: Sequence[str], site: Site, runs: Path | None, stages: Sequence[str] = ()
) -> Launch:
    """The launch of a recipe; relative paths mean the current folder.

    Args:
        runs: folder of the run folders; None: ``runs`` in the site's shared folder, or here.
        stages: verbs, in any order; none: all.

    Raises:
        LaunchError: the recipe has problems, or there is no such stage.
    """
    unknown = [stage for stage in stages if stage not in CLUSTER_VERBS]
    if unknown:
        raise LaunchError(f"--stages {', '.join(unknown)}: no such stage; stages are {', '.join(CLUSTER_VERBS)}")
    recipe = load_recipe(name, overrides)
    path = locate_recipe(name)
    return Launch(
        recipe=recipe,
        name=name if path in shipped_recipes().values() else str(path.absolute()),
        overrides=tuple(overrides),
        verbs=tuple(verb for verb in CLUSTER_VERBS if not stages or verb in stages),
        runs=(runs if runs is not None else Path(site.shared) / "runs").absolute(),
        directory=Path.cwd(),
        site=site,
    )


def check_launch(launch: Launch) -> None:
    """``LaunchError`` with what would stop the stages on every machine: missing inputs, files, extras."""
    names = {stage for verb in launch.verbs for stage in VERBS[verb]}
    stages = [
        stage for stage in STAGES if stage.name in names and (stage.name != "sample" or launch.recipe.uses_sample)
    ]
    problems = find_problems("launch", stages, launch.recipe, launch.run, None)
    if problems:
        raise LaunchError("\n".join(problems))


def own_binaries() -> str:
    """The folder of the command ``malmoi`` of this environment, and of torchrun and deepspeed."""
    return str(Path(sys.executable).parent)
