"""``python -m benchmarks pretrain``: loading and training next to transformers' collator, model and Trainer.

The token store is invented (words of one to three pieces with Zipf frequencies), so that anyone can repeat it; losses
compare runs with each other and nothing else. Ratios carry over to other machines, absolute figures do not. Every run
has a process of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from benchmarks.material import write_invented
from benchmarks.rivals import collator, train_with_stock_steps, train_with_trainer
from benchmarks.timing import fresh_in_turns, run_fresh, time_in_turns, versions_of, write_figures
from corpus.documents.accelerator import device_name, find_device
from corpus.documents.errors import BadInput
from launch.console import PlainConsole, Table, print_table, record_table
from launch.errors import LaunchError
from pretrain.batching.batches import Split, TrainingBatches, split_rows
from pretrain.batching.masking import IGNORED, Pieces, describe_pieces
from pretrain.config import PretrainConfig, in_sections
from pretrain.engine.start import ready_for_engine, start_engine
from pretrain.engine.world import join_world, peak_memory
from pretrain.interruption import StopRequest
from pretrain.loop import Monitors, train
from pretrain.metrics.device_speed import peak_flops
from pretrain.metrics.flops import flops_per_token
from pretrain.metrics.meter import Meter
from pretrain.model.isolation import isolate_documents
from pretrain.model.module import PretrainingModule
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store, read_pieces

PARTS = ("loader", "trainer", "modes")
VOCABULARY, TOKENS = 32_000, 4_000_000  # of the invented store
OURS = "malmoi, order to tensors"
PLAIN, WHOLE_WORDS = "transformers, single pieces", "transformers, whole words"
MALMOI, STOCK, TRAINER, MODE = "malmoi", "stock step", "Trainer", "mode"
SIZES: dict[str, dict[str, Any]] = {  # layers x hidden; the held-out rows of the large one are few, for the time
    "2x128": {"layers": 2, "hidden": 128, "heads": 2, "intermediate": 512},
    "4x256": {},
    "12x768": {"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072, "held_out_share": 0.002},
}
MODES: dict[str, dict[str, Any]] = {  # one process on the device there is
    "fp32": {}, "bf16": {"precision": "bf16"}, "bf16, compiled": {"precision": "bf16", "compile": True},
    "bf16, documents": {"precision": "bf16", "packing": "documents"},
    "bf16, documents, compiled": {"precision": "bf16", "packing": "documents", "compile": True},
    "bf16, ddp": {"precision": "bf16", "engine": "ddp"},
    "bf16, deepspeed": {"precision": "bf16", "engine": "deepspeed"},
}  # fmt: skip
LOADER_BATCHES, LOADER_LENGTH = 16, 512
LOADER_ROWS = 64  # a call: the collator's speed is flat from here on

Mark = tuple[int, float, float, float]  # of a line of a log: step, loss, CPU and wall clock


def run_pretrain_bench(
    parts: Sequence[str], sizes: Sequence[str], steps: int, rounds: int, out: Path | None
) -> dict[str, Any]:
    """Measure the ``parts`` (where there are none, loader and trainer), print tables, write bench.json into ``out``.

    Args:
        sizes: of ``SIZES``, for the runs beside the Trainer and in modes.
        steps, rounds: of these runs.

    Returns:
        what was asked for of "loader", "trainer" and "modes", the latter two by size; "machine", "versions".

    Raises:
        BadInput: an option cannot be used.
    """
    if unknown := sorted(set(parts) - set(PARTS)):
        raise BadInput(f"--only {unknown[0]}: no such part; parts are {', '.join(PARTS)}")
    if unknown := sorted(set(sizes) - set(SIZES)):
        raise BadInput(f"--size {unknown[0]}: no such size; sizes are {', '.join(SIZES)}")
    if steps < 2 or rounds < 1:
        raise BadInput("--steps must be at least 2, --rounds at least 1")
    results: dict[str, Any] = {"versions": versions_of(("torch", "transformers", "numpy"))}
    console = PlainConsole()
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        given = write_invented(Path(folder), VOCABULARY, TOKENS)
        if "loader" in (parts or PARTS[:2]):
            order = [*map(str, given), LOADER_LENGTH, LOADER_BATCHES, max(3, rounds)]
            results["loader"] = run_fresh(measure_loading, order, "the loader bench")
            print_table(_loader_table(results["loader"]), console)
        for name, measure, table in (("trainer", bench_trainer, _trainer_table), ("modes", bench_modes, _modes_table)):
            if name in (parts or PARTS[:2]):
                results[name] = {}
                for size in sizes:
                    results[name][size] = measure(*given, contest_config(steps, **SIZES[size]), rounds)
                    print_table(table(results[name][size]), console)
    return write_figures(results, out / "bench.json" if out else None)


# --- the token store, opened


class Given(NamedTuple):
    """What is trained on and how."""

    pieces: Pieces
    split: Split
    config: PretrainConfig
    vocab_size: int
    special_ids: dict[str, int]

    @classmethod
    def open(cls, tokens: str | Path, tokenizer: str | Path, config: PretrainConfig) -> Given:
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


# --- loading and masking: tokens a second of one core, the same rows for all


def measure_loading(order: tuple[str, str, int, int, int]) -> dict[str, Any]:
    """Time every way over the same ``batches`` of 64 rows of ``length`` tokens, in turns, one thread.

    Ours is all that stands between the token store and the model: shuffled order, gathering, exact whole-word masks,
    tensors. The collator gets its rows ready as lists, gathered before the clock runs. Its whole-word way needs offsets
    beside every token; they are made here so that its words are ours. Price: those of real text also cost storage.

    Args:
        order: paths of the token store and of the tokenizer, ``length``, ``batches``, rounds.

    Returns:
        "rows": of each way "m_tokens_per_s" (million tokens a CPU second) and "times" (the speed of transformers'
        whole words); "tokens" of a round; "length"; "rounds".
    """
    tokens, tokenizer, length, batches, rounds = order
    torch.set_num_threads(1)
    fields = {"sequence_length": length, "global_batch": LOADER_ROWS, "micro_batch": LOADER_ROWS, "steps": batches}
    given = Given.open(tokens, tokenizer, PretrainConfig.model_validate(in_sections(fields)))
    ours, pieces = given.batches(), given.pieces
    places = [places_of(ours, step) for step in range(1, batches + 1)]
    rows = [given.split.training.gather(*place) for place in places]
    plain, whole = ([as_examples(row.ids_BL, pieces, with_offsets=needs) for row in rows] for needs in (False, True))
    collate, collate_words = collator(Path(tokenizer)), collator(Path(tokenizer), whole_words=True)
    works: dict[str, Callable[[], list[Any]]] = {
        OURS: lambda: [ours.of_step(step) for step in range(1, batches + 1)],
        PLAIN: lambda: list(map(collate, plain)),
        WHOLE_WORDS: lambda: list(map(collate_words, whole)),
    }
    for work in works.values():  # warms up
        work()
    seconds = time_in_turns(works, rounds)
    seen = batches * LOADER_ROWS * length
    found = {
        name: {"m_tokens_per_s": seen / spent / 1e6, "times": seconds[WHOLE_WORDS] / spent}
        for name, spent in seconds.items()
    }
    return {"rows": found, "tokens": seen, "length": length, "rounds": rounds}


def as_examples(ids_BL: NDArray[np.int64], pieces: Pieces, *, with_offsets: bool = False) -> list[dict[str, Any]]:
    """Rows as a tokenized dataset gives them: lists of ids, of special flags, and of offsets where asked for.

    Offsets are those of a text in which every "##" piece touches the piece before it and no other does.
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


# --- training beside the Trainer: same model and first weights, rows, batch, optimizer, precision and thread


def contest_config(steps: int, **changes: Any) -> PretrainConfig:
    """4 layers x 256, 16 rows of 128 tokens a step, float32, no dropout as in the recipes of this size."""
    fields: dict[str, Any] = {
        "layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024, "positions": 128, "sequence_length": 128,
        "steps": steps, "global_batch": 16, "micro_batch": 16, "lr": 5e-4, "warmup_share": 0.1, "dropout": 0.0,
        "precision": "fp32", "engine": "plain", "held_out_share": 0.01, "measure_every": steps + 1,
        "log_every": max(1, steps // 10),
    }  # fmt: skip
    return PretrainConfig.model_validate(in_sections(fields | changes))


def bench_trainer(tokens: Path, tokenizer: Path, config: PretrainConfig, rounds: int) -> dict[str, Any]:
    """Train on all sides in turns, each run in a fresh process; the first interval warms up and is not counted.

    Returns:
        "rows": of each side medians "tokens_per_cpu_s", "tokens_per_s" (wall), "peak_mib", "last_loss", "held_out_loss"
        and "curve" (steps and losses), "spread"; "times_faster_cpu", "times_faster_wall" (than the Trainer),
        "times_faster_than_stock" (CPU); settings.
    """
    settings = config.model_dump(mode="json")
    orders = {side: [side, str(tokens), str(tokenizer), settings] for side in (MALMOI, STOCK, TRAINER)}
    rows = fresh_in_turns(train_side, orders, rounds)
    return {
        "rows": rows,
        "times_faster_cpu": rows[MALMOI]["tokens_per_cpu_s"] / rows[TRAINER]["tokens_per_cpu_s"],
        "times_faster_wall": rows[MALMOI]["tokens_per_s"] / rows[TRAINER]["tokens_per_s"],
        "times_faster_than_stock": rows[MALMOI]["tokens_per_cpu_s"] / rows[STOCK]["tokens_per_cpu_s"],
        "rounds": rounds,
        "config": settings,
    }


def bench_modes(tokens: Path, tokenizer: Path, config: PretrainConfig, rounds: int) -> dict[str, Any]:
    """Train in each of ``MODES``, in turns, each run in a fresh process; on an accelerator rows of 512, 32 at once.

    Returns:
        "rows": of each mode medians as in ``bench_trainer``, "device_gib" and, where the device's peak is known, "mfu";
        or "error"; "rounds", settings.
    """
    large = {"sequence_length": 512, "positions": 512, "global_batch": 128, "micro_batch": 32}
    settings = config.model_dump(mode="json")
    if torch.accelerator.is_available():
        settings = PretrainConfig.model_validate(_replaced(settings, large)).model_dump(mode="json")
    found: dict[str, Any] = {}
    for name, fields in MODES.items():
        order = [MODE, str(tokens), str(tokenizer), _replaced(settings, fields)]
        try:
            found |= fresh_in_turns(train_side, {name: order}, rounds)
        except LaunchError as error:  # a mode that this machine has not got
            found[name] = {"error": str(error)}
    return {"rows": found, "rounds": rounds, "config": settings}


def _replaced(settings: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Settings with other values, given by key as in ``in_sections``."""
    changes = in_sections(fields)
    return {k: v | changes.get(k, {}) if isinstance(v, dict) else changes.get(k, v) for k, v in settings.items()}


def train_side(order: tuple[str, str, str, dict[str, Any]]) -> dict[str, Any]:
    """In the fresh process: train one side, measure what it learnt."""
    torch.set_num_threads(1)
    side, tokens, tokenizer, settings = order
    given = Given.open(tokens, tokenizer, PretrainConfig.model_validate(settings))
    network = given.network()
    with TemporaryDirectory(prefix="malmoi-bench-") as out:
        if side in (MALMOI, MODE):
            marks = train_ours(given, network, Path(out))
        elif side == STOCK:
            device = find_device("auto", "pretrain.engine.device")
            marks = train_with_stock_steps(network, device, examples_of_run(given), given.config, Path(tokenizer))
        else:
            marks = train_with_trainer(network, examples_of_run(given), given.config, Path(tokenizer), Path(out))
    steps, losses, cpu, wall = map(list, zip(*marks, strict=True))
    counted = (steps[-1] - steps[0]) * given.config.global_batch * given.config.rows.sequence_length
    found: dict[str, Any] = {
        "tokens_per_cpu_s": counted / max(cpu[-1] - cpu[0], 1e-6),
        "tokens_per_s": counted / max(wall[-1] - wall[0], 1e-6),
        "last_loss": losses[-1],
        "curve": {"steps": steps, "losses": losses},
    }
    if side != MODE:  # an engine may have cut the network into parts
        return found | {"held_out_loss": held_out_loss(given, network, Path(tokenizer))}
    device = find_device("auto", "pretrain.engine.device")
    if peak := peak_flops(device_name(device), given.config.engine.precision):
        found["mfu"] = found["tokens_per_s"] * flops_per_token(given.config, given.vocab_size) / peak
    return found | {"device_gib": peak_memory(device) / 2**30}


def train_ours(given: Given, network: PreTrainedModel, out: Path) -> list[Mark]:
    """The loop and the engine of pretraining, without measuring and saving."""
    config, batches, path = given.config, given.batches(), out / "metrics.jsonl"
    clocks: dict[int, tuple[float, float]] = {}

    def never(step: int) -> bool:  # the loop asks after each step, when its line is written
        clocks[step] = time.process_time(), time.perf_counter()
        return False

    checkpoints = cast(Any, SimpleNamespace(due=never, has_failed=False))
    with join_world() as world, ready_for_engine(config, world):
        engine = start_engine(config, PretrainingModule(network), world)
        with closing(Meter(path, config, world, (0, None), lambda step: 0.0, batches.names_of_step)) as meter:
            train(engine, batches, Monitors(meter, checkpoints, dict, StopRequest()), config, world, 1)
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return [(line["step"], line["loss"], *clocks[line["step"]]) for line in lines]


def examples_of_run(given: Given) -> list[dict[str, Any]]:
    """The rows of all steps, unmasked, as the Trainer takes them."""
    batches, training = given.batches(), given.split.training
    rows = (training.gather(*places_of(batches, step)) for step in range(1, given.config.steps + 1))
    return [example for row in rows for example in as_examples(row.ids_BL, given.pieces)]


def held_out_loss(given: Given, network: Any, tokenizer: Path) -> float:
    """Mean loss on all held-out rows, without dropout, under masks of the collator, as the Trainer has them."""
    collate, micro_batch = collator(tokenizer), given.config.engine.max_sequences
    network.eval()
    total, loss, predictions = given.split.held_out.count(0), 0.0, 0
    for first in range(0, total, micro_batch):
        numbers_B = np.arange(first, min(total, first + micro_batch))
        rows = given.split.held_out.gather(np.zeros_like(numbers_B), numbers_B)
        batch = collate(as_examples(rows.ids_BL, given.pieces))
        labels_BL = batch["labels"].to(network.device)
        with torch.no_grad():
            scores_BLV = network(input_ids=batch["input_ids"].to(network.device)).logits.float()
        loss += float(cross_entropy(scores_BLV.flatten(0, 1), labels_BL.flatten(), reduction="sum"))
        predictions += int((labels_BL != IGNORED).sum())
    return loss / predictions


def _loader_table(found: dict[str, Any]) -> Table:
    columns = {"M tokens/s": "{m_tokens_per_s:.2f}", "times": "{times:.1f}"}
    note = (
        f"Invented words, rows of {found['length']} tokens, {found['tokens']:,} tokens a round, CPU time of one core, "
        f"medians of {found['rounds']} rounds in turns. transformers puts [MASK] for every piece of a whole word."
    )
    return record_table("Loading and masking", found["rows"], columns, note, first="way")


def _trainer_table(found: dict[str, Any]) -> Table:
    columns = {
        "tokens/CPU s": "{tokens_per_cpu_s:,.0f}",
        "spread": "{spread[tokens_per_cpu_s][0]:,.0f} to {spread[tokens_per_cpu_s][1]:,.0f}",
        "tokens/s": "{tokens_per_s:,.0f}", "MiB": "{peak_mib:,.0f}",
        "last loss": "{last_loss:.3f}", "held-out loss": "{held_out_loss:.3f}",
    }  # fmt: skip
    config = PretrainConfig.model_validate(found["config"])
    note = (
        f"{config.model.layers} layers x {config.model.hidden}, {config.steps} steps of {config.global_batch} x "
        f"{config.rows.sequence_length} on invented words, {config.engine.precision}, one thread, medians of "
        f"{found['rounds']} runs in turns: {found['times_faster_cpu']:.2f} times the tokens of the Trainer and "
        f"{found['times_faster_than_stock']:.2f} times those of the stock step in CPU time. Held out: under the "
        "Trainer's masks."
    )
    return record_table("Training beside transformers' model and Trainer", found["rows"], columns, note)


def _modes_table(found: dict[str, Any]) -> Table:
    columns = {
        "tokens/s": "{tokens_per_s:,.0f}", "MFU": "{mfu:.1%}", "GiB": "{device_gib:.1f}",
        "last loss": "{last_loss:.3f}", "": "{error}",
    }  # fmt: skip
    config = PretrainConfig.model_validate(found["config"])
    note = (
        f"{config.model.layers} layers x {config.model.hidden}, {config.steps} steps of {config.global_batch} x "
        f"{config.rows.sequence_length}, {config.engine.micro_batch} at once, one process, medians of "
        f"{found['rounds']} runs."
    )
    return record_table("Modes", found["rows"], columns, note, first="mode")
