"""Defaults and limits of settings that are shares."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from corpus.config import CorpusConfig, DecontaminateConfig


def test_shares_have_defaults_and_limits() -> None:
    assert (DecontaminateConfig().threshold, CorpusConfig().max_bad_share) == (0.6, 0.01)
    for share in (0.001, 1):
        assert DecontaminateConfig(threshold=share).threshold == share
    for share in (0, 1):
        assert CorpusConfig(max_bad_share=share).max_bad_share == share
    for threshold in (0, 1.001):
        with pytest.raises(ValidationError):
            DecontaminateConfig(threshold=threshold)
    for max_bad_share in (-0.001, 1.001):
        with pytest.raises(ValidationError):
            CorpusConfig(max_bad_share=max_bad_share)
