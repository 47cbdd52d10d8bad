"""Finished stages are copied to object storage, here a server on the loopback, and back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.atomic_files import with_digest
from corpus.reading.files import to_path
from launch.errors import LaunchError
from launch.manifest import Head, finish, start
from launch.tools.copies import COPIED_NAME, copy_run
from tests.command import run_command
from tests.damage import HARMS

FILES = {"vocab.txt": "가람\n나무\n", "deep/er/a.bin": "\0" * 70_000, "empty": ""}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two finished stages and one that was begun."""
    for name in ("tokenizer", "tokens"):
        head = Head(name, {"name": name}, {})
        start(tmp_path / "run" / name, head)
        for place, text in FILES.items():
            (tmp_path / "run" / name / place).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "run" / name / place).write_text(f"{text}{name if text else ''}", "utf-8")
        finish(tmp_path / "run" / name, head, {}, 1.0, 1)
    start(tmp_path / "run/pretrain", Head("pretrain", {}, {}))
    return tmp_path / "run"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_finished_stages_go_there_and_come_back(bucket: str, run: Path, tmp_path: Path) -> None:
    outcomes = copy_run(str(run), f"{bucket}/there")
    assert outcomes == {"tokenizer": "3 files, 0.1 MB", "tokens": "3 files, 0.1 MB"}
    assert set(copy_run(str(run), f"{bucket}/there").values()) == {"already there"}
    copy_run(f"{bucket}/there", str(tmp_path / "back"))
    assert contents(tmp_path / "back") == {n: c for n, c in contents(run).items() if not n.startswith("pretrain")}
    assert set(copy_run(f"{bucket}/there", str(tmp_path / "back")).values()) == {"already there"}
    assert copy_run(f"{bucket}/there", f"{bucket}/beside", ["tokens"]).keys() == {"tokens"}
    copy_run(f"{bucket}/beside", str(tmp_path / "once more"))
    assert contents(tmp_path / "once more/tokens") == contents(run / "tokens")


def test_what_was_cut_off_is_no_copy_until_the_command_is_run_again(
    bucket: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("launch.tools.copies.json.dumps", lambda *a, **k: 1 / 0)
        with pytest.raises(LaunchError, match="division by zero"):
            copy_run(str(run), f"{bucket}/cut")
    with pytest.raises(LaunchError, match=f"{bucket}/cut: no finished stage here"):
        copy_run(f"{bucket}/cut", str(tmp_path / "back"))
    copy_run(str(run), f"{bucket}/cut")
    copy_run(f"{bucket}/cut", str(tmp_path / "back"))
    assert contents(tmp_path / "back/tokens") == contents(run / "tokens")


@pytest.mark.parametrize("harm", [name for name in HARMS if name != "missing"])
@pytest.mark.parametrize("name", ["vocab.txt", COPIED_NAME])
def test_a_copy_that_changed_there_does_not_come_back(
    bucket: str, run: Path, tmp_path: Path, harm: str, name: str
) -> None:
    copy_run(str(run), f"{bucket}/{harm}/{name}")
    place = to_path(f"{bucket}/{harm}/{name}") / "tokens" / name
    (tmp_path / "file").write_bytes(place.read_bytes())
    HARMS[harm](tmp_path / "file")
    place.write_bytes((tmp_path / "file").read_bytes())
    with pytest.raises(
        LaunchError, match=r"tokens/(vocab\.txt: changed since it was copied|copied\.json: not the list)"
    ):
        copy_run(f"{bucket}/{harm}/{name}", str(tmp_path / "back"), ["tokens"])
    assert not (tmp_path / "back/tokens").exists()


def test_no_name_leads_out_of_the_folder(bucket: str, run: Path, tmp_path: Path) -> None:
    copy_run(str(run), f"{bucket}/out")
    for name in ("../../evil", "/tmp/evil", "manifest.json"):
        listed: dict[str, Any] = {"files": {name: [0, ""]}}
        (to_path(f"{bucket}/out") / "tokens" / COPIED_NAME).write_text(json.dumps(with_digest(listed)), "utf-8")
        with pytest.raises(LaunchError, match="not the list that `malmoi copy` writes"):
            copy_run(f"{bucket}/out", str(tmp_path / "back"), ["tokens"])


def test_another_runs_stage_is_never_written_over(bucket: str, run: Path, tmp_path: Path) -> None:
    copy_run(str(run), f"{bucket}/mine")
    head = Head("tokens", {"name": "other"}, {})
    shutil.rmtree(run / "tokens")
    start(run / "tokens", head)
    finish(run / "tokens", head, {}, 1.0, 1)
    with pytest.raises(LaunchError, match=f"{bucket}/mine/tokens: has the stage of another run"):
        copy_run(str(run), f"{bucket}/mine")
    start(tmp_path / "begun/tokenizer", head)
    with pytest.raises(LaunchError, match="exists but is not finished"):
        copy_run(f"{bucket}/mine", str(tmp_path / "begun"))


def test_stages_that_are_not_finished_and_places_that_are_not_there_are_told(run: Path, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="no finished stage pretrain; finished are: tokenizer, tokens"):
        copy_run(str(run), str(tmp_path / "x"), ["pretrain"])
    with pytest.raises(LaunchError, match="no finished stage here"):
        copy_run(str(tmp_path / "nothing"), str(tmp_path / "x"))


def test_a_bucket_that_is_not_there_and_runs_in_a_bucket_are_one_sentence(
    bucket: str, run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_command(capfd, "copy", str(run), "s3://nowhere/run").refused("s3://nowhere/run: cannot be reached")
    told = ("a run needs a file system; `malmoi copy` copies finished stages to a URL",)
    run_command(capfd, "tokenizer", "smoke", "--runs", f"{bucket}/runs", "--dry-run").refused(*told)
