"""The report's intervals over seeds and examples, and its table of differences between models."""

from __future__ import annotations

import json
from math import nan
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from launch.console import Table
from launch.report.blocks import Text
from launch.report.differences import differences
from launch.report.results import Results
from tests.finetune.score.simulated import Benchmark
from tests.launch.test_report import result


def test_the_interval_of_several_seeds_covers_new_seeds_and_new_examples() -> None:
    def interval(*scores: float, reach: float) -> tuple[float, float] | None:
        found = [
            result("ynat", score, 4.0, seed=seed, n=10_000, intervals={"accuracy": [score - reach, score + reach]})
            for seed, score in enumerate(scores)
        ]
        return Results(found).groups[0].interval("accuracy")

    assert interval(60.0, reach=2.0) == (58.0, 62.0)
    of_seeds = interval(60.0, 62.0, 64.0, reach=0.0)
    assert of_seeds == pytest.approx(stats.t.interval(0.95, 2, 62.0, 2 / 3**0.5), rel=5e-3)  # and the examples
    assert interval(62.0, 62.0, 62.0, reach=2.0) == pytest.approx((60.0, 64.0), abs=0.1)
    both = interval(60.0, 62.0, 64.0, reach=3.0)
    assert both is not None and of_seeds is not None
    assert both[1] - 62.0 == pytest.approx(((of_seeds[1] - 62.0) ** 2 + 3.0**2) ** 0.5, rel=3e-2)
    low, high = interval(1.0, 3.0, reach=1.0) or (nan, nan)
    assert 0.0 <= low < 0.1 and 14.0 < high < 100.0  # two seeds say little


def test_differences_between_models_are_tested_on_their_predictions(tmp_path: Path) -> None:
    own, found = Benchmark(np.random.default_rng(3), 80), []
    for model, quality in (("model", 0.5), ("klue/bert-base", 3.0)):
        for seed, rows in own.labels(2, quality, 0.01).items():
            folder = tmp_path / model / f"seed-{seed}"
            folder.mkdir(parents=True)
            (folder / "predictions.jsonl").write_text("".join(json.dumps(row._asdict()) + "\n" for row in rows))
            found.append(result("ynat", 50.0, 4.0, model=model, seed=seed, folder=str(folder)))
    table, note = differences(Results(found).groups)
    assert isinstance(table, Table) and isinstance(note, Text)
    (row,) = table.rows
    assert row[0] == "ynat\nmacro_f1" and row[1].startswith("model\n") and row[2].startswith("klue/bert-base\n")
    assert row[-1] in ("real: b is better", "not shown; 3 seeds would be needed")
    assert not differences(Results(found[:2]).groups)  # one model
    (tmp_path / "model/seed-1/predictions.jsonl").write_text("{", "utf-8")
    (said,) = differences(Results(found).groups)
    assert isinstance(said, Text) and "line 1" in said.text
    (tmp_path / "model/seed-1/predictions.jsonl").unlink()
    assert not differences(Results(found).groups)
