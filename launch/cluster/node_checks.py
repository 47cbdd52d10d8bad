"""``malmoi doctor --cluster``: every process checks its node, the first one reports, before GPU hours are spent.

The order is that of possible failures: rendezvous, connections, shared folder, all-reduce.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from corpus.documents.accelerator import device_name, find_device
from corpus.documents.errors import BadInput
from launch.checks.estimate import host_memory
from launch.cluster.node_network import ClockServer, Endpoint, SharedStore, connect_to_peers
from launch.cluster.node_report import REDUCE_SIZES, judge, print_report
from launch.console import PlainConsole
from launch.errors import LaunchError
from launch.manifest import installed_version
from pretrain.engine.world import name_interface, wait_for_device

VISIBLE_SECONDS = 30.0  # until all must see a file that one has written; NFS caches names for that long
COLLECTIVE_SECONDS = 120.0
REPEATS = 5
PACKAGES = ("malmoi", "torch", "transformers", "tokenizers", "safetensors", "deepspeed", "numpy")
BLOCK, BLOCKS = 1 << 22, 16  # 64 MiB: more than the cache of a disk, and a second at 64 MB/s
SMI_FIELDS = (
    "name", "memory.total", "memory.used", "temperature.gpu", "ecc.errors.uncorrected.volatile.total", "driver_version",
)  # fmt: skip
SMI_SECONDS = 30


def examine_cluster(runs: Path, local: Path | None) -> bool:
    """Check all nodes and print the report in the first process; returns whether training can start.

    Args:
        runs: the shared folder of runs, created if missing.
        local: a folder on each node's own disk.

    Raises:
        LaunchError: no launcher started this process, or the processes cannot meet.
    """
    store = SharedStore()
    name_interface(os.environ["MASTER_ADDR"])
    facts: dict[str, Any] = {"network": _check_network(store), "folder": _check_folder(store, runs)}
    facts |= {"address": store.address, "interface": store.interface} | _describe_process()
    if store.is_leader:
        facts["gpus"] = _query_gpus()
        disks = {"runs": runs, "local": local or Path(tempfile.gettempdir())}
        facts["disks"] = {name: _measure_disk(folder) for name, folder in disks.items()}
    records = store.share("facts", facts)
    is_disconnected = any(record is None or record["network"]["errors"] for record in records)
    reduces = store.share("all-reduce", {} if is_disconnected else _all_reduce(store))
    records = [record and record | {"all_reduce": reduce} for record, reduce in zip(records, reduces, strict=True)]
    problems, remarks = judge(records)
    if store.rank == 0:
        print_report(records, problems, remarks, PlainConsole())
    store.leave()
    return not problems


def _check_network(store: SharedStore) -> dict[str, Any]:
    """Connections of one process per host; the others share its network."""
    if not store.is_leader:
        store.share("endpoint", None)
        store.share("connected", True)
        return {"errors": {}, "clock_offsets": {}}
    with ClockServer(store.address or "127.0.0.1") as server:
        own = Endpoint(socket.gethostname(), store.interface, store.address, server.port)
        shared = store.share("endpoint", own)
        endpoints = {rank: Endpoint(*endpoint) for rank, endpoint in enumerate(shared) if endpoint}
        network = connect_to_peers(store.rank, endpoints)
        store.share("connected", True)  # keep answering until all are done
    return network


def _check_folder(store: SharedStore, runs: Path) -> dict[str, Any]:
    """The first process writes a file; the others measure how many seconds later they can read it."""
    path, content = runs / f".doctor-{store.share('name', uuid.uuid4().hex)[0]}", "말모이"
    error = ""
    if store.rank == 0:
        try:
            runs.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
        except OSError as problem:
            error = f"cannot write there ({(problem.strerror or str(problem)).lower()})"
    error = store.share("written", error)[0] or ""
    start, seconds = time.monotonic(), None
    while not error and seconds is None and time.monotonic() - start < VISIBLE_SECONDS:
        with suppress(OSError):
            if path.read_text("utf-8") == content:
                seconds = time.monotonic() - start
        time.sleep(0.0 if seconds is not None else 0.1)
    if not error and seconds is None:
        error = f"does not show within {VISIBLE_SECONDS:.0f} s what the first process wrote there"
    store.share("read", True)
    if store.rank == 0:
        path.unlink(missing_ok=True)
    return {"folder": str(runs), "seconds": seconds, "error": error}


def _all_reduce(store: SharedStore) -> dict[str, Any]:
    """Seconds of an all-reduce by size over all processes, on the devices that would train."""
    import torch
    import torch.distributed as dist

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    number = int(os.environ["LOCAL_RANK"])
    device = torch.device(accelerator.type, number) if accelerator else torch.device("cpu")
    backend, limit = dist.get_default_backend_for_device(device), timedelta(seconds=COLLECTIVE_SECONDS)
    seconds = {}
    try:
        if accelerator:
            torch.accelerator.set_device_index(number)
        prefixed = dist.PrefixStore("all-reduce", store.store)
        dist.init_process_group(backend, store=prefixed, rank=store.rank, world_size=store.size, timeout=limit)
        for name, size in REDUCE_SIZES.items():
            values = torch.ones(size // 4, device=device)
            durations = []
            for _ in range(REPEATS + 1):  # the first one connects
                values.fill_(1.0)
                wait_for_device(device)
                start = time.perf_counter()
                dist.all_reduce(values)
                wait_for_device(device)
                durations.append(time.perf_counter() - start)
            if float(values.min()) != store.size or float(values.max()) != store.size:
                return {"backend": backend, "error": f"the sum of {name} of ones over {store.size} processes is wrong"}
            seconds[name] = min(durations[1:])
        dist.destroy_process_group()
    except (RuntimeError, LaunchError) as problem:
        return {"backend": backend, "error": str(problem).strip().splitlines()[0][:300]}
    return {"backend": backend, "seconds": seconds}


def _describe_process() -> dict[str, Any]:
    import torch

    versions = {"python": platform.python_version()} | {name: installed_version(name) for name in PACKAGES}
    if torch.cuda.is_available():
        versions |= {"CUDA": str(torch.version.cuda), "NCCL": ".".join(map(str, torch.cuda.nccl.version()))}
    memory, cores = host_memory(), os.cpu_count()
    return {
        "host": socket.gethostname(), "versions": versions, "cores": cores, "memory": memory, "device": _device(torch)
    }  # fmt: skip


def _device(torch: Any) -> str:
    """Name of the device that this process would train on, or "not usable: " and the reason."""
    try:
        kind = find_device("auto", "pretrain.engine.device").type
    except BadInput as error:
        return f"not usable: {error}"
    if kind == "cpu":
        return "cpu"
    number, count = int(os.environ.get("LOCAL_RANK", "0")), torch.accelerator.device_count()
    if number >= count:
        return f"not usable: process {number + 1} of this machine, but torch sees only {count} devices"
    return device_name(torch.device(kind, number))


def _query_gpus() -> list[dict[str, str]]:
    """The report of nvidia-smi on each GPU of the machine; empty without nvidia-smi."""
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", f"--query-gpu={','.join(SMI_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=SMI_SECONDS)
    except subprocess.TimeoutExpired:
        return [{"error": f"nvidia-smi did not answer in {SMI_SECONDS} s: the driver or a GPU hangs"}]
    if result.returncode:
        return [{"error": f"nvidia-smi failed: {(result.stdout + result.stderr).strip()[:200]}"}]
    lines = [[cell.strip() for cell in line.split(",")] for line in result.stdout.splitlines() if line.strip()]
    return [dict(zip(SMI_FIELDS, cells, strict=True)) for cells in lines if len(cells) == len(SMI_FIELDS)]


def _measure_disk(folder: Path) -> dict[str, Any]:
    """Bytes per second written with fsync, and read back outside the page cache where the system allows it.

    Writes and removes a file of 64 MiB.
    """
    content, size = os.urandom(BLOCK), BLOCK * BLOCKS
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
            start = time.perf_counter()
            for _ in range(BLOCKS):
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
            write_seconds = time.perf_counter() - start
            with suppress(AttributeError, OSError):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            start = time.perf_counter()
            file.seek(0)
            while file.read(BLOCK):
                pass
            read_seconds = time.perf_counter() - start
    except OSError as problem:
        return {"error": f"{folder}: {(problem.strerror or str(problem)).lower()}"}
    return {"write": size / write_seconds, "read": size / read_seconds, "free": shutil.disk_usage(folder).free}
