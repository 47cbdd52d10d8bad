"""Saved models predict what their training predicted, load with stock classes, and say what is wrong with a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig, ProtocolName
from finetune.data.split import load_data
from finetune.examples import to_rows
from finetune.inference.predict import predict_official
from finetune.registry import TASKS, task_of
from finetune.run import FinetuneInputs, run
from finetune.saved_models.load import SavedModel, load_model
from finetune.saved_models.save import model_card, shown_encoder
from finetune.score.scores import read_rows
from finetune.tasks.ner.metrics import NER_TAGS
from finetune.train.batched_prediction import predict
from tests.finetune.saved_models.conftest import configure


def predict_again(kept: SavedModel, config: FinetuneConfig, data: Path) -> list[Any]:
    """What a kept model says of the examples that its training was scored on, as lines of predictions.jsonl."""
    examples = load_data(task_of(kept.task.name, config), data, config).scored
    features = kept.task.featurize(examples, kept.tokenizer, kept.settings["max_tokens"], False)
    raws = predict(kept.task, kept.model, features, int(kept.tokenizer.pad_token_id), kept.settings["precision"])
    return to_rows(examples, kept.task.decode(examples, features, raws))


@pytest.mark.parametrize("protocol", ["malmoi", pytest.param("klue-baseline", marks=pytest.mark.matrix)])
def test_kept_models_of_all_tasks_predict_what_their_training_predicted(
    protocol: ProtocolName, sample_inputs: FinetuneInputs, tmp_path: Path, one_thread: None
) -> None:
    config = configure(*TASKS, protocol=protocol, pos_tags=protocol == "malmoi")
    run(config, sample_inputs, tmp_path)
    for task in TASKS:
        folder = tmp_path / task / "model" / "seed-1"
        kept = load_model(folder / "model", "cpu")
        assert predict_again(kept, config, sample_inputs.data) == read_rows(folder / "predictions.jsonl"), task
        predicted = {
            result["guid"]: result for result in predict_official(kept, sample_inputs.data / kept.task.files.dev)
        }
        for row in read_rows(folder / "predictions.jsonl"):  # among all examples of the file, so in other batches
            wanted = pytest.approx(row.prediction, abs=1e-5) if task == "klue-sts" else row.prediction
            assert predicted[row.guid]["prediction"] == wanted, task
        assert kept.settings["scores"] == json.loads((folder / "scores.json").read_text("utf-8"))["scores"]
    for task, kind in (("ynat", AutoModelForSequenceClassification), ("klue-ner", AutoModelForTokenClassification)):
        compare_with_stock(kind, tmp_path / task / "model" / "seed-1" / "model")
    stock = AutoModelForTokenClassification.from_pretrained(tmp_path / "klue-ner" / "model" / "seed-1" / "model")
    assert stock.config.id2label == dict(enumerate(NER_TAGS))


def compare_with_stock(kind: Any, folder: Path) -> None:
    """The stock classes of transformers give the logits and the tokens that ours gives."""
    stock, tokenizer, kept = kind.from_pretrained(folder), AutoTokenizer.from_pretrained(folder), load_model(folder)
    batch = tokenizer(["한빛은행 금리 인하", "서울로"], padding=True, return_tensors="pt")
    ours = kept.tokenizer(["한빛은행 금리 인하", "서울로"], padding=True, return_tensors="pt")
    assert all(torch.equal(batch[name], ours[name]) for name in batch)
    with torch.inference_mode():
        logits = stock.eval()(**batch).logits
        expected = kept.model.predict(**ours)
    found = (
        logits.softmax(-1)
        if logits.ndim == 2
        else [row[m] for row, m in zip(logits, batch["attention_mask"].bool(), strict=True)]
    )
    assert all(np.array_equal(mine, theirs.numpy()) for mine, theirs in zip(expected, found, strict=True))


def test_a_network_of_ours_loads_through_auto_model(trained: Path, one_thread: None) -> None:
    folder = trained / "klue-dp" / "model" / "seed-1" / "model"
    kept, stock = load_model(folder, "cpu"), AutoModel.from_pretrained(folder)
    assert (stock.config.model_type, stock.config.encoder["model_type"]) == ("malmoi-dp", "bert")
    ours, theirs = kept.model.state_dict(), stock.state_dict()
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_folder_has_settings_and_a_card_and_no_place_of_this_machine(trained: Path) -> None:
    folder = trained / "ynat" / "model" / "seed-1" / "model"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "README.md", "config.json", "malmoi.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    assert len({(folder / name).stat().st_mode for name in names}) == 1  # whoever may read one may read all
    settings = json.loads((folder / "malmoi.json").read_text("utf-8"))
    result = json.loads((folder.parent / "scores.json").read_text("utf-8"))
    for key in ("task", "protocol", "scores", "intervals", "split", "seed", "data"):
        assert settings[key] == result[key]
    assert (settings["format"], settings["max_tokens"], settings["pos_tags"], settings["own"]) == (1, 64, True, None)
    assert set(settings["files"]) == names - {"README.md", "malmoi.json"}
    for name in names - {"model.safetensors"}:
        assert str(trained.parent) not in (folder / name).read_text("utf-8"), name


def test_the_card_says_what_was_scored_and_how(trained: Path) -> None:
    result = json.loads((trained / "ynat" / "model" / "seed-1" / "scores.json").read_text("utf-8"))
    card, parser = (
        (trained / t / "model" / "seed-1" / "model" / "README.md").read_text("utf-8") for t in ("ynat", "klue-dp")
    )
    (lower, upper), value = result["intervals"]["macro_f1"], result["scores"]["macro_f1"]
    assert f"| macro_f1 | {value:.2f}" in card and f"| {lower:.2f} – {upper:.2f} |" in card
    assert "not the official dev file" in card and "CC BY-SA" in card and "One training, seed 1" in card
    assert "AutoModelForSequenceClassification" in card and "pipeline_tag: text-classification" in card
    assert "malmoi.register_models()" in parser and "pipeline_tag" not in parser


def test_a_card_names_folders_without_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "model").mkdir(parents=True)
    names = ("klue/bert-base", "model", "home/me/model", "/me/model", "./me/model", "~/model", "runs/model")
    assert [shown_encoder(name) for name in names] == ["klue/bert-base", *["model"] * 6]
    assert [shown_encoder(f"fresh:{name}") for name in names] == ["fresh:klue/bert-base", *["fresh:model"] * 6]


@pytest.mark.parametrize("encoder", ["klue/bert-base", "model", "runs/a/model", "fresh:klue/bert-base"])
def test_a_card_names_the_encoder_as_base_only_if_it_is_on_the_hub(trained: Path, encoder: str) -> None:
    settings = json.loads((trained / "ynat" / "model" / "seed-1" / "model" / "malmoi.json").read_text("utf-8"))
    settings |= {"encoder": encoder, "searched_on": None}
    card = model_card(settings, "topics", "BertForSequenceClassification", {1: 50.0})
    assert ("base_model: klue/bert-base" in card.splitlines()) == (encoder == "klue/bert-base")
    assert f"The encoder `{encoder}`" in card


def edit(folder: Path, **changes: object) -> None:
    path = folder / "malmoi.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)


def drop_head(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(
        {k: v for k, v in weights.items() if "classifier" not in k}, folder / "model.safetensors", {"format": "pt"}
    )
    edit(folder, files={})


def link(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "elsewhere")
    (folder / "model.safetensors").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "no such folder"),
        (
            lambda f: (f / "malmoi.json").unlink(),
            "(?s)not a fine-tuned malmoi model.*expected: a folder such as.*add a malmoi.json",
        ),
        (lambda f: (f / "malmoi.json").write_text("{"), "not readable as JSON"),
        (lambda f: (f / "malmoi.json").write_text("[]"), "expected a JSON object"),
        (lambda f: edit(f, format=2), "format is 2, this malmoi reads 1"),
        (lambda f: edit(f, task="klue-nil"), "no such task; did you mean klue-nli"),
        (lambda f: edit(f, protocol="mine"), "protocol is 'mine'"),
        (lambda f: edit(f, max_tokens="64"), "max_tokens is '64'"),
        (lambda f: edit(f, precision="int8"), "precision is 'int8'"),
        (lambda f: edit(f, files=["model.safetensors"]), "files is"),
        (lambda f: edit(f, revision=0), "another revision of ynat"),
        (lambda f: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x80" * 99), "no complete safetensors file"),
        (lambda f: flip(f / "model.safetensors"), "changed since it was saved"),
        (lambda f: (f / "tokenizer.json").unlink(), "changed since it was saved"),
        (lambda f: (f / "config.json").write_text("{}"), "changed since it was saved"),
        (drop_head, "2 weights of the model are missing"),
        (link, "is a link out of the folder"),
    ],
)
def test_a_folder_without_a_saved_model_is_reported(
    damage: Callable[[Path], object], message: str, trained: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(trained / "ynat" / "model" / "seed-1" / "model", folder)
    damage(folder)
    with pytest.raises(BadInput, match=message):
        load_model(folder, "cpu")


def test_a_stock_model_needs_only_a_few_settings(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stock"
    shutil.copytree(trained / "ynat" / "model" / "seed-1" / "model", folder)
    (folder / "malmoi.json").write_text('{"format": 1, "task": "tc", "max_tokens": 64}', "utf-8")
    kept = load_model(str(folder), "cpu")
    assert (kept.task.name, kept.settings["protocol"]) == ("ynat", "malmoi")


def test_the_folder_of_a_training_names_its_model_and_other_names_are_of_the_hub(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_model(trained / "ynat" / "model" / "seed-1", "cpu").task.name == "ynat"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput, match="nobody/nothing: no such folder, and no such repository on the Hub"):
        load_model("nobody/nothing")
    with pytest.raises(BadInput, match="device 'tpu'"):
        load_model(trained, "tpu")
