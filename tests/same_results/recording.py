"""Results that were recorded: the same input must give the same results as before.

A change that alters results on purpose records them again, so that the difference is part of the change:

    MALMOI_RECORD=1 python -m pytest tests/same_results

``tests/fixtures/same_results`` has one JSON file for each test, with one digest for each named result. Numbers count
to six significant digits, because the last bits of a sum depend on the processor. ``check_close`` records numbers
instead of digests.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HOME = Path(__file__).resolve().parents[1] / "fixtures" / "same_results"
DIGITS = 6
AGAIN = "MALMOI_RECORD=1 python -m pytest tests/same_results"


def check_recorded(name: str, results: Mapping[str, Any], folder: Path) -> None:
    """Compare the results with those recorded under ``name``; new values that differ are written below ``folder``."""
    plain = {key: json.dumps(_plain(value), ensure_ascii=False, indent=1) for key, value in results.items()}
    digests = {key: sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12] for key, text in plain.items()}
    path = HOME / f"{name}.json"
    if os.environ.get("MALMOI_RECORD"):
        path.write_text(json.dumps(digests, ensure_ascii=False, indent=0) + "\n", "utf-8")
    recorded = json.loads(path.read_text("utf-8"))
    changed = [key for key in digests.keys() | recorded if digests.get(key) != recorded.get(key)]
    for number, key in enumerate(sorted(changed)):
        (folder / f"changed-{number}.json").write_text(f"{key}\n{plain.get(key)}", "utf-8", "surrogatepass")
    if changed:
        names = ", ".join(sorted(changed)[:20])
        pytest.fail(f"{len(changed)} results changed: {names}; now: {folder}/changed-*.json; on purpose: {AGAIN}")


def check_close(name: str, numbers: Mapping[str, float], tolerance: float = 1e-3) -> None:
    """Compare numbers with those recorded under ``name``; for training, whose sums depend on the processor."""
    path = HOME / f"{name}.json"
    if os.environ.get("MALMOI_RECORD"):
        rounded = {key: float(f"{value:.{DIGITS}g}") for key, value in numbers.items()}
        path.write_text(json.dumps(rounded, ensure_ascii=False, indent=0) + "\n", "utf-8")
    recorded = json.loads(path.read_text("utf-8"))
    assert numbers == pytest.approx(recorded, rel=tolerance, abs=tolerance, nan_ok=True)


def numbers_in(value: Any, above: str = "") -> dict[str, float]:
    """The numbers of nested JSON values by their path."""
    match value:
        case bool() | int() | float():
            return {above: float(value)}
        case Mapping():
            parts = value.items()
        case list() | tuple():
            parts = enumerate(value)
        case _:
            return {}
    return {path: number for key, inner in parts for path, number in numbers_in(inner, f"{above}/{key}").items()}


def _plain(value: Any) -> Any:
    """JSON values; floats with ``DIGITS`` significant digits, sets sorted."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() | np.floating():
            return f"{value:.{DIGITS}g}" if math.isfinite(value) else str(float(value))
        case np.generic() | np.ndarray():
            return _plain(value.tolist())
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case Set():
            return sorted(map(str, value))
        case Sequence():
            return [_plain(inner) for inner in value]
        case Iterable():
            return [_plain(inner) for inner in value]
    return _plain(asdict(value)) if is_dataclass(value) and not isinstance(value, type) else str(value)


def groups(values: Sequence[Any], size: int) -> dict[str, Sequence[Any]]:
    """``values`` in named groups, so that a change is not reported for all of them."""
    return {f"{start}-": values[start : start + size] for start in range(0, len(values), size)}
