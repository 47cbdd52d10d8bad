"""The setup of a speedrun: text, vocabulary, held-out rows and their masks, the same for every candidate.

The documents of a run folder are divided once, by the hash of their ids, and packed into two stores. So the held-out
part is the same for every row length, packing and seed. The evaluation computes the loss on whole words: 15 % of the
tokens, chosen by a key of the setup and all shown as [MASK]. (BERT shows some of them unchanged or as other words.
That is a way to train, which not every candidate has.)

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
from pretrain.batching.batches import Batch, make_batch
from pretrain.batching.masking import Pieces, describe_pieces
from pretrain.batching.sources import Blocks, RowSource, total_blocks
from pretrain.config import MaskingConfig, PackConfig, PretrainConfig
from pretrain.metrics.baselines import count_baselines, score_baselines
from pretrain.metrics.held_out import choose_rows
from pretrain.pack.run import PackInputs
from pretrain.pack.run import run as pack
from pretrain.pack.store import open_store, read_pieces
from pretrain.rng import derive_key

HELD_OUT_SHARE = 0.02  # of the documents
LENGTH = 128  # tokens of an evaluation row
SEED = 0  # of the evaluation rows and masks
ROWS_AT_ONCE = 32
PARTS = TRAINING, HELD_OUT = "training", "held-out"
TEXT_NAME = "text.json"

SumsOf = Callable[[Batch], tuple[Tensor, Tensor]]  # loss (nats) and hits of the batch's targets, summed


class Text(NamedTuple):
    """Token stores for training and evaluation, their tokenizer, and sizes and digests for the record."""

    training: Path
    held_out: Path
    tokenizer: Path
    facts: dict[str, Any]


def prepare_text(run: Path, out: Path, workers: int) -> Text:
    """Divide and pack the corpus of a run into ``out``, unless ``out`` exists.

    Args:
        run: a run folder with complete corpus and tokenizer stages; it is not changed.

    Raises:
        LaunchError: a stage is missing. BadInput: ``out`` has different text, or there is too little text.
    """
    keys = {stage: require_stage(run, stage)["key"] for stage in ("corpus", "tokenizer")}
    if not (out / TEXT_NAME).is_file():
        with atomic_dir(out) as folder:
            _divide_and_pack(run, folder, keys, workers)
    facts = json.loads((out / TEXT_NAME).read_text("utf-8"))
    if facts["made_from"] != keys:
        raise BadInput(f"{out} was made from a different corpus or vocabulary than {run}; choose another --out")
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
        meta_file = json.loads((folder / part / "meta.json").read_text("utf-8"))
        facts[part] = {"tokens": meta["tokens"], "documents": meta["documents"], "sha256": meta_file["sha256"]}
        shutil.rmtree(corpus)
    atomic_write(folder / TEXT_NAME, json.dumps(facts, indent=1) + "\n")


def _of_part(documents: Iterator[Document], part: str) -> Iterator[Document]:
    for document in documents:
        draw = int(blake2b(document.id.encode(), digest_size=8, person=b"speedrun").hexdigest(), 16) / 2**64
        if (draw < HELD_OUT_SHARE) == (part == HELD_OUT):
            yield document


# --- evaluation


class AllMasked(MaskingConfig):
    """All chosen pieces are shown as [MASK]."""

    mask_share: ClassVar[float] = 1.0
    random_share: ClassVar[float] = 0.0


class Evaluation:
    """Held-out rows, a random sample of at most ``rows``, and the words masked in them; the same for all candidates."""

    def __init__(self, text: Text, rows: int) -> None:
        self._source, self.pieces = open_blocks(text.held_out, text.tokenizer, rows)
        config = PretrainConfig(seed=SEED).replaced("watch", measure_rows=rows)
        self._config = config.replaced("rows", sequence_length=LENGTH, masking=AllMasked())
        self._chosen = choose_rows(self._source, self._config)

    def batches(self, config: PretrainConfig) -> list[tuple[float, Batch]]:
        """The rows in the form of the objective of ``config``; each batch has the weight of its rows."""
        batches = []
        for part in self._chosen:
            for begin in range(0, len(part.rows_B), ROWS_AT_ONCE):
                rows_B = part.rows_B[begin : begin + ROWS_AT_ONCE]
                epochs_B = np.zeros_like(rows_B)
                rows = self._source.gather(epochs_B, rows_B)
                batches.append((part.weight, make_batch(rows, epochs_B, self.pieces, self._config)))
        return batches

    def baselines(self, text: Text) -> dict[str, float]:
        """Accuracies (0..1) of counting baselines on the same predictions."""
        training, _ = open_blocks(text.training, text.tokenizer)
        return score_baselines(count_baselines(training, self.pieces), self._source, self.pieces, self._config)


@torch.no_grad()
def score(batches: list[tuple[float, Batch]], sums_of: SumsOf) -> dict[str, float]:
    """Mean "loss" (nats) and "accuracy" (0..1) of the masked tokens; BadInput if the loss is not finite."""
    loss = hits = predictions = 0.0
    for weight, batch in batches:
        summed, hit = sums_of(batch)
        loss += weight * float(summed)
        hits += weight * float(hit)
        predictions += weight * batch.predictions
    if not predictions:
        raise BadInput("no token of the held-out rows can be masked; use text that the tokenizer knows")
    if not math.isfinite(loss):
        raise BadInput("the held-out loss is not finite; lower pretrain.optimizer.lr")
    return {"loss": loss / predictions, "accuracy": hits / predictions}


def open_blocks(tokens: Path, tokenizer: Path, max_rows: int | None = None) -> tuple[RowSource, Pieces]:
    """All full rows of a store, or a random sample of ``max_rows``; BadInput if there is none."""
    store = open_store(tokens, tokenizer)
    total = total_blocks(store, LENGTH)
    if not total:
        raise BadInput(f"{tokens}: {len(store.tokens)} tokens do not fill a row of {LENGTH}; use more text")
    pieces = describe_pieces(read_pieces(tokenizer), store.meta["special_ids"])
    stop = total if max_rows is None else min(max_rows, total)
    return Blocks(store, LENGTH, LENGTH, 0, stop, derive_key(SEED, "speedrun"), "word"), pieces
