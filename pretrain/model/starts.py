"""First values that counting gives a fresh model: the bias of its vocabulary head, and the embeddings of its pieces.

The bias begins as the log frequency of each piece, so no step is spent on how frequent pieces are. Embeddings begin as
the left singular vectors of the positive pointwise mutual information (PPMI) of pieces and their neighbours, so pieces
that are used alike begin alike (Levy, Goldberg and Dagan 2015: context frequencies to the power of .75, singular values
to that of .5). The matrix is counted a few rows at a time and kept where it is positive: memory grows with the sample,
never with the corpus or the square of the vocabulary.

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
from pretrain.model.contexts import Maps, begin_with_contexts, count_maps
from pretrain.rng import derive_key, permute

if TYPE_CHECKING:
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)

MOST_TOKENS = 20_000_000
REACH = 2  # neighbours on each side; rows of a sample are three or more apart, by [SEP] and [CLS]
CONTEXT_POWER, SINGULAR_POWER = 0.75, 0.5
SPARE_VECTORS, REFINEMENTS = 16, 2  # of the randomized decomposition
ROW_NORM = 1.1  # .04 for each of 768 columns; with .28, .55 and 2.2 a model of 192 learnt more slowly
_ROWS_AT_ONCE = 1024
_CELLS_AT_ONCE = 1 << 24  # of the matrix


class FirstValues(NamedTuple):
    """What replaces the model's own first values; None: nothing."""

    bias_V: Tensor | None
    embeddings_VH: (
        Tensor | None
    )  # ``ROW_NORM`` long on the whole; zeros for pieces that the sample does not hold, which keep their own
    maps: Maps | None = None  # what the first two layers begin with


def count_first_values(
    training: RowSource, pieces: Pieces, hidden: int, config: PretrainConfig, most_tokens: int = MOST_TOKENS
) -> FirstValues:
    """Count rows of epoch 0, chosen at random and unmasked, of ``most_tokens`` tokens in all (or all there are).

    Seeded by ``config.seed``; machines differ by rounding in the decomposition. BadInput: fewer pieces than ``hidden``.
    """
    wants_embeddings = config.model.embedding_start == "cooccurrence"
    if config.model.output_bias == "zero" and not wants_embeddings:
        return FirstValues(None, None)
    ids_N = _sample(training, config.seed, most_tokens)
    bias_V = None
    if config.model.output_bias == "frequency":
        bias_V = log_frequencies(np.bincount(ids_N[~pieces.special_V[ids_N]], minlength=len(pieces.special_V)))
    if not wants_embeddings:
        return FirstValues(bias_V, None)
    if len(pieces.special_V) < hidden:
        raise BadInput(
            f"pretrain.model.embedding_start is cooccurrence, but {len(pieces.special_V)} pieces have no {hidden} "
            "singular vectors; leave it out, or lower pretrain.model.hidden"
        )
    matrix_VV = ppmi(ids_N, pieces.special_V)
    log.info("embeddings begin from %s pairs of neighbours among %s tokens", f"{matrix_VV._nnz():,}", f"{len(ids_N):,}")
    vectors_VH = singular_vectors(matrix_VV, hidden, config.seed)
    length = vectors_VH[vectors_VH.any(dim=1)].square().sum(1).mean().sqrt()
    embeddings_VH = vectors_VH * (ROW_NORM / length)
    wants_maps = config.model.attention_start == "counted"
    maps = count_maps(ids_N, pieces.special_V, embeddings_VH) if wants_maps else None
    return FirstValues(bias_V, embeddings_VH, maps)


@torch.no_grad()
def give_first_values(network: PreTrainedModel, values: FirstValues) -> None:
    """Write them into a fresh network."""
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
        begin_with_contexts(network, values.maps)


def log_frequencies(counts_V: NDArray[np.integer]) -> Tensor:
    """Log of each piece's share, one added to every count; its mean is taken off, which no softmax sees.

    >>> [round(value, 3) for value in log_frequencies(np.array([0, 1, 3])).tolist()]
    [-0.693, 0.0, 0.693]
    """
    logs_V = np.log(counts_V + 1.0)
    return torch.from_numpy(logs_V - logs_V.mean()).float()


def ppmi(ids_N: NDArray[np.integer], special_V: NDArray[np.bool_]) -> Tensor:
    """Positive pointwise mutual information of pieces (rows) and pieces up to ``REACH`` places away; sparse, V x V.

    Special pieces are neither counted nor neighbours: their rows and columns are empty.
    """
    size = len(special_V)
    ids_N = np.pad(ids_N, REACH, constant_values=int(special_V.argmax()))
    places_P = np.flatnonzero(~special_V[ids_N])
    sortable_P = ids_N[places_P].astype(np.min_scalar_type(size))  # 16 bits are sorted five times as fast
    places_P = places_P[np.argsort(sortable_P, kind="stable")]  # the places of each piece, piece after piece
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
        is_kept = values_C > 0
        parts.append((row_C[is_kept] + first, column_C[is_kept], values_C[is_kept]))
    rows_C, columns_C, values_C = (np.concatenate(part) for part in zip(*parts, strict=True))
    indices_2C = torch.from_numpy(np.stack([rows_C, columns_C]))
    return torch.sparse_coo_tensor(
        indices_2C, torch.from_numpy(values_C).float(), (size, size), is_coalesced=True, check_invariants=False
    )


def singular_vectors(matrix_VV: Tensor, hidden: int, seed: int) -> Tensor:
    """The ``hidden`` largest left singular vectors, each times the root of its singular value; empty rows are 0; V x H.

    Found by random projections (Halko et al. 2011), so the last of them are approximate.
    """
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        torch.manual_seed(int(derive_key(seed, "singular vectors")))
        wide = min(hidden + SPARE_VECTORS, len(matrix_VV))
        rows_VV = matrix_VV.to_sparse_csr()  # as it is, its transpose would be sorted for every product
        vectors_VH, values_H, _ = torch.svd_lowrank(rows_VV, q=wide, niter=REFINEMENTS)
    found_VH = (vectors_VH * values_H**SINGULAR_POWER)[:, :hidden]
    is_empty_V = torch.ones(len(found_VH), dtype=torch.bool).index_fill_(0, matrix_VV.indices()[0], False)
    return found_VH.masked_fill(is_empty_V[:, None], 0.0)  # the projection leaves dust there


def _sample(training: RowSource, seed: int, most_tokens: int) -> NDArray[np.int32]:
    """Rows in a random order, as those of documents come source after source, one after the other."""
    total, found, parts = training.count(0), 0, []
    for begin in range(0, total, _ROWS_AT_ONCE):
        rows_B = permute(np.arange(begin, min(begin + _ROWS_AT_ONCE, total)), total, derive_key(seed, "counted rows"))
        parts.append(training.gather(np.zeros_like(rows_B), rows_B).ids_BL.astype(np.int32).reshape(-1))
        found += len(parts[-1])
        if found >= most_tokens:
            break
    return np.concatenate(parts)[:most_tokens]


def _count_neighbours(
    ids_N: NDArray[np.integer], own_P: NDArray[np.int64], first: int, last: int, special_V: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """How often each piece stands near those from ``first`` to before ``last``, which stand at ``own_P``; R x V."""
    size = len(special_V)
    own_rows_P, cells = (ids_N[own_P].astype(np.int64) - first) * size, []
    for distance in (*range(-REACH, 0), *range(1, REACH + 1)):
        near_P = ids_N[own_P + distance]
        cells.append((own_rows_P + near_P)[~special_V[near_P]])
    return np.bincount(np.concatenate(cells), minlength=(last - first) * size).reshape(last - first, size)
