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

_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


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
    with suppress(OSError):
        if found := _PEAK.search(Path("/proc/self/status").read_text("utf-8")):
            return int(found[1]) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10)
