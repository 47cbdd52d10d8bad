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
from launch.commands import (
    export_task_predictions,
    measure_tokenizers,
    push_corpus,
    push_tokenizer,
    score_predictions,
    write_task_features,
)
from launch.console import rank, set_up_console, show_any_character, world_size
from launch.errors import LaunchError, exit_code, is_for_user, one_sentence
from launch.extras import explain_missing_module
from launch.pii.commands import pii_app

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
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would stop the run, and the plan; write nothing.")]
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

        conduct(verb, recipe, overrides or [], runs, dry_run=dry_run, on_terminal=True)

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


finetune_app.command("features")(write_task_features)
finetune_app.command("export")(export_task_predictions)
corpus_app.command("push")(push_corpus)
tokenizer_app.command("push")(push_tokenizer)
tokenizer_app.command("stats")(measure_tokenizers)
app.command("score")(score_predictions)


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
        app()
    except LaunchError as error:
        _refuse(error)
    except ModuleNotFoundError as error:
        explained = explain_missing_module(next(iter(sys.argv[1:]), "malmoi"), error)
        if explained is None:
            raise
        _refuse(explained)
    except Exception as error:
        if not is_for_user(error):
            raise
        _refuse(error, exit_code(error))


def _refuse(error: Exception, code: int = 2) -> None:
    prefix = f"[rank {rank()}] " if world_size() > 1 else ""
    print(visible_lines(f"malmoi: {prefix}{one_sentence(error)}"), file=sys.stderr)
    sys.exit(code)
