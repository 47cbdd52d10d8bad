"""Mixtures of sources: shares, epochs, and rows that depend on the step alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from corpus.documents.errors import BadInput
from pretrain.batching.batches import TrainingBatches
from pretrain.batching.held_out_split import split_rows
from pretrain.batching.masking import describe_pieces
from pretrain.batching.mixture import Mixture, round_counts
from pretrain.batching.sources import Rows
from pretrain.pack.store import open_store, read_pieces
from pretrain.schedule import phases

SOURCES = {"일기": 3.0, "other": 0.5}


class Numbered:
    """Rows that hold their source, epoch and number in the source."""

    def __init__(self, sizes: list[int]) -> None:
        self._ends = np.cumsum(sizes)

    def count(self, epoch: int) -> int:
        return int(self._ends[-1])

    def gather(self, epochs_B: np.ndarray, rows_B: np.ndarray) -> Rows:
        sources_B = self.sources(0, rows_B)
        numbers_B = rows_B - np.append(0, self._ends)[sources_B]
        return Rows(np.stack([sources_B, epochs_B, numbers_B], 1), rows_B)

    def sources(self, epoch: int, rows_B: np.ndarray) -> np.ndarray:
        return np.searchsorted(self._ends, rows_B, side="right")


def mixture_of(sizes: dict[str, int], weights: dict[str, float]) -> Mixture:
    return Mixture(Numbered(list(sizes.values())), sizes, weights, seed=1)


@pytest.mark.parametrize("batch", [7, 16, 100])
def test_shares_are_exact_after_a_thousand_steps_and_never_far_off(batch: int) -> None:
    mixture = mixture_of({"a": 900, "b": 90, "c": 10}, {"a": 1.0, "b": 4.0, "c": 0.5})
    exact = np.array([900, 360, 5]) / 1265
    found = mixture.gather(mixture.locate(np.arange(1000 * batch))).ids_BL[:, 0]
    counts = np.stack([np.cumsum(found == source) for source in range(3)], 1)
    assert np.abs(counts[-1] / len(found) - exact).max() < 0.0005
    assert np.abs(counts - np.arange(1, len(found) + 1)[:, None] * exact).max() < 20  # sequences, at any time


def test_every_source_has_its_own_epochs_each_with_every_row_once() -> None:
    mixture = mixture_of({"a": 50, "b": 7, "c": 300}, {"a": 1.0, "b": 10.0, "c": 0.2})
    sequences = np.arange(3 * 65_536)
    rows = mixture.gather(mixture.locate(sequences)).ids_BL
    for source, (name, size) in enumerate((("a", 50), ("b", 7), ("c", 300))):
        own = rows[rows[:, 0] == source]
        assert len(own) / size == pytest.approx(mixture.epochs_of(name, len(sequences)), rel=1e-3)
        by_epoch = Counter(own[:, 1].tolist())
        complete = [epoch for epoch, count in by_epoch.items() if count == size]
        assert len(complete) > len(by_epoch) - 2
        for epoch in complete[:5]:
            assert sorted(own[own[:, 1] == epoch][:, 2].tolist()) == list(range(size))


def test_sequences_are_the_same_alone_and_together_and_their_order_is_kept() -> None:
    mixture = mixture_of({"a": 50, "b": 50}, {"a": 1.0, "b": 1.0})
    at = np.array([70_000, 3, 17, 65_536])
    together = mixture.gather(mixture.locate(at))
    alone = [mixture.gather(mixture.locate(at[n : n + 1])).ids_BL[0].tolist() for n in range(4)]
    assert together.ids_BL.tolist() == alone
    names = mixture.names_of(mixture.locate(at))
    assert names == [f"{'ab'[source]}:{epoch}:{row}" for source, epoch, row in alone]


@pytest.mark.parametrize("shares", [[1e-9, 1 - 1e-9], [1 / 3] * 3, [1e-7] * 9 + [1 - 9e-7], [0.1] * 10])
def test_a_round_holds_every_source(shares: list[float]) -> None:
    counts = round_counts(np.array(shares))
    assert counts.sum() == 65_536 and counts.min() >= 1
    assert np.abs(counts / 65_536 - shares).max() < (len(shares) + 1) / 65_536


def batches_of(made: Path, config, rank: int, ranks: int, micro_batch: int = 2) -> TrainingBatches:
    store = open_store(made / "tokens", made / "tokenizer")
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    return TrainingBatches(split_rows(store, config), pieces, config, rank, ranks, micro_batch)


@pytest.mark.parametrize("packing", ["blocks", "documents"])
def test_tokens_of_each_source_have_their_share(made: Path, tiny, packing: str) -> None:
    """Documents exactly; blocks of this corpus cross many borders, so their sources are those of the first pieces."""
    config = tiny(steps=1000, global_batch=8, sources=SOURCES, packing=packing, dropout=0.0)
    store = open_store(made / "tokens", made / "tokenizer")
    split, tokens = split_rows(store, config), Counter[int]()
    rows, natural, weights = split.training_rows(32, SOURCES)
    expected = natural["일기"] * 3 / (natural["일기"] * 3 + natural["수필"] * 0.5)
    numbers = dict(zip(natural, np.split(np.arange(rows.count(0)), np.cumsum(list(natural.values()))), strict=False))
    mixture = Mixture(rows, natural, weights, config.seed)
    places = mixture.locate(np.arange(8000))
    found = mixture.gather(places)
    segment_tokens = found.tokens_B
    for number, name in enumerate(mixture.names):
        tokens[name] = int(segment_tokens[places.sources_B == number].sum())
        own = rows.sources(0, numbers[name])
        assert set(own.tolist()) == {store.source_names.index(name)}
    share = tokens["일기"] / sum(tokens.values())
    if packing == "documents":
        sizes = {name: rows.gather(np.zeros_like(own), own).tokens_B.sum() for name, own in numbers.items()}
        expected = sizes["일기"] * 3 / (sizes["일기"] * 3 + sizes["수필"] * 0.5)
    assert share == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("power", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("packing", ["blocks", "documents"])
def test_a_number_is_the_power_of_the_natural_shares(made: Path, tiny, packing: str, power: float) -> None:
    config = tiny(steps=1000, sources=power, packing=packing, dropout=0.0)
    assert str(phases(config)[0]).endswith(f"sources to the power of {power:g}")
    store = open_store(made / "tokens", made / "tokenizer")
    rows, natural, weights = split_rows(store, config).training_rows(32, config.rows.sources)
    mixture = Mixture(rows, natural, weights, config.seed)
    found = np.bincount(mixture.locate(np.arange(8000)).sources_B) / 8000
    expected = np.array([natural[name] ** power for name in ("수필", "일기")])
    assert found == pytest.approx(expected / expected.sum(), abs=0.005)
    assert power == 1 or weights["일기"] > weights["수필"]  # the smaller source


@pytest.mark.parametrize("packing", ["blocks", "documents"])
def test_batches_of_a_mixture_are_the_same_on_any_number_of_ranks(made: Path, tiny, packing: str) -> None:
    parts = [{"until": 0.5, "sequence_length": 16}, {"sources": {"일기": 0.0}, "global_batch": 4}]
    config = tiny(steps=10, sources=SOURCES, phases=parts, packing=packing, dropout=0.0)
    alone, two = batches_of(made, config, 0, 1, 8), [batches_of(made, config, rank, 2) for rank in range(2)]
    for step in (1, 5, 6, 10):
        ids = [batch.ids_BL.tolist() for batch in alone.of_step(step)]
        both = [row for part in two for batch in part.of_step(step) for row in batch.ids_BL.tolist()]
        assert [row for rows in ids for row in rows] == both and len(both) == (8 if step <= 5 else 4)
        assert alone.names_of_step(step) == two[1].names_of_step(step)
    assert alone.mixture_of(alone.phase_at(6)).names == ["수필"]
    progress = alone.progress(10)
    assert progress["sequences"] == 60 and progress["source_epochs"].keys() == {"수필", "일기"}
    assert alone.progress(5)["source_epochs"]["일기"] == progress["source_epochs"]["일기"] > 0


def test_unknown_sources_are_refused_with_the_known_ones(made: Path, tiny) -> None:
    with pytest.raises(BadInput, match=r"no source 뉴스; its sources are 수필, 일기 \(other"):
        batches_of(made, tiny(sources={"뉴스": 2.0}), 0, 1)
    with pytest.raises(BadInput, match="no source with a weight above 0"):
        batches_of(made, tiny(phases=[{"sources": {"other": 0.0}}]), 0, 1)
