"""Any number of hosts and processes trains like one process; hosts are network namespaces (``tests/hosts.py``)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pretrain.config import PretrainConfig
from pretrain.engine.world import name_interface
from tests.hosts import Host, network_of
from tests.pretrain import recorded
from tests.pretrain.runs import TORCHRUN, finish, launch, lines_without_timing

PORT = "29537"
SHAPES = [(1, 1), (1, 2), (2, 1), (2, 2)]  # hosts, processes of each
ENGINES = {"ddp": {"engine": "auto"}}  # auto: plain for one process
ENGINES |= {f"zero-{stage}": {"engine": "deepspeed", "zero_stage": stage} for stage in range(4)}
STEPS = 30


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[Host]]:
    with network_of(2) as network:
        yield network.hosts


@pytest.fixture(scope="module")
def alone(made: Path, tmp_path_factory: pytest.TempPathFactory, tiny) -> Path:
    """What one process without a launcher trains by torch alone."""
    out = tmp_path_factory.mktemp("alone") / "out"
    finish(launch(configured(tiny, engine="plain"), made, out, (TORCHRUN[0], recorded.__file__)))
    return out


def configured(tiny, **engine) -> PretrainConfig:
    settings = {"layers": 2, "hidden": 32, "dropout": 0.0, "clip": 0.5, "log_every": 1, "micro_batch": 2}
    return tiny(**settings, steps=STEPS, checkpoint_every=STEPS, **engine)


@pytest.mark.matrix
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_hosts_and_processes_change_nothing(
    shape: tuple[int, int], engine: str, hosts: list[Host], alone: Path, made: Path, tmp_path: Path, tiny
) -> None:
    """And no host is given its network interface."""
    out, (count, processes) = tmp_path / "out", shape
    join = (f"--nnodes={count}", f"--master-addr={hosts[0].address}", f"--master-port={PORT}")
    begun = []
    for rank, host in enumerate(hosts[:count]):
        words = (*TORCHRUN[:3], *join, f"--node-rank={rank}", f"--nproc-per-node={processes}", recorded.__file__)
        config = configured(tiny, **ENGINES[engine])
        begun.append(launch(config, made, out, host.inside(words), DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1"))
    for process in begun:
        finish(process)
    assert rows_of(out, count * processes) == rows_of(alone, 1)
    found, expected = losses(out), losses(alone)
    assert len(found) == len(expected) == STEPS + 1
    furthest = max(abs(a - b) for a, b in zip(found, expected, strict=True))
    print(f"\n{engine}, {count} x {processes}: losses differ by {furthest:.1e} at most")
    assert furthest < 1e-5


def rows_of(out: Path, processes: int) -> dict[str, list[str]]:
    """Digests of the rows of each step, over all processes in their order."""
    names = [recorded.NAME.format(out=out.name, rank=rank) for rank in range(processes)]
    parts = [json.loads((out.parent / name).read_text("utf-8")) for name in names]
    return {str(step): [digest for part in parts for digest in part[str(step)]] for step in range(1, STEPS + 1)}


def losses(out: Path) -> list[float]:
    """Of every step, and at the end on held-out rows."""
    lines = lines_without_timing(out)
    found = [line["loss"] for line in lines if "loss" in line]
    return found + [line["held_out"]["mlm_loss"] for line in lines if "held_out" in line]


def test_the_users_choice_of_interface_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "chosen")
    name_interface("192.0.2.1")
    assert os.environ["GLOO_SOCKET_IFNAME"] == "chosen"
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    name_interface("127.0.0.1")
    assert "GLOO_SOCKET_IFNAME" not in os.environ
