"""Initialization of the first two layers of ModernBERT from counts: the new model predicts a token from its context.

- All embeddings get one common direction. Rotary positions rotate queries and keys made of it, so each head of the
  first layer attends to one offset: the piece before, the one after, the second before, the second after, and again.
  Heads of the second layer attend uniformly.
- The output of a head is a linear map, fitted by least squares, from the embedding of a piece to the mutual information
  (PPMI, discounted for rare pairs) of the pieces at that offset, reduced to the columns of the head.
- The vocabulary head starts near the identity without the common direction. Its input is so small that its GELU is
  almost linear; the norm after it restores the scale.

Shapes: V vocabulary, N sampled tokens, C cells, H hidden, O offsets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import layer_norm

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NEAR = (-1, 1, -2, 2)  # offsets of the heads of the first layer, in turn
# for the second layer, counted together
FAR = tuple(sign * distance for distance in (3, 5, 8, 12, 20, 30) for sign in (-1, 1))
NEAR_TOKENS, FAR_TOKENS = 5_000_000, 2_000_000  # to count
RARE = 5.0  # the information of a pair that occurs n times is multiplied by n / (n + RARE) (Pantel and Lin 2002)
SHARPNESS = 36.0  # of queries times keys in every rotary pair: a head gives .9 of its attention to its offset
# scales of the output of heads for each offset in ``NEAR``, of heads for all offsets, and of scores; they minimize the
# loss before the first step
NEAR_SCALES, FAR_SCALE, SCORE_SCALE = (4.0, 4.0, 2.0, 2.0), 8.0, 0.8
LINEAR = 0.1  # scale of the input of the head; as a scale of its matrix, training would rotate it ten times as fast
RIDGE = 0.1  # ridge of the least squares, relative to the mean of the diagonal


class Maps(NamedTuple):
    """Linear maps from the normalized embedding of one piece to scores of another (products with embeddings)."""

    near_OHH: Tensor  # for each of ``NEAR``
    far_HH: Tensor


def common_direction(hidden: int) -> Tensor:
    """A vector of length 1 and mean 0, which a layer norm does not change; H."""
    signs_H = torch.ones(hidden)
    signs_H[1::2] = -1
    return signs_H / math.sqrt(hidden)


def without_common(rows: Tensor) -> Tensor:
    """Rows (… x H) with mean 0 and without the common direction."""
    direction_H = common_direction(rows.shape[-1]).to(rows)
    rows = rows - rows.mean(-1, keepdim=True)
    return rows - (rows @ direction_H)[..., None] * direction_H


def count_maps(ids_N: NDArray[np.integer], special_V: NDArray[np.bool_], embeddings_VH: Tensor) -> Maps:
    """Count the sample and fit the maps to the embeddings of a new model; pieces are weighted by frequency."""
    own_VH = without_common(embeddings_VH)
    seen_VH = without_common(layer_norm(_with_common(own_VH), own_VH.shape[1:]))
    counts_V = np.bincount(ids_N[~special_V[ids_N]], minlength=len(special_V))
    weights_V1 = torch.from_numpy(counts_V / max(counts_V.max(), 1)).float()[:, None]
    to_own_HH, to_seen_HH = (_inverse(rows_VH.T @ (weights_V1 * rows_VH)) for rows_VH in (own_VH, seen_VH))

    def fitted(max_tokens: int, offsets: Sequence[int]) -> Tensor:
        table_VV = ppmi_at(ids_N[:max_tokens], special_V, offsets).to_sparse_csr()
        joint_HH = own_VH.T @ (weights_V1 * torch.sparse.mm(table_VV, weights_V1 * seen_VH))
        return to_own_HH @ joint_HH @ to_seen_HH

    return Maps(torch.stack([fitted(NEAR_TOKENS, [offset]) for offset in NEAR]), fitted(FAR_TOKENS, FAR))


def ppmi_at(ids_N: NDArray[np.integer], special_V: NDArray[np.bool_], offsets: Sequence[int]) -> Tensor:
    """Discounted positive mutual information of pieces (rows) and those at the offsets (columns); sparse, V x V."""
    size, cells = len(special_V), []
    for offset in offsets:
        own_N, near_N = (ids_N[:-offset], ids_N[offset:]) if offset > 0 else (ids_N[-offset:], ids_N[:offset])
        is_pair_N = ~(special_V[own_N] | special_V[near_N])
        cells.append(own_N[is_pair_N].astype(np.int64) * size + near_N[is_pair_N])
    cells_C, counts_C = np.unique(np.concatenate(cells), return_counts=True)
    row_C, column_C = np.divmod(cells_C, size)
    own_V, near_V = (np.bincount(numbers_C, counts_C, size) for numbers_C in (row_C, column_C))
    values_C = np.log(counts_C * counts_C.sum() / (own_V[row_C] * near_V[column_C])) * (counts_C / (counts_C + RARE))
    is_positive_C = values_C > 0
    indices_2C = torch.from_numpy(np.stack([row_C[is_positive_C], column_C[is_positive_C]]))
    values = torch.from_numpy(values_C[is_positive_C]).float()
    return torch.sparse_coo_tensor(indices_2C, values, (size, size), is_coalesced=True, check_invariants=False)


@torch.no_grad()
def write_maps(network: PreTrainedModel, maps: Maps) -> None:
    """Write the maps into a new ModernBERT whose embeddings are initialized."""
    base: Any = network.base_model
    embeddings_VH = base.embeddings.tok_embeddings.weight
    direction_H = common_direction(embeddings_VH.shape[1])
    embeddings_VH.copy_(_with_common(embeddings_VH))
    along = math.sqrt(len(direction_H) / 2)  # length of the direction after a norm
    first, second = (layer.attn for layer in base.layers[:2])
    _attend_to_offsets(first, math.sqrt(SHARPNESS) / along * direction_H, base.rotary_emb.full_attention_inv_freq)
    parts = [torch.linalg.svd(map_HH) for map_HH in maps.near_OHH]
    far = torch.linalg.svd(maps.far_HH)
    for head in range(base.config.num_attention_heads):
        turn, place = divmod(head, len(NEAR))
        _write_output(first, head, parts[place], turn, NEAR_SCALES[place])
        _write_output(second, head, far, head, FAR_SCALE)
    guess: Any = network.head
    guess.dense.weight.add_(torch.eye(len(direction_H)) - torch.outer(direction_H, direction_H))
    base.final_norm.weight.fill_(LINEAR)
    guess.norm.weight.fill_(SCORE_SCALE)


def _attend_to_offsets(attention: Any, direction_H: Tensor, rates_F: Tensor) -> None:
    """Make each head attend to one offset of ``NEAR``: its queries are its keys, rotated by the offset."""
    # heads x columns x H each
    queries, keys, _ = attention.Wqkv.weight.view(3, -1, attention.head_dim, len(direction_H))
    pairs = attention.head_dim // 2
    for head in range(len(keys)):
        angles_F1 = NEAR[head % len(NEAR)] * rates_F[:, None]
        keys[head, :pairs] += direction_H
        queries[head, :pairs] += angles_F1.cos() * direction_H
        queries[head, pairs:] += angles_F1.sin() * direction_H


def _write_output(attention: Any, head: int, svd: Sequence[Tensor], turn: int, scale: float) -> None:
    """Write the ``turn``-th group of singular vectors of a map into the values and output of a head."""
    left_HH, sizes_H, right_HH = svd
    width = attention.head_dim
    taken = slice(turn * width, (turn + 1) * width)
    roots = sizes_H[taken].sqrt()
    *_, values = attention.Wqkv.weight.view(3, -1, width, len(left_HH))
    values[head] = roots[:, None] * right_HH[taken]
    attention.Wo.weight[:, head * width : (head + 1) * width] = scale * left_HH[:, taken] * roots


def _with_common(rows_VH: Tensor) -> Tensor:
    own_VH = without_common(rows_VH)
    return own_VH + own_VH.norm(dim=1, keepdim=True) * common_direction(own_VH.shape[1])


def _inverse(squares_HH: Tensor) -> Tensor:
    ridge = RIDGE * squares_HH.diagonal().mean()
    return torch.linalg.inv(squares_HH + ridge * torch.eye(len(squares_HH)))
