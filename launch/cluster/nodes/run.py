"""``malmoi doctor --cluster``: every process looks, the first one says what is wrong, before GPU hours are spent.

The order is that of what can fail: to meet at all, to reach one another, to see the folder, to add numbers up.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from launch.cluster.nodes.machine import describe_machine
from launch.cluster.nodes.reach import Door, Listener, Meeting, try_doors
from launch.cluster.nodes.verdict import SIZES, judge, show
from launch.console import PlainConsole
from launch.errors import LaunchError
from pretrain.engine.world import name_interface

SHARED_SECONDS = 30.0  # until all must see a file that one has written; NFS keeps names for that long
COLLECTIVE_SECONDS = 120.0
ROUNDS = 5


def examine_cluster(runs: Path, local: Path | None) -> bool:
    """Print what all processes found, in the first one; returns whether training can start, the same in all.

    ``runs``: the shared folder of runs, made when missing; ``local``: a folder on each node's own disk.

    LaunchError: it was not started by a launcher, or the processes cannot meet.
    """
    meeting = Meeting()
    name_interface(os.environ["MASTER_ADDR"])
    reached = _reach(meeting)
    seen = _see_folder(meeting, runs)
    folders = {"runs": runs, "local": local or Path(gettempdir())}
    told = {"reached": reached, "seen": seen, "address": meeting.address, "interface": meeting.interface}
    told |= describe_machine(folders, is_leader=meeting.is_leader)
    found = meeting.share("facts", told)
    lost = any(record is None or record["reached"]["faults"] for record in found)
    sums = {} if lost else _add_up(meeting)
    found = [
        record and record | {"sums": more} for record, more in zip(found, meeting.share("sums", sums), strict=True)
    ]
    faults, remarks = judge(found)
    if meeting.rank == 0:
        show(found, faults, remarks, PlainConsole())
    meeting.leave()
    return not faults


def _reach(meeting: Meeting) -> dict[str, Any]:
    """Doors of one process a host; the others are where it is."""
    if not meeting.is_leader:
        meeting.share("door", None)
        meeting.share("tried", True)
        return {"faults": {}, "ahead": {}}
    with Listener(meeting.address or "127.0.0.1") as listener:
        own = Door(socket.gethostname(), meeting.interface, meeting.address, listener.port)
        doors = {rank: Door(*door) for rank, door in enumerate(meeting.share("door", own)) if door}
        found = try_doors(meeting.rank, doors)
        meeting.share("tried", True)  # until nobody knocks any more
    return found


def _see_folder(meeting: Meeting, runs: Path) -> dict[str, Any]:
    """The first process writes a file; how many seconds later each of the others reads it, or why it cannot."""
    sign, content = runs / f".doctor-{meeting.share('sign', uuid.uuid4().hex)[0]}", "말모이"
    fault = ""
    if meeting.rank == 0:
        try:
            runs.mkdir(parents=True, exist_ok=True)
            sign.write_text(content, "utf-8")
        except OSError as error:
            fault = f"cannot write there ({(error.strerror or str(error)).lower()})"
    fault = meeting.share("written", fault)[0] or ""
    began, waited = time.monotonic(), None
    while not fault and waited is None and time.monotonic() - began < SHARED_SECONDS:
        with suppress(OSError):
            if sign.read_text("utf-8") == content:
                waited = time.monotonic() - began
        time.sleep(0.0 if waited is not None else 0.1)
    if not fault and waited is None:
        fault = f"does not see within {SHARED_SECONDS:.0f} s what the first process wrote there"
    meeting.share("looked", True)
    if meeting.rank == 0:
        sign.unlink(missing_ok=True)
    return {"folder": str(runs), "seconds": waited, "fault": fault}


def _add_up(meeting: Meeting) -> dict[str, Any]:
    """Seconds of an all-reduce by size over all processes, on the devices that would train."""
    import torch
    import torch.distributed as dist

    from pretrain.engine.world import wait_for_device

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    number = int(os.environ["LOCAL_RANK"])
    device = torch.device(accelerator.type, number) if accelerator else torch.device("cpu")
    backend = dist.get_default_backend_for_device(device)
    limit = timedelta(seconds=COLLECTIVE_SECONDS)
    try:
        if accelerator:
            torch.accelerator.set_device_index(number)
        store = dist.PrefixStore("sums", meeting.store)
        dist.init_process_group(backend, store=store, rank=meeting.rank, world_size=meeting.size, timeout=limit)
        seconds = {}
        for name, size in SIZES.items():
            values = torch.ones(size // 4, device=device)
            taken = []
            for _ in range(ROUNDS + 1):  # the first one connects
                values.fill_(1.0)
                wait_for_device(device)
                began = time.perf_counter()
                dist.all_reduce(values)
                wait_for_device(device)
                taken.append(time.perf_counter() - began)
            if float(values.min()) != meeting.size or float(values.max()) != meeting.size:
                return {
                    "backend": backend,
                    "fault": f"the sum of {name} of ones over {meeting.size} processes is wrong",
                }
            seconds[name] = min(taken[1:])
        dist.destroy_process_group()
    except (RuntimeError, LaunchError) as error:
        return {"backend": backend, "fault": str(error).strip().splitlines()[0][:300]}
    return {"backend": backend, "seconds": seconds}
