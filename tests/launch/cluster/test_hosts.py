"""Scripts for hosts: values are data, and two hosts reached by ssh train like one machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from launch.cluster.jobs import plan_launch
from launch.cluster.scripts import hosts_files
from launch.cluster.site import Site
from launch.errors import LaunchError
from tests.hosts import Host, Ssh, network_of, until
from tests.launch.cluster.conftest import MALMOI, TINY, assert_trained_like_one_process

SETTINGS = {
    "static": "",
    "elastic": "",
    "deepspeed": "launcher: deepspeed\n",
}


def site_of(**settings: object) -> Site:
    return Site(**{"hosts": {"names": ["gpu1", "me@gpu2"]}, **settings})


def test_the_hostfile_has_a_slot_for_each_process(tmp_path: Path) -> None:
    files = hosts_files(plan_launch("smoke", [], site_of(pretrain={"gpus": 4}), tmp_path))
    assert files["hostfile"] == "gpu1 slots=4\nme@gpu2 slots=4\n"


@pytest.mark.parametrize("elastic", [False, True])
def test_ports_are_for_ssh_only_and_addresses_for_names_that_do_not_resolve(elastic: bool, tmp_path: Path) -> None:
    names = ["gpu1:2222", "me@gpu2", "me@gpu3:2223", "fd00::4"]
    hosts = {"names": names, "addresses": {"gpu1": "10.0.0.1", "gpu3": "10.0.0.3"}, "elastic": elastic}
    launch = plan_launch("smoke", [], site_of(hosts=hosts, pretrain={"gpus": 0}), tmp_path / "runs", ["pretrain"])
    (launch.folder / "logs").mkdir(parents=True)
    for name, text in hosts_files(launch).items():
        (launch.folder / name).write_text(text)
    (tmp_path / "bin").mkdir()
    ssh = '#!/bin/bash\nwhile [[ $1 == -* ]]; do shift 2; done\necho "$@" >> "$CALLS"\n'
    (tmp_path / "bin" / "ssh").write_text(ssh)
    (tmp_path / "bin" / "ssh").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")}
    subprocess.run(["bash", str(launch.folder / "run.sh")], check=True, env=environment, capture_output=True)
    calls = [line.split() for line in (tmp_path / "calls").read_text().splitlines() if "node.sh" in line]
    targets = ["ssh://gpu1:2222", "me@gpu2", "ssh://me@gpu3:2223", "fd00::4"]
    addresses = ["10.0.0.1", "gpu2", "10.0.0.3", "fd00::4"]
    ends = [[f"{rank}", "4", "10.0.0.1", address] for rank, address in enumerate(addresses)]
    assert sorted((call[0], call[-4:]) for call in calls) == sorted(zip(targets, ends, strict=True))


@pytest.mark.parametrize("launcher", SETTINGS)
@pytest.mark.parametrize("value", ["$(touch pwned)", "'; touch pwned; '", '"\n touch pwned', "a b"])
def test_values_are_single_words_in_the_commands_of_hosts(value: str, launcher: str, tmp_path: Path) -> None:
    named = {"names": ["gpu1", "gpu2"], "elastic": launcher == "elastic"}
    site = site_of(launcher="deepspeed" if launcher == "deepspeed" else "torchrun", hosts=named)
    launch = plan_launch("smoke", [f"about={value}"], site, tmp_path / "runs")
    (launch.folder / "logs").mkdir(parents=True)
    (launch.folder / "node.sh").write_text(hosts_files(launch)["node.sh"].replace("export PATH=", "# "))
    output = tmp_path / "output"
    (tmp_path / "bin").mkdir()
    for name in ("malmoi", "torchrun", "python"):
        (tmp_path / "bin" / name).write_text(f'#!/bin/bash\nprintf "%s\\0" "$@" > {output}\n')
        (tmp_path / "bin" / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    for verb in ("corpus", "pretrain"):
        words = ["bash", str(launch.folder / "node.sh"), verb, "1", "2", "gpu1", "gpu2"]
        subprocess.run(words, check=True, env=environment, cwd=tmp_path)
        words = output.read_text().split("\0")
        assert words[words.index(verb) : words.index(verb) + 3] == [verb, "smoke", f"about={value}"]
    assert not list(tmp_path.rglob("pwned"))
    subprocess.run(["bash", "-n"], input=hosts_files(launch)["run.sh"], check=True, text=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hosts": {}}, "no hosts; name them in site.yaml"),
        (
            {"hosts": {"names": ["a"], "elastic": True}, "launcher": "deepspeed"},
            "hosts.elastic needs launcher: torchrun",
        ),
        ({"hosts": {"names": ["a:22"]}, "launcher": "deepspeed"}, "a:22: launcher: deepspeed takes no ports"),
    ],
)
def test_contradicting_settings_are_reported(settings: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=message):
        hosts_files(plan_launch("smoke", [], site_of(**settings), tmp_path))


def test_an_address_of_an_unknown_host_is_refused() -> None:
    with pytest.raises(ValidationError, match="gpu9 not in names"):
        site_of(hosts={"names": ["gpu1:22"], "addresses": {"gpu9": "10.0.0.9"}})


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[Host]]:
    with network_of(2) as found:
        yield found.hosts


@pytest.fixture(scope="module")
def environment(hosts: list[Host], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What a shell on the first host has; ssh leads from there to both hosts."""
    if shutil.which("pdsh") is None:
        pytest.skip("deepspeed on several hosts needs pdsh")
    ssh = Ssh(tmp_path_factory.mktemp("ssh"))
    servers = [ssh.serve(host) for host in hosts]
    yield ssh.environment | {"PATH": f"{Path(MALMOI).parent}:{ssh.environment['PATH']}"}
    for server in servers:
        server.terminate()
        server.wait()


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("launcher", SETTINGS)
def test_two_hosts_train_like_one(
    launcher: str, hosts: list[Host], environment: dict[str, str], packed: Path, tmp_path: Path
) -> None:
    shutil.copytree(packed, tmp_path / "runs")
    elastic = str(launcher == "elastic").lower()
    (tmp_path / "site.yaml").write_text(
        f"environment: {{DS_ACCELERATOR: cpu}}\npretrain: {{gpus: 0, cpus: 1}}\n{SETTINGS[launcher]}"
        f"hosts: {{names: [{', '.join(host.name for host in hosts)}], elastic: {elastic}}}\n"
    )
    command = [MALMOI, "launch", "hosts", "smoke", *TINY, "--runs", "runs", "--stages", "pretrain", "--submit"]
    done = subprocess.run(hosts[0].inside(command), env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "a step is 2 processes" in done.stdout
    assert_trained_like_one_process(tmp_path / "runs", packed)


@pytest.mark.cluster
@pytest.mark.slow
def test_ctrl_c_saves_and_the_same_script_resumes(
    hosts: list[Host], environment: dict[str, str], packed: Path, tmp_path: Path
) -> None:
    shutil.copytree(packed, tmp_path / "runs")
    names = ", ".join(host.name for host in hosts)
    (tmp_path / "site.yaml").write_text(f"pretrain: {{gpus: 0, cpus: 1}}\nhosts: {{names: [{names}]}}\n")
    endless = [*TINY, "pretrain.steps=1000000"]
    command = [MALMOI, "launch", "hosts", "smoke", *endless, "--runs", "runs", "--stages", "pretrain"]
    subprocess.run(command, check=True, cwd=tmp_path, env=environment, capture_output=True)
    script = hosts[0].inside(["bash", "runs/smoke/launch/run.sh"])
    for sign in ("first row of step 1,", "resuming from"):
        log = tmp_path / "log"
        with log.open("wb") as out:
            begun = subprocess.Popen(
                script, env=environment, cwd=tmp_path, stdout=out, stderr=out, start_new_session=True
            )
            until(lambda: sign in log.read_text("utf-8") and " loss " in log.read_text("utf-8"), 300)  # noqa: B023
            os.killpg(begun.pid, signal.SIGINT)
            assert begun.wait(timeout=300) == 75, log.read_text("utf-8")
    assert list((tmp_path / "runs" / "smoke" / "pretrain" / "checkpoints").glob("step-*"))
