"""The manifest against published schemas: Jobs against Kubernetes' own, the JobSet against Kubeflow's copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import kubernetes_validate
import pytest
import yaml
from pydantic import ValidationError

from launch.cluster.jobs import plan_launch
from launch.cluster.kubernetes import dns_name, kubernetes_files
from launch.cluster.site import ContainerSecurity, PodSecurity, Site
from launch.errors import LaunchError

VERSION = "1.30"  # of Kubernetes
HOSTILE = ["$(HOME)", '": [', "a\nb: c", "{{ x }}", "- x", "*anchor", "가나다 #", "'", "\\", "null", "1e3"]


PLACED = {
    "claim": "text",
    "queue": "nlp-queue",
    "node_selector": {"cloud.example/pool": "nlp"},
    "tolerations": [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "value": "nlp"},
    ],
    "pull_secret": "registry",
    "service_account": "trainer",
    "security_context": {
        "runAsUser": 1000, "runAsNonRoot": True, "fsGroup": 2000, "supplementalGroups": [3000],
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}  # fmt: skip


def manifest(folder: Path, overrides: list[str] | None = None, **settings: Any) -> dict[str, Any]:
    image, claim = {"image": "registry.example/malmoi:1"}, {"claim": "text", "namespace": "nlp"}
    site = Site(**{"shared": str(folder), "container": image, "k8s": claim, **settings})
    launch = plan_launch("smoke", overrides or [], site, None)
    return dict(yaml.safe_load(kubernetes_files(launch)["jobset.yaml"]))


@pytest.fixture(autouse=True)
def _works_in_the_shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lost(given: Any, kept: Any, key: str = "") -> list[str]:
    """Keys of ``given`` that ``kept`` lacks or has otherwise."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [
            name for k, v in given.items() for name in (lost(v, kept[k], f"{key}.{k}") if k in kept else [f"{key}.{k}"])
        ]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [name for pair in zip(given, kept, strict=True) for name in lost(*pair, key)]
    return [] if given == kept else [key]


def jobs_of(jobset: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each Job as Kubernetes would get it."""
    head = {"apiVersion": "batch/v1", "kind": "Job"}
    parts = jobset["spec"]["replicatedJobs"]
    return {
        part["name"]: head | {"metadata": {"name": part["name"]}, "spec": part["template"]["spec"]} for part in parts
    }


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pretrain": {"nodes": 2, "gpus": 8, "memory_gb": 400}, "finetune": {"tasks": 4}, "port": 29600},
        {"local": "/scratch", "interface": "ib0", "environment": {"HF_HUB_OFFLINE": "1"}},
        {"k8s": PLACED, "pretrain": {"node_selector": {"gpu": "h100"}}},
    ],
)
def test_the_manifest_follows_the_published_schemas(settings: dict[str, Any], tmp_path: Path) -> None:
    from kubeflow_trainer_api.models.jobset_v1alpha2_job_set import JobsetV1alpha2JobSet

    made = manifest(tmp_path, **settings)
    assert lost(made, JobsetV1alpha2JobSet.from_dict(made).to_dict()) == []  # it passes over keys that it does not know
    for job in jobs_of(made).values():
        kubernetes_validate.validate(job, VERSION, strict=True)


def test_pods_run_where_and_as_whom_the_site_says(tmp_path: Path) -> None:
    """The restricted standard of Kubernetes' pod security: fsGroup is of the pod, the others are of the container."""
    made = manifest(tmp_path, k8s=PLACED, pretrain={"node_selector": {"gpu": "h100"}})
    assert made["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "nlp-queue"}
    pods = {name: job["spec"]["template"]["spec"] for name, job in jobs_of(made).items()}
    assert pods["corpus"]["nodeSelector"] == PLACED["node_selector"]
    assert pods["pretrain"]["nodeSelector"] == {"cloud.example/pool": "nlp", "gpu": "h100"}
    for pod in pods.values():
        assert pod["tolerations"] == [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "team", "value": "nlp"},
        ]
        assert (pod["imagePullSecrets"], pod["serviceAccountName"]) == ([{"name": "registry"}], "trainer")
        assert pod["securityContext"] == {"fsGroup": 2000, "supplementalGroups": [3000]}
        [container] = pod["containers"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"].keys() | pod["securityContext"].keys() == PLACED["security_context"].keys()


def test_fields_of_the_security_context_are_those_of_kubernetes() -> None:
    """Without the options of Windows."""
    from kubeflow_trainer_api.models.io_k8s_api_core_v1_pod_security_context import IoK8sApiCoreV1PodSecurityContext
    from kubeflow_trainer_api.models.io_k8s_api_core_v1_security_context import IoK8sApiCoreV1SecurityContext

    pod, container = (
        {field.alias or name for name, field in model.model_fields.items()} - {"windowsOptions"}
        for model in (IoK8sApiCoreV1PodSecurityContext, IoK8sApiCoreV1SecurityContext)
    )
    assert set(get_args(PodSecurity)) == pod - container
    assert set(get_args(ContainerSecurity)) == container


@pytest.mark.parametrize(
    "k8s",
    [
        {"security_context": {"runAsUsr": 1000}},
        {"tolerations": [{"keys": "gpu"}]},
        {"tolerations": [{"key": "a b"}]},
        {"node_selector": {"a b": "c"}},
        {"queue": "Not A Name"},
    ],
)
def test_values_that_kubernetes_would_refuse_are_refused(k8s: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Site.model_validate({"k8s": k8s})


def test_the_schemas_notice_a_wrong_key(tmp_path: Path) -> None:
    job = jobs_of(manifest(tmp_path))["corpus"]
    job["spec"]["template"]["spec"]["containers"][0]["comand"] = ["x"]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSION, strict=True)


@pytest.mark.parametrize("value", HOSTILE)
def test_values_are_single_words_in_the_manifest(value: str, tmp_path: Path) -> None:
    made = manifest(tmp_path, [f"about={value}"], environment={"HOSTILE": value.replace("\n", "")})
    assert [part["name"] for part in made["spec"]["replicatedJobs"]] == [
        "corpus", "tokenizer", "pack", "pretrain", "finetune", "report",
    ]  # fmt: skip
    container = jobs_of(made)["corpus"]["spec"]["template"]["spec"]["containers"][0]
    as_read = value.replace("$", "$$")  # which Kubernetes turns into one
    assert container["command"][:4] == ["malmoi", "corpus", "smoke", f"about={as_read}"]
    assert {"name": "HOSTILE", "value": as_read.replace("\n", "")} in container["env"]


def test_stages_wait_for_each_other_and_hosts_meet_at_the_first_pod(tmp_path: Path) -> None:
    made = manifest(tmp_path, pretrain={"nodes": 3, "gpus": 4})
    parts = {part["name"]: part for part in made["spec"]["replicatedJobs"]}
    assert "dependsOn" not in parts["corpus"]
    assert parts["pretrain"]["dependsOn"] == [{"name": "pack", "status": "Complete"}]
    pretrain = jobs_of(made)["pretrain"]["spec"]
    assert (pretrain["completions"], pretrain["parallelism"]) == (3, 3)
    command = pretrain["template"]["spec"]["containers"][0]["command"]
    assert {"--nnodes=3", "--nproc-per-node=4", "--master-addr=smoke-pretrain-0-0.smoke"} <= set(command)


def test_names_are_those_of_dns() -> None:
    names = ["klue-roberta-base", "가나다", "Small_1", "small-1", "x" * 90, "9lives", "a.b"]
    made = [dns_name(name) for name in names]
    assert made[0] == names[0]
    assert len(set(made)) == len(names)
    assert all(len(f"{name}-tokenizer-0-999-abcde") <= 63 and name[0].isalpha() for name in made)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"container": {}}, "Kubernetes needs container.image in site.yaml"),
        ({"k8s": {}, "shared": ""}, "Kubernetes needs shared, k8s.claim"),
        ({"launcher": "deepspeed"}, "Kubernetes needs launcher: torchrun"),
        ({"shared": "/elsewhere"}, "outside of /elsewhere"),
    ],
)
def test_missing_settings_are_reported(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=message):
        manifest(tmp_path, **settings)


def test_memory_and_gpus_are_limited_and_cores_only_requested(tmp_path: Path) -> None:
    made = manifest(tmp_path, pretrain={"cpus": 6, "gpus": 2, "memory_gb": 40}, finetune={"gpus": 0})
    found = {name: job["spec"]["template"]["spec"]["containers"][0]["resources"] for name, job in jobs_of(made).items()}
    gpus = {"nvidia.com/gpu": "2"}
    assert found["pretrain"] == {"requests": {"cpu": "6", "memory": "40Gi"} | gpus, "limits": {"memory": "40Gi"} | gpus}
    assert found["finetune"] == {"requests": {"cpu": "8"}, "limits": {}}
