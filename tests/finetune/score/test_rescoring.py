"""Metrics of resamples are those of the resampled rows scored again, to the last bit, for every task."""

from __future__ import annotations

import math

import numpy as np
import pytest

from finetune.examples import Row
from finetune.registry import TASKS
from finetune.score.bootstrap import FAST, bootstrap, draw, error_and_interval, rescore
from finetune.tasks.dp.metrics import DP_LABELS
from finetune.tasks.ner.metrics import NER_TAGS
from finetune.tasks.nli.task import NLI_LABELS
from finetune.tasks.re.metrics import RE_LABELS
from finetune.tasks.ynat.task import YNAT_LABELS

Rng = np.random.Generator


def some(rng: Rng, names: tuple[str, ...], count: int) -> list[str]:
    return [names[i] for i in rng.integers(len(names), size=count)]


def tree(rng: Rng, words: int) -> dict[str, list[object]]:
    return {"heads": rng.integers(words + 1, size=words).tolist(), "types": some(rng, DP_LABELS[:18], words)}


def row_of(name: str, rng: Rng, n: int) -> Row:
    guid, length = f"dialogue-{n}", int(rng.integers(1, 9))
    if name in ("ynat", "klue-nli"):
        return Row(guid, *some(rng, (YNAT_LABELS if name == "ynat" else NLI_LABELS)[:4], 2))
    if name == "klue-sts":
        return Row(guid, *rng.uniform(0, 5, size=2).tolist())
    if name == "klue-ner":  # every third as of protocol klue-baseline
        cut = None if n % 3 else {"characters": length - 1, "ends": some(rng, NER_TAGS, 2)}
        return Row(guid, some(rng, NER_TAGS, length), some(rng, NER_TAGS, length), cut)
    if name == "klue-re":  # few distinct scores, so that many are equal
        return Row(guid, *some(rng, RE_LABELS[:6], 2), (rng.integers(5, size=30) / 4).tolist())
    if name == "klue-dp":
        return Row(guid, tree(rng, length), tree(rng, length))
    if name == "klue-mrc":
        answers = some(rng, ("서울", "서울특별시", "2019년 10월"), length % 3)
        return Row(guid, {"answers": answers}, str(rng.choice(["", "서울", "10월"])))
    return Row(guid, *(some(rng, ("호텔-지역-서울", "호텔-이름-한강", "택시-도착지-역"), k) for k in (length % 3, 2)))


def same(found: float, expected: float) -> bool:
    return found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize("name", TASKS)
def test_metrics_of_resamples_are_those_of_their_rows_scored_again(name: str) -> None:
    rng, task = np.random.default_rng(1), TASKS[name]
    rows = [row_of(name, rng, n) for n in range(41)]
    groups = [str(n // 2 if n < 20 else n) for n in range(41)]
    resamples = [*draw(groups, 58, seed=1), np.arange(41), np.array([40, 40])]  # more than are done at once
    found = rescore(task, rows, iter(resamples))
    for number, drawn in enumerate(resamples):
        expected = task.score([rows[i] for i in drawn])
        assert list(found) == list(expected)
        assert [key for key, value in expected.items() if not same(found[key][number], value)] == []
    assert name in FAST


@pytest.mark.parametrize("name", TASKS)
def test_intervals_are_those_of_resampled_examples_scored_again(name: str) -> None:
    """The obvious way: a list of rows for each group, drawn by number, each resample scored as a file of its own."""
    rng, task = np.random.default_rng(2), TASKS[name]
    rows = [row_of(name, rng, n) for n in range(30)]
    groups = [f"passage {n % 20}" for n in range(30)]
    members = [[row for row, own in zip(rows, groups, strict=True) if own == group] for group in dict.fromkeys(groups)]
    generator, whole = np.random.default_rng(7), task.score(rows)
    scores = [
        task.score([row for group in generator.integers(20, size=20) for row in members[group]]) for _ in range(25)
    ]
    for metric, interval in bootstrap(task, rows, groups, 25, seed=7).items():
        expected = error_and_interval(whole[metric], [one[metric] for one in scores], 20, metric)[1]
        assert interval == expected, metric


def test_a_resample_holds_whole_groups_as_often_as_they_are_drawn() -> None:
    groups = ["b", "a", "b", "c", "a", "b"]
    for drawn in draw(groups, 50, seed=3):
        units = np.concatenate([np.flatnonzero(np.array(groups) == name) for name in "bac"])
        assert set(drawn.tolist()) <= set(units.tolist())
        text = "".join(map(str, drawn.tolist()))
        assert not text.replace("025", "").replace("14", "").replace("3", "")
        assert text.count("025") + text.count("14") + text.count("3") == 3


def test_nothing_drawn_is_no_metric() -> None:
    assert rescore(TASKS["klue-nli"], [Row("1", "neutral", "neutral")], []) == {}


def test_relations_without_scores_have_no_area_and_a_constant_no_correlation() -> None:
    relations = [Row("1", RE_LABELS[1], RE_LABELS[1]), Row("2", RE_LABELS[2], RE_LABELS[1])]
    found = rescore(TASKS["klue-re"], relations, [np.arange(2)])
    assert found["micro_f1"][0] == 50.0 and np.isnan(found["auprc"][0])
    pairs = [Row(str(n), 1.0 + n, 2.5) for n in range(3)]
    assert np.isnan(rescore(TASKS["klue-sts"], pairs, [np.arange(3)])["pearsonr"][0])


def test_sentences_without_entities_have_no_entity_f1() -> None:
    rows = [Row("1", ["O"], ["O"]), Row("2", ["B-PS"], ["B-PS"])]
    found = rescore(TASKS["klue-ner"], rows, [np.array([0]), np.array([1])])
    assert np.isnan(found["entity_macro_f1"][0]) and found["entity_macro_f1"][1] == 100.0
