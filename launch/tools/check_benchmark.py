"""``malmoi benchmark check``: the checks of ``finetune.annotation.check`` as tables, a page with examples, or JSON.

The page has the style of the report. The corpus is searched with the exact index of decontamination.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from launch.console import PlainConsole, Table, number_table, print_json, print_table

SHOWN = 20  # examples of a check on the page
EXAMPLE_CHARS = 90  # of the example on the terminal


def check_benchmark(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER_OR_FILE…", help="Files, or folders of files: KLUE, KoBEST, CSV, JSON, CoNLL."),
    ],
    corpus: Annotated[
        Path | None, typer.Option(help="Folder of document shards in which the items are searched.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page with examples to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON.")] = False,
) -> None:
    """Check any benchmark: copies, conflicts, overlap of splits, offsets, tags, spreadsheet damage, label errors.

    An error is wrong in an item; a remark is something to look at. The exit code is 0 unless a file cannot be read.

    Example:  malmoi benchmark check klue-nli-v1.1 --html check.html
    """
    from corpus.documents.atomic_files import atomic_write
    from finetune.annotation.check.run import check

    result = check(paths, None if corpus is None else lambda texts: _find_leaks(texts, corpus))
    if html is not None:
        atomic_write(html, render_page(result))
    if as_json:
        return print_json(result)
    for path, reason in result["skipped"].items():
        PlainConsole().print(f"skipped {path}: {reason}", soft_wrap=True)
    for benchmark in result["benchmarks"]:
        print_table(_counts_table(benchmark))
        for line in _facts(benchmark):
            PlainConsole().print(f"  {line}", soft_wrap=True)
        for table in _baselines(benchmark):
            print_table(table)


def _find_leaks(texts: Sequence[str], corpus: Path) -> Iterable[tuple[int, str, float]]:
    """Number of a text, document, and share of one of its sentences that the document has."""
    from corpus.decontamination.index import build_index
    from corpus.documents.shards import read_documents, shard_paths
    from corpus.sentences.split import split_sentences

    parts = [(number, part) for number, text in enumerate(texts) for part in split_sentences(text)]
    index, item_of_part = build_index([part for _, part in parts])
    owners: dict[int, list[int]] = {}
    for (number, _), item in zip(parts, item_of_part, strict=True):
        owners.setdefault(item, []).append(number)
    for shard in shard_paths(corpus):
        for document in read_documents(shard):
            for hit in index.find_in_documents([document.sentences]):
                yield from ((number, document.id, hit.ratio) for number in owners[hit.item])


def _counts_table(benchmark: dict[str, Any]) -> Table:
    splits = ", ".join(f"{split['split']} {split['items']:,}" for split in benchmark["splits"])
    first = {finding["check"]: finding["message"] for finding in reversed(benchmark["findings"])}
    rows = [
        [c["level"], c["check"], f"{c['items']:,}", first[c["check"]][:EXAMPLE_CHARS]] for c in benchmark["counts"]
    ] or [["", "nothing found", "0", ""]]
    title = f"{benchmark['name']}: {benchmark['kind']}, {splits}"
    return Table(["level", "check", "items", "first example"], rows, numbers=[2], title=title)


def _facts(benchmark: dict[str, Any]) -> Iterator[str]:
    yield from benchmark["facts"]
    for side in benchmark["one_side"]:
        yield (
            f"{side['split']}: {side['text']} alone predicts {side['accuracy']:.1f} % of the labels, the best constant "
            f"{side['constant']:.1f} %"
        )


def _baselines(benchmark: dict[str, Any]) -> Iterator[Table]:
    if not (found := benchmark["baselines"]):
        return
    kinds = {"constant": "best constant", **({"counting": "counting"} if found["counting"] else {})}
    cells = [[found[name].get(metric) for name in kinds] for metric in found["constant"]]
    shown = [["–" if value is None else f"{value:.2f}" for value in pair] for pair in cells]
    rows = [[metric, *pair] for metric, pair in zip(found["constant"], shown, strict=True)]
    note = f"counting: {found['counting_by']}, trained on {found['trained on']}" if found["counting"] else ""
    yield number_table(f"Baselines on {found['scored']}", ["metric", *kinds.values()], rows, note)


def render_page(result: dict[str, Any]) -> str:
    """The page with all benchmarks and examples of each check."""
    from launch.report.run import render

    benchmarks = result["benchmarks"]
    levels = [count["level"] for b in benchmarks for count in b["counts"] for _ in range(count["findings"])]
    names = ", ".join(benchmark["name"] for benchmark in benchmarks)
    verdict = [f"{levels.count('error'):,} errors and {levels.count('remark'):,} remarks in {names}."]
    verdict += [f"Skipped {path}: {reason}" for path, reason in result["skipped"].items()]
    tiles = [
        {
            "name": f"{b['name']} {split['split']}",
            "summary": f"{split['items']:,} items",
            "cost": ", ".join(f"{label} {count:,}" for label, count in split["labels"].items())
            or f"{split['labelled']:,} with labels",
        }
        for b in benchmarks
        for split in b["splits"]
    ]
    about = "An error is wrong in an item; a remark is something to look at."
    sections = [_section(benchmark) for benchmark in benchmarks]
    page = {"title": "check of benchmarks", "about": about, "verdict": verdict, "stages": tiles, "links": []}
    return render("page.html.j2", {**page, "sections": sections})


def _section(benchmark: dict[str, Any]) -> Any:
    from launch.report.blocks import Section, Text

    counts = [[f"{c['check']} ({c['level']})", f"{c['items']:,}", c["what"]] for c in benchmark["counts"]]
    blocks: list[Any] = [Table(["check", "items", "meaning"], counts, numbers=[1])] if counts else []
    blocks += [Text(line, "note") for line in _facts(benchmark)]
    for table in _baselines(benchmark):
        blocks += [table, *([Text(f"{table.note}.", "note")] if table.note else [])]
    for count in benchmark["counts"]:
        found = [finding for finding in benchmark["findings"] if finding["check"] == count["check"]]
        rows = [
            [f["message"], " ".join([f["split"], f["guid"], *(["as", f["other"]] if f["other"] else [])])]
            for f in found
        ]
        more = f", the first {SHOWN}" if len(rows) > SHOWN else ""
        title = f"{count['check']} ({count['level']}): {len(rows):,}{more}"
        blocks.append(Table(["problem", "item"], rows[:SHOWN], title=title, folded=True, is_text=True))
    return Section(benchmark["name"], blocks)
