"""Batch scripts hold the values of recipe and site as data; a real Slurm runs them in test_slurm.py."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from launch.cluster import jobs
from launch.cluster.jobs import check_launch, plan_launch
from launch.cluster.scripts import slurm_files
from launch.cluster.site import Site, load_site
from launch.errors import LaunchError

HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "a b",
    "\n touch pwned",
    "\\",
    "#",
]
RECORD = '#!/bin/bash\nprintf "%s\\0" "$(basename "$0")" "$@" "END" >> "$CALLS"\n'
RUNS_ITS_COMMAND = '#!/bin/bash\nwhile [ "$1" != bash ]; do shift; done; "$@"\n'


@pytest.fixture
def fake_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fake commands in front of PATH: srun runs its task, the others record their arguments in a file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in {
        "srun": RUNS_ITS_COMMAND,
        **dict.fromkeys(("malmoi", "torchrun", "module", "apptainer"), RECORD),
    }.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "scontrol").write_text(
        '#!/bin/bash\n[ "$2" = hostnames ] && printf "first-host\nsecond-host\n"\n'
        '[ "$2" = node ] && echo "NodeName=$3 Arch=x86_64" && echo "   NodeAddr=10.0.0.${#3} NodeHostName=$3"\n'
    )
    (folder / "getent").write_text('#!/bin/bash\n[ "$RESOLVES" = yes ]\n')
    (folder / "getent").chmod(0o755)
    (folder / "scontrol").chmod(0o755)
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    return folder


def run_script(text: str, folder: Path, **variables: str) -> list[list[str]]:
    """The arguments of the commands that a script called."""
    calls = folder / "calls"
    calls.unlink(missing_ok=True)
    slurm = {"SLURM_JOB_ID": "7", "SLURM_NNODES": "2", "SLURM_NODEID": "0", "SLURMD_NODENAME": "first-host"}
    slurm |= {"SLURM_CPUS_PER_TASK": "2", "SLURM_JOB_NODELIST": "first-host,second-host", "CALLS": str(calls)}
    slurm |= {"RESOLVES": "yes"}
    environment = os.environ | slurm | variables
    done = subprocess.run(["bash"], input=text, text=True, env=environment, capture_output=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    words = calls.read_text("utf-8").split("\0")
    return [
        call.split("\1")
        for call in "\1".join(words).removesuffix("\1").replace("\1END", "\2").strip("\2").split("\2\1")
    ]


@pytest.mark.parametrize("value", HOSTILE)
def test_values_are_single_words_in_batch_scripts(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_commands: Path
) -> None:
    here = tmp_path / f"folder {value}".replace("/", "")
    here.mkdir()
    monkeypatch.chdir(here)
    site = Site(environment={"HOSTILE": value.replace("\n", "")}, pretrain={"cpus": 2})
    about = f"about={value}"
    launch = plan_launch("smoke", [about], site, tmp_path / "runs")
    files = slurm_files(launch)
    for verb in ("corpus", "pretrain"):
        (call,) = run_script(files[f"{verb}.sbatch"], here)
        first = 1 if verb == "corpus" else call.index("pretrain")
        assert call[first : first + 3] == [verb, "smoke", about]
        assert call[-2:] == ["--runs", str(tmp_path / "runs")]
    assert not list(tmp_path.rglob("pwned"))


def test_variables_and_caches_reach_the_command(tmp_path: Path, fake_commands: Path) -> None:
    site = Site(environment={"HOSTILE": "$(id) '"}, local=str(tmp_path / "fast disk"), interface="ib0")
    (fake_commands / "malmoi").write_text(
        '#!/bin/bash\nprintf "%s\\0" "$HOSTILE" "$TRITON_CACHE_DIR" "$NCCL_SOCKET_IFNAME" > "$CALLS"\n'
    )
    script = slurm_files(plan_launch("smoke", [], site, tmp_path / "runs"))["corpus.sbatch"]
    run_script(script, tmp_path)
    hostile, cache, interface, _ = (tmp_path / "calls").read_text().split("\0")
    assert (hostile, cache, interface) == ("$(id) '", f"{tmp_path}/fast disk/malmoi-{os.getuid()}/triton", "ib0")
    assert (tmp_path / "fast disk" / f"malmoi-{os.getuid()}").stat().st_mode & 0o777 == 0o700


def test_a_cache_folder_of_another_user_is_not_used(tmp_path: Path, fake_commands: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (tmp_path / f"malmoi-{os.getuid()}").symlink_to(theirs)
    (fake_commands / "malmoi").write_text('#!/bin/bash\necho -n "$TRITON_CACHE_DIR" > "$CALLS"\n')
    script = slurm_files(plan_launch("smoke", [], Site(local=str(tmp_path)), tmp_path / "runs"))["corpus.sbatch"]
    run_script(script, tmp_path)
    assert not (tmp_path / "calls").read_text().startswith(str(tmp_path / "malmoi-"))


def test_pretraining_meets_at_the_first_host(tmp_path: Path, fake_commands: Path) -> None:
    site = Site(pretrain={"nodes": 2, "gpus": 4, "cpus": 32})
    launch = plan_launch("smoke", [], site, tmp_path / "runs")
    script = slurm_files(launch)["pretrain.sbatch"]
    (call,) = run_script(script, tmp_path, SLURM_NODEID="1", SLURMD_NODENAME="second-host")
    assert call[0] == "torchrun"
    assert {"--nnodes=2", "--nproc-per-node=4", "--rdzv-backend=c10d", "--rdzv-endpoint=first-host:20007"} <= set(call)
    assert {"--rdzv-conf=is_host=0", "--local-addr=second-host"} <= set(call)
    assert "export OMP_NUM_THREADS=8" in script
    assert {"#SBATCH --nodes=2", "#SBATCH --gres=gpu:4", "#SBATCH --requeue", "#SBATCH --signal=USR1@300"} <= set(
        script.splitlines()
    )


def test_names_that_do_not_resolve_are_replaced_by_the_addresses_that_slurm_has(
    tmp_path: Path, fake_commands: Path
) -> None:
    script = slurm_files(plan_launch("smoke", [], Site(), tmp_path / "runs"))["pretrain.sbatch"]
    (call,) = run_script(script, tmp_path, SLURMD_NODENAME="second-host", RESOLVES="no")
    assert {"--rdzv-endpoint=10.0.0.10:20007", "--local-addr=10.0.0.11"} <= set(call)


def directives_of(folder: Path, site: dict[str, Any], **how: bool) -> dict[str, set[str]]:
    files = slurm_files(plan_launch("smoke", [], Site(**site), folder / "runs"), **how)
    lines = {name: set(text.splitlines()) for name, text in files.items() if name.endswith(".sbatch")}
    return {
        name.removesuffix(".sbatch"): {line for line in found if "#SBATCH" in line} for name, found in lines.items()
    }


def test_each_stage_has_its_own_options(tmp_path: Path) -> None:
    pretrain = {"gres": "gpu:a100:8", "constraint": "a100&nvlink", "qos": "long", "exclusive": True}
    site = {
        "slurm": {"account": "all", "export": "NONE"},
        "prepare": {"options": {"qos": "cpu", "account": "text"}},
        "pretrain": {"gpus": 8, "options": pretrain},
        "finetune": {"gpus": 1, "options": {"gres": "gpu:a100:1", "mem": ""}, "memory_gb": 9},
    }
    found = directives_of(tmp_path, site)
    for verb in ("corpus", "tokenizer", "pack", "report"):
        assert {"#SBATCH --qos=cpu", "#SBATCH --account=text", "#SBATCH --export=NONE"} <= found[verb]
        assert not any("gres" in line for line in found[verb])
    wanted = {"gres=gpu:a100:8", "constraint=a100&nvlink", "qos=long", "exclusive", "account=all", "export=NONE"}
    assert {f"#SBATCH --{option}" for option in wanted} <= found["pretrain"]
    assert "#SBATCH --gres=gpu:a100:1" in found["finetune"]


def test_options_that_are_not_used_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    directives_of(tmp_path, {"finetune": {"options": {"mem": "", "nice": "5"}}}, one_job=True)
    assert "not used: finetune.options.mem, finetune.options.nice (--one-job uses those of pretrain)" in caplog.messages
    directives_of(tmp_path, {"pretrain": {"options": {"mem": ""}}})
    assert "sbatch options left out, because they are empty: mem" in caplog.messages


@pytest.mark.parametrize(
    ("site", "message"),
    [
        ({"slurm": {"gres": "gpu:a100:8"}}, "gres=gpu:a100:8: 8 GPUs, but prepare.gpus is 0"),
        ({"pretrain": {"gpus": 4, "options": {"gres": "gpu:8,nvme:100"}}}, "8 GPUs, but pretrain.gpus is 4"),
        ({"finetune": {"options": {"gres": "gpu:a100:2"}}}, "2 GPUs, but finetune.gpus is 1; give both the same"),
    ],
)
def test_gpus_of_options_and_keys_agree(site: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=message):
        directives_of(tmp_path, site)


@pytest.mark.parametrize("name", ["array", "job-name", "nodes", "output"])
def test_options_that_the_jobs_depend_on_are_refused(name: str) -> None:
    for site in ({"slurm": {name: "3"}}, {"pretrain": {"options": {name: "3"}}}):
        with pytest.raises(ValidationError, match=f"{name}: set by malmoi"):
            Site.model_validate(site)


FAILED = {  # hangs before the newest checkpoint and after it, what the failed training wrote, whether it is requeued
    "nothing": (1, 1, "", False),
    "a checkpoint": (0, 3, "checkpoints/step-000000020", True),
    "a hang": (0, 0, "hang-9", True),
    "the third hang": (5, 2, "hang-9", True),
    "the fourth hang": (0, 3, "hang-9", False),
}


@pytest.mark.parametrize("name", FAILED)
def test_pretraining_is_requeued_after_progress_and_some_hangs(name: str, tmp_path: Path, fake_commands: Path) -> None:
    earlier, later, leaves, is_requeued = FAILED[name]
    launch = plan_launch("smoke", [], Site(), tmp_path / "runs")
    pretrain = launch.run / "pretrain"
    for number in range(earlier):
        (pretrain / f"hang-{number}").mkdir(parents=True)
        os.utime(pretrain / f"hang-{number}", (1, 1))
    (pretrain / "checkpoints" / "step-000000010").mkdir(parents=True)
    os.utime(pretrain / "checkpoints" / "step-000000010", (1000, 1000))
    for number in range(earlier, earlier + later):
        (pretrain / f"hang-{number}").mkdir()
    does = f"mkdir {pretrain / leaves}" if leaves else "true"
    (fake_commands / "srun").write_text(f"#!/bin/bash\n{does}\nexit 1\n")
    (fake_commands / "scontrol").write_text(RECORD.replace("$CALLS", str(tmp_path / "calls")))
    environment = os.environ | {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "2", "SLURM_NNODES": "2"}
    script = slurm_files(launch)["pretrain.sbatch"]
    done = subprocess.run(["bash"], input=script, text=True, env=environment, capture_output=True, cwd=tmp_path)
    assert done.returncode == 1
    assert ("requeue\0" in (tmp_path / "calls").read_text()) == is_requeued
    assert (str(pretrain / leaves) in done.stdout and "requeued" in done.stdout) == is_requeued


def test_values_that_sbatch_could_misread_are_refused(tmp_path: Path) -> None:
    launch = plan_launch("smoke", [], Site(), tmp_path / "two words")
    with pytest.raises(LaunchError, match="a line #SBATCH cannot hold ' '"):
        slurm_files(launch)
    for broken in ({"account": "a b"}, {"comment": "x\n#SBATCH --uid=0"}, {"a=b": "c"}):
        with pytest.raises(ValidationError):
            Site(slurm=broken)


def test_a_container_holds_every_command(tmp_path: Path, fake_commands: Path) -> None:
    site = Site(shared="/shared", container={"image": "/shared/my image.sif"})
    files = slurm_files(plan_launch("smoke", [], site, tmp_path / "runs"))
    for verb, program in (("corpus", "malmoi"), ("pretrain", "torchrun")):
        (call,) = run_script(f"PATH={fake_commands}:$PATH\n" + files[f"{verb}.sbatch"], tmp_path)
        assert call[:3] == ["apptainer", "exec", "--nv"]
        assert call[call.index("/shared/my image.sif") + 1] == program
        assert call[3:5] == ["--bind", "/shared"]


def test_one_job_does_all_stages_on_the_allocation_of_pretraining(tmp_path: Path, fake_commands: Path) -> None:
    launch = plan_launch("smoke", [], Site(pretrain={"nodes": 2, "cpus": 4}), tmp_path / "runs")
    files = slurm_files(launch, one_job=True)
    assert set(files) == {"all.sbatch", "submit.sh"}
    calls = run_script(files["all.sbatch"], tmp_path)
    verbs = [call[1] if call[0] == "malmoi" else call[call.index("launch") + 1] for call in calls]
    assert verbs == ["corpus", "tokenizer", "pack", "pretrain", "finetune", "report"]
    assert "workers=4" in calls[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("partition: gpu", "partition: unknown key"),
        ("pretrain: {node: 2}", "pretrain.node: unknown key; did you mean pretrain.nodes?"),
        ("pretrain: {gpus: -1}", "pretrain.gpus: must be greater than or equal to 0 (got -1)"),
        ("- a", "a site is a mapping of sections, this file holds a list"),
        ("a: [", "not readable as YAML"),
        ("modules: ['x; rm -rf /']", "modules.0"),
        ("sources: [relative.sh]", "sources.0"),
        ("environment: {'A B': x}", "environment"),
    ],
)
def test_a_wrong_site_is_reported_with_its_key(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(text)
    with pytest.raises(LaunchError) as caught:
        load_site(tmp_path / "site.yaml")
    assert message in str(caught.value)


def test_problems_of_every_machine_are_reported_before_submission(tmp_path: Path) -> None:
    launch = plan_launch("klue-roberta-base", [], Site(), tmp_path)
    with pytest.raises(LaunchError, match=r"corpus\.inputs: set files"):
        check_launch(launch)
    later = plan_launch("smoke", [], Site(), tmp_path, ["pretrain"])
    with pytest.raises(LaunchError, match="run `malmoi pack` with the same recipe first"):
        check_launch(later)
    check_launch(plan_launch("smoke", ["pretrain.steps=10000000"], Site(), tmp_path))  # too long for this machine alone


@pytest.mark.parametrize(
    ("image", "stages", "is_needed"),
    [("", ["pretrain"], True), ("malmoi.sqsh", ["pretrain"], False), ("", ["finetune"], False)],
)
def test_deepspeed_is_needed_here_only_where_it_trains(
    image: str, stages: list[str], is_needed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = list[str]()
    monkeypatch.setattr(jobs, "require", lambda user, modules: needed.extend(modules))
    site = Site.model_validate({"launcher": "deepspeed", "container": {"image": image} if image else {}})
    with suppress(LaunchError):  # stages before it are missing
        check_launch(plan_launch("smoke", [], site, tmp_path, stages))
    assert ("deepspeed" in needed) is is_needed


def test_an_unknown_stage_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="no such stage; stages are corpus"):
        plan_launch("smoke", [], Site(), tmp_path, ["pretraining"])


def test_each_verb_gets_its_processes_and_only_fine_tuning_joins_the_queue(tmp_path: Path) -> None:
    launch = plan_launch("smoke", ["pretrain.steps=7"], Site(prepare={"cpus": 3}, finetune={"cpus": 5}), tmp_path)
    found = {verb: launch.arguments(verb, launch.task(verb)) for verb in ("corpus", "pretrain", "finetune")}
    first, last = ["smoke", "pretrain.steps=7"], ["--runs", str(tmp_path)]
    assert found == {
        "corpus": ["corpus", *first, "workers=3", *last],
        "pretrain": ["pretrain", *first, *last],
        "finetune": ["finetune", *first, "workers=5", "launch.engine=local", *last],
    }
