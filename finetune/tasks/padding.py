"""Lists of different length to padded arrays. Arrays, not tensors: of a task only its model needs torch.

Legend: ``B`` rows, ``L`` positions of the longest row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.task import Feature


def pad_rows(rows: Sequence[Sequence[int] | NDArray[np.integer]], filler: int) -> NDArray[np.int64]:
    """Rows of ids to one (B, L) array, ``filler`` after the shorter ones."""
    lengths_B = np.array([len(row) for row in rows])
    padded_BL = np.full((len(rows), int(lengths_B.max())), filler, dtype=np.int64)
    is_real_BL = np.arange(padded_BL.shape[1]) < lengths_B[:, None]
    if isinstance(rows[0], np.ndarray):
        padded_BL[is_real_BL] = np.concatenate(rows)
    else:
        padded_BL[is_real_BL] = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths_B.sum()))
    return padded_BL


def pad_inputs(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """``input_ids``, ``attention_mask`` and, where the features have them, ``token_type_ids``, each (B, L) int64."""
    ids_BL = pad_rows([feature["input_ids"] for feature in features], pad_id)
    lengths_B = np.array([len(feature["input_ids"]) for feature in features])
    is_real_BL = np.arange(ids_BL.shape[1]) < lengths_B[:, None]
    batch = {"input_ids": ids_BL, "attention_mask": is_real_BL.astype(np.int64)}
    if "token_type_ids" in features[0]:
        batch["token_type_ids"] = pad_rows([feature["token_type_ids"] for feature in features], 0)
    return batch
