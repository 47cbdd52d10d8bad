"""Console of a run: rank 0 speaks, other ranks only warn, progress bars appear on terminals only, tables are printed.

Nothing that a file, a name or a text holds may command the terminal: log lines, warnings, errors and tables pass
through ``corpus.documents.escaping`` here, and what an encoding such as cp949 cannot write is shown as its number.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text
from tqdm import tqdm

from corpus.documents.escaping import escape_controls, escape_markdown, escape_message
from launch.errors import error_message, exit_code, explain_missing_module, is_user_error

QUIET = (
    "DeepSpeed", "deepspeed", "transformers", "datasets", "urllib3", "huggingface_hub", "faker", 
    "torch", "httpx", "httpx2", "openai",
)  # fmt: skip
WIDE = 7  # columns from which the terminal's 80 letters have none to spare for padding


def run_app(app: Callable[..., object], name: str) -> None:
    """Run a typer app as the command ``name``: bad input gets one message and exit code 2, our own bugs a traceback."""
    show_any_character()
    try:
        app(prog_name=name)
    except Exception as error:
        shown: BaseException | None = error if is_user_error(error) else None
        if isinstance(error, ModuleNotFoundError):
            shown = explain_missing_module(next(iter(sys.argv[1:]), "malmoi"), error)
        if shown is None:
            raise
        prefix = f"[rank {rank()}] " if world_size() > 1 else ""
        print(escape_message(f"malmoi: {prefix}{error_message(shown)}"), file=sys.stderr)
        sys.exit(exit_code(shown))


class PlainFormatter(logging.Formatter):
    """Messages without control characters; tracebacks keep their lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        return escape_message(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record), keep="\n")


class PlainConsole(Console):
    """A console on which text is text: no markup, no emoji codes, no control characters, in cells of tables either."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(escape_controls(text, keep="\n"), **settings)


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
    return escape_controls(_format_warning(*args, **settings), keep="\n")


def show_any_character() -> None:
    """A character that the terminal's encoding lacks is shown escaped; data is written as UTF-8 past this."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def peak_memory_mib() -> int:
    """Largest resident size so far of this process or of any finished child, in MiB (ru_maxrss is KiB on Linux)."""
    unit = 1024 if sys.platform != "darwin" else 1 << 20
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // unit


@dataclass(frozen=True, slots=True)
class Table:
    """Cells are text, several lines of it where it has line breaks; a page of the report is made of the same record.

    ``numbers`` are right-aligned columns, ``signs`` columns coloured by their sign; ``is_text`` gives the first column
    the space that long texts need; ``note`` is printed below the table on the terminal; ``heat``: shares by row that
    colour the cells of a confusion matrix on the page.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    signs: Sequence[int] = ()
    title: str = ""
    folded: bool = False
    is_text: bool = False
    kind: str = "table"
    note: str = ""
    heat: Sequence[Sequence[float]] = ()


def figures(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> Table:
    """A table in which every column but the first holds numbers."""
    return Table(heads, rows, numbers=range(1, len(heads)), title=title, note=note)


def figures_of(
    title: str, rows: Mapping[str, Mapping[str, Any]], columns: Mapping[str, str], note: str = "", *, first: str = ""
) -> Table:
    """``figures`` of records by name; ``columns``: head to format, "{f1:.3f}", empty where the record lacks it."""
    cells = ([name, *(_fill(form, record) for form in columns.values())] for name, record in rows.items())
    return figures(title, (first, *columns), list(cells), note)


def _fill(form: str, record: Mapping[str, Any]) -> str:
    try:
        return form.format_map(record)
    except KeyError:
        return ""


def print_table(table: Table, console: Console) -> None:
    """Print it, long cells folded; "[UNK]" and the like are no mark-up."""
    printed = RichTable(
        title=Text(escape_controls(table.title)), title_justify="left",
        caption=Text(escape_controls(table.note)) if table.note else None, caption_justify="left",
        padding=(0, 0 if len(table.heads) >= WIDE else 1), min_width=min(76, console.width) if table.note else None,
    )  # fmt: skip
    for column, head in enumerate(table.heads):
        printed.add_column(Text(head), justify="right" if column in table.numbers else "left", overflow="fold")
    for row in table.rows:
        printed.add_row(*(Text(escape_controls(cell, keep="\n")) for cell in row))
    console.print(printed)


def markdown_table(table: Table) -> str:
    """Its title in bold and its cells, heads in one line; the note is left to the page."""
    heads = [head.replace("\n", " ") for head in table.heads]
    rule = ["---:" if column in table.numbers else "---" for column in range(len(table.heads))]
    cells = [[*map(escape_markdown, heads)], rule, *([*map(escape_markdown, row)] for row in table.rows)]
    lines = ("| " + " | ".join(row) + " |" for row in cells)
    return "\n".join([f"**{escape_markdown(table.title)}**", "", *lines])


def say_duration(seconds: float) -> str:
    """``40 s``, ``3 min``, ``5 h``, ``12 days``, ``200 years``."""
    for unit, size, longest in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 36), ("days", 86_400, 700)):
        if seconds < longest * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400 / 365:,.0f} years"
