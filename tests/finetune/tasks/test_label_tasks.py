"""YNAT, KLUE-NLI and KLUE-STS: reading, features, training, and what is said about wrong files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from finetune.config import BadInput
from finetune.files import find_files
from finetune.predict import predict, to_tensors
from finetune.registry import TASKS
from finetune.task import Example, Hyperparameters, Row
from finetune.train import seed_everything, train

RECORDS: dict[str, list[dict[str, Any]]] = {
    "ynat": [
        {"title": title, "label": label}
        for title, label in [
            ("한빛은행 금리 인하", "경제"), ("푸른들팀 3연승", "스포츠"),
            ("새 반도체 공개", "IT과학"), ("시의회 예산안 처리", "정치"),
        ]
    ],
    "klue-nli": [
        {"premise": premise, "hypothesis": hypothesis, "gold_label": label}
        for premise, hypothesis, label in [
            ("방에 창이 두 개 있다.", "방에 창이 있다.", "entailment"),
            ("비가 막 그쳤다.", "지금 비가 온다.", "contradiction"),
            ("버스가 자주 온다.", "버스는 파랗다.", "neutral"),
        ]
    ],
    "klue-sts": [
        {"sentence1": first, "sentence2": second, "labels": {"label": 0.0, "real-label": value, "binary-label": 0}}
        for first, second, value in [
            ("숙소가 깨끗해요.", "방이 깨끗했습니다.", 4.2),
            ("숙소가 깨끗해요.", "비가 옵니다.", 0.2),
            ("불을 꺼 줘.", "불 좀 꺼라.", 4.6),
        ]
    ],
}  # fmt: skip
NAMES = tuple(RECORDS)


def write(folder: Path, task: str, records: list[dict[str, Any]]) -> Path:
    path = folder / f"{task}.json"
    path.write_text(json.dumps([{"guid": f"{task}_{i}", **r} for i, r in enumerate(records)]), "utf-8")
    return path


@pytest.fixture
def examples_of(tmp_path: Path):
    return lambda task: TASKS[task].read(write(tmp_path, task, RECORDS[task]))


def texts_of(examples: list[Example]) -> list[str]:
    return [text for example in examples for text in example.inputs.values()]


def test_reading_keeps_texts_and_golds(examples_of) -> None:
    assert examples_of("ynat")[0] == Example("ynat_0", "경제", {"title": "한빛은행 금리 인하"})
    assert [example.gold for example in examples_of("klue-nli")] == ["entailment", "contradiction", "neutral"]
    assert [example.gold for example in examples_of("klue-sts")] == [4.2, 0.2, 4.6]


@pytest.mark.parametrize(
    ("task", "change", "says"),
    [
        ("ynat", {"label": "연예"}, "'label' is '연예'; labels here are 정치, 경제"),
        ("ynat", {"label": 3}, "'label' is 3"),
        ("ynat", {"title": None}, "'title' should be a text, found None"),
        ("klue-nli", {"gold_label": "-"}, "'gold_label' is '-'"),
        ("klue-nli", {"hypothesis": " "}, "'hypothesis' should be a text"),
        ("klue-sts", {"labels": None}, "found None"),
        ("klue-sts", {"labels": {"real-label": 6.0}}, "a number from 0 to 5, found 6.0"),
    ],
)
def test_a_wrong_record_is_named_with_its_field(tmp_path: Path, task: str, change: dict, says: str) -> None:
    path = write(tmp_path, task, [*RECORDS[task], {**RECORDS[task][0], **change}])
    with pytest.raises(BadInput) as error:
        TASKS[task].read(path)
    assert f"{path}, {task}_{len(RECORDS[task])}:" in str(error.value)
    assert says in str(error.value)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("task", NAMES)
def test_scores_depend_on_neither_batch_mates_nor_padding(examples_of, tiny_encoder, task: str, kind: str) -> None:
    examples = examples_of(task)
    encoder, tokenizer = tiny_encoder(texts_of(examples), kind)
    features = TASKS[task].featurize(examples, tokenizer, 64, False)
    model = TASKS[task].model(encoder, tokenizer).eval()
    together = model.predict(**to_tensors(TASKS[task].collate(features[::-1], tokenizer.pad_token_id)))[::-1]
    alone = [model.predict(**to_tensors(TASKS[task].collate([f], tokenizer.pad_token_id)))[0] for f in features]
    np.testing.assert_allclose(np.array(together), np.array(alone), atol=1e-5)


@pytest.mark.parametrize("task", NAMES)
def test_training_lowers_the_loss_and_learns_the_examples(examples_of, tiny_encoder, task: str) -> None:
    record, examples = TASKS[task], examples_of(task)
    encoder, tokenizer = tiny_encoder(texts_of(examples))
    features = record.featurize(examples, tokenizer, 64, True)
    seed = seed_everything(1, task)
    model = record.model(encoder, tokenizer)
    settings = Hyperparameters(lr=2e-3, epochs=150, batch_size=4)
    losses = train(record, model, features, settings, seed, tokenizer.pad_token_id)
    raws = predict(record, model, features, tokenizer.pad_token_id)
    predictions = record.decode(examples, features, raws)
    rows = [Row(e.guid, e.gold, p.value, p.scores) for e, p in zip(examples, predictions, strict=True)]
    assert losses[-1] < losses[0] / 2
    assert next(iter(record.score(rows).values())) > 90


def test_the_same_seed_trains_the_same_model(examples_of, tiny_encoder) -> None:
    record, examples = TASKS["ynat"], examples_of("ynat")
    encoder, tokenizer = tiny_encoder(texts_of(examples))
    features = record.featurize(examples, tokenizer, 64, True)
    runs = []
    for seed in (1, 1, 2):
        derived = seed_everything(seed, "ynat")
        model = record.model(encoder, tokenizer)
        train(record, model, features, Hyperparameters(epochs=2, batch_size=2), derived, 0)
        runs.append(np.array(predict(record, model, features, 0)))
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()


def test_a_long_pair_keeps_both_sides_and_both_separators(examples_of, tiny_encoder) -> None:
    examples = examples_of("klue-nli")
    _, tokenizer = tiny_encoder(texts_of(examples))
    for feature in TASKS["klue-nli"].featurize(examples, tokenizer, 12, False):
        ids = feature["input_ids"]
        assert len(ids) <= 12
        assert ids.count(tokenizer.sep_token_id) == 2
        assert ids[-1] == tokenizer.sep_token_id


def test_trivial_predictions_are_the_majority_and_the_mean(examples_of) -> None:
    examples = [Example("", gold, {}) for gold in ("경제", "세계", "세계")]
    assert [p.value for p in TASKS["ynat"].trivial(examples, examples)] == ["세계"] * 3
    sts = examples_of("klue-sts")
    assert [p.value for p in TASKS["klue-sts"].trivial(sts, sts)] == pytest.approx([3.0] * 3)


@pytest.mark.parametrize("task", NAMES)
def test_features_equal_the_published_ones(shared, klue_tokenizer, published_features, task: str) -> None:
    record = TASKS[task]
    expected = {r["guid"]: r for r in published_features(task)}
    path = find_files(shared("data/klue"), record.files).dev
    examples = [example for example in record.read(path) if example.guid in expected]
    assert len(examples) == len(expected) > 0
    for example, feature in zip(examples, record.featurize(examples, klue_tokenizer, 128, False), strict=True):
        published = expected[example.guid]
        assert feature["input_ids"] == published["input_ids"]
        assert feature["token_type_ids"] == published["token_type_ids"]
        assert example.gold == next(iter(published["labels"].values()))
