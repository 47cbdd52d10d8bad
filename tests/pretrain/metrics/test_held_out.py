"""Held-out figures equal what transformers computes from each row alone, source by source, on any number of ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from corpus.documents.errors import BadInput
from pretrain.batching.held_out_split import split_rows
from pretrain.batching.masking import IGNORED, Pieces, describe_pieces, mask_rows, row_keys
from pretrain.batching.sources import Rows, RowSource
from pretrain.config import PretrainConfig
from pretrain.metrics.held_out import MAX_SOURCES, MIN_ROWS, choose_rows, measure
from pretrain.model.loss import PretrainingModule, Sums
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store, read_pieces

NSP: dict[str, Any] = {"architecture": "bert", "nsp": True}


class Engine:
    """The module and no more; counts its calls and the shapes it was given."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, *fields: Tensor | None) -> Sums:
        assert not self.module.training and not torch.is_grad_enabled()
        self.shapes.append(tuple(fields[1].shape))
        return self.module(*fields)


class OneOfMany:
    """A process of several that run in turn; ``total`` adds up what those before it brought."""

    device = torch.device("cpu")

    def __init__(self, rank: int, size: int, brought: list[Tensor]) -> None:
        self.rank, self.size, self._brought = rank, size, brought

    def total(self, values: Tensor) -> Tensor:
        self._brought.append(values.clone())
        return values.copy_(torch.stack(self._brought).sum(0))


class Setup(NamedTuple):
    config: PretrainConfig
    engine: Engine
    held_out: RowSource
    names: list[str]
    pieces: Pieces

    def on_ranks(self, ranks: int, micro_batch: int) -> dict[str, Any]:
        """Figures of the last of some processes."""
        brought: list[Tensor] = []
        for rank in range(ranks):
            world: Any = OneOfMany(rank, ranks, brought)
            figures = measure(self.engine, self.held_out, self.names, self.pieces, self.config, world, micro_batch)
        return figures


@pytest.fixture
def setup(made: Path, tiny) -> Callable[..., Setup]:
    def set_up(**changes: Any) -> Setup:
        config = tiny(held_out_share=0.3, **changes)
        store = open_store(made / "tokens", made / "tokenizer")
        special_ids = store.meta["special_ids"]
        vocabulary = read_pieces(made / "tokenizer")
        network = build_network(config, len(vocabulary), special_ids)
        with torch.no_grad():  # far from the uniform guess, and right at times, so that a wrong row or target shows
            for weight in network.parameters():
                weight.mul_(4)
            network.get_output_embeddings().bias += 3 * torch.linspace(-1, 1, len(vocabulary)).square()
        engine = Engine(PretrainingModule(network))
        held_out = split_rows(store, config).held_out
        return Setup(config, engine, held_out, store.source_names, describe_pieces(vocabulary, special_ids))

    return set_up


def slow_sums(setup: Setup, row: int) -> dict[str, float]:
    """What transformers says of one row: sums over its predictions."""
    rows = setup.held_out.gather(np.zeros(1, np.int64), np.array([row]))
    keys_B = row_keys(setup.config.seed, setup.config.rows.masking, np.zeros_like(rows.names_B), rows.names_B)
    masked = mask_rows(rows, keys_B, setup.pieces, setup.config.rows.masking)
    output, labels_L, loss = slow_forward(setup, rows, masked)
    is_target_L = labels_L != IGNORED
    logits = output["prediction_logits" if setup.config.model.nsp else "logits"][0]
    sums: dict[str, float] = {"rows": 1, "predictions": int(is_target_L.sum())}
    sums["mlm_loss"] = loss * int(is_target_L.sum()) if is_target_L.any() else 0.0
    sums["hits"] = int((logits.argmax(-1) == labels_L)[is_target_L].sum())
    if setup.config.model.nsp:
        label = torch.from_numpy(rows.is_random_BS[0])
        sums["nsp_loss"] = cross_entropy(output["seq_relationship_logits"], label).item()
        sums["nsp_hits"] = int(output["seq_relationship_logits"].argmax() == label)
    return sums


def slow_forward(setup: Setup, rows: Rows, masked: Any) -> tuple[Any, Tensor, float]:
    """Output for one row cut at its end, labels by position, and transformers' own loss of masked pieces."""
    length = int(rows.tokens_B[0])
    labels_L = torch.full((length,), IGNORED)
    for position, target in zip(masked.positions_BM[0], masked.targets_BM[0], strict=True):
        if target != IGNORED:
            labels_L[position] = int(target)
    network: Any = setup.engine.module.network.eval()
    ids_BL = torch.from_numpy(masked.ids_BL[:, :length].astype(np.int64))
    with torch.no_grad():
        if not setup.config.model.nsp:
            output = network(ids_BL, labels=labels_L[None])
            return output, labels_L, output.loss.item()
        output = network(ids_BL, token_type_ids=torch.from_numpy(rows.types_BL[:, :length]))
        loss = cross_entropy(output.prediction_logits[0], labels_L, ignore_index=IGNORED)
    network.train()
    return output, labels_L, loss.item()


def slow_figures(weighted_sums: list[tuple[float, dict[str, float]]], nsp: bool) -> dict[str, float]:
    total = {name: sum(w * sums[name] for w, sums in weighted_sums) for name in weighted_sums[0][1]}
    figures = {
        "mlm_loss": total["mlm_loss"] / total["predictions"],
        "masked_accuracy": total["hits"] / total["predictions"],
        "rows": len(weighted_sums),
        "predictions": sum(sums["predictions"] for _, sums in weighted_sums),
    }
    if nsp:
        figures["nsp_loss"] = total["nsp_loss"] / total["rows"]
        figures["nsp_accuracy"] = total["nsp_hits"] / total["rows"]
    return figures


@pytest.mark.parametrize("kind", [{}, NSP])
@pytest.mark.parametrize("measure_rows", [2048, 40])
def test_figures_equal_those_of_each_row_alone(setup, kind: dict[str, Any], measure_rows: int) -> None:
    case = setup(**kind, measure_rows=measure_rows)
    found = case.on_ranks(1, 4)
    everything, by_source = [], {}
    for chosen in choose_rows(case.held_out, case.config):
        sums = [slow_sums(case, row) for row in chosen.rows_B.tolist()]
        everything += [(chosen.weight, s) for s in sums]
        by_source[case.names[chosen.source]] = pytest.approx(slow_figures([(1, s) for s in sums], bool(kind)), rel=1e-5)
    assert len(everything) == min(measure_rows, case.held_out.count(0)) and len(by_source) == 2
    assert found.pop("sources") == by_source
    assert found == pytest.approx(slow_figures(everything, bool(kind)), rel=1e-5)


@pytest.mark.parametrize("kind", [{}, NSP])
def test_figures_are_the_same_on_any_number_of_ranks_and_for_any_micro_batch(setup, kind: dict[str, Any]) -> None:
    case = setup(**kind, measure_rows=37)
    alone = case.on_ranks(1, 8)
    for ranks, micro_batch in ((3, 8), (3, 5), (2, 1), (7, 64)):
        found = case.on_ranks(ranks, micro_batch)
        for name, figures in (alone["sources"] | {"": alone}).items():
            others = found["sources"][name] if name else found
            assert {k: v for k, v in figures.items() if k != "sources"} == pytest.approx(
                {k: v for k, v in others.items() if k != "sources"}, rel=1e-6
            )


def test_every_rank_calls_the_model_equally_often_with_equal_shapes(setup) -> None:
    case = setup(measure_rows=37)
    calls = []
    for rank in range(3):
        case.engine.shapes = []
        world: Any = OneOfMany(rank, 3, [])
        measure(case.engine, case.held_out, case.names, case.pieces, case.config, world, 4)
        calls.append(case.engine.shapes)
    assert calls[0] == calls[1] == calls[2] and set(calls[0]) == {(4, 5)}


def test_measuring_leaves_dropout_as_it_was_and_does_not_use_it(setup) -> None:
    case = setup(dropout=0.5)
    first = case.on_ranks(1, 4)
    assert case.engine.module.training
    assert case.on_ranks(1, 4) == first
    case.engine.module.eval()
    case.on_ranks(1, 4)
    assert not case.engine.module.training


class Numbered:
    """Rows that are only numbers, of sources of given sizes, one source after the other."""

    def __init__(self, sizes: list[int]) -> None:
        self._sources = np.repeat(np.arange(len(sizes)), sizes)

    def count(self, epoch: int) -> int:
        return len(self._sources)

    def gather(self, epochs_B: Any, rows_B: Any) -> Rows:
        raise NotImplementedError

    def sources(self, epoch: int, rows_B: Any) -> Any:
        return self._sources[rows_B]


def test_small_sources_get_a_few_rows_and_large_ones_equal_shares(tiny) -> None:
    sizes = [20_000, 3, 10_000, 0, 100, 17]
    chosen = choose_rows(Numbered(sizes), tiny(measure_rows=1000))
    counts = {part.source: len(part.rows_B) for part in chosen}
    assert sum(counts.values()) == 1000
    assert counts[1] == 3 and counts[4] == counts[5] == MIN_ROWS and 3 not in counts
    assert counts[0] == pytest.approx(2 * counts[2], abs=2)
    assert all(np.all(Numbered(sizes).sources(0, part.rows_B) == part.source) for part in chosen)
    assert all(len(set(part.rows_B.tolist())) == len(part.rows_B) for part in chosen)


def test_the_choice_does_not_distort_the_mean_over_all_rows(tiny) -> None:
    sizes, losses = [5000, 40, 7, 900], [2.0, 9.0, 5.0, 3.0]  # every row of a source has the same loss
    chosen = choose_rows(Numbered(sizes), tiny(measure_rows=200))
    weights = [part.weight * len(part.rows_B) for part in chosen]
    assert weights == pytest.approx(sizes)
    assert np.average(losses, weights=weights) == pytest.approx(np.average(losses, weights=sizes))


def test_rows_are_spread_over_their_source_and_always_the_same(tiny) -> None:
    rows_B = choose_rows(Numbered([10_000]), tiny(measure_rows=400))[0].rows_B
    assert np.all(np.abs(np.histogram(rows_B, 4, (0, 10_000))[0] - 100) < 40)  # sd 8.7
    again = choose_rows(Numbered([10_000]), tiny(measure_rows=400, steps=99))[0].rows_B
    other = choose_rows(Numbered([10_000]), tiny(measure_rows=400, seed=2))[0].rows_B
    assert np.array_equal(rows_B, again) and not np.array_equal(rows_B, other)


def test_fewer_rows_than_a_few_for_each_source_are_dealt_out_in_turn(tiny) -> None:
    chosen = choose_rows(Numbered([1000, 1000, 1000]), tiny(measure_rows=7))
    assert sorted(len(part.rows_B) for part in chosen) == [2, 2, 3]


def test_thousands_of_sources_leave_the_large_ones_their_rows(tiny) -> None:
    sizes = [1] * 3000 + [9000, 0, 6000] + [1] * 900
    chosen = choose_rows(Numbered(sizes), tiny(measure_rows=600))
    counts = {part.source: len(part.rows_B) for part in chosen}
    assert counts[3000] > 200 and counts[3002] > 130 and counts[-1] > 60
    assert len(chosen) == MAX_SOURCES + 1
    assert sum(part.weight * len(part.rows_B) for part in chosen) == pytest.approx(sum(sizes))


def test_nothing_held_out_is_refused_in_one_sentence(tiny) -> None:
    with pytest.raises(BadInput, match=r"no rows; raise pretrain\.rows\.held_out_share"):
        choose_rows(Numbered([]), tiny())


class OfUnknowns:
    """Two rows of [UNK] alone next to the rows of a real source, or two such rows alone."""

    def __init__(self, source: RowSource, unknown_id: int, alone: bool) -> None:
        self._source, self._unknown_id, self._alone = source, unknown_id, alone

    def count(self, epoch: int) -> int:
        return 2 if self._alone else self._source.count(epoch) + 2

    def gather(self, epochs_B: Any, rows_B: Any) -> Rows:
        rows = self._source.gather(epochs_B, np.maximum(rows_B - 2, 0))
        rows.ids_BL[rows_B < 2, 1:-1] = self._unknown_id
        return rows

    def sources(self, epoch: int, rows_B: Any) -> Any:
        return (rows_B < 2).astype(np.int64)


def test_a_source_with_nothing_to_mask_has_counts_but_no_figures(setup, made: Path) -> None:
    case = setup()
    unknown_id = open_store(made / "tokens", made / "tokenizer").meta["special_ids"]["unk"]
    found = case._replace(held_out=OfUnknowns(case.held_out, unknown_id, False), names=["words", "none"])
    figures = found.on_ranks(1, 4)
    assert figures["sources"]["none"] == {"rows": 2, "predictions": 0}
    assert figures["mlm_loss"] == pytest.approx(figures["sources"]["words"]["mlm_loss"])
    nothing = case._replace(held_out=OfUnknowns(case.held_out, unknown_id, True), names=["words", "none"])
    with pytest.raises(BadInput, match="no word of 2 held-out rows could be masked"):
        nothing.on_ranks(1, 4)
