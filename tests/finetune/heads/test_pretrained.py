"""The configuration of a model with a head of this package."""

from __future__ import annotations

import pytest

from finetune.heads.pretrained import HeadConfig


@pytest.mark.parametrize(("encoder", "head"), [({"hidden_size": 8}, {"labels": 3}), ({}, {})])
def test_a_configuration_keeps_encoder_and_head(encoder: dict[str, int], head: dict[str, int]) -> None:
    config = HeadConfig.from_dict(HeadConfig(encoder, head).to_dict())
    assert (config.encoder, config.head) == (encoder, head)


def test_a_configuration_without_values_is_empty() -> None:
    assert (HeadConfig().encoder, HeadConfig().head) == ({}, {})
