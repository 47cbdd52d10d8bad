"""The state of a run as text: a few lines for one run, a table for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from corpus.documents.units import describe_progress
from launch.cluster.run_state import COMPLETE, EMPTY, KILLED, RUNNING, SILENT
from launch.console import Table
from launch.numbers import duration

ADVICE = {
    KILLED: "the process has ended without recording a reason; the same command resumes the run",
    SILENT: "the process is on a host that cannot be asked from here, and has written nothing for a while; check there",
}


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
