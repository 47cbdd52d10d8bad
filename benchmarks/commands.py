"""The command line of ``python -m benchmarks``. Heavy imports wait until a benchmark runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from launch.console import run_app, set_up_console

bench_app = typer.Typer(
    no_args_is_help=True,
    help="Compare speed and quality with other tools and other recipes. Runs from a checkout.",
    pretty_exceptions_enable=False,
)


@bench_app.command("corpus")
def bench_corpus(
    texts: Annotated[list[str] | None, typer.Option(help="Raw text; repeatable. Default: the embedded sample.")] = None,
    sentences: Annotated[Path | None, typer.Option(help="Folder of gold sentences, one per line.")] = None,
    pii: Annotated[Path | None, typer.Option(help="Labelled .jsonl file with text and spans.")] = None,
    benchmarks: Annotated[list[str] | None, typer.Option(help="Benchmark files or folders; repeatable.")] = None,
    megabytes: Annotated[float, typer.Option(min=0.1, help="Megabytes of text for the whole stage.")] = 20.0,
    out: Annotated[Path | None, typer.Option(help="Output folder for bench.json.")] = None,
) -> None:
    """Compare sentence splitting, PII detection and decontamination with other tools, and time the corpus stage.

    Example:  python -m benchmarks corpus --texts news.jsonl --benchmarks klue_benchmark
    """
    set_up_console()
    from benchmarks.corpus import run_corpus_bench

    run_corpus_bench(texts or [], sentences, pii, benchmarks or [], megabytes, out)


@bench_app.command("tokenizer")
def bench_tokenizer(
    texts: Annotated[list[str] | None, typer.Option(help="Raw text; repeatable. Default: the embedded sample.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="Measure only on held-out documents of these files; repeatable.")
    ] = None,
    gold: Annotated[list[Path] | None, typer.Option(help="KLUE-DP or CoNLL-U file; repeatable.")] = None,
    others: Annotated[list[Path] | None, typer.Option("--with", help="Tokenizer to compare with; repeatable.")] = None,
    megabytes: Annotated[float, typer.Option(help="Megabytes of training text, an equal share of each file.")] = 45.0,
    workers: Annotated[int, typer.Option(help="Number of processes.")] = 2,
    out: Annotated[Path | None, typer.Option(help="Output folder for bench.json and the vocabularies.")] = None,
) -> None:
    """Build vocabularies with every builder, time them, and compare them with MeCab + BertWordPieceTokenizer.

    Example:  python -m benchmarks tokenizer --texts news.jsonl --texts wiki.jsonl --gold klue-dp-v1.1_dev.tsv
    """
    set_up_console()
    from benchmarks.tokenizer import run_tokenizer_bench

    run_tokenizer_bench(texts or [], measure or [], gold or [], others or [], megabytes, workers, out)


@bench_app.command("pretrain")
def bench_pretrain(
    only: Annotated[list[str] | None, typer.Option(help="Part to run: loader or trainer. Default: both.")] = None,
    size: Annotated[list[str] | None, typer.Option(help="Model size: 2x128, 4x256 or 12x768; repeatable.")] = None,
    steps: Annotated[int, typer.Option(help="Steps of a training run.")] = 40,
    rounds: Annotated[int, typer.Option(help="Number of runs; the median counts.")] = 3,
    out: Annotated[Path | None, typer.Option(help="Output folder for bench.json.")] = None,
) -> None:
    """Compare loading and training speed with the collator, model and Trainer of transformers.

    Example:  python -m benchmarks pretrain --only trainer --size 2x128 --size 4x256 --steps 12 --rounds 2
    """
    set_up_console()
    from benchmarks.pretrain import run_pretrain_bench

    run_pretrain_bench(only or [], size or ["4x256"], steps, rounds, out)


@bench_app.command("gpu")
def bench_gpu(
    minutes: Annotated[float, typer.Option(help="Time for all parts; the most important run first.")] = 9.0,
    tiny: Annotated[bool, typer.Option("--tiny", help="Tiny models and rows, also for a CPU.")] = False,
    out: Annotated[Path, typer.Option(help="Output folder for gpu.json and gpu.md.")] = Path("gpu"),
) -> None:
    """Measure pretraining on a GPU: speed, MFU, memory, waits, stalls, resuming, and parity with the stock classes.

    Example:  python -m benchmarks gpu --out gpu-h100
    """
    set_up_console()
    from benchmarks.gpu import run_gpu_bench

    run_gpu_bench(minutes, out, is_tiny=tiny)


@bench_app.command("speedrun")
def bench_speedrun(
    data: Annotated[Path | None, typer.Option(help="Run with corpus and tokenizer. Default: the sample.")] = None,
    candidate: Annotated[list[str] | None, typer.Option(help="NAME, or 'NAME: RECIPE KEY=VALUE'; repeatable.")] = None,
    minutes: Annotated[float, typer.Option(help="Budget in CPU minutes of one thread.")] = 10.0,
    operations: Annotated[float | None, typer.Option(help="Budget in operations, instead of minutes.")] = None,
    size: Annotated[str, typer.Option(help="LAYERSxWIDTH of candidates without their own size.")] = "4x256",
    seed: Annotated[list[int] | None, typer.Option(help="Seed; repeatable. Default: 1.")] = None,
    precision: Annotated[str, typer.Option(help="Precision of all candidates: auto, fp32 or bf16.")] = "auto",
    points: Annotated[int, typer.Option(help="Number of evaluations during a run; their time does not count.")] = 20,
    rows: Annotated[int, typer.Option(help="Number of held-out rows for evaluation.")] = 512,
    klue: Annotated[str | None, typer.Option(help="KLUE folder for probes, or malmoi:sample. Default: none.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Probe task; repeatable. Default: ynat, nli, ner, dp.")] = None,
    lr_factor: Annotated[list[float] | None, typer.Option(help="More probes with N times the learning rate.")] = None,
    examples: Annotated[list[int] | None, typer.Option(help="More probes with N examples; repeatable.")] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(help="Candidate that others are compared with; repeatable. Default: trainer, paper, real-small."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Output folder; finished results are not run again.")] = Path("speedrun"),
) -> None:
    """Compare pretraining recipes at equal compute on the same text.

    Example:  python -m benchmarks speedrun --minutes 10 --candidate paper --candidate 'large: paper
    pretrain.model.layers=8'
    """
    set_up_console()
    from benchmarks.speedrun.budget import Budget
    from benchmarks.speedrun.run import Rules, run_speedrun

    budget = Budget("cpu_s", 60 * minutes) if operations is None else Budget("operations", operations)
    rules = Rules(budget, cast(Any, precision), points, rows)
    run_speedrun(
        data, candidate or [], size, seed or [1], rules, klue, out,
        tasks=task or [], lr_factors=lr_factor or [], examples=examples or [], baselines=baseline or [],
    )  # fmt: skip


@bench_app.command("ablations")
def bench_ablations(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Overrides of the recipe, for all models.")
    ] = None,
    recipe: Annotated[str, typer.Option(help="Recipe of all models.")] = "ablations",
    data: Annotated[
        list[str] | None, typer.Option(help="Training text; repeatable. Default: the embedded sample.")
    ] = None,
    unseen: Annotated[
        list[str] | None, typer.Option(help="Text of other sources, for evaluation only; repeatable.")
    ] = None,
    klue: Annotated[str | None, typer.Option(help="Folder of the KLUE files, or malmoi:sample.")] = None,
    operations: Annotated[float, typer.Option(help="Floating-point operations of each pretraining run.")] = 1e14,
    vocabulary: Annotated[
        list[str] | None, typer.Option(help="bpe, klue, malmoi or malmoi-2x; repeatable. Default: all.")
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="plain or pseudonymized; repeatable. Default: both.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Seed; repeatable. Default: 1, 2 and 3.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="KLUE task; repeatable. Default: all.")] = None,
    canaries: Annotated[int, typer.Option(help="Number of planted values per type and rate.")] = 2,
    alternatives: Annotated[int, typer.Option(help="Number of other values that a planted one is ranked among.")] = 255,
    windows: Annotated[int, typer.Option(help="Maximum number of windows per held-out text.")] = 512,
    out: Annotated[Path, typer.Option(help="Output folder; complete models are not trained again.")] = Path(
        "ablations"
    ),
) -> None:
    """Repeat the paper's ablations (Tables 33 to 35): vocabularies and pseudonymization, with seeds and intervals.

    Example:  python -m benchmarks ablations --data news.jsonl --unseen reviews.jsonl --klue klue --operations 1e15
    """
    set_up_console()
    from benchmarks.ablations.experiment import SEEN, UNSEEN, Experiment
    from benchmarks.ablations.run import Amounts, Selection, run_ablations

    inputs = {SEEN: tuple(data or ()), UNSEEN: tuple(unseen or ())}
    experiment = Experiment(recipe, tuple(overrides or ()), inputs, klue, operations, out)
    selection = Selection(vocabulary or [], text or [], seed or [1, 2, 3], task or [])
    run_ablations(experiment, selection, Amounts(canaries, alternatives, windows))


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
