"""Causal rows against the stock classes of transformers, document by document, and against slow masks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from pretrain.batching.batches import Batch, causal_batch
from pretrain.batching.masking import IGNORED
from pretrain.batching.sources import Rows
from pretrain.model import isolation, loss
from pretrain.model.isolation import isolate_documents
from pretrain.model.loss import PretrainingModule
from pretrain.model.networks import build_network

IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
LENGTH, VOCABULARY = 24, 50
PACKED = ([9, 4, 11], [5, 13], [24])  # lengths of the documents of rows; the second is padded
ENCODERS = ("roberta", "bert")
FAMILIES = ("gpt", *ENCODERS)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def networks(tiny, architecture: str, objective: str = "causal") -> tuple[PreTrainedModel, PreTrainedModel]:
    """Two of the same weights, larger than at the start, so that attention is far from uniform."""
    config = tiny(architecture=architecture, objective=objective, layers=2, dropout=0.0)
    found = [build_network(config, VOCABULARY, IDS) for _ in range(2)]
    for network in found:
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(4 if parameter.ndim > 1 else 1)
    return found[0], found[1]


def rows_of(lengths: tuple[list[int], ...] | None = None, seed: int = 1) -> Rows:
    """Random pieces: three blocks, or documents between [CLS] and [SEP]."""
    generator = torch.Generator().manual_seed(seed)
    ids_BL = torch.randint(5, VOCABULARY, (3, LENGTH), generator=generator)
    ids_BL[:, 0], ids_BL[:, -1] = IDS["cls"], IDS["sep"]
    if lengths is None:
        return Rows(ids_BL.numpy(), torch.arange(3).numpy())
    lengths_BS = torch.zeros(3, 3, dtype=torch.long)
    for row, sizes in enumerate(lengths):
        lengths_BS[row, : len(sizes)] = torch.tensor(sizes)
        ends = torch.tensor(sizes).cumsum(0)
        ids_BL[row, ends - 1] = IDS["sep"]
        ids_BL[row, ends - torch.tensor(sizes)] = IDS["cls"]
        ids_BL[row, ends[-1] :] = IDS["pad"]
    return Rows(ids_BL.numpy(), torch.arange(3).numpy(), lengths_BS.numpy())


def stock_loss(network: Any, batch: Batch) -> Tensor:
    """Sum of the losses of the stock class with ``labels=ids``, one document at a time."""
    total = torch.zeros(())
    for row, ids_L in enumerate(batch.ids_BL):
        sizes = [LENGTH] if batch.lengths_BS is None else [int(n) for n in batch.lengths_BS[row] if n]
        for part in ids_L[: sum(sizes)].split(sizes):
            total = total + network(part[None], labels=part[None]).loss * (len(part) - 1)
    return total


def gradient(network: PreTrainedModel) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in network.parameters() if parameter.grad is not None])


@pytest.mark.parametrize("layout", ["blocks", "documents", "documents by mask", "parts"])
@pytest.mark.parametrize("architecture", FAMILIES)
def test_losses_and_gradients_are_those_of_the_stock_class(
    tiny, monkeypatch: pytest.MonkeyPatch, architecture: str, layout: str
) -> None:
    ours, stock = networks(tiny, architecture)
    batch = causal_batch(rows_of(PACKED if "documents" in layout else None))
    if "documents" in layout:
        isolate_documents(ours)
    if layout == "documents by mask":
        monkeypatch.setattr(isolation, "_attend_one_by_one", isolation._attend_by_mask)
    if layout == "parts":
        monkeypatch.setattr(loss, "MAX_CAUSAL_SCORES", 13 * VOCABULARY)  # the scores of 72 tokens, 13 at a time
    sums, expected = PretrainingModule(ours)(*batch), stock_loss(stock, batch)
    assert batch.others == (66 - 6 if "documents" in layout else 69) and batch.predictions == 0
    assert sums.other_loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert sums.mlm_loss == sums.mlm_hits == 0
    sums.other_loss.backward()
    expected.backward()
    assert (gradient(ours) - gradient(stock)).norm() <= 2e-6 * gradient(stock).norm()
    hits = sum(
        int((stock(batch.ids_BL[row : row + 1]).logits[0, :-1].argmax(-1) == batch.ids_BL[row, 1:]).sum())
        for row in range(3 if batch.lengths_BS is None else 0)
    )
    assert batch.lengths_BS is not None or sums.other_hits == hits


def losses_by_token(network: PreTrainedModel, batch: Batch, count: int) -> list[float]:
    """The loss of each of the first tokens of the first row alone: no other target counts."""
    model, found = PretrainingModule(network), []
    for place in range(count):
        targets_BL = torch.full_like(batch.targets_BM, IGNORED)
        targets_BL[0, place] = batch.targets_BM[0, place]
        found.append(model(*batch._replace(targets_BM=targets_BL)).other_loss.item())
    return found


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("architecture", FAMILIES)
def test_nothing_leaks_from_the_future_or_from_another_document(tiny, architecture: str, packed: bool) -> None:
    network, _ = networks(tiny, architecture)
    rows = rows_of(PACKED if packed else None)
    if packed:
        isolate_documents(network)
    before = losses_by_token(network, causal_batch(rows), 12)
    changed_BL = rows.ids_BL.copy()
    changed_BL[0, 12:] = 7  # later; in packed rows the rest of the last document
    assert losses_by_token(network, causal_batch(rows._replace(ids_BL=changed_BL)), 11) == before[:11]
    changed_BL = rows.ids_BL.copy()
    changed_BL[0, 1:8] = 7  # earlier; in packed rows inside the first document of 9 tokens
    after = losses_by_token(network, causal_batch(rows._replace(ids_BL=changed_BL)), 12)
    assert (after[9:12] == before[9:12]) == packed


@pytest.mark.parametrize("architecture", ["gpt", *(pytest.param(name, marks=pytest.mark.matrix) for name in ENCODERS)])
def test_causal_rows_compile_to_one_graph(tiny, architecture: str) -> None:
    torch._dynamo.reset()
    network, _ = networks(tiny, architecture)
    model = PretrainingModule(network)
    compiled = torch.compile(model, fullgraph=True, dynamic=False, backend="eager")
    batch = causal_batch(rows_of())
    compiled(*batch)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for got, expected in zip(compiled(*batch), model(*batch), strict=True):
            assert got.item() == pytest.approx(expected.item(), rel=1e-5)
