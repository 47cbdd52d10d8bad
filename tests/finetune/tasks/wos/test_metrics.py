"""Scores and tables of WoS on states small enough to count by hand."""

from __future__ import annotations

import math

import pytest

from finetune.examples import Row
from finetune.tasks.wos.metrics import score, tables


def test_pooled_f1_counts_entries_and_turn_f1_counts_turns():
    rows = [
        Row("a-0", ["식당-지역-서울 동쪽"], ["식당-지역-서울 동쪽"] * 2),
        Row("a-1", ["식당-지역-서울 동쪽", "식당-종류-한식당", "식당-이름-달"], ["식당-종류-양식당"]),
    ]
    values = score(rows)
    assert values["slot_micro_f1"] == 50
    assert values["slot_pooled_f1"] == pytest.approx(100 * 2 / 6)
    assert math.isnan(score([Row("", [], [])])["slot_pooled_f1"])


def test_the_table_counts_each_slot():
    rows = [
        Row("a-0", ["식당-예약 시간-18:30", "택시-종류-모범"], ["식당-예약 시간-18:30"]),
        Row("a-1", ["식당-예약 시간-18:30"], ["식당-예약 시간-19:30", "식당-지역-서울 동쪽"]),
        Row("b-0", [], []),
    ]
    found = tables(rows)
    assert found["by slot"][0] == {
        "slot": "식당-예약 시간", "gold": 2, "predicted": 2, "right": 1, "precision": 50, "recall": 50, "f1": 50
    }  # fmt: skip
    assert found["by slot"][1] == {
        "slot": "식당-지역", "gold": 0, "predicted": 1, "right": 0, "precision": 0, "recall": None, "f1": 0
    }  # fmt: skip
    assert tables([Row("1", [], [])])["by slot"] == []
