"""``python -m benchmarks pretrain``: compare loading and training with the collator, model and Trainer of transformers.

The token store is invented (words of one to three pieces with Zipf frequencies), so that anyone can repeat the
benchmark; its losses only compare runs with each other. Ratios carry over to other machines, absolute figures do not.
Every run has its own process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from benchmarks.baselines import collator, train_with_stock_steps, train_with_trainer
from benchmarks.texts import write_invented_store
from benchmarks.timing import fresh_in_turns, record_table, run_fresh, time_in_turns, versions_of, write_figures
from corpus.documents.accelerator import find_device
from corpus.documents.errors import BadInput
from launch.console import PlainConsole, Table, print_table
from pretrain.batching.batches import TrainingBatches
from pretrain.batching.held_out_split import Split, split_rows
from pretrain.batching.masking import IGNORED, Pieces, describe_pieces
from pretrain.config import PretrainConfig
from pretrain.engine.start import ready_for_engine, start_engine
from pretrain.engine.world import join_world
from pretrain.interruption import StopRequest
from pretrain.loop import Monitors, train
from pretrain.metrics.meter import Meter
from pretrain.model.isolation import isolate_documents
from pretrain.model.loss import PretrainingModule
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store, read_pieces

PARTS = ("loader", "trainer")
VOCABULARY, TOKENS = 32_000, 4_000_000  # of the invented store
OURS = "malmoi, order to tensors"
PLAIN, WHOLE_WORDS = "transformers, single pieces", "transformers, whole words"
MALMOI, STOCK, TRAINER = "malmoi", "stock step", "Trainer"
FEW_HELD_OUT = {"held_out_share": 0.002}  # of the large model, to save time
SIZES: dict[str, dict[str, Any]] = {  # layers x hidden
    "2x128": {"model": {"layers": 2, "hidden": 128, "heads": 2, "intermediate": 512}},
    "4x256": {},
    "12x768": {"model": {"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072}, "rows": FEW_HELD_OUT},
}
LOADER_BATCHES, LOADER_LENGTH = 16, 512
LOADER_ROWS = 64  # per call; more do not make the collator faster

LogRow = tuple[int, float, float]  # a log line: step, loss, CPU clock


def run_pretrain_bench(
    parts: Sequence[str], sizes: Sequence[str], steps: int, rounds: int, out: Path | None
) -> dict[str, Any]:
    """Run the ``parts`` (all if empty), print tables, and write bench.json to ``out``.

    Args:
        sizes: of ``SIZES``, for training.
        steps, rounds: of the training runs.
    """
    if unknown := sorted(set(parts) - set(PARTS)):
        raise BadInput(f"--only {unknown[0]}: expected {' or '.join(PARTS)}")
    if unknown := sorted(set(sizes) - set(SIZES)):
        raise BadInput(f"--size {unknown[0]}: expected one of {', '.join(SIZES)}")
    if steps < 2 or rounds < 1:
        raise BadInput("--steps must be at least 2, --rounds at least 1")
    results: dict[str, Any] = {"versions": versions_of(("torch", "transformers", "numpy"))}
    console = PlainConsole()
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        store = write_invented_store(Path(folder), VOCABULARY, TOKENS)
        if "loader" in (parts or PARTS):
            order = [*map(str, store), LOADER_LENGTH, LOADER_BATCHES, max(3, rounds)]
            results["loader"] = run_fresh(measure_loading, order, "the loader benchmark")
            print_table(_loader_table(results["loader"]), console)
        if "trainer" in (parts or PARTS):
            results["trainer"] = {}
            for size in sizes:
                results["trainer"][size] = bench_trainer(*store, comparison_config(steps, **SIZES[size]), rounds)
                print_table(_trainer_table(results["trainer"][size]), console)
    return write_figures(results, out / "bench.json" if out else None)


# --- the token store


class TrainingData(NamedTuple):
    """An open token store, split into training and held-out rows, and the settings of the training."""

    pieces: Pieces
    split: Split
    config: PretrainConfig
    vocab_size: int
    special_ids: dict[str, int]

    @classmethod
    def open(cls, tokens: str | Path, tokenizer: str | Path, config: PretrainConfig) -> TrainingData:
        store = open_store(Path(tokens), Path(tokenizer))
        special_ids = store.meta["special_ids"]
        pieces = describe_pieces(read_pieces(Path(tokenizer)), special_ids)
        return cls(pieces, split_rows(store, config), config, store.meta["vocab_size"], special_ids)

    def batches(self) -> TrainingBatches:
        return TrainingBatches(self.split, self.pieces, self.config, 0, 1, self.config.engine.max_sequences)

    def network(self) -> PreTrainedModel:
        network = build_network(self.config, self.vocab_size, self.special_ids)
        if self.config.rows.packing == "documents":
            isolate_documents(network)
        return network


# --- loading and masking: tokens per second of one core, the same rows for all


def measure_loading(order: tuple[str, str, int, int, int]) -> dict[str, Any]:
    """Time all loaders over the same ``batches`` of 64 rows of ``length`` tokens, in turns, with one thread.

    Ours includes everything between token store and model. The collator gets prepared lists, and offsets with which
    its words equal ours. ``order``: paths of token store and tokenizer, ``length``, ``batches``, rounds.
    """
    tokens, tokenizer, length, batches, rounds = order
    torch.set_num_threads(1)
    config = PretrainConfig(steps=batches, global_batch=LOADER_ROWS)
    config = config.replaced("rows", sequence_length=length).replaced("engine", micro_batch=LOADER_ROWS)
    data = TrainingData.open(tokens, tokenizer, config)
    ours, pieces = data.batches(), data.pieces
    places = [places_of(ours, step) for step in range(1, batches + 1)]
    rows = [data.split.training.gather(*place) for place in places]
    plain, whole = ([as_examples(row.ids_BL, pieces, with_offsets=needs) for row in rows] for needs in (False, True))
    collate, collate_words = collator(Path(tokenizer)), collator(Path(tokenizer), whole_words=True)
    works: dict[str, Callable[[], list[Any]]] = {
        OURS: lambda: [ours.of_step(step) for step in range(1, batches + 1)],
        PLAIN: lambda: list(map(collate, plain)),
        WHOLE_WORDS: lambda: list(map(collate_words, whole)),
    }
    for work in works.values():  # warm-up
        work()
    seconds = time_in_turns(works, rounds)
    total = batches * LOADER_ROWS * length
    speeds = {
        name: {"m_tokens_per_s": total / spent / 1e6, "times": seconds[WHOLE_WORDS] / spent}
        for name, spent in seconds.items()
    }
    return {"rows": speeds, "tokens": total, "length": length, "rounds": rounds}


def as_examples(ids_BL: NDArray[np.int64], pieces: Pieces, *, with_offsets: bool = False) -> list[dict[str, Any]]:
    """Rows as in a tokenized dataset: lists of ids, special flags, and optionally offsets.

    Offsets are those of a text in which only "##" pieces touch the piece before them.
    """
    columns = {"input_ids": ids_BL.tolist(), "special_tokens_mask": pieces.special_V[ids_BL].astype(int).tolist()}
    if with_offsets:
        ends_BL = np.cumsum(np.where(pieces.continues_V[ids_BL], 1, 2), axis=1)
        columns["offset_mapping"] = np.stack([ends_BL - 1, ends_BL], axis=-1).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def places_of(batches: TrainingBatches, step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Epochs and numbers of the rows of a step."""
    pairs = np.array([name.split(":") for name in batches.names_of_step(step)], np.int64)
    return pairs[:, 0], pairs[:, 1]


# --- training: same model, initial weights, rows, batch, optimizer, precision and number of threads


def comparison_config(steps: int, **changes: Any) -> PretrainConfig:
    """4 layers x 256, 16 rows of 128 tokens per step, float32, no dropout as in the recipes of this size."""
    sections: dict[str, dict[str, Any]] = {
        "model": {"layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024, "positions": 128, "dropout": 0.0},
        "rows": {"sequence_length": 128, "held_out_share": 0.01},
        "optimizer": {"lr": 5e-4, "warmup_share": 0.1},
        "engine": {"name": "plain", "precision": "fp32", "micro_batch": 16},
        "watch": {"measure_every": steps + 1, "log_every": max(1, steps // 10)},
    }
    merged = {name: values | changes.pop(name, {}) for name, values in sections.items()}
    return PretrainConfig.model_validate({"steps": steps, "global_batch": 16, **merged, **changes})


def bench_trainer(tokens: Path, tokenizer: Path, config: PretrainConfig, rounds: int) -> dict[str, Any]:
    """Train with all three in turns, each run in a fresh process; the first log interval is warm-up and not counted.

    Returns:
        "rows": for each side medians of "tokens_per_cpu_s", "last_loss",
        "held_out_loss" and "curve" (steps and losses); "times_faster_cpu" (compared with the Trainer),
        "times_faster_than_stock"; settings.
    """
    settings = config.model_dump(mode="json")
    orders = {side: [side, str(tokens), str(tokenizer), settings] for side in (MALMOI, STOCK, TRAINER)}
    rows = fresh_in_turns(train_side, orders, rounds)
    return {
        "rows": rows,
        "times_faster_cpu": rows[MALMOI]["tokens_per_cpu_s"] / rows[TRAINER]["tokens_per_cpu_s"],
        "times_faster_than_stock": rows[MALMOI]["tokens_per_cpu_s"] / rows[STOCK]["tokens_per_cpu_s"],
        "rounds": rounds,
        "config": settings,
    }


def train_side(order: tuple[str, str, str, dict[str, Any]]) -> dict[str, Any]:
    """In the fresh process: train with one side and evaluate."""
    torch.set_num_threads(1)
    side, tokens, tokenizer, settings = order
    data = TrainingData.open(tokens, tokenizer, PretrainConfig.model_validate(settings))
    network = data.network()
    with TemporaryDirectory(prefix="malmoi-bench-") as out:
        if side == MALMOI:
            log_rows = train_ours(data, network, Path(out))
        elif side == STOCK:
            device = find_device("auto", "pretrain.engine.device")
            log_rows = train_with_stock_steps(network, device, examples_of_run(data), data.config, Path(tokenizer))
        else:
            log_rows = train_with_trainer(network, examples_of_run(data), data.config, Path(tokenizer), Path(out))
    steps, losses, cpu = map(list, zip(*log_rows, strict=True))
    trained_tokens = (steps[-1] - steps[0]) * data.config.global_batch * data.config.rows.sequence_length
    figures: dict[str, Any] = {
        "tokens_per_cpu_s": trained_tokens / max(cpu[-1] - cpu[0], 1e-6),
        "last_loss": losses[-1],
        "curve": {"steps": steps, "losses": losses},
    }
    return figures | {"held_out_loss": held_out_loss(data, network, Path(tokenizer))}


def train_ours(data: TrainingData, network: PreTrainedModel, out: Path) -> list[LogRow]:
    """The loop and the engine of pretraining, without evaluation and checkpoints."""
    config, batches, path = data.config, data.batches(), out / "metrics.jsonl"
    clocks: dict[int, float] = {}

    def never(step: int) -> bool:  # the loop calls this after each step, when its log line is written
        clocks[step] = time.process_time()
        return False

    checkpoints = cast(Any, SimpleNamespace(due=never, has_failed=False))
    with join_world() as world, ready_for_engine(config, world):
        engine = start_engine(config, PretrainingModule(network), world)
        meter = Meter(path, config, world, (0, None), lambda step: 0.0, batches.names_of_step)
        train(engine, batches, Monitors(meter, checkpoints, dict, StopRequest()), config, world, 1)
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return [(line["step"], line["loss"], clocks[line["step"]]) for line in lines]


def examples_of_run(data: TrainingData) -> list[dict[str, Any]]:
    """The rows of all steps, unmasked, as the Trainer needs them."""
    batches, training = data.batches(), data.split.training
    rows = (training.gather(*places_of(batches, step)) for step in range(1, data.config.steps + 1))
    return [example for row in rows for example in as_examples(row.ids_BL, data.pieces)]


def held_out_loss(data: TrainingData, network: Any, tokenizer: Path) -> float:
    """Mean loss on all held-out rows, without dropout, with masks of the collator."""
    collate, micro_batch = collator(tokenizer), data.config.engine.max_sequences
    network.eval()
    total, loss, predictions = data.split.held_out.count(0), 0.0, 0
    for first in range(0, total, micro_batch):
        numbers_B = np.arange(first, min(total, first + micro_batch))
        rows = data.split.held_out.gather(np.zeros_like(numbers_B), numbers_B)
        batch = collate(as_examples(rows.ids_BL, data.pieces))
        labels_BL = batch["labels"].to(network.device)
        with torch.no_grad():
            scores_BLV = network(input_ids=batch["input_ids"].to(network.device)).logits.float()
        loss += float(cross_entropy(scores_BLV.flatten(0, 1), labels_BL.flatten(), reduction="sum"))
        predictions += int((labels_BL != IGNORED).sum())
    return loss / predictions


def _loader_table(results: dict[str, Any]) -> Table:
    columns = {"M tokens/s": "{m_tokens_per_s:.2f}", "times": "{times:.1f}"}
    note = (
        f"Rows of {results['length']} invented tokens, {results['tokens']:,} tokens per round, CPU time of one core, "
        f"medians of {results['rounds']} rounds in turns. transformers shows [MASK] for all pieces of a masked word."
    )
    return record_table("Loading and masking", results["rows"], columns, note, first="loader")


def _trainer_table(results: dict[str, Any]) -> Table:
    columns = {
        "tokens/CPU s": "{tokens_per_cpu_s:,.0f}",
        "last loss": "{last_loss:.3f}", "held-out loss": "{held_out_loss:.3f}",
    }  # fmt: skip
    config = PretrainConfig.model_validate(results["config"])
    note = (
        f"{config.model.layers} layers x {config.model.hidden}, {config.steps} steps of {config.global_batch} x "
        f"{config.rows.sequence_length} on invented words, {config.engine.precision}, one thread, medians of "
        f"{results['rounds']} runs in turns: {results['times_faster_cpu']:.2f} times the tokens of the Trainer and "
        f"{results['times_faster_than_stock']:.2f} times those of the stock step in CPU time. Held-out loss: with "
        "masks of the collator."
    )
    return record_table("Training speed", results["rows"], columns, note)
