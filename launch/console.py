"""Console output: log lines (rank 0; other ranks only warnings), progress bars on terminals, tables, errors.

Control characters in file names or texts must not reach the terminal, so log lines, warnings, errors and tables are
escaped here. Characters that the terminal's encoding lacks are shown as their code.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text
from tqdm import tqdm
from typer.core import TyperGroup

from corpus.documents.accelerator import process_peak
from corpus.documents.errors import explain_panic
from corpus.documents.escaping import escape_controls, escape_markdown, escape_message
from launch.errors import error_message, explain_missing_module, is_user_error
from pretrain.interruption import REQUEUE_CODE, Interrupted

QUIET = (
    "DeepSpeed", "deepspeed", "transformers", "datasets", "urllib3", "huggingface_hub", "faker", 
    "torch", "httpx", "httpx2", "openai",
)  # fmt: skip
WIDE = 7  # columns from which a table on 80 characters has no padding


def run_app(app: Callable[..., object], name: str) -> None:
    """Run a typer app as the command ``name``: bad input gives one message and exit code 2, a bug its traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # escape characters that the terminal lacks; files are always UTF-8
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name=name)
    except BaseException as error:
        reported: BaseException | None = explain_panic(error) or (error if is_user_error(error) else None)
        if isinstance(error, ModuleNotFoundError):
            reported = explain_missing_module(next(iter(sys.argv[1:]), "malmoi"), error)
        if reported is None:
            raise
        prefix = f"[rank {rank()}] " if world_size() > 1 else ""
        print(escape_message(f"malmoi: {prefix}{error_message(reported)}"), file=sys.stderr)
        sys.exit(REQUEUE_CODE if isinstance(reported, Interrupted) else 2)


class ToolsOrDefault(TyperGroup):
    """``malmoi VERB TOOL …`` runs a tool; with any other first word the hidden command ``default`` runs."""

    default: ClassVar[str]
    usage: ClassVar[str]  # of the default command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        starts_with_option = args and args[0].startswith("-") and args[0] != "--help"
        return super().parse_args(ctx, [self.default, *args] if starts_with_option else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        is_tool = args[0] in self.commands
        return super().resolve_command(ctx, args) if is_tool else ("", self.commands[self.default], args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [self.usage, f" or  {ctx.command_path} TOOL …"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the parameters of the default command, and the tools."""
        before, self.params = self.params, [*self.commands[self.default].params, *self.params]
        try:
            super().format_help(ctx, formatter)
        finally:
            self.params = before


class PlainFormatter(logging.Formatter):
    """Messages without control characters; tracebacks keep their lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        return escape_message(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record), keep="\n")


class PlainConsole(Console):
    """A console without markup, emoji codes and control characters, also in table cells."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(escape_controls(text, keep="\n"), **settings)


class ProgressAwareHandler(logging.Handler):
    """Writes log lines above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        tqdm.write(self.format(record), file=sys.stderr)


def rank() -> int:
    """Rank of this process from the launcher's environment; 0 without a launcher."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """Number of processes from the launcher's environment; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def set_up_console() -> None:
    """Configure logging and library verbosity for this process."""
    handler = ProgressAwareHandler()
    handler.setFormatter(PlainFormatter("%(asctime)s %(message)s", "%H:%M:%S"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING if rank() else logging.INFO)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    for name in ("TRANSFORMERS_VERBOSITY", "DS_LOG_LEVEL", "HF_HUB_VERBOSITY"):
        os.environ.setdefault(name, "error")
    if not any(Path("/dev").glob("nvidia*")):
        os.environ.setdefault("DS_ACCELERATOR", "cpu")  # DeepSpeed then does not search for a GPU and warn
    warnings.formatwarning = _plain_warning
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", category=UserWarning, module="torch")


_format_warning = warnings.formatwarning


def _plain_warning(*args: Any, **settings: Any) -> str:
    return escape_controls(_format_warning(*args, **settings), keep="\n")


def print_json(value: Any) -> None:
    """What ``--json`` of a command prints: one JSON value in ASCII, for terminals and pipes of any encoding."""
    print(json.dumps(value, ensure_ascii=True, indent=1))


def peak_memory_mib() -> int:
    """Peak resident memory of this process or of any finished child in MiB (ru_maxrss is in KiB on Linux)."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << (0 if sys.platform == "darwin" else 10)
    return max(process_peak(), children) >> 20


@dataclass(frozen=True, slots=True)
class Table:
    """A table for the terminal and the report; cells are text and may have several lines.

    Attributes:
        numbers: right-aligned columns.
        signs: columns colored by sign.
        folded: whether the report shows it closed.
        is_text: whether the first column holds long texts.
        note: printed below the table.
        heat: shares by row that color the cells of a confusion matrix.
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


def number_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> Table:
    """A table in which every column except the first holds numbers."""
    return Table(heads, rows, numbers=range(1, len(heads)), title=title, note=note)


def print_table(table: Table, console: Console | None = None) -> None:
    """Print it; long cells are folded, and text such as "[UNK]" is not markup."""
    console = console or PlainConsole()
    printed = RichTable(
        title=Text(escape_controls(table.title)), title_justify="left",
        caption=Text(escape_controls(table.note, keep="\n")) if table.note else None, caption_justify="left",
        padding=(0, 0 if len(table.heads) >= WIDE else 1), min_width=min(76, console.width) if table.note else None,
    )  # fmt: skip
    for column, head in enumerate(table.heads):
        printed.add_column(Text(head), justify="right" if column in table.numbers else "left", overflow="fold")
    for row in table.rows:
        printed.add_row(*(Text(escape_controls(cell, keep="\n")) for cell in row))
    console.print(printed)


def markdown_table(table: Table) -> str:
    """The table as Markdown, with its title in bold; without its note."""
    heads = [head.replace("\n", " ") for head in table.heads]
    rule = ["---:" if column in table.numbers else "---" for column in range(len(table.heads))]
    cells = [[*map(escape_markdown, heads)], rule, *([*map(escape_markdown, row)] for row in table.rows)]
    lines = ("| " + " | ".join(row) + " |" for row in cells)
    return "\n".join([f"**{escape_markdown(table.title)}**", "", *lines])
