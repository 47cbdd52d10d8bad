"""Predictions of a trained model in batches of similar length, in the order of the features.

``precision`` is that of the training: a model trained under bf16 autocast is also scored under it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from corpus.documents.accelerator import PrecisionName
from finetune.examples import Feature
from finetune.task import Task

TOKENS_PER_BATCH = 8_192  # padded; bounds memory at any length


def predict(
    task: Task, model: nn.Module, features: Sequence[Feature], pad_id: int, precision: PrecisionName = "fp32"
) -> list[Any]:
    """One raw output per feature, in order."""
    device = next(model.parameters()).device
    model.eval()
    raws: list[Any] = [None] * len(features)
    with torch.inference_mode(), autocast(device, precision):
        for batch in batches_by_length(features):
            tensors = to_tensors(task.collate([features[i] for i in batch], pad_id), device)
            outputs = model.predict(**tensors)  # type: ignore[operator]
            for i, output in zip(batch, outputs, strict=True):
                raws[i] = output
    return raws


def batches_by_length(features: Sequence[Feature]) -> list[list[int]]:
    """Indices of features, longest first, so that a batch too large for the memory fails at once."""
    lengths = [len(feature["input_ids"]) for feature in features]
    batches: list[list[int]] = []
    for i in sorted(range(len(features)), key=lambda i: (-lengths[i], i)):
        size = len(batches[-1]) + 1 if batches else 0
        if not batches or size * lengths[batches[-1][0]] > TOKENS_PER_BATCH:
            batches.append([])
        batches[-1].append(i)
    return batches


def to_tensors(batch: Mapping[str, NDArray[np.generic]], device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """The arrays of ``collate`` as tensors on a device."""
    return {name: torch.from_numpy(array).to(device, non_blocking=True) for name, array in batch.items()}


def autocast(device: torch.device, precision: PrecisionName) -> torch.autocast:
    """Matrix products in bf16 under "bf16", otherwise nothing; weights, sums and losses stay float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")
