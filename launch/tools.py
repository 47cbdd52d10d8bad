"""Single tools of the command line: personal data in a stream of records, tokenizer statistics, scores of a file."""

from __future__ import annotations

import json
import math
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, TextIO, cast

import typer
from rich.console import Console

from launch.errors import LaunchError

Record = dict[str, Any]


def detect_personal_data(source: str, target: str) -> None:
    """Write one JSON line per record: the record, and its spans as [start, end, TYPE] over the NFC text."""
    from corpus.pii.detect import detect_records

    _stream(source, target, detect_records)


def replace_personal_data(
    source: str, target: str, seed: int, mode: str, key_file: Path | None, key_variable: str | None
) -> None:
    """Write every record with its personal data hidden, in the kind of the input (text lines or JSON lines)."""
    from corpus.pii.key import read_key, seeded_secret
    from corpus.pii.protect import MODES, Mode, Protection, replace_records

    if mode not in MODES:
        raise LaunchError(f"--mode {mode}: no such mode; there are {', '.join(MODES)}")
    protection = Protection(cast(Mode, mode), seeded_secret(seed), read_key(key_file, key_variable))
    _stream(source, target, partial(replace_records, protection=protection))


def print_tokenizer_statistics(
    tokenizers: list[Path], texts: list[Path], golds: list[Path], outputs: list[Path]
) -> None:
    """Print the figures of tokenizers over the given files side by side, and write them to ``outputs``."""
    from launch.tokenizer_tables import compare_tokenizers, print_comparison

    print_comparison(compare_tokenizers(tokenizers, _texts(texts), golds, outputs), Console())


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
    from finetune.score import score_file

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
    return str(value)


def export_task_predictions(task: str, source: Path, predictions: Path, output: Path) -> None:
    """Write predictions in the layout of an official file and say how many."""
    from finetune.export import export_predictions

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


def _stream(source: str, target: str, work: Callable[[Iterable[Record]], Iterable[Record]]) -> None:
    with _lines_in(source) as lines, _lines_out(target) as out:
        is_json = _holds_json(source, lines)
        for record in work(_records(lines, source, is_json)):
            keeps_text = not is_json and set(record) == {"text"}
            out.write((record["text"] if keeps_text else json.dumps(record, ensure_ascii=False)) + "\n")


def _holds_json(source: str, lines: BufferedReader) -> bool:
    """Files tell by their name, standard input by its first character."""
    return lines.peek(1)[:1] == b"{" if source == "-" else source.endswith((".jsonl", ".json"))


def _records(lines: Iterable[bytes], source: str, is_json: bool) -> Iterator[Record]:
    for number, raw in enumerate(lines, 1):
        where = f"{'standard input' if source == '-' else source}, line {number}"
        try:
            line = raw.decode("utf-8").rstrip("\r\n")
            record = json.loads(line) if is_json else {"text": line}
        except UnicodeDecodeError:
            raise LaunchError(f"{where}: not UTF-8; convert the file first") from None
        except ValueError as error:
            raise LaunchError(f"{where}: not JSON ({error}); a .jsonl file holds one object a line") from None
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            raise LaunchError(f'{where}: expected an object with a string under "text"')
        yield record | {"text": unicodedata.normalize("NFC", record["text"])}


@contextmanager
def _lines_in(source: str) -> Iterator[BufferedReader]:
    if source == "-":
        yield cast(BufferedReader, sys.stdin.buffer)
    else:
        with Path(source).open("rb") as file:
            yield file


@contextmanager
def _lines_out(target: str) -> Iterator[TextIO]:
    """Standard output, or a file that appears under its name only when it is whole."""
    if target == "-":
        yield sys.stdout
        return
    path = Path(target)
    temporary = path.with_name(path.name + ".partial")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
