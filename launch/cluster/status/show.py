"""A run's state as a person reads it: a few lines for one, a table for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from launch.cluster.status.look import COMPLETE, EMPTY, KILLED, RUNNING, SILENT
from launch.console import Table, say_duration

ADVICE = {
    KILLED: "its process is gone without a word; the same command goes on from what is finished",
    SILENT: "its host cannot be asked from here, and nothing was written for a while: look there",
    "begun": "whether it is at work cannot be told: it was begun by a release that left no events",
}


def lines_of(told: Mapping[str, Any]) -> Iterator[str]:
    """What is known of one run, a fact a line."""
    yield f"{told['run']}: {_headline(told)}"
    done = [name for name, stage in told["stages"].items() if stage["state"] == COMPLETE]
    if done:
        yield f"complete    {', '.join(done)}"
    stage = told["stages"].get(told["stage"], {})
    yield from _process(stage)
    if units := stage.get("units_done"):
        yield f"units       {units:,} finished"
    if told["stage"] == "pretrain" or stage.get("state") == COMPLETE:
        yield from _training(told.get("training", {}), stage.get("state"))
    if "jobs" in told:
        yield from _jobs(told["jobs"])
    warnings = told["warnings"]
    if warnings["count"]:
        yield f"warnings    {warnings['count']} since it was begun; the last:"
        yield from (f"  {text}" for text in warnings["last"])


def table_of(all_told: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each run."""
    rows = []
    for told in all_told:
        training = told.get("training", {})
        last, checkpoint = training.get("last_line", {}), training.get("checkpoint")
        rows.append([
            Path(told["run"]).name,
            told["state"],
            told["stage"] or "–",
            _progress(told) or "–",
            _left(told) or "–",
            f"{last['loss']:.3f}" if "loss" in last else "–",
            f"{_ago(checkpoint)}{'' if checkpoint['is_whole'] else ', damaged'}" if checkpoint else "–",
            _where(told["stages"].get(told["stage"], {})) or "–",
        ])  # fmt: skip
    heads = ("run", "state", "stage", "progress", "left", "loss", "checkpoint", "where")
    return Table(heads, rows, numbers=(3, 4, 5), title="Runs")


def _headline(told: Mapping[str, Any]) -> str:
    state, stage = told["state"], told["stage"]
    if state == EMPTY:
        return "nothing begun yet"
    if state == COMPLETE:
        return f"complete up to {stage}, {_ago(told['stages'][stage])}"
    progress, left = _progress(told), _left(told)
    parts = [f"{stage} {state}", *([progress] if progress else []), *([f"{left} left"] if left else [])]
    return ", ".join(parts)


def _process(stage: Mapping[str, Any]) -> Iterator[str]:
    state = stage.get("state")
    if state in (RUNNING, SILENT) and stage.get("process"):
        count = stage.get("processes", 1)
        many = f", {count} processes" if count > 1 else ""
        sign = "" if stage.get("lives") else f"; last sign of life {_seconds(stage.get('sign_seconds_ago'))} ago"
        since = _seconds(stage.get("since_seconds"))
        yield f"process     {stage['process']['pid']} on {stage['process']['host']}{many}, for {since}{sign}"
    if stage.get("reason"):
        yield f"{state:<12}{_ago(stage)}: {stage['reason']}"
    if state in ADVICE:
        yield f"{state:<12}{ADVICE[state]}"


def _training(training: Mapping[str, Any], state: str | None) -> Iterator[str]:
    if last := training.get("last_line"):
        shown = [f"step {last['step']}/{training['steps']}", f"loss {last['loss']:.3f}"]
        shown += [f"accuracy {last[key]:.3f}" for key in ("masked_accuracy", "causal_accuracy") if key in last][:1]
        shown += [f"norm {last['grad_norm']:.2f}" if "grad_norm" in last else "norm not finite"]
        shown += [f"{last['tokens_per_second'] / 1000:.1f}k tok/s"] if "tokens_per_second" in last else []
        shown += [f"mfu {100 * last['mfu']:.1f} %"] if "mfu" in last else []
        if "slowest_rank" in last:
            shown += [f"slowest rank {last['slowest_rank']} ({last['slowest_factor']:.2f} times the others)"]
        usual = training["seconds_between_lines"]
        late = f", one is usual every {_seconds(usual)}" if state in (RUNNING, SILENT) else ""
        yield f"last line   {', '.join(shown)}; {_ago(last)}{late}"
    if held_out := training.get("held_out"):
        loss = next((held_out[key] for key in ("mlm_loss", "causal_loss") if key in held_out), None)
        if loss is not None:
            yield f"held out    loss {loss:.3f} after step {held_out['step']}"
    if checkpoint := training.get("checkpoint"):
        how = "read, and" if checkpoint["was_read"] else "by the sizes of its files"
        whole = f"whole ({how} as written)" if checkpoint["was_read"] else f"whole {how}"
        fault = f"damaged: {checkpoint['fault']}; the one before is taken"
        yield f"checkpoint  step {checkpoint['step']}, {_ago(checkpoint)}, {whole if checkpoint['is_whole'] else fault}"
    elif training:
        yield "checkpoint  none yet"


def _jobs(jobs: Mapping[str, Any]) -> Iterator[str]:
    of = "" if jobs["planned"] is None else f" of {jobs['planned']}"
    left = "" if jobs["left"] is None else f", {jobs['left']} left"
    running = ", ".join(f"{count} on {host}" for host, count in jobs["running"].items()) or "none"
    abandoned = f", {jobs['abandoned']} left by processes that are gone" if jobs["abandoned"] else ""
    yield f"jobs        {jobs['done']}{of} done{left}, {jobs['failed']} failed; running: {running}{abandoned}"
    yield from (f"  {name}: {why}" for name, why in jobs["failures"].items())


def _progress(told: Mapping[str, Any]) -> str | None:
    stage, training, jobs = told["stage"], told.get("training", {}), told.get("jobs", {})
    if stage == "pretrain" and training.get("steps"):
        return f"{training['step']}/{training['steps']} ({training['step'] / training['steps']:.0%})"
    if stage == "finetune" and jobs.get("planned"):
        return f"{jobs['done']}/{jobs['planned']} jobs"
    return None


def _left(told: Mapping[str, Any]) -> str | None:
    seconds = told.get("training", {}).get("seconds_left")
    is_training = told["stage"] == "pretrain" and told["state"] in (RUNNING, SILENT)
    return str(timedelta(seconds=round(seconds))) if is_training and seconds is not None else None


def _where(stage: Mapping[str, Any]) -> str | None:
    process = stage.get("process")
    return process["host"] if process and stage["state"] in (RUNNING, SILENT) else None


def _ago(found: Mapping[str, Any]) -> str:
    return f"{_seconds(found.get('seconds_ago'))} ago"


def _seconds(value: float | None) -> str:
    return "an unknown time" if value is None else say_duration(value)
