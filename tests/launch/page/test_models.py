"""What a folder is, is found by looking; pieces and fillings are those of the stock classes."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoModelForMaskedLM, AutoTokenizer, pipeline

from launch.errors import LaunchError
from launch.page.models import cut, fill, load, look
from tests.launch.page.conftest import build_filler

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
