"""Whether the machines reach one another, before any library tries and waits for half an hour without a reason.

Each host listens on a port that the system chooses, as gloo and nccl do, and tells the others in the store of
torch.distributed, which all reach or nothing works. Then each connects to every other. A host answers with its clock,
so the difference is known to half the time of the answer.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

from launch.errors import LaunchError
from pretrain.engine.world import LAUNCHER_VARIABLES, route_to

CONNECT_SECONDS = 5.0
STORE_SECONDS = 60.0
MOST_PEERS = 64  # that one host tries: the next ones by rank
HOW_TO_START = (
    "doctor --cluster is started on every node, as training is: torchrun --nnodes N --nproc-per-node M … -m launch "
    "doctor --cluster"
)


class Meeting:
    """What the processes tell one another through the store of torch.distributed."""

    def __init__(self) -> None:
        missing = [name for name in LAUNCHER_VARIABLES if name not in os.environ]
        if missing:
            raise LaunchError(f"{', '.join(missing)} not set; {HOW_TO_START}")
        import torch.distributed as dist

        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.is_leader = os.environ["LOCAL_RANK"] == "0"
        master = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        self.interface, self.address = route_to(os.environ["MASTER_ADDR"])
        own = f"{socket.gethostname()} ({self.interface or 'no interface'} {self.address or 'without a route'})"
        try:
            found = dist.rendezvous("env://", timeout=timedelta(seconds=STORE_SECONDS))
            self.store = dist.PrefixStore("doctor", next(iter(found))[0])
            self.store.set(f"hello/{self.rank}", "")
        except (RuntimeError, ValueError, OSError) as error:
            reason = str(error).strip().splitlines()[0]
            raise LaunchError(
                f"{own} cannot meet the others at {master} within {STORE_SECONDS:.0f} s ({reason}); let TCP through "
                "between the nodes, and check that the first node is up and MASTER_ADDR is its address on their network"
            ) from None

    def share(self, name: str, value: Any) -> list[Any]:
        """What every process gives under a name, by rank; None for one that gave nothing in time."""
        keys = [f"{name}/{rank}" for rank in range(self.size)]
        try:
            self.store.set(keys[self.rank], json.dumps(value))
            with suppress(RuntimeError):  # some say nothing
                self.store.wait(keys, timedelta(seconds=STORE_SECONDS))
            given = [key for key in keys if self.store.check([key])]
            told = dict(zip(given, map(json.loads, self.store.multi_get(given)), strict=True))
        except RuntimeError as error:
            raise LaunchError(
                f"lost the first process, which holds what all say ({str(error).splitlines()[0]})"
            ) from None
        return [told.get(key) for key in keys]

    def leave(self) -> None:
        """The first process, whose store it is, goes when all others have said that they need it no more."""
        with suppress(RuntimeError):
            self.store.set(f"end/{self.rank}", "")
            if self.rank == 0:
                self.store.wait([f"end/{rank}" for rank in range(self.size)], timedelta(seconds=STORE_SECONDS))


class Door(NamedTuple):
    """Where a host listens."""

    host: str
    interface: str
    address: str
    port: int


class Listener:
    """Answers connections with this machine's clock while the block runs."""

    def __init__(self, address: str) -> None:
        self._socket = socket.create_server((address, 0), backlog=256)
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection, _ = self._socket.accept()
                with connection, suppress(OSError):
                    connection.sendall(json.dumps(time.time()).encode())


def try_doors(own: int, doors: dict[int, Door]) -> dict[str, Any]:
    """Connect to the doors of other ranks: "faults", sentences by rank; "ahead", seconds that their clocks are."""
    faults: dict[int, str] = {}
    ahead: dict[int, float] = {}
    for rank, door in _next(own, doors):
        began = time.time()
        try:
            with socket.create_connection((door.address, door.port), CONNECT_SECONDS) as connection:
                theirs = json.loads(connection.recv(64))
            ahead[rank] = theirs - (began + time.time()) / 2
        except (OSError, ValueError) as error:
            is_silent = isinstance(error, TimeoutError)
            why = f"no answer in {CONNECT_SECONDS:.0f} s" if is_silent else str(error)
            faults[rank] = f"{door.host} at {door.address}:{door.port} (its interface {door.interface or '–'}): {why}"
    return {"faults": faults, "ahead": ahead}


def _next(own: int, doors: dict[int, Door]) -> Iterable[tuple[int, Door]]:
    """The others, those with the next ranks first, and rank 0, whose clock is the measure."""
    others = sorted((rank for rank in doors if rank != own), key=lambda rank: (rank < own, rank))[:MOST_PEERS]
    if own and doors and 0 in doors and 0 not in others:
        others.append(0)
    return [(rank, doors[rank]) for rank in others]
