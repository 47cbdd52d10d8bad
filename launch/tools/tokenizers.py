"""``malmoi tokenizer stats`` and ``malmoi tokenizer extend``. Heavy imports wait until a command runs."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from corpus.documents.atomic_files import PARTIAL_SUFFIX, atomic_dir
from launch.console import PlainConsole, print_table, set_up_console
from launch.errors import LaunchError


def measure_tokenizers(
    tokenizer: Annotated[Path, typer.Argument(help="Tokenizer folder or vocab.txt.")],
    texts: Annotated[list[Path], typer.Argument(help="Text or .jsonl files, .gz and .zst allowed.")],
    others: Annotated[list[Path] | None, typer.Option("--with", help="Tokenizer to compare with; repeatable.")] = None,
    gold: Annotated[
        list[Path] | None, typer.Option(help="KLUE-DP or CoNLL-U file with annotated morphemes; repeatable.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all numbers to this file.")] = None,
) -> None:
    """Measure tokenizers on text: paper Table 35, unknown words, morpheme boundaries, with 95 % intervals.

    Example:  malmoi tokenizer stats runs/smoke/tokenizer news.txt --with klue/vocab.txt --json compared.json
    """
    set_up_console()
    from launch.tools.tokenizer_tables import compare_tokenizers, print_comparison
    from tokenizer.measuring.compare import name_files

    named = {name: _read_texts(file) for name, file in zip(name_files(texts, "text"), texts, strict=True)}
    comparison = compare_tokenizers([tokenizer, *(others or [])], named, gold or [], json_file)
    print_comparison(comparison, PlainConsole())


def extend_tokenizer(
    base: Annotated[Path, typer.Argument(help="Tokenizer or model folder, vocab.txt, or Hub name.")],
    texts: Annotated[list[Path], typer.Argument(help="Text or .jsonl files, or the corpus folder of a run.")],
    out: Annotated[Path, typer.Option(help="Output folder; it must not exist.")],
    pieces: Annotated[int, typer.Option(min=1, help="Number of new pieces.")] = 1000,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes.")] = os.cpu_count() or 1,
) -> None:
    """Add pieces of a domain to a WordPiece vocabulary. Existing ids do not change.

    For continued pretraining: `malmoi run continued tokenizer.extend=1000` does both. A model must be trained further
    to learn the new pieces.

    Example:  malmoi tokenizer extend klue/bert-base contracts/*.txt --pieces 768 --out contracts-tokenizer
    """
    set_up_console()
    from launch.report.stages import extension_tables

    folder = _corpus_folder(texts)
    record = _extend(out, base, folder or chain.from_iterable(map(_read_texts, texts)), pieces, workers)
    console = PlainConsole()
    for table in extension_tables(record):
        print_table(table, console)


def _read_texts(file: Path) -> Iterator[str]:
    from corpus.reading.inputs import find_inputs
    from corpus.reading.read import RejectedRecord, read_unit
    from corpus.reading.units import plan_units

    for unit in plan_units(find_inputs([str(file)], {}, "text"), whole_files=True):
        for record in read_unit(unit, Counter()):
            if isinstance(record, RejectedRecord):
                raise LaunchError(f"{unit.input.path}, line {record.line}: {record.reason}; correct or remove the line")
            yield record.text


def _corpus_folder(texts: Sequence[Path]) -> Path | None:
    """The corpus folder if one, or the folder of its run, was given; None for files of text."""
    for folder in (path for text in texts for path in (text, text / "corpus")):
        if (folder / "documents").is_dir():
            if len(texts) > 1:
                raise LaunchError(f"{folder}: give either one corpus folder or files of text")
            return folder
    return None


def _extend(out: Path, base: Path, texts: Path | Iterable[str], pieces: int, workers: int) -> dict[str, Any]:
    """Write the extended tokenizer to the new folder ``out``; return the content of its extension.json.

    Args:
        texts: a corpus folder, or documents.
    """
    from corpus.documents.shards import Document, write_shard
    from tokenizer.extend import extend_vocabulary, read_base

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise LaunchError(f"{out}: exists already; name a new folder with --out, or remove it")
    try:
        with atomic_dir(out) as folder:
            base = _download(base, folder / "work" / "base")
            read_base(base)  # rejects other kinds than WordPiece before text is read
            corpus = texts if isinstance(texts, Path) else folder / "work" / "corpus"
            if not isinstance(texts, Path):
                documents = (Document("", "text", tuple(text.splitlines())) for text in texts)
                write_shard(corpus / "documents" / "shard-00000.parquet", documents)
            return extend_vocabulary(base, corpus, folder, pieces, workers=workers)
    except BaseException:
        shutil.rmtree(out.with_name(out.name + PARTIAL_SUFFIX), ignore_errors=True)
        raise


def _download(base: Path, folder: Path) -> Path:
    """The base, or if it is a name on the Hub, a copy of its tokenizer in ``folder``."""
    name = base.as_posix()
    if base.exists() or name.startswith((".", "/", "~")) or name.count("/") != 1:
        return base
    from finetune.encoder.loading import load_tokenizer

    load_tokenizer(name).save_pretrained(folder)
    return folder
