"""Metrics of weighted examples are those of the examples repeated, for every task."""

from __future__ import annotations

import numpy as np
import pytest

from finetune.examples import Row
from finetune.registry import TASKS
from finetune.score.weighted import FAST, weigh
from finetune.tasks.dp.metrics import DP_LABELS
from finetune.tasks.labels import NLI_LABELS, YNAT_LABELS
from finetune.tasks.ner.metrics import NER_TAGS
from finetune.tasks.re.metrics import RE_LABELS

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


@pytest.mark.parametrize("name", TASKS)
def test_weighted_metrics_are_those_of_repeated_examples(name: str) -> None:
    rng, task = np.random.default_rng(1), TASKS[name]
    rows = [row_of(name, rng, n) for n in range(25)]
    weights_BN = rng.integers(3, size=(60, 25))  # more resamples than are done at once
    weights_BN[0], weights_BN[1, :24] = 1, 0  # all of them once, the last alone
    weights_BN[1, 24] = 2
    found = weigh(task, rows)(weights_BN)
    for number, weights in enumerate(weights_BN.tolist()):
        expected = task.score([row for row, count in zip(rows, weights, strict=True) for _ in range(count)])
        assert {key: values[number] for key, values in found.items()} == pytest.approx(expected, nan_ok=True, abs=1e-9)
    assert name in FAST


def test_relations_without_scores_have_no_area_and_a_constant_no_correlation() -> None:
    relations = [Row("1", RE_LABELS[1], RE_LABELS[1]), Row("2", RE_LABELS[2], RE_LABELS[1])]
    found = weigh(TASKS["klue-re"], relations)(np.ones((1, 2)))
    assert found["micro_f1"][0] == 50.0 and np.isnan(found["auprc"][0])
    pairs = [Row(str(n), 1.0 + n, 2.5) for n in range(3)]
    assert np.isnan(weigh(TASKS["klue-sts"], pairs)(np.ones((1, 3)))["pearsonr"][0])


def test_sentences_without_entities_have_no_entity_f1() -> None:
    found = weigh(TASKS["klue-ner"], [Row("1", ["O"], ["O"]), Row("2", ["B-PS"], ["B-PS"])])(np.array([[1, 0], [0, 1]]))
    assert np.isnan(found["entity_macro_f1"][0]) and found["entity_macro_f1"][1] == 100.0
