"""The ``malmoi`` command: one verb per stage, and tools. Heavy imports wait until a verb runs."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table
from typer.core import TyperGroup

from launch.cluster.commands import Overrides, launch_on_cluster, show_status
from launch.console import PlainConsole, ToolsOrDefault, print_json, run_app, set_up_console
from launch.demo.page import show_page
from launch.errors import LaunchError
from launch.pii.commands import pii_app
from launch.tools.benchmark import benchmark_app
from launch.tools.compare import compare_results, ensemble
from launch.tools.embed import encode, index, search
from launch.tools.init import init
from launch.tools.llm import llm_app
from launch.tools.predict import predict
from launch.tools.push import push
from launch.tools.score import export_task_predictions, model_app, score_predictions
from launch.tools.serve import serve
from launch.tools.tokenizers import extend_tokenizer, measure_tokenizers

ABOUT = """Pretrain Korean language models from raw text and score them on the KLUE tasks.

Example:  malmoi run smoke        (embedded sample, a few minutes on two cores)
"""
NEEDS = {"text": "text", "klue": "KLUE", "gpu": "GPUs"}
STAGES, TOOLS, STATUS = "Pipeline stages", "Tools", "Status and planning"
WITHOUT_LOG = ("pii", "score", "recipes", "tasks")  # verbs that print results and no log lines
STAGE_VERBS = (  # in pipeline order: verb, purpose, example
    ("run", "Run all stages in order, from raw text to the report.", "malmoi run smoke"),
    ("sample", "Write the embedded sample: invented Korean documents and KLUE files.", "malmoi sample smoke"),
    ("corpus", "Clean, pseudonymize and decontaminate text.", "malmoi corpus smoke corpus.inputs=news/*.jsonl.gz"),
    ("tokenizer", "Train a vocabulary.", "malmoi tokenizer smoke tokenizer.vocab_size=8000"),
    ("pack", "Encode the corpus into the token store.", "malmoi pack smoke"),
    ("pretrain", "Pretrain a model and export it.", "torchrun --nproc-per-node 2 -m launch pretrain smoke"),
    ("finetune", "Fine-tune and score the KLUE tasks.", "malmoi finetune smoke finetune.tasks=ynat,klue-ner"),
    (
        "search",
        "Search hyperparameters, then train and score the best settings.",
        "malmoi search smoke finetune.search.method=random finetune.search.trials=20",
    ),
    ("embed", "Train and score sentence embeddings.", "malmoi embed smoke embed.lr=3e-4"),
    ("report", "Write the report of a run as Markdown, HTML, CSV and LaTeX.", "malmoi report smoke"),
)
STAGE_TOOLS: dict[str, dict[str, Callable[..., None]]] = {
    "tokenizer": {"stats": measure_tokenizers, "extend": extend_tokenizer},
    "finetune": {"export": export_task_predictions},
    "embed": {"encode": encode, "index": index, "search": search},
}


MOVED = {"bench": "python -m benchmarks NAME", "plan": "--dry-run after a verb", "check": "malmoi doctor"}


class Verbs(TyperGroup):
    """All verbs, stages first in pipeline order."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in MOVED:
            raise LaunchError(f"malmoi {args[0]}: moved; use {MOVED[args[0]]}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        order = [verb for verb, *_ in STAGE_VERBS]
        return sorted(super().list_commands(ctx), key=lambda name: order.index(name) if name in order else len(order))


class StageOrTools(ToolsOrDefault):
    """``malmoi tokenizer stats …`` runs a tool; with any other word, ``malmoi tokenizer RECIPE`` runs the stage."""

    default, usage = "build", "RECIPE [KEY=VALUE]… [OPTIONS]"

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        tools = [name for name in self.commands if name != self.default]
        close = difflib.get_close_matches(args[0], tools, n=1, cutoff=0.7)
        if close and args[0] not in (*self.commands, *_recipe_names()):
            meant = f"`malmoi {ctx.info_name} {close[0]}`"
            raise LaunchError(f"{ctx.info_name} {args[0]}: no tool and no recipe of that name; did you mean {meant}?")
        return super().resolve_command(ctx, args)


def _recipe_names() -> list[str]:
    return [path.stem for path in sorted((Path(__file__).parent / "recipes").glob("*.yaml"))]


RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE", help="A shipped recipe (see `malmoi recipes`) or a .yaml file.", autocompletion=_recipe_names
    ),
]


def _require_file_system(runs: Path) -> Path:
    """Refuse URLs, because a run renames, locks and maps files; ``Path`` has turned s3:// into s3:/."""
    if re.match(r"[A-Za-z][\w+.-]+:/", str(runs)):
        raise LaunchError(f"--runs {runs}: a run needs a file system; copy finished stages with a tool such as rclone")
    return runs


RUNS_HELP = "Directory for run outputs; each run gets a subdirectory."
Runs = Annotated[Path, typer.Option("--runs", help=RUNS_HELP, callback=_require_file_system)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and any problem. No files are written.")]

app = typer.Typer(cls=Verbs, help=ABOUT, no_args_is_help=True, pretty_exceptions_enable=False)


def _stage_command(verb: str) -> Callable[..., None]:
    def command(
        recipe: RecipeName,
        overrides: Overrides = None,
        runs: Runs = Path("runs"),
        dry_run: DryRun = False,
    ) -> None:
        if recipe == "push":
            raise LaunchError(f"{verb} push: use `malmoi push FOLDER NAME/REPOSITORY`")
        from launch.conduct import conduct

        conduct(verb, recipe, overrides or [], runs, dry_run=dry_run, on_terminal=True)

    return command


def _pretrain_command(
    recipe: RecipeName,
    overrides: Overrides = None,
    runs: Runs = Path("runs"),
    dry_run: DryRun = False,
    gpus: Annotated[
        str | None, typer.Option(help="With --dry-run: days and memory on GPUs such as 8xa100-80 or 32xh100.")
    ] = None,
) -> None:
    if gpus is None:
        return _stage_command("pretrain")(recipe, overrides, runs, dry_run)
    if not dry_run:
        raise LaunchError(f"--gpus {gpus}: plans a training on other GPUs; add --dry-run")
    from launch.checks.gpu_plan import plan_on_gpus, show_gpu_plan
    from launch.recipe import load_recipe

    show_gpu_plan(plan_on_gpus(load_recipe(recipe, overrides or []), gpus))


for _verb, _purpose, _example in STAGE_VERBS:
    _command = _pretrain_command if _verb == "pretrain" else _stage_command(_verb)
    _help = f"{_purpose}\n\nExample:  {_example}"
    if _verb in STAGE_TOOLS:
        _group = typer.Typer(cls=StageOrTools, no_args_is_help=True, help=_help)
        _group.command("build", hidden=True, help=_help)(_command)
        for _name, _tool in STAGE_TOOLS[_verb].items():
            _group.command(_name, rich_help_panel="Tools")(_tool)
        app.add_typer(_group, name=_verb, rich_help_panel=STAGES)
    else:
        app.command(_verb, rich_help_panel=STAGES, help=_help)(_command)
for _name, _group in {"pii": pii_app, "model": model_app, "llm": llm_app, "benchmark": benchmark_app}.items():
    app.add_typer(_group, name=_name, rich_help_panel=TOOLS)
app.command("launch", rich_help_panel=STAGES)(launch_on_cluster)
app.command("init", rich_help_panel=STATUS)(init)
app.command("predict", rich_help_panel=TOOLS)(predict)
app.command("score", rich_help_panel=TOOLS)(score_predictions)
app.command("compare", rich_help_panel=TOOLS)(compare_results)
app.command("push", rich_help_panel=TOOLS)(push)
app.command("ensemble", rich_help_panel=TOOLS)(ensemble)
app.command("demo", rich_help_panel=TOOLS)(show_page)
app.command("serve", rich_help_panel=TOOLS)(serve)
app.command("status", rich_help_panel=STATUS)(show_status)


@app.command(rich_help_panel=STATUS)
def recipes(
    name: Annotated[str | None, typer.Argument(help="Recipe to print.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list or the recipe as JSON.")] = False,
) -> None:
    """List the shipped recipes with purpose, cost and requirements, or print one.

    Example:  malmoi recipes smoke > mine.yaml
    """
    from launch.recipe import load_recipe, locate_recipe

    if name is not None and as_json:
        return print_json(load_recipe(name).model_dump(mode="json", exclude_unset=True))
    if name is not None:
        return typer.echo(locate_recipe(name).read_text("utf-8"), nl=False)
    by_name = {shipped: load_recipe(shipped) for shipped in _recipe_names()}
    if as_json:
        facts = {"about", "cost", "needs"}
        return print_json({"recipes": [{"name": n, **r.model_dump(include=facts)} for n, r in by_name.items()]})
    table = Table(Column("recipe", no_wrap=True), Column("purpose", overflow="fold"), "cost", "needs")
    for shipped, recipe in by_name.items():
        table.add_row(shipped, recipe.about, recipe.cost, ", ".join(NEEDS[need] for need in recipe.needs) or "–")
    PlainConsole().print(table)


@app.command(rich_help_panel=STATUS)
def tasks() -> None:
    """List the KLUE tasks: output, metrics (main metric first), data folder and the paper's dev score.

    Example:  malmoi tasks
    """
    from finetune.registry import TASKS
    from finetune.task_names import SHORT_NAMES

    table = Table("task", "or", "predicts", "metrics", "folder", "paper")
    for short, name in SHORT_NAMES.items():
        task = TASKS[name]
        score = f"{task.published.dev_scores['klue/roberta-base'][task.metrics[0]]:.2f}"  # Table 36
        table.add_row(name, short, task.predicts, ", ".join(task.metrics), task.files.folder, score)
    PlainConsole().print(table)


@app.command(rich_help_panel=STATUS)
def doctor(
    cluster: Annotated[bool, typer.Option("--cluster", help="Check all nodes; start it with torchrun.")] = False,
    runs: Annotated[Path | None, typer.Option("--runs", help="Read all token stores of this run directory.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks of this machine as JSON.")] = False,
) -> None:
    """Check this machine and list the recipes that it can run; with --cluster, check all nodes before training.

    Example:  malmoi doctor
    """
    if as_json and (cluster or runs):
        raise LaunchError("doctor --json: prints the checks of this machine; leave out --cluster and --runs")
    if cluster:
        from launch.cluster.node_checks import examine_cluster

        if not examine_cluster(runs or Path("runs")):
            raise typer.Exit(2)
        return
    if runs:
        from pretrain.pack.store import check_files

        stores = [check_files(meta.parent) for meta in sorted(runs.glob("*/tokens/meta.json"))]
        return typer.echo(f"token stores in {runs} that are as they were packed: {len(stores)}")
    from launch.checks.doctor import examine

    if not examine(as_json):
        raise typer.Exit(1)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from launch.manifest import installed_version

        typer.echo(f"malmoi {installed_version('malmoi')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself."""
    if context.invoked_subcommand not in WITHOUT_LOG:
        set_up_console()


def main() -> None:
    """Entry point of the command."""
    # the deepspeed launcher prepends --local_rank=N; the environment has the same number
    sys.argv[1:] = [argument for argument in sys.argv[1:] if not argument.startswith("--local_rank=")]
    run_app(app, "malmoi")
