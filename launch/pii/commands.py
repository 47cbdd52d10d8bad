"""The commands ``malmoi pii detect`` and ``malmoi pii replace``; heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

pii_app = typer.Typer(no_args_is_help=True, help="Find or hide personal data in text, JSON, tables and Parquet.")

Source = Annotated[
    str,
    typer.Argument(metavar="INPUT", help="File, folder, glob, or - (text, JSON, CSV, TSV, Parquet; also compressed)."),
]
FieldNames = Annotated[
    str | None, typer.Option(help="Keys or columns to process, comma-separated: body,author.name. Default: text.")
]
AllFields = Annotated[bool, typer.Option("--all-fields", help="Process every string at any depth; keys are kept.")]
Types = Annotated[str | None, typer.Option(help="Types to find, comma-separated: TEL,PERSON. Default: Table 29.")]
Names = Annotated[Path | None, typer.Option(metavar="FOLDER", help="KLUE-NER model that also finds names of people.")]
NamesDevice = Annotated[Literal["auto", "cpu"], typer.Option(help="Device of the model: auto or cpu.")]
Format = Annotated[str, typer.Option("--format", help="Input format: auto, text, jsonl, json, csv, tsv or parquet.")]
Encoding = Annotated[str, typer.Option(help="Input encoding: auto or a name. The output is UTF-8.")]
KEY_HELP = "File with a secret key (at least 16 bytes). Equal values get equal replacements in all records and runs."
OnError = Annotated[Literal["stop", "skip"], typer.Option(help="For unreadable records: stop or skip.")]
Skipped = Annotated[Path | None, typer.Option(help="File for skipped records. Default: OUTPUT.skipped.jsonl.")]


@pii_app.command("detect")
def pii_detect(
    source: Source,
    target: Annotated[str, typer.Argument(metavar="OUTPUT", help="A .jsonl file, a folder, or -.")] = "-",
    fields: FieldNames = None,
    all_fields: AllFields = False,
    types: Types = None,
    names: Names = None,
    names_device: NamesDevice = "auto",
    explain: Annotated[bool, typer.Option("--explain", help="Print spans as objects with score and reasons.")] = False,
    format_: Format = "auto",
    encoding: Encoding = "auto",
    on_error: OnError = "stop",
    skipped: Skipped = None,
) -> None:
    r"""Find personal data. Each output line or record has its spans as \[start, end, TYPE].

    Example:  echo '문의 010-0123-4567' | malmoi pii detect -
    """
    from corpus.pii.extra.person_by_model import load_tagger
    from launch.pii.run import process, read_choices
    from launch.pii.work import Finding, read_types

    choices = read_choices(fields, all_fields, format_, encoding, on_error, skipped)
    tagger = load_tagger(names, device=names_device) if names else None
    is_flat = fields is None and not all_fields
    process(source, target, Finding(read_types(types), explain, tagger, is_flat), choices)


@pii_app.command("replace")
def pii_replace(
    source: Source,
    target: Annotated[str, typer.Argument(metavar="OUTPUT", help="A file of the same kind, a folder, or -.")] = "-",
    mode: Annotated[
        str, typer.Option(help="replace, mask (***-****), tag ([TEL]) or drop (the sentence).")
    ] = "replace",
    keep: Annotated[
        Literal["form", "none"], typer.Option(help="form, such as the century digit, or none: one form for each type.")
    ] = "form",
    fields: FieldNames = None,
    all_fields: AllFields = False,
    types: Types = None,
    names: Names = None,
    names_device: NamesDevice = "auto",
    seed: Annotated[
        int | None,
        typer.Option(
            help="Make replacements reproducible. Warning: anyone who knows the seed can guess and verify original "
            "values. Default: random."
        ),
    ] = None,
    key_file: Annotated[Path | None, typer.Option(help=KEY_HELP)] = None,
    key_variable: Annotated[str | None, typer.Option(help="Environment variable with the secret key.")] = None,
    format_: Format = "auto",
    encoding: Encoding = "auto",
    on_error: OnError = "stop",
    skipped: Skipped = None,
) -> None:
    """Replace personal data with invented values of the same type and format, or hide it in another way.

    Everything else is unchanged. Records with the same "id" are one document, in which equal values get equal
    replacements.

    Example:  malmoi pii replace letters.csv letters.safe.csv
    """
    from corpus.pii.extra.person_by_model import load_tagger
    from launch.pii.run import process, read_choices
    from launch.pii.work import Hiding, read_protection, read_types

    choices = read_choices(fields, all_fields, format_, encoding, on_error, skipped)
    tagger = load_tagger(names, device=names_device) if names else None
    protection = read_protection(mode, seed, key_file, key_variable, read_types(types), tagger, keep)
    process(source, target, Hiding(protection), choices)
