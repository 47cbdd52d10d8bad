"""What is wrong with a cluster, from what all its processes found: pure functions of those records, and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from launch.checks.estimate import GIB
from launch.console import PlainConsole, Table, print_table

MOST_SKEW_S = 2.0  # beyond, times of files of different hosts mislead people and programs
FREE_SHARE = 0.9  # of a GPU's memory; below, somebody else is on it
SLOW_DISK = 50e6  # bytes a second: a checkpoint of the base model would take half a minute
SIZES = {"1 KiB": 1 << 10, "1 MiB": 1 << 20, "64 MiB": 1 << 26}
Record = dict[str, Any]


def judge(found: Sequence[Record | None]) -> tuple[list[str], list[str]]:
    """Sentences about what keeps training from starting, and about what is only worth knowing; records by rank."""
    faults = [f"rank {rank} told nothing" for rank, record in enumerate(found) if record is None]
    there = {rank: record for rank, record in enumerate(found) if record is not None}
    leaders = {rank: record for rank, record in there.items() if "disks" in record}
    faults += [*_versions(there), *_unreached(there), *_folder(there), *_devices(there), *_clocks(leaders)]
    faults += [
        f"{record['host']}: {gpu['fault']}" for record in leaders.values() for gpu in record["gpus"] if "fault" in gpu
    ]
    faults += [
        sentence for record in leaders.values() for gpu in record["gpus"] for sentence in _ecc(record["host"], gpu)
    ]
    sums = Counter(record["sums"]["fault"] for record in there.values() if record.get("sums", {}).get("fault"))
    faults += [f"all-reduce failed in {count} of {len(found)} processes: {why}" for why, count in sums.items()]
    remarks = []
    for record in leaders.values():
        for name, disk in record["disks"].items():
            if "fault" in disk:
                faults.append(f"{record['host']}: cannot write to the folder for {name} ({disk['fault']})")
            elif disk["write"] < SLOW_DISK:
                remarks.append(f"{record['host']}: the folder for {name} takes {disk['write'] / 1e6:.0f} MB/s only")
        remarks += [sentence for gpu in record["gpus"] for sentence in _used(record["host"], gpu)]
    return faults, remarks


def show(found: Sequence[Record | None], faults: Sequence[str], remarks: Sequence[str], console: PlainConsole) -> None:
    """The table by node, the speed of sums, and the verdict."""
    there = {rank: record for rank, record in enumerate(found) if record is not None}
    rows = [
        _row(record, [other for other in there.values() if other["host"] == record["host"]], faults)
        for record in there.values()
        if "disks" in record
    ]
    heads = ("node", "ranks", "address", "device", "clock", "sees runs", "runs MB/s", "local MB/s", "verdict")
    print_table(Table(heads, rows, numbers=(1,), title="Cluster"), console)
    for line in (*_sums(there), *(f"NOTE: {remark}" for remark in remarks), *(f"✗ {fault}" for fault in faults)):
        console.print(line, soft_wrap=True)
    said = "ready: training can start" if not faults else f"not ready: {len(faults)} to repair first"
    console.print(f"{len(rows)} nodes, {len(found)} processes: {said}", soft_wrap=True)


def _row(record: Record, same: Sequence[Record], faults: Sequence[str]) -> list[str]:
    disks = {
        name: "–" if "fault" in disk else f"{disk['write'] / 1e6:.0f} / {disk['read'] / 1e6:.0f}"
        for name, disk in record["disks"].items()
    }
    ahead = record["reached"]["ahead"].get("0")  # JSON has names alone
    seen = record["seen"]
    is_well = not any(record["host"] in fault for fault in faults)
    return [
        record["host"],
        str(len(same)),
        f"{record['address']} ({record['interface'] or '–'})",
        ", ".join(f"{count} x {name}" for name, count in Counter(one["device"] for one in same).items()),
        "–" if ahead is None else f"{-ahead:+.3f} s",
        "no" if seen["fault"] else f"{seen['seconds']:.1f} s",
        disks["runs"],
        disks["local"],
        "✓" if is_well else "✗",
    ]


def _versions(there: dict[int, Record]) -> Iterator[str]:
    """Packages that differ, and who has which; those of most processes first."""
    names = dict.fromkeys(name for record in there.values() for name in record["versions"])
    for name in names:
        hosts: dict[str, list[str]] = {}
        for record in there.values():
            hosts.setdefault(record["versions"].get(name, "missing"), []).append(record["host"])
        if len(hosts) > 1:
            order = sorted(hosts.items(), key=lambda item: -len(item[1]))
            said = ", ".join(f"{version} on {', '.join(dict.fromkeys(where))}" for version, where in order)
            yield f"{name} differs: {said}; install one version everywhere"


def _unreached(there: dict[int, Record]) -> Iterator[str]:
    for record in there.values():
        for fault in record["reached"]["faults"].values():
            yield (
                f"{record['host']} ({record['interface'] or '–'} {record['address']}) cannot connect to {fault}; let "
                "TCP through between the nodes, or name their interface in GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME"
            )


def _folder(there: dict[int, Record]) -> Iterator[str]:
    faults = {(record["host"], record["seen"]["fault"]): record for record in there.values() if record["seen"]["fault"]}
    for (host, fault), record in faults.items():
        yield f"{host}: {record['seen']['folder']} {fault}; give a folder that all nodes share with --runs"


def _devices(there: dict[int, Record]) -> Iterator[str]:
    kinds = Counter(record["device"] for record in there.values())
    usual = kinds.most_common(1)[0][0] if kinds else ""
    for rank, record in there.items():
        if record["device"].startswith("not usable"):
            yield f"{record['host']}, rank {rank}: {record['device']}"
        elif record["device"] != usual:
            yield f"{record['host']}, rank {rank}: trains on {record['device']}, most others on {usual}"


def _clocks(leaders: dict[int, Record]) -> Iterator[str]:
    for record in leaders.values():
        ahead = record["reached"]["ahead"].get("0", 0.0)
        if abs(ahead) > MOST_SKEW_S:
            how = f"{abs(ahead):.1f} s {'behind' if ahead > 0 else 'ahead of'} that of the first node"
            yield f"{record['host']}: its clock is {how}; set it by NTP"


def _ecc(host: str, gpu: dict[str, str]) -> Iterator[str]:
    errors = gpu.get("ecc.errors.uncorrected.volatile.total", "")
    if errors.isdecimal() and int(errors):
        yield f"{host}: {gpu['name']} has {errors} memory errors that could not be corrected; have it reset or replaced"


def _used(host: str, gpu: dict[str, str]) -> Iterator[str]:
    used, total = gpu.get("memory.used", ""), gpu.get("memory.total", "")
    if used.isdecimal() and total.isdecimal() and int(used) > (1 - FREE_SHARE) * int(total):
        yield f"{host}: {int(used) * (1 << 20) / GIB:.1f} GiB of a {gpu['name']} are taken by somebody else"


def _sums(there: dict[int, Record]) -> Iterator[str]:
    """The slowest process's time by size; the rate is what each one sends: 2 (n - 1) / n of the bytes."""
    timed = [record["sums"] for record in there.values() if record.get("sums", {}).get("seconds")]
    if timed:
        share = 2 * (len(there) - 1) / len(there)
        said = []
        for name, size in SIZES.items():
            seconds = max(record["seconds"][name] for record in timed)
            said.append(f"{name} {1e3 * seconds:.2f} ms ({share * size / seconds / 1e9:.2f} GB/s)")
        yield f"all-reduce by {timed[0]['backend']}: {', '.join(said)}"
