"""`doctor --cluster`: two processes, two hosts with a firewall between them, and each fault in its own sentence."""

from __future__ import annotations

import copy
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from launch.cluster.nodes.machine import describe_machine
from launch.cluster.nodes.reach import Door, Listener, try_doors
from launch.cluster.nodes.verdict import judge
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
    assert "all-reduce" not in outputs[0] and "not ready: 2 to repair first" in outputs[0]


def test_without_a_launcher_it_says_how_it_is_started(capfd: pytest.CaptureFixture[str]) -> None:
    run_command(capfd, "doctor", "--cluster").refused("RANK", "torchrun")


def test_doors_that_are_shut_are_told_and_clocks_of_open_ones_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as shut, Listener("127.0.0.1") as listener:
        shut.bind(("127.0.0.1", 0))  # and does not listen
        doors = {
            0: Door("node-a", "lo", "127.0.0.1", listener.port),
            1: Door("node-b", "eth7", "127.0.0.1", shut.getsockname()[1]),
            2: Door("node-c", "lo", "127.0.0.1", listener.port),
        }
        found = try_doors(2, doors)
    assert list(found["ahead"]) == [0] and abs(found["ahead"][0]) < 60
    assert list(found["faults"]) == [1]
    assert "node-b at 127.0.0.1:" in found["faults"][1] and "interface eth7" in found["faults"][1]


def record(host: str, **changes: Any) -> dict[str, Any]:
    """What a process of a healthy host tells."""
    disk = {"write": 5e8, "read": 1e9, "free": 1 << 40}
    healthy: dict[str, Any] = {
        "host": host, "address": "10.0.0.1", "interface": "eth0", "device": "NVIDIA H200",
        "versions": {"python": "3.12.3", "torch": "2.13.0"},
        "reached": {"faults": {}, "ahead": {"0": 0.01}},
        "seen": {"folder": "/shared/runs", "seconds": 0.1, "fault": ""},
        "gpus": [{"name": "H200", "memory.total": "143771", "memory.used": "4", "temperature.gpu": "31",
                  "ecc.errors.uncorrected.volatile.total": "0", "driver_version": "1"}],
        "disks": {"runs": disk, "local": dict(disk)},
        "sums": {"backend": "nccl", "seconds": {"1 KiB": 1e-5, "1 MiB": 1e-4, "64 MiB": 1e-3}},
    }  # fmt: skip
    return copy.deepcopy(healthy) | changes


def test_healthy_nodes_have_no_fault() -> None:
    assert judge([record("node-a"), record("node-b")]) == ([], [])


GPU, PYTHON, ECC = record("node-b")["gpus"][0], {"python": "3.12.3"}, "ecc.errors.uncorrected.volatile.total"
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "version": ({"versions": PYTHON | {"torch": "2.12.0"}}, "torch differs: 2.13.0 on node-a, 2.12.0 on node-b"),
    "a package that is missing": ({"versions": PYTHON}, "torch differs: 2.13.0 on node-a, missing on node-b"),
    "clock": ({"reached": {"faults": {}, "ahead": {"0": 30.0}}}, "node-b: its clock is 30.0 s behind"),
    "folder": ({"seen": {"folder": "/r", "seconds": None, "fault": "does not see it"}}, "node-b: /r does not see it"),
    "other device": ({"device": "cpu"}, "node-b, rank 2: trains on cpu, most others on NVIDIA H200"),
    "no device": ({"device": "not usable: torch sees none"}, "node-b, rank 2: not usable"),
    "memory errors": ({"gpus": [GPU | {ECC: "3"}]}, "node-b: H200 has 3 memory errors"),
    "driver": ({"gpus": [{"fault": "nvidia-smi gave no answer in 30 s"}]}, "node-b: nvidia-smi gave no answer"),
    "disk": ({"disks": {"runs": {"fault": "read-only"}}}, "node-b: cannot write to the folder for runs (read-only)"),
    "sum": ({"sums": {"backend": "nccl", "fault": "timed out"}}, "all-reduce failed in 1 of 3 processes: timed out"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_is_one_sentence_that_names_the_node(kind: str) -> None:
    changes, words = FAULTS[kind]
    (fault,), remarks = judge([record("node-a"), record("node-a"), record("node-b", **changes)])
    assert words in fault and not remarks


def test_what_is_only_worth_knowing_keeps_nobody() -> None:
    slow = {"write": 2e7, "read": 1e9, "free": 1}
    busy = [GPU | {"memory.used": "100000"}]
    faults, remarks = judge([record("node-a"), record("node-b", disks={"runs": slow, "local": slow}, gpus=busy)])
    assert not faults and len(remarks) == 3
    assert judge([record("node-a"), None])[0] == ["rank 1 told nothing"]


def test_a_machine_tells_its_versions_and_the_speed_of_its_disks(tmp_path: Path) -> None:
    found = describe_machine({"runs": tmp_path, "local": tmp_path / "nowhere"}, is_leader=True)
    assert found["host"] == socket.gethostname() and found["versions"]["torch"].startswith("2.")
    assert found["disks"]["runs"]["write"] > 1e5 and found["disks"]["runs"]["read"] > 1e5
    assert "no such file" in found["disks"]["local"]["fault"]
    assert not list(tmp_path.iterdir())
    assert "disks" not in describe_machine({"runs": tmp_path}, is_leader=False)
