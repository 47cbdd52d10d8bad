"""The report of ``malmoi doctor --cluster``: problems, remarks and a table, from the records of all processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from launch.console import PlainConsole, Table, print_table
from pretrain.engine.memory import GIB

MAX_CLOCK_OFFSET = 2.0  # seconds; beyond this, file times of different hosts mislead people and programs
FREE_SHARE = 0.9  # of a GPU's memory; with less free, another process uses it
SLOW_DISK = 50e6  # bytes per second: a checkpoint of the base model would take half a minute
REDUCE_SIZES = {"1 KiB": 1 << 10, "1 MiB": 1 << 20, "64 MiB": 1 << 26}
Record = dict[str, Any]


def judge(records: Sequence[Record | None]) -> tuple[list[str], list[str]]:
    """Problems that keep training from starting, and remarks; ``records`` by rank, None for a process without answer.

    The record of the first process of a host also has its "disks" and "gpus".
    """
    problems = [f"rank {rank} did not answer" for rank, record in enumerate(records) if record is None]
    present = {rank: record for rank, record in enumerate(records) if record is not None}
    leaders = [record for record in present.values() if "disks" in record]
    gpus = [(record["host"], gpu) for record in leaders for gpu in record["gpus"]]
    problems += [*_versions(present), *_connections(present), *_folder(present), *_devices(present), *_clocks(leaders)]
    problems += [f"{host}: {gpu['error']}" for host, gpu in gpus if "error" in gpu]
    problems += [sentence for host, gpu in gpus for sentence in _memory_errors(host, gpu)]
    failures = Counter(error for record in present.values() if (error := record.get("all_reduce", {}).get("error")))
    problems += [f"all-reduce failed in {n} of {len(records)} processes: {why}" for why, n in failures.items()]
    remarks = []
    for record in leaders:
        for name, disk in record["disks"].items():
            if "error" in disk:
                problems.append(f"{record['host']}: cannot write to the folder for {name} ({disk['error']})")
            elif disk["write"] < SLOW_DISK:
                speed = f"{disk['write'] / 1e6:.0f} MB/s"
                remarks.append(f"{record['host']}: writing to the folder for {name} is slow ({speed})")
    return problems, remarks + [sentence for host, gpu in gpus for sentence in _memory_use(host, gpu)]


def print_report(
    records: Sequence[Record | None], problems: Sequence[str], remarks: Sequence[str], console: PlainConsole
) -> None:
    """Print the table by node, the speed of all-reduce, remarks, problems and the verdict."""
    present = {rank: record for rank, record in enumerate(records) if record is not None}
    rows = [
        _row(record, [other for other in present.values() if other["host"] == record["host"]], problems)
        for record in present.values()
        if "disks" in record
    ]
    heads = ("node", "ranks", "address", "device", "clock", "sees runs", "runs MB/s", "local MB/s", "verdict")
    print_table(Table(heads, rows, numbers=(1,), title="Cluster"), console)
    for line in (*_speed(present), *(f"NOTE: {remark}" for remark in remarks), *(f"✗ {one}" for one in problems)):
        console.print(line, soft_wrap=True)
    verdict = "ready: training can start" if not problems else f"not ready: {len(problems)} problems to fix first"
    console.print(f"{len(rows)} nodes, {len(records)} processes: {verdict}", soft_wrap=True)


def _row(record: Record, same_host: Sequence[Record], problems: Sequence[str]) -> list[str]:
    disks = {
        name: "–" if "error" in disk else f"{disk['write'] / 1e6:.0f} / {disk['read'] / 1e6:.0f}"
        for name, disk in record["disks"].items()
    }
    offset = record["network"]["clock_offsets"].get("0")  # JSON keys are strings
    folder = record["folder"]
    return [
        record["host"],
        str(len(same_host)),
        f"{record['address']} ({record['interface'] or '–'})",
        ", ".join(f"{count} x {name}" for name, count in Counter(one["device"] for one in same_host).items()),
        "–" if offset is None else f"{-offset:+.3f} s",
        "no" if folder["error"] else f"{folder['seconds']:.1f} s",
        disks["runs"],
        disks["local"],
        "✗" if any(record["host"] in problem for problem in problems) else "✓",
    ]


def _versions(present: dict[int, Record]) -> Iterator[str]:
    """Packages whose versions differ, with the hosts of each version, the most frequent version first."""
    for name in dict.fromkeys(name for record in present.values() for name in record["versions"]):
        hosts: dict[str, list[str]] = {}
        for record in present.values():
            hosts.setdefault(record["versions"].get(name, "not installed"), []).append(record["host"])
        if len(hosts) > 1:
            order = sorted(hosts.items(), key=lambda item: -len(item[1]))
            found = ", ".join(f"{version} on {', '.join(dict.fromkeys(where))}" for version, where in order)
            yield f"{name} differs: {found}; install one version everywhere"


def _connections(present: dict[int, Record]) -> Iterator[str]:
    for record in present.values():
        for error in record["network"]["errors"].values():
            yield (
                f"{record['host']} ({record['interface'] or '–'} {record['address']}) cannot connect to {error}; allow "
                "TCP between the nodes, or name their interface in GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME"
            )


def _folder(present: dict[int, Record]) -> Iterator[str]:
    errors = {(record["host"], record["folder"]["error"]): record["folder"]["folder"] for record in present.values()}
    for (host, error), folder in errors.items():
        if error:
            yield f"{host}: {folder} {error}; set --runs to a folder that all nodes share"


def _devices(present: dict[int, Record]) -> Iterator[str]:
    kinds = Counter(record["device"] for record in present.values())
    usual = kinds.most_common(1)[0][0] if kinds else ""
    for rank, record in present.items():
        if record["device"].startswith("not usable"):
            yield f"{record['host']}, rank {rank}: {record['device']}"
        elif record["device"] != usual:
            yield f"{record['host']}, rank {rank}: trains on {record['device']}, most others on {usual}"


def _clocks(leaders: Sequence[Record]) -> Iterator[str]:
    for record in leaders:
        offset = record["network"]["clock_offsets"].get("0", 0.0)
        if abs(offset) > MAX_CLOCK_OFFSET:
            difference = f"{abs(offset):.1f} s {'behind' if offset > 0 else 'ahead of'} the first node"
            yield f"{record['host']}: its clock is {difference}; set it by NTP"


def _memory_errors(host: str, gpu: dict[str, str]) -> Iterator[str]:
    errors = gpu.get("ecc.errors.uncorrected.volatile.total", "")
    if errors.isdecimal() and int(errors):
        yield f"{host}: {gpu['name']} has {errors} uncorrected memory errors; have it reset or replaced"


def _memory_use(host: str, gpu: dict[str, str]) -> Iterator[str]:
    used, total = gpu.get("memory.used", ""), gpu.get("memory.total", "")
    if used.isdecimal() and total.isdecimal() and int(used) > (1 - FREE_SHARE) * int(total):
        yield f"{host}: other processes use {int(used) * (1 << 20) / GIB:.1f} GiB of a {gpu['name']}"


def _speed(present: dict[int, Record]) -> Iterator[str]:
    """Time of the slowest process by size; the rate counts what each process sends: 2 (n - 1) / n of the bytes."""
    timed = [record["all_reduce"] for record in present.values() if record.get("all_reduce", {}).get("seconds")]
    if timed:
        share = 2 * (len(present) - 1) / len(present)
        parts = []
        for name, size in REDUCE_SIZES.items():
            seconds = max(record["seconds"][name] for record in timed)
            parts.append(f"{name} {1e3 * seconds:.2f} ms ({share * size / seconds / 1e9:.2f} GB/s)")
        yield f"all-reduce by {timed[0]['backend']}: {', '.join(parts)}"
