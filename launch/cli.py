"""The ``malmoi`` command: one verb per stage, small tools beside them. Heavy imports wait until a verb runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from corpus.documents.escaping import visible_lines
from launch.bench.commands import bench_app
from launch.console import rank, set_up_console, show_any_character, world_size
from launch.errors import LaunchError, exit_code, is_for_user, one_sentence
from launch.guard import refuse_foreign_packages
from launch.pii.commands import pii_app
from launch.push import push_corpus, push_tokenizer

ABOUT = """Raw Korean text in; a pseudonymized corpus, a vocabulary, a pretrained encoder and its KLUE scores out.

Try it:  malmoi run smoke        (embedded sample, a few minutes on two cores)
"""


class StageOrTools(TyperGroup):
    """``malmoi tokenizer RECIPE`` runs the stage, ``malmoi tokenizer stats …`` a tool: unknown words are recipes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        begins_with_option = args and args[0].startswith("-") and args[0] != "--help"
        return super().parse_args(ctx, ["build", *args] if begins_with_option else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = args and args[0] in self.commands
        return super().resolve_command(ctx, args if known else ["build", *args])


TASKS_HELP = "ynat, klue-sts, klue-nli, klue-ner, klue-re, klue-dp, klue-mrc, wos."

app = typer.Typer(help=ABOUT, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
CORPUS_HELP = """Clean, pseudonymize, decontaminate text: corpus RECIPE [KEY=VALUE]… Or one of the tools below.

Example:  malmoi corpus smoke corpus.inputs=news/*.jsonl.gz
"""
TOKENIZER_HELP = """Train a vocabulary: tokenizer RECIPE [KEY=VALUE]… Or one of the tools below.

Example:  malmoi tokenizer smoke tokenizer.vocab_size=8000
"""
FINETUNE_HELP = """Train and score the KLUE tasks: finetune RECIPE [KEY=VALUE]… Or one of the tools below.

Example:  malmoi finetune smoke finetune.tasks=ynat,klue-ner
"""
corpus_app = typer.Typer(cls=StageOrTools, no_args_is_help=True, help=CORPUS_HELP)
tokenizer_app = typer.Typer(cls=StageOrTools, no_args_is_help=True, help=TOKENIZER_HELP)
finetune_app = typer.Typer(cls=StageOrTools, no_args_is_help=True, help=FINETUNE_HELP)
app.add_typer(corpus_app, name="corpus")
app.add_typer(tokenizer_app, name="tokenizer")
app.add_typer(finetune_app, name="finetune")
app.add_typer(pii_app, name="pii")
app.add_typer(bench_app, name="bench")

RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="A shipped recipe's name or a .yaml file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]…", help="Overrides, for example pretrain.steps=500."),
]
Runs = Annotated[Path, typer.Option("--runs", help="Folder that holds the run folders.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the resolved recipe and the plan; write nothing.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Log more.")]


def _stage_command(verb: str, purpose: str, example: str) -> Callable[..., None]:
    def command(
        recipe: RecipeName,
        overrides: Overrides = None,
        runs: Runs = Path("runs"),
        dry_run: DryRun = False,
        verbose: Verbose = False,
    ) -> None:
        set_up_console(verbose=verbose)
        from launch.conduct import conduct

        conduct(verb, recipe, overrides or [], runs, dry_run=dry_run)

    command.__doc__ = f"{purpose}\n\nExample:  {example}"
    return command


STAGE_VERBS = (
    ("run", "Do all stages in order, from text to report.", "malmoi run smoke"),
    ("sample", "Write the embedded sample: invented Korean documents and KLUE files.", "malmoi sample smoke"),
    ("pack", "Encode the corpus into the token store.", "malmoi pack smoke"),
    ("pretrain", "Pretrain and export the model.", "torchrun --nproc-per-node 2 -m launch pretrain smoke"),
    ("report", "Write report.md and report.html.", "malmoi report smoke"),
)
for _verb, _purpose, _example in STAGE_VERBS:
    app.command(_verb)(_stage_command(_verb, _purpose, _example))
corpus_app.command("build", hidden=True)(
    _stage_command("corpus", "Clean text.", "malmoi corpus smoke corpus.inputs=news/*.jsonl.gz")
)
tokenizer_app.command("build", hidden=True)(
    _stage_command("tokenizer", "Train the vocabulary.", "malmoi tokenizer smoke tokenizer.vocab_size=8000")
)
finetune_app.command("build", hidden=True)(
    _stage_command("finetune", "Train and score the KLUE tasks.", "malmoi finetune smoke finetune.tasks=ynat,klue-ner")
)


@finetune_app.command("features")
def finetune_features(
    task: Annotated[str, typer.Argument(help=TASKS_HELP)],
    file: Annotated[Path, typer.Argument(help="An official file of the task, plain or .zst.")],
    tokenizer: Annotated[str, typer.Argument(help="Tokenizer folder, Hub name or vocab.txt.")],
    output: Annotated[Path, typer.Argument(help="A .jsonl file.")],
    protocol: Annotated[str, typer.Option(help="malmoi or klue-baseline.")] = "malmoi",
    max_tokens: Annotated[int | None, typer.Option(min=16, help="Longest input. Default: the published one.")] = None,
) -> None:
    """Write what a model sees of each example, and what it is to learn, as one JSON line.

    Example:  malmoi finetune features klue-ner klue-ner-v1.1_dev.tsv klue/bert-base ner.jsonl --protocol klue-baseline
    """
    set_up_console()
    from launch.tools import write_task_features

    write_task_features(task, file, tokenizer, output, protocol, max_tokens)


@finetune_app.command("export")
def finetune_export(
    task: Annotated[str, typer.Argument(help=TASKS_HELP)],
    official: Annotated[Path, typer.Argument(help="An official file of the task, with or without labels.")],
    predictions: Annotated[Path, typer.Argument(help="JSON lines with guid and prediction, or one JSON map.")],
    output: Annotated[Path, typer.Argument(help="The official file again, predictions in place of labels.")],
) -> None:
    """Write predictions in the layout of an official file, such as a test file; every example needs one.

    Example:  malmoi finetune export ynat ynat-v1.1_test.json predictions.jsonl ynat-predicted.json
    """
    set_up_console()
    from launch.tools import export_task_predictions

    export_task_predictions(task, official, predictions, output)


corpus_app.command("push")(push_corpus)
tokenizer_app.command("push")(push_tokenizer)


@tokenizer_app.command("stats")
def tokenizer_stats(
    tokenizer: Annotated[Path, typer.Argument(help="Tokenizer folder or vocab.txt.")],
    texts: Annotated[list[Path], typer.Argument(help="Text or .jsonl files, .gz and .zst allowed.")],
    others: Annotated[list[Path] | None, typer.Option("--with", help="Another one, side by side; repeatable.")] = None,
    gold: Annotated[list[Path] | None, typer.Option(help="KLUE-DP file: boundaries that people set.")] = None,
    out: Annotated[list[Path] | None, typer.Option(help="Write .md, .json or .png (.svg, .pdf); repeatable.")] = None,
) -> None:
    """Measure tokenizers on text: paper Table 35, unknown words, morpheme boundaries.

    Example:  malmoi tokenizer stats runs/smoke/tokenizer news.txt --with klue/vocab.txt --out compared.md
    """
    set_up_console()
    from launch.tools import print_tokenizer_statistics

    print_tokenizer_statistics([tokenizer, *(others or [])], texts, gold or [], out or [])


@app.command()
def score(
    task: Annotated[str, typer.Argument(help=TASKS_HELP)],
    gold: Annotated[Path, typer.Argument(help="Official file of the task, plain or .zst; leave it out for our own.")],
    predictions: Annotated[
        Path | None,
        typer.Argument(help="JSON lines with guid, prediction (KLUE-RE: scores), or one JSON map guid to prediction."),
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Resamples behind the intervals; 0: none.")] = 200,
    tables: Annotated[bool, typer.Option("--tables", help="Print figures by class or question type too.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write everything to this file.")] = None,
) -> None:
    """Score anybody's predictions with the metrics of the KLUE paper, with 95 % intervals; needs no torch.

    A predictions.jsonl of this project holds its golds, so it may stand alone.

    Example:  malmoi score klue-nli klue-nli-v1.1_dev.json mine.jsonl --tables
    """
    from launch.tools import print_scores

    print_scores(task, gold if predictions else None, predictions or gold, samples, tables, json_file)


@app.command()
def doctor() -> None:
    """Check this machine: Python, packages, cores, memory, disk, GPU, DeepSpeed, dictionary, two processes.

    Example:  malmoi doctor
    """
    set_up_console()
    from launch.doctor import examine

    if not examine():
        raise typer.Exit(1)


def main() -> None:
    """Entry point: bad input gets one sentence and exit code 2, our own bugs get their traceback."""
    # the deepspeed launcher adds --local_rank=N in front; the environment says the same
    sys.argv[1:] = [argument for argument in sys.argv[1:] if not argument.startswith("--local_rank=")]
    show_any_character()
    try:
        refuse_foreign_packages()
        app()
    except LaunchError as error:
        _refuse(error)
    except Exception as error:
        if not is_for_user(error):
            raise
        _refuse(error, exit_code(error))


def _refuse(error: Exception, code: int = 2) -> None:
    prefix = f"[rank {rank()}] " if world_size() > 1 else ""
    print(visible_lines(f"malmoi: {prefix}{one_sentence(error)}"), file=sys.stderr)
    sys.exit(code)
