"""A real Slurm on this machine: munged, slurmctld, and a slurmd in each of two hosts.

Hosts are network namespaces (``tests/hosts.py``). Needs Debian's packages slurmctld, slurmd, slurm-client and munge.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.hosts import Host, Network, network_of, until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
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


@contextmanager
def slurm(home: Path) -> Iterator[Slurm]:
    """Two hosts idle under a controller whose files lie in ``home``; all of it is gone afterwards.

    The test is skipped where the programs or the rights are not there.
    """
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    if missing := [program for program in PROGRAMS if shutil.which(program, path=path) is None]:
        pytest.skip(f"a real Slurm needs {', '.join(missing)} (apt-get install slurmctld slurmd slurm-client munge)")
    environment = os.environ | {"SLURM_CONF": str(home / "slurm.conf"), "PATH": path}
    munge = [f"--{name}={home}/munge.{end}" for name, end in FILES_OF_MUNGE.items()]
    with network_of(2) as network, ExitStack() as undo:
        _write_settings(home, network)

        def start(command: Sequence[str], log: str) -> None:
            out = undo.enter_context((home / log).open("wb"))
            process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
            undo.callback(process.wait)
            undo.callback(process.terminate)

        start(["munged", "--foreground", "--force", *munge], "munged.log")
        start(["slurmctld", "-D", "-f", str(home / "slurm.conf")], "slurmctld.log")
        for host in network.hosts:
            (home / host.name).mkdir()
            start(host.inside(["slurmd", "-D", "-f", str(home / "slurm.conf")]), f"slurmd-{host.name}.log")
        found = Slurm(environment, network.hosts)
        nodes = ",".join(host.name for host in network.hosts)
        until(lambda: found.ask("sinfo", "--noheader", "--format=%T", "--nodes", nodes) == "idle", 60)
        try:
            yield found
        finally:
            found.ask("scancel", "--user=root")
            until(lambda: not found.ask("squeue", "--noheader"), 60)


def _write_settings(home: Path, network: Network) -> None:
    gpus = "\n".join(f"NodeName={host.name} Name=gpu File={home}/gpu[0-1]" for host in network.hosts)
    nodes = "\n".join(
        f"NodeName={host.name} NodeAddr={host.address} NodeHostname={host.name} CPUs=8 RealMemory=4000 Gres=gpu:2"
        for host in network.hosts
    )
    settings = CONFIG.format(name=socket.gethostname(), here=network.here, home=home, nodes=nodes)
    (home / "state").mkdir(parents=True)
    (home / "gres.conf").write_text(gpus + "\n")
    (home / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # none is used, and v2 would look for systemd
    (home / "slurm.conf").write_text(settings)
    for number in range(2):
        (home / f"gpu{number}").touch()
    (home / "munge.key").write_bytes(os.urandom(1024))
    (home / "munge.key").chmod(0o400)


FILES_OF_MUNGE = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed", "log-file": "log"}


class Slurm:
    """Its commands. ``environment``: what a user's shell has on this cluster."""

    def __init__(self, environment: dict[str, str], hosts: list[Host]) -> None:
        self.environment, self.hosts = environment, hosts

    def ask(self, *command: str) -> str:
        """What a command prints, without the last line end; empty where it fails."""
        return subprocess.run(command, env=self.environment, capture_output=True, text=True).stdout.strip()

    def job(self, number: str) -> dict[str, str]:
        """The fields of ``scontrol show job``."""
        output = self.ask("scontrol", "--oneliner", "show", "job", number)
        return dict(part.split("=", 1) for part in output.split() if "=" in part)
