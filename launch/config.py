"""Settings of the machinery: where the units of work of a stage are executed, and the language of its pages.

They belong to the machine, change no byte of any result and are no part of a stage's identity: a run begun on a
laptop may go on under Slurm. The price of a cluster is one start of Python per task and a shared file system.
"""

from __future__ import annotations

import os
from typing import Annotated, Literal

from pydantic import Field

from corpus.documents.section import Section

# one line each: these become lines of a batch script
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]
Name = Annotated[str, Field(pattern=r"^[\w.,:=/@+-]*$")]
Option = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]


class SlurmConfig(Section):
    """What ``sbatch`` is told; ``launch.engine=slurm`` only."""

    partition: Name = Field("", description="Partition; empty: the cluster's default.")
    hours: float = Field(24.0, gt=0, description="Time limit of one task, in hours.")
    qos: Name = Field("", description="Quality of service; empty: the cluster's default.")
    setup: Line = Field("", description="Shell command on each node before Python starts, such as `module load gcc`.")
    options: dict[Option, Name] = Field({}, description="Other options of sbatch: {account: nlp}.")


class RayConfig(Section):
    """Where the Ray cluster is; ``launch.engine=ray`` only."""

    address: str = Field(
        "auto", pattern=r"^(auto|[^\s/]+:[0-9]+)$", description="HOST:PORT of the head; auto: the cluster of this node."
    )


class LaunchConfig(Section):
    """Who executes units of work, and how pages speak; everything but ``engine`` and ``language`` is for clusters."""

    engine: Literal["local", "datatrove-local", "slurm", "ray"] = Field(
        "local", description="local: processes on this machine; datatrove-local: the same through datatrove, for tests."
    )
    tasks: int = Field(64, ge=1, le=1_000, description="Most tasks of one stage; each takes every n-th unit.")
    at_once: int | None = Field(None, ge=1, description="Tasks that may run together; null: as many as fit.")
    cpus_per_task: int = Field(
        1,
        ge=1,
        description="Cores of a task, which works in one process; finetune on CPUs: in one for each core.",
    )
    gpus_per_task: int = Field(0, ge=0, description="GPUs of a task of finetune, each with a process of its own.")
    mem_gb_per_cpu: int = Field(2, ge=1, description="GiB of memory for each core; more for large compressed files.")
    slurm: SlurmConfig = SlurmConfig()
    ray: RayConfig = RayConfig()
    language: Literal["auto", "en", "ko"] = Field(
        "auto", description="Of the report and of the corpus card; auto: Korean where the locale is, else English."
    )

    def spoken(self) -> str:
        """``en`` or ``ko``; changes words on pages and nothing else."""
        if self.language != "auto":
            return self.language
        locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
        return "ko" if locale.startswith("ko") else "en"


class SampleConfig(Section):
    """The embedded sample; its KLUE files are always whole, as ``finetune.max_train_examples`` makes those smaller."""

    share: float = Field(1.0, gt=0, le=1, description="Share of the documents, evenly spread over each source.")
