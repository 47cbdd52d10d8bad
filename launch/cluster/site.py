"""``site.yaml``: a description of the cluster, written once for all recipes and read by ``malmoi launch``.

Every value becomes part of a script or a manifest, so each is one line with a checked form. There is no key for shell
code; modules, files to source and variables are data.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from corpus.documents.section import Section
from launch.config import OneLine, Options
from launch.errors import LaunchError
from launch.recipe import read_mapping, validated

Folder = Annotated[str, Field(pattern=r"^(/[^\x00-\x1f\x7f]*)?$")]
File = Annotated[str, Field(pattern=r"^/[^\x00-\x1f\x7f]+$")]
Module = Annotated[str, Field(pattern=r"^\w[\w.,:=/@+-]*$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Interface = Annotated[str, Field(pattern=r"^[\w=^][\w.,:-]*$|^$")]
Address = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$")]
Host = Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9._:-]*$")]
Label = Annotated[str, Field(pattern=r"^([a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?)?$")]
TaintWord = Annotated[str, Field(pattern=r"^[A-Za-z0-9./_-]*$")]
Labels = dict[
    Annotated[str, Field(pattern=r"^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")],
    Annotated[str, Field(pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$")],
]
Resource = Annotated[str, Field(pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")]


class Task(Section):
    """What one task asks for: a stage on one machine, one machine of pretraining, or one task of finetune."""

    removed: ClassVar[Mapping[str, str]] = {"partition": "set options: {partition: …}"}

    cpus: int = Field(8, ge=1, description="Cores.")
    gpus: int = Field(0, ge=0, description="GPUs.")
    memory_gb: int | None = Field(None, ge=1, description="GiB of host memory; null: the cluster's default.")
    hours: float = Field(24.0, gt=0, description="Time limit; the job is requeued and resumes after it.")
    options: Options = Field({}, description="Options of sbatch: {partition: gpu, gres: 'gpu:a100:8'}.")
    node_selector: Labels = Field({}, description="Kubernetes: labels of its nodes, with those of k8s.node_selector.")


class PretrainTask(Task, frozen=True, extra="forbid"):
    """The machines of pretraining."""

    gpus: int = Field(1, ge=0, description="GPUs of each machine.")
    nodes: int = Field(1, ge=1, description="Machines.")
    processes: int | None = Field(None, ge=1, description="Processes per machine; null: one per GPU, or one.")

    @property
    def processes_per_node(self) -> int:
        """Processes on each machine."""
        return self.processes or self.gpus or 1

    @property
    def threads(self) -> int:
        """Threads of each process."""
        return max(1, self.cpus // self.processes_per_node)


class FinetuneTask(Task, frozen=True, extra="forbid"):
    """Tasks that take fine-tuning jobs from one queue."""

    gpus: int = Field(1, ge=0, description="GPUs of each task; 0: one process per core.")
    tasks: int = Field(1, ge=1, le=1_000, description="Maximum tasks at the same time.")


class Container(Section):
    """An image with malmoi, used instead of the environment of the command; Apptainer runs it on Slurm and hosts."""

    image: OneLine = Field("", description="File or address of the image; empty: no container.")
    mounts: list[File] = Field([], description="Folders to mount in addition to shared, local and the run's folder.")


PodSecurity = Literal[
    "fsGroup", "fsGroupChangePolicy", "seLinuxChangePolicy", "supplementalGroups", "supplementalGroupsPolicy",
    "sysctls",
]  # fmt: skip
ContainerSecurity = Literal[  # those that a pod has, too, are set for the container
    "allowPrivilegeEscalation", "appArmorProfile", "capabilities", "privileged", "procMount",
    "readOnlyRootFilesystem", "runAsGroup", "runAsNonRoot", "runAsUser", "seLinuxOptions", "seccompProfile",
]  # fmt: skip


class KubernetesSite(Section):
    """Where the JobSet runs in Kubernetes."""

    namespace: Label = Field("", description="Namespace; empty: kubectl's default.")
    claim: Label = Field("", description="PersistentVolumeClaim (ReadWriteMany) to mount at shared.")
    gpu: Resource = Field("nvidia.com/gpu", description="Name of the GPU resource.")
    restarts: int = Field(20, ge=0, description="Maximum restarts of the run after failures.")
    queue: Label = Field("", description="Local queue of Kueue; empty: no queue.")
    node_selector: Labels = Field({}, description="Labels of the nodes of all stages.")
    tolerations: list[dict[Literal["key", "operator", "value", "effect"], TaintWord]] = Field(
        [], description="Taints that pods accept: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]."
    )
    pull_secret: Label = Field("", description="Secret of the registry of container.image.")
    service_account: Label = Field("", description="Service account of the pods; empty: the namespace's default.")
    security_context: dict[PodSecurity | ContainerSecurity, Any] = Field(
        {}, description="Kubernetes' securityContext: {runAsUser: 1000, fsGroup: 1000, runAsNonRoot: true}."
    )


class HostsSite(Section):
    """Machines that ssh reaches without a password."""

    names: list[Host] = Field(
        [], description="Hosts in rank order, such as gpu1, me@gpu2 or gpu3:2222; the first one also runs other stages."
    )
    addresses: dict[Address, Address] = Field(
        {}, description="Addresses of hosts whose names only ssh resolves: {gpu1: 10.0.0.1}."
    )
    elastic: bool = Field(False, description="Let torchrun continue with the remaining hosts when one is lost.")

    @model_validator(mode="after")
    def _check_addresses(self) -> HostsSite:
        if unknown := self.addresses.keys() - {_split_host(name)[0] for name in self.names}:
            raise ValueError(f"addresses: {', '.join(sorted(unknown))} not in names")
        return self

    def address(self, name: str) -> str:
        """Where the other hosts reach one of ``names``."""
        host, _ = _split_host(name)
        return self.addresses.get(host, host)

    @staticmethod
    def target(name: str) -> str:
        """One of ``names`` as ssh takes it."""
        return f"ssh://{name}" if _split_host(name)[1] else name


def _split_host(name: str) -> tuple[str, str]:
    """Host and port of ``[user@]host[:port]``; an IPv6 address, which has several colons, has no port."""
    host = name.rpartition("@")[2]
    name, _, port = host.partition(":")
    return (name, port) if host.count(":") == 1 else (host, "")


class Site(Section):
    """A cluster. Nothing here changes a result."""

    shared: Folder = Field("", description="Folder that every node sees under this path; runs are in its runs/.")
    local: Folder = Field("", description="Fast folder of each node for compiled kernels; empty: $TMPDIR or /tmp.")
    interface: Interface = Field("", description="Network interface of gloo and nccl; empty: that of the route.")
    port: int | None = Field(None, ge=1024, le=65_535, description="Rendezvous port; null: from the job number.")
    sources: list[File] = Field([], description="Files that the shell sources first: /etc/profile.d/modules.sh.")
    modules: list[Module] = Field([], description="Arguments of `module load`.")
    environment: dict[Variable, OneLine] = Field({}, description="Environment variables on every node.")
    container: Container = Container()
    launcher: Literal["torchrun", "deepspeed"] = Field("torchrun", description="Launcher of the pretraining processes.")
    prepare: Task = Field(Task(), description="Tasks of corpus, tokenizer, pack and report.")
    pretrain: PretrainTask = PretrainTask()
    finetune: FinetuneTask = FinetuneTask()
    slurm: Options = Field({}, description="Options of sbatch for every stage: {account: nlp, export: NONE}.")
    k8s: KubernetesSite = KubernetesSite()
    hosts: HostsSite = HostsSite()


def load_site(path: Path | None) -> Site:
    """The site of a YAML file; None: ``site.yaml`` of the current folder if it exists, else the defaults.

    ``LaunchError`` for a missing file, broken YAML, or invalid values; every problem is listed with its key.
    """
    if path is None:
        path = Path("site.yaml")
        if not path.is_file():
            return Site()
    if not path.is_file():
        raise LaunchError(f"{path}: no such file; create one with `malmoi launch site > site.yaml`")
    return validated(Site, read_mapping(path, "site"), path, "site")
