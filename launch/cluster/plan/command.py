"""``malmoi plan``: what pretraining a recipe would take on GPUs that are not at hand. No torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launch.console import PlainConsole, set_up_console
from launch.errors import LaunchError

if TYPE_CHECKING:
    pass


def plan(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A shipped recipe or a .yaml file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Overrides, for example pretrain.steps=500.")
    ] = None,
    nodes: Annotated[list[int] | None, typer.Option(min=1, help="Machines; repeatable. Default: 1.")] = None,
    gpus_per_node: Annotated[int, typer.Option(min=1, help="GPUs of a machine.")] = 8,
    gpu: Annotated[
        list[str] | None, typer.Option(help="v100-16, v100-32, a100-40, a100-80, h100, h200; repeatable. Default: all.")
    ] = None,
    mfu: Annotated[
        list[float] | None,
        typer.Option(help="Share of the peak that is useful work, assumed; repeatable. Default: 0.25 and 0.4."),
    ] = None,
    price_per_hour: Annotated[
        list[float] | None,
        typer.Option(help="Of one GPU: one price, or one for each --gpu. Default: the recipe's, if any."),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write everything to this file.")] = None,
) -> None:
    """Plan a pretraining on GPUs that are not here: memory by engine, days, cost, disk and network. Needs no torch.

    Example:  malmoi plan klue-roberta-base --nodes 1 --nodes 4 --gpu a100-80 --price-per-hour 1.8
    """
    set_up_console()
    from launch.cluster.plan.gpus import GPUS, find_gpu
    from launch.cluster.plan.tables import Choice, Plan, print_plan
    from launch.recipe import load_recipe
    from pretrain.metrics.device_speed import MFU_RANGE

    loaded = load_recipe(recipe, overrides or [])
    settings, names = loaded.pretrain, list(dict.fromkeys(gpu or GPUS))
    _refuse("--mfu", mfu or [], lambda share: 0 < share <= 1, "must be above 0 and at most 1")
    choices = [
        Choice(found, found.precision(settings.engine.precision), price)
        for found, price in zip(map(find_gpu, names), _prices(price_per_hour, len(names)), strict=True)
    ]
    made = Plan.of(loaded, choices, sorted(set(nodes or [1])), gpus_per_node, sorted(set(mfu or MFU_RANGE)))
    print_plan(made, PlainConsole())
    if json_file is not None:
        json_file.write_text(json.dumps(made.as_json(), ensure_ascii=False, indent=1) + "\n", "utf-8")


def _prices(given: list[float] | None, gpus: int) -> list[float | None]:
    """Of an hour of each GPU: those given, or one for all."""
    _refuse("--price-per-hour", given or [], lambda price: 0 <= price < inf, "must be a number from 0 on")
    prices: list[float | None] = [*given] if given else [None]
    if len(prices) not in (1, gpus):
        raise LaunchError(f"--price-per-hour: {len(prices)} prices for {gpus} GPUs; give one, or one for each")
    return prices * (gpus // len(prices))


def _refuse(option: str, values: Sequence[float], is_fine: Callable[[float], bool], rule: str) -> None:
    for value in values:
        if not is_fine(value):
            raise LaunchError(f"{option} {value:g}: {rule}")
