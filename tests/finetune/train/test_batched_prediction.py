"""Prediction: order, batches of similar length, and the precision that the training had."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from finetune.registry import TASKS
from finetune.train.batched_prediction import TOKENS_PER_BATCH, batches_by_length, predict

LENGTHS = (5, 90, 17, 90, 33, 2, 61)
FEATURES = [{"example": i, "input_ids": [i + 1] * length, "label": 0} for i, length in enumerate(LENGTHS)]


class Echo(nn.Module):
    """Says the first token of each row, and in what it would multiply."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(1, 1)
        self.dtypes: set[torch.dtype] = set()
        self.slots: list[int] = []

    def predict(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> list[int]:
        self.dtypes.add(self.linear(torch.ones(1, 1)).dtype)
        self.slots.append(input_ids.numel())
        return input_ids[:, 0].tolist()


def test_outputs_come_in_the_order_of_the_features() -> None:
    assert predict(TASKS["ynat"], Echo(), FEATURES, 0) == [1, 2, 3, 4, 5, 6, 7]


def test_batches_hold_similar_lengths_the_longest_first_and_every_feature_once() -> None:
    features = FEATURES * 100
    batches = batches_by_length(features)
    assert sorted(i for batch in batches for i in batch) == list(range(len(features)))
    lengths = [[len(features[i]["input_ids"]) for i in batch] for batch in batches]
    assert [x for batch in lengths for x in batch] == sorted((x for batch in lengths for x in batch), reverse=True)
    assert all(len(batch) * batch[0] <= TOKENS_PER_BATCH for batch in lengths)
    assert len(batches) == 5


def test_a_feature_longer_than_a_batch_is_alone() -> None:
    long = {"example": 0, "input_ids": [1] * (TOKENS_PER_BATCH + 1), "label": 0}
    assert batches_by_length([FEATURES[0], long]) == [[1], [0]]


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_a_model_is_scored_in_the_precision_asked_for(precision, dtype: torch.dtype) -> None:
    model = Echo()
    predict(TASKS["ynat"], model, FEATURES, 0, precision)
    assert model.dtypes == {dtype}
