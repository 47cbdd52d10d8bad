"""``malmoi init``: write a recipe for the user's own text and labels, and check it as ``--dry-run`` does.

Keys, columns and layouts are found with the readers of the stages, so the checks agree with the run. What is guessed is
printed and is a line in the recipe that the user can correct.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from corpus.documents.errors import BadInput
from launch.errors import LaunchError, require
from launch.numbers import group_by

if TYPE_CHECKING:
    from corpus.reading.inputs import Input

NEW, NEW_RECIPE = "new", "malmoi-small"
SAMPLED = 10  # records of a file of raw text
SEQUENCE_LENGTH, BATCH, BYTES_PER_TOKEN = 128, 32, 4.2
MIN_STEPS, MAX_STEPS = 100, 12_500


def init(
    recipe: Annotated[Path, typer.Argument(metavar="[RECIPE.yaml]", help="Recipe to write.")] = Path("mine.yaml"),
    text: Annotated[str | None, typer.Option(help="Raw text to train on: file, folder or glob.")] = None,
    task: Annotated[
        Path | None, typer.Option(help="Labelled file: CSV, TSV, JSON lines, JSON or CoNLL; a part is held out.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help=f"Encoder to start from: folder or Hub name; {NEW}: train a small one.")
    ] = None,
) -> None:
    """Write a recipe for your own text and labelled file, then check it and show the plan.

    Without options it asks. Without text, the encoder is fine-tuned as it is.

    Example:  malmoi init tickets.yaml --text data/text --task data/tickets.csv --model klue/roberta-base
    """
    if recipe.suffix not in (".yaml", ".yml"):
        raise LaunchError(f"{recipe}: a recipe is a .yaml file; name it {recipe}.yaml")
    if recipe.exists():
        raise LaunchError(f"{recipe}: exists already; name another file, or delete it")
    if task is None:
        text = text or _ask("Folder of raw text to train on (empty: none)", "--text", text) or None
        task = Path(_ask("Labelled file", "--task"))
        model = model or _ask("Encoder to start from, a folder or a name on the Hub", "--model", "klue/roberta-base")
    require("init", ("torch", "transformers"))
    values = make_recipe(text, task, model or "klue/roberta-base", recipe.parent)
    yaml_text = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, default_flow_style=None, width=110)
    recipe.write_text(f"# Written by `malmoi init`; the other settings have their defaults.\n{yaml_text}", "utf-8")
    verb = "run" if text else "finetune"
    typer.echo(f"{recipe}: written; check the columns of the task below. Then: malmoi {verb} {recipe}\n")
    from launch.conduct import conduct

    conduct(verb, str(recipe), [], Path("runs"), dry_run=True)


def _ask(question: str, option: str, default: str | None = "") -> str:
    if not sys.stdin.isatty():
        raise LaunchError(f"init: {option} is missing, and there is no terminal to ask on; see malmoi init --help")
    return str(typer.prompt(question, default=default)).strip()


def make_recipe(text: str | None, task: Path, model: str, folder: Path) -> dict[str, Any]:
    """The values of the recipe; paths are relative to its ``folder``. ``BadInput``: a file cannot be used."""
    from finetune.encoder.loading import load_config
    from launch.recipe import UNSAFE_IN_NAMES, locate_recipe, read_mapping

    columns = describe_columns(task)
    name = re.sub(r"^[\W\d_]+", "", UNSAFE_IN_NAMES.sub("-", task.name.split(".")[0])).replace(".", "-") or "task"
    custom = {name: {"kind": columns.pop("kind"), "dev": _relative(task, folder), **columns}}
    encoder = _relative(Path(model), folder) if Path(model).is_dir() else model
    finetune: dict[str, Any] = {"custom": custom, "split_dev": [name], "seeds": [1, 2, 3]}
    if text is None:
        return {"about": f"{name}, with {model}", "finetune": {**finetune, "models": [encoder]}}
    corpus, size = find_texts_and_keys(text, folder)
    about = f"{name}, with a model trained on {text}"
    if model == NEW:
        base = read_mapping(locate_recipe(NEW_RECIPE), "recipe")
        own = {key: base[key] for key in ("tokenizer", "pretrain")}
        finetune["overrides"] = {name: {"lr": 3.0e-4}}  # small encoders need more than the published rate
        return {"about": about, "corpus": corpus, **own, "finetune": {**finetune, "models": ["model"]}}
    steps = int(min(MAX_STEPS, max(MIN_STEPS, size / BYTES_PER_TOKEN / (SEQUENCE_LENGTH * BATCH))))
    pretrain = {
        "init_from": encoder, "steps": steps, "global_batch": BATCH, "rows": {"sequence_length": SEQUENCE_LENGTH},
        "optimizer": {"warmup_share": 0.06},
    }  # fmt: skip
    if (kind := load_config(model).model_type) != "roberta":
        pretrain["model"] = {"architecture": kind}
    tuned = {**finetune, "models": ["model", encoder]}
    return {"about": about, "corpus": corpus, "tokenizer": {"extend": 768}, "pretrain": pretrain, "finetune": tuned}


def _relative(path: Path, folder: Path) -> str:
    return str(path) if path.is_absolute() else os.path.relpath(path, folder)


def find_texts_and_keys(text: str, folder: Path) -> tuple[dict[str, Any], int]:
    """The section ``corpus`` for the files of ``text``, and their size in bytes. If files have their texts under
    different keys, each key is a source."""
    from corpus.reading.files import find_texts
    from corpus.reading.inputs import Input
    from launch.recipe import UNSAFE_IN_NAMES

    paths = find_texts([text])
    by_key = group_by(paths, lambda path: _text_key(Input(path, path.name, encoding="auto").inspected()))
    size, plain = sum(path.stat().st_size for path in paths), by_key.pop("", [])
    if len(by_key) < 2:
        field = {"text_field": key} if (key := next(iter(by_key), "text")) != "text" else {}
        return {"inputs": [_relative(Path(text), folder)], **field}, size
    sources = {
        UNSAFE_IN_NAMES.sub("-", key): {"inputs": [_relative(p, folder) for p in files], "text_field": key}
        for key, files in by_key.items()
    }
    return {"inputs": [_relative(path, folder) for path in plain], "sources": sources}, size


def _text_key(item: Input) -> str:
    """The key or column of a file's texts: ``text`` if there is one, else the longest; "" for plain text."""
    from corpus.reading.containers import UnreadableRecord, parse_json
    from corpus.reading.inputs import Unit, scan_unit
    from corpus.reading.parquet import open_parquet

    if item.container == "text":
        return ""
    rows: list[Any] = []
    if item.container == "parquet":
        with item.file.open("rb") as source, open_parquet(source, str(item.path)) as file:
            rows = next(file.iter_batches(SAMPLED)).to_pylist() if file.metadata.num_rows else []
    for record in islice(scan_unit(Unit(item), Counter()), SAMPLED) if not rows else ():
        with suppress(UnreadableRecord):  # the run counts it
            rows.append(parse_json(record.raw))
    sizes: Counter[str] = Counter()
    for row in rows:
        values = row.items() if isinstance(row, dict) else ()
        sizes.update({key: len(value) for key, value in values if isinstance(value, str) and value.strip()})
    if not sizes:
        raise BadInput(f"{item.path}: no key with a text in its first records; remove the file, or convert it to .txt")
    return "text" if "text" in sizes else sizes.most_common(1)[0][0]


def describe_columns(path: Path) -> dict[str, Any]:
    """The kind of a labelled file and its columns, as in ``finetune.custom``; ``BadInput`` if there is no label."""
    from finetune.data.custom_files import COLUMNS, TABLES, find_columns, holds_words, kind_of_file, read_table

    if kind_of_file(path) not in set(TABLES) - {".tsv"} and holds_words(path, COLUMNS):
        return {"kind": "tagging"}
    return find_columns(read_table(path, ()), path, is_guess=True).model_dump(mode="json", exclude_none=True)
