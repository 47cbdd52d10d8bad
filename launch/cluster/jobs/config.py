"""``site.yaml``: what a cluster is like, written once for all recipes, and read by ``malmoi launch``.

Every value becomes part of a script or a manifest, so each is one line of a known form, and there is no key for shell
code: modules, files that the shell reads first and variables say the same as data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from corpus.documents.section import Section
from launch.config import Line, Name, Option
from launch.errors import LaunchError
from launch.plain_yaml import NotPlain, read_yaml
from launch.recipe import validated

Folder = Annotated[str, Field(pattern=r"^(/[^\x00-\x1f\x7f]*)?$")]
File = Annotated[str, Field(pattern=r"^/[^\x00-\x1f\x7f]+$")]
Module = Annotated[str, Field(pattern=r"^\w[\w.,:=/@+-]*$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Interface = Annotated[str, Field(pattern=r"^[\w=^][\w.,:-]*$|^$")]
Host = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*@)?[A-Za-z0-9._:-]*$")]
Label = Annotated[str, Field(pattern=r"^([a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?)?$")]
Resource = Annotated[str, Field(pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")]


class Task(Section):
    """What one task asks for: a stage on one machine, a machine of pretraining, or a task of finetune."""

    partition: Name = Field("", description="Slurm: partition; empty: slurm.partition.")
    cpus: int = Field(8, ge=1, description="Cores.")
    gpus: int = Field(0, ge=0, description="GPUs.")
    memory_gb: int | None = Field(None, ge=1, description="GiB of host memory; null: what the cluster gives.")
    hours: float = Field(24.0, gt=0, description="Time limit. Stages go back into the queue and go on, see docs.")


class PretrainTask(Task, frozen=True, extra="forbid"):
    """The machines that pretrain together."""

    gpus: int = Field(1, ge=0, description="GPUs of each machine.")
    nodes: int = Field(1, ge=1, description="Machines.")
    processes: int | None = Field(None, ge=1, description="Of each machine; null: one for each GPU, or one.")

    @property
    def processes_here(self) -> int:
        """Processes on each machine."""
        return self.processes or self.gpus or 1


class FinetuneTask(Task, frozen=True, extra="forbid"):
    """Tasks that take fine-tuning jobs from one queue."""

    gpus: int = Field(1, ge=0, description="GPUs of each task; 0: a process for each core.")
    tasks: int = Field(1, ge=1, le=1_000, description="Most tasks side by side.")


class Container(Section):
    """An image with malmoi in it, in place of the environment that the command runs in."""

    image: Line = Field("", description="File or address of the image; empty: none.")
    runtime: Literal["apptainer", "pyxis"] = Field("apptainer", description="Who starts it under Slurm and on hosts.")
    mounts: list[File] = Field([], description="Folders to be seen inside, besides shared, local and the run's.")


class SlurmSite(Section):
    """What ``sbatch`` is told for every stage."""

    account: Name = Field("", description="Who pays; empty: the user's default.")
    partition: Name = Field("", description="Partition; empty: the cluster's default.")
    qos: Name = Field("", description="Quality of service; empty: the cluster's default.")
    options: dict[Option, Name] = Field({}, description="Other options of sbatch: {constraint: a100}.")


class KubernetesSite(Section):
    """Where in Kubernetes."""

    namespace: Label = Field("", description="Namespace; empty: kubectl's.")
    claim: Label = Field("", description="PersistentVolumeClaim (ReadWriteMany) that is mounted at shared.")
    gpu: Resource = Field("nvidia.com/gpu", description="Name of the GPU resource.")
    restarts: int = Field(20, ge=0, description="How often the whole run starts again after a failure.")


class HostsSite(Section):
    """Machines that are reached by ssh without a password."""

    names: list[Host] = Field([], description="In the order of ranks; the first one also does the other stages.")
    elastic: bool = Field(False, description="torchrun goes on with the machines that are left.")


class Site(Section):
    """A cluster. Nothing here changes a result."""

    shared: Folder = Field("", description="Folder that every node sees under this path; runs lie in its runs/.")
    local: Folder = Field("", description="Fast folder of each node, for compiled kernels; empty: $TMPDIR or /tmp.")
    interface: Interface = Field("", description="Network interface of gloo and nccl; empty: that of the route.")
    port: int | None = Field(None, ge=1024, le=65_535, description="Of the rendezvous; null: one by the job's number.")
    sources: list[File] = Field([], description="Files that the shell reads first: /etc/profile.d/modules.sh.")
    modules: list[Module] = Field([], description="What `module load` is given.")
    environment: dict[Variable, Line] = Field({}, description="Variables on every node.")
    container: Container = Container()
    launcher: Literal["torchrun", "deepspeed"] = Field("torchrun", description="Who starts pretraining's processes.")
    prepare: Task = Field(Task(), description="Tasks of corpus, tokenizer, pack and report.")
    pretrain: PretrainTask = PretrainTask()
    finetune: FinetuneTask = FinetuneTask()
    slurm: SlurmSite = SlurmSite()
    k8s: KubernetesSite = KubernetesSite()
    hosts: HostsSite = HostsSite()


def load_site(path: Path | None) -> Site:
    """The site of a YAML file; None: ``site.yaml`` of the current folder where there is one, else the defaults.

    Raises:
        LaunchError: no such file, broken YAML, or problems in values; every problem is listed with its key.
    """
    if path is None:
        path = Path("site.yaml")
        if not path.is_file():
            return Site()
    if not path.is_file():
        raise LaunchError(f"{path}: no such file; `malmoi launch site > site.yaml` writes one to begin with")
    try:
        values = read_yaml(path)
    except NotPlain as error:
        raise LaunchError(f"{path}: not readable as YAML: {error}") from None
    if not isinstance(values, dict | None):
        raise LaunchError(f"{path}: a site is a mapping of settings, this file holds a {type(values).__name__}")
    return validated(Site, values or {}, path, "site")
