"""Manifests: complete means complete, other settings never overwrite, a change names its key."""

from __future__ import annotations

import hashlib
from pathlib import Path
from random import Random

import pytest

from corpus.documents.errors import BadInput
from launch import manifest
from launch.errors import LaunchError
from launch.manifest import Head, fingerprints, is_complete

HEAD = Head("corpus", {"seed": 1, "noise": {"han": 10}}, {"a.txt": "sha256:0"})


def finished(folder: Path, head: Head = HEAD) -> Path:
    manifest.start(folder, head)
    manifest.finish(folder, head, {"documents": 2}, seconds=1.0, peak_mib=100)
    return folder


def taken(folder: Path) -> dict[str, str]:
    return {name: identify() for name, identify in fingerprints([folder]).items()}


def test_only_a_manifest_makes_a_folder_complete(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "corpus"
    assert not is_complete(folder, HEAD)
    manifest.start(folder, HEAD)
    assert not is_complete(folder, HEAD)
    manifest.finish(folder, HEAD, {}, seconds=1.26, peak_mib=1)
    assert is_complete(folder, HEAD)
    assert (manifest.read_manifest(folder) or {})["seconds"] == 1.3


@pytest.mark.parametrize("state", ["started", "finished"])
def test_other_settings_stop_and_show_the_key(tmp_path: Path, state: str) -> None:
    manifest.start(tmp_path, HEAD) if state == "started" else finished(tmp_path)
    other = Head("corpus", {"seed": 1, "noise": {"han": 11}}, HEAD.inputs)
    with pytest.raises(LaunchError, match=r"settings\.noise\.han: was 10, is now 11"):
        is_complete(tmp_path, other)


def test_added_and_removed_settings_are_listed_as_absent(tmp_path: Path) -> None:
    finished(tmp_path, Head("corpus", {"old": 1, "both": 2}, {}))
    with pytest.raises(LaunchError) as error:
        is_complete(tmp_path, Head("corpus", {"both": 2, "new": 3}, {}))
    assert str(error.value).splitlines()[1:] == [
        "  settings.new: was absent, is now 3",
        "  settings.old: was 1, is now absent",
    ]


def test_the_order_of_settings_and_inputs_does_not_matter() -> None:
    one, other = {"seed": 1, "noise": {"han": 10}}, {"noise": {"han": 10}, "seed": 1}
    assert Head("corpus", one, {"a": "0", "b": "1"}).key == Head("corpus", other, {"b": "1", "a": "0"}).key


@pytest.mark.parametrize(("count", "more"), [(12, ""), (13, "… and 1 more")])
def test_at_most_twelve_differences_are_listed_and_the_rest_counted(tmp_path: Path, count: int, more: str) -> None:
    settings = {f"key{n:02}": 0 for n in range(count)}
    finished(tmp_path, Head("corpus", settings, {}))
    with pytest.raises(LaunchError) as error:
        is_complete(tmp_path, Head("corpus", dict.fromkeys(settings, 1), {}))
    assert str(error.value).count("was 0, is now 1") == 12
    assert ("more" in str(error.value)) == bool(more) and more in str(error.value)


def test_changed_input_file_is_noticed(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("하나", "utf-8")
    before = taken(tmp_path)
    text.write_text("둘", "utf-8")
    assert taken(tmp_path).keys() == before.keys()
    assert taken(tmp_path) != before


MIB = 1 << 20


def large_file(path: Path, changed: int | None = None, size: int = 3 * MIB) -> str:
    """Fingerprint of a file of zeros, one byte of it changed."""
    content = bytearray(size)
    if changed is not None:
        content[changed] = 1
    path.write_bytes(content)
    return manifest.fingerprint(path)


def test_a_large_file_is_fingerprinted_by_size_first_and_last_mib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MAX_HASHED_BYTES", MIB)
    content = Random(1).randbytes(4 * MIB + 5)
    (tmp_path / "a").write_bytes(content)
    digest = hashlib.sha256(str(len(content)).encode() + content[:MIB] + content[-MIB:])
    assert manifest.fingerprint(tmp_path / "a") == f"ends-sha256:{digest.hexdigest()}"


@pytest.mark.parametrize("changed", [0, MIB - 1, 2 * MIB, 3 * MIB - 1])
def test_large_file_is_fingerprinted_by_its_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: int) -> None:
    monkeypatch.setattr(manifest, "MAX_HASHED_BYTES", MIB)
    assert large_file(tmp_path / "a", changed) != large_file(tmp_path / "a")
    assert large_file(tmp_path / "a").startswith("ends-sha256:")


def test_large_file_is_fingerprinted_by_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MAX_HASHED_BYTES", MIB)
    assert large_file(tmp_path / "a", size=3 * MIB + 1) != large_file(tmp_path / "a")


def test_a_file_up_to_the_limit_is_fingerprinted_completely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MAX_HASHED_BYTES", 3 * MIB)
    assert large_file(tmp_path / "a", 3 * MIB // 2) != large_file(tmp_path / "a")
    assert large_file(tmp_path / "a").startswith("sha256:")


def test_a_folder_with_other_files_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"x")
    with pytest.raises(LaunchError, match="did not write"):
        is_complete(tmp_path, HEAD)


def test_damaged_manifest_is_reported(tmp_path: Path) -> None:
    (finished(tmp_path) / manifest.MANIFEST_NAME).write_text("{", "utf-8")
    with pytest.raises(BadInput, match="not readable as JSON"):
        is_complete(tmp_path, HEAD)


def test_a_folder_that_another_rank_is_starting_is_not_foreign(tmp_path: Path) -> None:
    (tmp_path / f"{manifest.STARTED_NAME}.partial").write_text("{", "utf-8")
    assert not is_complete(tmp_path, HEAD)
