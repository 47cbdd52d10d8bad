"""Training beside transformers' Trainer: same model and first weights, rows, batch, optimizer, precision and threads.

The Trainer gets grouped blocks as run_mlm.py makes them and DataCollatorForLanguageModeling (15 % single pieces): its
common and, of its ways, fastest use. In its favour, rows lie ready in memory and special pieces are flagged. Ours runs
through ``pretrain.run.run``. Each run is a fresh process; the first interval warms up and is not counted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from launch.bench.fresh import report_measured, run_fresh
from launch.bench.loading import as_examples, collator, places_of
from pretrain.config import PretrainConfig
from pretrain.pack.store import TokenStore, open_store, read_pieces
from pretrain.rows.batches import TrainingBatches, mask_batch
from pretrain.rows.masking import IGNORED, Pieces, describe_pieces
from pretrain.rows.split import Split, split_rows

OURS, THEIRS = "malmoi", "transformers"
POLL_SECONDS = 0.01


class Mark(NamedTuple):
    """A line of the log: its step and mean loss since the line before, and the clocks when it was written."""

    step: int
    loss: float
    cpu_s: float
    wall_s: float


class Given(NamedTuple):
    """What both sides train on."""

    store: TokenStore
    pieces: Pieces
    split: Split
    config: PretrainConfig


def contest_config(steps: int, **changes: Any) -> PretrainConfig:
    """4 layers x 256, 16 rows of 128 tokens a step, float32, no dropout as in the recipes of this size.

    Args:
        changes: replace fields.
    """
    fields: dict[str, Any] = {
        "layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024, "positions": 128, "sequence_length": 128,
        "steps": steps, "global_batch": 16, "micro_batch": 16, "lr": 5e-4, "warmup_share": 0.1, "dropout": 0.0,
        "precision": "fp32", "engine": "plain", "held_out_share": 0.01, "measure_every": steps,
        "checkpoint_every": steps, "keep_checkpoints": 1, "log_every": max(1, steps // 10),
    }  # fmt: skip
    return PretrainConfig.model_validate(fields | changes)


def bench_trainers(
    tokens: Path, tokenizer: Path, config: PretrainConfig, rounds: int, threads: int, scratch: Path
) -> dict[str, Any]:
    """Train on both sides in turns.

    Returns:
        "rows": of each side medians "tokens_per_cpu_s", "tokens_per_s" (wall), "peak_mib", "held_out" losses and
        "curve" (steps and losses); "times_faster_cpu", "times_faster_wall"; settings.
    """
    found: dict[str, list[dict[str, Any]]] = {OURS: [], THEIRS: []}
    for number in range(rounds):
        for side in (OURS, THEIRS):
            out = scratch / f"{side}-{number}"
            out.mkdir(parents=True)
            order = {
                "side": side, "tokens": str(tokens), "tokenizer": str(tokenizer), "out": str(out),
                "config": config.model_dump(mode="json"), "threads": threads,
            }  # fmt: skip
            variables = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
            found[side].append(run_fresh("launch.bench.trainers", order, f"training with {side}", variables))
    rows = {side: runs[0] | _medians(runs) for side, runs in found.items()}
    return {
        "rows": rows,
        "times_faster_cpu": rows[OURS]["tokens_per_cpu_s"] / rows[THEIRS]["tokens_per_cpu_s"],
        "times_faster_wall": rows[OURS]["tokens_per_s"] / rows[THEIRS]["tokens_per_s"],
        "rounds": rounds,
        "threads": threads,
        "config": config.model_dump(mode="json"),
    }


def _medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    return {name: median(run[name] for run in runs) for name in ("tokens_per_cpu_s", "tokens_per_s", "peak_mib")}


def train_ours(given: Given, tokens: Path, tokenizer: Path, out: Path) -> tuple[list[Mark], Any]:
    """Marks and the finished Hugging Face model."""
    from transformers import AutoModelForMaskedLM

    from pretrain.run import PretrainInputs, run

    with watch_lines(out / "metrics.jsonl") as clocks:
        run(given.config, PretrainInputs(tokens, tokenizer), out)
    lines = map(json.loads, (out / "metrics.jsonl").read_text("utf-8").splitlines())
    timed = zip(lines, clocks, strict=True)  # the watcher has seen every line when it returns
    marks = [Mark(line["step"], line["loss"], *clock) for line, clock in timed if "loss" in line]
    return marks, AutoModelForMaskedLM.from_pretrained(out / "model", local_files_only=True)


def train_theirs(given: Given, tokenizer: Path, out: Path) -> tuple[list[Mark], Any]:
    """The same with the Trainer, on the rows that ours trains on."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from pretrain.model.networks import build_network

    config, meta = given.config, given.store.meta
    marks: list[Mark] = []

    class Clock(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
            if logs and "loss" in logs:
                marks.append(Mark(state.global_step, logs["loss"], time.process_time(), time.perf_counter()))

    arguments = TrainingArguments(
        output_dir=str(out), max_steps=config.steps, per_device_train_batch_size=config.global_batch,
        learning_rate=config.lr, lr_scheduler_type="linear", warmup_steps=round(config.steps * config.warmup_share),
        weight_decay=config.weight_decay, adam_beta1=config.betas[0], adam_beta2=config.betas[1],
        adam_epsilon=config.epsilon, max_grad_norm=config.clip, bf16=config.precision == "bf16", seed=config.seed,
        logging_steps=config.log_every, save_strategy="no", report_to="none", disable_tqdm=True,
        remove_unused_columns=False, dataloader_pin_memory=torch.cuda.is_available(),
    )  # fmt: skip
    network = build_network(config, meta["vocab_size"], meta["special_ids"])
    collate: Any = collator(tokenizer)
    dataset: Any = examples_of_run(given)
    Trainer(network, arguments, collate, dataset, callbacks=[Clock()]).train()
    return marks, network


def held_out_losses(given: Given, network: Any, tokenizer: Path) -> dict[str, float]:
    """Mean losses of a model on all held-out rows, without dropout, under masks that are the same for every model.

    Both kinds of masks are used, because each side trained on one of them: "whole_words" is ours, "single_pieces" is
    that of the collator.
    """
    config, collate = given.config, collator(tokenizer)
    network.eval()
    sums = {"whole_words": np.zeros(2), "single_pieces": np.zeros(2)}
    total = given.split.held_out.count(0)
    for first in range(0, total, config.micro_batch):
        numbers_B = np.arange(first, min(total, first + config.micro_batch))
        epochs_B = np.zeros_like(numbers_B)
        rows = given.split.held_out.gather(epochs_B, numbers_B)
        batch = mask_batch(rows, epochs_B, given.pieces, config)
        labels_BL = torch.full_like(batch.ids_BL, IGNORED).scatter_(1, batch.positions_BM, batch.targets_BM)
        theirs = collate(as_examples(rows.ids_BL, given.pieces))
        sums["whole_words"] += _loss_sum(network, batch.ids_BL, labels_BL)
        sums["single_pieces"] += _loss_sum(network, theirs["input_ids"], theirs["labels"])
    return {name: float(loss / count) for name, (loss, count) in sums.items()}


def _loss_sum(network: Any, ids_BL: Tensor, labels_BL: Tensor) -> tuple[float, int]:
    device = network.device
    with torch.no_grad():
        scores_BLV = network(input_ids=ids_BL.to(device)).logits.float()
    loss = cross_entropy(scores_BLV.flatten(0, 1), labels_BL.to(device).flatten(), reduction="sum")
    return float(loss), int((labels_BL != IGNORED).sum())


@contextmanager
def watch_lines(path: Path) -> Iterator[list[tuple[float, float]]]:
    """CPU and wall clock at which each line of a growing file was there, to 0.01 s."""
    clocks: list[tuple[float, float]] = []
    is_over = Event()

    def look() -> None:
        lines = path.read_bytes().count(b"\n") if path.is_file() else 0
        clocks.extend([(time.process_time(), time.perf_counter())] * (lines - len(clocks)))

    def poll() -> None:
        while not is_over.wait(POLL_SECONDS):
            look()

    thread = Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield clocks
    finally:
        is_over.set()
        thread.join()
        look()


def examples_of_run(given: Given) -> list[dict[str, Any]]:
    """The rows of all steps, unmasked, as the Trainer takes them."""
    batches = TrainingBatches(given.split, given.pieces, given.config, 0, 1, given.config.micro_batch)
    examples: list[dict[str, Any]] = []
    for step in range(1, given.config.steps + 1):
        rows = given.split.training.gather(*places_of(batches, step))
        examples += as_examples(rows.ids_BL, given.pieces)
    return examples


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """What the fresh process does."""
    torch.set_num_threads(order["threads"])
    tokens, tokenizer, out = (Path(order[name]) for name in ("tokens", "tokenizer", "out"))
    config = PretrainConfig.model_validate(order["config"])
    store = open_store(tokens, tokenizer)
    pieces = describe_pieces(read_pieces(tokenizer), store.meta["special_ids"])
    given = Given(store, pieces, split_rows(store, config), config)
    if order["side"] == OURS:
        marks, network = train_ours(given, tokens, tokenizer, out)
    else:
        marks, network = train_theirs(given, tokenizer, out)
    first, last = marks[0], marks[-1]
    counted = (last.step - first.step) * config.global_batch * config.sequence_length
    return {
        "tokens_per_cpu_s": counted / (last.cpu_s - first.cpu_s),
        "tokens_per_s": counted / (last.wall_s - first.wall_s),
        "held_out": held_out_losses(given, network, tokenizer),
        "curve": {"steps": [mark.step for mark in marks], "losses": [mark.loss for mark in marks]},
    }


if __name__ == "__main__":
    report_measured(carry_out)
