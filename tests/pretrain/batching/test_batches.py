"""The batch of a step is a pure function of the step."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from corpus.documents.errors import BadInput
from pretrain.batching.batches import Batch, TrainingBatches, ready_steps
from pretrain.batching.held_out_split import split_rows
from pretrain.batching.masking import describe_pieces
from pretrain.batching.mixture import RowOrder
from pretrain.config import PretrainConfig
from pretrain.metrics.flops import flops_by_phase, flops_per_token
from pretrain.pack.store import open_store, piece_ids, read_pieces


def batches_of(made: Path, config: PretrainConfig, rank: int, ranks: int, micro_batch: int) -> TrainingBatches:
    store = open_store(made / "tokens", made / "tokenizer")
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    return TrainingBatches(split_rows(store, config), pieces, config, rank, ranks, micro_batch)


def joined(batches: list[Batch]) -> list[torch.Tensor]:
    return [torch.cat(fields) for fields in zip(*batches, strict=True) if fields[0] is not None]


@pytest.mark.parametrize("packing", ["blocks", "documents"])
@pytest.mark.parametrize("nsp", [False, True])
def test_ranks_and_micro_batches_see_the_same_global_batches(made: Path, tiny, nsp: bool, packing: str) -> None:
    config = tiny(architecture="bert", nsp=nsp, packing=packing, global_batch=12)
    for step in (1, 40):  # the second is some epochs later
        alone = joined(batches_of(made, config, 0, 1, 12).of_step(step))
        for ranks, micro_batch in ((2, 3), (3, 4), (4, 1)):
            parts = [batches_of(made, config, rank, ranks, micro_batch).of_step(step) for rank in range(ranks)]
            together = joined([batch for part in parts for batch in part])
            assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


def test_an_epoch_shows_every_training_block_once_and_no_held_out_block(made: Path, tiny) -> None:
    config = tiny(global_batch=1)
    store = open_store(made / "tokens", made / "tokenizer")
    split = split_rows(store, config)
    training, held_out = split.training, split.held_out
    batches = batches_of(made, config, 0, 1, 1)
    seen = []
    for step in range(1, training.count(0) + 1):
        batch = batches.of_step(step)[0]
        row = batch.ids_BL[0].clone()
        row[batch.positions_BM[0]] = torch.where(batch.targets_BM[0] >= 0, batch.targets_BM[0], 0)
        row[0] = 0
        seen.append(tuple(row[1:-1].tolist()))
    pieces_in_block = config.rows.sequence_length - 2
    blocks = piece_ids(store.tokens)[: len(store.tokens) // pieces_in_block * pieces_in_block].reshape(-1, 30).tolist()
    assert held_out.count(0) == round(len(blocks) * config.rows.held_out_share) > 0
    assert len(seen) + held_out.count(0) == len(blocks)
    assert len(set(seen)) == len(seen) and set(seen) < set(map(tuple, blocks))


@pytest.mark.parametrize("unit", ["word", "eojeol"])
def test_short_blocks_come_first_and_hold_nothing_that_is_held_out(made: Path, tiny, unit: str) -> None:
    parts = [{"until": 0.8, "sequence_length": 12}, {}]
    config = tiny(steps=10, phases=parts, global_batch=6, masking={"unit": unit})
    batches = batches_of(made, config, 0, 1, 3)
    assert [batch.ids_BL.shape for step in (8, 9) for batch in batches.of_step(step)] == [(3, 12)] * 2 + [(3, 32)] * 2
    split = split_rows(open_store(made / "tokens", made / "tokenizer"), config)
    short = split.training_rows(12)[0]
    assert short.count(0) == split.training.count(0) * 3  # 3 blocks of 10 in each of 30
    epochs = 48 / short.count(0) + 6 / split.training.count(0)
    assert batches.progress(9) == {"step": 9, "sequences": 54, "epochs": pytest.approx(epochs, abs=1e-3)}
    stretches = []
    for source in (short, split.held_out):
        rows = np.arange(source.count(0))
        found = source.gather(np.zeros_like(rows), rows)
        stretches.append(
            {
                place
                for first, ids in zip(found.names_B.tolist(), found.ids_BL, strict=True)
                for place in range(first, first + len(ids) - 2)
            }
        )
    assert not stretches[0] & stretches[1]


def test_each_phase_has_its_own_exact_budget_and_the_rows_continue_through_all(made: Path, tiny) -> None:
    """Steps 1 to 9 of a falling share show the rows and, as far as they are masked at all, the masks of one share."""
    parts = [{"masked_share": 0.3, "until": 0.4}, {"masked_share": 0.15, "until": 0.7}, {"masked_share": 0.07}]
    config = tiny(steps=9, global_batch=7, phases=parts)
    falling, alike = (batches_of(made, c, 0, 1, 7) for c in (config, tiny(steps=9, global_batch=7)))
    budgets = []
    for step in range(1, 10):
        ours, one = falling.of_step(step)[0], alike.of_step(step)[0]
        assert falling.names_of_step(step) == alike.names_of_step(step)
        assert (ours.targets_BM >= 0).all()
        budgets.append(ours.targets_BM.shape[1])
        if budgets[-1] == 5:
            assert all(torch.equal(a, b) for a, b in zip(joined([ours]), joined([one]), strict=True))
    assert budgets == [10] * 4 + [5] * 2 + [2] * 3  # 30, 15 and 7 % of 32
    assert falling.progress(9) == alike.progress(9)
    operations = flops_by_phase(falling, config, 96)
    assert operations == [flops_per_token(tiny(masking={"share": share}), 96) for share in (0.3, 0.15, 0.07)]


def test_a_corpus_smaller_than_two_blocks_is_refused(made: Path, tiny) -> None:
    store = open_store(made / "tokens", made / "tokenizer")
    with pytest.raises(BadInput, match="1 blocks of 5002; training needs at least 2"):
        split_rows(store, tiny(positions=6000, sequence_length=len(store.tokens) // 5000 * 5000 + 2))


def test_steps_are_prepared_in_pinned_memory_by_a_thread_of_the_own_gpu(
    made: Path, tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUDA does not survive a fork, a new thread uses the first GPU, and other memory is copied with a wait."""
    used: list[tuple[str, Any]] = []
    monkeypatch.setattr(
        torch.accelerator, "set_device_index", lambda device: used.append((threading.current_thread().name, device))
    )
    pinned: set[int] = set()
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: pinned.add(id(self)) or self)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("the loader forks"))
    gpu = torch.device("cuda", 3)
    steps = list(ready_steps(batches_of(made, tiny(packing="documents"), 0, 1, 4), 1, 3, gpu))
    assert [step.step for step in steps] == [1, 2, 3]
    assert used == [("batches_0", gpu)]
    fields = [field for step in steps for batch in step.batches for field in batch if isinstance(field, torch.Tensor)]
    assert all(id(field) in pinned for field in fields)
    assert all(batch.borders_N is not None for step in steps for batch in step.batches)
    list(ready_steps(batches_of(made, tiny(), 0, 1, 4), 1, 1, torch.device("cpu")))
    assert len(used) == 1


def test_epochs_of_different_sizes_follow_each_other() -> None:
    sizes = [5, 3, 7]
    epochs, rows = RowOrder(lambda epoch: sizes[epoch], seed=1).locate(np.arange(15))
    assert epochs.tolist() == [0] * 5 + [1] * 3 + [2] * 7
    for epoch, size in enumerate(sizes):
        assert sorted(rows[epochs == epoch].tolist()) == list(range(size))


def test_jumping_to_a_place_gives_what_walking_there_gives() -> None:
    walked = RowOrder(lambda epoch: 11, seed=4)
    everything = np.concatenate([walked.locate(np.arange(n, n + 4))[1] for n in range(0, 80, 4)])
    assert RowOrder(lambda epoch: 11, seed=4).locate(np.arange(60, 75))[1].tolist() == everything[60:75].tolist()
