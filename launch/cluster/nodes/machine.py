"""What one process finds out about its own machine: versions, devices and their health, the speed of its disks."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from launch.checks.estimate import host_memory

PACKAGES = ("malmoi", "torch", "transformers", "tokenizers", "safetensors", "deepspeed", "numpy")
BLOCK, BLOCKS = 1 << 22, 16  # 64 MiB: beyond the cache of a disk, and a second at 64 MB/s
SMI_FIELDS = ("name", "memory.total", "memory.used", "temperature.gpu", "ecc.errors.uncorrected.volatile.total",
              "driver_version")  # fmt: skip
SMI_SECONDS = 30


def describe_machine(folders: dict[str, Path], *, is_leader: bool) -> dict[str, Any]:
    """Facts about this process and, from the ``leader`` of a host, about its disks; ``folders``: by what they are for.

    Files of 64 MiB are written there and removed.
    """
    import torch

    facts: dict[str, Any] = {
        "host": socket.gethostname(),
        "versions": _versions(torch),
        "cores": os.cpu_count(),
        "memory": host_memory(),
        "device": _device(torch),
    }
    if is_leader:
        facts["gpus"] = _gpus()
        facts["disks"] = {name: _disk_speed(folder) for name, folder in folders.items()}
    return facts


def _versions(torch: Any) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    if torch.cuda.is_available():
        found["CUDA"] = str(torch.version.cuda)
        found["NCCL"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found


def _device(torch: Any) -> str:
    """Name of the device that this process would train on; a sentence where torch cannot use what there is."""
    from corpus.documents.accelerator import device_name, find_device
    from corpus.documents.errors import BadInput

    try:
        kind = find_device("auto", "pretrain.engine.device").type
    except BadInput as error:
        return f"not usable: {error}"
    if kind == "cpu":
        return "cpu"
    number, there = int(os.environ.get("LOCAL_RANK", "0")), torch.accelerator.device_count()
    if number >= there:
        return f"not usable: process {number + 1} of this machine, and torch sees {there} devices"
    return device_name(torch.device(kind, number))


def _gpus() -> list[dict[str, str]]:
    """What nvidia-smi says of each GPU of the machine; nothing where there is no nvidia-smi."""
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", f"--query-gpu={','.join(SMI_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=SMI_SECONDS)
    except subprocess.TimeoutExpired:
        return [{"fault": f"nvidia-smi gave no answer in {SMI_SECONDS} s: the driver or a GPU hangs"}]
    if result.returncode:
        return [{"fault": f"nvidia-smi failed: {(result.stdout + result.stderr).strip()[:200]}"}]
    lines = [[cell.strip() for cell in line.split(",")] for line in result.stdout.splitlines() if line.strip()]
    return [dict(zip(SMI_FIELDS, cells, strict=True)) for cells in lines if len(cells) == len(SMI_FIELDS)]


def _disk_speed(folder: Path) -> dict[str, Any]:
    """Bytes a second written and waited for, and read again past the system's memory where it lets us."""
    content = os.urandom(BLOCK)
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
            began = time.perf_counter()
            for _ in range(BLOCKS):
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
            written = time.perf_counter() - began
            with suppress(AttributeError, OSError):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            began = time.perf_counter()
            file.seek(0)
            while file.read(BLOCK):
                pass
            read = time.perf_counter() - began
    except OSError as error:
        return {"fault": f"{folder}: {(error.strerror or str(error)).lower()}"}
    size = BLOCK * BLOCKS
    return {"write": size / written, "read": size / read, "free": shutil.disk_usage(folder).free}
