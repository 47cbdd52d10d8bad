"""Single tools of the command line: statistics, scores, exports, uploads. Heavy imports wait until one runs."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from corpus.documents.escaping import escape_controls
from launch.console import PlainConsole, print_table, set_up_console
from launch.errors import LaunchError


def _task_names() -> list[str]:
    from finetune.task_names import TASK_NAMES

    return list(TASK_NAMES)


TaskName = Annotated[
    str, typer.Argument(help="As `malmoi tasks` lists them: ynat, klue-ner or ner …", autocompletion=_task_names)
]
RepositoryName = Annotated[str, typer.Argument(metavar="NAME/REPOSITORY", help="Where to, on the Hugging Face Hub.")]
Private = Annotated[bool, typer.Option("--private", help="Hide the repository.")]
Revision = Annotated[str | None, typer.Option(help="Branch; made where there is none.")]


def measure_tokenizers(
    tokenizer: Annotated[Path, typer.Argument(help="Tokenizer folder or vocab.txt.")],
    texts: Annotated[list[Path], typer.Argument(help="Text or .jsonl files, .gz and .zst allowed.")],
    others: Annotated[list[Path] | None, typer.Option("--with", help="Another one, side by side; repeatable.")] = None,
    gold: Annotated[
        list[Path] | None, typer.Option(help="KLUE-DP or CoNLL-U file: boundaries that people set; repeatable.")
    ] = None,
    out: Annotated[list[Path] | None, typer.Option(help="Write .md, .json or .png (.svg, .pdf); repeatable.")] = None,
) -> None:
    """Measure tokenizers on each text and on all: paper Table 35, unknown words, morpheme boundaries, 95 % intervals.

    Example:  malmoi tokenizer stats runs/smoke/tokenizer news.txt --with klue/vocab.txt --out compared.md
    """
    set_up_console()
    from launch.tools.tokenizer_tables import compare_tokenizers, print_comparison
    from tokenizer.measuring.compare import name_files

    named = {name: _texts(file) for name, file in zip(name_files(texts, "text"), texts, strict=True)}
    comparison = compare_tokenizers([tokenizer, *(others or [])], named, gold or [], out or [])
    print_comparison(comparison, PlainConsole())


def extend_tokenizer(
    base: Annotated[Path, typer.Argument(help="Tokenizer or model folder, vocab.txt, or a name on the Hub.")],
    texts: Annotated[list[Path], typer.Argument(help="Text or .jsonl files, or the corpus folder of a run.")],
    out: Annotated[Path, typer.Option(help="A folder to be made.")],
    pieces: Annotated[int, typer.Option(min=1, help="New pieces.")] = 1000,
    multiple: Annotated[int, typer.Option(min=1, help="Add more until the size is a multiple of this.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Add pieces of a domain to a WordPiece vocabulary, after its last id; old ids stay, and so does all other text.

    For continued pretraining (`malmoi run continued tokenizer.extend=1000` does both); a model that is not trained
    further does not know the new pieces.

    Example:  malmoi tokenizer extend klue/bert-base contracts/*.txt --pieces 768 --out contracts-tokenizer
    """
    set_up_console()
    from launch.report.stages import extension_tables
    from launch.tools.extension import corpus_folder, extend_in

    folder = corpus_folder(texts)
    found = extend_in(out, base, folder or chain.from_iterable(map(_texts, texts)), pieces, multiple, workers)
    console = PlainConsole()
    for table in extension_tables(found):
        print_table(table, console)


def _texts(file: Path) -> Iterator[str]:
    from corpus.reading.inputs import find_inputs
    from corpus.reading.read import Reject, read_unit
    from corpus.reading.units import plan_units

    for unit in plan_units(find_inputs([str(file)], {}, "text"), whole_files=True):
        for found in read_unit(unit, Counter()):
            if isinstance(found, Reject):
                raise LaunchError(f"{unit.input.path}, line {found.line}: {found.reason}; mend or remove the line")
            yield found.text


def score_predictions(
    task: TaskName,
    gold: Annotated[
        Path | None, typer.Argument(help="Official file of the task, plain or .zst; leave it out for our own.")
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Argument(help="JSON lines with guid, prediction (KLUE-RE: scores), or one JSON map guid to prediction."),
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Resamples behind the intervals; 0: none.")] = 200,
    tables: Annotated[bool, typer.Option("--tables", help="Print figures by class or question type too.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write everything to this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Of an archive in place of TASK: folder of the KLUE files.")] = None,
    official: Annotated[Path | None, typer.Option(help="Of an archive: write official files with predictions.")] = None,
) -> None:
    """Score anybody's predictions with the metrics of the KLUE paper, with 95 % intervals; needs no torch.

    A predictions.jsonl of this project holds its golds, so it may stand alone. An archive of `malmoi package` is scored
    as a whole, and what differs from the scores in it is said.

    Example:  malmoi score klue-nli klue-nli-v1.1_dev.json mine.jsonl --tables
    """
    from finetune.registry import find_task
    from finetune.score.scores import score_file

    if task.endswith(".zip"):
        from launch.tools.archive import tell_archive

        return tell_archive(Path(task), data or gold, samples, official, json_file)
    if gold is None:
        raise LaunchError(f"score {task}: which predictions? Give a file, or an official file and predictions")
    theirs = predictions or gold
    found = score_file(task, theirs, gold if predictions else None, samples)
    typer.echo("metric\tvalue\tlower_95\tupper_95\tn")
    for metric, value in found.scores.items():
        lower, upper = found.intervals[metric] or ("-", "-")
        typer.echo("\t".join(map(_figure, (metric, value, lower, upper, found.n))))
    for title, rows in found.tables.items() if tables else ():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        typer.echo("\n" + title + "\n" + "\t".join(columns))
        for row in rows:
            typer.echo("\t".join(_figure(row.get(column, "")) for column in columns))
    if json_file is not None:
        record = {"task": find_task(task).name, "predictions": theirs.name, **found.as_json()}
        json_file.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if math.isfinite(value) else "undefined"
    return escape_controls(str(value))


def write_task_features(
    task: TaskName,
    file: Annotated[Path, typer.Argument(help="An official file of the task, plain or .zst.")],
    tokenizer: Annotated[str, typer.Argument(help="Tokenizer folder, Hub name or vocab.txt.")],
    output: Annotated[Path, typer.Argument(help="A .jsonl file.")],
    protocol: Annotated[Literal["malmoi", "klue-baseline"], typer.Option(help="Whose rules.")] = "malmoi",
    max_tokens: Annotated[int | None, typer.Option(min=16, help="Longest input. Default: the published one.")] = None,
) -> None:
    """Write what a model sees of each example, and what it is to learn, as one JSON line.

    Example:  malmoi finetune features klue-ner klue-ner-v1.1_dev.tsv klue/bert-base ner.jsonl --protocol klue-baseline
    """
    set_up_console()
    from finetune.features import write_features

    written = write_features(task, file, tokenizer, output, protocol, max_tokens)
    typer.echo(f"{output}: {written:,} records")


def export_task_predictions(
    task: TaskName,
    official: Annotated[Path, typer.Argument(help="An official file of the task, with or without labels.")],
    predictions: Annotated[Path, typer.Argument(help="JSON lines with guid and prediction, or one JSON map.")],
    output: Annotated[Path, typer.Argument(help="The official file again, predictions in place of labels.")],
) -> None:
    """Write predictions in the layout of an official file, such as a test file; every example needs one.

    Example:  malmoi finetune export ynat ynat-v1.1_test.json predictions.jsonl ynat-predicted.json
    """
    set_up_console()
    from finetune.score.predictions import export_predictions

    typer.echo(f"{output}: {export_predictions(task, official, predictions, output):,} predictions")


def push_corpus(
    corpus: Annotated[str, typer.Argument(help="A recipe that was run, a run's folder, or its corpus folder.")],
    repository: RepositoryName,
    private: Private = False,
    revision: Revision = None,
    runs: Annotated[Path, typer.Option("--runs", help="Folder that holds the run folders.")] = Path("runs"),
    with_personal_data: Annotated[
        bool, typer.Option("--with-personal-data", help="Publish a corpus in which personal data was kept.")
    ] = False,
) -> None:
    """Check a finished corpus and publish it as a data set: documents, card and counts, no samples.

    `hf auth login` or HF_TOKEN gives access.

    Example:  malmoi corpus push smoke my-team/korean-text --private
    """
    set_up_console()
    from launch.tools.hub import corpus_repository, push

    found = corpus_repository(corpus, runs, with_personal_data=with_personal_data)
    typer.echo(push(found, repository, private=private, revision=revision))


def push_tokenizer(
    folder: Annotated[Path, typer.Argument(help="Tokenizer folder, such as runs/smoke/tokenizer.")],
    repository: RepositoryName,
    private: Private = False,
    revision: Revision = None,
) -> None:
    """Check a tokenizer and publish it on the Hugging Face Hub; `hf auth login` or HF_TOKEN gives access.

    Example:  malmoi tokenizer push runs/smoke/tokenizer my-team/korean-wordpiece --private
    """
    set_up_console()
    from launch.tools.hub import push, tokenizer_repository

    typer.echo(push(tokenizer_repository(folder), repository, private=private, revision=revision))
