"""The state of one run: which stage is running or stopped, its progress, whether its process is alive. Read-only.

```
manifest.json alone              complete
started.json, process alive      running          on another host: judged by the age of the newest file
started.json, process gone       interrupted, failed (both from events.jsonl), or killed (no end event)
```
The time left of a pretraining uses the median speed of the last lines of metrics.jsonl, so one measurement or
checkpoint in between does not change it. A checkpoint counts as complete if all its files have the recorded sizes.
The state is JSON; ``run_lines`` and ``runs_table`` write it as text.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import ValidationError

from corpus.documents.errors import BadInput
from corpus.documents.locks import parse_process, read_lock_holder
from corpus.documents.units import COUNTS_NAME, PROGRESS_NAME, describe_progress
from finetune.config import FinetuneConfig
from finetune.queue.jobs import CLAIM_NAME, FAILED_NAME, SCORES_NAME, Job, folder_name, plan
from launch.checks.estimate import has_settings_of
from launch.cluster.events import BEGAN, EVENTS_NAME, FAILED, INTERRUPTED, read_events, read_lines
from launch.console import Table
from launch.errors import LaunchError
from launch.manifest import MANIFEST_NAME, STARTED_NAME
from launch.numbers import duration
from launch.pipeline import STAGES
from pretrain.checkpoint.find_checkpoint import LOOP_NAME, checkpoint_folders, read_loop

NAMES = tuple(stage.name for stage in STAGES)
RUNNING, SILENT, KILLED, COMPLETE, EMPTY = "running", "silent", "killed", "complete", "empty"
SILENCE_SECONDS = 120.0  # without a written file: too long for a training process
ACTIVITY_FILES = ("metrics.jsonl", "ranks/*", "jobs.log", "checkpoints")
METRICS_NAME = "metrics.jsonl"
RECENT = 5  # lines used for the speed
JOB_FOLDERS = ("*/*/seed-*", "*/*/*/seed-*")  # the second with settings
ADVICE = {
    KILLED: "the process has ended without recording a reason; the same command resumes the run",
    SILENT: "the process is on a host that cannot be asked from here, and has written nothing for a while; check there",
}


def find_run(name: str, runs: Path) -> Path:
    """The folder of a run by its name below ``runs``, or its path; ``LaunchError`` if that is no run."""
    folders = [path for path in (runs / name, Path(name)) if path.exists()]
    folder = next(filter(is_run, folders), next(iter(folders), None))
    if folder is None:
        known = ", ".join(path.name for path in runs_in(runs)) or "none"
        raise LaunchError(f"{name}: no such run, neither here nor in {runs} (runs there: {known}); name its folder")
    if not is_run(folder) and is_run(folder.parent) and folder.name in NAMES:  # the folder of a stage
        return folder.parent
    if not folder.is_dir() or (not is_run(folder) and any(folder.iterdir())):
        raise LaunchError(f"{folder}: not the folder of a run (none of {', '.join(NAMES)} was started there)")
    return folder


def runs_in(folder: Path) -> list[Path]:
    """The runs in a folder of runs, by name."""
    return sorted(path for path in folder.iterdir() if is_run(path)) if folder.is_dir() else []


def is_run(folder: Path) -> bool:
    """Whether a stage was started in a folder."""
    heads = (folder / name / file for name in NAMES for file in (MANIFEST_NAME, STARTED_NAME))
    return folder.is_dir() and any(path.is_file() for path in (folder / EVENTS_NAME, *heads))


def read_run(run: Path) -> dict[str, Any]:
    """The state of a run as JSON."""
    events = read_events(run)
    stages = {name: stage for name in NAMES if (stage := _read_stage(run / name, events))}
    incomplete = [name for name, stage in stages.items() if stage["state"] != COMPLETE]
    active = [name for name in incomplete if stages[name]["state"] in (RUNNING, SILENT)]
    current = next(iter([*active, *incomplete[-1:], *reversed(stages)]), None)
    state: dict[str, Any] = {
        "run": str(run),
        "state": stages[current]["state"] if current else EMPTY,
        "stage": current,
        "stages": stages,
    }
    if "pretrain" in stages:
        steps = _read_settings(run / "pretrain").get("steps")
        state["training"] = read_training(run / "pretrain", steps if isinstance(steps, int) else None)
        hang, stage = state["training"]["hang"] or {}, stages["pretrain"]
        age = time.time() - hang.get("time", 0.0)
        if stage["state"] == KILLED and age < stage["since_seconds"]:  # by the watchdog, which records the reason
            stage |= {"state": FAILED, "reason": str(hang.get("sentence")), "seconds_ago": max(0.0, age)}
            state["state"] = FAILED if state["stage"] == "pretrain" else state["state"]
    if "finetune" in stages:
        state["jobs"] = read_jobs(run / "finetune", _read_settings(run / "finetune"))
        if state["jobs"]["running"] and stages["finetune"]["state"] not in (RUNNING, COMPLETE):
            stages["finetune"]["state"] = RUNNING  # by tasks of a cluster, or another command
            state |= {"state": RUNNING, "stage": "finetune"}
    return state


def _read_stage(folder: Path, events: list[dict[str, Any]]) -> dict[str, Any] | None:
    """State of a stage, None if it was not started."""
    manifest, started = (folder / name for name in (MANIFEST_NAME, STARTED_NAME))
    if not manifest.is_file() and not started.is_file():
        return None
    if not started.is_file():
        seconds = (read_record(manifest) or {}).get("seconds")
        return {"state": COMPLETE, "seconds": seconds, "seconds_ago": age_of(manifest)}
    own = [event for event in events if event["stage"] == folder.name]
    began: dict[str, Any] = next((event for event in reversed(own) if event["kind"] == BEGAN), {})
    last = next((event for event in reversed(own) if event["kind"] in (BEGAN, INTERRUPTED, FAILED)), began)
    process = parse_process(began.get("process"))
    paths = [folder, *(path for pattern in ACTIVITY_FILES for path in folder.glob(pattern))]
    stage: dict[str, Any] = {
        "process": process and process._asdict(),
        "processes": began.get("processes", 1),
        "activity_seconds_ago": min((age for path in paths if (age := age_of(path)) is not None), default=None),
    }
    if last.get("kind") in (INTERRUPTED, FAILED):
        age = max(0.0, time.time() - last["time"])
        return stage | {"state": last["kind"], "reason": last.get("text"), "seconds_ago": age}
    is_alive = process.lives if process else None
    is_active = (stage["activity_seconds_ago"] or 0.0) < SILENCE_SECONDS
    stage["state"] = {True: RUNNING, False: KILLED, None: RUNNING if is_active else SILENT}[is_alive]
    stage["is_alive"] = is_alive
    stage["since_seconds"] = max(0.0, time.time() - began.get("time", time.time()))
    if units := sum(1 for _ in folder.rglob(f"unit-*[0-9]/{COUNTS_NAME}")):
        stage["units_done"] = units
    if path := min(folder.rglob(PROGRESS_NAME), key=lambda path: age_of(path) or 0.0, default=None):
        stage["progress"] = read_record(path)
    return stage


def _read_settings(folder: Path) -> dict[str, Any]:
    """The settings that a stage was started with."""
    head = read_record(folder / STARTED_NAME) or read_record(folder / MANIFEST_NAME) or {}
    settings = head.get("settings")
    return settings if isinstance(settings, dict) else {}


def read_training(folder: Path, steps: int | None) -> dict[str, Any]:
    """Progress, health and last checkpoint of a pretrain folder as JSON; ``steps``: planned steps, if known."""
    lines = [line for line in read_lines(folder / METRICS_NAME) if number_of(line, "step") is not None]
    intervals = [line for line in lines if number_of(line, "loss") is not None]
    held_out_lines = [line for line in lines if isinstance(line.get("held_out"), dict)]
    step = max((int(line["step"]) for line in lines), default=0)
    state: dict[str, Any] = {"step": step, "steps": steps}
    seconds = _seconds_per_step(intervals)
    if steps and seconds is not None:
        state |= {"seconds_per_step": seconds, "seconds_left": max(0, steps - step) * seconds}
    if intervals:
        last = intervals[-1]
        figures = {key: value for key in last if (value := number_of(last, key)) is not None}
        state["last_line"] = figures | {"seconds_ago": age_of(folder / METRICS_NAME)}
    if held_out_lines:
        scores = {key: value for key, value in held_out_lines[-1]["held_out"].items() if isinstance(value, float | int)}
        state["held_out"] = {"step": held_out_lines[-1]["step"], **scores}
    state["checkpoint"] = last_checkpoint(folder / "checkpoints")
    hangs = sorted(folder.glob("hang-*/hang.json"))  # pretrain.metrics.watchdog, which needs torch
    return state | {"hang": read_record(hangs[-1]) if hangs else None}


def last_checkpoint(folder: Path) -> dict[str, Any] | None:
    """The newest checkpoint, its age and whether it is complete ("error" says why not); None without any."""
    folders = checkpoint_folders(folder)
    if not folders:
        return None
    newest, error = folders[-1], None
    try:
        loop = read_loop(newest)
        wrong = [name for name, (size, _) in loop["files"].items() if (newest / name).stat().st_size != size]
        error = f"{', '.join(wrong)} has another size" if wrong else None
    except (BadInput, OSError, ValueError) as problem:
        error = str(problem)
    return {
        "folder": str(newest),
        "step": int(newest.name.removeprefix("step-")),
        "error": error,
        "is_complete": error is None,
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


def read_jobs(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Counts of the fine-tuning jobs in a finetune folder; ``settings``: those that the stage was started with.

    "planned" and "left" are None if the settings cannot be read. "running" counts claimed jobs by host; "abandoned"
    counts claims of processes of this host that have ended.
    """
    homes = sorted(home for pattern in JOB_FOLDERS for home in folder.glob(pattern) if home.is_dir())
    results = {home: result for home in homes if (result := read_record(home / SCORES_NAME))}
    others = [home for home in homes if home not in results]
    failures = {home: failure for home in others if (failure := read_record(home / FAILED_NAME)) is not None}
    claims = [home / CLAIM_NAME for home in others if home not in failures and (home / CLAIM_NAME).is_file()]
    holders = [read_lock_holder(claim) for claim in claims]
    alive = [holder for holder in holders if holder is None or holder.lives is not False]
    running = Counter(holder.host if holder else "an unknown host" for holder in alive)
    planned: list[Job] | None = None
    with suppress(ValidationError, BadInput):
        config = FinetuneConfig.model_validate(settings)
        planned = list(dict.fromkeys(plan(config, {name: name for name in config.models})))
    done = len(results) if planned is None else sum(_is_done(job, results, folder) for job in planned)
    return {
        "planned": None if planned is None else len(planned),
        "done": done,
        "failed": len(failures),
        "running": dict(running),
        "abandoned": len(holders) - len(alive),
        "left": None if planned is None else len(planned) - done,
        "failures": {
            str(home.relative_to(folder)): str(failure.get("failure", "no reason recorded"))
            for home, failure in failures.items()
        },
    }


def _is_done(job: Job, results: dict[Path, dict[str, Any]], folder: Path) -> bool:
    """Whether a result has the settings of the job; only the run itself checks the encoder's digest."""
    homes = folder / job.task / folder_name(job.model)
    same = [r for home, r in results.items() if homes in home.parents and home.name == f"seed-{job.seed}"]
    return any(isinstance(result.get("recipe"), dict) and has_settings_of(result, job) for result in same)


def read_record(path: Path) -> dict[str, Any] | None:
    """The JSON object of a file; None if the file is missing or unreadable."""
    with suppress(OSError, ValueError, RecursionError):
        value = json.loads(path.read_text("utf-8"))
        return value if isinstance(value, dict) else None
    return None


def age_of(path: Path) -> float | None:
    """Seconds since a file or folder was written, 0 if its clock is ahead; None if it does not exist."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None


def number_of(record: dict[str, Any], key: str) -> float | None:
    """The number under a key; None for anything else."""
    value = record.get(key)
    return value if isinstance(value, float | int) and not isinstance(value, bool) else None


def run_lines(state: Mapping[str, Any]) -> Iterator[str]:
    """The state of one run, one fact per line."""
    progress, left = _progress(state), _time_left(state)
    headline = ", ".join(filter(None, (f"{state['stage']} {state['state']}", progress, left and f"{left} left")))
    if state["state"] == EMPTY:
        headline = "nothing started yet"
    elif state["state"] == COMPLETE:
        headline = f"complete up to {state['stage']}, {_ago(state['stages'][state['stage']])}"
    yield f"{state['run']}: {headline}"
    if complete := [name for name, stage in state["stages"].items() if stage["state"] == COMPLETE]:
        yield f"complete    {', '.join(complete)}"
    stage = state["stages"].get(state["stage"], {})
    yield from _process_lines(stage)
    if units := stage.get("units_done"):
        yield f"units       {units:,} finished"
    if state["stage"] == "pretrain" or stage.get("state") == COMPLETE:
        yield from _training_lines(state.get("training", {}))
    yield from _job_lines(state["jobs"]) if "jobs" in state else ()


def runs_table(states: Sequence[Mapping[str, Any]]) -> Table:
    """A row per run."""
    rows = []
    for state in states:
        training = state.get("training", {})
        last, checkpoint = training.get("last_line", {}), training.get("checkpoint")
        stage = state["stages"].get(state["stage"], {})
        host = stage["process"]["host"] if stage.get("process") and stage["state"] in (RUNNING, SILENT) else None
        rows.append([
            Path(state["run"]).name,
            state["state"],
            state["stage"] or "–",
            _progress(state) or "–",
            _time_left(state) or "–",
            f"{last['loss']:.3f}" if "loss" in last else "–",
            f"{_ago(checkpoint)}{'' if checkpoint['is_complete'] else ', damaged'}" if checkpoint else "–",
            host or "–",
        ])  # fmt: skip
    heads = ("run", "state", "stage", "progress", "left", "loss", "checkpoint", "host")
    return Table(heads, rows, numbers=(3, 4, 5), title="Runs")


def _process_lines(stage: Mapping[str, Any]) -> Iterator[str]:
    state = stage.get("state")
    if state in (RUNNING, SILENT) and stage.get("process"):
        count = stage.get("processes", 1)
        total = f", {count} processes" if count > 1 else ""
        process, since = stage["process"], _duration(stage.get("since_seconds"))
        yield f"process     {process['pid']} on {process['host']}{total}, for {since}"
    if stage.get("reason"):
        yield f"{state:<12}{_ago(stage)}: {stage['reason']}"
    if state in ADVICE:
        yield f"{state:<12}{ADVICE[state]}"


def _training_lines(training: Mapping[str, Any]) -> Iterator[str]:
    if last := training.get("last_line"):
        parts = [f"step {last['step']}/{training['steps']}", f"loss {last['loss']:.3f}"]
        parts += [f"accuracy {last[key]:.3f}" for key in ("masked_accuracy", "causal_accuracy") if key in last][:1]
        parts += [f"norm {last['grad_norm']:.2f}" if "grad_norm" in last else "norm not finite"]
        parts += [f"{last['tokens_per_second'] / 1000:.1f}k tok/s"] if "tokens_per_second" in last else []
        parts += [f"mfu {100 * last['mfu']:.1f} %"] if "mfu" in last else []
        parts += ["eager and slower: torch stopped compiling"] if "eager" in last else []
        if "slowest_rank" in last:
            parts += [f"slowest rank {last['slowest_rank']} ({last['slowest_factor']:.2f} times the others)"]
        yield f"last line   {', '.join(parts)}; {_ago(last)}"
    if held_out := training.get("held_out"):
        loss = next((held_out[key] for key in ("mlm_loss", "causal_loss") if key in held_out), None)
        if loss is not None:
            yield f"held out    loss {loss:.3f} after step {held_out['step']}"
    if checkpoint := training.get("checkpoint"):
        health = "complete (file sizes checked)"
        if checkpoint["error"]:
            health = f"damaged: {checkpoint['error']}; a resume uses the previous one"
        yield f"checkpoint  step {checkpoint['step']}, {_ago(checkpoint)}, {health}"
    elif training:
        yield "checkpoint  none yet"


def _job_lines(jobs: Mapping[str, Any]) -> Iterator[str]:
    planned = "" if jobs["planned"] is None else f" of {jobs['planned']}"
    left = "" if jobs["left"] is None else f", {jobs['left']} left"
    running = ", ".join(f"{count} on {host}" for host, count in jobs["running"].items()) or "none"
    abandoned = f", {jobs['abandoned']} abandoned by processes that have ended" if jobs["abandoned"] else ""
    yield f"jobs        {jobs['done']}{planned} done{left}, {jobs['failed']} failed; running: {running}{abandoned}"
    yield from (f"  {name}: {reason}" for name, reason in jobs["failures"].items())


def _progress(state: Mapping[str, Any]) -> str | None:
    stage, training, jobs = state["stage"], state.get("training", {}), state.get("jobs", {})
    if stage == "pretrain" and training.get("steps"):
        return f"{training['step']}/{training['steps']} ({training['step'] / training['steps']:.0%})"
    if stage == "finetune" and jobs.get("planned"):
        return f"{jobs['done']}/{jobs['planned']} jobs"
    progress = state["stages"].get(stage, {}).get("progress")
    return f"{progress['title']} {describe_progress(progress)}" if progress else None


def _time_left(state: Mapping[str, Any]) -> str | None:
    seconds = state.get("training", {}).get("seconds_left")
    is_training = state["stage"] == "pretrain" and state["state"] in (RUNNING, SILENT)
    return str(timedelta(seconds=round(seconds))) if is_training and seconds is not None else None


def _ago(record: Mapping[str, Any]) -> str:
    return f"{_duration(record.get('seconds_ago'))} ago"


def _duration(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else duration(seconds)
