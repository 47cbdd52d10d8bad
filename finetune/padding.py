"""Lists of different length to padded tensors: the part of ``collate`` that the tasks share.

Legend: ``B`` rows, ``L`` positions of the longest row.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from finetune.task import Feature

IGNORED = -100  # a label that the loss skips: special tokens, padding


def pad_rows(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
    """Rows of ids to one (B, L) int64 tensor, ``filler`` behind the shorter ones."""
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows], dtype=torch.int64)


def pad_inputs(features: Sequence[Feature], pad_id: int) -> dict[str, Tensor]:
    """``input_ids``, ``attention_mask`` and ``token_type_ids``, each (B, L)."""
    batch = {
        "input_ids": pad_rows([feature["input_ids"] for feature in features], pad_id),
        "attention_mask": pad_rows([[1] * len(feature["input_ids"]) for feature in features], 0),
    }
    if "token_type_ids" in features[0]:
        batch["token_type_ids"] = pad_rows([feature["token_type_ids"] for feature in features], 0)
    return batch
