"""``malmoi bench pretrain``: the loader, training beside transformers' Trainer, and training over sizes and modes.

Without options the token store is invented and sizes suit the device, so anyone can repeat it, and one command measures
a GPU. Ratios carry over to other machines, absolute figures do not. Every run has a process of its own.
"""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from corpus.documents.errors import BadInput
from launch.bench.loading import bench_loading
from launch.bench.pretrain_tables import print_results, write_results
from launch.bench.rounds import version_of
from launch.bench.synthetic import complete_tokenizer, write_synthetic
from launch.bench.trainers import bench_trainers, contest_config
from launch.bench.training import INVENTED_TOKENS, Order, bench_training
from launch.console import PlainConsole

log = logging.getLogger(__name__)

PARTS = ("loader", "trainer", "sizes")
LOADER_BATCHES = 16


def run_pretrain_bench(
    tokens: Path | None,
    tokenizer: Path | None,
    parts: Sequence[str],
    steps: int,
    rounds: int,
    threads: int,
    order: dict[str, Any],
    out: Path | None,
) -> dict[str, Any]:
    """Measure, print tables, and write bench.json and the loss curves into ``out`` if given.

    Args:
        tokens, tokenizer: a token store and the folder it was packed with; both None for an invented one.
        parts: of ``PARTS``; all where there are none.
        steps: of each run beside the Trainer.
        rounds: runs of each side, taken in turns; medians count.
        threads: of each run beside the Trainer.
        order: fields of ``launch.bench.training.Order`` that are not the default.

    Returns:
        what was asked for of "loader", "trainer", "sizes"; "material", "machine", "versions".

    Raises:
        BadInput: an option or a folder cannot be used.
    """
    _refuse_contradictions(tokens, tokenizer, set(parts), steps > 1 and min(rounds, threads) > 0)
    asked = _checked(order)
    wanted = tuple(parts) or PARTS
    material = "invented words" if tokens is None else "store given"
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        scratch = Path(folder)
        if tokens is None or tokenizer is None:
            tokens, tokenizer = write_synthetic(scratch / "invented", asked.vocab_size, INVENTED_TOKENS)
            complete_tokenizer(tokenizer)
        results: dict[str, Any] = {
            "material": material,
            "machine": {"python": platform.python_version(), "architecture": platform.machine()},
            "versions": {name: version_of(name) for name in ("torch", "transformers", "numpy")},
        }
        if "loader" in wanted:
            log.info("loading and masking")
            results["loader"] = bench_loading(tokens, tokenizer, 512, LOADER_BATCHES, max(3, rounds))
        if "trainer" in wanted:
            log.info("training beside the Trainer: %d runs of %d steps", 2 * rounds, steps)
            config = contest_config(steps)
            results["trainer"] = bench_trainers(tokens, tokenizer, config, rounds, threads, scratch / "trainer")
        if "sizes" in wanted:
            log.info("training over sizes and modes")
            paths = {"tokens": str(tokens), "tokenizer": str(tokenizer)}
            results["sizes"] = bench_training(asked.model_copy(update=paths))
        print_results(results, PlainConsole())
        if out:
            write_results(results, out)
    return dict(json.loads(json.dumps(results)))


def _refuse_contradictions(tokens: Path | None, tokenizer: Path | None, parts: set[str], numbers_fit: bool) -> None:
    unknown = sorted(parts - set(PARTS))
    if unknown:
        raise BadInput(f"--only {unknown[0]}: no such part; parts are {', '.join(PARTS)}")
    if (tokens is None) != (tokenizer is None):
        raise BadInput("--tokens and --tokenizer belong together: give both, or none for an invented store")
    if not numbers_fit:
        raise BadInput("--steps must be at least 2, --rounds and --threads at least 1")


def _checked(order: dict[str, Any]) -> Order:
    try:
        return Order.model_validate(order)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise BadInput(f"{name} of the sizes: {first['msg']} (got {first['input']!r})") from None
