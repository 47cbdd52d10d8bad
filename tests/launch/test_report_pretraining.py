"""The pretraining section of the report: held-out scores, baselines by source, curves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from launch.report.blocks import Pictures, Table, Text
from launch.report.stages import pretraining_section


def scores_on(accuracy: float, loss: float, **more: Any) -> dict[str, Any]:
    return {
        "rows": 20, "predictions": 1540, "mlm_loss": loss, "masked_accuracy": accuracy,
        **more,
    }  # fmt: skip


def write_training(run: Path, held_out: dict[str, Any], **of_lines: float) -> None:
    timing = {"seconds": 10.0, "memory_gib": 1.5, "tokens": 0, "lr": 1e-4}
    lines: list[dict[str, Any]] = [
        {"step": 2, "loss": 9.0, "masked_accuracy": 0.01, "tokens_per_second": 100} | timing | of_lines,
        {"step": 4, "loss": 8.0, "masked_accuracy": 0.05, "tokens_per_second": 2000} | timing | of_lines,
        {"step": 4, "held_out": held_out},
        {"step": 6, "loss": 7.0, "masked_accuracy": 0.10, "tokens_per_second": 4000} | timing | of_lines,
    ]
    counts = {"architecture": "roberta", "parameters": 68_000, "steps": 6, "tokens": 9000, "epochs": 1.5}
    (run / "pretrain").mkdir()
    (run / "pretrain" / "manifest.json").write_text(json.dumps({"counts": counts | {"held_out": held_out}}), "utf-8")
    (run / "pretrain" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def test_pretraining_shows_held_out_scores_and_baselines_by_source(tmp_path: Path) -> None:
    sources = {"수필": scores_on(0.5, 2.0), "일기": scores_on(0.25, 3.0)}
    baselines = {"unigram_accuracy": 0.031, "bigram_accuracy": 0.112}
    write_training(tmp_path, scores_on(0.4, 2.5, sources=sources, baselines=baselines), mfu=0.42)
    first, _, table, _ = pretraining_section(tmp_path).blocks
    assert isinstance(first, Text) and isinstance(table, Table)
    # the first interval, which holds the start-up, is not part of the speed
    assert "30 s of training at 3,000 tokens a second, 42.0 % of the device's peak (MFU)" in first.text
    assert [(row[0], row[4]) for row in table.rows] == [
        ("all", "40.00"), ("수필", "50.00"), ("일기", "25.00"),
        ("all, unigram baseline", "3.10"), ("all, bigram baseline", "11.20"),
    ]  # fmt: skip
    assert table.rows[1] == ["수필", "20", "1,540", "2.000", "50.00"]


def test_held_out_measurements_are_points_over_the_steps(tmp_path: Path) -> None:
    write_training(tmp_path, scores_on(0.4, 2.5, sources={}, baselines={}))
    blocks = pretraining_section(tmp_path).blocks
    pictures = next(block for block in blocks if isinstance(block, Pictures))
    assert ("second", "held-out text") in pictures.keys and "MFU" not in str(blocks[0])
    assert all('<circle class="second"' in svg for _, svg in pictures.charts)


@pytest.mark.parametrize(("is_hybrid", "charts"), [(False, 2), (True, 4)])
def test_causal_objectives_have_their_own_curves_and_columns(tmp_path: Path, is_hybrid: bool, charts: int) -> None:
    of_masks = scores_on(0.4, 2.5) if is_hybrid else {"rows": 20, "predictions": 1540}
    scores = of_masks | {"causal_loss": 3.25, "causal_accuracy": 0.35, "perplexity": 25.79}
    held_out = scores | {"sources": {"수필": scores}, "baselines": {"bigram_accuracy": 0.2}}
    write_training(
        tmp_path, held_out, causal_accuracy=0.3, **({"mlm_loss": 6.0, "causal_loss": 7.0} if is_hybrid else {})
    )
    lines = (tmp_path / "pretrain" / "metrics.jsonl").read_text("utf-8")
    if not is_hybrid:
        without = lines.replace('"masked_accuracy"', '"nothing"')
        (tmp_path / "pretrain" / "metrics.jsonl").write_text(without, "utf-8")
    _, pictures, table, note = pretraining_section(tmp_path).blocks
    assert isinstance(pictures, Pictures) and len(pictures.charts) == charts
    assert isinstance(table, Table) and table.rows[1][-3:] == ["3.250", "35.00", "25.79"]
    assert table.rows[2][4] == "20.00" and all(len(row) == len(table.heads) for row in table.rows)
    assert isinstance(note, Text) and ("next token" in note.text) != is_hybrid


def test_sentence_pairs_get_a_column(tmp_path: Path) -> None:
    source = scores_on(0.5, 2.0, nsp_loss=0.6, nsp_accuracy=0.75)
    held_out = scores_on(
        0.4, 2.5, nsp_loss=0.7, nsp_accuracy=0.7, sources={"수필": source}, baselines={"bigram_accuracy": 0.1}
    )
    write_training(tmp_path, held_out, mlm_loss=6.5, nsp_accuracy=0.6)
    table = next(block for block in pretraining_section(tmp_path).blocks if isinstance(block, Table))
    assert [row[5] for row in table.rows] == ["70.00", "75.00", "–"]
    assert all(len(row) == len(table.heads) for row in table.rows)
