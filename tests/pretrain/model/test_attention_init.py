"""A first layer and a second that begin with counts: where the heads look, what the scores lose, what is guessed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor
from torch.nn.functional import pad

from pretrain.checkpoint.export import with_export_scales
from pretrain.config import PretrainConfig
from pretrain.model.attention_init import (
    LINEAR,
    NEAR,
    SCORE_SCALE,
    Maps,
    common_direction,
    count_maps,
    ppmi_at,
    write_maps,
)
from pretrain.model.initialization import ROW_NORM, InitialValues, ppmi, singular_vectors, write_initial_values
from pretrain.model.networks import build_network

IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
SIZES = {"architecture": "modernbert", "layers": 3, "hidden": 64, "heads": 4, "intermediate": 48, "dropout": 0.0}
COUNTED = {"output_bias": "frequency", "embedding_init": "cooccurrence", "attention_init": "from_counts"}
PIECES, SPECIAL, KNOWN, LENGTH = 60, 5, 14, 24  # of the known pieces a head of 16 columns can carry the whole map


@pytest.fixture
def network(tiny: Callable[..., PretrainConfig]) -> Any:
    network = build_network(tiny(**SIZES), PIECES, IDS)
    network.set_attn_implementation("eager")
    return network.eval()


def no_maps(hidden: int) -> Maps:
    return Maps(torch.zeros(len(NEAR), hidden, hidden), torch.zeros(hidden, hidden))


def walk(length: int, seed: int) -> np.ndarray:
    """A text in which each piece mostly decides the next one, and most never come."""
    rng = np.random.default_rng(seed)
    order, found = np.random.default_rng(0).permutation(np.arange(SPECIAL, SPECIAL + KNOWN)), [0]
    for draw in rng.random(length - 1):
        found.append((found[-1] + 1) % len(order) if draw < 0.8 else int(rng.integers(len(order))))
    return order[found].astype(np.int32)


@pytest.mark.parametrize("offsets", [(-1,), (2,), (3, -3, 5)])
def test_mutual_information_at_a_distance_equals_sums_over_a_dictionary(offsets: tuple[int, ...]) -> None:
    ids_N = np.minimum(np.random.default_rng(5).zipf(1.3, 2000) - 1, 39).astype(np.int32)
    pairs: Counter[tuple[int, int]] = Counter()
    for place in range(len(ids_N)):
        for near in (place + offset for offset in offsets):
            if 0 <= near < len(ids_N) and min(ids_N[place], ids_N[near]) >= SPECIAL:
                pairs[int(ids_N[place]), int(ids_N[near])] += 1
    own, others, total = Counter[int](), Counter[int](), pairs.total()
    for (piece, near), count in pairs.items():
        own[piece] += count
        others[near] += count
    expected = torch.zeros(40, 40)
    for (piece, near), count in pairs.items():
        information = math.log(count / total / (own[piece] / total * others[near] / total))
        expected[piece, near] = max(0.0, information) * count / (count + 5)
    found = ppmi_at(ids_N, np.arange(40) < SPECIAL, offsets).to_dense()
    torch.testing.assert_close(found, expected)
    assert (found > 0).sum() > 50


def test_each_head_of_the_first_layer_looks_one_way(network: Any) -> None:
    write_maps(network, no_maps(64))
    ids_BL = torch.randint(SPECIAL, PIECES, (2, LENGTH), generator=torch.Generator().manual_seed(1))
    found = network(input_ids=ids_BL, output_attentions=True).attentions[0]  # rows x heads x places x places
    for head, offset in enumerate(NEAR):
        places = torch.arange(max(0, -offset), LENGTH - max(0, offset))
        assert found[:, head, places, places + offset].min() > 0.5, offset


def test_the_first_norm_leaves_the_same_in_common_of_all_pieces(network: Any) -> None:
    write_maps(network, no_maps(64))
    states = network.model.embeddings(torch.arange(PIECES)[None])
    torch.testing.assert_close(
        states[0] @ common_direction(64), torch.full((PIECES,), math.sqrt(32)), rtol=0.02, atol=0
    )


@torch.no_grad()
def test_the_prediction_layer_passes_on_all_but_what_pieces_have_in_common(network: Any) -> None:
    before_HH = network.head.dense.weight.clone()
    write_maps(network, no_maps(64))
    added_HH, direction_H = network.head.dense.weight - before_HH, common_direction(64)
    torch.testing.assert_close(added_HH @ direction_H, torch.zeros(64), rtol=0, atol=1e-5)
    own_H = torch.randn(64, generator=torch.Generator().manual_seed(1))
    own_H -= own_H @ direction_H * direction_H
    torch.testing.assert_close(added_HH @ own_H, own_H, rtol=0, atol=1e-4)
    assert torch.equal(network.base_model.final_norm.weight, torch.full((64,), LINEAR))
    assert torch.equal(network.head.norm.weight, torch.full((64,), SCORE_SCALE))


def test_an_untrained_model_guesses_from_both_sides(network: Any) -> None:
    """Between its neighbours a piece is all but known: .8 x .8 of the time the one between them in the order."""
    held_BL = torch.from_numpy(walk(200 * 9, 2)).long().view(200, 9)
    chance = hits(network, held_BL).float().mean()
    write_initial_values(network, counted(walk(40_000, 1), far=0.0))
    assert chance < 0.2
    assert hits(network, held_BL).float().mean() > 0.5


def test_an_untrained_model_guesses_from_all_around(network: Any) -> None:
    """Rows of one of two topics, in each of which half of the pieces come, in no order."""
    rng = np.random.default_rng(3)
    rows_BL = SPECIAL + 2 * rng.integers(KNOWN // 2, size=(600, 64)) + np.arange(600)[:, None] % 2
    held_BL = torch.from_numpy(rows_BL[:100, :LENGTH])
    write_initial_values(network, counted(rows_BL[100:].reshape(-1).astype(np.int32), near=0.0))
    assert (guesses(network, held_BL) % 2 == held_BL[:, 4] % 2).float().mean() > 0.9


@torch.no_grad()
def test_written_models_have_states_of_the_usual_size_and_the_same_scores(network: Any) -> None:
    """Heads of tasks read the states; a tenth of the usual size is learnt from ten times as slowly."""
    ids_BL = torch.from_numpy(walk(20 * 9, 2)).long().view(20, 9)
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    assert all(torch.equal(before[name], weight) for name, weight in with_export_scales(before).items())

    write_initial_values(network, counted(walk(40_000, 1)))
    scores, small = network(input_ids=ids_BL).logits, network.base_model(input_ids=ids_BL).last_hidden_state
    found = with_export_scales(network.state_dict())
    changed = {name for name, weight in found.items() if not torch.equal(weight, network.state_dict()[name])}
    network.load_state_dict(found)
    large = network.base_model(input_ids=ids_BL).last_hidden_state
    assert changed == {"model.final_norm.weight", "head.dense.weight"}
    assert torch.equal(network(input_ids=ids_BL).logits, scores)
    assert small.square().mean().sqrt() < 0.15 and 0.7 < large.square().mean().sqrt() < 1.5


def test_other_architectures_stay_as_they_are(tiny: Callable[..., PretrainConfig]) -> None:
    weights = build_network(tiny(), PIECES, IDS).state_dict()
    assert with_export_scales(weights) == dict(weights)


def counted(ids_N: np.ndarray, near: float = 1.0, far: float = 1.0) -> InitialValues:
    """First values of 64 columns from a text of ``KNOWN`` pieces, one layer's share times a number."""
    special_V = np.arange(PIECES) < SPECIAL
    vectors_VH = pad(singular_vectors(ppmi(ids_N, special_V), KNOWN, 1), (0, 64 - KNOWN))
    embeddings_VH = vectors_VH * ROW_NORM / vectors_VH[vectors_VH.any(1)].norm(dim=1).square().mean().sqrt()
    maps = count_maps(ids_N, special_V, embeddings_VH)
    return InitialValues(None, embeddings_VH, Maps(near * maps.near_OHH, far * maps.far_HH))


@torch.no_grad()
def guesses(network: Any, ids_BL: Tensor) -> Tensor:
    """The prediction for the fifth place, shown as [MASK]."""
    shown_BL = ids_BL.index_fill(1, torch.tensor([4]), IDS["mask"])
    return network(input_ids=shown_BL).logits[:, 4].argmax(-1)


def hits(network: Any, ids_BL: Tensor) -> Tensor:
    return guesses(network, ids_BL) == ids_BL[:, 4]


@pytest.mark.parametrize("changes", [{"architecture": "roberta"}, {"layers": 1}, {"embedding_init": "normal"}])
def test_it_needs_turned_queries_two_layers_and_counted_embeddings(
    tiny: Callable[..., PretrainConfig], changes: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError, match="attention_init from_counts needs modernbert"):
        tiny(**SIZES | COUNTED | changes)
