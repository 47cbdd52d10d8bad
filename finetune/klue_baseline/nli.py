"""Pairs of texts (KLUE-NLI, KLUE-STS) as the published code cuts them.

Its tokenizer takes one token at a time off the longer text, off the second where both are equal; the fast tokenizer
shares the room otherwise when the second text is the longer one (62 and 63 of 125 tokens, not 63 and 62). No pair of
the official dev sets reaches 128 tokens, so the protocols agree on those. Source: transformers 3.5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from finetune.task import Feature
from finetune.tasks.labels import encode_texts, keep_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def encode_pairs_as_published(
    tokenizer: PreTrainedTokenizerBase, first: Sequence[str], second: Sequence[str], max_tokens: int
) -> list[Feature]:
    """Features ``[CLS] first [SEP] second [SEP]`` of at most ``max_tokens`` ids."""
    features = encode_texts(tokenizer, first, second)
    for index, feature in enumerate(features):
        if len(feature["input_ids"]) > max_tokens:
            sides = tokenizer(first[index], second[index], verbose=False).sequence_ids(0)
            features[index] = keep_tokens(feature, cut_pair(sides, max_tokens))
    return features


def cut_pair(sides: Sequence[int | None], max_tokens: int) -> list[int]:
    """Positions that stay: every special token, and of each text its beginning.

    Args:
        sides: of each token 0 (first text), 1 (second text) or None (special).
    """
    room = max_tokens - sides.count(None)
    lengths = {0: sides.count(0), 1: sides.count(1)}
    lengths[0] = min(lengths[0], max(room - lengths[1], (room + 1) // 2))
    lengths[1] = min(lengths[1], room - lengths[0])
    kept, taken = [], {0: 0, 1: 0}
    for position, side in enumerate(sides):
        if side is None or taken[side] < lengths[side]:
            kept.append(position)
        if side is not None:
            taken[side] += 1
    return kept
