"""Figures of causal objectives: held-out text, counting baselines, operations."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pretrain.batching.batches import causal_batch
from pretrain.batching.held_out_split import Split, split_rows
from pretrain.batching.masking import Pieces, describe_pieces
from pretrain.batching.sources import Rows
from pretrain.config import PretrainConfig
from pretrain.engine.world import World
from pretrain.metrics.baselines import count_baselines, score_baselines
from pretrain.metrics.flops import flops_per_token
from pretrain.metrics.held_out import choose_rows, measure
from pretrain.model.isolation import isolate_documents
from pretrain.model.loss import PretrainingModule
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store, read_pieces

IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
ALONE = World(0, 1, torch.device("cpu"))


class Engine:
    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __call__(self, *fields: Tensor | None) -> Any:
        return self.module(*fields)


def parts_of(made: Path, config: PretrainConfig) -> tuple[Split, Pieces, list[str]]:
    store = open_store(made / "tokens", made / "tokenizer")
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    return split_rows(store, config), pieces, store.source_names


@pytest.mark.parametrize(
    "settings",
    [
        {"architecture": "gpt"},
        {"architecture": "gpt", "packing": "documents"},
        {"architecture": "bert", "objective": "causal"},
    ],
)
def test_held_out_figures_are_those_of_the_stock_class_row_by_row(made: Path, tiny, settings: dict[str, Any]) -> None:
    config = tiny(held_out_share=0.3, measure_rows=40, dropout=0.0, **settings)
    split, pieces, names = parts_of(made, config)
    network, stock = (build_network(config, len(pieces.special_V), IDS) for _ in range(2))
    for one in (network, stock):
        with torch.no_grad():
            for weight in one.parameters():
                weight.mul_(4)
    if config.rows.packing == "documents":
        isolate_documents(network)
    engine: Any = Engine(PretrainingModule(network))
    found = measure(engine, split.held_out, names, pieces, config, ALONE, 7)
    losses = hits = tokens = predictions = 0.0
    for chosen in choose_rows(split.held_out, config):
        for row in chosen.rows_B.tolist():
            rows = split.held_out.gather(np.zeros(1, np.int64), np.array([row]))
            ids_1L = torch.from_numpy(rows.ids_BL[:, : int(rows.tokens_B[0])])
            output = stock.eval()(ids_1L, labels=ids_1L)
            count = ids_1L.shape[1] - 1
            losses += chosen.weight * output.loss.item() * count
            hits += chosen.weight * float((output.logits[0, :-1].argmax(-1) == ids_1L[0, 1:]).sum())
            tokens += chosen.weight * count
            predictions += count
    assert found["causal_loss"] == pytest.approx(losses / tokens, rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(losses / tokens), rel=1e-4)
    assert found["causal_accuracy"] == pytest.approx(hits / tokens, rel=1e-9) and hits > 0
    assert set(found["sources"]) == set(names) and found["rows"] == 40
    assert "mlm_loss" not in found
    assert found["predictions"] == predictions


@pytest.mark.parametrize("packing", ["blocks", "documents"])
def test_guesses_of_the_next_token_are_those_of_plain_counters(made: Path, tiny, packing: str) -> None:
    config = tiny(held_out_share=0.3, measure_rows=40, architecture="gpt", packing=packing)
    split, pieces, _ = parts_of(made, config)
    training, held_out = split.training, split.held_out
    pieces_of, after = Counter[int](), defaultdict(Counter[int])
    for row in range(training.count(0)):
        ids = training.gather(np.zeros(1, np.int64), np.array([row])).ids_BL[0].tolist()
        for left, piece in pairwise(ids[:-1]):  # what is counted has a neighbour on either side
            if not pieces.special_V[piece]:
                pieces_of[piece] += 1
                after[left][piece] += 1
    best = {left: min(counts, key=lambda piece: (-counts[piece], piece)) for left, counts in after.items()}
    unigram = min(pieces_of, key=lambda piece: (-pieces_of[piece], piece))
    hits, total = np.zeros(2), 0.0
    for chosen in choose_rows(held_out, config):
        for row in chosen.rows_B.tolist():
            rows = held_out.gather(np.zeros(1, np.int64), np.array([row]))
            ids = rows.ids_BL[0, : int(rows.tokens_B[0])].tolist()
            for left, piece in pairwise(ids):
                hits += chosen.weight * np.array([piece == unigram, piece == best.get(left, unigram)])
                total += chosen.weight
    found = score_baselines(count_baselines(training, pieces), held_out, pieces, config)
    assert found == pytest.approx(dict(zip(("unigram_accuracy", "bigram_accuracy"), hits / total, strict=True)))
    assert 0 < found["unigram_accuracy"] < found["bigram_accuracy"] < 1


@pytest.mark.parametrize("architecture", ["gpt", "roberta"])
def test_the_formula_counts_what_torch_counts(tiny, architecture: str) -> None:
    config, vocab_size = tiny(layers=2, dropout=0.0, architecture=architecture, objective="causal"), 96
    module = PretrainingModule(build_network(config, vocab_size, IDS))
    length = config.rows.sequence_length
    ids_BL = torch.randint(5, vocab_size, (3, length))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:  # plain products are all counted
        module(*causal_batch(Rows(ids_BL.numpy(), np.arange(3)))).other_loss.backward()
    assert flops_per_token(config, vocab_size) * 3 * length == counter.get_total_flops()
