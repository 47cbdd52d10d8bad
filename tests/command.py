"""The ``malmoi`` command in this process, for tests of many command lines: heavy modules are imported once."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from launch.cli import main

SMALL_SAMPLE = Path(__file__).parent / "fixtures" / "small_sample"  # 7 % of the sample's documents


class Outcome(NamedTuple):
    """Exit code and what went to standard error and output."""

    code: int
    errors: str
    output: str = ""

    def refused(self, *words: str) -> str:
        """Check that there is one error message in the expected form, and return it."""
        assert self.code == 2, self.errors
        assert "Traceback" not in self.errors
        _, *messages = self.errors.split("malmoi: ")
        assert len(messages) == 1, self.errors
        (message,) = messages
        shown, *further = message.rstrip("\n").split("\n")
        assert all(line.startswith("  ") for line in further)  # the problems of a recipe are a list
        for word in words:
            assert word in message, message
        return shown


def run_command(
    capfd: pytest.CaptureFixture[str] | None, *arguments: str, command: Callable[[], None] = main
) -> Outcome:
    """Run ``malmoi`` with the arguments; exceptions that would be tracebacks pass through.

    Args:
        capfd: pytest's fixture; None where only the exit code matters.
        command: the entry point.
    """
    if capfd:
        capfd.readouterr()
    root = logging.getLogger()
    handlers, level, argv = root.handlers[:], root.level, sys.argv
    sys.argv = ["malmoi", *arguments]
    try:
        command()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        root.handlers[:], sys.argv = handlers, argv
        root.setLevel(level)
    printed = capfd.readouterr() if capfd else None
    return Outcome(code, printed.err, printed.out) if printed else Outcome(code, "")
