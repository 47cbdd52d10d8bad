"""Peak memory while a model trains: tensors on the accelerator, or the resident memory of the process on a CPU.

Linux can reset the peak of a process (proc(5), ``clear_refs``), so consecutive trainings have their own. On other
systems it is the peak since the process started.
"""

from __future__ import annotations

import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

import torch


def forget_peak() -> None:
    """Reset the peak."""
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
    """Resident memory of this process; its peak if there is no /proc."""
    return _status_mib("VmRSS")


def _status_mib(name: str) -> int:
    with suppress(OSError):
        if found := re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text("utf-8")):
            return int(found[1]) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10)
