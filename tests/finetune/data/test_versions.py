"""Files are recognised by their content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from corpus.documents.errors import BadInput
from finetune.data.files import OFFICIAL, SHA256, UNKNOWN, find_file, sha256, version_of
from finetune.registry import TASKS


def test_every_official_file_has_a_digest_of_its_own() -> None:
    names = [Path(name).name for task in TASKS.values() for name in (task.files.train, task.files.dev)]
    assert sorted(SHA256) == sorted([*names, "ontology.json", "relation_list.json"])
    assert len({digest for digest in SHA256.values() if len(digest) == 64}) == len(SHA256)


@pytest.mark.parametrize("name", [
    "klue-sts-v1.1/klue-sts-v1.1_dev.json", "klue-dp-v1.1/klue-dp-v1.1_dev.tsv", "wos-v1.1/ontology.json",
    "klue-re-v1.1/relation_list.json", "klue-nli-v1.1/klue-nli-v1.1_train.json",
])  # fmt: skip
def test_official_files_are_recognised(name: str, shared: Callable[[str], Path]) -> None:
    path = find_file(shared("data/klue/official"), name)
    assert path is not None
    assert version_of(path, sha256(path)) == OFFICIAL


def test_a_reduced_file_is_unknown(shared: Callable[[str], Path]) -> None:
    path = find_file(shared("data/klue/derived"), TASKS["ynat"].files.dev)
    assert path is not None
    assert version_of(path, sha256(path)) == UNKNOWN


def test_one_split_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    train = SHA256["ynat-v1.1_train.json"]
    assert version_of(tmp_path / "ynat-v1.1_train.json.zst", train) == OFFICIAL
    with pytest.raises(BadInput, match=r"ynat-v1.1_dev.json: its content is that of the official ynat-v1.1_train.json"):
        version_of(tmp_path / "ynat-v1.1_dev.json", train)


@pytest.mark.parametrize(
    ("content", "version"), [('{"source": "Hub klue/klue"}', "Hub klue/klue"), ("{", UNKNOWN), ("[]", UNKNOWN)]
)
def test_a_converted_copy_says_where_it_is_from(content: str, version: str, tmp_path: Path) -> None:
    (tmp_path / "source.json").write_text(content, "utf-8")
    assert version_of(tmp_path / "ynat-v1.1" / "ynat-v1.1_dev.json", "0" * 64) == version
