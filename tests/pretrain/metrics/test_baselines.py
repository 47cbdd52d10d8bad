"""Guesses by counting equal those of a plain loop over Counters."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from corpus.documents.errors import BadInput
from pretrain.batching.held_out_split import Split, split_rows
from pretrain.batching.masking import IGNORED, Pieces, describe_pieces, mask_rows, row_keys
from pretrain.batching.sources import Rows, RowSource
from pretrain.config import MaskingConfig, PretrainConfig
from pretrain.engine.world import World
from pretrain.metrics.baselines import Baselines, count_baselines, score_baselines
from pretrain.metrics.held_out import choose_rows, measure
from pretrain.model.loss import Sums
from pretrain.pack.store import open_store, read_pieces

SMALL = describe_pieces(["[CLS]", "[SEP]", "[MASK]", "가", "나", "다"], {"cls": 0, "sep": 1, "mask": 2})


class Given:
    """Rows as they are written down."""

    def __init__(self, ids_BL: list[list[int]]) -> None:
        self._ids_BL = np.array(ids_BL)

    def count(self, epoch: int) -> int:
        return len(self._ids_BL)

    def gather(self, epochs_B: Any, rows_B: Any) -> Rows:
        return Rows(self._ids_BL[rows_B], rows_B)

    def sources(self, epoch: int, rows_B: Any) -> Any:
        return rows_B % 2


def parts_of(made: Path, config: PretrainConfig) -> tuple[Split, Pieces]:
    store = open_store(made / "tokens", made / "tokenizer")
    return split_rows(store, config), describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])


def most_frequent(counts: Counter[int]) -> int:
    return min(counts, key=lambda piece: (-counts[piece], piece))


def slow_tables(training: RowSource, pieces: Pieces) -> tuple[Counter[int], dict[Any, Counter[int]]]:
    """Counts of pieces, and of pieces by left neighbour and by both neighbours."""
    pieces_of, inside = Counter(), defaultdict(Counter)
    for row in range(training.count(0)):
        ids = training.gather(np.zeros(1, np.int64), np.array([row])).ids_BL[0].tolist()
        for left, piece, right in zip(ids, ids[1:], ids[2:], strict=False):
            if not pieces.special_V[piece]:
                pieces_of[piece] += 1
                inside[left][piece] += 1
                inside[left, right][piece] += 1
    return pieces_of, inside


def slow_scores(
    tables: tuple[Counter[int], dict[Any, Counter[int]]], held_out: RowSource, pieces: Pieces, config: PretrainConfig
) -> dict[str, float]:
    pieces_of, inside = tables
    hits, predictions = Counter(), 0.0
    for chosen in choose_rows(held_out, config):
        for row in chosen.rows_B.tolist():
            rows = held_out.gather(np.zeros(1, np.int64), np.array([row]))
            keys_B = row_keys(config.seed, config.rows.masking, np.zeros_like(rows.names_B), rows.names_B)
            masked = mask_rows(rows, keys_B, pieces, config.rows.masking)
            ids = masked.ids_BL[0].tolist()
            for place, target in zip(masked.positions_BM[0].tolist(), masked.targets_BM[0].tolist(), strict=True):
                if target == IGNORED:
                    continue
                left, right = ids[place - 1], ids[place + 1]
                unigram = most_frequent(pieces_of)
                bigram = unigram if left == pieces.mask_id or left not in inside else most_frequent(inside[left])
                both = bigram
                if pieces.mask_id not in (left, right) and (left, right) in inside:
                    both = most_frequent(inside[left, right])
                predictions += chosen.weight
                for name, guess in (("unigram", unigram), ("bigram", bigram), ("both_sides", both)):
                    hits[f"{name}_accuracy"] += chosen.weight * (guess == target)
    return {name: count / predictions for name, count in hits.items()}


@pytest.mark.parametrize(("kind", "measure_rows"), [({}, 2048), ({}, 50), ({"architecture": "bert", "nsp": True}, 50)])
def test_accuracies_equal_those_of_plain_counters(made: Path, tiny, kind: dict[str, Any], measure_rows: int) -> None:
    config = tiny(held_out_share=0.3, measure_rows=measure_rows, **kind)
    split, pieces = parts_of(made, config)
    training, held_out = split.training, split.held_out
    found = score_baselines(count_baselines(training, pieces), held_out, pieces, config)
    tables = slow_tables(training, pieces)
    assert found == pytest.approx(slow_scores(tables, held_out, pieces, config), rel=1e-12)
    assert 0 < found["unigram_accuracy"] < found["bigram_accuracy"] <= found["both_sides_accuracy"] < 1


def test_a_model_that_always_says_the_most_frequent_piece_scores_as_the_unigram_guess(made: Path, tiny) -> None:
    config = tiny(held_out_share=0.3, measure_rows=50)
    split, pieces = parts_of(made, config)
    training, held_out = split.training, split.held_out
    baselines = count_baselines(training, pieces)

    class Parrot:
        module = torch.nn.Identity()

        def __call__(self, ids_BL: Any, positions_BM: Any, targets_BM: torch.Tensor, *rest: Any) -> Sums:
            nothing = torch.tensor(0.0)
            return Sums(nothing, (targets_BM == baselines.unigram).sum().float(), nothing, nothing)

    engine: Any = Parrot()
    figures = measure(engine, held_out, ["a", "b"], pieces, config, World(0, 1, torch.device("cpu")), 4)
    found = score_baselines(baselines, held_out, pieces, config)
    assert found["unigram_accuracy"] == pytest.approx(figures["masked_accuracy"], rel=1e-12) and figures["rows"] == 50


def test_tables_equal_those_of_plain_counters(made: Path, tiny) -> None:
    split, pieces = parts_of(made, tiny())
    found = count_baselines(split.training, pieces)
    pieces_of, inside = slow_tables(split.training, pieces)
    assert found.tokens == pieces_of.total() and found.unigram == most_frequent(pieces_of)
    for piece, guess in enumerate(found.after_V.tolist()):
        assert guess == (most_frequent(inside[piece]) if piece in inside else found.unigram)
    size = len(pieces.special_V)
    between = {divmod(code, size): best for code, best in zip(*map(np.ndarray.tolist, found[3:]), strict=True)}
    assert between == {pair: most_frequent(counts) for pair, counts in inside.items() if isinstance(pair, tuple)}


def test_equally_frequent_pieces_give_the_lowest_id_and_special_pieces_none() -> None:
    found = count_baselines(Given([[0, 5, 4, 1], [0, 4, 5, 1], [0, 1, 1, 1]]), SMALL)
    assert found.unigram == 4 and found.tokens == 4
    assert found.after_V.tolist() == [4, 4, 4, 4, 5, 4]


def test_counting_stops_at_the_given_number_of_pieces_out_of_rows_spread_over_the_corpus() -> None:
    rows = [[0, 3 + row // 1000, 3 + row // 1000, 1] for row in range(3000)]  # three sources, one after the other
    found = count_baselines(Given(rows), SMALL, max_tokens=1001)
    assert found.tokens == 1001 and found.after_V[3:].tolist() == [3, 4, 5]
    again = count_baselines(Given(rows), SMALL, max_tokens=1001)
    assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))


def test_a_masked_neighbor_gives_no_information(tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    # were "[MASK]" taken for a neighbour like others, the guess after it would be 5 and right
    baselines = Baselines(1, 3, np.array([3, 3, 5, 3, 3, 3]), np.array([2 * 6 + 2]), np.array([5]))
    monkeypatch.setattr(MaskingConfig, "mask_share", 1.0)
    config = tiny(sequence_length=10, measure_rows=8, masking={"share": 0.99})
    held_out = Given([[0, 5, 5, 5, 5, 5, 5, 5, 5, 1]] * 4)
    assert set(score_baselines(baselines, held_out, SMALL, config).values()) == {0.0}


def test_training_rows_without_a_single_piece_are_refused() -> None:
    with pytest.raises(BadInput, match="only special pieces"):
        count_baselines(Given([[0, 1, 1, 1]]), SMALL)
