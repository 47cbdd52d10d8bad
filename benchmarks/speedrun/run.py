"""``python -m benchmarks speedrun``: compare pretraining recipes on the same text with the same budget.

```
out/text/              the two token stores and their tokenizer
out/setup.json         what all results share: text, budget, evaluation, processor
out/results.jsonl      a line for each candidate and seed that has finished; it is not run again
out/results.md         the tables
out/models/, probes/   each trained encoder (until then, the state to resume from), and its fine-tuning
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

from benchmarks.speedrun.budget import Budget
from benchmarks.speedrun.candidate_run import RunSettings, run_candidate
from benchmarks.speedrun.candidates import BASELINES, Candidate, read_candidates
from benchmarks.speedrun.leaderboard import leaderboard_tables
from benchmarks.speedrun.probes import DEFAULT_TASKS, Probes, check_probes, compare_probes, probe
from benchmarks.speedrun.setup import Evaluation, Text, prepare_text
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

RESULTS_NAME, TABLES_NAME, SETUP_NAME = "results.jsonl", "results.md", "setup.json"
PRECISIONS = ("auto", "fp32", "bf16")
SAMPLE_RECIPE = "smoke"
LOCK = "speedrun"  # several commands may use one folder


class Rules(NamedTuple):
    """What all candidates share, apart from the text; ``rows`` are evaluated ``points`` times."""

    budget: Budget
    precision: PrecisionName
    points: int
    rows: int


def run_speedrun(
    data: Path | None,
    candidates: Sequence[str],
    size: str,
    seeds: Sequence[int],
    rules: Rules,
    klue: str | None,
    out: Path,
    *,
    tasks: Sequence[str] = (),
    lr_factors: Sequence[float] = (),
    examples: Sequence[int] = (),
    baselines: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Run every candidate with every seed that has no result yet, print tables, and write and return all results.

    Args:
        data: a run folder with corpus and tokenizer; None: the embedded sample.
        candidates, size: see ``read_candidates``.
        klue: folder of the KLUE files for probes, or "malmoi:sample"; None: no probes.
        tasks, lr_factors, examples: see ``Probes``; ``DEFAULT_TASKS`` if ``tasks`` is empty.
        baselines: candidates that all others are compared with; ``BASELINES`` if empty.

    Raises:
        BadInput, LaunchError: an option or a file cannot be used, ``out`` has another setup, or a run failed; finished
            results stay.
    """
    _check(rules, seeds)
    device = find_device("auto", "pretrain.engine.device")
    if device.type != "cpu" and rules.budget.unit == "cpu_s":
        raise BadInput("--minutes counts CPU time; on an accelerator, use --operations")
    rules = rules._replace(precision=choose_precision(rules.precision, "--precision", device).precision)
    chosen = read_candidates(candidates, size, rules.precision)
    _check_baselines(baselines, chosen, out)
    probes = _find_probes(klue, tasks, lr_factors, examples, rules.precision, out)
    with lock_stage(out, LOCK, waits=True):
        text = prepare_text(data or _sample_run(out), out / "text", os.cpu_count() or 1)
        setup = _open_setup(out, text, rules, device_name(device))
    failures = _run_all(chosen, seeds, text, rules, setup, probes, out)
    results = _read_results(out)
    _print_tables(results, setup, baselines or BASELINES, probes, out)
    if failures:
        raise LaunchError("\n".join(failures))
    return results


def _check(rules: Rules, seeds: Sequence[int]) -> None:
    amounts = {"--minutes or --operations": rules.budget.amount, "--points": rules.points, "--rows": rules.rows}
    for name, amount in amounts.items():
        if not amount > 0:
            raise BadInput(f"{name} must be above 0")
    if rules.precision not in PRECISIONS:
        raise BadInput(f"--precision {rules.precision}: expected one of {', '.join(PRECISIONS)}")
    if len(set(seeds)) < len(seeds) or min(seeds, default=-1) < 0:
        raise BadInput("--seed: expected different seeds, 0 or more")


def _check_baselines(baselines: Sequence[str], chosen: Sequence[Candidate], out: Path) -> None:
    names = [*(candidate.name for candidate in chosen), *(result["candidate"] for result in _read_results(out))]
    for baseline in baselines:
        if baseline not in names:
            known = ", ".join(dict.fromkeys(names))
            raise BadInput(f"--baseline {baseline}: no candidate has this name; candidates are {known}")


def _sample_run(out: Path) -> Path:
    """The run folder of the demo with corpus and tokenizer."""
    for verb in ("corpus", "tokenizer"):
        conduct(verb, SAMPLE_RECIPE, (), out / "sample", dry_run=False)
    return out / "sample" / SAMPLE_RECIPE


def _find_probes(
    klue: str | None,
    tasks: Sequence[str],
    lr_factors: Sequence[float],
    examples: Sequence[int],
    precision: str,
    out: Path,
) -> Probes | None:
    """None without ``klue``; BadInput if its files or a task are unknown."""
    if klue is None:
        if tasks or lr_factors or examples:
            raise BadInput("--task, --lr-factor and --examples need the KLUE files; set their folder with --klue")
        return None
    folder = out / "sample" / "klue" if klue == SAMPLE else Path(klue)
    if klue == SAMPLE:
        unpack(out / "sample")
    full = tuple(dict.fromkeys(map(full_name, tasks or DEFAULT_TASKS)))
    probes = Probes(folder, full, tuple(dict.fromkeys(lr_factors)), tuple(dict.fromkeys(examples)))
    check_probes(probes, precision)
    return probes


def _open_setup(out: Path, text: Text, rules: Rules, device: str) -> dict[str, Any]:
    """Read or write setup.json, with the counting baselines; BadInput if the folder has another setup."""
    now = {
        "text": {part: text.facts[part]["sha256"] for part in ("training", "held-out")},
        **rules._asdict(),
        "budget": rules.budget._asdict(),
        "device": device,
    }
    path = out / SETUP_NAME
    if not path.is_file():
        write_json(path, now | {"baselines": Evaluation(text, rules.rows).baselines(text), "tokens": text.facts})
    setup: dict[str, Any] = json.loads(path.read_text("utf-8"))
    if changes := [f"{key} ({setup[key]}, now {value})" for key, value in now.items() if setup[key] != value]:
        raise BadInput(f"{out} has results of another setup: {'; '.join(changes)}; choose another --out")
    return setup


# --- runs, one after the other


def _run_all(
    chosen: Sequence[Candidate],
    seeds: Sequence[int],
    text: Text,
    rules: Rules,
    setup: dict[str, Any],
    probes: Probes | None,
    out: Path,
) -> list[str]:
    """Run what is missing, seed by seed. Returns messages of failures."""
    _check_names(chosen, _read_results(out), out)
    failures = []
    for seed in seeds:
        for candidate in chosen:
            who, model = f"{candidate.name}, seed {seed}", _folder(out, "models", candidate.name, seed)
            try:
                if _find_result(out, candidate, seed) is None:
                    log.info("%s: %s", who, candidate.command)
                    _store(out, _run_one(candidate, seed, text, rules, setup, model))
                result = _find_result(out, candidate, seed) or {}
                known = result.get("probes", {})
                if probes and not known.keys() >= set(probes.names):
                    log.info("%s: probes", who)
                    folder = _folder(out, "probes", candidate.name, seed)
                    scores = probe(model, probes, folder, seed, rules.precision)
                    _store(out, {**result, "probes": known | scores})
            except LaunchError as error:
                log.warning("%s", error)
                failures.append(str(error))
    return failures


def _run_one(
    candidate: Candidate, seed: int, text: Text, rules: Rules, setup: dict[str, Any], model: Path
) -> dict[str, Any]:
    settings = RunSettings(
        side=candidate.side, config=candidate.seeded(seed), training=text.training, held_out=text.held_out,
        tokenizer=text.tokenizer, budget=rules.budget, points=rules.points, rows=rules.rows, model=model,
    )  # fmt: skip
    who = f"{candidate.name}, seed {seed},"
    figures = run_fresh(run_candidate, settings.model_dump(mode="json"), who)
    log.info(
        "%s loss %.3f, accuracy %.1f %%, %d steps", who, figures["loss"], 100 * figures["accuracy"], figures["steps"]
    )
    identity = {"candidate": candidate.name, "seed": seed, "command": candidate.command, **candidate.identity()}
    shared = {"date": date.today().isoformat(), "device": setup["device"], "precision": rules.precision}
    return identity | shared | figures | {"versions": versions_of(("malmoi", "torch", "transformers"))}


def _check_names(chosen: Sequence[Candidate], results: Sequence[dict[str, Any]], out: Path) -> None:
    """BadInput if the folder has results of a different candidate with the same name."""
    for candidate in chosen:
        identity = json.loads(json.dumps(candidate.identity()))
        for result in results:
            if result["candidate"] == candidate.name and {key: result[key] for key in identity} != identity:
                raise BadInput(
                    f"--candidate {candidate.name}: {out} has results of another candidate of this name "
                    f"({result['command']}); choose another name"
                )


def _folder(out: Path, kind: str, candidate: str, seed: int) -> Path:
    return out / kind / candidate / f"seed-{seed}"


# --- results


def _read_results(out: Path) -> list[dict[str, Any]]:
    return read_lines(out / RESULTS_NAME)


def _find_result(out: Path, candidate: Candidate, seed: int) -> dict[str, Any] | None:
    key = (candidate.name, seed)
    return next((result for result in _read_results(out) if (result["candidate"], result["seed"]) == key), None)


def _store(out: Path, result: dict[str, Any]) -> None:
    """Add a result, or replace the older one of the same candidate and seed."""
    key = ("candidate", "seed")
    with lock_stage(out, LOCK, waits=True):
        others = [other for other in _read_results(out) if any(other[name] != result[name] for name in key)]
        lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in (*others, result))
        atomic_write(out / RESULTS_NAME, "".join(lines))


def _print_tables(
    results: Sequence[dict[str, Any]],
    setup: dict[str, Any],
    baselines: Sequence[str],
    probes: Probes | None,
    out: Path,
) -> None:
    budget = setup["budget"]
    amount = (
        f"{budget['amount'] / 60:g} CPU minutes" if budget["unit"] == "cpu_s" else f"{budget['amount']:g} operations"
    )
    about = (
        f"{amount} on {setup['device']}, one thread, {setup['precision']}; "
        f"{setup['tokens']['training']['tokens']:,} tokens of training text"
    )
    console, pages = PlainConsole(), [about]
    console.print(about, soft_wrap=True)
    tables = leaderboard_tables(results, setup["baselines"], baselines)
    for table in tables + (_probe_comparisons(results, baselines, probes.klue, out) if probes else []):
        print_table(table, console)
        pages.append(f"{markdown_table(table)}\n\n{table.note}".strip())
    by_name = {result["candidate"]: result["command"] for result in results}
    pages.append("\n".join(f"- {name}: `{command}`" for name, command in by_name.items()))
    atomic_write(out / TABLES_NAME, "\n\n".join(pages) + "\n")


def _probe_comparisons(
    results: Sequence[dict[str, Any]], baselines: Sequence[str], klue: Path, out: Path
) -> list[Table]:
    """Compare the probes of each candidate with those of each baseline."""
    folders: dict[str, dict[int, Path]] = {}
    for result in results:
        if "probes" in result:
            name, seed = result["candidate"], result["seed"]
            folders.setdefault(name, {})[seed] = _folder(out, "probes", name, seed)
    return compare_probes(folders, [name for name in baselines if name in folders], klue)
