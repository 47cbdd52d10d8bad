"""Checks of untrusted model folders: sizes in config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from corpus.documents.model_files import check_sizes


@pytest.mark.parametrize("size", [0, -1, 1 << 31, True, 4.0, "4", None])
def test_a_size_that_is_no_positive_integer_is_refused(tmp_path: Path, size: Any) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": size}), "utf-8")
    with pytest.raises(BadInput, match="hidden_size"):
        check_sizes(tmp_path, "model")


def test_positive_integers_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 1, "vocab_size": (1 << 31) - 1}), "utf-8")
    check_sizes(tmp_path, "model")


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"config.json is missing"):
        check_sizes(tmp_path, "model")
