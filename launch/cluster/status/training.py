"""How far a pretraining is, how healthy it looks, and whether its last checkpoint is whole. Nothing is written.

The time left is by the median speed of the last lines of metrics.jsonl, so one measurement or checkpoint in between
does not move it. A checkpoint counts as whole when all its files have the sizes it says; with ``reads`` they are read.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from corpus.documents.errors import BadInput
from launch.cluster.status.lines import age_of, number_of, read_lines, read_record
from pretrain.checkpoint.found import LOOP_NAME, checkpoint_folders, read_checkpoint, read_loop

METRICS_NAME = "metrics.jsonl"
RECENT = 5  # lines that speed is taken from
FIGURES = (
    "step", "loss", "masked_accuracy", "causal_accuracy", "grad_norm", "lr", "tokens", "tokens_per_second", "mfu",
    "data_wait_share", "memory_gib", "slowest_rank", "slowest_factor",
)  # fmt: skip


def read_training(folder: Path, steps: int | None, *, reads: bool = False) -> dict[str, Any]:
    """Progress, health and last checkpoint of a pretrain folder, as JSON; ``steps``: of the whole run, where known."""
    lines = [line for line in read_lines(folder / METRICS_NAME) if number_of(line, "step") is not None]
    intervals = [line for line in lines if number_of(line, "loss") is not None]
    measured = [line for line in lines if isinstance(line.get("held_out"), dict)]
    found: dict[str, Any] = {"step": 0, "steps": steps}
    if lines:
        found["step"] = max(int(line["step"]) for line in lines)
    seconds = _seconds_a_step(intervals)
    if steps and seconds is not None:
        found |= {"seconds_a_step": seconds, "seconds_left": max(0, steps - found["step"]) * seconds}
    if intervals:
        last = intervals[-1]
        found["last_line"] = {key: last[key] for key in FIGURES if number_of(last, key) is not None}
        found["last_line"]["seconds_ago"] = age_of(folder / METRICS_NAME)
        found["seconds_between_lines"] = median(number_of(line, "seconds") or 0.0 for line in intervals[-RECENT:])
    if measured:
        scores = {key: value for key, value in measured[-1]["held_out"].items() if isinstance(value, float | int)}
        found["held_out"] = {"step": measured[-1]["step"], **scores}
    found["checkpoint"] = last_checkpoint(folder / "checkpoints", reads=reads)
    hangs = sorted(folder.glob("hang-*/hang.json"))  # pretrain.metrics.watchdog, which needs torch
    found["hang"] = read_record(hangs[-1]) if hangs else None
    return found


def last_checkpoint(folder: Path, *, reads: bool = False) -> dict[str, Any] | None:
    """The newest of a folder "checkpoints", whether it is whole ("fault" says why not), and its age; None without."""
    found = checkpoint_folders(folder)
    if not found:
        return None
    newest = found[-1]
    told: dict[str, Any] = {"folder": str(newest), "step": int(newest.name.removeprefix("step-")), "fault": None}
    try:
        loop = read_checkpoint(newest).loop if reads else read_loop(newest)
        wrong = [name for name, (size, _) in loop["files"].items() if (newest / name).stat().st_size != size]
        if wrong:
            told["fault"] = f"{', '.join(wrong)} has another size"
    except (BadInput, OSError, ValueError) as error:
        told["fault"] = str(error)
    return told | {"is_whole": told["fault"] is None, "was_read": reads, "seconds_ago": age_of(newest / LOOP_NAME)}


def _seconds_a_step(intervals: list[dict[str, Any]]) -> float | None:
    """The median of the last lines; a line that begins a resumed interval counts the steps of this start alone."""
    paces = []
    for before, line in pairwise([{"step": 0}, *intervals]):
        seconds, steps = number_of(line, "seconds"), line["step"] - before["step"]
        if seconds is not None and steps > 0:
            paces.append(seconds / steps)
    return median(paces[-RECENT:]) if paces else None
