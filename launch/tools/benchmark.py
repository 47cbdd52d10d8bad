"""``malmoi benchmark …``: build a benchmark step by step, and check it. Heavy imports wait until a verb runs.

The page of ``malmoi benchmark check`` has the style of the report. The corpus is searched with the exact index of
decontamination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from launch.console import PlainConsole, Table, number_table, print_json, print_table
from launch.errors import require
from launch.numbers import flatten

ABOUT = """Build a benchmark from your own text and annotators, as KLUE was built, or check any benchmark.

Order of the steps: draw, hand-out, take-in, agree, settle, split, check, card.

Example:  malmoi benchmark agree my-benchmark
"""
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a benchmark, with benchmark.yaml.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ToolName = Literal["label-studio", "doccano", "argilla", "potato"]
Format = Literal["votes", "klue", "conllu", "wos", "label-studio", "doccano", "argilla", "potato"]
FORMAT_HELP = """\
votes: a table of item, worker, value. klue: KLUE-NLI and KLUE-STS files with their votes. conllu, wos: one file per \
worker. Others: the JSON export of the tool."""

ANSWER_TOKENS = 512
SHOWN = 20  # examples of a check on the page
EXAMPLE_CHARS = 90  # of the example on the terminal

benchmark_app = typer.Typer(no_args_is_help=True, help=ABOUT)


@benchmark_app.command("check")
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
    (print_json if as_json else _print_findings)(result)
    if result["skipped"]:
        raise typer.Exit(2)


def _print_findings(result: Mapping[str, Any]) -> None:
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
    form = "{split}: {text} alone predicts {accuracy:.1f} % of the labels, the best constant {constant:.1f} %"
    yield from (form.format(**side) for side in benchmark["one_side"])


def _baselines(benchmark: dict[str, Any]) -> Iterator[Table]:
    if not (baselines := benchmark["baselines"]):
        return
    kinds = {"constant": "best constant", **({"counting": "counting"} if baselines["counting"] else {})}
    cells = [[baselines[name].get(metric) for name in kinds] for metric in baselines["constant"]]
    formatted = [["–" if value is None else f"{value:.2f}" for value in pair] for pair in cells]
    rows = [[metric, *pair] for metric, pair in zip(baselines["constant"], formatted, strict=True)]
    note = f"counting: {baselines['counting_by']}, trained on {baselines['trained on']}" if "counting" in kinds else ""
    yield number_table(f"Baselines on {baselines['scored']}", ["metric", *kinds.values()], rows, note)


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
        findings = [finding for finding in benchmark["findings"] if finding["check"] == count["check"]]
        rows = [[f["message"], f"{f['split']} {f['guid']}" + f" as {f['other']}" * bool(f["other"])] for f in findings]
        more = f", the first {SHOWN}" if len(rows) > SHOWN else ""
        title = f"{count['check']} ({count['level']}): {len(rows):,}{more}"
        blocks.append(Table(["problem", "item"], rows[:SHOWN], title=title, folded=True, is_text=True))
    return Section(benchmark["name"], blocks)


@benchmark_app.command("draw")
def draw_items(folder: Folder, as_json: AsJson = False) -> None:
    """Draw candidates from document shards; what does not fit is counted by reason.

    Example:  malmoi benchmark draw my-benchmark
    """
    from finetune.annotation.draw import Models, draw

    models = Models(_find_toxic, _ask)
    _run_step("candidates", folder, "draw", lambda b, f: draw(b, f, models), as_json)


def _find_toxic(model: str, thresholds: Mapping[str, float], texts: Sequence[str]) -> list[bool]:
    """Whether a sentence of each text reaches a threshold of the classifier."""
    from corpus.config import ToxicityConfig
    from corpus.quality.toxicity import is_toxic, load_once, score_sentences
    from corpus.sentences.split import split_sentences

    config = ToxicityConfig(enabled=True, model=model, labels=dict(thresholds))
    classifier, parts = load_once(config.model_dump_json()), list(map(split_sentences, texts))
    scores_SL = score_sentences([sentence for part in parts for sentence in part], classifier)
    are_toxic = iter(is_toxic(scores_SL, classifier.labels, "", config).tolist())
    return [any(list(islice(are_toxic, len(part)))) for part in parts]


def _ask(model: str, questions: Sequence[str]) -> list[str]:
    """Answers of a model, without its thoughts; "" where none came, or the limit cut it."""
    require("draw.translator of malmoi benchmark", ["inspect_ai", "openai"])
    from finetune.generative.client.ask import Client, Question, ask
    from finetune.generative.prompts.answers import clean

    asked = [Question(str(n), (("user", text),), max_tokens=ANSWER_TOKENS) for n, text in enumerate(questions)]
    answers = ask(asked, Client(model))
    return ["" if a.stop == "max_tokens" else " ".join(clean(a.text or "").split()) for a in answers]


@benchmark_app.command("hand-out")
def hand_out_items(
    folder: Folder,
    tool: Annotated[ToolName, typer.Option("--to", help="Annotation tool.")] = "label-studio",
    size: Annotated[int, typer.Option(min=1, help="Number of items in a batch.")] = 500,
    as_json: AsJson = False,
) -> None:
    """Write project files of an annotation tool for the items that need votes.

    Example:  malmoi benchmark hand-out my-benchmark --to doccano
    """
    from finetune.annotation.tools import hand_out

    _run_step("handed out", folder, "hand-out", lambda b, f: hand_out(b, f, tool, size), as_json)


@benchmark_app.command("take-in")
def take_in_votes(
    folder: Folder,
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Exports of the annotation tool, or tables.")],
    format_: Annotated[Format, typer.Option("--from", help=FORMAT_HELP)] = "votes",
    as_json: AsJson = False,
) -> None:
    """Take in annotations: votes per worker, with hashed ids. Taking in a file again changes nothing.

    Example:  malmoi benchmark take-in my-benchmark votes.csv
    """
    from finetune.annotation.take_in import READERS, take_in
    from finetune.annotation.tools import reader_of

    read = READERS[format_] if format_ in READERS else reader_of(format_)
    _run_step("annotations", folder, "take-in", lambda b, f: take_in(b, f, files, read), as_json)


@benchmark_app.command("agree")
def show_agreement(folder: Folder, as_json: AsJson = False) -> None:
    """Measure the agreement of the workers, and exclude those who disagree with the others.

    Example:  malmoi benchmark agree my-benchmark
    """
    from finetune.annotation.agree import agree
    from finetune.annotation.folder import run_step

    result = run_step(folder, "agree", agree)
    if as_json:
        return print_json(result)
    parts = {"kept votes": result, **({"all votes": result["all workers"]} if result["all workers"] else {})}
    parts |= result["by source"] if len(result["by source"]) > 1 else {}
    rows = [row for row, value in result.items() if not isinstance(value, dict | list)]
    cells = [[row, *(_cell(part.get(row)) for part in parts.values())] for row in rows]
    print_table(number_table("agreement", ["", *parts], [row for row in cells if {*row[1:]} != {"–"}]))
    if result["author"]:
        _show_counts("votes and authors (KLUE, Table 5), %", result["author"], as_json=False)
    heads = ["worker", "votes", "shared", "pearson", "alpha", "pilot"]
    workers = [[*map(_cell, w.values()), result["excluded"].get(w["worker"], "")] for w in result["workers"]]
    if workers:
        numbers = range(1, len(heads))
        print_table(Table([*heads, "excluded because"], workers, numbers, title="workers and the others"))


@benchmark_app.command("settle")
def settle_votes(folder: Folder, as_json: AsJson = False) -> None:
    """Settle the gold labels by the task's rule; other items are dropped under a reason, or listed for a decision.

    Example:  malmoi benchmark settle my-benchmark
    """
    from finetune.annotation.settle import settle

    _run_step("gold", folder, "settle", settle, as_json)


@benchmark_app.command("split")
def split_items(folder: Folder, as_json: AsJson = False) -> None:
    """Split the gold items into train, dev and test, and write them to FOLDER/data.

    Example:  malmoi benchmark split my-benchmark
    """
    from finetune.annotation.split import split

    _run_step("split", folder, "split", split, as_json)


@benchmark_app.command("card")
def write_benchmark_card(folder: Folder, as_json: AsJson = False) -> None:
    """Write the data set card README.md, and recipe.yaml, with which `malmoi finetune` trains on the benchmark.

    Example:  malmoi benchmark card my-benchmark
    """
    from finetune.annotation.card import write_card

    _run_step("card", folder, "card", write_card, as_json)


def _run_step(title: str, folder: Path, step: str, work: Callable[..., dict[str, Any]], as_json: bool) -> None:
    from finetune.annotation.folder import run_step

    _show_counts(title, run_step(folder, step, work), as_json)


def _show_counts(title: str, counts: dict[str, Any], as_json: bool) -> None:
    """Counts as a table; the parts of a section have its name in front."""
    if as_json:
        return print_json(counts)
    rows = [[name, _cell(value)] for name, value in flatten(counts, ": ").items()]
    print_table(number_table(title, ["", "value"], rows))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
