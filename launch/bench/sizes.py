"""Training measured over model sizes, packing and compiling, on the device at hand: tokens/s, MFU, memory.

Every cell is a fresh process that drives the loop and the meter of pretraining on the invented store: the first of two
intervals warms up, the second counts, and the device is waited for at their ends only.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

import torch
from transformers import PreTrainedModel

from corpus.documents.errors import BadInput
from launch.bench.timing import run_fresh
from launch.console import Table, figures
from launch.errors import LaunchError
from pretrain.config import PretrainConfig, in_sections
from pretrain.engine.start import start_engine
from pretrain.engine.world import join_world
from pretrain.interruption import StopRequest
from pretrain.loop import Watch, train
from pretrain.model.isolation import is_isolated, isolate_documents
from pretrain.model.module import PretrainingModule
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store, read_pieces
from pretrain.rows.batches import Split, TrainingBatches, split_rows
from pretrain.rows.masking import Pieces, describe_pieces
from pretrain.watch.flops import flops_by_phase, peak_flops
from pretrain.watch.meter import Meter

log = logging.getLogger(__name__)

SIZES: dict[str, dict[str, int]] = {  # paper Table 31, and one for laptops
    "tiny": {"layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024},
    "small": {"layers": 6, "hidden": 768, "heads": 12, "intermediate": 3072},
    "base": {"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072},
    "large": {"layers": 24, "hidden": 1024, "heads": 16, "intermediate": 4096},
}
PACKINGS = ("blocks", "documents")
ACCUMULATION = 4  # micro-batches of a step: 2,048 rows on 8 GPUs are 4 of 64
STEPS = 5  # on the clock, and as many before it runs
MEASURED = {"tokens_per_s": "tokens_per_second", "mfu": "mfu", "memory_gib": "memory_gib", "wait": "data_wait_share"}


class Plan(NamedTuple):
    """What to measure; ``micro_batches`` are tried in order until memory is full."""

    sizes: Sequence[str] = ()
    packings: Sequence[str] = ()
    compile: Sequence[bool] = ()
    micro_batches: Sequence[int] = ()

    def settled(self, *, is_gpu: bool) -> Plan:
        """What was left out chosen for the device: one tiny model on a CPU, all sizes on a GPU.

        Raises:
            BadInput: no such size or packing, or a micro-batch below 1.
        """
        for option, given, known in (("--size", self.sizes, SIZES), ("--packing", self.packings, PACKINGS)):
            if unknown := sorted(set(given) - set(known)):
                raise BadInput(f"{option} {unknown[0]}: there is none; choose of {', '.join(known)}")
        if any(rows < 1 for rows in self.micro_batches):
            raise BadInput("--micro-batch must be at least 1")
        return Plan(
            self.sizes or (("small", "base", "large") if is_gpu else ("tiny",)),
            self.packings or PACKINGS,
            self.compile or ((False, True) if is_gpu else (False,)),
            self.micro_batches or ((16, 32, 64, 128, 256, 512) if is_gpu else (8,)),
        )


def bench_sizes(tokens: Path, tokenizer: Path, plan: Plan) -> dict[str, Any]:
    """Measure every cell of the plan.

    Returns:
        "device", "precision", "length", "peak_tflops", and "rows": size, packing, compile, micro_batch, and
        "tokens_per_s", "mfu" (None without a known peak), "memory_gib" (peak; allocated on a GPU, resident on a CPU)
        and "wait" (share of the time without a batch), or "failed", saying why.
    """
    is_gpu = torch.cuda.is_available()
    device, precision, length = (torch.cuda.get_device_name(), "bf16", 512) if is_gpu else ("CPU", "fp32", 128)
    peak = peak_flops(device, precision)
    rows = []
    for row in measure_cells(plan.settled(is_gpu=is_gpu), [str(tokens), str(tokenizer), precision, length]):
        log.info("%s", row)
        rows.append(row)
    return {
        "device": device,
        "precision": precision,
        "length": length,
        "peak_tflops": peak / 1e12 if peak else None,
        "rows": rows,
    }


def measure_cells(plan: Plan, given: list[Any]) -> Iterator[dict[str, Any]]:
    """Every size and packing: all micro-batches in the first mode of compiling, the best one in the others."""
    for size, packing in product(plan.sizes, plan.packings):
        best: dict[str, Any] = {}
        for number, compiled in enumerate(plan.compile):
            tried = plan.micro_batches if number == 0 else [best["micro_batch"]] if best else []
            for micro_batch in tried:
                row: dict[str, Any] = {
                    "size": size, "packing": packing, "compile": compiled, "micro_batch": micro_batch,
                }  # fmt: skip
                try:
                    row |= run_fresh(measure_cell, [*given, row], "a cell")
                except LaunchError as error:  # one that fails does not end the others
                    row["failed"] = "out of memory" if "OutOfMemory" in str(error) else str(error)
                yield row
                if "failed" in row:
                    break  # larger ones need more memory still
                if not best or row["tokens_per_s"] > best["tokens_per_s"]:
                    best = row


def measure_cell(order: tuple[str, str, str, int, dict[str, Any]]) -> dict[str, Any]:
    """In the fresh process: train for two intervals, return the figures of the second."""
    tokens, tokenizer, precision, length, row = order
    fields = {
        "sequence_length": length, "packing": row["packing"], "compile": row["compile"], "precision": precision,
        "micro_batch": row["micro_batch"], "global_batch": row["micro_batch"] * ACCUMULATION, "engine": "plain",
        "steps": 2 * STEPS, "log_every": STEPS, "measure_every": 2 * STEPS + 1,
    }  # fmt: skip
    config = PretrainConfig.model_validate(in_sections(SIZES[row["size"]] | fields))
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        (_, timed), _, _ = train_ours(Given.open(Path(tokens), Path(tokenizer), config), Path(folder))
    return {ours: timed.get(theirs) for ours, theirs in MEASURED.items()}


class Given(NamedTuple):
    """What is trained on and how."""

    pieces: Pieces
    split: Split
    config: PretrainConfig
    vocab_size: int
    special_ids: dict[str, int]

    @classmethod
    def open(cls, tokens: Path, tokenizer: Path, config: PretrainConfig) -> Given:
        store = open_store(tokens, tokenizer)
        special_ids = store.meta["special_ids"]
        pieces = describe_pieces(read_pieces(tokenizer), special_ids)
        return cls(pieces, split_rows(store, config), config, store.meta["vocab_size"], special_ids)

    def batches(self) -> TrainingBatches:
        return TrainingBatches(self.split, self.pieces, self.config, 0, 1, self.config.engine.micro_batch)

    def network(self) -> PreTrainedModel:
        return build_network(self.config, self.vocab_size, self.special_ids)


class ClockedMeter(Meter):
    """A meter that notes CPU and wall clock of each line."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.clocks: list[tuple[float, float]] = []

    def write(self, step: int) -> None:
        super().write(step)
        self.clocks.append((time.process_time(), time.perf_counter()))


class NeverDue:
    """Stands where the checkpoints do."""

    def due(self, step: int) -> bool:
        return False


def train_ours(given: Given, out: Path) -> tuple[list[dict[str, Any]], list[tuple[float, float]], PreTrainedModel]:
    """Train without measuring and saving; the lines of metrics.jsonl, their CPU and wall clocks, the network."""
    config, batches, network = given.config, given.batches(), given.network()
    if config.rows.packing == "documents" and not is_isolated(network):
        isolate_documents(network)
    flops = flops_by_phase(batches, config, given.vocab_size)[0]
    path, never = out / "metrics.jsonl", NeverDue()
    with join_world() as world:
        engine = start_engine(config, PretrainingModule(network), world)
        with closing(ClockedMeter(path, config, world, (0, None), lambda step: flops, batches.names_of_step)) as meter:
            train(engine, batches, Watch(meter, cast(Any, never), dict, StopRequest()), config, world, 1)
    return list(map(json.loads, path.read_text("utf-8").splitlines())), meter.clocks, network


def sizes_table(found: dict[str, Any]) -> Table:
    """A row for each cell."""
    rows = []
    for row in found["rows"]:
        cells = [row["size"], row["packing"], "yes" if row["compile"] else "no", str(row["micro_batch"])]
        if "failed" in row:
            rows.append([*cells, row["failed"], "", "", ""])
            continue
        mfu = "–" if row["mfu"] is None else f"{100 * row['mfu']:.1f} %"
        wait = f"{100 * row['wait']:.1f} %"
        rows.append([*cells, f"{row['tokens_per_s']:,.0f}", mfu, f"{row['memory_gib']:.1f}", wait])
    peak = f"{found['peak_tflops']:.1f} TFLOP/s" if found["peak_tflops"] else "an unknown peak: no MFU"
    note = (
        f"{found['device']}, {found['precision']}, rows of {found['length']} tokens, {ACCUMULATION} micro-batches a "
        f"step, padding not counted; MFU of {peak}."
    )
    heads = ("size", "packing", "compiled", "micro-batch", "tokens/s", "MFU", "GiB", "data wait")
    return figures("Sizes and modes", heads, rows, note)
