"""YNAT, KLUE-NLI and KLUE-STS: reading, features, training, and what is said about wrong files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

from corpus.documents.errors import BadInput
from finetune.config import Hyperparameters
from finetune.data.files import find_file
from finetune.examples import Example, Prediction, Row
from finetune.registry import TASKS
from finetune.tasks.labels import validate_label
from finetune.tasks.nli.task import NLI_LABELS
from finetune.tasks.ynat.task import YNAT_LABELS
from finetune.train.batched_prediction import predict, to_tensors
from finetune.train.trainer import seed_everything, train

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
LABEL_KEYS = {"ynat": "label", "klue-nli": "gold_label", "klue-sts": "labels"}


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
        ("klue-sts", {"labels": {"label": 4.0}}, "found None"),
        ("klue-sts", {"labels": {"real-label": 5.1}}, "a number from 0 to 5, found 5.1"),
        ("klue-sts", {"labels": {"real-label": -0.1}}, "a number from 0 to 5, found -0.1"),
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
    settings = Hyperparameters(lr=1e-2, epochs=30, batch_size=4)
    losses = train(record, model, features, settings, seed, tokenizer.pad_token_id).losses
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


@pytest.mark.parametrize("task", NAMES)
def test_a_file_without_labels_gives_features_without_labels(tmp_path: Path, tiny_encoder, task: str) -> None:
    key = LABEL_KEYS[task]
    unlabelled = [{name: value for name, value in record.items() if name != key} for record in RECORDS[task]]
    examples = TASKS[task].read(write(tmp_path, task, unlabelled))
    _, tokenizer = tiny_encoder(texts_of(examples))
    assert [example.gold for example in examples] == [None] * len(unlabelled)
    features = TASKS[task].featurize(examples, tokenizer, 64, False)
    assert sorted(TASKS[task].collate(features, 0)) == ["attention_mask", "input_ids", "token_type_ids"]
    with pytest.raises(BadInput, match=f"{task}_1: no '{key}', which other records have"):
        TASKS[task].read(write(tmp_path, task, [RECORDS[task][0], *unlabelled[1:]]))


@pytest.mark.parametrize(("task", "value"), [("ynat", "세계"), ("klue-nli", "neutral"), ("klue-sts", 2.5)])
def test_predictions_are_written_as_an_official_file(tmp_path: Path, task: str, value) -> None:
    record, official, target = TASKS[task], write(tmp_path, task, RECORDS[task]), tmp_path / "predicted.json"
    values = {example.guid: value for example in record.read(official)}
    record.write(official, values, target)
    assert [example.gold for example in record.read(target)] == [value] * len(values)
    assert [e.inputs for e in record.read(target)] == [e.inputs for e in record.read(official)]


def test_written_similarities_keep_to_the_official_scale(tmp_path: Path) -> None:
    record, target = TASKS["klue-sts"], tmp_path / "predicted.json"
    record.write(
        write(tmp_path, "klue-sts", RECORDS["klue-sts"]),
        {"klue-sts_0": 5.2, "klue-sts_1": -0.1, "klue-sts_2": 2.96},
        target,
    )
    assert [written["labels"] for written in json.loads(target.read_text("utf-8"))] == [
        {"label": 5.0, "real-label": 5.0, "binary-label": 1},
        {"label": 0.0, "real-label": 0.0, "binary-label": 0},
        {"label": 3.0, "real-label": 2.96, "binary-label": 0},
    ]


def test_an_official_file_written_with_its_own_labels_is_the_same_file(shared, tmp_path: Path) -> None:
    task, target = TASKS["klue-sts"], tmp_path / "predicted.json"
    official = find_file(shared("data/klue"), task.files.dev)
    task.write(official, {example.guid: example.gold for example in task.read(official)}, target)
    assert target.read_text("utf-8") == official.read_text("utf-8")


def noisy_rows(labels: tuple[str, ...]) -> list[Row]:
    """The last of the labels is only predicted, the last but one on neither side."""
    generator = np.random.default_rng(5)
    pairs = zip(generator.integers(len(labels) - 2, size=300), generator.random(300), strict=True)
    return [Row("", labels[g], labels[g] if x < 0.7 else labels[-1] if x < 0.8 else labels[0]) for g, x in pairs]


def test_label_scores_and_tables_equal_those_of_scikit_learn() -> None:
    for task, labels in (("ynat", YNAT_LABELS), ("klue-nli", NLI_LABELS)):
        rows = noisy_rows(labels)
        gold, predicted = [row.gold for row in rows], [row.prediction for row in rows]
        expected = {
            "macro_f1": 100 * f1_score(gold, predicted, average="macro", zero_division=0),
            "accuracy": 100 * accuracy_score(gold, predicted),
        }
        for name, value in TASKS[task].score(rows).items():
            assert value == pytest.approx(expected[name])
        tables = TASKS[task].inspection.tables(rows)
        columns = precision_recall_fscore_support(gold, predicted, labels=list(labels), zero_division=0)
        for key, column in zip(("precision", "recall", "f1"), columns, strict=False):
            assert [line[key] for line in tables["classes"]] == pytest.approx(list(100 * column))
        assert [[line[name] for name in labels] for line in tables["confusion"]] == confusion_matrix(
            gold, predicted, labels=list(labels)
        ).tolist()


def test_similarities_are_read_with_both_ends_of_their_range(tmp_path: Path) -> None:
    records = [RECORDS["klue-sts"][0] | {"labels": {"real-label": value}} for value in (0, 5.0, 2.5)]
    assert [example.gold for example in TASKS["klue-sts"].read(write(tmp_path, "klue-sts", records))] == [0, 5, 2.5]


def test_similarity_scores_equal_those_of_scikit_learn_and_numpy() -> None:
    generator = np.random.default_rng(6)
    gold = generator.integers(0, 51, size=200) / 10
    predicted = gold + generator.normal(size=200)
    expected = {
        "pearsonr": 100 * float(np.corrcoef(gold, predicted)[0, 1]),
        "f1": 100 * float(f1_score(gold >= 3, predicted >= 3)),
    }
    assert TASKS["klue-sts"].score([Row("", *pair) for pair in zip(gold, predicted, strict=True)]) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("task", NAMES)
def test_features_equal_the_published_ones(shared, klue_tokenizer, published_features, task: str) -> None:
    record = TASKS[task]
    expected = {r["guid"]: r for r in published_features(task)}
    path = find_file(shared("data/klue"), record.files.dev)
    examples = [example for example in record.read(path) if example.guid in expected]
    assert len(examples) == len(expected) > 0
    for example, feature in zip(examples, record.featurize(examples, klue_tokenizer, 128, False), strict=True):
        published = expected[example.guid]
        assert feature["input_ids"] == published["input_ids"]
        assert feature["token_type_ids"] == published["token_type_ids"]
        assert example.gold == next(iter(published["labels"].values()))


@pytest.mark.parametrize(
    ("value", "scores", "says"),
    [
        ("a", None, None),
        ("a", [0.5, 1], None),
        ("b", [-1e300, 1e300], None),
        ("c", None, "no label 'c'; labels here are a, b"),
        ("a", [0.5], "'scores' should be 2 numbers, one for each of a, b; found [0.5]"),
        ("a", [0.5, "1"], "'scores' should be 2 numbers"),
        ("a", [0.5, True], "'scores' should be 2 numbers"),
        ("a", [math.nan, 0.5], "'scores' should be 2 numbers"),
        ("a", [0.5, math.inf], "'scores' should be 2 numbers"),
        ("a", {"a": 1, "b": 0}, "'scores' should be 2 numbers"),
    ],
)
def test_a_predicted_label_has_all_its_scores_or_none(value: str, scores: Any, says: str | None) -> None:
    found = validate_label(("a", "b"), Example("1", "a", {}), Prediction(value, scores))
    assert found is None if says is None else found is not None and found.startswith(says)
