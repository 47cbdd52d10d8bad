"""A node's copy of the token store: made once, checked, replaced where it is no good, done without where need be."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from corpus.documents.errors import BadInput
from pretrain.config import PackConfig
from pretrain.pack import local_copy as module
from pretrain.pack.local_copy import cached_store
from pretrain.pack.run import PackInputs
from pretrain.pack.run import run as pack
from pretrain.pack.store import FILES, TokenStore, open_store
from tests.damage import HARMS
from tests.pretrain.conftest import invented_documents, write_corpus
from tests.pretrain.runs import TORCHRUN, assert_same_training, finish, launch, train
from tests.test_durability import no_file_above

OPENS = """
import logging, sys
from pathlib import Path
from pretrain.pack.local_copy import cached_store
from pretrain.pack.store import open_store
logging.basicConfig(level="INFO", format="%(message)s", stream=sys.stdout)
shared, tokenizer, cache = map(Path, sys.argv[1:])
print(cached_store(open_store(shared, tokenizer), tokenizer, cache).folder)
"""


@pytest.fixture
def shared(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "tokens", tmp_path / "shared")
    return tmp_path / "shared"


def opened(shared: Path, made: Path, cache: Path) -> TokenStore:
    return cached_store(open_store(shared, made / "tokenizer"), made / "tokenizer", cache)


def own(cache: Path) -> Path:
    return cache / f"malmoi-{os.getuid()}"


def copy_in(cache: Path) -> Path:
    (copy,) = (path for path in own(cache).iterdir() if path.is_dir())
    return copy


def test_a_copy_is_made_once_and_holds_the_same_bytes(
    shared: Path, made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    store = opened(shared, made, tmp_path / "far/away")
    assert store.folder == copy_in(tmp_path / "far/away") and own(tmp_path / "far/away").stat().st_mode & 0o777 == 0o700
    for name in FILES:
        assert (store.folder / name).read_bytes() == (shared / name).read_bytes()
    before = {path: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    caplog.clear()
    assert opened(shared, made, tmp_path / "far/away").folder == store.folder
    assert {path: path.stat().st_mtime_ns for path in store.folder.iterdir()} == before and not caplog.messages


@pytest.mark.parametrize("name", [*FILES[:-1], "meta.json"])
@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_copy_is_replaced(
    shared: Path, made: Path, tmp_path: Path, name: str, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    opened(shared, made, tmp_path / "cache")
    path = copy_in(tmp_path / "cache") / name
    HARMS[harm](path)
    assert opened(shared, made, tmp_path / "cache").folder == path.parent
    assert path.read_bytes() == (shared / name).read_bytes()
    warned = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1 and warned[0].endswith("; copying it again")


def test_a_copy_of_the_store_as_it_was_is_replaced(shared: Path, made: Path, tmp_path: Path) -> None:
    opened(shared, made, tmp_path / "cache")
    shutil.rmtree(shared)
    write_corpus(tmp_path / "less", invented_documents(60), shards=1)
    shared.mkdir()
    pack(PackConfig(), PackInputs(tmp_path / "less", made / "tokenizer"), shared)
    store = opened(shared, made, tmp_path / "cache")
    assert store.folder == copy_in(tmp_path / "cache")
    assert store.tokens.tobytes() == open_store(shared, made / "tokenizer").tokens.tobytes()


def test_a_full_disk_of_the_node_costs_a_warning(
    shared: Path, made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with no_file_above((shared / "tokens.bin").stat().st_size // 2):
        assert opened(shared, made, tmp_path / "cache").folder == shared
    assert "its disk is full; reading the store itself" in caplog.text
    assert [path.suffix for path in own(tmp_path / "cache").iterdir()] == [".lock"]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    caplog.clear()
    assert opened(shared, made, tmp_path / "cache").folder == shared
    assert "1.0 GB free, but 1.1 needed" in caplog.text


def test_what_cannot_be_trusted_is_not_used(
    shared: Path, made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own(tmp_path).mkdir(mode=0o777)
    own(tmp_path).chmod(0o777)
    assert opened(shared, made, tmp_path).folder == shared
    (tmp_path / "file").write_text("")
    assert opened(shared, made, tmp_path / "file").folder == shared
    assert "users can write to" in caplog.messages[0] and "reading the store itself" in caplog.messages[1]


def test_a_damaged_store_is_not_hidden_by_its_copy(
    shared: Path, made: Path, tmp_path: Path, tiny, caplog: pytest.LogCaptureFixture
) -> None:
    HARMS["one bit flipped"](shared / "tokens.bin")
    shutil.copytree(made / "tokenizer", tmp_path / "tokenizer")
    shared.rename(tmp_path / "tokens")
    config = tiny().replaced("engine", store_cache=str(tmp_path / "cache"))
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match=rf"{tmp_path}/tokens/tokens\.bin: changed after packing"):
        train(config, tmp_path, tmp_path / "out")
    assert "reading the store itself" in caplog.text and not list(own(tmp_path / "cache").glob("tokens-*/"))


def test_who_waits_too_long_reads_the_store_itself(
    shared: Path, made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = opened(shared, made, tmp_path / "cache").folder
    monkeypatch.setattr(module, "WITHIN_SECONDS", 0.3)
    with copy.with_name(f"{copy.name}.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert opened(shared, made, tmp_path / "cache").folder == shared
    assert "could not be acquired; reading the store itself" in caplog.text
    assert opened(shared, made, tmp_path / "cache").folder == copy


def test_processes_of_a_node_share_one_copy(shared: Path, made: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPENS, *map(str, (shared, made / "tokenizer", tmp_path / "cache"))]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert sum("copying 0.00 GB" in text for text in said) == 1
    assert {text.splitlines()[-1] for text in said} == {str(copy_in(tmp_path / "cache"))}


def test_a_run_with_a_copy_is_the_run_without(made: Path, tmp_path: Path, tiny) -> None:
    config = tiny(steps=3, log_every=1)
    train(config, made, tmp_path / "without")
    train(config.replaced("engine", store_cache=str(tmp_path / "cache")), made, tmp_path / "with")
    assert_same_training(tmp_path / "without", tmp_path / "with")
    assert copy_in(tmp_path / "cache") and not (tmp_path / "with/tokens.checked").exists()


@pytest.mark.matrix
def test_two_processes_train_from_one_copy(made: Path, tmp_path: Path, tiny) -> None:
    config = tiny(steps=2).replaced("engine", store_cache=str(tmp_path / "cache"))
    finish(launch(config, made, tmp_path / "out", TORCHRUN, DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1"))
    assert copy_in(tmp_path / "cache") and not (tmp_path / "out/tokens.checked").exists()
