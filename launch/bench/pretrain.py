"""``malmoi bench pretrain``: the loader, training beside transformers' Trainer, and training over sizes and modes.

The token store is invented and sizes suit the device, so one command measures a GPU, and anyone can repeat it. Ratios
carry over to other machines, absolute figures do not. Every run has a process of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from corpus.documents.errors import BadInput
from launch.bench.rivals import collator, train_with_trainer
from launch.bench.sizes import Given, Plan, bench_sizes, sizes_table, train_ours
from launch.bench.synthetic import write_synthetic
from launch.bench.timing import machine, run_fresh, time_in_turns, versions_of, write_figures
from launch.console import PlainConsole, Table, figures, print_table
from pretrain.config import PretrainConfig, in_sections
from pretrain.rows.batches import TrainingBatches, mask_batch
from pretrain.rows.masking import IGNORED, Pieces, mask_rows, row_keys

log = logging.getLogger(__name__)

PARTS = ("loader", "trainer", "sizes")
VOCABULARY, TOKENS = 32_000, 4_000_000  # of the invented store
OURS, MASKING = "malmoi, order to tensors", "malmoi, masks alone"
PLAIN, WHOLE_WORDS = "transformers, single pieces", "transformers, whole words"
MALMOI, TRAINER = "malmoi", "transformers"
LOADER_BATCHES, LOADER_LENGTH = 16, 512
LOADER_ROWS = 64  # a call: the collator's speed is flat from here on


def run_pretrain_bench(parts: Sequence[str], steps: int, rounds: int, plan: Plan, out: Path | None) -> dict[str, Any]:
    """Measure the ``parts`` (all of ``PARTS`` where there are none), print tables, write bench.json into ``out``.

    Args:
        steps, rounds: of the runs beside the Trainer.

    Returns:
        what was asked for of "loader", "trainer", "sizes"; "machine", "versions".

    Raises:
        BadInput: an option cannot be used.
    """
    if unknown := sorted(set(parts) - set(PARTS)):
        raise BadInput(f"--only {unknown[0]}: no such part; parts are {', '.join(PARTS)}")
    if steps < 2 or rounds < 1:
        raise BadInput("--steps must be at least 2, --rounds at least 1")
    plan.settled(is_gpu=False)  # refuses what cannot be used before anything is measured
    results: dict[str, Any] = {"machine": machine(), "versions": versions_of(("torch", "transformers", "numpy"))}
    console = PlainConsole()
    with TemporaryDirectory(prefix="malmoi-bench-") as folder:
        scratch = Path(folder)
        given = write_synthetic(scratch / "invented", VOCABULARY, TOKENS)
        if "loader" in (parts or PARTS):
            log.info("loading and masking")
            order = [*map(str, given), LOADER_LENGTH, LOADER_BATCHES, max(3, rounds)]
            results["loader"] = run_fresh(measure_loading, order, "the loader bench")
            print_table(_loader_table(results["loader"]), console)
        if "trainer" in (parts or PARTS):
            log.info("training beside the Trainer: %d runs of %d steps", 2 * rounds, steps)
            results["trainer"] = bench_trainer(*given, contest_config(steps), rounds, scratch / "trainer")
            print_table(_trainer_table(results["trainer"]), console)
        if "sizes" in (parts or PARTS):
            log.info("training over sizes and modes")
            results["sizes"] = bench_sizes(*given, plan)
            print_table(sizes_table(results["sizes"]), console)
    if out:
        out.mkdir(parents=True, exist_ok=True)
    return write_figures(results, out / "bench.json" if out else None)


# --- loading and masking: tokens a second of one core, the same rows for all


def measure_loading(order: tuple[str, str, int, int, int]) -> dict[str, Any]:
    """Time every way over the same ``batches`` of 64 rows of ``length`` tokens, in turns, one thread.

    Ours is all that stands between the token store and the model: shuffled order, gathering, exact whole-word masks,
    tensors. The collator gets its rows ready as lists, gathered before the clock runs. Its whole-word way needs offsets
    beside every token; they are made here so that its words are ours. Price: those of real text also cost storage.

    Args:
        order: paths of the token store and of the tokenizer, ``length``, ``batches``, rounds.

    Returns:
        "rows": of each way "m_tokens_per_s" (million tokens a CPU second), "times" (the speed of transformers' whole
        words), "predicted_share" (of all tokens) and "mask_share" (of the predicted, as [MASK]); "tokens" of a round;
        "length"; "rounds".
    """
    tokens, tokenizer, (length, batches, rounds) = Path(order[0]), Path(order[1]), order[2:]
    torch.set_num_threads(1)
    fields = {"sequence_length": length, "global_batch": LOADER_ROWS, "micro_batch": LOADER_ROWS, "steps": batches}
    config = PretrainConfig.model_validate(in_sections(fields))
    given = Given.open(tokens, tokenizer, config)
    ours, pieces = given.batches(), given.pieces
    places = [places_of(ours, step) for step in range(1, batches + 1)]
    rows = [given.split.training.gather(*place) for place in places]
    plain, whole = ([as_examples(row.ids_BL, pieces, with_offsets=needs) for row in rows] for needs in (False, True))
    pairs = zip(places, rows, strict=True)
    keys = [row_keys(config.seed, config.rows.masking, place[0], row.names_B) for place, row in pairs]
    collate, collate_words = collator(tokenizer), collator(tokenizer, whole_words=True)
    works: dict[str, Callable[[], list[Any]]] = {
        OURS: lambda: [ours.of_step(step) for step in range(1, batches + 1)],
        MASKING: lambda: [mask_rows(*pair, pieces, config.rows.masking) for pair in zip(rows, keys, strict=True)],
        PLAIN: lambda: list(map(collate, plain)),
        WHOLE_WORDS: lambda: list(map(collate_words, whole)),
    }
    firsts = {name: work()[0] for name, work in works.items()}  # warms up, too
    seconds = time_in_turns(works, rounds)
    seen = batches * LOADER_ROWS * length
    found = {
        name: {"m_tokens_per_s": seen / spent / 1e6, "times": seconds[WHOLE_WORDS] / spent}
        | _shares(name, firsts[name], rows[0].ids_BL.size, pieces.mask_id)
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


def _shares(name: str, made: Any, positions: int, mask_id: int) -> dict[str, float]:
    """Of the first batch: which share is predicted, and which share of that the model sees as [MASK]."""
    if name in (PLAIN, WHOLE_WORDS):
        seen = made["input_ids"][made["labels"] != IGNORED]
    else:
        batch = made[0] if isinstance(made, list) else made
        ids_BL, positions_BM, targets_BM = (torch.as_tensor(field) for field in batch[:3])
        seen = ids_BL.gather(1, positions_BM)[targets_BM >= 0]
    return {"predicted_share": seen.numel() / positions, "mask_share": float((seen == mask_id).float().mean())}


# --- training beside the Trainer: same model and first weights, rows, batch, optimizer, precision and thread


def contest_config(steps: int, **changes: Any) -> PretrainConfig:
    """4 layers x 256, 16 rows of 128 tokens a step, float32, no dropout as in the recipes of this size.

    Args:
        changes: replace fields.
    """
    fields: dict[str, Any] = {
        "layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024, "positions": 128, "sequence_length": 128,
        "steps": steps, "global_batch": 16, "micro_batch": 16, "lr": 5e-4, "warmup_share": 0.1, "dropout": 0.0,
        "precision": "fp32", "engine": "plain", "held_out_share": 0.01, "measure_every": steps + 1,
        "log_every": max(1, steps // 10),
    }  # fmt: skip
    return PretrainConfig.model_validate(in_sections(fields | changes))


def bench_trainer(tokens: Path, tokenizer: Path, config: PretrainConfig, rounds: int, scratch: Path) -> dict[str, Any]:
    """Train on both sides in turns, each run in a fresh process; the first interval warms up and is not counted.

    Returns:
        "rows": of each side medians "tokens_per_cpu_s", "tokens_per_s" (wall), "peak_mib", "held_out" losses and
        "curve" (steps and losses); "times_faster_cpu", "times_faster_wall"; settings.
    """
    runs: dict[str, list[dict[str, Any]]] = {MALMOI: [], TRAINER: []}
    for number in range(rounds):
        for side in runs:
            out = scratch / f"{side}-{number}"
            out.mkdir(parents=True)
            order = [side, str(tokens), str(tokenizer), str(out), config.model_dump(mode="json")]
            runs[side].append(run_fresh(train_side, order, f"training with {side}"))
    speeds = ("tokens_per_cpu_s", "tokens_per_s", "peak_mib")
    rows = {
        side: found[0] | {name: median(run[name] for run in found) for name in speeds} for side, found in runs.items()
    }
    return {
        "rows": rows,
        "times_faster_cpu": rows[MALMOI]["tokens_per_cpu_s"] / rows[TRAINER]["tokens_per_cpu_s"],
        "times_faster_wall": rows[MALMOI]["tokens_per_s"] / rows[TRAINER]["tokens_per_s"],
        "rounds": rounds,
        "config": config.model_dump(mode="json"),
    }


def train_side(order: tuple[str, str, str, str, dict[str, Any]]) -> dict[str, Any]:
    """In the fresh process: train one side, measure what it learnt."""
    torch.set_num_threads(1)
    side, (tokens, tokenizer, out) = order[0], map(Path, order[1:4])
    given = Given.open(tokens, tokenizer, PretrainConfig.model_validate(order[4]))
    if side == MALMOI:
        lines, clocks, network = train_ours(given, out)
        marks = [(line["step"], line["loss"], *clock) for line, clock in zip(lines, clocks, strict=True)]
    else:
        network = given.network()
        marks = train_with_trainer(network, examples_of_run(given), given.config, tokenizer, out)
    steps, losses, cpu, wall = map(list, zip(*marks, strict=True))
    counted = (steps[-1] - steps[0]) * given.config.global_batch * given.config.rows.sequence_length
    return {
        "tokens_per_cpu_s": counted / max(cpu[-1] - cpu[0], 1e-6),
        "tokens_per_s": counted / max(wall[-1] - wall[0], 1e-6),
        "held_out": held_out_losses(given, network, tokenizer),
        "curve": {"steps": steps, "losses": losses},
    }


def examples_of_run(given: Given) -> list[dict[str, Any]]:
    """The rows of all steps, unmasked, as the Trainer takes them."""
    batches, training = given.batches(), given.split.training
    rows = (training.gather(*places_of(batches, step)) for step in range(1, given.config.steps + 1))
    return [example for row in rows for example in as_examples(row.ids_BL, given.pieces)]


def held_out_losses(given: Given, network: Any, tokenizer: Path) -> dict[str, float]:
    """Mean losses of a model on all held-out rows, without dropout, under masks that are the same for every model.

    Both kinds of masks are used, because each side trained on one of them: "whole_words" is ours, "single_pieces" is
    that of the collator.
    """
    config, collate = given.config, collator(tokenizer)
    network.eval()
    sums = {"whole_words": np.zeros(2), "single_pieces": np.zeros(2)}
    total = given.split.held_out.count(0)
    for first in range(0, total, config.engine.micro_batch):
        numbers_B = np.arange(first, min(total, first + config.engine.micro_batch))
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


def _loader_table(found: dict[str, Any]) -> Table:
    rows = []
    for name, row in found["rows"].items():
        shares = (f"{100 * row[share]:.1f} %" for share in ("predicted_share", "mask_share"))
        rows.append([name, f"{row['m_tokens_per_s']:.2f}", f"{row['times']:.1f}", *shares])
    note = (
        f"Invented words, rows of {found['length']} tokens, {found['tokens']:,} tokens a round, CPU time of one core, "
        f"medians of {found['rounds']} rounds in turns. transformers puts [MASK] for every piece of a whole word."
    )
    return figures("Loading and masking", ("way", "M tokens/s", "times", "predicted", "of it [MASK]"), rows, note)


def _trainer_table(found: dict[str, Any]) -> Table:
    rows = []
    for name, row in found["rows"].items():
        losses = (row["curve"]["losses"][-1], row["held_out"]["whole_words"], row["held_out"]["single_pieces"])
        speeds = (f"{row[figure]:,.0f}" for figure in ("tokens_per_cpu_s", "tokens_per_s", "peak_mib"))
        rows.append([name, *speeds, *(f"{loss:.3f}" for loss in losses)])
    config = PretrainConfig.model_validate(found["config"])
    note = (
        f"{config.model.layers} layers x {config.model.hidden}, {config.steps} steps of {config.global_batch} x "
        f"{config.rows.sequence_length} on invented words, {config.engine.precision}, one thread, medians of "
        f"{found['rounds']} runs in turns: {found['times_faster_cpu']:.2f} times the tokens of the Trainer in CPU "
        f"time, {found['times_faster_wall']:.2f} times in wall time. Held-out losses under equal masks of both kinds."
    )
    heads = ("", "tokens/CPU s", "tokens/s", "MiB", "last loss", "held out, whole words", "single pieces")
    return figures("Training beside transformers' Trainer", heads, rows, note)
