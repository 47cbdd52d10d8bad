"""Attention that stays within the segments (documents or pairs) of a packed row, and local attention in linear time.

The functions are registered with transformers. GPUs in half precision use torch's kernel for variable lengths, which
has no attention dropout, so no path has it. CPUs attend to one segment at a time; float32 on GPUs and compiled code on
CPUs use a block-diagonal mask. Local layers of ModernBERT compare neighboring blocks of tokens only.

Shapes: B rows, L positions, S segments of a row, A attention heads, D size of a head, N borders or blocks of a row, C
tokens of a block, K keys.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "isolated_segments"
NAME_OF_WINDOWS = "near_tokens"
NAME_OF_PAIRS = "padded_pairs"
NAME_WITHOUT_MASKS = "sdpa_without_masks"
OUTSIDE = -1  # segment number of the places before and after a row
FIRST_WITH_FLASH = (8, 0)  # compute capability that the kernel needs (Ampere)

Heads = tuple[Tensor, Tensor, Tensor]  # queries, keys and values, B x A x L x D


class Borders(NamedTuple):
    """Borders of the segments of packed rows; padding is a segment too, and unused segments are empty."""

    cumulative_N: Tensor  # int32, where segments begin in the concatenated rows, then B * L
    longest: int  # at least the length of each segment
    segments_BL: Tensor  # number of the segment in its row; S for padding
    places_BL: Tensor  # position in the segment, from 0


def isolate_documents(network: PreTrainedModel) -> None:
    """Make a model attend within the segments of ``borders``, an argument of its base model.

    Without borders, the model attends and masks padding as with "sdpa", but without attention dropout.
    """
    _attend_by(network, NAME)


def isolate_pairs(network: PreTrainedModel) -> None:
    """The same for padded rows of one pair, with attention dropout; for GPUs with the kernel (``has_kernel``).

    A mask of the padding would exclude the fast kernels.
    """
    _attend_by(network, NAME_OF_PAIRS)


def is_isolated(config: Any) -> bool:
    """Whether the model with this configuration needs ``borders``."""
    return config._attn_implementation in (NAME, NAME_OF_PAIRS)


def has_kernel(device: torch.device, precision: str) -> bool:
    """Whether attention with variable lengths has its kernel."""
    return device.type == "cuda" and precision != "fp32" and _find_kernel() is not None


def attend_in_windows(network: PreTrainedModel) -> None:
    """Make the local layers of a model (ModernBERT) compare near tokens only, instead of masking all others."""
    _attend_by(network, NAME_OF_WINDOWS)


def make_no_masks(network: PreTrainedModel) -> None:
    """Make a model attend with "sdpa" to rows without padding; its argument ``is_causal`` decides the direction.

    With the name "sdpa", transformers would look for packed rows in the positions, which waits for the device.
    """
    AttentionInterface.register(NAME_WITHOUT_MASKS, sdpa_attention_forward)
    network.set_attn_implementation(NAME_WITHOUT_MASKS)


def _attend_by(network: PreTrainedModel, name: str) -> None:
    AttentionInterface.register(
        name, partial(attend_within_segments, kernel=_find_kernel(), drops=name == NAME_OF_PAIRS)
    )
    AttentionMaskInterface.register(name, _mask_of_padding)
    network.set_attn_implementation(name)


def _mask_of_padding(**settings: Any) -> Tensor | None:
    return None if settings["attention_mask"] is None else sdpa_mask(**settings)


def find_borders(
    lengths_BS: Tensor, length: int, compact_N: Tensor | None = None, longest: int | None = None
) -> Borders:
    """Borders of the segments (lengths, then zeros) of rows of ``length`` tokens, without waiting for the device.

    ``compact_N`` and ``longest`` were computed on the host (``compact_borders``). Without them there are always
    B * (S + 1) + 1 borders, most of them equal.
    """
    ends_BS = lengths_BS.cumsum(1)
    places_L = torch.arange(length, device=lengths_BS.device)
    segments_BL = (places_L[None, :, None] >= ends_BS[:, None]).sum(-1)
    begins_BS1 = pad(ends_BS, (1, 0))  # the last is where the padding begins
    if compact_N is None:
        rows_B = torch.arange(len(lengths_BS), device=lengths_BS.device) * length
        compact_N = pad((rows_B[:, None] + begins_BS1).flatten(), (0, 1), value=len(lengths_BS) * length).int()
    return Borders(compact_N, longest or length, segments_BL, places_L - begins_BS1.gather(1, segments_BL))


def attend_within_segments(
    module: nn.Module,
    query_BALD: Tensor,
    key_BALD: Tensor,
    value_BALD: Tensor,
    attention_mask: Tensor | None,
    *,
    kernel: Callable[..., Any] | None,
    drops: bool = False,
    scaling: float | None = None,
    dropout: float = 0.0,
    borders: Borders | None = None,
    sliding_window: int | None = None,
    is_causal: bool = False,
    **_: object,
) -> tuple[Tensor, None]:
    """The attention function that transformers calls in each layer; returns the attended values, B x L x A x D.

    Args:
        attention_mask: for calls without borders; includes the window of a local layer.
        kernel: torch's ``varlen_attn`` if the GPU can run it.
        drops: whether there is attention dropout; only the kernel has it.
        sliding_window: of a local layer: the number of tokens on each side, plus one.
    """
    heads = (query_BALD, key_BALD, value_BALD)
    if borders is None and (attention_mask is not None or sliding_window is None):
        attended = scaled_dot_product_attention(*heads, attn_mask=attention_mask, is_causal=is_causal, scale=scaling)
        return attended.transpose(1, 2), None
    assert not is_causal or sliding_window is None
    reach = None if sliding_window is None else sliding_window - 1
    if kernel is not None and query_BALD.is_cuda and query_BALD.dtype in (torch.bfloat16, torch.float16):
        window = (reach, reach) if reach is not None else (-1, 0) if is_causal else None
        return _attend_by_kernel(heads, borders, scaling, kernel, window, dropout if drops else 0.0), None
    assert not (drops and dropout)
    if reach is not None:
        return attend_nearby(heads, reach, scaling, None if borders is None else borders.segments_BL), None
    assert borders is not None
    if query_BALD.device.type == "cpu" and not torch.compiler.is_compiling():
        return _attend_one_by_one(heads, borders, scaling, is_causal), None
    return _attend_by_mask(heads, borders, scaling, is_causal), None


def _attend_by_kernel(
    heads: Heads,
    borders: Borders | None,
    scaling: float | None,
    kernel: Callable[..., Any],
    window: tuple[int, int] | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """``window``: number of visible tokens before and after a token, -1 for all; not with dropout."""
    count, _, length, _ = heads[0].shape
    query, key, value = (head_BALD.transpose(1, 2).flatten(0, 1) for head_BALD in heads)
    if borders is None:
        longest, starts = length, torch.arange(0, (count + 1) * length, length, dtype=torch.int32, device=query.device)
    else:
        longest, starts = borders.longest, borders.cumulative_N
    packed = (query, key, value, starts, starts, longest, longest)
    if dropout:  # the public function fixes it at 0; this is the operation below it
        attended: Tensor = torch.ops.aten._flash_attention_forward(*packed, dropout, False, False, scale=scaling)[0]
    else:
        attended = kernel(*packed, scale=scaling, **({} if window is None else {"window_size": window}))
    return attended.unflatten(0, (count, length))  # from B * L x A x D


def _attend_one_by_one(heads: Heads, borders: Borders, scaling: float | None, is_causal: bool) -> Tensor:
    count, _, length, _ = heads[0].shape
    sizes = [size for size in borders.cumulative_N.diff().tolist() if size]
    parts = zip(*(head_BALD.transpose(1, 2).flatten(0, 1).split(sizes) for head_BALD in heads), strict=True)
    attended = []
    for part in parts:
        query, key, value = (tokens.transpose(0, 1)[None] for tokens in part)
        attended_1ALD = scaled_dot_product_attention(query, key, value, is_causal=is_causal, scale=scaling)
        attended.append(attended_1ALD[0].transpose(0, 1))
    return torch.cat(attended).unflatten(0, (count, length))


def _attend_by_mask(heads: Heads, borders: Borders, scaling: float | None, is_causal: bool) -> Tensor:
    mask_B1LL = (borders.segments_BL[:, :, None] == borders.segments_BL[:, None])[:, None]
    if is_causal:
        mask_B1LL = mask_B1LL.tril()
    return scaled_dot_product_attention(*heads, attn_mask=mask_B1LL, scale=scaling).transpose(1, 2)


def attend_nearby(
    heads: tuple[Tensor, Tensor, Tensor], reach: int, scaling: float | None, segments_BL: Tensor | None = None
) -> Tensor:
    """Local attention in time linear in the row: a token sees those up to ``reach`` places away in its segment.

    A block of ``reach`` tokens is compared with itself and its two neighbors, and a mask hides the rest:

        reach 4    [ a a a a | b b b b | c c c c | d d d d ]
                     └─────── keys of b ───────┘
    """
    count, _, length, _ = heads[0].shape
    if segments_BL is None:
        segments_BL = torch.zeros(count, length, dtype=torch.long, device=heads[0].device)
    if length <= 3 * reach:  # blocks would save nothing
        mask_BLL = _sees(segments_BL, segments_BL, reach, 0)
        return scaled_dot_product_attention(*heads, attn_mask=mask_BLL[:, None], scale=scaling).transpose(1, 2)
    blocks = -(-length // reach)
    after = blocks * reach - length
    query_BNACD = pad(heads[0], (0, 0, 0, after)).unflatten(2, (blocks, reach)).transpose(1, 2)
    key_BNAKD, value_BNAKD = (
        _with_neighbors(pad(head_BALD, (0, 0, reach, after + reach)).unflatten(2, (-1, reach)).transpose(1, 2))
        for head_BALD in heads[1:]
    )
    queries_BNC = pad(segments_BL, (0, after), value=OUTSIDE).unflatten(1, (blocks, reach))
    keys_BNK = _with_neighbors(pad(segments_BL, (reach, after + reach), value=OUTSIDE).unflatten(1, (-1, reach)))
    attended_BNACD = scaled_dot_product_attention(
        query_BNACD.flatten(0, 1),
        key_BNAKD.flatten(0, 1),
        value_BNAKD.flatten(0, 1),
        attn_mask=_sees(queries_BNC, keys_BNK, reach, -reach).flatten(0, 1)[:, None],
        scale=scaling,
    ).unflatten(0, (count, blocks))
    return attended_BNACD.transpose(2, 3).flatten(1, 2)[:, :length]


def _with_neighbors(blocks: Tensor) -> Tensor:
    """All but the first and last block, with their neighbors; B x (N + 2) x C or B x (N + 2) x A x C x D."""
    return torch.cat([blocks[:, :-2], blocks[:, 1:-1], blocks[:, 2:]], dim=2 if blocks.ndim == 3 else 3)


def _sees(queries: Tensor, keys: Tensor, reach: int, first: int) -> Tensor:
    """Whether each query sees each key, by segment and distance; ``first``: offset of the first key to the query."""
    places_C, places_K = (torch.arange(part.shape[-1], device=part.device) for part in (queries, keys))
    is_near_CK = (places_K + first - places_C[:, None]).abs() <= reach
    return (queries[..., :, None] == keys[..., None, :]) & is_near_CK


def _find_kernel() -> Callable[..., Any] | None:
    """torch's kernel for variable lengths, or None if the GPU or torch is too old."""
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < FIRST_WITH_FLASH:
        return None
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:  # torch before 2.10
        return None
    return varlen_attn
