"""``python -m benchmarks speedrun``: which recipe learns most in a fixed budget on fixed text.

```
out/text/              the two token stores and their tokenizer
out/arena.json         what all share: text, budget, measurement, processor
out/results.jsonl      a line for each contestant and seed that has finished; it is not run again
out/results.md         the tables made of them
out/models/, probes/   each trained encoder (before, its race to go on from), and its fine-tuning
```
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.speedrun.arena import Judge, Text, prepare_text
from benchmarks.speedrun.contestants import RIVALS, Contestant, read_contestants
from benchmarks.speedrun.pace import Budget
from benchmarks.speedrun.probes import QUICK, Probes, check_probes, compared_probes, probe
from benchmarks.speedrun.race import Order, run_race
from benchmarks.speedrun.standings import standings
from benchmarks.timing import run_fresh, versions_of
from corpus.documents.accelerator import PrecisionName, choose_precision, device_name, find_device
from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from finetune.task_names import full_name
from launch.conduct import conduct
from launch.console import PlainConsole, Table, markdown_table, print_table
from launch.errors import LaunchError
from launch.manifest import lock_stage, write_json
from launch.recipe import SAMPLE
from launch.report.results import read_lines
from launch.sample.unpack import unpack

log = logging.getLogger(__name__)

RESULTS_NAME, TABLES_NAME, ARENA_NAME = "results.jsonl", "results.md", "arena.json"
PRECISIONS = ("auto", "fp32", "bf16")
SAMPLE_RECIPE = "smoke"
LOCK = "speedrun"  # several commands may work in one folder


class Rules(NamedTuple):
    """What all contestants share beside the text; ``rows`` are measured ``points`` times."""

    budget: Budget
    threads: int
    precision: PrecisionName
    points: int
    rows: int


def run_speedrun(
    data: Path | None,
    contestants: Sequence[str],
    size: str,
    seeds: Sequence[int],
    rules: Rules,
    klue: str | None,
    out: Path,
    *,
    tasks: Sequence[str] = (),
    rates: Sequence[float] = (),
    examples: Sequence[int] = (),
    references: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Race every contestant with every seed that has no result yet, print tables, and keep all in ``out``.

    Args:
        data: a run folder with corpus and tokenizer; None: the embedded sample is made ready.
        contestants, size: see ``read_contestants``.
        klue: folder of the KLUE files for the probes, "malmoi:sample" for those of the sample; None: no probes.
        tasks, rates, examples: of the probes; ``QUICK`` if no task is named, and see ``Probes``.
        references: contestants that all others are timed against and held beside; ``RIVALS`` if empty.

    Returns:
        the results, one for each line of results.jsonl.

    Raises:
        BadInput, LaunchError: an option or a file cannot be used, ``out`` is another arena, or a run failed; those
            that finished are kept.
    """
    _check(rules, seeds)
    device = find_device("auto", "pretrain.engine.device")
    if device.type != "cpu" and rules.budget.unit == "cpu_s":
        raise BadInput("on an accelerator CPU seconds are no budget; give --operations")
    rules = rules._replace(precision=choose_precision(rules.precision, "--precision", device).precision)
    entered = read_contestants(contestants, size, rules.precision)
    _check_references(references, entered, out)
    probes = _find_probes(klue, tasks, rates, examples, rules.precision, out)
    with lock_stage(out, LOCK, waits=True):
        text = prepare_text(data or _sample_run(out), out / "text", os.cpu_count() or 1)
        arena = _open_arena(out, text, rules, device_name(device))
    failures = _race_all(entered, seeds, text, rules, arena, probes, out)
    results = _results(out)
    _show(results, arena, references or RIVALS, probes, out)
    if failures:
        raise LaunchError("\n".join(failures))
    return results


def _check(rules: Rules, seeds: Sequence[int]) -> None:
    amounts = {"--minutes or --operations": rules.budget.amount, "--threads": rules.threads}
    for name, amount in (amounts | {"--points": rules.points, "--rows": rules.rows}).items():
        if not amount > 0:
            raise BadInput(f"{name} must be above 0")
    if rules.precision not in PRECISIONS:
        raise BadInput(f"--precision {rules.precision}: there are {', '.join(PRECISIONS)}")
    if len(set(seeds)) < len(seeds) or min(seeds, default=-1) < 0:
        raise BadInput("--seed: give each seed once, 0 or more")


def _check_references(references: Sequence[str], entered: Sequence[Contestant], out: Path) -> None:
    names = [*(contestant.name for contestant in entered), *(result["contestant"] for result in _results(out))]
    for reference in references:
        if reference not in names:
            there = ", ".join(dict.fromkeys(names))
            raise BadInput(f"--beside {reference}: no contestant of this name takes part; here are {there}")


def _sample_run(out: Path) -> Path:
    """The run folder of the demo, with corpus and vocabulary."""
    for verb in ("corpus", "tokenizer"):
        conduct(verb, SAMPLE_RECIPE, (), out / "sample", dry_run=False)
    return out / "sample" / SAMPLE_RECIPE


def _find_probes(
    klue: str | None,
    tasks: Sequence[str],
    rates: Sequence[float],
    examples: Sequence[int],
    precision: str,
    out: Path,
) -> Probes | None:
    """None without ``klue``; BadInput where its files or a task cannot be had."""
    if klue is None:
        if tasks or rates or examples:
            raise BadInput("--task, --rate, --examples: probes need the KLUE files; give their folder with --klue")
        return None
    folder = out / "sample" / "klue" if klue == SAMPLE else Path(klue)
    if klue == SAMPLE:
        unpack(out / "sample")
    full = tuple(dict.fromkeys(map(full_name, tasks or QUICK)))
    found = Probes(folder, full, tuple(dict.fromkeys(rates)), tuple(dict.fromkeys(examples)))
    check_probes(found, precision)
    return found


def _open_arena(out: Path, text: Text, rules: Rules, device: str) -> dict[str, Any]:
    """What all results of the folder share, with the accuracies of counting; another arena is refused."""
    now = {
        "text": {part: text.facts[part]["sha256"] for part in ("training", "held-out")},
        **rules._asdict(),
        "budget": rules.budget._asdict(),
        "device": device,
    }
    path = out / ARENA_NAME
    if not path.is_file():
        write_json(path, now | {"baselines": Judge(text, rules.rows).baselines(text), "tokens": text.facts})
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    if other := [f"{key} ({found[key]}, now {value})" for key, value in now.items() if found[key] != value]:
        raise BadInput(f"{out}: its results are of another arena: {'; '.join(other)}; choose another --out")
    return found


# --- races, one after the other


def _race_all(
    entered: Sequence[Contestant],
    seeds: Sequence[int],
    text: Text,
    rules: Rules,
    arena: dict[str, Any],
    probes: Probes | None,
    out: Path,
) -> list[str]:
    """Do what is missing, seed after seed; returns what failed."""
    _refuse_others(entered, _results(out), out)
    failures = []
    for seed in seeds:
        for contestant in entered:
            who, model = f"{contestant.name}, seed {seed}", _folder(out, "models", contestant.name, seed)
            try:
                if _find(out, contestant, seed) is None:
                    log.info("%s: %s", who, contestant.told)
                    _keep(out, _race(contestant, seed, text, rules, arena, model))
                found = _find(out, contestant, seed) or {}
                known = found.get("probes", {})
                if probes and not known.keys() >= set(probes.names):
                    log.info("%s: probes", who)
                    folder = _folder(out, "probes", contestant.name, seed)
                    scores = probe(model, probes, folder, seed, rules.precision)
                    _keep(out, {**found, "probes": known | scores})
            except LaunchError as error:
                log.warning("%s", error)
                failures.append(str(error))
    return failures


def _race(
    contestant: Contestant, seed: int, text: Text, rules: Rules, arena: dict[str, Any], model: Path
) -> dict[str, Any]:
    order = Order(
        side=contestant.side, config=contestant.seeded(seed), training=text.training, held_out=text.held_out,
        tokenizer=text.tokenizer, budget=rules.budget, points=rules.points, rows=rules.rows, threads=rules.threads,
        model=model,
    )  # fmt: skip
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(rules.threads))
    who = f"{contestant.name}, seed {seed},"
    found = run_fresh(run_race, order.model_dump(mode="json"), who, threads)
    log.info("%s loss %.3f, accuracy %.1f %%, %d steps", who, found["loss"], 100 * found["accuracy"], found["steps"])
    told = {"contestant": contestant.name, "seed": seed, "told": contestant.told, **contestant.identity()}
    shared = {"date": date.today().isoformat(), "device": arena["device"], "precision": rules.precision}
    return {
        **told,
        **shared,
        "threads": rules.threads,
        **found,
        "versions": versions_of(("malmoi", "torch", "transformers")),
    }


def _refuse_others(entered: Sequence[Contestant], results: Sequence[dict[str, Any]], out: Path) -> None:
    """BadInput where a contestant has the name of another whose results stand in the folder."""
    for contestant in entered:
        identity = json.loads(json.dumps(contestant.identity()))
        for result in results:
            if result["contestant"] == contestant.name and {key: result[key] for key in identity} != identity:
                raise BadInput(
                    f"--contestant {contestant.name}: {out} has results of another contestant of this name "
                    f"({result['told']}); give this one another name"
                )


def _folder(out: Path, kind: str, contestant: str, seed: int) -> Path:
    return out / kind / contestant / f"seed-{seed}"


# --- what is kept


def _results(out: Path) -> list[dict[str, Any]]:
    return read_lines(out / RESULTS_NAME)


def _find(out: Path, contestant: Contestant, seed: int) -> dict[str, Any] | None:
    wanted = (contestant.name, seed)
    return next((result for result in _results(out) if (result["contestant"], result["seed"]) == wanted), None)


def _keep(out: Path, result: dict[str, Any]) -> None:
    """Add a result, or put it in the place of an older one of the same contestant and seed."""
    key = ("contestant", "seed")
    with lock_stage(out, LOCK, waits=True):
        others = [found for found in _results(out) if any(found[name] != result[name] for name in key)]
        lines = (json.dumps(found, ensure_ascii=False) + "\n" for found in (*others, result))
        atomic_write(out / RESULTS_NAME, "".join(lines))


def _show(
    results: Sequence[dict[str, Any]],
    arena: dict[str, Any],
    references: Sequence[str],
    probes: Probes | None,
    out: Path,
) -> None:
    budget = arena["budget"]
    amount = (
        f"{budget['amount'] / 60:g} CPU minutes" if budget["unit"] == "cpu_s" else f"{budget['amount']:g} operations"
    )
    about = (
        f"{amount} on {arena['device']}, {arena['threads']} threads, {arena['precision']}; "
        f"{arena['tokens']['training']['tokens']:,} tokens of training text"
    )
    console, pages = PlainConsole(), [about]
    console.print(about, soft_wrap=True)
    tables = standings(results, arena["baselines"], references)
    for table in tables + (_compared(results, references, probes.klue, out) if probes else []):
        print_table(table, console)
        pages.append(f"{markdown_table(table)}\n\n{table.note}".strip())
    told = {result["contestant"]: result["told"] for result in results}
    pages.append("\n".join(f"- {name}: `{words}`" for name, words in told.items()))
    atomic_write(out / TABLES_NAME, "\n\n".join(pages) + "\n")


def _compared(results: Sequence[dict[str, Any]], references: Sequence[str], klue: Path, out: Path) -> list[Table]:
    """Probes of each contestant beside those of each reference that has some."""
    folders: dict[str, dict[int, Path]] = {}
    for result in results:
        if "probes" in result:
            name, seed = result["contestant"], result["seed"]
            folders.setdefault(name, {})[seed] = _folder(out, "probes", name, seed)
    return compared_probes(folders, [name for name in references if name in folders], klue)
