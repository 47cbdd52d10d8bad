"""The stages of a recipe as jobs on a cluster: their commands, their files, and the command that submits them.

The files start the same verbs that a person would type (``malmoi corpus RECIPE …``), so each step can be repeated by
hand. Every ``{{ value }}`` in a template is quoted for the shell, or written as JSON in a manifest; the few filters
below check what they write unquoted.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import atomic_write
from corpus.documents.escaping import escape_controls
from corpus.documents.templates import load_templates
from launch.checks.preflight import find_problems, format_problems
from launch.cluster.site import Site, Task
from launch.console import PlainConsole
from launch.errors import LaunchError, require
from launch.pipeline import STAGES, stages_of
from launch.recipe import Recipe, load_recipe, locate_recipe, shipped_recipes

log = logging.getLogger(__name__)

CLUSTER_VERBS = ("corpus", "tokenizer", "pack", "pretrain", "finetune", "report")  # in the order of a run
FOLDER_NAME = "launch"  # in the run's folder: scripts, manifests and logs
UNSAFE_IN_DIRECTIVES = re.compile(r"[^\w./+,:@=%&|*()\[\]!-]")
MAX_HANGS = 3  # of pretraining after one checkpoint; more need a person
MAX_RESTARTS = 50  # of a stage that reached its time limit; each resumes from the finished units


@dataclass(frozen=True, slots=True)
class Launch:
    """A recipe on a site. ``name``: the recipe's name in commands; ``directory``: base of relative paths."""

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
        """The folder of the job files."""
        return self.run / FOLDER_NAME

    def task(self, verb: str) -> Task:
        """What the verb asks for."""
        site = self.site
        return {"pretrain": site.pretrain, "finetune": site.finetune}.get(verb, site.prepare)

    def arguments(self, verb: str, task: Task) -> list[str]:
        """Words after ``malmoi`` for one task of the verb, with one process per core."""
        more = [] if verb == "pretrain" else [f"workers={task.cpus}"]
        if verb == "finetune":
            more.append("launch.engine=local")  # each task joins the queue itself
        return [verb, self.name, *self.overrides, *more, "--runs", str(self.runs)]

    def variables(self) -> dict[str, str]:
        """Environment variables on every node."""
        site = self.site
        own = {"GLOO_SOCKET_IFNAME": site.interface, "NCCL_SOCKET_IFNAME": site.interface} if site.interface else {}
        own |= {"HF_HOME": f"{site.shared}/huggingface"} if site.shared else {}
        return own | site.environment


def plan_launch(
    name: str, overrides: Sequence[str], site: Site, runs: Path | None, stages: Sequence[str] = ()
) -> Launch:
    """The launch of a recipe from the current folder; ``LaunchError`` if it has problems, or for an unknown stage.

    Args:
        runs: folder of the run folders; None: ``runs`` in the site's shared folder, or here.
        stages: verbs in any order; none: all.
    """
    if unknown := [stage for stage in stages if stage not in CLUSTER_VERBS]:
        raise LaunchError(f"--stages {', '.join(unknown)}: no such stage; stages are {', '.join(CLUSTER_VERBS)}")
    recipe, path = load_recipe(name, overrides), locate_recipe(name)
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
    site = launch.site
    if site.launcher == "deepspeed" and not site.container.image and "pretrain" in launch.verbs:
        require("launcher: deepspeed", ["deepspeed"])
    names = {stage.name for verb in launch.verbs for stage in stages_of(verb, launch.recipe)}
    stages = [stage for stage in STAGES if stage.name in names]
    processes = site.pretrain.nodes * site.pretrain.processes_per_node
    if problems := find_problems("launch", stages, launch.recipe, launch.run, None, processes):
        raise LaunchError(format_problems(launch.recipe.name, problems))


def warn_of_unused(launch: Launch, tasks: Sequence[str], reason: str) -> None:
    """Log which options of sbatch are not used."""
    options = [f"{name}.options.{key}" for name in tasks for key in getattr(launch.site, name).options]
    if options:
        log.warning("not used: %s (%s)", ", ".join(options), reason)


def deliver(launch: Launch, files: Mapping[str, str], start: Sequence[str], *, dry_run: bool, submit: bool) -> None:
    """Write ``files`` into the launch's folder, then print (or with ``submit`` run) the command that starts them.

    ``LaunchError`` if the command is not installed here, or it failed.

    Args:
        files: texts by file name.
        start: the command, run in that folder.
        dry_run: print the files and write nothing.
    """
    console = PlainConsole(soft_wrap=True)
    if dry_run:
        for name, text in files.items():
            console.print(f"──── {launch.folder / name}\n{text}")
        return
    (launch.folder / "logs").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        atomic_write(launch.folder / name, text)
        if name.endswith(".sh"):
            (launch.folder / name).chmod(0o755)  # deepspeed starts node.sh as a program
    words = shlex.join([start[0], *(str(launch.folder / word) if word in files else word for word in start[1:])])
    console.print(f"{launch.folder}: {', '.join(files)}")
    if not submit:
        console.print(f"to start:  {words}")
        return
    if shutil.which(start[0]) is None:
        raise LaunchError(f"{start[0]} is not installed on this machine; on one that has it, run {words}")
    if code := subprocess.run(shlex.split(words), check=False).returncode:
        raise LaunchError(f"{words} ended with {code}; its message is above")


class Plain(str):
    """Text that is written unquoted."""


def render(template: str, **values: Any) -> str:
    """The text of a template in ``templates/``."""
    is_yaml = template.endswith(".yaml.j2")

    def quote(value: object) -> str:
        if isinstance(value, Plain):
            return value
        return json.dumps(value) if is_yaml else shlex.quote(str(value))

    environment = load_templates(
        "launch.cluster",
        "templates",
        comment_start_string="{##",  # {# begins the length of an array in bash
        comment_end_string="##}",
        finalize=quote,
    )
    environment.globals |= {
        "binaries": str(Path(sys.executable).parent),  # malmoi, torchrun and deepspeed of this environment
        "max_hangs": MAX_HANGS,
        "max_restarts": MAX_RESTARTS,
    }
    environment.filters |= {
        "words": lambda words: Plain(shlex.join(words)),
        "comment": lambda text: Plain(" ".join(escape_controls(str(text)).split())),  # on one line
        "directive": _directive,
        "plain": Plain,
        "mapping": lambda values: Plain(json.dumps(values)),  # JSON is also YAML
    }
    return environment.get_template(template).render(**values)


def _directive(text: str) -> Plain:
    """An option on a line ``#SBATCH``; ``LaunchError`` for characters that sbatch could misread."""
    if unsafe := UNSAFE_IN_DIRECTIVES.search(text):
        raise LaunchError(f"{text}: a line #SBATCH cannot hold {unsafe[0]!r}; choose another folder or name")
    return Plain(text)
