"""``malmoi pii …``: what each command takes. Heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

pii_app = typer.Typer(no_args_is_help=True, help="Find or hide personal data in text, JSON, tables and Parquet.")

Source = Annotated[
    str, typer.Argument(metavar="INPUT", help="File, folder, 'glob*', or -. Text, JSON, CSV, TSV, Parquet; .gz …")
]
FieldNames = Annotated[str | None, typer.Option(help="Keys or columns, by commas: body,author.name. Default: text.")]
AllFields = Annotated[bool, typer.Option("--all-fields", help="Every string at any depth; keys stay.")]
Types = Annotated[str | None, typer.Option(help="Only these types, by commas: TEL,PERSON. Default: Table 29.")]
Names = Annotated[Path | None, typer.Option(metavar="FOLDER", help="KLUE-NER model that also finds names of people.")]
NamesThreshold = Annotated[float, typer.Option(help="Probability that one token of a name reaches, 0 to 1.")]
NamesDevice = Annotated[str, typer.Option(help="Where the model runs: auto, or cpu.")]
Format = Annotated[str, typer.Option("--format", help="auto, text, jsonl, json, csv, tsv, parquet.")]
Encoding = Annotated[str, typer.Option(help="auto (UTF-8, CP949, UTF-16 with a mark), or a name. Output: UTF-8.")]
OnError = Annotated[str, typer.Option(help="Records that cannot be read: stop, or skip (left out, set aside).")]
Skipped = Annotated[Path | None, typer.Option(help="Where they are set aside. Default: OUTPUT.skipped.jsonl.")]


@pii_app.command("detect")
def pii_detect(
    source: Source,
    target: Annotated[str, typer.Argument(metavar="OUTPUT", help="A .jsonl file, a folder, or -.")] = "-",
    fields: FieldNames = None,
    all_fields: AllFields = False,
    types: Types = None,
    names: Names = None,
    names_threshold: NamesThreshold = 0.5,
    names_device: NamesDevice = "auto",
    explain: Annotated[bool, typer.Option("--explain", help="Spans as objects, with score and reasons.")] = False,
    format_: Format = "auto",
    encoding: Encoding = "auto",
    on_error: OnError = "stop",
    skipped: Skipped = None,
) -> None:
    r"""Find personal data: each line or record out has its spans as \[start, end, TYPE].

    Example:  echo '문의 010-0123-4567' | malmoi pii detect -
    """
    from launch.pii.run import process, read_choices
    from launch.pii.work import Finding, read_name_model, read_types

    choices = read_choices(fields, all_fields, format_, encoding, on_error, skipped)
    name_model = read_name_model(names, names_threshold, names_device)
    process(source, target, Finding(read_types(types), explain, name_model), choices)


@pii_app.command("replace")
def pii_replace(
    source: Source,
    target: Annotated[str, typer.Argument(metavar="OUTPUT", help="A file of the same kind, a folder, or -.")] = "-",
    mode: Annotated[
        str, typer.Option(help="replace, mask (***-****), tag ([TEL]) or drop (the sentence).")
    ] = "replace",
    fields: FieldNames = None,
    all_fields: AllFields = False,
    types: Types = None,
    names: Names = None,
    names_threshold: NamesThreshold = 0.5,
    names_device: NamesDevice = "auto",
    seed: Annotated[
        int | None, typer.Option(help="Repeatable, so anyone who knows the number can test guesses. Default: random.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option(help="Secret: a value maps alike in all records.")] = None,
    key_variable: Annotated[str | None, typer.Option(help="The same, in this environment variable.")] = None,
    format_: Format = "auto",
    encoding: Encoding = "auto",
    on_error: OnError = "stop",
    skipped: Skipped = None,
) -> None:
    """Replace personal data by invented values of the same type and format, or hide it otherwise.

    All else stays as it is. Records with the same "id" are one document, in which a value maps alike.

    Example:  malmoi pii replace letters.csv letters.safe.csv
    """
    from launch.pii.run import process, read_choices
    from launch.pii.work import Hiding, read_name_model, read_protection, read_types

    choices = read_choices(fields, all_fields, format_, encoding, on_error, skipped)
    name_model = read_name_model(names, names_threshold, names_device)
    protection = read_protection(mode, seed, key_file, key_variable, read_types(types), name_model)
    process(source, target, Hiding(protection), choices)
