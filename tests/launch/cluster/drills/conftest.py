"""Three hosts that ssh reaches, and a training on two of them that nothing happens to."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hosts import Ssh, network_of
from tests.launch.cluster.conftest import MALMOI
from tests.launch.cluster.drills.training import Site, Training, copied


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """A disk of 24 MiB; servers that begin earlier do not see it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    disk = tmp_path_factory.mktemp("disk")
    with network_of(3) as network, mounted(disk):
        ssh = Ssh(tmp_path_factory.mktemp("ssh"))
        servers = [ssh.serve(host) for host in network.hosts]
        path = f"{Path(MALMOI).parent}:{ssh.environment['PATH']}"
        yield Site(network, ssh.environment | {"PATH": path}, ssh, servers, disk)
        for server in servers:
            server.kill()
            server.wait()


@pytest.fixture(scope="package")
def undisturbed(site: Site, packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """One to its end, to be copied from."""
    found = Training(site, copied(packed, tmp_path_factory.mktemp("undisturbed") / "home"))
    found.start()
    assert found.end() == 0, found.log
    return found


@pytest.fixture
def training(site: Site, packed: Path, tmp_path: Path) -> Iterator[Training]:
    """Two hosts with a process each, not yet started."""
    found = Training(site, copied(packed, tmp_path / "home"))
    yield found
    found.give_up()
