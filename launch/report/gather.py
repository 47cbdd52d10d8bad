"""Reading what the stages left (statistics, curves, scores), and how figures are written. Nothing here computes one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from corpus.documents.whole_files import read_object
from launch.errors import LaunchError

Result = dict[str, Any]
PAPER_MODEL = "klue/roberta-base"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object that a stage wrote; ``BadInput`` or ``LaunchError`` where it is damaged or missing."""
    advice = f"delete {path.parent} and run again"
    try:
        return read_object(path, advice)
    except FileNotFoundError:
        raise LaunchError(f"{path}: missing, though its stage is complete; {advice}") from None


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a .jsonl file, none where there is no such file."""
    lines = path.read_bytes().splitlines() if path.is_file() else []  # as text it would be cut at U+2028, too
    try:
        return [dict(json.loads(line)) for line in lines]
    except (ValueError, TypeError, RecursionError):
        raise LaunchError(f"{path}: not lines of JSON objects; delete {path.parent} and run again") from None


def read_scores(run: Path) -> list[Result]:
    """All results below ``finetune/``, each with its ``errors`` (None without any): tasks in the paper's order, own
    ones last."""
    from finetune.config import place_of

    found = []
    for path in sorted((run / "finetune").glob("*/*/seed-*/scores.json")):
        errors = path.with_name("errors.json")
        found.append(read_json(path) | {"errors": read_json(errors) if errors.is_file() else None})
    return sorted(found, key=lambda s: (place_of(s["task"]), s["model"], s["seed"]))


def paper_metrics(found: Result) -> list[str]:
    """The metrics of a result that the paper's Table 36 has, in its order; the others are further detail. Of an own
    task all."""
    return list(found["paper_dev"].get(PAPER_MODEL, found["scores"]))


def trivial_of(found: Result, metric: str) -> float | None:
    """Score of the prediction that needs no model; None where it says nothing.

    The area under a precision-recall curve is such a case: the reference joins the two points of a constant prediction
    by a line, so it gets about 50 on any labels.
    """
    return None if metric == "auprc" else found["trivial"][metric]


def number(value: float | None, digits: int = 2) -> str:
    """A figure for a table; a dash where there is none or an undefined one."""
    return "–" if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def count(value: float) -> str:
    """A count with thousands separators."""
    return f"{value:,.0f}"


def share(part: float, whole: float) -> str:
    """A percentage; a dash of nothing."""
    return f"{100 * part / whole:.2f} %" if whole else "–"


def duration(seconds: float) -> str:
    """``45 s``, ``12.0 min`` or ``2.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
