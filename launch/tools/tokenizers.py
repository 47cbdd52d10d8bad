"""``malmoi tokenizer stats`` and ``malmoi tokenizer extend``. Heavy imports wait until a command runs.

The first two rows of the first table of the statistics are the paper's (Table 35, on Korean Wikipedia). Other text
gives other numbers, so compare their order.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corpus.documents.atomic_files import atomic_dir
from launch.console import PlainConsole, Table, number_table, print_json, print_table
from launch.errors import LaunchError
from launch.numbers import count, number, share

if TYPE_CHECKING:
    from rich.console import Console

    from tokenizer.measuring.boundaries import BoundaryScores
    from tokenizer.measuring.compare import Comparison, OnText
    from tokenizer.measuring.samples import Interval

SEVERAL = "words in\nseveral"
FIT: dict[str, Callable[[OnText], str]] = {  # columns of the fit to a text
    "pieces\nper word": lambda on: _with_interval(on.fit.fertility, on.fertility_interval),
    SEVERAL: lambda on: number(on.fit.continued_words, 3),
    "[UNK]\nper\npiece": lambda on: _rare(on.fit.unknown_ratio, 4),
    "over\nHangul": lambda on: _rare(on.fit.unknown_hangul_ratio, 5),
    "pieces\nper\ncharacter": lambda on: number(on.fit.tokens_per_character, 3),
    "Rényi": lambda on: number(on.fit.renyi_efficiency, 3),
}
FIT_BY_TEXT = {head: cell for head, cell in FIT.items() if head != SEVERAL}


def measure_tokenizers(
    tokenizer: Annotated[Path, typer.Argument(help="Tokenizer folder or vocab.txt.")],
    texts: Annotated[list[Path], typer.Argument(help="Text or .jsonl files, .gz and .zst allowed.")],
    others: Annotated[list[Path] | None, typer.Option("--with", help="Tokenizer to compare with; repeatable.")] = None,
    gold: Annotated[
        list[Path] | None, typer.Option(help="KLUE-DP or CoNLL-U file with annotated morphemes; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")] = False,
) -> None:
    """Measure tokenizers on text: paper Table 35, unknown words, morpheme boundaries, with 95 % intervals.

    Example:  malmoi tokenizer stats runs/smoke/tokenizer news.txt --with klue/vocab.txt
    """
    from tokenizer.measuring.compare import compare, name_files

    texts_by_name = {name: _read_texts(file) for name, file in zip(name_files(texts, "text"), texts, strict=True)}
    comparisons = compare([tokenizer, *(others or [])], texts_by_name, gold or [])
    if as_json:
        return print_json({"tokenizers": [asdict(comparison) for comparison in comparisons]})
    print_comparison(comparisons, PlainConsole())


def comparison_tables(comparisons: Sequence[Comparison]) -> list[Table]:
    """Tables that fit 80 columns; each tokenizer is a row, in the given order."""
    from launch.report.stages import PAPER_TABLE_35

    largest = max((c.whole for c in comparisons), key=lambda on: on.fit.eojeols)
    paper = [[name, *(number(v, 3) for v in values), "", "", ""] for name, values in PAPER_TABLE_35.items()]
    tables = [
        number_table(
            f"Fit to {largest.text} ({count(largest.fit.eojeols)} words, {count(largest.fit.characters)} characters)",
            ("tokenizer", *FIT),
            paper + [[c.name, *(cell(c.whole) for cell in FIT.values())] for c in comparisons],
        ),
        number_table(
            "Entries and their use",
            ("tokenizer", "entries", "usable", "never used", "under five times"),
            [[c.name, *map(count, (f.vocab_size, f.pieces, f.never_used, f.rarely_used))]
             for c in comparisons for f in [c.whole.fit]],
        ),
    ]  # fmt: skip
    if comparisons[0].texts:
        tables.append(_by_text(comparisons))
    silver = [(c.name, c.whole.silver) for c in comparisons]
    tables.append(_boundaries(f"Boundaries of morphemes in {largest.text}, by mecab-ko", silver))
    for place, gold in enumerate(comparisons[0].golds):
        scores = [(c.name, c.golds[place].scores) for c in comparisons]
        tables.append(_boundaries(f"Boundaries of morphemes in {gold.file} ({gold.convention}), annotated", scores))
    return tables


def _rare(value: float, digits: int) -> str:
    """A small share: ``<0.0001`` for a positive value that would be rounded to 0."""
    smallest = 10**-digits
    return f"<{smallest:.{digits}f}" if 0 < value < smallest else number(value, digits if value else 0)


def _by_text(comparisons: Sequence[Comparison]) -> Table:
    """For each text its name and a row for each tokenizer; with one tokenizer a row for each text."""
    rows = []
    for place in range(len(comparisons[0].texts)):
        largest = max((c.texts[place] for c in comparisons), key=lambda on: on.fit.eojeols)
        head = f"{largest.text} ({count(largest.fit.eojeols)})"
        by_tokenizer = []
        for c in comparisons:
            on = c.texts[place]
            f1 = _with_interval(on.silver.f1, on.silver.intervals.get("f1"))
            name = f"  {c.name}" if len(comparisons) > 1 else head
            by_tokenizer.append([name, *(cell(on) for cell in FIT_BY_TEXT.values()), f1])
        rows += [[head, *[""] * 6], *by_tokenizer] if len(comparisons) > 1 else by_tokenizer
    heads = ("text (words)", *FIT_BY_TEXT, "F1 by\nmecab-ko")
    return number_table("By text", heads, rows)


def _boundaries(title: str, scores: Sequence[tuple[str, BoundaryScores]]) -> Table:
    rows = []
    for name, s in scores:
        figures = ("f1", "keeps_all", "crossing")
        f1, all_kept, crossing = (_with_interval(getattr(s, name), s.intervals.get(name)) for name in figures)
        precision, recall, within = (number(value, 3) for value in (s.precision, s.recall, s.f1_within_words))
        rows.append([name, precision, recall, f1, within, all_kept, crossing])
    first = scores[0][1]
    left_out = share(first.skipped, first.eojeols + first.skipped)
    title += f" ({count(first.boundaries)} in {count(first.eojeols)} words; {left_out} of the words left out)"
    heads = ("tokenizer", "precision", "recall", "F1", "F1\nwithin\nwords", "all kept", "crossing\npieces")
    return number_table(title, heads, rows)


def _with_interval(value: float | None, limits: Interval | None) -> str:
    """The value and half of its interval, rounded up: 0.863 ±.005."""
    if limits is None:
        return number(value, 3)
    half = math.ceil(round((limits[1] - limits[0]) * 500, 6)) / 1000
    return f"{number(value, 3)} ±{f'{half:.3f}'.removeprefix('0')}"


def print_comparison(comparisons: Sequence[Comparison], console: Console) -> None:
    """Print all tables and notes on their columns."""
    for table in comparison_tables(comparisons):
        print_table(table, console)
    notes = Path(__file__).with_name("tokenizer_notes.txt").read_text("utf-8")
    console.print(notes.rstrip(), style="dim", markup=False)


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
    from corpus.documents.shards import Document, write_shard
    from launch.report.stages import extension_tables
    from tokenizer.extend import extend_vocabulary, read_base

    corpus = _corpus_folder(texts)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise LaunchError(f"{out}: exists already; name a new folder with --out, or remove it")
    with atomic_dir(out) as folder:
        name = base.as_posix()
        if not base.exists() and not name.startswith((".", "/", "~")) and name.count("/") == 1:  # of the Hub
            from finetune.encoder.loading import load_tokenizer

            base = folder / "work" / "base"
            load_tokenizer(name).save_pretrained(base)
        read_base(base)  # rejects other kinds than WordPiece before text is read
        if corpus is None:
            corpus = folder / "work" / "corpus"
            read = chain.from_iterable(map(_read_texts, texts))
            documents = (Document("", "text", tuple(text.splitlines())) for text in read)
            write_shard(corpus / "documents" / "shard-00000.parquet", documents)
        record = extend_vocabulary(base, corpus, folder, pieces, workers=workers)
    for table in extension_tables(record):
        print_table(table)


def _read_texts(file: Path) -> Iterator[str]:
    from corpus.reading.inputs import find_inputs, plan_units
    from corpus.reading.read import RejectedRecord, read_unit

    for unit in plan_units(find_inputs([str(file)], {}, "text"), whole_files=True):
        for record in read_unit(unit, Counter()):
            if isinstance(record, RejectedRecord):
                reason = record.reason.replace("_", " ")
                raise LaunchError(f"{unit.input.path}, line {record.line}: {reason}; correct or remove the line")
            yield record.text


def _corpus_folder(texts: Sequence[Path]) -> Path | None:
    """The corpus folder if one, or the folder of its run, was given; None for files of text."""
    for folder in (path for text in texts for path in (text, text / "corpus")):
        if (folder / "documents").is_dir():
            if len(texts) > 1:
                raise LaunchError(f"{folder}: give either one corpus folder or files of text")
            return folder
    return None
