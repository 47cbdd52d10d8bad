"""The batch of a step is a pure function of the step."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pretrain.batches import Batch, TrainingBatches, held_out_batches
from pretrain.config import BadInput, PretrainConfig
from pretrain.engine import fit_micro_batch, learning_rate
from pretrain.masking import describe_pieces
from pretrain.rows import split_rows
from pretrain.store import open_store, piece_ids, read_pieces


def batches_of(made: Path, config: PretrainConfig, rank: int, ranks: int, micro_batch: int) -> TrainingBatches:
    store = open_store(made / "tokens", made / "tokenizer")
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    return TrainingBatches(split_rows(store, config)[0], pieces, config, rank, ranks, micro_batch)


def joined(batches: list[Batch]) -> list[torch.Tensor]:
    return [torch.cat(fields) for fields in zip(*batches, strict=True) if fields[0] is not None]


@pytest.mark.parametrize("nsp", [False, True])
def test_ranks_and_micro_batches_see_the_same_global_batches(made: Path, tiny, nsp: bool) -> None:
    config = tiny(architecture="bert", nsp=nsp, global_batch=12)
    for step in (1, 40):  # the second is some epochs later
        alone = joined(batches_of(made, config, 0, 1, 12).of_step(step))
        for ranks, micro_batch in ((2, 3), (3, 4), (4, 1)):
            parts = [batches_of(made, config, rank, ranks, micro_batch).of_step(step) for rank in range(ranks)]
            together = joined([batch for part in parts for batch in part])
            assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


def test_an_epoch_shows_every_training_block_once_and_no_held_out_block(made: Path, tiny) -> None:
    config = tiny(global_batch=1)
    store = open_store(made / "tokens", made / "tokenizer")
    training, held_out = split_rows(store, config)
    batches = batches_of(made, config, 0, 1, 1)
    seen = []
    for step in range(1, training.count(0) + 1):
        batch = batches.of_step(step)[0]
        row = batch.ids_BL[0].clone()
        row[batch.positions_BM[0]] = torch.where(batch.targets_BM[0] >= 0, batch.targets_BM[0], 0)
        row[0] = 0
        seen.append(tuple(row[1:-1].tolist()))
    pieces_in_block = config.sequence_length - 2
    blocks = piece_ids(store.tokens)[: len(store.tokens) // pieces_in_block * pieces_in_block].reshape(-1, 30).tolist()
    assert held_out.count(0) == round(len(blocks) * config.held_out_share) > 0
    assert len(seen) + held_out.count(0) == len(blocks)
    assert len(set(seen)) == len(seen) and set(seen) < set(map(tuple, blocks))


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_held_out_predictions_count_once_whatever_the_ranks(made: Path, tiny, ranks: int) -> None:
    config = tiny(held_out_share=0.11)
    store = open_store(made / "tokens", made / "tokenizer")
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    rows = split_rows(store, config)[1]
    parts = [list(held_out_batches(rows, pieces, config, rank, ranks, 4)) for rank in range(ranks)]
    assert len({len(part) for part in parts}) == 1
    predictions = sum(batch.predictions for part in parts for batch in part)
    assert predictions == rows.count(0) * round(32 * config.masking.share)


def test_a_corpus_smaller_than_two_blocks_is_refused(made: Path, tiny) -> None:
    store = open_store(made / "tokens", made / "tokenizer")
    with pytest.raises(BadInput, match="1 blocks of 5002; training needs at least 2"):
        split_rows(store, tiny(positions=6000, sequence_length=len(store.tokens) // 5000 * 5000 + 2))


def test_processes_that_cannot_share_the_batch_are_told_the_nearest_one(tiny) -> None:
    with pytest.raises(BadInput, match="32 is not divisible by 3 processes; the nearest value that is: 33"):
        fit_micro_batch(tiny(global_batch=32), 3)
    assert fit_micro_batch(tiny(global_batch=36, micro_batch=8), 2) == 6


def test_the_rate_rises_over_the_warm_up_and_falls_to_nearly_nothing(tiny) -> None:
    config = tiny(steps=100, warmup_share=0.1, lr=1.0)
    rates = [learning_rate(config, step) for step in range(1, 101)]
    assert rates[0] == pytest.approx(0.1) and rates[9] == 1.0 and rates[10] == 1.0
    assert rates[-1] == pytest.approx(1 / 90) and rates[10:] == sorted(rates[10:], reverse=True)
