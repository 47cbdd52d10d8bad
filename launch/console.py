"""Logging and environment of a run: rank 0 speaks, other ranks only warn, progress bars appear on terminals only."""

from __future__ import annotations

import logging
import os
import resource
import sys
import warnings
from io import TextIOWrapper
from pathlib import Path

from tqdm import tqdm

QUIET = (
    "DeepSpeed",
    "deepspeed",
    "transformers",
    "datasets",
    "urllib3",
    "faker",
    "matplotlib",
    "fontTools",
    "torch",
)


class ProgressAwareHandler(logging.Handler):
    """Writes lines above a progress bar instead of through it."""

    def emit(self, record: logging.LogRecord) -> None:
        tqdm.write(self.format(record), file=sys.stderr)


def rank() -> int:
    """Rank of this process as torchrun and deepspeed tell it; 0 outside of them."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """Number of processes as torchrun and deepspeed tell it; 1 outside of them."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def set_up_console(*, verbose: bool = False) -> None:
    """Configure logging once for this process."""
    handler = ProgressAwareHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING if rank() else logging.DEBUG if verbose else logging.INFO)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("DS_LOG_LEVEL", "error")
    if not any(Path("/dev").glob("nvidia*")):
        os.environ.setdefault("DS_ACCELERATOR", "cpu")  # spares DeepSpeed's search for a GPU, and its warning
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", category=UserWarning, module="torch")


def show_any_character() -> None:
    """A character that the terminal's encoding lacks is shown escaped; data is written as UTF-8 past this."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def peak_memory_mib() -> int:
    """Largest resident size so far of this process or of any finished child, in MiB (ru_maxrss is KiB on Linux)."""
    unit = 1024 if sys.platform != "darwin" else 1 << 20
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(peaks) // unit
