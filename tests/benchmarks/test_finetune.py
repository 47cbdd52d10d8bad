"""The fine-tuning benchmark: both sides get the same batches with different padding; one whole run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import pipeline

from benchmarks.baselines import fixed_batches, pad_fully
from benchmarks.finetune import learn_vocabulary, make_encoder, run_finetune_bench
from corpus.documents.errors import BadInput
from finetune.encoder.loading import load_tokenizer
from finetune.examples import IGNORED, Example
from finetune.inference.predict import predict_texts
from finetune.registry import TASKS
from finetune.saved_models.load import SavedModel

SENTENCES = ("한빛시에 비가 온다", "푸른들팀이 이겼다", "금리가 올랐다, 또", "새 산책로가 놓였다")


def pair(text: str) -> Example:
    return Example(text, 2.5, {"sentence1": text, "sentence2": text[::-1]})


def tagged(text: str) -> Example:
    letters = len(text.replace(" ", ""))
    return Example(text, ["B-LC", "I-LC", *["O"] * (letters - 2)], {"text": text})


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    examples = {"klue-sts": [pair(text) for text in SENTENCES * 3]}
    return make_encoder(learn_vocabulary(examples, folder / "vocab.txt"), folder / "encoder")


def test_fixed_batches_are_ours_with_more_padding(encoder: Path) -> None:
    task = TASKS["klue-ner"]
    features = task.featurize([tagged(text) for text in SENTENCES], load_tokenizer(str(encoder)), 64, True)
    plain = task.collate(features, 0)
    (full,) = fixed_batches(task, features, range(4), task.published.hyperparameters, 0)
    width = plain["input_ids"].shape[1]
    assert {full[name].shape for name in ("input_ids", "attention_mask", "labels")} == {(4, 510)}
    for name, filler in (("input_ids", 0), ("attention_mask", 0), ("labels", IGNORED)):
        assert torch.equal(full[name][:, :width], torch.from_numpy(plain[name]))
        assert (full[name][:, width:] == filler).all()
    assert pad_fully({"input_ids": np.ones((2, 3)), "lengths": np.ones(2)}, 5, 0)["lengths"].shape == (2,)


@pytest.mark.parametrize(("name", "keys"), [("ynat", ("title",)), ("klue-nli", ("premise", "hypothesis"))])
def test_new_text_gets_what_a_pipeline_of_transformers_gives(name: str, keys: tuple[str, ...], encoder: Path) -> None:
    task, tokenizer = TASKS[name], load_tokenizer(str(encoder))
    torch.manual_seed(1)
    model = task.model(str(encoder), tokenizer).eval()
    texts = [dict(zip(keys, (text, text[::-1]), strict=False)) for text in (*SENTENCES, SENTENCES[0] * 9)]
    ours = predict_texts(SavedModel(task, tokenizer, model, {"max_tokens": 32, "precision": "fp32"}), texts)
    tokenizer.model_input_names = ["input_ids", "attention_mask"]  # the encoder has no segments
    run: Any = pipeline("text-classification", model=model.net, tokenizer=tokenizer, device="cpu")
    rows: list[Any] = [list(text.values()) for text in texts]
    inputs = [{"text": row[0], "text_pair": row[1]} if len(row) > 1 else row[0] for row in rows]
    theirs = run(inputs, batch_size=32, top_k=None, truncation=True, max_length=32)
    for found, expected in zip(ours, theirs, strict=True):
        ranked = {entry["label"]: pytest.approx(entry["score"], abs=1e-5) for entry in expected[:3]}
        assert found["likeliest"] == ranked
        assert found["prediction"] == expected[0]["label"]


def test_a_whole_run_prints_a_table_and_keeps_the_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_this_process: None
) -> None:
    records = [
        {"guid": str(i), "sentence1": text, "sentence2": text, "labels": {"real-label": float(i)}}
        for i, text in enumerate(SENTENCES)
    ]
    path = tmp_path / "klue-sts-v1.1" / "klue-sts-v1.1_dev.json"
    path.parent.mkdir()
    path.write_text(json.dumps(records, ensure_ascii=False), "utf-8")
    threads = torch.get_num_threads()
    try:
        results = run_finetune_bench(tmp_path, None, ["klue-sts"], 3, tmp_path / "bench.json")
    finally:
        torch.set_num_threads(threads)
    assert json.loads((tmp_path / "bench.json").read_text("utf-8")) == results
    row = results["tasks"]["klue-sts"]
    assert row["examples"] == 3
    ours, theirs = (row["sides"][side] for side in ("malmoi", "published padding"))
    assert row["times_faster"] == {phase: pytest.approx(theirs[phase] / ours[phase]) for phase in ("epoch", "predict")}
    printed = capsys.readouterr().out
    assert "klue-sts" in printed
    assert "files given" in printed


def test_options_that_cannot_be_met_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--task must be one of klue-ner, klue-dp"):
        run_finetune_bench(tmp_path, None, ["wos"], None, None)
    with pytest.raises(BadInput, match=r"klue-ner-v1.1_dev.tsv \(or .zst\) is missing"):
        run_finetune_bench(tmp_path, None, [], None, None)
