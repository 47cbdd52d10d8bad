"""``malmoi doctor --cluster``: every process checks its node and the first one prints the report.

The processes meet at the launcher's address, compare versions and devices, look for one file in the runs folder and
time an all-reduce. Cost: seconds, or a few minutes if a node does not answer.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from operator import itemgetter
from pathlib import Path
from threading import Thread
from typing import Any

from corpus.documents.accelerator import device_name, find_device
from corpus.documents.errors import BadInput
from launch.console import PlainConsole, Table, print_table
from launch.errors import LaunchError
from launch.manifest import installed_version
from launch.numbers import group_by
from pretrain.engine.world import LAUNCHER_VARIABLES, name_interface, own_device, wait_for_device

STORE_SECONDS = 60.0
VISIBLE_SECONDS = 30.0  # until all must see a file that one has written; NFS caches names for that long
COLLECTIVE_SECONDS = 60.0
REDUCE_BYTES, REPEATS = 1 << 26, 5
HOW_TO_START = "start it on every node: torchrun --nnodes N --nproc-per-node M … -m launch doctor --cluster"
Record = dict[str, Any]


class SharedStore:
    """Exchanges values between all processes through the store of torch.distributed."""

    def __init__(self) -> None:
        if missing := [name for name in LAUNCHER_VARIABLES if name not in os.environ]:
            raise LaunchError(f"{', '.join(missing)} not set; {HOW_TO_START}")
        import torch.distributed as dist

        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        try:
            rendezvous = dist.rendezvous("env://", timeout=timedelta(seconds=STORE_SECONDS))
            self.store = dist.PrefixStore("doctor", next(iter(rendezvous))[0])
            self.store.set(f"hello/{self.rank}", "")
        except (RuntimeError, ValueError, OSError) as error:
            master = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
            reason = str(error).strip().splitlines()[0]
            raise LaunchError(
                f"{socket.gethostname()} cannot reach the rendezvous at {master} within {STORE_SECONDS:.0f} s "
                f"({reason}); allow TCP between the nodes, and check that the first node is up and MASTER_ADDR is its "
                "address on their network"
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


def examine_cluster(runs: Path) -> bool:
    """Check all nodes and print the report in the first process; returns whether training can start.

    Args:
        runs: the shared folder of runs, created if missing.

    Raises:
        LaunchError: no launcher started this process, or the processes cannot meet.
    """
    store = SharedStore()
    name_interface(os.environ["MASTER_ADDR"])
    records = store.share("facts", describe_process(runs, _check_folder(store, runs)))
    results: list[Record] = []
    if None not in records:  # gloo retries a refused connection for longer than its own time limit, hence the thread
        thread = Thread(target=lambda: results.append(_time_all_reduce(store)), daemon=True)
        thread.start()
        thread.join(COLLECTIVE_SECONDS)
        results = results or [{"error": f"no answer in {COLLECTIVE_SECONDS:.0f} s"}]
    reduce = results[0] if results else {}
    problems = list(find_problems(records, store.share("all-reduce", reduce)))
    if store.rank == 0:
        print_report(records, reduce, problems)
    store.leave()
    return not problems


def _check_folder(store: SharedStore, runs: Path) -> str:
    """The first process writes a file and the others read it; returns the error, empty if there is none."""
    path, content = runs / f".doctor-{store.share('name', uuid.uuid4().hex)[0]}", "말모이"
    error = ""
    if store.rank == 0:
        try:
            runs.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
        except OSError as problem:
            error = f"cannot write there ({(problem.strerror or str(problem)).lower()})"
    error = store.share("written", error)[0] or ""
    deadline, is_visible = time.monotonic() + VISIBLE_SECONDS, False
    while not error and not is_visible and time.monotonic() < deadline:
        with suppress(OSError):
            is_visible = path.read_text("utf-8") == content
        time.sleep(0.0 if is_visible else 0.1)
    store.share("read", True)
    if store.rank == 0:
        path.unlink(missing_ok=True)
    missing = f"does not show within {VISIBLE_SECONDS:.0f} s what the first process wrote there"
    return error or ("" if is_visible else missing)


def describe_process(runs: Path, folder_error: str = "") -> Record:
    """What is compared or shown: host, versions and the device that this process would train on."""
    try:
        kind = find_device("auto", "pretrain.engine.device").type
        device = "cpu" if kind == "cpu" else device_name(own_device(kind, int(os.environ.get("LOCAL_RANK", "0"))))
    except BadInput as error:
        device = f"not usable ({error})"
    versions = {"Python": platform.python_version()} | {name: installed_version(name) for name in ("malmoi", "torch")}
    return {
        "host": socket.gethostname(),
        "versions": versions | {"device": device},
        "folder": str(runs),
        "folder_error": folder_error,
    }


def _time_all_reduce(store: SharedStore) -> Record:
    """Seconds of an all-reduce over all processes, on the devices that would train; "error" if it failed."""
    import torch
    import torch.distributed as dist

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    backend, limit = "gloo", timedelta(seconds=COLLECTIVE_SECONDS)
    try:
        device = own_device(accelerator.type, int(os.environ["LOCAL_RANK"])) if accelerator else torch.device("cpu")
        backend = dist.get_default_backend_for_device(device)
        prefixed = dist.PrefixStore("all-reduce", store.store)
        dist.init_process_group(backend, store=prefixed, rank=store.rank, world_size=store.size, timeout=limit)
        values, durations = torch.ones(REDUCE_BYTES // 4, device=device), []
        for _ in range(REPEATS + 1):  # the first one connects
            values.fill_(1.0)
            wait_for_device(device)
            start = time.perf_counter()
            dist.all_reduce(values)
            wait_for_device(device)
            durations.append(time.perf_counter() - start)
        if float(values.min()) != store.size or float(values.max()) != store.size:
            return {"backend": backend, "error": f"the sum of ones over {store.size} processes is wrong"}
        dist.destroy_process_group()
    except (RuntimeError, LaunchError, BadInput) as problem:
        return {"backend": backend, "error": str(problem).strip().splitlines()[0][:300]}
    return {"backend": backend, "seconds": min(durations[1:])}


def find_problems(records: Sequence[Record | None], reduces: Sequence[Record | None] = ()) -> Iterator[str]:
    """What keeps training from starting; ``records`` and ``reduces`` by rank, None for a process without answer."""
    yield from (f"rank {rank} did not answer" for rank, record in enumerate(records) if record is None)
    present = [record for record in records if record is not None]
    for name in present[0]["versions"]:
        by_value = group_by(((record["versions"][name], record["host"]) for record in present), itemgetter(0))
        if len(by_value) > 1:
            order = sorted(by_value.items(), key=lambda item: -len(item[1]))
            values = ", ".join(f"{v} on {', '.join(dict.fromkeys(host for _, host in pairs))}" for v, pairs in order)
            yield f"{name} differs: {values}; use the same everywhere"
    for device, host in dict.fromkeys((record["versions"]["device"], record["host"]) for record in present):
        if device.startswith("not usable"):
            yield f"{host}: device {device}"
    for host, folder, error in dict.fromkeys((r["host"], r["folder"], r["folder_error"]) for r in present):
        if error:
            yield f"{host}: {folder} {error}; set --runs to a folder that all nodes share"
    failures = Counter(reduce["error"] for reduce in reduces if reduce and "error" in reduce)
    for reason, count in failures.items():
        yield (
            f"all-reduce failed in {count} of {len(reduces)} processes ({reason}); allow TCP between the nodes, or "
            "name their interface in GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME"
        )


def print_report(records: Sequence[Record | None], reduce: Record, problems: Sequence[str]) -> None:
    """Print a row per node, the rate of all-reduce, the problems and the verdict."""
    console = PlainConsole()
    present = [record for record in records if record is not None]
    rows = []
    for host, alike in group_by(present, lambda record: record["host"]).items():
        versions, sees = alike[0]["versions"], "no" if alike[0]["folder_error"] else "yes"
        rows.append([host, str(len(alike)), versions["device"], versions["torch"], sees])
    heads = ("node", "ranks", "device", "torch", "sees runs")
    print_table(Table(heads, rows, numbers=(1,), title="Cluster"), console)
    if seconds := reduce.get("seconds"):
        sent = 2 * (len(records) - 1) / len(records) * REDUCE_BYTES  # bytes that each process sends in a ring
        size, rate = f"{REDUCE_BYTES >> 20} MiB", f"{sent / seconds / 1e9:.2f} GB/s"
        console.print(f"all-reduce by {reduce['backend']}: {size} in {1e3 * seconds:.2f} ms ({rate})", soft_wrap=True)
    for problem in problems:
        console.print(f"✗ {problem}", soft_wrap=True)
    verdict = "ready: training can start" if not problems else f"not ready: {len(problems)} problems to fix first"
    console.print(f"{len(rows)} nodes, {len(records)} processes: {verdict}", soft_wrap=True)
