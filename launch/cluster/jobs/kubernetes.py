"""A manifest for Kubernetes: one JobSet with a Job for each stage.

Choice: JobSet rather than Kubeflow's PyTorchJob. It orders stages (``dependsOn``), restarts them together, gives pods
stable names for the rendezvous, and its parts are plain Jobs; Kubeflow's newer Trainer builds on it, too. Price: its
controller must be installed, and version 0.8 or newer.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from launch.cluster.jobs.config import FinetuneTask, PretrainTask
from launch.cluster.jobs.plan import Launch
from launch.cluster.jobs.render import render
from launch.errors import LaunchError

PORT = 29500
CACHES = "/var/cache/malmoi"
MOST_LETTERS = 30  # of a name; with stage and numbers of job and pod the pods may have 63


class Pods(NamedTuple):
    """One Job: so many pods, each with the command."""

    verb: str
    pods: int
    command: list[str]
    variables: dict[str, str]
    requests: dict[str, str]
    limits: dict[str, str]


def kubernetes_files(launch: Launch) -> dict[str, str]:
    """The manifest by its file name.

    Raises:
        LaunchError: the site lacks image, claim or shared folder, or the run or the recipe lies outside of that.
    """
    _check(launch)
    jobs = [_pods(launch, verb) for verb in launch.verbs]
    return {
        "jobset.yaml": render(
            "jobset.yaml.j2", launch=launch, name=dns_name(launch.recipe.name), jobs=jobs, caches=CACHES
        )
    }


def dns_name(name: str) -> str:
    """``name`` as Kubernetes takes it; what had to be changed or cut is told apart by a digest.

    >>> dns_name("klue-roberta-base"), dns_name("Small_1")
    ('klue-roberta-base', 'small-1-7e11ba')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MOST_LETTERS].strip("-")
    if plain == name and plain[0].isalpha():
        return plain
    digest = hashlib.blake2b(name.encode(), digest_size=3).hexdigest()
    return f"{plain if plain and plain[0].isalpha() else 'run'}-{digest}"


def _check(launch: Launch) -> None:
    site = launch.site
    needed = {"container.image": site.container.image, "shared": site.shared, "k8s.claim": site.k8s.claim}
    if missing := [key for key, value in needed.items() if not value]:
        raise LaunchError(f"Kubernetes needs {', '.join(missing)} in site.yaml")
    if site.launcher != "torchrun":
        raise LaunchError("pods are started by torchrun; DeepSpeed as engine is pretrain.engine.name=deepspeed")
    for path in (launch.runs, launch.directory, *([Path(launch.name)] if launch.name.startswith("/") else [])):
        if not path.is_relative_to(site.shared):
            raise LaunchError(f"{path}: lies outside of {site.shared}, which is all that pods see; work in there")


def _pods(launch: Launch, verb: str) -> Pods:
    site, task = launch.site, launch.task(verb)
    words = launch.arguments(verb, task)
    pods = task.nodes if isinstance(task, PretrainTask) else task.tasks if isinstance(task, FinetuneTask) else 1
    own = {
        name: f"{CACHES}/{name.lower()}" for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")
    }
    if verb == "pretrain":
        first = f"{dns_name(launch.recipe.name)}-pretrain-0-0.{dns_name(launch.recipe.name)}"
        own["OMP_NUM_THREADS"] = str(launch.threads())
        where = [f"--master-addr={first}", f"--master-port={site.port or PORT}", "-m", "launch"]
        words = ["torchrun", f"--nnodes={pods}", f"--nproc-per-node={site.pretrain.processes_here}", *where, *words]
    else:
        words = ["malmoi", *words]
    variables = own | launch.variables()
    requests = {"cpu": str(task.cpus)} | ({"memory": f"{task.memory_gb}Gi"} if task.memory_gb else {})
    gpus = {site.k8s.gpu: str(task.gpus)} if task.gpus else {}
    limits = {key: value for key, value in requests.items() if key == "memory"} | gpus
    escaped = {name: _literal(value) for name, value in variables.items()}
    return Pods(verb, pods, [_literal(word) for word in words], escaped, requests | gpus, limits)


def _literal(text: str) -> str:
    """As Kubernetes reads it, which replaces $(NAME)."""
    return text.replace("$", "$$")
