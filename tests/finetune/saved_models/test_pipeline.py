"""Entities of a saved model in transformers' ``pipeline()``: ours, and those that begin with I-."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from transformers import pipeline

from finetune.inference.predict import predict_texts
from finetune.registry import TASKS
from finetune.saved_models import save
from finetune.saved_models.load import load_model

TEXTS = [f"가람{n}은 서울 집에 {n}번 갔다" for n in range(20)]


def test_the_aggregation_of_the_card_finds_our_entities_and_stray_ones(tiny_encoder: Any, tmp_path: Path) -> None:
    encoder, tokenizer = tiny_encoder(TEXTS)
    torch.manual_seed(1)
    folder = tmp_path / "model"
    TASKS["klue-ner"].model(encoder, tokenizer).net.save_pretrained(folder)  # type: ignore[operator]
    tokenizer.save_pretrained(folder)
    settings = {"format": 1, "task": "klue-ner", "protocol": "malmoi", "max_tokens": 64}
    (folder / "malmoi.json").write_text(json.dumps(settings), "utf-8")
    assert 'aggregation_strategy="simple"' in Path(save.__file__).with_name("card.md.j2").read_text("utf-8")
    find: Any = pipeline("token-classification", str(folder), aggregation_strategy="simple", device="cpu")
    results = predict_texts(load_model(folder, "cpu"), TEXTS)
    assert any(result["entities"] for result in results)
    for result in results:
        ours = {(e["start"], e["end"], e["type"]) for e in result["entities"]}
        theirs = {(e["start"], e["end"], e["entity_group"]) for e in find(result["text"])}
        letters = [place for place, letter in enumerate(result["text"]) if not letter.isspace()]
        tags = dict(zip(letters, result["prediction"], strict=True))
        assert ours <= theirs
        assert all(tags[begin].startswith("I-") for begin, *_ in theirs - ours)
