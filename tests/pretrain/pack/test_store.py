"""A store whose bytes are not those that were packed is refused with one sentence, whatever was done to it."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from typer.testing import CliRunner

from corpus.documents.atomic_files import DIGEST_KEY, with_digest
from corpus.documents.errors import BadInput
from launch.cli import app
from pretrain.batching.held_out_split import split_rows
from pretrain.config import PackConfig
from pretrain.pack import store as module
from pretrain.pack.run import PackInputs
from pretrain.pack.run import run as pack
from pretrain.pack.store import TokenStore, check_store, open_store
from tests.damage import HARMS, flip_bits
from tests.pretrain.runs import train

FILES = ("tokens.bin", "documents.idx", "sentences.idx", "sources.idx", "meta.json")


@pytest.fixture(scope="module")
def whole(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    pack(PackConfig(), PackInputs(made / "corpus", made / "tokenizer"), root)
    return root


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "tokens"))


def read(store: Path, made: Path) -> TokenStore:
    found = open_store(store, made / "tokenizer")
    check_store(found, store.with_name("checked"))
    return found


def rewrite_meta(store: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Other content under a right seal."""
    meta = json.loads((store / "meta.json").read_text("utf-8"))
    del meta[DIGEST_KEY]
    change(meta)
    (store / "meta.json").write_text(json.dumps(with_digest(meta)), "utf-8")


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", FILES)
def test_every_damage_to_every_file_is_one_sentence_with_its_name(
    name: str, harm: str, copy: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    HARMS[harm](copy / name)
    with pytest.raises(BadInput, match=rf"tokens[:/].*{name}") as caught:
        read(copy, made)
    assert "malmoi pack" in str(caught.value) and "\n" not in str(caught.value)
    assert not (copy.with_name("checked")).exists()


def test_flipped_bits_of_meta_are_refused(copy: Path, made: Path) -> None:
    for _ in flip_bits(copy / "meta.json", every=7):
        with pytest.raises(BadInput, match=r"meta\.json"):
            open_store(copy, made / "tokenizer")


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "tokens": lambda meta: meta.update(tokens=-2),
    "documents": lambda meta: meta.update(documents=0),
    "sentences": lambda meta: meta.update(sentences=True),
    "dtype": lambda meta: meta.update(dtype="<u4"),
    "vocab_size": lambda meta: meta.update(vocab_size=-1),
    "sources": lambda meta: meta["sources"].update(수필=-3),
    "special_ids": lambda meta: meta["special_ids"].update(cls=meta["vocab_size"]),
    "special_ids ": lambda meta: meta["special_ids"].pop("mask"),
    "special_ids  ": lambda meta: meta["special_ids"].update(sep="2"),
    "tokenizer_sha256": lambda meta: meta.update(tokenizer_sha256=7),
    "files": lambda meta: meta.update(files=[]),
    "files   ": lambda meta: meta.pop("files"),
    "files ": lambda meta: meta["files"].pop("tokens.bin"),
}


@pytest.mark.parametrize("key", WRONG)
def test_what_no_store_says_of_itself_is_refused_by_its_key(key: str, copy: Path, made: Path) -> None:
    rewrite_meta(copy, WRONG[key])
    with pytest.raises(BadInput, match=rf"meta\.json: {key.strip()} has an invalid value"):
        open_store(copy, made / "tokenizer")


def test_a_store_of_other_text_with_the_same_meta_is_refused(copy: Path, made: Path, tmp_path: Path) -> None:
    """As many bytes, valid ids: only the sha256 differs."""
    ids = np.fromfile(copy / "tokens.bin", "<u2")
    ids[7] ^= 1
    ids.tofile(copy / "tokens.bin")
    with pytest.raises(BadInput, match=r"tokens\.bin: changed after packing"):
        read(copy, made)


def test_what_was_read_once_is_not_read_again_until_it_changes(
    copy: Path, made: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    read(copy, made)
    assert "GB of tokens verified" in caplog.text
    monkeypatch.setattr(module, "file_digest", lambda *_: [0, "read"])
    read(copy, made)
    os.utime(copy / "sources.idx", (1, 1))
    with pytest.raises(BadInput, match=r"changed after packing"):
        read(copy, made)
    monkeypatch.undo()
    copy.with_name("checked").write_bytes(b"\xff garbage")
    read(copy, made)


@pytest.mark.parametrize("name", FILES[:4])
def test_a_bit_that_flips_between_two_starts_is_noticed_in_a_small_store(name: str, copy: Path, made: Path) -> None:
    """The modification time is as it was, so only the content shows it."""
    read(copy, made)
    before = (copy / name).stat()
    for _ in flip_bits(copy / name, every=(before.st_size // 5) | 1):
        os.utime(copy / name, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(BadInput, match=rf"{name}: changed after packing"):
            read(copy, made)


def test_the_doctor_reads_all_stores_of_a_run_directory(copy: Path) -> None:
    runs = copy.parent / "runs"
    for name in ("a", "b"):
        shutil.copytree(copy, runs / name / "tokens")
    found = CliRunner().invoke(app, ["doctor", "--runs", str(runs)])
    assert found.exit_code == 0 and "that are as they were packed: 2" in found.output.replace("\n", "")
    HARMS["one bit flipped"](runs / "b/tokens/sentences.idx")
    found = CliRunner().invoke(app, ["doctor", "--runs", str(runs)])
    assert isinstance(found.exception, BadInput) and "b/tokens/sentences.idx" in str(found.exception)


def test_the_sample_of_a_large_store_takes_limited_time(
    copy: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With blocks of 64 bytes, of which the time allows one; a checksum that was damaged itself changes nothing."""
    monkeypatch.setattr(module, "BLOCK_BYTES", 64)
    monkeypatch.setattr("corpus.documents.atomic_files.BLOCK_BYTES", 64)
    read(copy, made)
    blocks: list[bytes] = []
    monkeypatch.setattr(module, "crc32", lambda block: blocks.append(block) or crc32(block))
    monkeypatch.setattr(module, "SAMPLE_SECONDS", -1.0)
    read(copy, made)
    assert [len(block) for block in blocks] == [64] or len(blocks) == 1
    note = copy.with_name("checked")
    changed = json.loads(note.read_text("utf-8"))
    changed["checksums"] = {name: [crc ^ 1 for crc in crcs] for name, crcs in changed["checksums"].items()}
    note.write_text(json.dumps(changed), "utf-8")
    read(copy, made)
    assert json.loads(note.read_text("utf-8")) != changed


def test_ids_that_turn_up_during_training_name_file_and_place(copy: Path, made: Path, tiny) -> None:
    store = read(copy, made)
    array = np.memmap(copy / "tokens.bin", "<u2", "r+")
    array[41:] = 31_999
    array.flush()
    for packing in ("blocks", "documents"):
        source = split_rows(store, tiny(packing=packing)).training
        with pytest.raises(BadInput, match=r"tokens\.bin: a token has id 31999, expected at most"):
            source.gather(np.zeros(4, np.int64), np.arange(4))


def test_training_does_not_begin_on_a_damaged_store(made: Path, tmp_path: Path, tiny) -> None:
    shutil.copytree(made / "tokens", tmp_path / "tokens")
    (tmp_path / "tokenizer").symlink_to(made / "tokenizer")
    HARMS["one bit flipped"](tmp_path / "tokens/tokens.bin")
    with pytest.raises(BadInput, match=r"tokens\.bin: changed after packing"):
        train(tiny(), tmp_path, tmp_path / "out")
    assert not (tmp_path / "out/metrics.jsonl").exists()
