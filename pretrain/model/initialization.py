"""Initialization from counts: the bias of the vocabulary head, and the embeddings of the pieces.

The bias is the log frequency of each piece. Embeddings are the left singular vectors of the positive pointwise mutual
information (PPMI) of pieces and their neighbors (Levy, Goldberg and Dagan 2015: context frequencies to the power of
.75, singular values to the power of .5). Memory grows with the sample, not with the square of the vocabulary.

Shapes: V vocabulary, N sampled tokens, P places among them, R rows of the matrix at once, C its positive cells, H
hidden.
"""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from corpus.documents.errors import BadInput
from pretrain.batching.masking import Pieces
from pretrain.batching.sources import RowSource
from pretrain.config import PretrainConfig
from pretrain.model.attention_init import Maps, count_maps, write_maps
from pretrain.rng import derive_key, permute

if TYPE_CHECKING:
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)

MAX_TOKENS = 20_000_000
REACH = 2  # neighbors on each side; [SEP] and [CLS] separate the rows of the sample
CONTEXT_POWER, SINGULAR_POWER = 0.75, 0.5
SPARE_VECTORS, REFINEMENTS = 16, 2  # of the randomized SVD
ROW_NORM = 1.1  # .04 in each of 768 columns; with .28, .55 and 2.2 a model of width 192 learned more slowly
_ROWS_AT_ONCE = 1024
_CELLS_AT_ONCE = 1 << 24  # of the matrix


class InitialValues(NamedTuple):
    """Values that replace the random initialization; None: nothing is replaced."""

    bias_V: Tensor | None
    embeddings_VH: Tensor | None  # mean norm ``ROW_NORM``; pieces that are not in the sample have zeros and stay random
    maps: Maps | None = None  # for the first two layers


def count_initial_values(
    training: RowSource, pieces: Pieces, hidden: int, config: PretrainConfig, max_tokens: int = MAX_TOKENS
) -> InitialValues:
    """Count random unmasked rows of epoch 0 with up to ``max_tokens`` tokens in total.

    Seeded by ``config.seed``; the SVD differs by rounding between machines. BadInput: fewer pieces than ``hidden``.
    """
    has_embeddings = config.model.embedding_init == "cooccurrence"
    if config.model.output_bias == "zero" and not has_embeddings:
        return InitialValues(None, None)
    ids_N = _sample(training, config.seed, max_tokens)
    bias_V = None
    if config.model.output_bias == "frequency":
        bias_V = log_frequencies(np.bincount(ids_N[~pieces.special_V[ids_N]], minlength=len(pieces.special_V)))
    if not has_embeddings:
        return InitialValues(bias_V, None)
    if len(pieces.special_V) < hidden:
        raise BadInput(
            f"pretrain.model.embedding_init is cooccurrence, but {len(pieces.special_V)} pieces have fewer than "
            f"{hidden} singular vectors; leave it out, or lower pretrain.model.hidden"
        )
    matrix_VV = ppmi(ids_N, pieces.special_V)
    log.info(
        "initialized embeddings from %s pairs of neighbors in %s tokens", f"{matrix_VV._nnz():,}", f"{len(ids_N):,}"
    )
    vectors_VH = singular_vectors(matrix_VV, hidden, config.seed)
    length = vectors_VH[vectors_VH.any(dim=1)].square().sum(1).mean().sqrt()
    embeddings_VH = vectors_VH * (ROW_NORM / length)
    has_maps = config.model.attention_init == "from_counts"
    maps = count_maps(ids_N, pieces.special_V, embeddings_VH) if has_maps else None
    return InitialValues(bias_V, embeddings_VH, maps)


@torch.no_grad()
def write_initial_values(network: PreTrainedModel, values: InitialValues) -> None:
    """Write the values into a new network."""
    if values.bias_V is not None:
        head = network.get_output_embeddings()
        if getattr(head, "bias", None) is None:
            raise BadInput(
                "pretrain.model.output_bias is frequency, but this architecture's head has no bias; leave it out"
            )
        head.bias.copy_(values.bias_V)
    if values.embeddings_VH is not None:
        weight_VH: Any = network.get_input_embeddings().weight
        is_known_V1 = values.embeddings_VH.any(dim=1, keepdim=True)
        weight_VH.copy_(torch.where(is_known_V1, values.embeddings_VH, weight_VH))
    if values.maps is not None:
        write_maps(network, values.maps)


def log_frequencies(counts_V: NDArray[np.integer]) -> Tensor:
    """Log of each piece's share, with one added to every count and the mean subtracted, which no softmax sees.

    >>> [round(value, 3) for value in log_frequencies(np.array([0, 1, 3])).tolist()]
    [-0.693, 0.0, 0.693]
    """
    logs_V = np.log(counts_V + 1.0)
    return torch.from_numpy(logs_V - logs_V.mean()).float()


def ppmi(ids_N: NDArray[np.integer], special_V: NDArray[np.bool_]) -> Tensor:
    """Positive pointwise mutual information of pieces (rows) and neighbors up to ``REACH`` places away; sparse, V x V.

    Special pieces are not counted: their rows and columns are empty.
    """
    size = len(special_V)
    ids_N = np.pad(ids_N, REACH, constant_values=int(special_V.argmax()))
    places_P = np.flatnonzero(~special_V[ids_N])
    sortable_P = ids_N[places_P].astype(np.min_scalar_type(size))  # 16-bit integers are sorted five times as fast
    places_P = places_P[np.argsort(sortable_P, kind="stable")]  # the places of all pieces, grouped by piece
    counts_V = np.bincount(ids_N[places_P], minlength=size)
    ends_V = np.cumsum(counts_V)
    contexts_V = counts_V**CONTEXT_POWER
    contexts_V /= contexts_V.sum()
    parts, height = [], max(1, _CELLS_AT_ONCE // size)
    for first in range(0, size, height):
        last = min(first + height, size)
        own_P = places_P[ends_V[first] - counts_V[first] : ends_V[last - 1]]
        table_RV = _count_neighbours(ids_N, own_P, first, last, special_V)
        row_C, column_C = np.nonzero(table_RV)
        expected_C = table_RV.sum(1)[row_C] * contexts_V[column_C]
        values_C = np.log(table_RV[row_C, column_C] / expected_C)
        is_positive = values_C > 0
        parts.append((row_C[is_positive] + first, column_C[is_positive], values_C[is_positive]))
    rows_C, columns_C, values_C = (np.concatenate(part) for part in zip(*parts, strict=True))
    indices_2C = torch.from_numpy(np.stack([rows_C, columns_C]))
    return torch.sparse_coo_tensor(
        indices_2C, torch.from_numpy(values_C).float(), (size, size), is_coalesced=True, check_invariants=False
    )


def singular_vectors(matrix_VV: Tensor, hidden: int, seed: int) -> Tensor:
    """The ``hidden`` largest left singular vectors, each times the root of its singular value; empty rows are 0; V x H.

    Computed with random projections (Halko et al. 2011), so the last of them are approximate.
    """
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        torch.manual_seed(int(derive_key(seed, "singular vectors")))
        wide = min(hidden + SPARE_VECTORS, len(matrix_VV))
        rows_VV = matrix_VV.to_sparse_csr()  # the transpose of a COO matrix would be sorted for every product
        vectors_VH, values_H, _ = torch.svd_lowrank(rows_VV, q=wide, niter=REFINEMENTS)
    scaled_VH = (vectors_VH * values_H**SINGULAR_POWER)[:, :hidden]
    is_empty_V = torch.ones(len(scaled_VH), dtype=torch.bool).index_fill_(0, matrix_VV.indices()[0], False)
    return scaled_VH.masked_fill(is_empty_V[:, None], 0.0)  # the projection leaves rounding errors there


def _sample(training: RowSource, seed: int, max_tokens: int) -> NDArray[np.int32]:
    """Tokens of rows in random order, because rows of documents are ordered by source."""
    total, tokens, parts = training.count(0), 0, []
    for begin in range(0, total, _ROWS_AT_ONCE):
        rows_B = permute(np.arange(begin, min(begin + _ROWS_AT_ONCE, total)), total, derive_key(seed, "counted rows"))
        parts.append(training.gather(np.zeros_like(rows_B), rows_B).ids_BL.astype(np.int32).reshape(-1))
        tokens += len(parts[-1])
        if tokens >= max_tokens:
            break
    return np.concatenate(parts)[:max_tokens]


def _count_neighbours(
    ids_N: NDArray[np.integer], own_P: NDArray[np.int64], first: int, last: int, special_V: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """How often each piece is a neighbor of the pieces ``first`` to before ``last``, at places ``own_P``; R x V."""
    size = len(special_V)
    own_rows_P, cells = (ids_N[own_P].astype(np.int64) - first) * size, []
    for distance in (*range(-REACH, 0), *range(1, REACH + 1)):
        near_P = ids_N[own_P + distance]
        cells.append((own_rows_P + near_P)[~special_V[near_P]])
    return np.bincount(np.concatenate(cells), minlength=(last - first) * size).reshape(last - first, size)
