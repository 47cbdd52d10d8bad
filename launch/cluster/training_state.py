"""Progress and health of a pretraining, and whether its last checkpoint is complete. Read-only.

The time left uses the median speed of the last lines of metrics.jsonl, so one measurement or checkpoint in between does
not change it. A checkpoint counts as complete if all its files have the recorded sizes; with ``verify`` their digests
are checked.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from corpus.documents.errors import BadInput
from launch.cluster.events import age_of, number_of, read_lines, read_record
from pretrain.checkpoint.find_checkpoint import LOOP_NAME, checkpoint_folders, read_checkpoint, read_loop

METRICS_NAME = "metrics.jsonl"
RECENT = 5  # lines used for the speed


def read_training(folder: Path, steps: int | None, *, verify: bool = False) -> dict[str, Any]:
    """Progress, health and last checkpoint of a pretrain folder as JSON; ``steps``: planned steps, if known."""
    lines = [line for line in read_lines(folder / METRICS_NAME) if number_of(line, "step") is not None]
    intervals = [line for line in lines if number_of(line, "loss") is not None]
    measured = [line for line in lines if isinstance(line.get("held_out"), dict)]
    step = max((int(line["step"]) for line in lines), default=0)
    state: dict[str, Any] = {"step": step, "steps": steps}
    seconds = _seconds_per_step(intervals)
    if steps and seconds is not None:
        state |= {"seconds_per_step": seconds, "seconds_left": max(0, steps - step) * seconds}
    if intervals:
        last = intervals[-1]
        figures = {key: value for key in last if (value := number_of(last, key)) is not None}
        state["last_line"] = figures | {"seconds_ago": age_of(folder / METRICS_NAME)}
    if measured:
        scores = {key: value for key, value in measured[-1]["held_out"].items() if isinstance(value, float | int)}
        state["held_out"] = {"step": measured[-1]["step"], **scores}
    state["checkpoint"] = last_checkpoint(folder / "checkpoints", verify=verify)
    hangs = sorted(folder.glob("hang-*/hang.json"))  # pretrain.metrics.watchdog, which needs torch
    state["hang"] = read_record(hangs[-1]) if hangs else None
    return state


def last_checkpoint(folder: Path, *, verify: bool = False) -> dict[str, Any] | None:
    """The newest checkpoint, its age and whether it is complete ("error" says why not); None without any."""
    folders = checkpoint_folders(folder)
    if not folders:
        return None
    newest, error = folders[-1], None
    try:
        loop = read_checkpoint(newest).loop if verify else read_loop(newest)
        wrong = [name for name, (size, _) in loop["files"].items() if (newest / name).stat().st_size != size]
        error = f"{', '.join(wrong)} has another size" if wrong else None
    except (BadInput, OSError, ValueError) as problem:
        error = str(problem)
    return {
        "folder": str(newest),
        "step": int(newest.name.removeprefix("step-")),
        "error": error,
        "is_complete": error is None,
        "is_verified": verify,
        "seconds_ago": age_of(newest / LOOP_NAME),
    }


def _seconds_per_step(intervals: list[dict[str, Any]]) -> float | None:
    """The median of the last lines; the first line after a resume counts only the steps since that start."""
    paces = []
    for before, line in pairwise([{"step": 0}, *intervals]):
        seconds, steps = number_of(line, "seconds"), line["step"] - before["step"]
        if seconds is not None and steps > 0:
            paces.append(seconds / steps)
    return median(paces[-RECENT:]) if paces else None
