"""Local attention in time linear in the row: a token sees those at most ``reach`` places away, and no others.

Rows are cut into blocks of ``reach`` tokens. A block looks at itself and its two neighbours, where all that it may see
lies, and a mask hides the rest: two of three keys compared are seen. Blocks and not segments decide the shapes, so it
runs on any device, compiled or not, without waiting for it.

    reach 4    [ a a a a | b b b b | c c c c | d d d d ]
                 └─────── keys of b ───────┘

Shapes: B rows, L positions, A attention heads, D size of a head, N blocks of a row, C tokens of a block, K keys.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

OUTSIDE = -1  # the segment of what lies before and after a row


def attend_nearby(
    heads: tuple[Tensor, Tensor, Tensor], reach: int, scaling: float | None, segments_BL: Tensor | None = None
) -> Tensor:
    """Attended values, B x L x A x D, of queries, keys and values, each B x A x L x D.

    ``segments_BL`` are numbers from 0; tokens of different ones do not see each other (None: a row is one segment).
    """
    count, _, length, _ = heads[0].shape
    if segments_BL is None:
        segments_BL = torch.zeros(count, length, dtype=torch.long, device=heads[0].device)
    if length <= 3 * reach:  # blocks would spare nothing
        mask_BLL = _sees(segments_BL, segments_BL, reach, 0)
        return scaled_dot_product_attention(*heads, attn_mask=mask_BLL[:, None], scale=scaling).transpose(1, 2)
    blocks = -(-length // reach)
    after = blocks * reach - length
    query_BNACD = pad(heads[0], (0, 0, 0, after)).unflatten(2, (blocks, reach)).transpose(1, 2)
    key_BNAKD, value_BNAKD = (
        _with_neighbours(pad(head_BALD, (0, 0, reach, after + reach)).unflatten(2, (-1, reach)).transpose(1, 2))
        for head_BALD in heads[1:]
    )
    queries_BNC = pad(segments_BL, (0, after), value=OUTSIDE).unflatten(1, (blocks, reach))
    keys_BNK = _with_neighbours(pad(segments_BL, (reach, after + reach), value=OUTSIDE).unflatten(1, (-1, reach)))
    attended_BNACD = scaled_dot_product_attention(
        query_BNACD.flatten(0, 1),
        key_BNAKD.flatten(0, 1),
        value_BNAKD.flatten(0, 1),
        attn_mask=_sees(queries_BNC, keys_BNK, reach, -reach).flatten(0, 1)[:, None],
        scale=scaling,
    ).unflatten(0, (count, blocks))
    return attended_BNACD.transpose(2, 3).flatten(1, 2)[:, :length]


def _with_neighbours(blocks: Tensor) -> Tensor:
    """All but the first and last block, with their neighbours; B x (N + 2) x C or B x (N + 2) x A x C x D."""
    return torch.cat([blocks[:, :-2], blocks[:, 1:-1], blocks[:, 2:]], dim=2 if blocks.ndim == 3 else 3)


def _sees(queries: Tensor, keys: Tensor, reach: int, first: int) -> Tensor:
    """Which keys each query sees, by their segments; ``first`` is the place of the first key, seen from the query."""
    places_C, places_K = (torch.arange(part.shape[-1], device=part.device) for part in (queries, keys))
    is_near_CK = (places_K + first - places_C[:, None]).abs() <= reach
    return (queries[..., :, None] == keys[..., None, :]) & is_near_CK
