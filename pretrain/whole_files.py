"""JSON read whole, files written whole: what loop.json or result.json vouch for is on the disk before they are.

The order is SQLite's: write under another name, fsync the file, rename, fsync the folder. ``corpus.whole_files`` does
the same for the stages before this one, with which training shares files and no code.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from pretrain.config import BadInput

PARTIAL = ".partial"
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # half of a pair, which JSON can spell and UTF-8 cannot hold


def read_json(path: Path, advice: str) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        BadInput: no JSON object, nested too deeply, or text that UTF-8 cannot hold; ``advice`` says what to do.
    """
    try:
        text = path.read_text("utf-8")
        value = json.loads(text)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise BadInput(f"{path}: not readable as JSON (nested too deeply); {advice}") from None
    except ValueError as error:
        raise BadInput(f"{path}: not readable as JSON ({error}); {advice}") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path}: expected a JSON object, found a {type(value).__name__}; {advice}")
    return value


def write_text(path: Path, text: str) -> None:
    """Write under another name, then rename, waiting for the disk before and after."""
    temporary = path.with_name(path.name + PARTIAL)
    temporary.write_text(text, "utf-8")
    settle(temporary)
    temporary.replace(path)
    settle(path.parent)


def settle_all(folder: Path) -> None:
    """Wait until the disk has every file below ``folder``, and their names."""
    for root, _, names in os.walk(folder, topdown=False):
        for name in names:
            settle(Path(root, name))
        settle(Path(root))


def settle(path: Path) -> None:
    """Wait until the disk has a file's content, or the names that a folder holds."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if path.is_file():  # some network file systems have nothing to wait for in a folder
            raise
    finally:
        os.close(descriptor)
