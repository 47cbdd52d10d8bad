"""Somebody else's model or tokenizer folder, broken in every way we know, at every command that takes one.

Each is one sentence and exit code 2, nothing is unpickled on the way, and no stage passes for complete.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import RobertaConfig, RobertaForMaskedLM

from corpus.documents.shards import write_shard
from finetune.encoder.loading import load_pretrained
from launch import manifest
from launch.manifest import Head
from pretrain.config import PackConfig
from pretrain.pack.run import PackInputs
from pretrain.pack.run import run as pack_store
from tests.command import Outcome, run_command
from tests.pretrain.conftest import invented_documents, write_tokenizer

DEEP = "[" * 100_000
RECIPE = """
name: made
workers: 1
corpus: {inputs: [texts]}
pretrain: {steps: 1, global_batch: 2, rows: {sequence_length: 32}}
finetune: {tasks: [ynat], seeds: [1], data: klue}
"""


class Exploding:
    """Leaves a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("unpickled", "w"))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny RoBERTa with its tokenizer, and the stages of a run before its training."""
    folder = write_tokenizer(tmp_path_factory.mktemp("good") / "model", invented_documents(9))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = RobertaConfig(**sizes, vocab_size=400, max_position_embeddings=50, pad_token_id=1, type_vocab_size=1)
    RobertaForMaskedLM(config).save_pretrained(folder)
    run = folder.with_name("made")
    (run / "corpus" / "documents").mkdir(parents=True)
    write_shard(run / "corpus" / "documents" / "shard-00000.parquet", invented_documents(9))
    shutil.copytree(folder, run / "tokenizer")
    (run / "tokens").mkdir()
    pack_store(PackConfig(), PackInputs(run / "corpus", run / "tokenizer"), run / "tokens")
    for stage in ("corpus", "tokenizer", "tokens"):
        manifest.finish(run / stage, Head(stage, {}, {}), {}, 0.0, 0)
    return folder


@pytest.fixture
def place(tmp_path: Path, good: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder: a recipe, text, KLUE files, a run up to its token store, and a copy of the model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    Path("made.yaml").write_text(RECIPE, "utf-8")
    Path("text.txt").write_text("가온시 도서관이 새 강좌를 연다.\n", "utf-8")
    Path("klue/ynat-v1.1").mkdir(parents=True)
    for split in ("train", "dev"):
        records = [{"guid": f"{split}-{n}", "title": f"새 소식 {n}", "label": "사회"} for n in range(4)]
        Path(f"klue/ynat-v1.1/ynat-v1.1_{split}.json").write_text(json.dumps(records), "utf-8")
    shutil.copytree(good, "model")
    shutil.copytree(good.parent / "made", "runs/made")
    yield tmp_path
    assert not Path("unpickled").exists()


def pretrain(folder: Path) -> list[str]:
    return ["pretrain", "made.yaml", f"pretrain.init_from={folder.absolute()}"]


def adopt(folder: Path) -> list[str]:
    return ["tokenizer", "made.yaml", f"pretrain.init_from={folder.absolute()}", "name=adopted"]


def finetune(folder: Path) -> list[str]:
    return ["finetune", "made.yaml", f"finetune.models={folder}"]


def statistics(folder: Path) -> list[str]:
    return ["tokenizer", "stats", str(folder), "text.txt"]


def extend(folder: Path) -> list[str]:
    return ["tokenizer", "extend", str(folder), "text.txt", "--workers", "1", "--out", "longer"]


def push(folder: Path) -> list[str]:
    (folder / "README.md").write_text("---\nlanguage: ko\n---\n", "utf-8")
    return ["push", str(folder), "nobody/nothing"]


def pack(folder: Path) -> list[str]:
    shutil.rmtree("runs/made/tokens")
    shutil.rmtree("runs/made/tokenizer")
    folder.rename("runs/made/tokenizer")
    manifest.finish(Path("runs/made/tokenizer"), Head("tokenizer", {}, {}), {}, 0.0, 0)
    return ["pack", "made.yaml"]


TAKES_MODEL = (pretrain, finetune)
TAKES_TOKENIZER = (adopt, finetune, statistics, extend, push, pack)


def write(name: str, content: str | bytes) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return damage


def change(name: str, **values: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), "utf-8")

    return damage


def cut(name: str, keep: float) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * keep)])

    return damage


def only_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Exploding()))


def index_of(*files: object) -> Callable[[Path], None]:
    """Weights in several files, by an index that names these."""

    def damage(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        for file in ("pytorch_model.bin", "../outside.safetensors"):
            (folder / file).write_bytes(pickle.dumps(Exploding()))
        save_file(weights, folder / "model-1.safetensors", metadata={"format": "pt"})
        places = {name: files[n % len(files)] for n, name in enumerate(weights)}
        (folder / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {}, "weight_map": places}), "utf-8"
        )

    return damage


def link(name: str, target: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        Path(target).write_bytes((folder / name).read_bytes())
        (folder / name).unlink()
        (folder / name).symlink_to(Path(target).absolute())

    return damage


def other_weights(folder: Path) -> None:
    save_file({"a": torch.zeros(3)}, folder / "model.safetensors", metadata={"format": "pt"})


def small_embeddings(folder: Path) -> None:
    change("config.json", vocab_size=30)(folder)


MODEL_FAULTS: dict[str, Callable[[Path], None]] = {
    "no config": lambda folder: (folder / "config.json").unlink(),
    "config is no JSON": write("config.json", "{"),
    "config is a list": write("config.json", "[]"),
    "config is 100,000 deep": write("config.json", DEEP),
    "config is not UTF-8": write("config.json", b'{"model_type": "\xff"}'),
    "config has half a character": change("config.json", _name_or_path="\ud800"),
    "hidden_size is text": change("config.json", hidden_size="abc"),
    "hidden_size is null": change("config.json", hidden_size=None),
    "hidden_size is a list": change("config.json", hidden_size=[8]),
    "hidden_size is negative": change("config.json", hidden_size=-8),
    "hidden_size is immense": change("config.json", hidden_size=10**30),
    "heads do not divide": change("config.json", num_attention_heads=3),
    "layers are a float": change("config.json", num_hidden_layers=1.5),
    "positions are text": change("config.json", max_position_embeddings="many"),
    "model_type is a number": change("config.json", model_type=7),
    "model_type is a list": change("config.json", model_type=["roberta"]),
    "model_type is unknown": change("config.json", model_type="nobody"),
    "dropout is text": change("config.json", attention_probs_dropout_prob="much"),
    "activation is unknown": change("config.json", hidden_act="nothing"),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "weights are empty": write("model.safetensors", b""),
    "weights are garbage": write("model.safetensors", b"\xff" * 4096),
    "weights are a pickle": write("model.safetensors", pickle.dumps(Exploding())),
    "weights are cut": cut("model.safetensors", 0.7),
    "weights are cut in the header": cut("model.safetensors", 0.01),
    "weights have a deep header": write("model.safetensors", (100_000).to_bytes(8, "little") + DEEP.encode()),
    "weights of another model": other_weights,
    "weights only as a pickle": only_pickle,
    "index names a pickle": index_of("pytorch_model.bin"),
    "index names a pickle too": index_of("model-1.safetensors", "pytorch_model.bin"),
    "index names a file elsewhere": index_of("../outside.safetensors"),
    "index names an absolute path": index_of("/etc/hostname"),
    "index names what is not there": index_of("model-2.safetensors"),
    "index names a number": index_of(5),
    "index is a list": write("model.safetensors.index.json", "[]"),
    "index is 100,000 deep": write("model.safetensors.index.json", DEEP),
    "weights are a link out": link("model.safetensors", "elsewhere"),
    "config is a link out": link("config.json", "elsewhere"),
    "fewer embeddings than pieces": small_embeddings,
}
TOKENIZER_FAULTS: dict[str, Callable[[Path], None]] = {
    "tokenizer.json is garbage": write("tokenizer.json", "garbage"),
    "tokenizer.json is a list": write("tokenizer.json", "[]"),
    "tokenizer.json is 100,000 deep": write("tokenizer.json", DEEP),
    "tokenizer.json has half a character": write("tokenizer.json", '{"model": {"vocab": {"\\ud800": 0}}}'),
    "tokenizer.json is not UTF-8": write("tokenizer.json", b"\xff\xfe{}"),
    "tokenizer.json is cut": cut("tokenizer.json", 0.5),
    "tokenizer.json is a link out": link("tokenizer.json", "elsewhere"),
}
VOCABULARY_FAULTS: dict[str, Callable[[Path], None]] = {
    "vocab.txt is not UTF-8": write("vocab.txt", "[PAD]\n가\n".encode("cp949")),
    "vocab.txt has a piece twice": write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n가\n가\n"),
    "vocab.txt is empty": write("vocab.txt", ""),
    "vocab.txt is a link out": link("vocab.txt", "elsewhere"),
}


def try_out(command: Callable[[Path], list[str]], capfd: pytest.CaptureFixture[str]) -> Outcome:
    arguments = command(Path("model"))
    before = set(Path("runs").rglob("manifest.json"))
    outcome = run_command(capfd, *arguments)
    assert set(Path("runs").rglob("manifest.json")) == before
    return outcome


@pytest.mark.parametrize("fault", MODEL_FAULTS)
@pytest.mark.parametrize("command", TAKES_MODEL)
def test_bad_model_is_one_sentence(command: Any, fault: str, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    MODEL_FAULTS[fault](place / "model")
    assert "model" in try_out(command, capfd).refused()


@pytest.mark.parametrize("fault", TOKENIZER_FAULTS)
@pytest.mark.parametrize("command", TAKES_TOKENIZER)
def test_bad_tokenizer_is_one_sentence(
    command: Any, fault: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    TOKENIZER_FAULTS[fault](place / "model")
    message = try_out(command, capfd).refused()
    assert "tokenizer" in message or "model" in message


@pytest.mark.parametrize("command", [statistics])
def test_a_pattern_that_explodes_is_one_sentence(command: Any, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The library panics, which is no ``Exception`` of Python."""
    split = {"type": "Split", "pattern": {"Regex": "([가-힣]+)+$"}, "behavior": "Isolated", "invert": False}
    change("tokenizer.json", pre_tokenizer=split)(place / "model")
    long = f"{'가나다' * 20}x "
    Path("text.txt").write_text(long, "utf-8")
    for path in Path("klue").rglob("*.json"):
        path.write_text(path.read_text("utf-8").replace("소식 ", long).replace("ynat-", f"{path.stem}-"), "utf-8")
    assert "pattern" in try_out(command, capfd).refused("tokenizer")


@pytest.mark.parametrize("fault", VOCABULARY_FAULTS)
@pytest.mark.parametrize("command", [statistics, push, pack])
def test_bad_vocabulary_is_one_sentence(
    command: Any, fault: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = place / "model"
    if command is statistics:  # of a folder it takes tokenizer.json first
        (folder / "tokenizer.json").unlink()
    if command is push:  # of a folder without a model it takes the tokenizer
        (folder / "config.json").unlink()
    VOCABULARY_FAULTS[fault](folder)
    message = try_out(command, capfd).refused()
    assert "vocab" in message or "tokenizer" in message


def test_folder_of_the_hubs_cache_may_link_to_its_blobs(place: Path) -> None:
    cache = place / "models--somebody--model"
    snapshot = cache / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    (cache / "blobs").mkdir()
    for path in (place / "model").iterdir():
        path.rename(cache / "blobs" / path.name)
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    from transformers import AutoModel

    load_pretrained(AutoModel, str(snapshot))
