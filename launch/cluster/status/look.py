"""One run as it stands: which stage is at work or stopped, how far it is, whether it lives. Reads files alone.

```
manifest.json alone              complete
started.json, its process lives  running          on another host: by the age of the newest sign of life
started.json, its process gone   interrupted, failed (both by events.jsonl), or killed (no word of an end)
```
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from corpus.documents.locks import parse_process
from corpus.documents.units import COUNTS_NAME
from launch.cluster.status.events import BEGAN, DONE, EVENTS_NAME, FAILED, INTERRUPTED, WARNED, read_events
from launch.cluster.status.jobs import read_jobs
from launch.cluster.status.lines import age_of, number_of, read_record
from launch.cluster.status.training import read_training
from launch.errors import LaunchError
from launch.manifest import MANIFEST_NAME, STARTED_NAME
from launch.pipeline import STAGES

NAMES = tuple(stage.name for stage in STAGES)
RUNNING, SILENT, KILLED, COMPLETE, EMPTY, BEGUN = "running", "silent", "killed", "complete", "empty", "begun"
SILENCE_SECONDS = 120.0  # without any file written: too long for a process of another host that trains
SIGNS = ("metrics.jsonl", "ranks", "jobs.log", ".", "checkpoints")
SHOWN_WARNINGS = 3


def find_run(name: str, runs: Path) -> Path:
    """The folder of a run by its path, or its name below ``runs``; ``LaunchError`` where that is no run."""
    found = next((path for path in (Path(name), runs / name) if path.exists()), None)
    if found is None:
        there = ", ".join(path.name for path in runs_in(runs)) or "none"
        raise LaunchError(f"{name}: no such run, neither here nor in {runs} (runs there: {there}); give its folder")
    if not is_run(found) and is_run(found.parent) and found.name in NAMES:  # the folder of a stage
        return found.parent
    if not found.is_dir() or (not is_run(found) and any(found.iterdir())):
        raise LaunchError(f"{found}: not the folder of a run (none of {', '.join(NAMES)} was begun there)")
    return found


def runs_in(folder: Path) -> list[Path]:
    """The runs in a folder of runs, by name."""
    return sorted(path for path in folder.iterdir() if is_run(path)) if folder.is_dir() else []


def is_run(folder: Path) -> bool:
    """Whether a stage was begun in a folder."""
    heads = (folder / name / file for name in NAMES for file in (MANIFEST_NAME, STARTED_NAME))
    return folder.is_dir() and any(path.is_file() for path in (folder / EVENTS_NAME, *heads))


def look_at(run: Path, *, reads: bool = False) -> dict[str, Any]:
    """All that is known of a run, as JSON; ``reads``: every byte of the last checkpoint is held against its sha256."""
    events = read_events(run)
    stages = {name: found for name in NAMES if (found := _stage(run / name, events))}
    open_ones = [name for name, found in stages.items() if found["state"] != COMPLETE]
    at_work = [name for name in open_ones if stages[name]["state"] in (RUNNING, SILENT)]
    now = next(iter([*at_work, *open_ones[-1:], *reversed(stages)]), None)
    told: dict[str, Any] = {
        "run": str(run),
        "state": stages[now]["state"] if now else EMPTY,
        "stage": now,
        "stages": stages,
        "warnings": _warnings(events, now),
    }
    if "pretrain" in stages:
        steps = _settings(run / "pretrain").get("steps")
        told["training"] = read_training(run / "pretrain", steps if isinstance(steps, int) else None, reads=reads)
        _end_by_hang(stages["pretrain"], told)
    if "finetune" in stages:
        told["jobs"] = read_jobs(run / "finetune", _settings(run / "finetune"))
        if told["jobs"]["running"] and stages["finetune"]["state"] not in (RUNNING, COMPLETE):
            stages["finetune"]["state"] = RUNNING  # by tasks of a cluster, or another command
            told |= {"state": RUNNING, "stage": "finetune"}
    return told


def _end_by_hang(stage: dict[str, Any], told: dict[str, Any]) -> None:
    """A watchdog ends processes without a word in the events; its own record is theirs."""
    hang = told["training"]["hang"] or {}
    ago = time.time() - (number_of(hang, "time") or 0.0)
    if stage["state"] == KILLED and ago < stage["since_seconds"]:
        stage |= {"state": FAILED, "reason": str(hang.get("sentence")), "seconds_ago": max(0.0, ago)}
        told["state"] = FAILED if told["stage"] == "pretrain" else told["state"]


def _stage(folder: Path, events: list[dict[str, Any]]) -> dict[str, Any] | None:
    """State of a stage, None where it was not begun."""
    manifest, started = (folder / name for name in (MANIFEST_NAME, STARTED_NAME))
    if not manifest.is_file() and not started.is_file():
        return None
    own = [event for event in events if event["stage"] == folder.name]
    last = next((event for event in reversed(own) if event["kind"] in (BEGAN, DONE, INTERRUPTED, FAILED)), None)
    found: dict[str, Any] = {"state": COMPLETE}
    if not started.is_file():
        seconds = (read_record(manifest) or {}).get("seconds")
        return found | {"seconds": seconds, "seconds_ago": age_of(manifest)}
    found |= {"state": BEGUN, "sign_seconds_ago": _last_sign(folder)}
    if last is None:  # of a release that left no events
        return found
    process = parse_process(last.get("process"))
    found |= {"process": process and process._asdict(), "processes": _processes(own)}
    if last["kind"] != BEGAN:
        state = last["kind"] if last["kind"] != DONE else BEGUN
        return found | {"state": state, "reason": last.get("text"), "seconds_ago": max(0.0, time.time() - last["time"])}
    lives = process.lives if process else None
    is_heard = (found["sign_seconds_ago"] or 0.0) < SILENCE_SECONDS
    found["state"] = {True: RUNNING, False: KILLED, None: RUNNING if is_heard else SILENT}[lives]
    found["lives"] = lives
    found["since_seconds"] = max(0.0, time.time() - last["time"])
    if units := sum(1 for _ in _finished_units(folder)):
        found["units_done"] = units
    return found


def _processes(events: list[dict[str, Any]]) -> int:
    counts = [event.get("processes") for event in events if event["kind"] == BEGAN]
    return counts[-1] if counts and isinstance(counts[-1], int) else 1


def _finished_units(folder: Path) -> Iterator[Path]:
    return chain.from_iterable(folder.glob(f"{depth}unit-*[0-9]/{COUNTS_NAME}") for depth in ("", "*/", "*/*/"))


def _last_sign(folder: Path) -> float | None:
    """Seconds since anything in the folder was written, as far as a look at a few names tells."""
    seen = [folder / name for name in SIGNS] + list((folder / "ranks").glob("*"))
    return min((age for path in seen if (age := age_of(path)) is not None), default=None)


def _settings(folder: Path) -> dict[str, Any]:
    """What a stage was begun with."""
    head = read_record(folder / STARTED_NAME) or read_record(folder / MANIFEST_NAME) or {}
    settings = head.get("settings")
    return settings if isinstance(settings, dict) else {}


def _warnings(events: list[dict[str, Any]], stage: str | None) -> dict[str, Any]:
    """How many since the stage was begun last, and the newest ones."""
    own = [event for event in events if event["stage"] == stage]
    first = max((place for place, event in enumerate(own) if event["kind"] == BEGAN), default=0)
    texts = [str(event.get("text")) for event in own[first:] if event["kind"] == WARNED]
    return {"count": len(texts), "last": texts[-SHOWN_WARNINGS:]}
