"""Two machines train like one: two network namespaces, joined by a cable of their own, stand for them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pretrain.engine.world import name_interface
from tests.pretrain.runs import TORCHRUN, finish, launch, lines_without_timing, numbers_of, train

HOSTS = ("malmoi-a", "malmoi-b")
ADDRESSES = ("10.77.31.1", "10.77.31.2")
PORT = "29537"


def ip(*arguments: str) -> int:
    return subprocess.run(["ip", *arguments], capture_output=True, check=False).returncode


@pytest.fixture
def hosts() -> Iterator[None]:
    """Both namespaces, with an interface each; needs the rights to make them."""
    if not shutil.which("ip") or ip("netns", "add", HOSTS[0]):
        pytest.skip("network namespaces need iproute2 and root")
    try:
        ip("netns", "add", HOSTS[1])
        ip("link", "add", "cable-a", "netns", HOSTS[0], "type", "veth", "peer", "name", "cable-b", "netns", HOSTS[1])
        for host, address, cable in zip(HOSTS, ADDRESSES, ("cable-a", "cable-b"), strict=True):
            ip("-n", host, "addr", "add", f"{address}/24", "dev", cable)
            ip("-n", host, "link", "set", "lo", "up")
            ip("-n", host, "link", "set", cable, "up")
        yield
    finally:
        for host in HOSTS:
            ip("netns", "del", host)


@pytest.mark.matrix
def test_two_machines_train_like_one_without_being_told_their_interface(
    made: Path, tmp_path: Path, tiny, hosts: None
) -> None:
    config = tiny(steps=3, dropout=0.0, log_every=1)
    train(config, made, tmp_path / "one")
    processes = []
    for rank, host in enumerate(HOSTS):
        join = [f"--node-rank={rank}", "--nnodes=2", f"--master-addr={ADDRESSES[0]}", f"--master-port={PORT}"]
        launcher = ["ip", "netns", "exec", host, *TORCHRUN[:3], "--nproc-per-node=1", *join]
        processes.append(launch(config, made, tmp_path / "two", launcher, DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1"))
    for process in processes:
        finish(process)
    pairs = zip(lines_without_timing(tmp_path / "one"), lines_without_timing(tmp_path / "two"), strict=True)
    for a, b in pairs:
        assert numbers_of(a) == pytest.approx(numbers_of(b), rel=1e-6)


def test_the_users_choice_of_interface_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "chosen")
    name_interface("192.0.2.1")
    assert os.environ["GLOO_SOCKET_IFNAME"] == "chosen"
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    name_interface("127.0.0.1")
    assert "GLOO_SOCKET_IFNAME" not in os.environ
