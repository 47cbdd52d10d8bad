"""Every metric against values that the published metric code returned on invented predictions.

``make_published_metrics.py`` in the folder of the values made them; a second, larger file of the same schema
is read where the
shared data folder has one, and another can be put in its place by the environment variable MALMOI_ORACLE.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finetune.examples import Row
from finetune.tasks.dp import metrics as dp
from finetune.tasks.mrc import metrics as mrc
from finetune.tasks.ner import metrics as ner
from finetune.tasks.nli.task import score_nli
from finetune.tasks.re import metrics as re
from finetune.tasks.sts import task as sts
from finetune.tasks.wos import metrics as wos
from finetune.tasks.ynat.task import score_ynat

SCORES = {
    "ynat": score_ynat,
    "klue-nli": score_nli,
    "klue-sts": sts.score,
    "klue-ner": ner.score,
    "klue-re": re.score,
    "klue-dp": dp.score,
    "klue-mrc": mrc.score,
    "wos": wos.score,
}
NLI_LETTERS = {"E": "entailment", "C": "contradiction", "N": "neutral"}


OURS = Path(__file__).resolve().parents[2] / "fixtures" / "published_metrics.json"


@pytest.fixture(scope="module", params=["ours", "shared"])
def oracle(request: pytest.FixtureRequest, shared: Callable[[str], Path]) -> dict[str, Any]:
    path = os.environ.get("MALMOI_ORACLE") or (
        OURS if request.param == "ours" else shared("oracle/metrics_public.json")
    )
    return json.loads(Path(path).read_text("utf-8"))


def tree_of(sentence: dict[str, Any], side: str, names: list[str]) -> dict[str, Any]:
    return {"heads": sentence[f"head_{side}"], "types": [names[id_] for id_ in sentence[f"type_{side}"]]}


def rows_of(case: dict[str, Any], labels: dict[str, Any]) -> list[Row]:
    """The rows that a predictions file would hold for this case."""
    task, given = case["task"], case["input"]
    if task == "klue-dp":
        names = labels["klue-dp"]
        return [Row("", tree_of(s, "gold", names), tree_of(s, "pred", names)) for s in given["sentences"]]
    if task == "klue-mrc":
        return [Row(q["id"], {"answers": q["answers"], "question_type": q["question_type"]}, q["prediction"])
                for q in given["questions"]]  # fmt: skip
    if task == "wos":
        return [Row("", turn["gold"], turn["pred"]) for turn in given["turns"]]
    pairs = list(zip(given["gold"], given["pred"], strict=True))
    if task == "klue-ner":
        tag_of = {letter: tag for tag, letter in labels["klue-ner-codes"].items()}
        return [Row("", [tag_of[c] for c in gold], [tag_of[c] for c in predicted]) for gold, predicted in pairs]
    if task == "klue-nli":
        return [
            Row("", NLI_LETTERS[g], NLI_LETTERS[p])
            for g, p in zip("".join(given["gold"]), "".join(given["pred"]), strict=True)
        ]
    if task == "klue-sts":
        return [Row("", *pair) for pair in pairs]
    scores = (
        [[p / given["probs_scale"] for p in row] for row in given["probs"]] if "probs" in given else [None] * len(pairs)
    )
    return [Row("", labels[task][g], labels[task][p], s) for (g, p), s in zip(pairs, scores, strict=True)]


def test_label_orders_are_the_official_ones(oracle: dict[str, Any]) -> None:
    assert list(re.RE_LABELS) == oracle["labels"]["klue-re"]
    assert list(dp.DP_LABELS) == oracle["labels"]["klue-dp"]
    assert list(ner.NER_TAGS) == oracle["labels"]["klue-ner"]


@pytest.mark.parametrize("task", SCORES)
def test_every_published_value_is_met(oracle: dict[str, Any], task: str) -> None:
    compared = 0
    for case in (case for case in oracle["cases"] if case["task"] == task):
        ours = SCORES[task](rows_of(case, oracle["labels"]))
        for name, expected in case["expected"].items():
            if expected is None:  # undefined in the reference
                continue
            assert ours[name.split(".")[1]] == pytest.approx(expected, abs=case["tolerance"]), f"{case['id']} {name}"
            compared += 1
    assert compared


def test_each_mrc_question_has_the_published_score(oracle: dict[str, Any]) -> None:
    cases = [case for case in oracle["cases"] if case["task"] == "klue-mrc"]
    for case in cases:
        for row, expected in zip(rows_of(case, oracle["labels"]), case["input"]["per_question"], strict=True):
            assert mrc.score_question(row.gold, row.prediction) == pytest.approx(tuple(expected), abs=1e-9), row.guid
    assert cases
