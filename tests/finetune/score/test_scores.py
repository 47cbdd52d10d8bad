"""Scoring anybody's predictions: without torch, and with clear words about files that are none."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from corpus.documents.errors import BadInput
from finetune.data.files import sha256
from finetune.examples import Row
from finetune.registry import TASKS
from finetune.score.bootstrap import bootstrap
from finetune.score.scores import Scored, score_file

NLI, STS = TASKS["klue-nli"], TASKS["klue-sts"]
LINES = (
    '{"guid": "0", "gold": "정치", "prediction": "정치", "scores": null}\n'
    '{"guid": "1", "gold": "경제", "prediction": "정치"}\n'
)


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / "predictions.jsonl"
    path.write_text(LINES, "utf-8")
    return path


def test_a_predictions_file_is_scored_with_the_metrics_of_its_task(predictions: Path) -> None:
    assert score_file("ynat", predictions, samples=0).scores["macro_f1"] == pytest.approx(100 * (2 / 3) / 2)


OFFICIAL = [{"guid": str(i), "title": "제목", "label": label} for i, label in enumerate(("정치", "경제", "세계"))]


@pytest.fixture
def official(tmp_path: Path) -> Path:
    path = tmp_path / "ynat-v1.1_dev.json"
    path.write_text(json.dumps(OFFICIAL, ensure_ascii=False), "utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        '{"2": "세계", "0": "정치", "1": "정치"}',
        '{"guid": "2", "prediction": "세계"}\n{"guid": "0", "prediction": "정치"}\n'
        '{"guid": "1", "prediction": "정치"}\n',
    ],
)
def test_anybodys_predictions_are_scored_against_an_official_file(text: str, official: Path, predictions: Path) -> None:
    predictions.write_text(text, "utf-8")
    found = score_file("ynat", predictions, official, samples=20)
    assert found.n == 3
    assert found.scores["macro_f1"] == pytest.approx(100 * (2 / 3 + 0 + 1) / 3)
    lower, upper = found.intervals["macro_f1"] or (0, 0)
    assert lower < found.scores["macro_f1"] < upper
    assert found.tables["classes"]
    assert found.gold == {"file": official.name, "sha256": sha256(official), "version": "unknown"}


def test_our_own_file_gives_the_same_figures_with_and_without_the_official_one(
    official: Path, predictions: Path
) -> None:
    lines = [{"guid": r["guid"], "gold": r["label"], "prediction": "정치", "scores": None} for r in OFFICIAL]
    predictions.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    alone, held = score_file("ynat", predictions), score_file("ynat", predictions, official)
    assert alone == held._replace(gold=None)


def test_dialogues_are_drawn_whole_from_our_own_file_too(tmp_path: Path) -> None:
    rows = [
        {"guid": f"w{i // 10}-{i % 10}", "gold": [], "prediction": ["식당-종류-한식당"] * (i < 100)} for i in range(200)
    ]
    path = tmp_path / "predictions.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    lower, upper = score_file("wos", path).intervals["joint_goal_acc"] or (0, 0)
    assert score_file("dst", path).intervals["joint_goal_acc"] == (lower, upper)  # under any name of the task
    assert upper - lower > 2.5 * 2 * 196 * (0.25 / 200) ** 0.5  # √10 times the interval of 200 single turns


def test_undefined_figures_are_null_in_json() -> None:
    found = Scored(1, {"f1": math.nan}, {"f1": None}, {"classes": [{"class": "O", "f1": math.nan, "n": 1}]})
    written = json.dumps(found.as_json(), allow_nan=False)
    assert json.loads(written)["tables"] == {"classes": [{"class": "O", "f1": None, "n": 1}]}


def test_labels_are_needed_to_score(official: Path, predictions: Path) -> None:
    official.write_text(json.dumps([{"guid": "0", "title": "제목"}]), "utf-8")
    predictions.write_text('{"0": "정치"}', "utf-8")
    with pytest.raises(BadInput, match="no labels to score against"):
        score_file("ynat", predictions, official)


def test_probabilities_are_in_all_rows_or_in_none(tmp_path: Path) -> None:
    entity = {"word": "가", "start_idx": 0, "end_idx": 0, "type": "PER"}
    records = [
        {"guid": guid, "sentence": "가나", "subject_entity": entity, "object_entity": entity, "label": "no_relation"}
        for guid in "ab"
    ]
    gold, predictions = tmp_path / "re.json", tmp_path / "predictions"
    gold.write_text(json.dumps(records), "utf-8")
    line = {"guid": "a", "prediction": "no_relation", "scores": [1.0] + 29 * [0.0]}

    def put(**second: object) -> None:
        predictions.write_text(f"{json.dumps(line)}\n{json.dumps({**line, 'guid': 'b', **second})}\n", "utf-8")

    put(scores=None)
    with pytest.raises(BadInput, match="'scores' in 1 of 2 lines"):
        score_file("klue-re", predictions, gold)
    put(scores=[0.5, 0.5])
    with pytest.raises(BadInput, match="predictions, b: 'scores' should be 30 numbers"):
        score_file("klue-re", predictions, gold)
    put()
    assert math.isfinite(score_file("klue-re", predictions, gold, samples=0).scores["auprc"])


def test_scoring_imports_neither_torch_nor_transformers(official: Path, predictions: Path) -> None:
    predictions.write_text('{"2": "세계", "0": "정치", "1": "정치"}', "utf-8")
    code = (
        "import sys; from pathlib import Path; "
        "from finetune.registry import TASKS; from finetune.score.scores import score_file; "
        f"[TASKS[name] for name in TASKS]; score_file('ynat', Path({str(predictions)!r}), Path({str(official)!r}), 2); "
        "sys.exit(bool({'torch', 'transformers', 'datasets'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("task", "text", "says"),
    [
        ("ynatt", LINES, "ynatt: no such task; did you mean ynat"),
        ("ynat", "", "no predictions in it"),
        ("ynat", '{"guid": "0", "gold": "정치"}', "line 1: expected a JSON object with"),
        ("ynat", LINES + "{", "line 3: broken JSON"),
        ("klue-ner", LINES, "expected 0 tags, one a character"),
    ],
)
def test_a_file_that_cannot_be_scored_is_explained(predictions: Path, task: str, text: str, says: str) -> None:
    predictions.write_text(text, "utf-8")
    with pytest.raises(BadInput, match=says):
        score_file(task, predictions, samples=0)


def test_rows_of_one_group_are_drawn_together() -> None:
    rows = [Row("", "neutral", "neutral" if i < 200 else "entailment") for i in range(400)]
    alone = bootstrap(NLI, rows, [str(i) for i in range(400)], 200, seed=1)["accuracy"]
    together = bootstrap(NLI, rows, [str(i // 40) for i in range(400)], 200, seed=1)["accuracy"]
    assert together[1] - together[0] > 4 * (alone[1] - alone[0])


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_interval_of_a_correlation_reaches_below_zero(sign: int) -> None:
    own, noise = np.random.default_rng(1).normal(size=(2, 40))
    pairs = zip((2 * own).tolist(), (2 * sign * (own + noise)).tolist(), strict=True)
    rows = [Row("", *pair) for pair in pairs]
    value, intervals = STS.score(rows), bootstrap(STS, rows, [str(i) for i in range(40)], 200, seed=1)
    lower, upper = intervals["pearsonr"] or (0, 0)
    assert sign * value["pearsonr"] > 50
    assert -100 < lower < value["pearsonr"] < upper < 100  # a correlation may be negative
    assert (upper - value["pearsonr"] < value["pearsonr"] - lower) == (sign > 0)  # shorter towards the end of the range


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_interval_of_a_correlation_stays_within_its_range(sign: int) -> None:
    golds = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.5, 3.5]
    rows = [Row("", gold, sign * (gold + error)) for gold, error in zip(golds, [0.9, -0.9] * 4, strict=True)]
    interval = bootstrap(STS, rows, [str(i) for i in range(8)], 100, seed=1)["pearsonr"] or (0, 0)
    assert -100 < interval[0] < interval[1] < 100 and sign * interval[(1 + sign) // 2] > 90


def test_no_samples_give_no_interval() -> None:
    assert bootstrap(NLI, [Row("", "neutral", "neutral")], ["0"], 0, seed=1) == {"accuracy": None}
