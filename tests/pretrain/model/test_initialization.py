"""First values by counting: against sums over a dictionary, numpy's own decomposition, and a training that has them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from corpus.documents.errors import BadInput
from pretrain.batching.held_out_split import split_rows
from pretrain.batching.masking import describe_pieces
from pretrain.config import PretrainConfig
from pretrain.model import initialization
from pretrain.model.initialization import count_initial_values, ppmi, singular_vectors, write_initial_values
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store, read_pieces
from tests.pretrain.runs import assert_same_training, lines_without_timing, rewind_to, train

SPECIAL = 3  # the pieces 0 to 2


def slow_ppmi(ids: list[int], size: int) -> np.ndarray:
    pairs: Counter[tuple[int, int]] = Counter()
    for place, piece in enumerate(ids):
        for other in (*range(place - 2, place), *range(place + 1, place + 3)):
            if 0 <= other < len(ids) and piece >= SPECIAL and ids[other] >= SPECIAL:
                pairs[piece, ids[other]] += 1
    counts = Counter(piece for piece in ids if piece >= SPECIAL)
    contexts = {piece: count**0.75 for piece, count in counts.items()}
    totals = Counter[int]()
    for (piece, _), count in pairs.items():
        totals[piece] += count
    found = np.zeros((size, size))
    for (piece, near), count in pairs.items():
        share = contexts[near] / sum(contexts.values())
        found[piece, near] = max(0.0, math.log(count / (totals[piece] * share)))
    return found


def zipf_ids(size: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return np.minimum(rng.zipf(1.3, count) - 1, size - 1).astype(np.int32)


@pytest.mark.parametrize("cells_at_once", [1 << 24, 3 * 40])
def test_mutual_information_equals_sums_over_a_dictionary(cells_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(initialization, "_CELLS_AT_ONCE", cells_at_once)
    ids_N = zipf_ids(40, 3000)
    found = ppmi(ids_N, np.arange(40) < SPECIAL).to_dense().numpy()
    np.testing.assert_allclose(found, slow_ppmi(ids_N.tolist(), 40), atol=1e-6)
    assert (found > 0).sum() > 100


def test_vectors_keep_the_similarities_that_numpy_finds() -> None:
    rng = np.random.default_rng(3)
    matrix = sum(2.0**-k * np.outer(*rng.standard_normal((2, 60))) for k in range(10)) + 1e-3 * rng.random((60, 60))
    matrix[7] = 0.0
    left, values, _ = np.linalg.svd(matrix)
    expected = left[:, :4] * values[:4] ** 0.5  # up to the sign of each column
    sparse = torch.from_numpy(matrix).float().to_sparse()
    found = singular_vectors(sparse, 4, seed=1).numpy()
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-3)
    assert not found[7].any()
    assert np.array_equal(found, singular_vectors(sparse, 4, seed=1).numpy())


@pytest.fixture
def counted(made: Path, tiny: Callable[..., PretrainConfig]) -> Callable[..., tuple]:
    def count(**changes: object) -> tuple:
        config = tiny(output_bias="frequency", embedding_init="cooccurrence", **changes)
        store = open_store(made / "tokens", made / "tokenizer")
        pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
        training = split_rows(store, config).training
        values = count_initial_values(training, pieces, config.model.hidden, config)
        network = build_network(config, store.meta["vocab_size"], store.meta["special_ids"])
        return config, store, pieces, training, values, network

    return count


@pytest.mark.parametrize("changes", [{}, {"packing": "documents"}, {"architecture": "bert", "nsp": True}])
def test_bias_is_initialized_with_the_share_of_each_piece(
    counted: Callable[..., tuple], changes: dict[str, object]
) -> None:
    _, store, pieces, training, values, network = counted(**changes)
    write_initial_values(network, values)
    rows = np.arange(training.count(0))
    ids = training.gather(np.zeros_like(rows), rows).ids_BL
    counts = Counter(ids[~pieces.special_V[ids]].tolist())
    bias = network.get_output_embeddings().bias.detach().double()
    expected = torch.tensor([counts[id_] + 1.0 for id_ in range(store.meta["vocab_size"])])
    torch.testing.assert_close(bias.softmax(0), expected.double() / expected.sum(), rtol=1e-4, atol=0)


def test_embeddings_have_one_length_on_the_whole_and_unseen_pieces_keep_theirs(
    counted: Callable[..., tuple],
) -> None:
    *_, values, network = counted()
    before = network.get_input_embeddings().weight.detach().clone()
    write_initial_values(network, values)
    after = network.get_input_embeddings().weight.detach()
    is_known = values.embeddings_VH.any(dim=1)
    assert 0 < int((~is_known).sum()) < len(is_known)
    assert torch.equal(after[~is_known], before[~is_known])
    torch.testing.assert_close(
        after[is_known].norm(dim=1).square().mean().sqrt(), torch.tensor(initialization.ROW_NORM)
    )
    assert not torch.isclose(after[is_known], before[is_known]).all(dim=1).any()


COUNTED = {"output_bias": "frequency", "embedding_init": "cooccurrence"}
MODERN = {"architecture": "modernbert", "layers": 3, "hidden": 64, "heads": 4, "intermediate": 48, "dropout": 0.0}


@pytest.mark.parametrize(
    ("plain", "changes"), [({}, COUNTED), (MODERN | COUNTED, MODERN | COUNTED | {"attention_init": "from_counts"})]
)
def test_training_begins_lower_and_resumes(
    made: Path, tiny: Callable[..., PretrainConfig], tmp_path: Path, plain: dict[str, Any], changes: dict[str, Any]
) -> None:
    config = tiny(**changes)
    train(tiny(**plain), made, tmp_path / "plain")
    train(config, made, tmp_path / "whole")
    train(config, made, tmp_path / "resumed")
    rewind_to(tmp_path / "resumed", 3)
    train(config, made, tmp_path / "resumed")
    assert_same_training(tmp_path / "whole", tmp_path / "resumed")
    first, first_plain = (lines_without_timing(tmp_path / name)[0]["loss"] for name in ("whole", "plain"))
    assert first < first_plain


def test_a_continued_model_has_its_own_values(tiny: Callable[..., PretrainConfig]) -> None:
    with pytest.raises(ValueError, match="brings trained weights"):
        tiny(init_from="klue/roberta-base", output_bias="frequency")


def test_a_head_without_bias_is_refused(counted: Callable[..., tuple]) -> None:
    *_, values, network = counted()
    network.get_output_embeddings().bias = None
    with pytest.raises(BadInput, match="has no bias"):
        write_initial_values(network, values)
