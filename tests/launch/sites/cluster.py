"""A real Slurm on this machine: munged, slurmctld, and a slurmd in each of two hosts.

Hosts are network namespaces with an address and a name of their own (UTS), joined to this machine by a bridge; they
share its files. Needs root, iproute2 and Debian's packages slurmctld, slurmd, slurm-client and munge.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

HOSTS = {"malmoi-node-a": "10.77.32.1", "malmoi-node-b": "10.77.32.2"}
HERE, BRIDGE = "10.77.32.254", "malmoi-bridge"
PROGRAMS = ("ip", "unshare", "munged", "slurmctld", "slurmd", "sbatch")
NAMES = Path("/etc/netns")  # `ip netns exec` shows what lies here below /etc
CONFIG = """
ClusterName=malmoi
SlurmctldHost={name}({here})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket,cred_expire=5
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd-%n.pid
SlurmctldPort=6827
SlurmdPort=6828
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=15
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=2,sched_interval=2
SlurmdParameters=config_overrides
GresTypes=gpu
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str | None:
    """What a real Slurm lacks here, if anything."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if missing:
        return f"needs {', '.join(missing)} (apt-get install slurmctld slurmd slurm-client munge iproute2)"
    return None if os.geteuid() == 0 else "needs root, for network namespaces and slurmd"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def two_hosts() -> Iterator[None]:
    """Namespaces with names that lead to their addresses, as ``inside`` enters them; OSError where not permitted."""
    with ExitStack() as undo:
        try:
            ip("link", "add", BRIDGE, "type", "bridge")
            undo.callback(subprocess.run, ["ip", "link", "del", BRIDGE], check=False)
            ip("addr", "add", f"{HERE}/24", "dev", BRIDGE)
            ip("link", "set", BRIDGE, "up")
            names = "\n".join(f"{address} {name}" for name, address in (*HOSTS.items(), (socket.gethostname(), HERE)))
            for number, (name, address) in enumerate(HOSTS.items()):
                ip("netns", "add", name)
                undo.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
                (NAMES / name).mkdir(parents=True)
                undo.callback(shutil.rmtree, NAMES / name)
                (NAMES / name / "hosts").write_text(f"127.0.0.1 localhost\n{names}\n")
                ip("link", "add", f"malmoi-{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
                ip("link", "set", f"malmoi-{number}", "master", BRIDGE, "up")
                ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "link", "set", "eth0", "up")
        except subprocess.CalledProcessError as error:
            raise OSError(error.stderr.decode()) from None
        yield


def inside(host: str, command: Sequence[str]) -> list[str]:
    """The command as a process of the host, with the host's name."""
    return ["ip", "netns", "exec", host, "unshare", "--uts", "sh", "-c", f'hostname {host}; exec "$@"', "sh", *command]


@contextmanager
def slurm(home: Path) -> Iterator[Slurm]:
    """Both hosts idle under a controller whose files lie in ``home``; all of it is gone afterwards."""
    gpus = "\n".join(f"NodeName={name} Name=gpu File={home}/gpu[0-1]" for name in HOSTS)
    nodes = "\n".join(
        f"NodeName={name} NodeAddr={address} NodeHostname={name} CPUs=4 RealMemory=4000 Gres=gpu:2"
        for name, address in HOSTS.items()
    )
    (home / "state").mkdir(parents=True)
    (home / "gres.conf").write_text(gpus + "\n")
    (home / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # none is used, and v2 would look for systemd
    (home / "slurm.conf").write_text(CONFIG.format(name=socket.gethostname(), here=HERE, home=home, nodes=nodes))
    for number in range(2):
        (home / f"gpu{number}").touch()
    (home / "munge.key").write_bytes(os.urandom(1024))
    (home / "munge.key").chmod(0o400)
    environment = os.environ | {"SLURM_CONF": str(home / "slurm.conf"), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    munge = [f"--{name}={home}/munge.{end}" for name, end in FILES_OF_MUNGE.items()]
    with two_hosts(), ExitStack() as undo:

        def start(command: Sequence[str], log: str) -> None:
            out = undo.enter_context((home / log).open("wb"))
            process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
            undo.callback(process.wait)
            undo.callback(process.terminate)

        start(["munged", "--foreground", "--force", *munge], "munged.log")
        start(["slurmctld", "-D", "-f", str(home / "slurm.conf")], "slurmctld.log")
        for host in HOSTS:
            (home / host).mkdir()
            start(inside(host, ["slurmd", "-D", "-f", str(home / "slurm.conf")]), f"slurmd-{host}.log")
        found = Slurm(environment)
        until(lambda: found.ask("sinfo", "--noheader", "--format=%T", "--nodes", ",".join(HOSTS)) == "idle", 60)
        try:
            yield found
        finally:
            found.ask("scancel", "--user=root")
            until(lambda: not found.ask("squeue", "--noheader"), 60)


FILES_OF_MUNGE = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed", "log-file": "log"}


class Slurm:
    """Its commands. ``environment``: what a user's shell has on this cluster."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def ask(self, *command: str) -> str:
        """What a command prints, without the last line end; empty where it fails."""
        return subprocess.run(command, env=self.environment, capture_output=True, text=True).stdout.strip()

    def job(self, number: str) -> dict[str, str]:
        """What ``scontrol show job`` tells by key."""
        told = self.ask("scontrol", "--oneliner", "show", "job", number)
        return dict(part.split("=", 1) for part in told.split() if "=" in part)


def until(is_true: Callable[[], bool], seconds: float) -> None:
    """Wait for it, at most so long."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)
