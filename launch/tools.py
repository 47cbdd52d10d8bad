"""Single tools of the command line: tokenizer statistics, scores of a file, exports."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import typer

from corpus.escaping import visible
from launch.console import PlainConsole
from launch.errors import LaunchError


def print_tokenizer_statistics(
    tokenizers: list[Path], texts: list[Path], golds: list[Path], outputs: list[Path]
) -> None:
    """Print the figures of tokenizers over the given files side by side, and write them to ``outputs``."""
    from launch.tokenizer_tables import compare_tokenizers, print_comparison

    print_comparison(compare_tokenizers(tokenizers, _texts(texts), golds, outputs), PlainConsole())


def _texts(files: list[Path]) -> Iterator[str]:
    from corpus.reading.inputs import find_inputs
    from corpus.reading.read import Reject, read_unit
    from corpus.reading.units import plan_units

    for unit in plan_units(find_inputs([str(file) for file in files], {}, "text"), whole_files=True):
        for found in read_unit(unit, Counter()):
            if isinstance(found, Reject):
                raise LaunchError(f"{unit.input.path}, line {found.line}: {found.reason}; mend or remove the line")
            yield found.text


def print_scores(
    task: str, gold: Path | None, predictions: Path, samples: int, with_tables: bool, target: Path | None
) -> None:
    """Print the metrics of a predictions file with their intervals, as columns parted by tabs."""
    from finetune.score.scores import score_file

    found = score_file(task, predictions, gold, samples)
    typer.echo("metric\tvalue\tlower_95\tupper_95\tn")
    for metric, value in found.scores.items():
        lower, upper = found.intervals[metric] or ("-", "-")
        typer.echo("\t".join(map(_figure, (metric, value, lower, upper, found.n))))
    for title, rows in found.tables.items() if with_tables else ():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        typer.echo("\n" + title + "\n" + "\t".join(columns))
        for row in rows:
            typer.echo("\t".join(_figure(row.get(column, "")) for column in columns))
    if target is not None:
        record = {"task": task, "predictions": predictions.name, **found.as_json()}
        target.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if math.isfinite(value) else "undefined"
    return visible(str(value))


def export_task_predictions(task: str, source: Path, predictions: Path, output: Path) -> None:
    """Write predictions in the layout of an official file and say how many."""
    from finetune.score.predictions import export_predictions

    typer.echo(f"{output}: {export_predictions(task, source, predictions, output):,} predictions")


def write_task_features(
    task: str, file: Path, tokenizer: str, output: Path, protocol: str, max_tokens: int | None
) -> None:
    """Write the records of ``malmoi finetune features`` and say how many."""
    from finetune.config import PROTOCOLS
    from finetune.features import write_features

    if protocol not in PROTOCOLS:
        raise LaunchError(f"--protocol {protocol}: no such protocol; there are {', '.join(PROTOCOLS)}")
    written = write_features(task, file, tokenizer, output, cast(Any, protocol), max_tokens)
    typer.echo(f"{output}: {written:,} records")
