"""`doctor --cluster`: two processes, two hosts with a firewall between them, and one sentence for each problem."""

from __future__ import annotations

import copy
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from launch.cluster import node_checks
from launch.cluster.node_checks import describe_process, find_problems, print_report
from tests.command import run_command
from tests.hosts import Host, ip, network_of

PORT = "29543"
DOCTOR = (sys.executable, "-m", "launch", "doctor", "--cluster")


def start(rank: int, master: str, port: str, runs: Path, host: Host | None = None) -> subprocess.Popen:
    """On a host, or on this machine."""
    join = {"RANK": str(rank), "LOCAL_RANK": "0" if host else str(rank), "WORLD_SIZE": "2"}
    join |= {"MASTER_ADDR": master, "MASTER_PORT": port}
    command = [*DOCTOR, "--runs", str(runs)]
    return subprocess.Popen(
        host.inside(command) if host else command,
        env=os.environ | join | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def outcomes(processes: list[subprocess.Popen]) -> tuple[list[int], list[str]]:
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    return [process.returncode for process in processes], outputs


def test_two_processes_are_ready(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    runs = tmp_path / "shared" / "runs"
    runs.mkdir(parents=True)
    codes, outputs = outcomes([start(rank, "127.0.0.1", port, runs) for rank in range(2)])
    assert codes == [0, 0], outputs
    for words in ("cpu", "yes", "all-reduce by gloo: 64 MiB in ", "1 nodes, 2 processes: ready"):
        assert words in outputs[0], outputs[0]
    assert "Cluster" not in outputs[1]
    assert not list(runs.iterdir())


@pytest.mark.parametrize(("processes", "rate"), [(2, "0.67 GB/s"), (4, "1.01 GB/s"), (64, "1.32 GB/s")])
def test_the_rate_is_what_each_process_sends_in_a_ring(processes: int, rate: str, tmp_path: Path, capsys: Any) -> None:
    """2 (n - 1) / n times the 64 MiB, in a tenth of a second."""
    print_report([describe_process(tmp_path)] * processes, {"backend": "gloo", "seconds": 0.1}, [])
    assert f"all-reduce by gloo: 64 MiB in 100.00 ms ({rate})" in capsys.readouterr().out


@pytest.mark.cluster
def test_two_hosts_and_a_firewall_between_them(tmp_path: Path) -> None:
    with network_of(2) as network:
        first, second = network.hosts

        def outcomes_of_both() -> tuple[list[int], list[str]]:
            hosts = enumerate(network.hosts)
            return outcomes([start(rank, first.address, PORT, tmp_path, host) for rank, host in hosts])

        codes, outputs = outcomes_of_both()
        assert codes == [0, 0], outputs
        assert all(host.name in outputs[0] for host in network.hosts)
        assert "2 nodes, 2 processes: ready" in outputs[0]
        # the second host lets nothing out but to the port where all meet
        rule = ("-n", second.name, "rule", "add", "pref")
        ip(*rule, "10", "ipproto", "tcp", "dport", PORT, "lookup", "main")
        ip(*rule, "20", "to", f"{first.address}/32", "ipproto", "tcp", "prohibit")
        codes, outputs = outcomes_of_both()
        assert codes == [2, 2], outputs
    assert "✗ all-reduce failed in " in outputs[0] and "allow TCP between the nodes" in outputs[0]
    assert "not ready: " in outputs[0]


def test_without_a_launcher_it_says_how_to_start_it(capfd: pytest.CaptureFixture[str]) -> None:
    run_command(capfd, "doctor", "--cluster").refused("RANK", "torchrun")


def record(host: str, **changes: Any) -> dict[str, Any]:
    """The record of a process on a healthy host."""
    healthy: dict[str, Any] = {
        "host": host, "versions": {"Python": "3.12.3", "torch": "2.13.0", "device": "NVIDIA H200"},
        "folder": "/shared/runs", "folder_error": "",
    }  # fmt: skip
    return copy.deepcopy(healthy) | changes


def test_healthy_nodes_have_no_problems() -> None:
    assert list(find_problems([record("node-a"), record("node-b")])) == []


VERSIONS = record("node-b")["versions"]
PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "version": ({"versions": VERSIONS | {"torch": "2.12.0"}}, "torch differs: 2.13.0 on node-a, 2.12.0 on node-b"),
    "device": ({"versions": VERSIONS | {"device": "cpu"}}, "device differs: NVIDIA H200 on node-a, cpu on node-b"),
    "folder": ({"folder_error": "is not visible"}, "node-b: /shared/runs is not visible"),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_each_problem_is_one_sentence_that_names_the_node(kind: str) -> None:
    changes, words = PROBLEMS[kind]
    [problem] = find_problems([record("node-a"), record("node-a"), record("node-b", **changes)])
    assert words in problem


def test_silent_processes_and_unusable_devices_are_problems() -> None:
    assert list(find_problems([record("node-a"), None])) == ["rank 1 did not answer"]
    unusable = record("node-a", versions=VERSIONS | {"device": "not usable (torch sees none)"})
    assert list(find_problems([unusable])) == ["node-a: device not usable (torch sees none)"]


def test_a_process_uses_the_only_device_that_it_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``srun --gpus-per-task=1``: the fourth process of a node sees its own GPU, as number 0."""
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setattr(node_checks, "find_device", lambda asked, key: torch.device("cuda"))
    monkeypatch.setattr(node_checks, "device_name", lambda device: f"GPU {device.index}")
    devices = {}
    for count in (1, 2, 4):
        monkeypatch.setattr(torch.accelerator, "device_count", lambda count=count: count)
        monkeypatch.setattr(torch.accelerator, "set_device_index", lambda number: None)
        devices[count] = describe_process(tmp_path)["versions"]["device"]
    assert (devices[1], devices[4]) == ("GPU 0", "GPU 3")
    assert devices[2].startswith("not usable (process 4 of this machine has no device: torch finds 2")


def test_a_process_describes_its_node(tmp_path: Path) -> None:
    facts = describe_process(tmp_path)
    assert facts["host"] == socket.gethostname() and facts["versions"]["torch"].startswith("2.")
