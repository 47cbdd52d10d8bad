"""Reading what the stages left (statistics, curves, scores), and how figures are written. Nothing here computes one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import read_json_object
from launch.errors import LaunchError
from launch.recipe import OWN_MODEL

Result = dict[str, Any]
PAPER_MODEL = "klue/roberta-base"
MOST_NAMED = 8


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object that a stage wrote; ``BadInput`` or ``LaunchError`` where it is damaged or missing."""
    advice = f"delete {path.parent} and run again"
    try:
        return read_json_object(path, advice)
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
    """All results below ``finetune/``, whichever command made them: tasks in the paper's order, own ones last. Each has
    its ``folder`` and its ``errors`` (None without any)."""
    from finetune.config import place_of
    from finetune.queue.jobs import RESULTS

    found = []
    for path in sorted(path for pattern in RESULTS for path in (run / "finetune").glob(pattern)):
        errors = path.with_name("errors.json")
        more = {"errors": read_json(errors) if errors.is_file() else None, "folder": str(path.parent)}
        found.append(read_json(path) | more)
    return sorted(found, key=lambda s: (place_of(s["task"]), s["model"], settings_of(s), s["seed"]))


def settings_of(found: Result) -> str:
    """The name of a result's settings, empty for those that were trained first."""
    return str(found.get("settings", ""))


def without_stale(scores: Sequence[Result], run: Path) -> tuple[list[Result], list[Result]]:
    """Results of encoders as they are now, and those of an encoder folder whose files have changed since."""
    parts: tuple[list[Result], list[Result]] = ([], [])
    for found in scores:
        parts[_is_stale(found, run)].append(found)
    return parts


def _is_stale(found: Result, run: Path) -> bool:
    from finetune.config import FRESH
    from finetune.queue.identity import digest

    name = found["model"].removeprefix(FRESH)
    fresh = FRESH if name != found["model"] else ""
    folder = run / name if name == OWN_MODEL else Path(name)
    return "encoder" in found and folder.is_dir() and found["encoder"] != digest(f"{fresh}{folder}")


def sentence_on_stale(stale: Sequence[Result]) -> str:
    """What is left out and why, for people."""
    named = [", ".join(filter(None, (s["task"], s["model"], settings_of(s), f"seed {s['seed']}"))) for s in stale]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return (
        f"Not shown, as the files of their encoders have changed since: {'; '.join(named[:MOST_NAMED])}{more}. Run "
        "finetune with these seeds and settings again, or delete their folders."
    )


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
