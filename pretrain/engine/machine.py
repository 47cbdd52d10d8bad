"""What a recipe leaves to the machine: the precision before anything is built, the rest with the model (``trial``).

The identity of a run keeps the recipe's words ("auto"), so it may move to another machine; what it ran with stands in
engine.json, and a run that goes on in another precision says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpus.documents.accelerator import choose_precision, device_name
from corpus.documents.atomic_files import digest_matches, read_json_object
from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import fit_micro_batch
from pretrain.engine.start import choose_engine
from pretrain.engine.world import World

log = logging.getLogger(__name__)

PRECISION_KEY = "pretrain.engine.precision"


def read_settled(path: Path) -> dict[str, Any]:
    """What an earlier start of this run settled, as ``engine.json`` holds it; empty where there was none."""
    advice = "delete this file; it is written again"
    found = read_json_object(path, advice) if path.is_file() else {}
    if "settled" in found and not digest_matches(found):
        raise BadInput(f"{path}: not as it was written (its sha256 differs); {advice}")
    settled: dict[str, Any] = found.get("settled", {})
    return settled


def settle(config: PretrainConfig, world: World, before: Mapping[str, Any]) -> PretrainConfig:
    """The configuration with its precision settled; all processes call it and get the same.

    ``before``: of ``read_settled``. BadInput: this machine cannot do what is asked.
    """
    choice = world.in_first(lambda: choose_precision(config.engine.precision, PRECISION_KEY, world.device))
    settled = config.replaced("engine", precision=choice.precision)
    choose_engine(settled, world, 0)  # refuses what the processes cannot do
    precision = settled.engine.precision
    log.info("precision %s: %s", precision, choice.reason)
    if world.is_first and choice.warning:
        log.warning("%s", choice.warning)
    if before.get("precision", precision) != precision:
        log.info("this run was in %s until now and goes on in %s", before["precision"], precision)
    return settled


def describe_settled(config: PretrainConfig, world: World) -> dict[str, Any]:
    """What ``settle`` made of the recipe's words, and for which machine, for ``engine.json``."""
    settings = {"precision": config.engine.precision, "micro_batch": fit_micro_batch(config, world.size)}
    return settings | {
        "compile": config.engine.compile is True, "device": device_name(world.device), "processes": world.size,
    }  # fmt: skip
