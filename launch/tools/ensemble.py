"""``malmoi ensemble``: average finished trainings from their saved scores, and print a table of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from launch.console import PlainConsole, Table, markdown_table, print_table, set_up_console
from launch.errors import LaunchError
from launch.tools.package import find_run

if TYPE_CHECKING:
    from finetune.ensemble.members import EnsemblePlan

Result = dict[str, Any]
FIRST = "recipe settings"  # the name of settings that have none
MEMBER, ENSEMBLE, ACROSS = range(3)  # one model's, that of a seed, that over seeds


class Column(NamedTuple):
    """A model or ensemble that has a result for each seed."""

    settings: str
    kind: int
    name: str


NOTE = (
    "Scores are 0 to 100. ±: standard deviation over seeds (n - 1). Gain: ensemble minus the member with the better "
    "mean over these seeds, by the first metric; in brackets the number of seeds in which it is at least as good."
)


def ensemble(
    names: Annotated[list[str], typer.Argument(metavar="RUN…", help="Recipe names, or folders of runs.")],
    task: Annotated[str, typer.Option(help="A name from `malmoi tasks`, or a custom task.")],
    model: Annotated[list[str] | None, typer.Option(help="Member model; repeatable. Default: all models.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            help='Settings to average together, "" for those of the recipe; repeatable. Default: each separately.'
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the ensemble in the results.")] = "ensemble",
    out: Annotated[list[Path] | None, typer.Option(help="Output file for the table, .md; repeatable.")] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Directory of the run folders.")] = Path("runs"),
) -> None:
    """Average the saved scores of fine-tuned models (finetune.keep_scores): for each seed, and over all seeds.

    No model is run. Encoders and tokenizers may differ; task, protocol and scored examples must be equal. Results are
    written to the first run, and its report shows them.

    Example:  malmoi ensemble real-mini --task ner
    """
    set_up_console()
    from finetune.ensemble.members import find_results
    from finetune.ensemble.run import make_ensemble
    from finetune.task_names import full_name

    if odd := [path for path in out or () if path.suffix != ".md"]:
        raise LaunchError(f"{odd[0]}: the table is Markdown; give a name that ends in .md")
    outs = [find_run(run, runs) / "finetune" for run in names]
    own = {folder.name for one in outs for folder in one.iterdir()}
    found = find_results(outs, full_name(task, own), model or ())
    plans = plans_of(found, name, settings)
    made = [make_ensemble(plan, outs[0]) for plan in plans]
    tables = make_tables(plans, made)
    for path in out or ():
        path.write_text("\n\n".join(map(markdown_table, tables)) + "\n", "utf-8")
    for table in tables:
        print_table(table, PlainConsole())


def plans_of(found: Sequence[Any], name: str, settings: Sequence[str] | None) -> list[EnsemblePlan]:
    """The ensembles of results: of each settings apart, or of those named together; ``LaunchError`` for none."""
    from finetune.ensemble.members import plan_ensembles

    there = sorted({one.result["settings"] for one in found})
    if odd := sorted({*(settings or ())} - {*there}):
        raise LaunchError(
            f"{odd[0]!r}: no results of these settings; existing: {', '.join(map(repr, there)) or 'none'}"
        )
    if settings:
        plans = plan_ensembles([one for one in found if one.result["settings"] in settings], name)
    else:
        plans = [
            p for own in there for p in plan_ensembles([o for o in found if o.result["settings"] == own], name, own)
        ]
    if not plans:
        said = "; ".join(f"{o.result['model']}, seed {o.seed}" for o in found[:8]) or "no results"
        raise LaunchError(
            f"{name}: nothing to average ({said}); an ensemble needs two results, of a seed or of a model"
        )
    return plans


def make_tables(plans: Sequence[EnsemblePlan], made: Sequence[Result]) -> list[Table]:
    """A table of all results by seed, and one of the means over seeds."""
    from finetune.saved_models.card import shown_encoder
    from launch.report.results import paper_metrics

    first, metrics = made[0], paper_metrics(made[0])
    several = len({one.out for plan in plans for one in plan.members}) > 1
    given = {one.result["model"] for plan in plans for one in plan.members}
    is_clear = len(set(map(shown_encoder, given))) == len(given)
    names = {name: shown_encoder(name) if is_clear else name for name in given}
    columns: dict[Column, dict[int, Result]] = {}
    for plan, result in zip(plans, made, strict=True):
        for one in plan.members:
            run = f"{one.out.parent.name}: " if several else ""
            own = one.result["settings"]
            who = run + names[one.result["model"]] + (f", {own or FIRST}" if own != plan.settings else "")
            columns.setdefault(Column(plan.settings, MEMBER, who), {})[one.seed] = one.result
        kind = ACROSS if len({one.seed for one in plan.members}) > 1 else ENSEMBLE
        columns.setdefault(Column(plan.settings, kind, plan.name), {})[plan.seed] = result
    title = f"{first['task']}, protocol {first['protocol']}, {first['n']:,} examples of {first['split']}"
    return [_each(columns, metrics, title), _means(columns, metrics, first["headline"])]


def _each(columns: Mapping[Column, Mapping[int, Result]], metrics: Sequence[str], title: str) -> Table:
    cells = []
    for column, by_seed in columns.items():
        for seed, found in by_seed.items():
            seeds = sorted({member["seed"] for member in found.get("members", ())} or {seed})
            shown = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seed)
            values = [_number(found["scores"][metric]) for metric in metrics]
            order = (column.settings, column.kind == ACROSS, seed, column)
            cells.append((order, [column.settings or FIRST, shown, column.name, *values, _status(found)]))
    heads = ["settings", "seed", "model", *metrics, "status"]
    return Table(heads, [row for _, row in sorted(cells)], range(3, 3 + len(metrics)), title=title)


def _status(found: Result) -> str:
    """How many members or weights were averaged, or which weights were scored."""
    from launch.report.results import weights_of

    if "members" in found:
        return f"{len(found['members'])} members"
    averaged = found.get("averaged")
    return f"{found['hyperparameters']['average']} of {averaged}" if averaged else weights_of(found)


def _means(columns: Mapping[Column, Mapping[int, Result]], metrics: Sequence[str], headline: str) -> Table:
    rows = []
    for column, by_seed in sorted(columns.items()):
        values = [_spread([found["scores"][metric] for found in by_seed.values()]) for metric in metrics]
        members = [of for c, of in columns.items() if (c.settings, c.kind) == (column.settings, MEMBER)]
        gain = "" if column.kind == MEMBER else _gain(by_seed, members, headline, column.kind == ACROSS)
        seeds = {m["seed"] for found in by_seed.values() for m in found.get("members", ())} or by_seed.keys()
        rows.append([column.settings or FIRST, column.name, str(len(seeds)), *values, gain])
    heads = ["settings", "model", "seeds", *metrics, "gain"]
    return Table(heads, rows, range(2, 4 + len(metrics)), title="Mean over the seeds", note=NOTE)


def _gain(
    own: Mapping[int, Result], members: Sequence[Mapping[int, Result]], headline: str, is_across: bool
) -> str:  # fmt: skip
    """Points above the member with the better mean, by seed, or over all seeds."""
    values = {seed: found["scores"][headline] for seed, found in own.items()}
    others = [{seed: found["scores"][headline] for seed, found in of.items()} for of in members]
    if None in [*values.values(), *(value for of in others for value in of.values())]:
        return "undefined"
    better = max(others, key=lambda of: fmean(of.values()))
    if is_across:
        return f"{next(iter(values.values())) - fmean(better.values()):+.2f}"
    gains = [value - better[seed] for seed, value in values.items()]
    return f"{_spread(gains, '+.2f')} ({sum(gain >= 0 for gain in gains)} of {len(gains)})"


def _spread(values: Sequence[float | None], form: str = ".2f") -> str:
    """``89.51 ± 0.19``; a single value has no deviation."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "undefined"
    return format(fmean(known), form) + (f" ± {stdev(known):.2f}" if len(known) > 1 else "")


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
