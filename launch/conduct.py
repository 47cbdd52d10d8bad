"""What a stage verb does: load the recipe, check it, then show the plan or run the stages."""

from __future__ import annotations

import logging
import multiprocessing
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import FrameType

from finetune.score.compare import find_trained
from launch import manifest
from launch.checks.estimate import show_plan, this_machine
from launch.checks.preflight import find_problems, format_problems
from launch.cluster.events import record_events
from launch.console import PlainConsole, peak_memory_mib, print_table, rank, world_size
from launch.errors import LaunchError
from launch.manifest import MANIFEST_NAME, STARTED_NAME, Head, lock_stage
from launch.pipeline import Stage, can_continue, head_of, stages_of
from launch.recipe import Recipe, load_recipe
from launch.report.results import Results, read_results
from launch.report.scores import printed_table, systems_table
from launch.report.trainings import read_studies, search_table

log = logging.getLogger(__name__)

INTERRUPTED = 130  # exit code after Ctrl-C: 128 + SIGINT


def conduct(
    verb: str, name: str, overrides: Sequence[str], runs: Path, *, dry_run: bool, on_terminal: bool = False
) -> None:
    """Run the stages of ``verb`` for a recipe in ``runs/<recipe name>``; ``LaunchError`` if a check finds problems.

    Args:
        dry_run: print the problems and the plan instead; write nothing.
        on_terminal: Ctrl-C ends this process with one line.
    """
    recipe = load_recipe(name, overrides)
    if world_size() > 1 and verb != "pretrain":
        raise LaunchError(f"{verb} runs in one process; only the verb pretrain runs under torchrun or deepspeed")
    run, stages = runs / recipe.name, stages_of(verb, recipe)
    machine = this_machine(recipe, trains=any(stage.name in ("pretrain", "finetune", "embed") for stage in stages))
    problems = find_problems(verb, stages, recipe, run, machine, world_size())
    if dry_run:
        if rank() == 0:
            show_plan(verb, stages, recipe, run, machine, problems)
        if problems:
            sys.exit(2)
        return
    if problems:
        raise LaunchError(format_problems(recipe.name, problems))
    with exit_on_ctrl_c(run, stages) if on_terminal else nullcontext():
        for stage in stages:
            if stage.name == "pretrain" or rank() == 0:
                run_stage(stage, recipe, run)
    show_results(verb, run)


def show_results(verb: str, run: Path) -> None:
    """Print the tables of a verb, and where its report or model is."""
    if verb == "search":
        print_table(search_table(read_studies(run), "Search"))
    if verb in ("run", "finetune", "search"):
        results = read_results(run)
        print_table(printed_table(results.scores))
        if results.stale:
            PlainConsole().print(results.stale_note, soft_wrap=True)
    if verb == "embed":
        scores = [result for one in find_trained(run / "embed") for _, result in one.results]
        print_table(systems_table(Results(scores)))
        PlainConsole().print(f"\nmodel: {run / 'embed' / 'model'}", soft_wrap=True)
    if verb in ("run", "report"):
        PlainConsole().print(f"\nreport: {run / 'report' / 'report.html'}", soft_wrap=True)


def run_stage(stage: Stage, recipe: Recipe, run: Path) -> bool:
    """Run one stage unless its result is complete; returns whether it ran.

    ``LaunchError`` if an earlier stage is missing, or the folder belongs to another recipe.
    """
    out = run / stage.name
    head = head_of(stage, recipe, run)
    if _is_up_to_date(stage, recipe, run, head):
        return False
    joins = stage.if_busy == "join"
    with ExitStack() as locks:

        def lock() -> None:
            if rank() == 0:
                locks.enter_context(lock_stage(run, stage.name, waits=stage.if_busy != "refuse"))

        lock()
        if rank() == 0 and _is_up_to_date(stage, recipe, run, head):  # another command was faster
            return False
        if rank() == 0:
            continues = can_continue(stage, recipe, run, head)
            manifest.start(out, head, again=continues and not joins)  # the manifest of a joined command stays valid
        log.info("%-9s → %s", stage.name, out)
        if joins:
            locks.close()
        start = time.monotonic()
        with record_events(run, stage.name) if rank() == 0 else nullcontext():
            counts = stage.work(recipe, run, out)
        seconds = time.monotonic() - start
        if joins:
            lock()
        if rank() == 0:
            manifest.finish(out, head, counts, seconds, peak_memory_mib())
        log.info("%-9s done in %.1f s", stage.name, seconds)
    return True


def _is_up_to_date(stage: Stage, recipe: Recipe, run: Path, head: Head) -> bool:
    """Whether the folder holds the result of this head; logs a line if it does."""
    out = run / stage.name
    is_outdated = False
    if stage.name == "report" and (made := out / MANIFEST_NAME).is_file():  # rewritten for results of tools, language
        language = (manifest.read_manifest(out) or {"counts": {}})["counts"].get("language")
        newer = (p.stat().st_mtime_ns > made.stat().st_mtime_ns for p in (run / "finetune").rglob("scores.json"))
        is_outdated = language != recipe.launch.resolve_language() or any(newer)
    if can_continue(stage, recipe, run, head) or not manifest.is_complete(out, head) or is_outdated:
        return False
    log.info("%-9s complete, nothing to do (%s)", stage.name, out)
    return True


@contextmanager
def exit_on_ctrl_c(run: Path, stages: Sequence[Stage]) -> Iterator[None]:
    """Ctrl-C ends the process with code 130 and one line that says what is kept and how to resume.

    Worker processes are killed, not waited for. Their finished work is on the disk, because files are written
    atomically.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        for worker in multiprocessing.active_children():
            worker.kill()  # a pool would wait until its workers are done
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if rank() == 0:
            folders = [run / stage.name for stage in stages]
            unfinished = (f for f in folders if (f / STARTED_NAME).exists() or not (f / MANIFEST_NAME).exists())
            current, command = next((f.name for f in unfinished), "the end"), shlex.join(["malmoi", *sys.argv[1:]])
            PlainConsole(stderr=True).print(
                f"\nmalmoi: stopped in {current}; {run} keeps all finished stages and parts; run `{command}` to resume",
                soft_wrap=True,
            )
        sys.exit(INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, before)
