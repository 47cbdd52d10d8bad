"""A kept model and a pretrained one to a server that answers as the Hub does; what is damaged is never sent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from finetune.encoder.loading import load_tokenizer
from finetune.registry import TASKS
from finetune.saved_models.load import load_model
from finetune.saved_models.save import Trained, save_model
from launch.errors import is_user_error
from launch.tools.push import find_repository, upload
from tests.finetune.conftest import build_tiny_encoder
from tests.launch.fake_hub import Hub

RESULT = {
    "task": "ynat", "model": "/home/somebody/model", "protocol": "malmoi", "precision": "fp32", "headline": "macro_f1",
    "scores": {"macro_f1": 61.25}, "intervals": {"macro_f1": None}, "constant": {"macro_f1": 6.0},
    "counting": {"macro_f1": 40.0}, "counting_by": "words", "split": "dev",
    "is_official_dev": True, "n": 9_107, "n_train": 45_678, "seed": 1, "data": {}, "selected": None, "steps": 3,
    "hyperparameters": {"max_tokens": 64}, "revision": 1,
    "versions": {"malmoi": "0.1.0", "torch": "2", "transformers": "5"},
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A pretrained model folder as a run leaves it, and a model kept for YNAT."""
    home = tmp_path_factory.mktemp("models")
    name, _ = build_tiny_encoder(home, ["서울에 비가 온다"])
    tokenizer = load_tokenizer(name)
    save_model(home / "seed-1" / "model", Trained(TASKS["ynat"].model(name, tokenizer), tokenizer), RESULT)
    (Path(name) / "README.md").write_text("---\nlanguage: ko\n---\n", "utf-8")
    for folder in (Path(name), home / "seed-1" / "model"):
        (folder / "manifest.json").write_text('{"place": "/home/somebody"}')
    return {"kept": home / "seed-1" / "model", "pretrained": Path(name)}


@pytest.mark.parametrize("kind", ["kept", "pretrained"])
def test_the_files_of_a_model_arrive_byte_for_byte_and_no_others(kind: str, hub: Hub, folders: dict[str, Path]) -> None:
    url = upload(find_repository(folders[kind]), "someone/model")
    stored = hub.files["someone/model", "main"]
    expected = {"README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert set(stored) - {".gitattributes"} == expected | ({"malmoi.json"} if kind == "kept" else set())
    assert all(stored[name] == (folders[kind] / name).read_bytes() for name in expected)
    assert url.startswith(f"{hub.url}/someone/model/commit/")
    assert b"somebody" not in b"".join(stored.values())


def test_what_was_pushed_loads_again(hub: Hub, folders: dict[str, Path], tmp_path: Path) -> None:
    upload(find_repository(folders["kept"]), "someone/topics", private=True)
    for name, content in hub.files["someone/topics", "main"].items():
        (tmp_path / name).write_bytes(content)
    assert load_model(tmp_path, "cpu").settings["scores"] == {"macro_f1": 61.25}
    assert hub.private == {"someone/topics": True}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


@pytest.mark.parametrize(
    ("kind", "damage", "message"),
    [
        ("kept", shutil.rmtree, "no such folder"),
        ("kept", lambda f: (f / "README.md").unlink(), "README.md is missing"),
        ("kept", lambda f: (f / "malmoi.json").write_text("{}"), "format is None"),
        ("kept", lambda f: cut(f / "model.safetensors"), "no complete safetensors file"),
        ("pretrained", lambda f: cut(f / "model.safetensors"), "no complete safetensors file"),
        ("pretrained", lambda f: (f / "tokenizer.json").write_text("{"), "no tokenizer that transformers can load"),
        ("pretrained", lambda f: (f / "config.json").write_text("[]"), "expected a JSON object"),
        ("pretrained", lambda f: (f / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": 3})),
         "but config.json 3 embeddings"),
    ],
)  # fmt: skip
def test_a_damaged_model_is_never_sent(
    kind: str, damage: Callable[[Path], object], message: str, hub: Hub, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders[kind], folder)
    damage(folder)
    with pytest.raises(ValueError, match=message) as raised:
        upload(find_repository(folder), "someone/model")
    assert is_user_error(raised.value)
    assert hub.requests == []
