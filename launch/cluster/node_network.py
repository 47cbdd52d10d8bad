"""Whether the machines can connect to one another, checked before a library waits half an hour without a message.

Each host listens on a port chosen by the system, as gloo and nccl do, and publishes it in the store of
torch.distributed. Then each host connects to every other one. A host answers with its clock, so the difference of
clocks is known to half the response time.
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
MAX_PEERS = 64  # hosts that one host connects to: the next ones by rank
HOW_TO_START = (
    "start doctor --cluster on every node, like training: torchrun --nnodes N --nproc-per-node M … -m launch doctor "
    "--cluster"
)


class SharedStore:
    """Exchanges values between all processes through the store of torch.distributed."""

    def __init__(self) -> None:
        if missing := [name for name in LAUNCHER_VARIABLES if name not in os.environ]:
            raise LaunchError(f"{', '.join(missing)} not set; {HOW_TO_START}")
        import torch.distributed as dist

        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.is_leader = os.environ["LOCAL_RANK"] == "0"
        master = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        self.interface, self.address = route_to(os.environ["MASTER_ADDR"])
        try:
            rendezvous = dist.rendezvous("env://", timeout=timedelta(seconds=STORE_SECONDS))
            self.store = dist.PrefixStore("doctor", next(iter(rendezvous))[0])
            self.store.set(f"hello/{self.rank}", "")
        except (RuntimeError, ValueError, OSError) as error:
            own = f"{socket.gethostname()} ({self.interface or 'no interface'} {self.address or 'without a route'})"
            reason = str(error).strip().splitlines()[0]
            raise LaunchError(
                f"{own} cannot reach the rendezvous at {master} within {STORE_SECONDS:.0f} s ({reason}); allow TCP "
                "between the nodes, and check that the first node is up and MASTER_ADDR is its address on their network"
            ) from None

    def share(self, name: str, value: Any) -> list[Any]:
        """The values that all processes share under a name, by rank; None for a process that did not answer in time."""
        keys = [f"{name}/{rank}" for rank in range(self.size)]
        try:
            self.store.set(keys[self.rank], json.dumps(value))
            with suppress(RuntimeError):  # some processes do not answer
                self.store.wait(keys, timedelta(seconds=STORE_SECONDS))
            present = [key for key in keys if self.store.check([key])]
            values = dict(zip(present, map(json.loads, self.store.multi_get(present)), strict=True))
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise LaunchError(f"lost the first process, which holds the shared values ({reason})") from None
        return [values.get(key) for key in keys]

    def leave(self) -> None:
        """End together: the first process, which holds the store, waits until all others are done."""
        with suppress(RuntimeError):
            self.store.set(f"end/{self.rank}", "")
            if self.rank == 0:
                self.store.wait([f"end/{rank}" for rank in range(self.size)], timedelta(seconds=STORE_SECONDS))


class Endpoint(NamedTuple):
    """The address at which a host listens."""

    host: str
    interface: str
    address: str
    port: int


class ClockServer:
    """Answers connections with this machine's clock while the block runs."""

    def __init__(self, address: str) -> None:
        self._socket = socket.create_server((address, 0), backlog=256)
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> ClockServer:
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


def connect_to_peers(own_rank: int, endpoints: dict[int, Endpoint]) -> dict[str, Any]:
    """Connect to other hosts; returns "errors" (sentences) and "clock_offsets" (seconds they are ahead) by rank."""
    errors: dict[int, str] = {}
    offsets: dict[int, float] = {}
    for rank, peer in _peers(own_rank, endpoints):
        start = time.time()
        try:
            with socket.create_connection((peer.address, peer.port), CONNECT_SECONDS) as connection:
                clock = json.loads(connection.recv(64))
            offsets[rank] = clock - (start + time.time()) / 2
        except (OSError, ValueError) as error:
            reason = f"no answer in {CONNECT_SECONDS:.0f} s" if isinstance(error, TimeoutError) else str(error)
            errors[rank] = (
                f"{peer.host} at {peer.address}:{peer.port} (its interface {peer.interface or '–'}): {reason}"
            )
    return {"errors": errors, "clock_offsets": offsets}


def _peers(own_rank: int, endpoints: dict[int, Endpoint]) -> Iterable[tuple[int, Endpoint]]:
    """The other hosts, those with the next ranks first, always with rank 0, whose clock is the reference."""
    others = sorted((rank for rank in endpoints if rank != own_rank), key=lambda rank: (rank < own_rank, rank))
    chosen = others[:MAX_PEERS]
    if own_rank and 0 in endpoints and 0 not in chosen:
        chosen.append(0)
    return [(rank, endpoints[rank]) for rank in chosen]
