"""``malmoi pii … --names FOLDER``: names that a model tags, in every kind of file."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from launch.recipe import load_recipe
from launch.stage_inputs import corpus_inputs
from tests.corpus.pii.name_models import save_model, save_random_model

Malmoi = Callable[..., object]


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(save_model(tmp_path / "names"))


def test_a_recipe_names_the_model_and_its_files_are_part_of_the_inputs(tmp_path: Path, model: str) -> None:
    recipe = load_recipe("smoke", [f"corpus.pii.names.model={model}"])
    before = {name: stamp() for name, stamp in corpus_inputs(recipe).items()}
    assert {f"{model}/model.safetensors", f"{model}/config.json"} <= before.keys()
    save_random_model(Path(model))
    after = {name: stamp() for name, stamp in corpus_inputs(recipe).items()}
    assert f"{model}/model.safetensors" in {name for name in before if before[name] != after[name]}


def test_spans_of_the_model_say_so_and_count_characters_of_nfc(malmoi: Malmoi, model: str) -> None:
    text = unicodedata.normalize("NFD", "어제 가온은 왔다")
    done = malmoi("detect", "-", "--names", model, "--names-device", "cpu", "--explain", stdin=f"{text}\r\n하람님\r\n")
    first, second = (json.loads(line) for line in done.stdout.splitlines())  # type: ignore[attr-defined]
    assert first == {
        "text": "어제 가온은 왔다",
        "spans": [{"start": 3, "end": 5, "type": "PERSON", "score": first["spans"][0]["score"], "why": ["model"]}],
    }
    assert [span["type"] for span in second["spans"]] == ["PERSON"]


@pytest.mark.parametrize("mode", ["replace", "mask", "tag", "drop"])
def test_names_are_hidden_in_every_kind_of_file(malmoi: Malmoi, model: str, tmp_path: Path, mode: str) -> None:
    sentence = "어제 가온은 하람을 만났다."
    (tmp_path / "a.txt").write_text(f"{sentence}\r\n비가 왔다.\r\n", "utf-8")
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": 1, "text": sentence}) + "\n", "utf-8")
    (tmp_path / "a.csv").write_text(f"no,note\n1,{sentence}\n", "utf-8")
    pq.write_table(pa.table({"text": [sentence]}), tmp_path / "a.parquet")
    for name in ("a.txt", "a.jsonl", "a.csv", "a.parquet"):
        done = malmoi("replace", name, f"safe-{name}", "--names", model, "--names-device", "cpu", "--mode", mode)
        assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]
    table = pq.read_table(tmp_path / "safe-a.parquet")["text"].to_pylist()
    texts = [(tmp_path / f"safe-a.{kind}").read_bytes().decode() for kind in ("txt", "jsonl", "csv")]
    for text in (*texts, *table):
        assert "가온" not in text and "하람" not in text
    assert texts[0].endswith("\r\n비가 왔다.\r\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--names", "none"), "--names none: no such folder"),
        (("--names-device", "gpu"), "'gpu' is not one of 'auto'"),
    ],
)
def test_bad_options_are_one_sentence(malmoi: Malmoi, options: tuple[str, ...], message: str) -> None:
    done = malmoi("detect", "-", *options, stdin="가온")
    assert (done.returncode, done.stdout) == (2, b"")  # type: ignore[attr-defined]
    assert message in done.stderr.decode()  # type: ignore[attr-defined]


def test_without_torch_the_sentence_names_the_extra(
    malmoi: Malmoi, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = malmoi("detect", "-", "--names", model, stdin="가온")
    assert done.returncode == 2  # type: ignore[attr-defined]
    assert "needs torch: pip install 'malmoi[train]'" in done.stderr.decode()  # type: ignore[attr-defined]
