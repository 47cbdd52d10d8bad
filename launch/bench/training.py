"""Training measured over model sizes, packing and compiling, on the device at hand: tokens/s, MFU, memory, a profile.

``python -m launch.bench.training '{"sizes": ["base"]}'`` needs no corpus, network or DeepSpeed: the store is invented
where none is named. It drives the loop and the meter of pretraining; the first of two intervals warms up, the second
counts, and the device is waited for at their ends only. Price: no checkpoints, no measuring.
"""

from __future__ import annotations

import gc
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import torch
from pydantic import BaseModel, Field

from corpus.documents.errors import BadInput
from launch.bench.fresh import report_measured, run_fresh
from launch.bench.kernels import Profiler
from launch.bench.pretrain_tables import print_sizes
from launch.bench.synthetic import write_synthetic
from launch.console import PlainConsole
from pretrain.batches import TrainingBatches
from pretrain.config import PretrainConfig
from pretrain.engine import start_engine
from pretrain.flops import flops_by_phase, peak_flops
from pretrain.interruption import StopRequest
from pretrain.isolation import is_isolated, isolate_documents
from pretrain.loop import Watch, train
from pretrain.masking import describe_pieces
from pretrain.meter import Meter
from pretrain.model import PretrainingModule
from pretrain.networks import build_network
from pretrain.split import split_rows
from pretrain.store import TokenStore, open_store, read_pieces
from pretrain.world import World, join_world

log = logging.getLogger(__name__)

SIZES: dict[str, dict[str, int]] = {  # paper Table 31, and one for laptops
    "tiny": {"layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024},
    "small": {"layers": 6, "hidden": 768, "heads": 12, "intermediate": 3072},
    "base": {"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072},
    "large": {"layers": 24, "hidden": 1024, "heads": 16, "intermediate": 4096},
}
INVENTED_TOKENS = 4_000_000
FIGURES = {  # of a row, by their names in metrics.jsonl
    "tokens_per_s": "tokens_per_second",
    "mfu": "mfu",
    "memory_gib": "memory_gib",
    "data_wait_share": "data_wait_share",
}


class Order(BaseModel, frozen=True, extra="forbid"):
    """What to measure; a default of None depends on the device: one tiny model on a CPU, all sizes on a GPU."""

    tokens: str | None = Field(None, description="Folder of a token store; None: an invented one.")
    tokenizer: str | None = Field(None, description="The folder the store was packed with.")
    vocab_size: int = Field(32_000, gt=10, description="Of the invented vocabulary.")
    sizes: tuple[Literal["tiny", "small", "base", "large"], ...] | None = Field(None, description="See SIZES.")
    packings: tuple[Literal["blocks", "documents"], ...] = Field(
        ("blocks", "documents"), description="See pretrain.packing."
    )
    compile: tuple[bool, ...] | None = Field(None, description="The first one takes every micro-batch.")
    micro_batches: tuple[int, ...] | None = Field(None, description="Tried in order until memory is full.")
    accumulation: int = Field(4, gt=0, description="Micro-batches of a step: 2,048 rows on 8 GPUs are 4 of 64.")
    length: int | None = Field(None, ge=8, le=512, description="Tokens per row.")
    precision: Literal["fp32", "bf16"] | None = Field(None, description="See pretrain.precision.")
    steps: int = Field(5, gt=0, description="Steps on the clock, and as many before it runs.")
    profiled_steps: int = Field(0, ge=0, description="Steps behind them under torch.profiler, at the best batch.")
    peak_tflops: float | None = Field(None, gt=0, description="For the MFU of devices that are not in the table.")

    def on(self, device: torch.device) -> Order:
        """Without None where the device decides."""
        is_gpu = device.type == "cuda"
        chosen = {
            "sizes": ("small", "base", "large") if is_gpu else ("tiny",),
            "compile": (False, True) if is_gpu else (False,),
            "micro_batches": (16, 32, 64, 128, 256, 512) if is_gpu else (8,),
            "length": 512 if is_gpu else 128,
            "precision": "bf16" if is_gpu else "fp32",
        }
        return self.model_copy(update={name: value for name, value in chosen.items() if getattr(self, name) is None})


class Ground(NamedTuple):
    """What all cells have in common; files of a run go into ``folder``."""

    store: TokenStore
    vocabulary: list[str]
    world: World
    folder: Path


class ProfilingMeter(Meter):
    """A meter that starts a profile behind the interval on the clock."""

    profiler: Profiler | None = None
    starts_behind = 0

    def write(self, step: int) -> None:
        super().write(step)
        if self.profiler and step == self.starts_behind:
            self.profiler.start()


class NeverDue:
    """Stands where the checkpoints do."""

    def due(self, step: int) -> bool:
        return False


def bench_training(order: Order) -> dict[str, Any]:
    """``measure_training`` in a fresh process."""
    return run_fresh("launch.bench.training", order.model_dump(mode="json"), "the training bench")


def measure_training(order: Order) -> dict[str, Any]:
    """Measure every cell of the order.

    Returns:
        "device", "precision", "length", "peak_tflops", and "rows": size, packing, compile, micro_batch,
        "tokens_per_s", "mfu" (None without a known peak), "memory_gib" (peak; allocated on a GPU, resident on a CPU),
        "data_wait_share", and "profile" where one was asked for; or "failed", saying why.
    """
    with TemporaryDirectory(prefix="malmoi-bench-") as folder, join_world() as world:
        order = order.on(world.device)
        if order.tokens is None or order.tokenizer is None:
            paths = write_synthetic(Path(folder) / "invented", order.vocab_size, INVENTED_TOKENS)
        else:
            paths = Path(order.tokens), Path(order.tokenizer)
        ground = Ground(open_store(*paths), read_pieces(paths[1]), world, Path(folder))
        name = torch.cuda.get_device_name() if world.device.type == "cuda" else "CPU"
        rows = []
        for row in measure_cells(order, ground):
            log.warning("%s", {key: value for key, value in row.items() if key != "profile"})
            rows.append(row)
    return {
        "device": name,
        "precision": order.precision,
        "length": order.length,
        "accumulation": order.accumulation,
        "peak_tflops": order.peak_tflops or (peak_flops(name, str(order.precision)) or 0) / 1e12 or None,
        "rows": rows,
        "torch": torch.__version__,
    }


def measure_cells(order: Order, ground: Ground) -> Iterator[dict[str, Any]]:
    """Every size and packing: all micro-batches in the first mode of compiling, the best one in the others."""
    assert order.sizes and order.compile and order.micro_batches  # settled by ``Order.on``
    for size, packing in product(order.sizes, order.packings):
        best: dict[str, Any] = {}
        for number, compiled in enumerate(order.compile):
            tried = order.micro_batches if number == 0 else (best["micro_batch"],) if best else ()
            for micro_batch in tried:
                row = {"size": size, "packing": packing, "compile": compiled, "micro_batch": micro_batch}
                row |= _try_cell(cell_config(order, row), ground)
                yield row
                if "failed" in row:
                    break  # larger ones need more memory still
                if not best or row["tokens_per_s"] > best["tokens_per_s"]:
                    best = row
        if best and order.profiled_steps:
            found = _try_cell(cell_config(order, best, order.profiled_steps), ground)
            best["profile"] = found.get("profile") or found["failed"]


def cell_config(order: Order, row: dict[str, Any], profiled_steps: int = 0) -> PretrainConfig:
    """Settings of a run that neither measures nor saves; ``row`` holds size, packing, compile and micro_batch."""
    steps = 2 * order.steps + profiled_steps
    fields = {
        "sequence_length": order.length, "packing": row["packing"], "compile": row["compile"],
        "precision": order.precision, "micro_batch": row["micro_batch"], "engine": "plain",
        "global_batch": row["micro_batch"] * order.accumulation, "steps": steps, "log_every": order.steps,
        "measure_every": steps + 1, "peak_tflops": order.peak_tflops,
    }  # fmt: skip
    return PretrainConfig.model_validate(SIZES[row["size"]] | fields)


def _try_cell(config: PretrainConfig, ground: Ground) -> dict[str, Any]:
    """The figures of a cell, or why there are none; one cell that fails does not end the others."""
    _forget(ground.world.device)
    try:
        return measure_cell(config, ground)
    except torch.OutOfMemoryError:
        return {"failed": "out of memory"}
    except (RuntimeError, NotImplementedError, BadInput) as error:
        log.exception("a cell failed")
        return {"failed": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}


def measure_cell(config: PretrainConfig, ground: Ground) -> dict[str, Any]:
    """Train for two intervals and return the figures of the second; a profile of the steps behind, if there are any."""
    store, vocabulary, world, folder = ground
    network = build_network(config, len(vocabulary), store.meta["special_ids"])
    if config.packing == "documents" and not is_isolated(network):
        isolate_documents(network)
    pieces = describe_pieces(vocabulary, store.meta["special_ids"])
    batches = TrainingBatches(split_rows(store, config), pieces, config, 0, 1, config.micro_batch)
    flops = flops_by_phase(batches, config, len(vocabulary))[0]
    engine = start_engine(config, PretrainingModule(network), world)
    never: Any = NeverDue()
    path = folder / "metrics.jsonl"
    path.unlink(missing_ok=True)
    with closing(ProfilingMeter(path, config, world, (0, None), lambda step: flops, batches.names_of_step)) as meter:
        if config.steps > 2 * config.log_every:
            meter.profiler, meter.starts_behind = Profiler(world.device), 2 * config.log_every
        train(engine, batches, Watch(meter, never, dict, StopRequest()), config, world, 1)
    timed = json.loads(path.read_text("utf-8").splitlines()[1])
    figures = {ours: timed.get(theirs) for ours, theirs in FIGURES.items()} | {"flops_per_token": flops}
    return figures | ({"profile": meter.profiler.stop()} if meter.profiler else {})


def _forget(device: torch.device) -> None:
    """Give memory and compiled code of the cell before back."""
    if "torch._dynamo" in sys.modules:  # its import takes seconds
        torch._dynamo.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """What the fresh process does."""
    logging.basicConfig(level=logging.WARNING)
    found = measure_training(Order.model_validate(order))
    print_sizes(found, PlainConsole(stderr=True))  # for who started the module by hand
    return found


if __name__ == "__main__":
    report_measured(carry_out)
