"""Scores of predictions, and files of the KLUE tasks: ``malmoi score``, ``finetune export``, ``model export``.

Heavy imports wait until a command runs.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corpus.documents.escaping import escape_controls
from finetune.task_names import SHORT_NAMES
from launch.console import print_json
from launch.errors import LaunchError

if TYPE_CHECKING:
    from finetune.score.scores import Scored

model_app = typer.Typer(no_args_is_help=True, help="Export a fine-tuned model.")


TaskName = Annotated[str, typer.Argument(help="A name from `malmoi tasks`, such as klue-ner or ner.")]


def score_predictions(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK|RUN", help="A name from `malmoi tasks`, or a run, whose results are all scored again."
        ),
    ],
    gold: Annotated[
        Path | None,
        typer.Argument(help="Official file of the task, plain or .zst. Not needed if PREDICTIONS has gold labels."),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Argument(
            help="JSON lines with guid, prediction (KLUE-RE: scores), or one JSON object guid to prediction."
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Bootstrap resamples for the intervals. 0: no intervals.")] = 200,
    tables: Annotated[bool, typer.Option("--tables", help="Also print scores by class or question type.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all results as JSON.")] = False,
) -> None:
    """Score predictions with the metrics of the KLUE paper and 95 % intervals. Does not need torch.

    A predictions.jsonl of malmoi includes the gold labels, so it needs no GOLD file. `malmoi score RUN` recomputes the
    scores of all results of a run from their predictions, and reports differences with exit code 1.

    Example:  malmoi score klue-nli klue-nli-v1.1_dev.json mine.jsonl --tables
    """
    from finetune.registry import find_task
    from finetune.score.scores import score_file

    if gold is None and task in (*SHORT_NAMES, *SHORT_NAMES.values()):
        raise LaunchError(f"score {task}: no predictions; give a predictions file, or an official file and predictions")
    if gold is None:
        return _score_run(find_run(task), as_json)
    file = predictions or gold
    scored = score_file(task, file, gold if predictions else None, samples)
    if as_json:
        return print_json({"task": find_task(task).name, "predictions": file.name, **scored.as_json()})
    _print_scores(scored, tables)


def find_run(name: str, runs: Path = Path("runs")) -> Path:
    """The folder with ``finetune/``: ``name`` itself, or the run of this name in ``runs``."""
    for candidate in (runs / name, Path(name)):
        if (candidate / "finetune").is_dir():
            return candidate
    raise LaunchError(f"{name}: no finetune folder here or in {runs / name}; give a run that was fine-tuned")


def _score_run(run: Path, as_json: bool) -> None:
    """Score every result of a run again and compare with its ``scores.json``; exit code 1 if any differs."""
    from finetune.queue.jobs import PREDICTIONS_NAME
    from finetune.registry import find_task
    from finetune.score.scores import defined, read_rows
    from launch.report.results import name_of, read_scores

    results, scores, same = read_scores(run), [], 0
    for result in results:
        folder = Path(result["folder"]).absolute()
        task = find_task(str(folder)).with_protocol(result["protocol"])
        rows = read_rows(folder / PREDICTIONS_NAME, task)
        now = {"n": len(rows), **defined(task.score(rows))}
        before = {"n": result["n"], **result["scores"]}
        lines = [", ".join(f"{key} {_cell(value)}" for key, value in now.items())]
        differing = [key for key in before | now if now.get(key) != before.get(key)]
        lines += [f"{key} is {now.get(key)}, but {before.get(key)} in scores.json" for key in differing]
        for line in () if as_json else lines:
            typer.echo(escape_controls(f"{result['task']}, {name_of(result)}, seed {result['seed']}: {line}"))
        same += not differing
        about = {key: result[key] for key in ("task", "model", "settings", "seed")}
        scores.append({**about, "scores": now, "recorded": before, "differing": differing})
    if as_json:
        print_json({"run": str(run), "same": same, "results": scores})
    else:
        typer.echo(f"{same} of {len(results)} results are the same to the last digit")
    if same < len(results) or not results:
        raise typer.Exit(1)


def _print_scores(scored: Scored, tables: bool) -> None:
    typer.echo("metric\tvalue\tlower_95\tupper_95\tn")
    for metric, value in scored.scores.items():
        lower, upper = scored.intervals[metric] or ("-", "-")
        typer.echo("\t".join(map(_cell, (metric, value, lower, upper, scored.n))))
    for title, rows in scored.tables.items() if tables else ():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        typer.echo("\n" + title + "\n" + "\t".join(columns))
        for row in rows:
            typer.echo("\t".join(_cell(row.get(column, "")) for column in columns))


def _cell(value: Any) -> str:
    if value is None or isinstance(value, float):
        return f"{value:.4f}" if value is not None and math.isfinite(value) else "undefined"
    return escape_controls(str(value))


def export_task_predictions(
    task: TaskName,
    official: Annotated[Path, typer.Argument(help="Official file of the task, with or without labels.")],
    predictions: Annotated[Path, typer.Argument(help="JSON lines with guid and prediction, or one JSON object.")],
    output: Annotated[Path, typer.Argument(help="Output: the official file with predictions in place of labels.")],
) -> None:
    """Write predictions in the format of an official file, such as a test file. Every example needs a prediction.

    Example:  malmoi finetune export ynat ynat-v1.1_test.json predictions.jsonl ynat-predicted.json
    """
    from finetune.score.scores import export_predictions

    typer.echo(f"{output}: {export_predictions(task, official, predictions, output):,} predictions")


@model_app.command("export")
def export_model(
    folder: Annotated[
        str, typer.Argument(help="Model that labels texts or tokens, encoder, or embedding model: folder or Hub name.")
    ],
    out: Annotated[Path, typer.Argument(help="New folder for model.onnx, configuration, tokenizer and card.")],
    int8: Annotated[
        Literal["no", "dynamic", "weights"],
        typer.Option(help="8-bit weights; dynamic: also 8-bit matrix products, faster on a processor."),
    ] = "no",
    dev: Annotated[
        Path | None, typer.Option(help="Labelled file of the task: scores and speeds of all forms go to the card.")
    ] = None,
) -> None:
    """Export an encoder, an embedding model, or a fine-tuned model of YNAT, STS, NLI, NER or RE, as ONNX and check
    that its outputs are the same. `malmoi predict` and `malmoi serve` take the folder.

    Example:  malmoi model export runs/smoke/finetune/ynat/model/seed-1/model topics-onnx --int8 dynamic
    """
    if (Path(folder) / "modules.json").is_file():
        from finetune.embed.embedder import export_embedder as export
    else:
        from finetune.inference.onnx_export import export_onnx as export

    difference = export(folder, out, int8, dev)
    typer.echo(f"{out}: outputs differ by {difference:.1e} at most{'' if int8 == 'no' else ', before INT8'}")
