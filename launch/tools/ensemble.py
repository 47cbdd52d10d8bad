"""``malmoi ensemble``: average finished trainings from saved scores, as ``finetune.ensembles`` does in a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launch.console import PlainConsole, print_table, set_up_console
from launch.errors import LaunchError
from launch.tools.package import find_run


def ensemble(
    names: Annotated[list[str], typer.Argument(metavar="RUN…", help="Recipe names, or folders of runs.")],
    task: Annotated[str, typer.Option(help="A name from `malmoi tasks`, or a custom task.")],
    model: Annotated[list[str] | None, typer.Option(help="Member model; repeatable. Default: all models.")] = None,
    name: Annotated[str, typer.Option(help="Name of the ensemble in the results.")] = "ensemble",
    runs: Annotated[Path, typer.Option("--runs", help="Directory of the run folders.")] = Path("runs"),
) -> None:
    """Average the saved scores of fine-tuned models (finetune.keep_scores): for each seed, and over all seeds.

    No model is run. Encoders and tokenizers may differ; task, protocol and scored examples must be equal. Settings are
    averaged separately. Results are written to the first run, and its report shows them.

    Example:  malmoi ensemble real-mini --task ner
    """
    set_up_console()
    from finetune.ensemble.members import find_results, plan_ensembles
    from finetune.ensemble.run import make_ensemble
    from finetune.task_names import full_name
    from launch.report.results import Results
    from launch.report.scores import main_table, printed_table

    outs = [find_run(run, runs) / "finetune" for run in names]
    custom_tasks = {folder.name for out in outs for folder in out.iterdir()}
    members = find_results(outs, full_name(task, custom_tasks), model or ())
    by_settings = {settings: [m for m in members if m.result["settings"] == settings]
                   for settings in sorted({m.result["settings"] for m in members})}  # fmt: skip
    plans = [plan for settings, alike in by_settings.items() for plan in plan_ensembles(alike, name, settings)]
    if not plans:
        results = "; ".join(f"{m.result['model']}, seed {m.seed}" for m in members[:8]) or "no results"
        raise LaunchError(
            f"{name}: nothing to average ({results}); an ensemble needs two results, of a seed or of a model"
        )
    scores = [
        {**m.result, "model": f"{m.out.parent.name}: {m.result['model']}" if len(outs) > 1 else m.result["model"]}
        for m in members
    ]
    scores += [make_ensemble(plan, outs[0]) for plan in plans]
    for table in (printed_table(scores), main_table(Results(scores))):
        print_table(table, PlainConsole())
