"""Settings of the machine: where the units of a stage are executed, and the language of the report and card.

They change no result and are not part of a stage's identity: a run started on a laptop may resume under Slurm.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from corpus.documents.section import Section

# one line each: they become lines of a batch script
OneLine = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]
Option = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
OptionValue = Literal[True] | Annotated[str, Field(pattern=r"^[\w.,:=/@+&|*()\[\]!%-]*$")]
OWN_OPTIONS = frozenset({"array", "dependency", "job-name", "nodes", "ntasks", "ntasks-per-node", "output", "wrap"})


def _check_options(options: dict[str, Any]) -> dict[str, Any]:
    if own := sorted(OWN_OPTIONS & options.keys()):
        raise ValueError(f"{', '.join(own)}: set by malmoi; remove it from the options")
    return options


# of sbatch, by name; true: an option without a value; empty: malmoi's own value is removed
Options = Annotated[dict[Option, OptionValue], AfterValidator(_check_options)]


class SlurmConfig(Section):
    """Options of ``sbatch``; ``launch.engine=slurm`` only."""

    removed: ClassVar[Mapping[str, str]] = {k: f"set launch.slurm.options={{{k}: …}}" for k in ("partition", "qos")}

    hours: float = Field(24.0, gt=0, description="Time limit of one task, in hours.")
    setup: OneLine = Field(
        "", description="Shell command on each node before Python starts, such as `module load gcc`."
    )
    options: Options = Field({}, description="Other options of sbatch: {partition: cpu, account: nlp}.")
    stages: dict[Literal["corpus", "tokenizer", "pack", "finetune"], Options] = Field(
        {}, description="Options of single stages, which replace those above: {finetune: {gres: 'gpu:a100:1'}}."
    )


class LaunchConfig(Section):
    """Who executes the units of a stage. Settings other than ``engine`` and ``language`` are for clusters."""

    removed: ClassVar[Mapping[str, str]] = {"ray": "set the environment variable RAY_ADDRESS=HOST:PORT"}

    engine: Literal["local", "slurm", "ray"] = Field(
        "local", description="local: processes on this machine. slurm: a job array. ray: a running Ray cluster."
    )
    tasks: int = Field(64, ge=1, le=1_000, description="Maximum tasks of one stage; each takes every n-th unit.")
    at_once: int | None = Field(None, ge=1, description="Tasks that may run together; null: no limit.")
    cpus_per_task: int = Field(
        1, ge=1, description="Cores of a task, which runs one process; finetune on CPUs runs one process per core."
    )
    gpus_per_task: int = Field(0, ge=0, description="GPUs of a finetune task, one process per GPU.")
    mem_gb_per_cpu: int = Field(2, ge=1, description="GiB of memory per core; raise it for large compressed files.")
    slurm: SlurmConfig = SlurmConfig()
    language: Literal["auto", "en", "ko"] = Field(
        "auto", description="Language of report and corpus card; auto: Korean for a Korean locale, else English."
    )

    def for_stage(self, stage: Literal["corpus", "tokenizer", "pack", "finetune"]) -> LaunchConfig:
        """The same with ``slurm.options`` of one stage."""
        options = self.slurm.options | self.slurm.stages.get(stage, {})
        return self.model_copy(update={"slurm": self.slurm.model_copy(update={"options": options})})

    def resolve_language(self) -> str:
        """``en`` or ``ko``."""
        if self.language != "auto":
            return self.language
        locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
        return "ko" if locale.startswith("ko") else "en"
