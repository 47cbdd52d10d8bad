"""What a folder is, and what its models show of a sentence; fillings are those of the stock pipeline."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoModelForMaskedLM, AutoTokenizer, pipeline

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.run import FinetuneInputs, run
from launch.demo.page import View, fill_masks, find_models, load_masked_lm, load_views, tokenize, update_views
from launch.errors import LaunchError
from launch.sample.unpack import unpack
from tests.launch.demo.conftest import build_filler

SENTENCE = "새 강좌를 [MASK] 서울 뷁 축구"


def test_folders_are_recognized_by_their_files(filler: Path, tokenizer_folder: Callable[[str], Path]) -> None:
    alone = tokenizer_folder("alone")
    assert find_models([alone, filler]) == {alone: "tokenizer", filler: "pretrained"}


def test_a_run_gives_everything_in_it(filler: Path, tokenizer_folder: Callable[[str], Path], tmp_path: Path) -> None:
    tokenizer_folder("one/tokenizer")
    shutil.copytree(filler, tmp_path / "one" / "model")
    saved = tmp_path / "one" / "finetune" / "ynat" / "model" / "seed-1" / "model"
    saved.mkdir(parents=True)
    (saved / "malmoi.json").write_text("{}")
    (tmp_path / "one" / "corpus").mkdir()
    assert list(find_models([tmp_path / "one"]).values()) == ["tokenizer", "pretrained", "saved"]


@pytest.mark.parametrize("name", ["empty", "missing", "file"])
def test_other_folders_are_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(LaunchError, match=f"{name}: no "):
        find_models([tmp_path / name])


def test_equal_tokenizers_are_shown_once(filler: Path, tokenizer_folder: Callable[[str], Path]) -> None:
    views = load_views(find_models([filler, tokenizer_folder("copy")]), "en")
    assert [view.kind for view in views] == ["spans", "lines", "tokens"]


def test_a_model_without_a_masked_lm_head_shows_tokens_only(
    filler: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "headless"
    shutil.copytree(filler, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for architectures in (["BertModel"], None, ["ElectraForPreTraining"]):
        (folder / "config.json").write_text(json.dumps(config | {"architectures": architectures}))
        with caplog.at_level(logging.INFO):
            assert [view.kind for view in load_views(find_models([folder]), "en")] == ["spans", "tokens"]
    assert "no masked-LM head" in caplog.text


def test_tokens_are_those_of_the_tokenizer_and_unknown_ones_show_their_text(filler: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(filler)
    shown = tokenize(tokenizer, SENTENCE)
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
        for filled, wanted in zip(fill_masks(model, tokenizer, text), places, strict=True):
            assert [token for token, _ in filled] == tokenizer.convert_ids_to_tokens([w["token"] for w in wanted])
            assert [share for _, share in filled] == pytest.approx([w["score"] for w in wanted], abs=1e-6)


def test_a_text_that_is_too_long_for_a_model_is_reported(filler: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(filler)
    with pytest.raises(BadInput, match="402 tokens; this model reads at most 300"):
        fill_masks(load_masked_lm(filler, tokenizer), tokenizer, "서 " * 399 + "[MASK]")


@pytest.fixture(scope="module")
def run_folder(filler: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with saved models of four tasks, hardly trained."""
    home = tmp_path_factory.mktemp("runs") / "tiny"
    unpack(home / "sample")
    config = FinetuneConfig(
        tasks=("ynat", "klue-ner", "klue-dp", "klue-sts"), seeds=(1,), max_train_examples=4,
        max_dev_examples=4, overrides={task: {"epochs": 1} for task in ("ynat", "klue-ner", "klue-dp", "klue-sts")},
    )  # fmt: skip
    run(config, FinetuneInputs(home / "sample" / "klue", {"model": str(filler)}), home / "finetune")
    return home


def test_saved_models_show_their_predictions(run_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        views = load_views(find_models([run_folder]), "en")
    tasks = {view.title.partition(":")[0]: view for view in views}
    assert [tasks[name].kind for name in ("klue-dp", "klue-ner", "ynat")] == ["lines", "spans", "labels"]
    assert "klue-sts" not in tasks and "klue-sts needs more than a sentence" in caplog.text
    text = "한빛도서관이 새 강좌를 연다 <b>"
    shown = dict(zip((view.title.partition(":")[0] for view in views), update_views(views, text), strict=True))
    assert "한빛도서관이" in shown["klue-dp"] and "<b>" in shown["klue-dp"]
    assert "".join(part for part, _ in shown["klue-ner"]) == text
    assert max(shown["ynat"].values()) <= 1.0


def test_a_text_that_a_task_rejects_is_reported_in_its_view() -> None:
    def reject(text: str) -> None:
        raise BadInput("too long")

    values = update_views([View(kind, kind, reject) for kind in ("lines", "labels", "spans")], "가")
    assert values == ["too long", {"too long": 0.0}, [("too long", None)]]


def test_a_broken_saved_model_is_one_sentence(run_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(run_folder / "finetune" / "ynat" / "model" / "seed-1" / "model", tmp_path / "saved")
    (tmp_path / "saved" / "malmoi.json").write_text("[]")
    with pytest.raises(BadInput, match=r"malmoi\.json"):
        load_views(find_models([tmp_path / "saved"]), "en")
