"""Scoring a predictions file: without torch, and with clear words about files that are none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from finetune.config import BadInput
from finetune.metrics.classification import score_nli
from finetune.score import bootstrap, score_predictions
from finetune.task import Row

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
    assert score_predictions("ynat", predictions)["macro_f1"] == pytest.approx(100 * (2 / 3) / 2)


def test_scoring_does_not_import_torch(predictions: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from finetune.score import score_predictions; "
        f"score_predictions('ynat', Path({str(predictions)!r})); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("task", "text", "says"),
    [
        ("ynatt", LINES, "ynatt: no such task; the tasks are ynat, klue-sts"),
        ("ynat", "", "no predictions in it"),
        ("ynat", '{"guid": "0", "gold": "정치"}', "line 1: expected a JSON object with"),
        ("ynat", LINES + "{", "line 3: expected a JSON object with"),
        ("klue-ner", LINES, "do not have the form of klue-ner"),
    ],
)
def test_a_file_that_cannot_be_scored_is_explained(predictions: Path, task: str, text: str, says: str) -> None:
    predictions.write_text(text, "utf-8")
    with pytest.raises(BadInput, match=says):
        score_predictions(task, predictions)


def test_the_interval_is_that_of_the_binomial_for_an_accuracy() -> None:
    rows = [Row("", "neutral", "neutral" if i % 5 else "entailment") for i in range(400)]
    lower, upper = bootstrap(rows, [str(i) for i in range(400)], score_nli, 500, seed=1)["accuracy"]
    reach = 196 * (0.8 * 0.2 / 400) ** 0.5
    assert (80 - lower, upper - 80) == pytest.approx((reach, reach), rel=0.1)


def test_rows_of_one_group_are_drawn_together() -> None:
    rows = [Row("", "neutral", "neutral" if i < 200 else "entailment") for i in range(400)]
    alone = bootstrap(rows, [str(i) for i in range(400)], score_nli, 200, seed=1)["accuracy"]
    together = bootstrap(rows, [str(i // 40) for i in range(400)], score_nli, 200, seed=1)["accuracy"]
    assert together[1] - together[0] > 4 * (alone[1] - alone[0])


def test_no_samples_give_no_interval() -> None:
    assert bootstrap([Row("", "neutral", "neutral")], ["0"], score_nli, 0, seed=1) == {"accuracy": None}
