"""``python -m benchmarks …``: what each bench takes. Heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from launch.console import run_app, set_up_console

bench_app = typer.Typer(
    no_args_is_help=True,
    help="Measure speed and quality side by side with other tools.",
    pretty_exceptions_enable=False,
)


@bench_app.command("corpus")
def bench_corpus(
    texts: Annotated[list[str] | None, typer.Option(help="Raw text; may be given again. Default: the sample.")] = None,
    sentences: Annotated[Path | None, typer.Option(help="Folder of gold sentences, one a line.")] = None,
    pii: Annotated[Path | None, typer.Option(help="Labelled .jsonl: text, spans.")] = None,
    benchmarks: Annotated[list[str] | None, typer.Option(help="Benchmark files or folders.")] = None,
    megabytes: Annotated[float, typer.Option(min=0.1, help="Text for the whole stage.")] = 20.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here, too.")] = None,
) -> None:
    """Splitting, personal data, decontamination and the whole corpus stage beside other ways to do the same.

    Example:  python -m benchmarks corpus --texts news.jsonl --benchmarks klue_benchmark
    """
    set_up_console()
    from benchmarks.corpus import run_corpus_bench

    run_corpus_bench(texts or [], sentences, pii, benchmarks or [], megabytes, json_file)


@bench_app.command("tokenizer")
def bench_tokenizer(
    texts: Annotated[list[str] | None, typer.Option(help="Raw text; may be given again. Default: the sample.")] = None,
    measure: Annotated[list[str] | None, typer.Option(help="Measure on held-out documents of these alone.")] = None,
    gold: Annotated[list[Path] | None, typer.Option(help="KLUE-DP or CoNLL-U file; repeatable.")] = None,
    others: Annotated[list[Path] | None, typer.Option("--with", help="A tokenizer to compare; repeatable.")] = None,
    megabytes: Annotated[float, typer.Option(help="Text to learn from, an equal share of each file.")] = 45.0,
    workers: Annotated[int, typer.Option(help="Processes of a build.")] = 2,
    rounds: Annotated[int, typer.Option(help="Times that the timed builds are done.")] = 1,
    timing_only: Annotated[bool, typer.Option(help="The timed builds alone; for much text.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.json and the vocabularies.")] = None,
) -> None:
    """Build vocabularies in every way, time them beside the common recipe, compare what they do to text.

    Example:  python -m benchmarks tokenizer --texts news.jsonl --texts wiki.jsonl --gold klue-dp-v1.1_dev.tsv
    """
    set_up_console()
    from benchmarks.tokenizer import run_tokenizer_bench

    run_tokenizer_bench(
        texts or [], measure or [], gold or [], others or [], megabytes, workers, rounds, timing_only, out
    )


@bench_app.command("pack")
def bench_pack(
    tokenizers: Annotated[list[Path], typer.Argument(help="Folders with a tokenizer.json.")],
    texts: Annotated[list[str] | None, typer.Option(help="Raw text; may be given again. Default: the sample.")] = None,
    megabytes: Annotated[float, typer.Option(help="Text to encode, an equal share of each file.")] = 8.0,
    libraries: Annotated[list[Path] | None, typer.Option("--library", help="A Python with other tokenizers.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here, too.")] = None,
) -> None:
    """Time the encoder of pack beside the tokenizers library, here and as other Pythons have it.

    Example:  python -m benchmarks pack runs/smoke/tokenizer --texts wiki.jsonl --library newer/bin/python
    """
    set_up_console()
    from benchmarks.pack import run_pack_bench

    run_pack_bench(tokenizers, texts or [], megabytes, libraries or [], json_file)


@bench_app.command("pretrain")
def bench_pretrain(
    only: Annotated[list[str] | None, typer.Option(help="loader, trainer or modes. Default: the first two.")] = None,
    size: Annotated[list[str] | None, typer.Option(help="2x128, 4x256 or 12x768; may be given again.")] = None,
    steps: Annotated[int, typer.Option(help="Steps of a run beside the Trainer.")] = 40,
    rounds: Annotated[int, typer.Option(help="Runs of each side; medians count.")] = 3,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.json.")] = None,
) -> None:
    """Time the loader beside transformers' collator, training beside its model and its Trainer, and ways to train.

    Example:  python -m benchmarks pretrain --only trainer --size 2x128 --size 4x256 --steps 12 --rounds 2
    """
    set_up_console()
    from benchmarks.pretrain import run_pretrain_bench

    run_pretrain_bench(only or [], size or ["4x256"], steps, rounds, out)


@bench_app.command("finetune")
def bench_finetune(
    klue: Annotated[Path | None, typer.Option(help="Folder like the KLUE repository. Default: the sample.")] = None,
    vocabulary: Annotated[Path | None, typer.Option(help="WordPiece vocab.txt. Default: learned here.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="ynat, klue-sts, klue-nli, klue-ner, klue-dp.")] = None,
    examples: Annotated[int | None, typer.Option(min=1, help="Examples of a task, by seed; all else.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Times that all is done; medians count.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here, too.")] = None,
) -> None:
    """Time conversion, an epoch and prediction beside a slow tokenizer and fixed padding, as published.

    Example:  python -m benchmarks finetune --klue klue_benchmark --vocabulary vocab.txt --examples 500
    """
    set_up_console()
    from benchmarks.finetune import run_finetune_bench

    run_finetune_bench(klue, vocabulary, task or [], examples, rounds, json_file)


@bench_app.command("lora")
def bench_lora(
    model: Annotated[str | None, typer.Option(help="Encoder or decoder. Default: an invented decoder.")] = None,
    klue: Annotated[Path | None, typer.Option(help="Folder like the KLUE repository. Default: the sample.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="A task; may be given again. Default: all.")] = None,
    examples: Annotated[int | None, typer.Option(min=1, help="Examples of a task, by seed; all else.")] = None,
    rank: Annotated[int, typer.Option(min=1, help="Rank of the adapters.")] = 16,
    rounds: Annotated[int, typer.Option(min=1, help="Times that all is done; medians count.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here, too.")] = None,
) -> None:
    """An epoch of each task with all weights trained beside LoRA: time, memory, trained parameters.

    Example:  python -m benchmarks lora --model Qwen/Qwen3-1.7B-Base --klue klue_benchmark --examples 500
    """
    set_up_console()
    from benchmarks.adapters import run_lora_bench

    run_lora_bench(model, klue, task or [], examples, rank, rounds, json_file)


@bench_app.command("speedrun")
def bench_speedrun(
    data: Annotated[
        Path | None, typer.Option(help="Run folder with corpus and tokenizer. Default: the sample.")
    ] = None,
    contestant: Annotated[list[str] | None, typer.Option(help="NAME, or 'NAME: RECIPE KEY=VALUE'; repeatable.")] = None,
    minutes: Annotated[float, typer.Option(help="Budget in CPU minutes, all threads together.")] = 10.0,
    operations: Annotated[float | None, typer.Option(help="Budget in floating-point operations instead.")] = None,
    size: Annotated[str, typer.Option(help="Layers x width of contestants that name no sizes.")] = "4x256",
    seed: Annotated[list[int] | None, typer.Option(help="Seed of a run; may be given again. Default: 1.")] = None,
    threads: Annotated[int, typer.Option(help="Threads of a run.")] = 1,
    precision: Annotated[str, typer.Option(help="Of all contestants: auto, fp32 or bf16.")] = "auto",
    points: Annotated[int, typer.Option(help="Measurements on the way; they are not counted.")] = 20,
    rows: Annotated[int, typer.Option(help="Held-out rows that are measured.")] = 512,
    klue: Annotated[str | None, typer.Option(help="KLUE files for probes, or malmoi:sample. Default: none.")] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="To probe on; repeatable. Default: ynat, nli, ner, dp.")
    ] = None,
    rate: Annotated[list[float] | None, typer.Option(help="More learning rates of probes, times real-small's.")] = None,
    examples: Annotated[list[int] | None, typer.Option(help="More numbers of training examples of probes.")] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(help="A contestant to hold all others beside; repeatable. Default: trainer, paper, real-small."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results; what has finished is not run again.")] = Path(
        "speedrun"
    ),
) -> None:
    """Which recipe for pretraining learns most in a fixed budget of computing, on the same text.

    Example:  python -m benchmarks speedrun --minutes 10 --contestant paper --contestant 'wsd: paper …'
    """
    set_up_console()
    from benchmarks.speedrun.pace import Budget
    from benchmarks.speedrun.run import Rules, run_speedrun

    budget = Budget("cpu_s", 60 * minutes) if operations is None else Budget("operations", operations)
    rules = Rules(budget, threads, cast(Any, precision), points, rows)
    run_speedrun(
        data, contestant or [], size, seed or [1], rules, klue, out,
        tasks=task or [], rates=rate or [], examples=examples or [], references=beside or [],
    )  # fmt: skip


@bench_app.command("ablations")
def bench_ablations(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Overrides of the recipe, for all cells.")
    ] = None,
    recipe: Annotated[str, typer.Option(help="What a cell is, but for what the cells differ in.")] = "ablations",
    data: Annotated[
        list[str] | None, typer.Option(help="Raw text to learn from; may be given again. Default: the sample.")
    ] = None,
    unread: Annotated[
        list[str] | None, typer.Option(help="Raw text of other sources, only measured; may be given again.")
    ] = None,
    klue: Annotated[str | None, typer.Option(help="Folder like the KLUE repository, or malmoi:sample.")] = None,
    operations: Annotated[float, typer.Option(help="Floating-point operations of each pretraining.")] = 1e14,
    vocabulary: Annotated[
        list[str] | None, typer.Option(help="bpe, klue, malmoi, malmoi-2x or 'NAME: tokenizer.KEY=VALUE'; repeatable.")
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="plain or pseudonymized; may be given again. Default: both.")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="May be given again. Default: 1, 2 and 3.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="A KLUE task; may be given again. Default: all.")] = None,
    canaries: Annotated[int, typer.Option(help="Invented values planted, of each type and rate.")] = 2,
    others: Annotated[int, typer.Option(help="Values that nobody planted, to rank each planted one among.")] = 255,
    windows: Annotated[int, typer.Option(help="Most windows of each held-out text to measure.")] = 512,
    out: Annotated[Path, typer.Option(help="Folder of cells and tables; what is complete is not done again.")] = Path(
        "ablations"
    ),
) -> None:
    """The paper's Tables 33 to 35 again: vocabularies and pseudonymization, with seeds, intervals and planted data.

    Example:  python -m benchmarks ablations --data news.jsonl --unread reviews.jsonl --klue klue --operations 1e15
    """
    set_up_console()
    from benchmarks.ablations.cells import READ, UNREAD, Base
    from benchmarks.ablations.run import Chosen, Measures, run_ablations

    inputs = {READ: tuple(data or ()), UNREAD: tuple(unread or ())}
    base = Base(recipe, tuple(overrides or ()), inputs, klue, operations, out)
    chosen = Chosen(vocabulary or [], text or [], seed or [1, 2, 3], task or [])
    run_ablations(base, chosen, Measures(canaries, others, windows))


@bench_app.command("records")
def bench_records(
    check: Annotated[bool, typer.Option("--check", help="Only name the outdated pages.")] = False,
) -> None:
    """Update the tables of docs/ and the list of records from benchmarks/records/.

    Example:  python -m benchmarks records
    """
    set_up_console()
    from benchmarks.record_tables import run_records

    raise typer.Exit(run_records(check))


def main() -> None:
    """Entry point of ``python -m benchmarks``."""
    run_app(bench_app, "python -m benchmarks")
