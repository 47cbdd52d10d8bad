"""The file that marks other files as complete is written after them: a toy run with every fsync and rename recorded.

A manifest vouches for its stage's folder, a finished unit for its files, meta.json for the token store, loop.json for
its checkpoint, result.json for the model, scores.json for the predictions. Files are known by their inode, so the name
under which they were waited for does not matter, and by time and size, so that a write after it would show.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput, is_full_disk, with_path
from corpus.documents.units import map_units, unit_folder
from launch.errors import error_message, is_user_error
from tests.command import run_command
from tests.damage import HARMS
from tests.pretrain.conftest import invented_documents

RECIPE = """
name: toy
workers: 1
corpus: {inputs: [texts.jsonl], decontaminate: {enabled: false}}
tokenizer: {builder: bpe, vocab_size: 300, unused: 0}
pack: {}
pretrain:
  {steps: 4, global_batch: 2, model: {layers: 1, hidden: 8, heads: 2, intermediate: 8},
   rows: {sequence_length: 16, held_out_share: 0.1}, engine: {name: plain, precision: fp32},
   saved: {checkpoint_every: 2, keep_checkpoints: 1}}
finetune:
  {tasks: [ynat], seeds: [1], data: klue, overrides: {ynat: {epochs: 1, max_tokens: 16}}}
"""

Stamp = tuple[int, int, int]


def stamp(path: Path | int) -> Stamp:
    """What changes with a file's, or a folder's, content."""
    found = os.fstat(path) if isinstance(path, int) else path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def vouched(source: Path, target: Path) -> Iterator[Path]:
    """The files for which the rename of ``source`` to ``target`` vouches, where they lie before it."""
    if target.name in ("manifest.json", "loop.json", "scores.json", "meta.json"):
        yield from target.parent.rglob("*")
    elif target.name == "result.json":
        yield from (target.parent / "model").iterdir()
    elif re.fullmatch(r"unit-\d+|step-\d{9}", target.name):
        yield from source.rglob("*")
    if source.is_file():
        yield source


class Disk:
    """Records what was waited for; every rename that vouches is checked when it happens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settled: set[Stamp] = set()
        self.renames: Counter[str] = Counter()
        self.early: list[str] = []
        self.open: dict[Path, Path] = {}  # folders with a new name in them that was not waited for
        self._fsync, self._replace = os.fsync, os.replace
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "replace", self.replace)

    def fsync(self, descriptor: int) -> None:
        self._fsync(descriptor)
        self.settled.add(stamp(descriptor))
        here = os.fstat(descriptor).st_ino
        self.open = {folder: name for folder, name in self.open.items() if folder.stat().st_ino != here}

    def replace(self, source: Any, target: Any, **more: Any) -> None:
        source, target = Path(source), Path(target)
        kind = re.sub(r"\d+", "N", target.name)
        if kind in VOUCHING:
            self.renames[kind] += 1
            needed = [path for path in vouched(source, target) if path.is_file() and path.suffix != ".lock"]
            needed = [path for path in needed if not is_working_file(path, target)]
            self.early += [f"{path} for {target}" for path in needed if stamp(path) not in self.settled]
            self.early += [f"name of {name} for {target}" for name in self.open.values()]
        self._replace(source, target, **more)
        if kind in VOUCHING:
            self.open[target.parent] = target


VOUCHING = {"manifest.json", "loop.json", "scores.json", "meta.json", "result.json", "unit-N", "step-N"}


def is_working_file(path: Path, target: Path) -> bool:
    """Files next to meta.json that it does not list: the units that the store was joined from."""
    return target.name == "meta.json" and ("units" in path.parts or path.name == "started.json")


def prepare(folder: Path) -> None:
    """A recipe and what it reads."""
    (folder / "toy.yaml").write_text(RECIPE, "utf-8")
    documents = [{"id": d.id, "text": "\n".join(d.sentences)} for d in invented_documents(60)]
    lines = [json.dumps(document, ensure_ascii=False) for document in documents]
    (folder / "texts.jsonl").write_text("\n".join(lines), "utf-8")
    (folder / "klue/ynat-v1.1").mkdir(parents=True)
    for split in ("train", "dev"):
        records = [{"guid": f"{split}-{n}", "title": f"{split} 소식 {n}", "label": "사회"} for n in range(4)]
        (folder / f"klue/ynat-v1.1/ynat-v1.1_{split}.json").write_text(json.dumps(records), "utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Disk]]:
    """A folder with a finished run, and what the disk saw of it."""
    folder = tmp_path_factory.mktemp("finished")
    prepare(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        disk = Disk(patch)
        assert run_command(None, "run", "toy.yaml").code == 0
    yield folder, disk


def test_nothing_is_vouched_for_before_the_disk_has_it(finished: tuple[Path, Disk]) -> None:
    _, disk = finished
    assert not disk.early, disk.early[:5]
    assert not disk.open
    assert set(disk.renames) == VOUCHING
    assert disk.renames["manifest.json"] == 7  # all stages but the sample
    assert disk.renames["step-N"] == disk.renames["loop.json"] == 2


BROKEN_JSON: dict[str, bytes] = {
    "cut": b"{",
    "empty": b"",
    "a list": b"[]",
    "zero bytes, as power loss leaves them": b"\0" * 64,
    "100,000 deep": b"[" * 100_000,
    "half a character": b'{"key": "\\ud800"}',
}
READ_BY: dict[str, tuple[str, str]] = {  # file below the run: the stage to be run again, and its verb
    "corpus/manifest.json": ("tokenizer", "tokenizer"),
    "tokenizer/manifest.json": ("tokenizer", "tokenizer"),
    "corpus/statistics.json": ("report", "report"),
    "tokens/meta.json": ("pretrain", "pretrain"),
    "pretrain/checkpoints/step-000000004/loop.json": ("pretrain", "pretrain"),
    "pretrain/result.json": ("model", "pretrain"),
    "finetune/ynat/model/seed-1/scores.json": ("finetune", "finetune"),
}


def unfinish(stage: Path) -> None:
    """As if it had been killed at its end."""
    if (stage / "manifest.json").is_file():
        (stage / "manifest.json").rename(stage / "started.json")


@pytest.mark.parametrize("fault", BROKEN_JSON)
@pytest.mark.parametrize("file", READ_BY)
def test_broken_json_in_a_run_is_one_sentence(
    file: str, fault: str, finished: tuple[Path, Disk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    damaged = copied(finished[0], tmp_path, monkeypatch)
    stage, verb = READ_BY[file]
    if not file.endswith("manifest.json"):
        unfinish(damaged / stage)
    (damaged / file).write_bytes(BROKEN_JSON[fault])
    if file.endswith("scores.json") and fault == "a list":  # of an older release, say: trained again
        assert run_command(capfd, verb, "toy.yaml").code == 0
    else:
        run_command(capfd, verb, "toy.yaml").refused(Path(file).name)


def copied(finished: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run to damage: its folder, and the working folder."""
    shutil.copytree(finished, folder / "copy")
    monkeypatch.chdir(folder / "copy")
    return Path("runs/toy")


OTHER_DAMAGE: dict[str, tuple[bytes, str, str]] = {
    "corpus/documents/shard-00000.parquet": (b"PAR1 garbage PAR1", "tokens", "pack"),
    "tokens/tokens.bin": (b"short", "pretrain", "pretrain"),
    "pretrain/result.json": (b'{"vocabulary_sha256": 7}', "model", "pretrain"),
}


@pytest.mark.parametrize("file", OTHER_DAMAGE)
def test_other_damage_in_a_run_is_one_sentence(
    file: str, finished: tuple[Path, Disk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    damaged = copied(finished[0], tmp_path, monkeypatch)
    content, stage, verb = OTHER_DAMAGE[file]
    unfinish(damaged / stage)
    (damaged / file).write_bytes(content)
    run_command(capfd, verb, "toy.yaml").refused(Path(file).name)


HARMED = {
    "tokens/tokens.bin": "one bit flipped",
    "tokens/documents.idx": "zeroed",
    "tokens/sentences.idx": "missing",
    "pretrain/checkpoints/*/model/model.safetensors": "one bit flipped",
    "pretrain/checkpoints/*/optimizer.safetensors": "cut",
}


@pytest.mark.parametrize("files", HARMED)
def test_nothing_is_trained_on_damaged_bytes(
    files: str, finished: tuple[Path, Disk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    damaged = copied(finished[0], tmp_path, monkeypatch)
    unfinish(damaged / "pretrain")
    metrics = (damaged / "pretrain/metrics.jsonl").read_bytes()
    for path in damaged.glob(files):
        HARMS[HARMED[files]](path)
    run_command(capfd, "pretrain", "toy.yaml").refused(Path(files).name)
    assert (damaged / "pretrain/metrics.jsonl").read_bytes() == metrics


def test_bad_lines_of_metrics_are_set_aside_and_the_run_resumes(
    finished: tuple[Path, Disk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrain = copied(finished[0], tmp_path, monkeypatch) / "pretrain"
    unfinish(pretrain)
    metrics, bad = (pretrain / "metrics.jsonl").read_bytes(), b"[" * 100_000 + b"\n"
    (pretrain / "metrics.jsonl").write_bytes(bad + metrics)
    assert run_command(None, "pretrain", "toy.yaml").code == 0
    assert (pretrain / "metrics.jsonl").read_bytes() == metrics
    assert (pretrain / "metrics.jsonl.damaged").read_bytes() == bad


def die_once(unit: int, scratch: Path, mark: Path) -> dict[str, int]:
    """Simulates the out-of-memory killer: SIGKILL during the second unit, at the first attempt."""
    (scratch / "out.txt").write_text(str(unit), "utf-8")
    if unit == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"unit": unit}


def test_killed_worker_is_one_sentence_and_the_next_run_resumes(tmp_path: Path) -> None:
    work, units = partial(die_once, mark=tmp_path / "mark"), list(range(4))
    with pytest.raises(BadInput, match="a worker process was killed, probably because memory ran out; run the same"):
        map_units(work, units, tmp_path / "units", workers=2)
    assert map_units(work, units, tmp_path / "units", workers=2) == [{"unit": unit} for unit in units]
    texts = [(unit_folder(tmp_path / "units", unit) / "out.txt").read_text("utf-8") for unit in units]
    assert texts == ["0", "1", "2", "3"]


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Writes stop at this many bytes of a file, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def save_array(folder: Path) -> None:
    np.save(folder / "a.npy", np.zeros(10_000))


def save_table(folder: Path) -> None:
    pq.write_table(pa.table({"a": np.random.default_rng(1).random(10_000)}), folder / "a.parquet")


def save_weights(folder: Path) -> None:
    save_file({"a": np.zeros(10_000)}, folder / "a.safetensors")


def save_text(folder: Path) -> None:
    atomic_write(folder / "a.txt", "가" * 10_000)


def write_unit(unit: Any, scratch: Path, save: Any) -> dict[str, int]:
    save(scratch)
    return {}


@pytest.mark.parametrize("save", [save_array, save_table, save_weights, save_text])
def test_every_library_says_in_its_way_that_the_disk_is_full(save: Any, tmp_path: Path) -> None:
    with no_file_above(4096), pytest.raises(Exception) as caught:
        save(tmp_path)
    assert is_full_disk(caught.value)
    assert is_user_error(caught.value)
    assert error_message(caught.value).startswith("no space left on the disk")


@pytest.mark.parametrize("save", [save_array, save_table, save_text])
def test_full_disk_in_a_unit_names_the_folder_and_the_next_run_resumes(save: Any, tmp_path: Path) -> None:
    work = partial(write_unit, save=save)
    with no_file_above(4096), pytest.raises(OSError) as caught:
        map_units(work, [1], tmp_path / "units")
    assert str(tmp_path / "units") in error_message(caught.value)
    assert map_units(work, [1], tmp_path / "units") == [{}]


def test_other_errors_are_no_full_disk() -> None:
    assert not any(map(is_full_disk, (ValueError("x"), FileNotFoundError(2, "no"), OSError("Read-only"))))
    error = PermissionError(13, "denied", "there")
    assert with_path(error, Path("here")) is error
