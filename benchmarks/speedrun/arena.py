"""The arena: text, vocabulary, held-out rows and their masks, the same for every contestant.

The documents of a run folder are divided once, by the hash of their ids, and packed into two stores. So what is held
out is held out of every length of rows and every way to pack them, and no seed moves it. What is measured is the loss
on whole words, 15 % of the tokens, chosen by a key that is no contestant's and all shown as [MASK]: the tenths that
BERT shows as they are or as other words are a way to train, which not every contestant has.

Shapes: B rows, L positions, M most predictions in a row.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from corpus.documents.atomic_files import atomic_dir, atomic_write
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, read_documents, shard_paths, write_shard
from launch.pipeline import require_stage
from pretrain.batching.batches import Batch, as_batch
from pretrain.batching.masking import Pieces, describe_pieces, mask_rows
from pretrain.batching.sources import Blocks, RowSource, total_blocks
from pretrain.config import MaskingConfig, PackConfig, PretrainConfig, in_sections
from pretrain.metrics.baselines import count_baselines, score_baselines
from pretrain.metrics.held_out import choose_rows, held_out_keys
from pretrain.pack.run import PackInputs
from pretrain.pack.run import run as pack
from pretrain.pack.store import open_store, read_pieces
from pretrain.rng import derive_key

HELD_OUT_SHARE = 0.02  # of the documents
LENGTH = 128  # tokens of a measured row
SEED = 0  # of what is measured and its masks
ROWS_AT_ONCE = 32
PARTS = TRAINING, HELD_OUT = "training", "held-out"
TEXT_NAME = "text.json"

SumsOf = Callable[[Batch], tuple[Tensor, Tensor]]  # loss (nats) and hits of the batch's targets, summed


class Text(NamedTuple):
    """Token stores to train on and to be measured on, the tokenizer of both, and what they are, for the record."""

    training: Path
    held_out: Path
    tokenizer: Path
    facts: dict[str, Any]


def prepare_text(run: Path, out: Path, workers: int) -> Text:
    """Divide and pack the corpus of a run into ``out``, unless it is there.

    Args:
        run: a run folder whose corpus and tokenizer are complete; it is only read.

    Raises:
        LaunchError: a stage of it is missing. BadInput: ``out`` holds other text, or there is too little.
    """
    keys = {stage: require_stage(run, stage)["key"] for stage in ("corpus", "tokenizer")}
    if not (out / TEXT_NAME).is_file():
        with atomic_dir(out) as folder:
            _divide_and_pack(run, folder, keys, workers)
    facts = json.loads((out / TEXT_NAME).read_text("utf-8"))
    if facts["made_from"] != keys:
        raise BadInput(f"{out}: made from another corpus or vocabulary than that of {run}; choose another --out")
    return Text(out / TRAINING, out / HELD_OUT, out / "tokenizer", facts)


def _divide_and_pack(run: Path, folder: Path, keys: dict[str, str], workers: int) -> None:
    shutil.copytree(run / "tokenizer", folder / "tokenizer")
    facts: dict[str, Any] = {"made_from": keys}
    for part in PARTS:
        corpus = folder / f"{part}-corpus"
        (corpus / "documents").mkdir(parents=True)
        for shard in shard_paths(run / "corpus" / "documents"):
            write_shard(corpus / "documents" / shard.name, list(_of_part(read_documents(shard), part)))
        (folder / part).mkdir()
        meta = pack(PackConfig(), PackInputs(corpus, folder / "tokenizer"), folder / part, workers=workers)
        sealed = json.loads((folder / part / "meta.json").read_text("utf-8"))
        facts[part] = {"tokens": meta["tokens"], "documents": meta["documents"], "sha256": sealed["sha256"]}
        shutil.rmtree(corpus)
    atomic_write(folder / TEXT_NAME, json.dumps(facts, indent=1) + "\n")


def _of_part(documents: Iterator[Document], part: str) -> Iterator[Document]:
    for document in documents:
        draw = int(blake2b(document.id.encode(), digest_size=8, person=b"speedrun").hexdigest(), 16) / 2**64
        if (draw < HELD_OUT_SHARE) == (part == HELD_OUT):
            yield document


# --- what all are measured on


class AllMasked(MaskingConfig):
    """All chosen pieces are shown as [MASK]."""

    mask_share: ClassVar[float] = 1.0
    random_share: ClassVar[float] = 0.0


class Judge:
    """Held-out rows, at most ``rows`` of them by chance, and the words hidden in them; the same for all."""

    def __init__(self, text: Text, rows: int) -> None:
        self._source, self.pieces = open_blocks(text.held_out, text.tokenizer, rows)
        self._config = PretrainConfig.model_validate(
            in_sections({"seed": SEED, "measure_rows": rows, "sequence_length": LENGTH})
        ).replaced("rows", masking=AllMasked())
        self._chosen = choose_rows(self._source, self._config)

    def batches(self, config: PretrainConfig) -> list[tuple[float, Batch]]:
        """The rows as the objective of ``config`` takes them, each batch with the weight of its rows."""
        found = []
        for part in self._chosen:
            for begin in range(0, len(part.rows_B), ROWS_AT_ONCE):
                rows_B = part.rows_B[begin : begin + ROWS_AT_ONCE]
                rows = self._source.gather(np.zeros_like(rows_B), rows_B)
                keys_B = held_out_keys(self._config, rows)
                masked = mask_rows(rows, keys_B, self.pieces, self._config.rows.masking)
                found.append((part.weight, as_batch(rows, masked)))
        return found

    def baselines(self, text: Text) -> dict[str, float]:
        """Accuracies (0..1) of counting the training text, on the same predictions."""
        training, _ = open_blocks(text.training, text.tokenizer)
        return score_baselines(count_baselines(training, self.pieces), self._source, self.pieces, self._config)


@torch.no_grad()
def score(batches: list[tuple[float, Batch]], sums_of: SumsOf) -> dict[str, float]:
    """Mean "loss" (nats) of the hidden pieces and their "accuracy" (0..1); BadInput where the loss is not finite."""
    loss = hits = predictions = 0.0
    for weight, batch in batches:
        summed, hit = sums_of(batch)
        loss += weight * float(summed)
        hits += weight * float(hit)
        predictions += weight * batch.predictions
    if not predictions:
        raise BadInput("nothing of the held-out rows could be masked; give text that the tokenizer knows")
    if not math.isfinite(loss):
        raise BadInput("its held-out loss is not finite; lower pretrain.optimizer.lr")
    return {"loss": loss / predictions, "accuracy": hits / predictions}


def open_blocks(tokens: Path, tokenizer: Path, most: int | None = None) -> tuple[RowSource, Pieces]:
    """All full rows of a store, or ``most`` of them by chance; BadInput where there is none."""
    store = open_store(tokens, tokenizer)
    total = total_blocks(store, LENGTH)
    if not total:
        raise BadInput(f"{tokens}: {len(store.tokens)} tokens fill no row of {LENGTH}; give more text")
    pieces = describe_pieces(read_pieces(tokenizer), store.meta["special_ids"])
    stop = total if most is None else min(most, total)
    return Blocks(store, LENGTH, LENGTH, 0, stop, derive_key(SEED, "speedrun"), "word"), pieces
