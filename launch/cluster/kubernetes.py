"""A manifest for Kubernetes: one JobSet with a Job per stage.

JobSet was chosen over Kubeflow's PyTorchJob: it orders stages (``dependsOn``), restarts them together, gives pods
stable names for the rendezvous, and consists of plain Jobs; Kubeflow's newer Trainer also builds on it. Cost: its
controller, version 0.8 or newer, must be installed.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, get_args

from launch.cluster.jobs import Launch, render, warn_of_unused
from launch.cluster.site import FinetuneTask, PodSecurity, PretrainTask, Task
from launch.errors import LaunchError

PORT = 29500
CACHES = "/var/cache/malmoi"
MAX_NAME_CHARS = 30  # pod names add stage, job and pod number and may have 63 characters


def kubernetes_files(launch: Launch) -> dict[str, str]:
    """The manifest by its file name.

    ``LaunchError`` if the site lacks image, claim or shared folder, or a path is outside the shared folder.
    """
    site = launch.site
    needed = {"container.image": site.container.image, "shared": site.shared, "k8s.claim": site.k8s.claim}
    if missing := [key for key, value in needed.items() if not value]:
        raise LaunchError(f"Kubernetes needs {', '.join(missing)} in site.yaml")
    if site.launcher != "torchrun":
        raise LaunchError("Kubernetes needs launcher: torchrun; for ZeRO set pretrain.engine.name=deepspeed")
    for path in (launch.runs, launch.directory, *([Path(launch.name)] if launch.name.startswith("/") else [])):
        if not path.is_relative_to(site.shared):
            raise LaunchError(f"{path}: outside of {site.shared}, the only folder that pods see; move it there")
    warn_of_unused(launch, ("prepare", "pretrain", "finetune"), "only Slurm has them")
    jobs = [_pods(launch, verb) for verb in launch.verbs]
    own = site.k8s.security_context.items()
    security = {name: value for name, value in own if name not in get_args(PodSecurity)}  # of the container
    values = {"name": dns_name(launch.recipe.name), "jobs": jobs, "caches": CACHES, "security": security}
    return {"jobset.yaml": render("jobset.yaml.j2", launch=launch, **values)}


def dns_name(name: str) -> str:
    """``name`` as Kubernetes accepts it; a changed or shortened name gets a digest, so that it stays unique.

    >>> dns_name("klue-roberta-base"), dns_name("Small_1")
    ('klue-roberta-base', 'small-1-7e11ba')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_NAME_CHARS].strip("-")
    if plain == name and plain[0].isalpha():
        return plain
    digest = hashlib.blake2b(name.encode(), digest_size=3).hexdigest()
    return f"{plain if plain and plain[0].isalpha() else 'run'}-{digest}"


def _pods(launch: Launch, verb: str) -> dict[str, Any]:
    """One Job of the template: a number of pods with the same command."""
    site, task = launch.site, launch.task(verb)
    words = launch.arguments(verb, task)
    pods = task.nodes if isinstance(task, PretrainTask) else task.tasks if isinstance(task, FinetuneTask) else 1
    caches = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")
    own = {name: f"{CACHES}/{name.lower()}" for name in caches}
    if verb == "pretrain":
        first = f"{dns_name(launch.recipe.name)}-pretrain-0-0.{dns_name(launch.recipe.name)}"
        own["OMP_NUM_THREADS"] = str(site.pretrain.threads)
        where = [f"--master-addr={first}", f"--master-port={site.port or PORT}", "-m", "launch"]
        words = ["torchrun", f"--nnodes={pods}", f"--nproc-per-node={site.pretrain.processes_per_node}", *where, *words]
    else:
        words = ["malmoi", *words]
    requests = {"cpu": str(task.cpus)} | ({"memory": f"{task.memory_gb}Gi"} if task.memory_gb else {})
    gpus = {site.k8s.gpu: str(task.gpus)} if task.gpus else {}
    limits = {key: value for key, value in requests.items() if key == "memory"} | gpus
    escaped = {name: _literal(value) for name, value in (own | launch.variables()).items()}
    what = {"verb": verb, "pods": pods, "command": list(map(_literal, words)), "variables": escaped}
    return what | {"pod": _pod_fields(launch, task), "requests": requests | gpus, "limits": limits}


def _pod_fields(launch: Launch, task: Task) -> dict[str, Any]:
    """Fields of a pod by the site's keys, without those that are not set."""
    k8s = launch.site.k8s
    fields = {
        "nodeSelector": k8s.node_selector | task.node_selector,
        "tolerations": k8s.tolerations,
        "imagePullSecrets": [{"name": k8s.pull_secret}] if k8s.pull_secret else [],
        "serviceAccountName": k8s.service_account,
        "securityContext": {
            name: value for name, value in k8s.security_context.items() if name in get_args(PodSecurity)
        },
    }
    return {name: value for name, value in fields.items() if value}


def _literal(text: str) -> str:
    """Escape ``$``, as Kubernetes replaces $(NAME)."""
    return text.replace("$", "$$")
