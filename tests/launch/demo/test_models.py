"""What a folder is, is found by looking; pieces and fillings are those of the stock classes."""

from __future__ import annotations

import json
import logging
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoModelForMaskedLM, AutoTokenizer, pipeline

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.inference.predict import predict_texts
from finetune.run import FinetuneInputs, run
from launch.demo import panels
from launch.demo.app import view
from launch.demo.models import cut, fill, load, look
from launch.errors import LaunchError
from launch.sample.unpack import unpack
from tests.launch.demo.conftest import build_filler

SENTENCE = "새 강좌를 [MASK] 서울 뷁 축구"


def test_folders_are_known_by_what_is_in_them(filler: Path, tokenizer_folder: Callable[[str], Path]) -> None:
    alone = tokenizer_folder("alone")
    found = look([alone, filler])
    assert [(item.kind, item.name) for item in found] == [("tokenizer", "alone"), ("pretrained", "bert")]


def test_of_a_run_all_is_taken_that_is_there(
    filler: Path, tokenizer_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    tokenizer_folder("one/tokenizer")
    shutil.copytree(filler, tmp_path / "one" / "model")
    kept = tmp_path / "one" / "finetune" / "ynat" / "model" / "seed-1" / "model"
    kept.mkdir(parents=True)
    (kept / "malmoi.json").write_text("{}")
    (tmp_path / "one" / "corpus").mkdir()
    found = look([tmp_path / "one"])
    assert [item.kind for item in found] == ["tokenizer", "pretrained", "kept"]
    assert found[0].name == "one/tokenizer"


@pytest.mark.parametrize("name", ["empty", "missing", "file"])
def test_what_is_nothing_of_ours_is_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(LaunchError, match=f"{name}: no "):
        look([tmp_path / name])


def test_equal_tokenizers_are_shown_once_and_every_model_has_a_line_in_the_log(
    filler: Path, tokenizer_folder: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        loaded = load(look([filler, tokenizer_folder("copy")]))
    assert list(loaded.tokenizers) == list(loaded.pretrained) == ["bert"]
    assert len(caplog.messages) == 2 and "copy: a tokenizer" in caplog.messages[1]


def test_a_model_without_a_head_for_masks_gives_its_tokenizer_alone(
    filler: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "headless"
    shutil.copytree(filler, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for architectures in (["BertModel"], None, ["ElectraForPreTraining"]):
        (folder / "config.json").write_text(json.dumps(config | {"architectures": architectures}))
        with caplog.at_level(logging.INFO):
            loaded = load(look([folder]))
        assert list(loaded.tokenizers) == ["headless"] and not loaded.pretrained
    assert "without a head that fills masks" in caplog.text


def test_pieces_are_the_tokenizers_own_and_an_unknown_one_shows_its_text(filler: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(filler)
    shown = cut("bert", tokenizer, SENTENCE).pieces
    tokens = tokenizer.tokenize(SENTENCE)
    assert [text for text, kind in shown if kind != "unknown"] == [token for token in tokens if token != "[UNK]"]
    assert [text for text, kind in shown if kind == "unknown"] == ["뷁"]
    assert ("[MASK]", "special") in shown and ("##좌", "continues") in shown


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_fillings_are_those_of_the_stock_pipeline(kind: str, tmp_path: Path) -> None:
    folder = build_filler(tmp_path, kind)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    stock = pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=5)
    for text in (SENTENCE, f"{SENTENCE} [MASK]."):
        expected = stock(text)
        places = expected if isinstance(expected[0], list) else [expected]
        for found, wanted in zip(fill(model, tokenizer, text), places, strict=True):
            assert [piece for piece, _ in found] == tokenizer.convert_ids_to_tokens([w["token"] for w in wanted])
            assert [share for _, share in found] == pytest.approx([w["score"] for w in wanted], abs=1e-6)


def test_a_text_that_a_model_cannot_read_whole_is_said_so(loaded) -> None:
    with pytest.raises(LaunchError, match="402 pieces; this model reads 300"):
        fill(*loaded.pretrained["bert"], "서 " * 399 + "[MASK]")


@pytest.fixture(scope="module")
def run_folder(filler: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with kept models of four tasks, hardly trained."""
    home = tmp_path_factory.mktemp("runs") / "tiny"
    unpack(home / "sample")
    config = FinetuneConfig(
        tasks=("ynat", "klue-ner", "klue-dp", "klue-sts"), seeds=(1,), bootstrap_samples=0, max_train_examples=4,
        max_dev_examples=4, overrides={task: {"epochs": 1} for task in ("ynat", "klue-ner", "klue-dp", "klue-sts")},
    )  # fmt: skip
    run(config, FinetuneInputs(home / "sample" / "klue", {"model": str(filler)}), home / "finetune")
    return home


def test_kept_models_are_shown_with_what_they_predict(run_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        loaded = load(look([run_folder]))
    assert list(loaded.kept) == ["klue-dp/model/seed-1", "klue-ner/model/seed-1", "ynat/model/seed-1"]
    assert list(loaded.tokenizers) == ["klue-dp/model/seed-1"]
    assert "klue-sts/model/seed-1: a kept model of klue-sts, which wants more than a sentence" in caplog.text
    text = "한빛도서관이 새 강좌를 연다 <b>"
    html = view(text, loaded, "en")
    tree, entities, topic = (predict_texts(kept, [text])[0] for kept in loaded.kept.values())
    shown = ET.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])
    assert [node.text for node in shown.iter("text")] == [
        part for pair in zip(tree["words"], tree["prediction"]["types"], strict=True) for part in pair
    ]
    places = [(entity["start"], entity["end"], entity["type"]) for entity in entities["entities"]]
    assert panels.entities(text, places, "en") in html
    assert panels.bars(list(topic["likeliest"].items())) in html
    order = [
        html.index(f"<h2>{title}") for title in ("Personal data", "Entities", "Dependency tree", "Topic", "Pieces")
    ]
    assert order == sorted(order)


def test_a_broken_kept_model_is_one_sentence(run_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(run_folder / "finetune" / "ynat" / "model" / "seed-1" / "model", tmp_path / "kept")
    (tmp_path / "kept" / "malmoi.json").write_text("[]")
    with pytest.raises(BadInput, match=r"malmoi\.json"):
        load(look([tmp_path / "kept"]))
