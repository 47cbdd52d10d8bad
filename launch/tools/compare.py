"""``malmoi compare`` and ``malmoi ensemble``: test the differences between trained models, or average them.

Both read saved results. No model is run, and torch is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finetune.task_names import full_name
from launch.console import PlainConsole, print_json, print_table
from launch.errors import LaunchError
from launch.numbers import group_by
from launch.tools.score import find_run

if TYPE_CHECKING:
    from finetune.score.compare import Pair, Tested, Trained


def compare_results(
    run: Annotated[str, typer.Argument(help="Run, folder of results, or predictions.jsonl (with --task).")],
    other: Annotated[str | None, typer.Argument(help="Second run. Default: compare the models of RUN.")] = None,
    a: Annotated[str | None, typer.Option("--a", help="First one: model, settings, or 'model, settings'.")] = None,
    b: Annotated[str | None, typer.Option("--b", help="Second one: model, settings, or 'model, settings'.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeatable.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the KLUE files; KLUE-MRC needs it to group questions by passage.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all results as JSON.")] = False,
    runs: Annotated[Path, typer.Option("--runs", help="Directory of the run folders.")] = Path("runs"),
) -> None:
    """Test which score differences between two models are significant.

    The test covers seeds and examples. Scores are means over seeds. Within one run, every other model is compared with
    the first. Does not need torch.

    Example:  malmoi compare smoke --b klue/roberta-base
    """
    from finetune.score.compare import compare, pair_up
    from launch.report.differences import FILES_OF_SAMPLE, table_of

    first = _find(run, runs, task or ())
    second = None if other is None else _find(other, runs, task or ())
    pairs = pair_up(first, second, a, b)
    embedded = (folder / FILES_OF_SAMPLE for name in (run, other) if name for folder in (runs / name, Path(name)))
    tested = compare(pairs, data or next(filter(Path.is_dir, embedded), None))
    notes = _notes_on(pairs, tested)
    if as_json:
        return print_json({"notes": notes, "tests": [test.as_json() for test in tested]})
    for note in notes:
        PlainConsole().print(f"NOTE: {note}", soft_wrap=True)
    for names in dict.fromkeys(test.names for test in tested):
        chosen = [test for test in tested if test.names == names]
        places = zip(names, (run, other or run), strict=True)
        one, another = (name if name == place else f"{name} of {place}" for name, place in places)
        print_table(table_of(chosen, f"a: {one}, b: {another}"))


def _notes_on(pairs: Sequence[Pair], tested: Sequence[Tested]) -> list[str]:
    """What makes comparisons unfair or intervals too narrow."""
    notes = [
        f"{task}, {name}: selected by its score on the scored examples, so its score is too high and this comparison "
        "favours it"
        for task, name in dict.fromkeys((one.task, one.name) for pair in pairs for one in pair if one.is_selected)
    ]
    klue = {one.task for pair in pairs for one in pair if not one.first.get("own")}  # embeddings have no groups
    if "klue-mrc" in klue and any(test.task == "klue-mrc" and test.groups == test.n for test in tested):
        notes.append("klue-mrc: questions are resampled one by one; add --data FOLDER to group them by passage")
    return notes


def _find(name: str, runs: Path, tasks: Sequence[str]) -> list[Trained]:
    from finetune.score.compare import find_trained, trained_of_file

    place = next((place for place in (runs / name, Path(name)) if place.exists()), runs / name)
    if place.is_file():
        if len(tasks) != 1:
            raise LaunchError(f"{place}: predictions do not name their task; add --task, for example --task klue-ner")
        return [trained_of_file(place, tasks[0])]
    if not place.is_dir():
        raise LaunchError(f"{name}: no such run, folder or file (also not {place}); give a run that was fine-tuned")
    trained = find_trained(place)
    known = {one.task for one in trained}
    wanted = {full_name(name, known) for name in tasks} or known
    if not wanted & known:
        raise LaunchError(f"{place}: no results of {', '.join(sorted(wanted))}")
    return [one for one in trained if one.task in wanted]


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
    from finetune.ensemble.run import find_results, make_ensemble, plan_ensembles
    from launch.report.results import Results
    from launch.report.scores import main_table, printed_table

    outs = [find_run(run, runs) / "finetune" for run in names]
    custom_tasks = {folder.name for out in outs for folder in out.iterdir()}
    members = find_results(outs, full_name(task, custom_tasks), model or ())
    by_settings = sorted(group_by(members, lambda m: str(m.result["settings"])).items())
    plans = [plan for settings, alike in by_settings for plan in plan_ensembles(alike, name, settings)]
    if not plans:
        results = "; ".join(f"{m.result['model']}, seed {m.seed}" for m in members[:8]) or "no results"
        raise LaunchError(f"{name}: nothing to average (found: {results}); an ensemble needs two models or seeds")
    folders = [f"{m.out.parent.name}: " if len(outs) > 1 else "" for m in members]
    scores = [{**m.result, "model": name + m.result["model"]} for name, m in zip(folders, members, strict=True)]
    scores += [make_ensemble(plan, outs[0]) for plan in plans]
    for table in (printed_table(scores), main_table(Results(scores))):
        print_table(table)
