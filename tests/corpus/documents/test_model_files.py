"""Checks of untrusted model folders: sizes in config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from corpus.documents.errors import BadInput
from corpus.documents.model_files import INDEX_NAME, check_model_files, check_sizes, check_weight_index, refuse_links


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


@pytest.mark.parametrize("places", [None, {}, [], "a.safetensors", {"w": 1}, {"w": "a.safetensors", "v": None}])
def test_an_index_without_a_map_of_names_is_refused(tmp_path: Path, places: Any) -> None:
    (tmp_path / INDEX_NAME).write_text(json.dumps({"weight_map": places}), "utf-8")
    with pytest.raises(BadInput, match="no valid weight_map"):
        check_weight_index(tmp_path / INDEX_NAME, "model")


@pytest.mark.parametrize("file", ["a.bin", "../a.safetensors", "/a.safetensors", "b/a.safetensors", "a.safetensors.pt"])
def test_an_index_names_safetensors_of_its_folder_only(tmp_path: Path, file: str) -> None:
    (tmp_path / INDEX_NAME).write_text(json.dumps({"weight_map": {"v": "a.safetensors", "w": file}}), "utf-8")
    with pytest.raises(BadInput, match="names"):
        check_weight_index(tmp_path / INDEX_NAME, "model")


def test_the_weight_files_of_an_index_are_named_once(tmp_path: Path) -> None:
    places = {"v": "b.safetensors", "w": "a.safetensors", "x": "b.safetensors"}
    (tmp_path / INDEX_NAME).write_text(json.dumps({"weight_map": places}), "utf-8")
    assert check_weight_index(tmp_path / INDEX_NAME, "model") == ["a.safetensors", "b.safetensors"]


def test_a_link_may_lead_into_the_cache_of_the_hub_and_nowhere_else(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--a" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (tmp_path / "models--a" / "blob").write_text("weights", "utf-8")
    (snapshot / "a").symlink_to("../../blob")
    refuse_links(snapshot)
    (snapshot / "b").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="b is a link out of the folder"):
        refuse_links(snapshot)
    plain = tmp_path / "plain" / "model"
    plain.mkdir(parents=True)
    (plain / "a").symlink_to(tmp_path / "models--a" / "blob")
    with pytest.raises(BadInput, match="a is a link out of the folder"):
        refuse_links(plain)


def test_a_model_in_several_files_is_accepted_only_if_all_are_there_and_whole(tmp_path: Path) -> None:
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    (tmp_path / INDEX_NAME).write_text(json.dumps({"weight_map": dict(zip("ab", names, strict=True))}), "utf-8")
    with pytest.raises(BadInput, match=r"names 'model-00001-of-00002.safetensors', which is missing"):
        check_model_files(tmp_path, "model")
    for name in names:
        save_file({"a": np.zeros(1000)}, tmp_path / name)
    check_model_files(tmp_path, "model")
    (tmp_path / names[1]).write_bytes((tmp_path / names[1]).read_bytes()[:-8])
    with pytest.raises(BadInput, match=r"model-00002-of-00002.safetensors is no complete safetensors file"):
        check_model_files(tmp_path, "model")
