"""The most memory in use while a model trains: tensors of the accelerator, or on a processor all of the process.

Linux lets a process forget its peak (proc(5), ``clear_refs``), so that one training after another in the same process
has its own. Elsewhere it is the peak since the process began.
"""

from __future__ import annotations

import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

import torch


def forget_peak() -> None:
    """What was in use before counts no longer."""
    if torch.accelerator.is_available():
        torch.accelerator.reset_peak_memory_stats()
    with suppress(OSError):  # no Linux, or not allowed
        Path("/proc/self/clear_refs").write_text("5", "ascii")


def peak_mib(device: torch.device) -> int:
    """Mebibytes since ``forget_peak``."""
    if device.type not in ("cpu", "mps"):
        return torch.accelerator.max_memory_allocated(device) >> 20
    return _status_mib("VmHWM")


def resident_mib() -> int:
    """What this process holds now; its peak where there is no /proc."""
    return _status_mib("VmRSS")


def _status_mib(name: str) -> int:
    with suppress(OSError):
        if found := re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text("utf-8")):
            return int(found[1]) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10)
