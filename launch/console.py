"""Logging and environment of a run: rank 0 speaks, other ranks only warn, progress bars appear on terminals only.

Nothing that a file, a name or a text holds may command the terminal: log lines, warnings, errors and tables pass
through ``corpus.documents.escaping`` here, and what an encoding such as cp949 cannot write is shown as its number.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
import warnings
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text
from tqdm import tqdm

from corpus.documents.escaping import visible, visible_lines

QUIET = (
    "DeepSpeed",
    "deepspeed",
    "transformers",
    "datasets",
    "urllib3",
    "huggingface_hub",
    "faker",
    "matplotlib",
    "fontTools",
    "torch",
)


class PlainFormatter(logging.Formatter):
    """Messages without control characters; tracebacks keep their lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        return visible_lines(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record), keep="\n")


class PlainConsole(Console):
    """A console on which text is text: no markup, no emoji codes, no control characters, in cells of tables either."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(visible(text, keep="\n"), **settings)


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
    handler.setFormatter(PlainFormatter("%(asctime)s %(message)s", "%H:%M:%S"))
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
    warnings.formatwarning = _plain_warning
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", category=UserWarning, module="torch")


_format_warning = warnings.formatwarning


def _plain_warning(*args: Any, **settings: Any) -> str:
    return visible(_format_warning(*args, **settings), keep="\n")


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
