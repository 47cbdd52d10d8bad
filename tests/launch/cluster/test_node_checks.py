"""`doctor --cluster`: two processes, two hosts with a firewall between them, and each problem in its own sentence."""

from __future__ import annotations

import copy
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from launch.cluster.node_checks import _describe_process, _measure_disk
from launch.cluster.node_network import ClockServer, Endpoint, connect_to_peers
from launch.cluster.node_report import judge
from tests.command import run_command
from tests.hosts import INTERFACE, Host, ip, network_of

PORT = "29543"
DOCTOR = (sys.executable, "-m", "launch", "doctor", "--cluster")


def start(rank: int, master: str, port: str, runs: Path, host: Host | None = None) -> subprocess.Popen:
    """On a host, or on this machine."""
    join = {"RANK": str(rank), "LOCAL_RANK": "0" if host else str(rank), "WORLD_SIZE": "2"}
    join |= {"MASTER_ADDR": master, "MASTER_PORT": port}
    command = [*DOCTOR, "--runs", str(runs), "--local", str(runs)]
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
    for words in ("127.0.0.1 (lo)", "2 x cpu", "all-reduce by gloo: 1 KiB ", "64 MiB ", "1 nodes, 2 processes: ready"):
        assert words in outputs[0], outputs[0]
    assert "Cluster" not in outputs[1]
    assert not list(runs.iterdir())


@pytest.mark.cluster
def test_two_hosts_and_a_firewall_between_them(tmp_path: Path) -> None:
    with network_of(2) as network:
        first, second = network.hosts

        def outcomes_of_both() -> tuple[list[int], list[str]]:
            hosts = enumerate(network.hosts)
            return outcomes([start(rank, first.address, PORT, tmp_path, host) for rank, host in hosts])

        codes, outputs = outcomes_of_both()
        assert codes == [0, 0], outputs
        for host in network.hosts:
            assert host.name in outputs[0] and f"{host.address} ({INTERFACE})" in outputs[0]
        assert "2 nodes, 2 processes: ready" in outputs[0]
        # the second host lets nothing out but to the port where all meet
        rule = ("-n", second.name, "rule", "add", "pref")
        ip(*rule, "10", "ipproto", "tcp", "dport", PORT, "lookup", "main")
        ip(*rule, "20", "to", f"{first.address}/32", "ipproto", "tcp", "prohibit")
        codes, outputs = outcomes_of_both()
        assert codes == [2, 2], outputs
    refused = f"✗ {first.name} ({INTERFACE} {first.address}) cannot connect to {second.name} at {second.address}:"
    assert refused in outputs[0] and f"(its interface {INTERFACE}): no answer in 5 s" in outputs[0]
    assert f"✗ {second.name} ({INTERFACE} {second.address}) cannot connect to {first.name}" in outputs[0]
    assert "all-reduce" not in outputs[0] and "not ready: 2 problems to fix first" in outputs[0]


def test_without_a_launcher_it_says_how_to_start_it(capfd: pytest.CaptureFixture[str]) -> None:
    run_command(capfd, "doctor", "--cluster").refused("RANK", "torchrun")


def test_unreachable_hosts_are_named_and_clocks_of_the_others_compared() -> None:
    with socket.socket() as closed, ClockServer("127.0.0.1") as server:
        closed.bind(("127.0.0.1", 0))  # does not listen
        endpoints = {
            0: Endpoint("node-a", "lo", "127.0.0.1", server.port),
            1: Endpoint("node-b", "eth7", "127.0.0.1", closed.getsockname()[1]),
            2: Endpoint("node-c", "lo", "127.0.0.1", server.port),
        }
        network = connect_to_peers(2, endpoints)
    assert list(network["clock_offsets"]) == [0] and abs(network["clock_offsets"][0]) < 60
    assert list(network["errors"]) == [1]
    assert "node-b at 127.0.0.1:" in network["errors"][1] and "interface eth7" in network["errors"][1]


def record(host: str, **changes: Any) -> dict[str, Any]:
    """The record of a process on a healthy host."""
    disk = {"write": 5e8, "read": 1e9, "free": 1 << 40}
    healthy: dict[str, Any] = {
        "host": host, "address": "10.0.0.1", "interface": "eth0", "device": "NVIDIA H200",
        "versions": {"python": "3.12.3", "torch": "2.13.0"},
        "network": {"errors": {}, "clock_offsets": {"0": 0.01}},
        "folder": {"folder": "/shared/runs", "seconds": 0.1, "error": ""},
        "gpus": [{"name": "H200", "memory.total": "143771", "memory.used": "4", "temperature.gpu": "31",
                  "ecc.errors.uncorrected.volatile.total": "0", "driver_version": "1"}],
        "disks": {"runs": disk, "local": dict(disk)},
        "all_reduce": {"backend": "nccl", "seconds": {"1 KiB": 1e-5, "1 MiB": 1e-4, "64 MiB": 1e-3}},
    }  # fmt: skip
    return copy.deepcopy(healthy) | changes


def test_healthy_nodes_have_no_problems() -> None:
    assert judge([record("node-a"), record("node-b")]) == ([], [])


GPU, PYTHON, ECC = record("node-b")["gpus"][0], {"python": "3.12.3"}, "ecc.errors.uncorrected.volatile.total"
PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "version": ({"versions": PYTHON | {"torch": "2.12.0"}}, "torch differs: 2.13.0 on node-a, 2.12.0 on node-b"),
    "a package that is missing": ({"versions": PYTHON}, "torch differs: 2.13.0 on node-a, not installed on node-b"),
    "clock": ({"network": {"errors": {}, "clock_offsets": {"0": 30.0}}}, "node-b: its clock is 30.0 s behind"),
    "folder": ({"folder": {"folder": "/r", "seconds": None, "error": "is not visible"}}, "node-b: /r is not visible"),
    "other device": ({"device": "cpu"}, "node-b, rank 2: trains on cpu, most others on NVIDIA H200"),
    "no device": ({"device": "not usable: torch sees none"}, "node-b, rank 2: not usable"),
    "memory errors": ({"gpus": [GPU | {ECC: "3"}]}, "node-b: H200 has 3 uncorrected memory errors"),
    "driver": ({"gpus": [{"error": "nvidia-smi did not answer in 30 s"}]}, "node-b: nvidia-smi did not answer"),
    "disk": ({"disks": {"runs": {"error": "read-only"}}}, "node-b: cannot write to the folder for runs (read-only)"),
    "sum": ({"all_reduce": {"backend": "nccl", "error": "timed out"}}, "all-reduce failed in 1 of 3 processes: timed"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PROBLEMS)
def test_each_problem_is_one_sentence_that_names_the_node(kind: str) -> None:
    changes, words = PROBLEMS[kind]
    (problem,), remarks = judge([record("node-a"), record("node-a"), record("node-b", **changes)])
    assert words in problem and not remarks


def test_slow_disks_and_busy_gpus_are_remarks() -> None:
    slow = {"write": 2e7, "read": 1e9, "free": 1}
    busy = [GPU | {"memory.used": "100000"}]
    problems, remarks = judge([record("node-a"), record("node-b", disks={"runs": slow, "local": slow}, gpus=busy)])
    assert not problems and len(remarks) == 3
    assert judge([record("node-a"), None])[0] == ["rank 1 did not answer"]


def test_versions_and_the_speed_of_disks_are_recorded(tmp_path: Path) -> None:
    facts = _describe_process()
    assert facts["host"] == socket.gethostname() and facts["versions"]["torch"].startswith("2.")
    disk = _measure_disk(tmp_path)
    assert disk["write"] > 1e5 and disk["read"] > 1e5
    assert "no such file" in _measure_disk(tmp_path / "nowhere")["error"]
    assert not list(tmp_path.iterdir())
