"""``malmoi llm …``: generative models on KLUE. Heavy imports wait until a verb runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer
from typer.core import TyperGroup

from launch.console import PlainConsole, print_table, set_up_console
from launch.errors import LaunchError, require
from launch.llm.judge.commands import mt_bench, total
from launch.llm.kr_eval.commands import export_kr_eval, run_kr_eval

if TYPE_CHECKING:
    from launch.llm.asking.ask import Asking
    from launch.llm.klue.material import Material
    from launch.llm.klue.results import Way

METHODS = ("generation", "likelihood")
TOOLS = "Tools"


class TasksOrTools(TyperGroup):
    """``malmoi llm TASK… --model …`` asks, ``malmoi llm export …`` and the others are tools."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        begins_with_option = args and args[0].startswith("-") and args[0] != "--help"
        return super().parse_args(ctx, ["ask", *args] if begins_with_option else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "", self.commands["ask"], args

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["TASK… --model MODEL [OPTIONS]", f" or  {ctx.command_path} TOOL …"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Shows what a task takes, and the tools."""
        own, self.params = self.params, [*self.commands["ask"].params, *self.params]
        try:
            super().format_help(ctx, formatter)
        finally:
            self.params = own


ABOUT = """Ask generative models the KLUE tasks, and score them as encoders are.

Example:  malmoi llm ynat nli --model openai-api/local/my-model --data malmoi:sample --limit 50 --out runs/asked

The address and the key of openai-api/NAME/… stand in the environment: NAME_BASE_URL and NAME_API_KEY.
"""
export_app = typer.Typer(no_args_is_help=True, help="Write the KLUE tasks for other harnesses.")
llm_app = typer.Typer(cls=TasksOrTools, no_args_is_help=True, help=ABOUT)
llm_app.add_typer(export_app, name="export", rich_help_panel=TOOLS)
llm_app.command("run", rich_help_panel=TOOLS)(run_kr_eval)
llm_app.command("mt-bench", rich_help_panel=TOOLS)(mt_bench)
llm_app.command("total", rich_help_panel=TOOLS)(total)
export_app.command("llm-kr-eval")(export_kr_eval)


@llm_app.command("ask", hidden=True, help=ABOUT)
def ask_tasks(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK…", help="Tasks, or one recipe, whose tasks and data.")],
    model: Annotated[str, typer.Option(help="As Inspect AI names it: openai-api/NAME/MODEL, hf/FOLDER, vllm/NAME …")],
    data: Annotated[str | None, typer.Option(help="Folder of KLUE files, or malmoi:sample.")] = None,
    out: Annotated[Path | None, typer.Option(help="A folder; a run, to stand beside its encoders.")] = None,
    shots: Annotated[int, typer.Option(min=0, help="Solved examples of train in each question.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Examples of each task, drawn by seed.")] = None,
    method: Annotated[str, typer.Option(help="generation, or likelihood (of closed sets, hf/ models).")] = "generation",
    seed: Annotated[int, typer.Option(help="Chooses the shots.")] = 1,
    connections: Annotated[int, typer.Option(min=1, help="Questions at a time; of hf/ the batch.")] = 8,
    attempts: Annotated[int, typer.Option(min=1, help="Most requests for one question.")] = 6,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds of one request.")] = 180,
    first_wait: Annotated[float, typer.Option(min=0, help="Seconds before the second request.")] = 1,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Of an answer. Default: as the task needs.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="0: the same answer each time.")] = 0,
    price_in: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens in.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens out.")] = None,
    device: Annotated[str | None, typer.Option(help="Of hf/ models: cpu, cuda … Default: what there is.")] = None,
    order_check: Annotated[
        int | None, typer.Option(min=1, help="Of hf/ models: has it read the file? So many shuffles.")
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Of a recipe: folder of the run folders.")] = Path("runs"),
) -> None:
    """Ask generative models the KLUE tasks."""
    set_up_console()
    require("malmoi llm", ["inspect_ai"])
    from launch.llm.asking.ask import Asking
    from launch.llm.klue.results import Way

    if method not in METHODS:
        raise LaunchError(f"--method {method}: generation or likelihood")
    prices = None if price_in is None and price_out is None else (price_in or 0.0, price_out or 0.0)
    own = {"device": device} if device and model.startswith("hf/") else {}
    asking = Asking(model, connections, attempts, first_wait, 60.0, timeout, temperature, own)
    way = Way(model, cast(Any, method), shots, seed, prices)
    given = Given(tasks, data, out, runs, shots, limit, seed)
    _ask(given, way, asking, max_tokens, device, order_check)


class Given(NamedTuple):
    """What the command line says of tasks and examples."""

    names: Sequence[str]
    data: str | None
    out: Path | None
    runs: Path
    shots: int
    limit: int | None
    seed: int


def _ask(
    given: Given, way: Way, asking: Asking, max_tokens: int | None, device: str | None, order_check: int | None
) -> None:
    """Run, and print the table, or both of them."""
    from launch.llm.asking.models import refuse_others
    from launch.llm.klue.run import Request, run
    from launch.report.generative import results_table

    if order_check is not None:
        refuse_others(way.model, "--order-check")
    materials, place = _materials(given)
    found = run(materials, Request(way, asking, place, max_tokens, device))
    console = PlainConsole()
    print_table(results_table(found), console)
    if order_check is not None:
        from launch.llm.klue.likelihood import load_scorer
        from launch.llm.klue.order import check_order, order_table

        scorer = load_scorer(way.model, device)
        print_table(order_table([check_order(scorer, material, order_check) for material in materials]), console)
    console.print(f"results: {place / 'finetune'}", soft_wrap=True)


@export_app.command("lm-eval")
def export_lm_eval(
    folder: Annotated[Path, typer.Argument(help="A folder to write.")],
    tasks: Annotated[list[str] | None, typer.Argument(metavar="[TASK…]", help="Default: all eight.")] = None,
    data: Annotated[str, typer.Option(help="Folder of KLUE files, or malmoi:sample.")] = "malmoi:sample",
    shots: Annotated[int, typer.Option(min=0, help="Solved examples of train in each question.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Examples of each task, drawn by seed.")] = None,
    seed: Annotated[int, typer.Option(help="Chooses the shots.")] = 1,
) -> None:
    """Write the tasks for lm-evaluation-harness: YAML, with the questions beside it.

    Closed sets by likelihood (acc_norm is --method likelihood here), the others by exact match of the answer.

    Example:  malmoi llm export lm-eval klue-tasks ynat nli --data klue
    """
    set_up_console()
    from finetune.config import TASK_NAMES
    from launch.llm.klue.lm_eval_tasks import export

    materials, _ = _materials(Given(tasks or TASK_NAMES, data, folder, Path("runs"), shots, limit, seed))
    written = export(materials, folder)
    typer.echo(f"{len(written)} tasks: lm_eval --include_path {folder} --tasks {','.join(p.stem for p in written)}")


def _materials(given: Given) -> tuple[list[Material], Path]:
    """The tasks with their examples, and the folder for results; a recipe's name brings its own of both."""
    from finetune.config import FinetuneConfig, full_name
    from launch.llm.klue.material import find_data, load_material
    from launch.recipe import load_recipe, shipped_recipes

    names, data, out, runs, shots, limit, seed = given
    config: FinetuneConfig | None = None
    chosen = list(names)
    if names[0] in shipped_recipes() or names[0].endswith((".yaml", ".yml")):
        recipe = load_recipe(names[0])
        config, data = recipe.finetune, data or recipe.finetune.data
        chosen, out = list(names[1:]) or list(config.tasks), out or runs / recipe.name
    if data is None or out is None:
        missing = "--data FOLDER (or malmoi:sample)" if data is None else "--out FOLDER"
        raise LaunchError(f"malmoi llm {' '.join(names)}: {missing} is missing; or give a recipe, which has both")
    chosen = list(dict.fromkeys(full_name(name) for name in chosen))
    folder = find_data(data, out)
    return [load_material(name, folder, shots, limit, seed, config) for name in chosen], out
