"""Hosts on one machine: network namespaces with addresses and names of their own (UTS), joined by a bridge.

They share files, processes and the clock of this machine. Needs root and iproute2; ssh between them openssh-server.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

ETC = Path("/etc/netns")  # `ip netns exec` shows what lies here below /etc
INTERFACE = "eth0"  # of every host
SSHD = Path("/usr/sbin/sshd")


class Host(NamedTuple):
    """A namespace; ``cable``: the end at the bridge of what leads to its interface."""

    name: str
    address: str
    cable: str

    def inside(self, command: Sequence[str]) -> list[str]:
        """The command as a process of this host, with its name."""
        script = f'hostname {self.name}; exec "$@"'
        return ["ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", script, "sh", *command]

    def cut(self) -> None:
        """Disconnect it: packets are lost silently."""
        ip("link", "set", self.cable, "nomaster")

    def reconnect(self, bridge: str) -> None:
        """Put it back."""
        ip("link", "set", self.cable, "master", bridge)

    def processes(self, words: str = "") -> list[int]:
        """Those whose command line holds the words, oldest first."""
        told = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True).stdout
        found = []
        for number in sorted(map(int, told.split())):
            with suppress(OSError):
                line = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found += [number] if words in line else []
        return found

    def kill(self, words: str = "") -> None:
        """SIGKILL to all of them."""
        for number in self.processes(words):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)


class Network(NamedTuple):
    """Hosts, the bridge that joins them, and the address that this machine has on it."""

    hosts: list[Host]
    bridge: str
    here: str


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def network_of(count: int) -> Iterator[Network]:
    """N hosts whose names resolve to their addresses; skips the test without the permission."""
    if missing := [program for program in ("ip", "unshare") if shutil.which(program) is None]:
        pytest.skip(f"hosts made of network namespaces need {', '.join(missing)}")
    with ExitStack() as undo:
        try:
            yield _made(count, undo)
        except subprocess.CalledProcessError as error:
            if error.cmd[0] != "ip" or b"permitted" not in error.stderr:
                raise
            pytest.skip("hosts made of network namespaces need root")


def _made(count: int, undo: ExitStack) -> Network:
    number = next(number for number in range(30, 250) if _add_bridge(f"malmoi-{number}"))
    bridge, here = f"malmoi-{number}", f"10.77.{number}.254"
    undo.callback(subprocess.run, ["ip", "link", "del", bridge], check=False)
    ip("addr", "add", f"{here}/24", "dev", bridge)
    ip("link", "set", bridge, "up")
    hosts = [
        Host(f"{bridge}-{'abcdef'[place]}", f"10.77.{number}.{place + 1}", f"{bridge}-{place}")
        for place in range(count)
    ]
    names = [f"{host.address} {host.name}" for host in hosts] + [f"{here} {socket.gethostname()}"]
    for host in hosts:
        ip("netns", "add", host.name)
        undo.callback(subprocess.run, ["ip", "netns", "del", host.name], check=False)
        undo.callback(host.kill)
        (ETC / host.name).mkdir(parents=True, exist_ok=True)
        undo.callback(shutil.rmtree, ETC / host.name)
        (ETC / host.name / "hosts").write_text("127.0.0.1 localhost\n" + "\n".join(names) + "\n")
        ip("link", "add", host.cable, "type", "veth", "peer", "name", INTERFACE, "netns", host.name)
        undo.callback(subprocess.run, ["ip", "link", "del", host.cable], check=False)  # now, not some time later
        ip("link", "set", host.cable, "master", bridge, "up")
        ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", INTERFACE)
        ip("-n", host.name, "link", "set", "lo", "up")
        ip("-n", host.name, "link", "set", INTERFACE, "up")
    return Network(hosts, bridge, here)


def _add_bridge(name: str) -> bool:
    """False: another test has it, or one that was killed has left something."""
    if Path(f"/sys/class/net/{name}-0").exists():
        return False
    try:
        ip("link", "add", name, "type", "bridge")
    except subprocess.CalledProcessError as error:
        if b"exists" not in error.stderr:
            raise
        return False
    return True


class Ssh:
    """A key and settings of its own; ``environment``: what a shell has from which ssh leads to every host."""

    def __init__(self, home: Path) -> None:
        if not SSHD.exists() or shutil.which("ssh") is None:
            pytest.skip("hosts that ssh reaches need openssh-server")
        Path("/run/sshd").mkdir(exist_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / "key")], check=True)
        settings = f"HostKey {home}/key\nAuthorizedKeysFile {home}/key.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
        (home / "sshd").write_text(settings + "PermitRootLogin yes\n")
        (home / "client").write_text(
            f"IdentityFile {home}/key\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
        )
        (home / "bin").mkdir()
        (home / "bin" / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {home}/client "$@"\n')
        (home / "bin" / "ssh").chmod(0o755)
        self._settings = str(home / "sshd")
        self.environment = os.environ | {"PATH": f"{home}/bin:{os.environ['PATH']}", "DS_ACCELERATOR": "cpu"}

    def serve(self, host: Host) -> subprocess.Popen:
        """Begin to answer there; a host that is killed needs it again."""
        return subprocess.Popen(host.inside([str(SSHD), "-D", "-e", "-f", self._settings]), stderr=subprocess.DEVNULL)


def until(is_true: Callable[[], bool], seconds: float) -> None:
    """Wait for it, at most so long."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)
