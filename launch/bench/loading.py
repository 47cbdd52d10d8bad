"""Loading and masking beside transformers' collator: tokens a second of one core, the same rows for all.

Ours is all that stands between the token store and the model: shuffled order, gathering, exact whole-word masks,
tensors. The collator gets its rows ready as lists, gathered before the clock runs. Its whole-word way needs offsets
beside every token; they are made here so that its words are ours. Price: offsets of real text would also cost storage.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from launch.bench.fresh import report_measured, run_fresh
from launch.bench.rounds import time_in_turns
from pretrain.config import PretrainConfig
from pretrain.pack.store import open_store, read_pieces
from pretrain.rows.batches import TrainingBatches
from pretrain.rows.masking import Pieces, describe_pieces, mask_rows, row_keys
from pretrain.rows.sources import Rows
from pretrain.rows.split import split_rows

OURS, MASKING = "malmoi, order to tensors", "malmoi, masks alone"
PLAIN, WHOLE_WORDS = "transformers, single pieces", "transformers, whole words"
BATCH = 64  # rows a call: the collator's speed is flat from here on


def bench_loading(tokens: Path, tokenizer: Path, length: int, batches: int, rounds: int) -> dict[str, Any]:
    """Measure in a fresh process with one thread; ``measure_loading`` says what comes back."""
    order = [str(tokens), str(tokenizer), length, batches, rounds]
    return run_fresh("launch.bench.loading", order, "the loader bench")


def measure_loading(tokens: Path, tokenizer: Path, length: int, batches: int, rounds: int) -> dict[str, Any]:
    """Time every way over the same ``batches`` of 64 rows of ``length`` tokens, in turns.

    Returns:
        "rows": of each way "m_tokens_per_s" (million tokens a CPU second), "times" (the speed of transformers' whole
        words), "predicted_share" (of all tokens) and "mask_share" (of the predicted, shown as [MASK]); "tokens" of a
        round; "length"; "rounds".
    """
    store = open_store(tokens, tokenizer)
    config = PretrainConfig(
        sequence_length=length, global_batch=BATCH, micro_batch=BATCH, steps=batches, packing="blocks"
    )
    pieces = describe_pieces(read_pieces(tokenizer), store.meta["special_ids"])
    split = split_rows(store, config)
    ours = TrainingBatches(split, pieces, config, 0, 1, BATCH)
    places = [places_of(ours, step) for step in range(1, batches + 1)]
    rows = [split.training.gather(*place) for place in places]
    plain, whole = (
        [as_examples(row.ids_BL, pieces, with_offsets=offsets) for row in rows] for offsets in (False, True)
    )
    keys = [
        row_keys(config.seed, config.masking, place[0], row.names_B) for place, row in zip(places, rows, strict=True)
    ]
    collate, collate_words = collator(tokenizer), collator(tokenizer, whole_words=True)
    works: dict[str, Callable[[], list[Any]]] = {
        OURS: lambda: [ours.of_step(step) for step in range(1, batches + 1)],
        MASKING: lambda: [mask_rows(*pair, pieces, config.masking) for pair in zip(rows, keys, strict=True)],
        PLAIN: lambda: list(map(collate, plain)),
        WHOLE_WORDS: lambda: list(map(collate_words, whole)),
    }
    shares = {name: _shares(name, work()[0], rows[0], pieces.mask_id) for name, work in works.items()}  # warms up, too
    seconds = time_in_turns(works, rounds)
    tokens_seen = batches * BATCH * length
    return {
        "rows": {
            name: {"m_tokens_per_s": tokens_seen / spent / 1e6, "times": seconds[WHOLE_WORDS] / spent} | shares[name]
            for name, spent in seconds.items()
        },
        "tokens": tokens_seen,
        "length": length,
        "rounds": rounds,
    }


def as_examples(ids_BL: NDArray[np.int64], pieces: Pieces, *, with_offsets: bool = False) -> list[dict[str, Any]]:
    """Rows as a tokenized dataset gives them: lists of ids, of special flags, and of offsets where asked for.

    Offsets are those of a text in which every "##" piece touches the piece before it and no other does.
    """
    columns = {"input_ids": ids_BL.tolist(), "special_tokens_mask": pieces.special_V[ids_BL].astype(int).tolist()}
    if with_offsets:
        ends_BL = np.cumsum(np.where(pieces.continues_V[ids_BL], 1, 2), axis=1)
        columns["offset_mapping"] = np.stack([ends_BL - 1, ends_BL], axis=-1).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def collator(tokenizer: Path, *, whole_words: bool = False) -> Callable[[list[dict[str, Any]]], Mapping[str, Any]]:
    """DataCollatorForLanguageModeling as it comes: 15 % of the pieces, or of the words."""
    from transformers import AutoTokenizer, DataCollatorForLanguageModeling

    vocabulary = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it shows [MASK] for all stands in our table
        return DataCollatorForLanguageModeling(vocabulary, whole_word_mask=whole_words, seed=1)


def places_of(batches: TrainingBatches, step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Epochs and numbers of the rows of a step."""
    pairs = np.array([name.split(":") for name in batches.names_of_step(step)], np.int64)
    return pairs[:, 0], pairs[:, 1]


def _shares(name: str, made: Any, rows: Rows, mask_id: int) -> dict[str, float]:
    """Of the first batch: which share is predicted, and how much of that is shown as [MASK]."""
    if name in (PLAIN, WHOLE_WORDS):
        chosen = made["labels"] != -100
        shown = made["input_ids"][chosen]
    else:
        batch = made[0] if isinstance(made, list) else made
        ids_BL, positions_BM, targets_BM = (torch.as_tensor(field) for field in batch[:3])
        shown = ids_BL.gather(1, positions_BM)[targets_BM >= 0]
    return {
        "predicted_share": shown.numel() / rows.ids_BL.size,
        "mask_share": float((shown == mask_id).float().mean()),
    }


def carry_out(order: tuple[str, str, int, int, int]) -> dict[str, Any]:
    """What the fresh process does."""
    tokens, tokenizer, *sizes = order
    torch.set_num_threads(1)
    return measure_loading(Path(tokens), Path(tokenizer), *sizes)


if __name__ == "__main__":
    report_measured(carry_out)
