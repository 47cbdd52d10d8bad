"""Gold from votes: the rules of the tasks, reasons of drops, adjudicators, and simulated workers of known error."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("krippendorff")

from corpus.documents.errors import BadInput
from finetune.annotation.agree import agree, exclude, units_of
from finetune.annotation.config import AgreeRules, load_benchmark
from finetune.annotation.folder import Item, Vote, read_gold
from finetune.annotation.settle import ADJUDICATE, Undecided, common_answers, common_spans, majority, mean_score, settle
from finetune.annotation.take_in import READERS, take_in
from tests.finetune.annotation.folders import add_votes, make_folder, topics

SEEDS = range(1, 21)
LABELS = ("정치", "경제", "사회", "문화")


def votes_for(values: dict[str, list[Any]], **further: Any) -> list[dict[str, Any]]:
    return [
        {"item": item, "worker": f"w{number}", "value": value, **further}
        for item, given in values.items()
        for number, value in enumerate(given)
    ]


def test_every_item_has_gold_or_a_reason(tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, topics(6), task="tc", labels=["a", "b", "c"])
    rows = votes_for(
        {"i0": ["a", "a", "b"], "i1": ["a", "b", "c"], "i2": ["a"], "i3": ["b", "b"], "i4": ["c", "c", "c"]}
    )
    add_votes(benchmark, tmp_path, [*rows, {"item": "i4", "worker": "w3", "value": "", "reports": "pii"}])
    counts = settle(benchmark, tmp_path)
    assert counts["dropped"] == {"no majority": 1, "no votes": 1, "reported: pii": 1, "too few votes": 1}
    assert counts["gold"] + sum(counts["dropped"].values()) == 6
    assert {item: gold.value for item, gold in read_gold(tmp_path).items()} == {"i0": "a", "i3": "b"}
    waiting = [json.loads(line)["item"] for line in (tmp_path / ADJUDICATE).read_text("utf-8").splitlines()]
    assert waiting == ["i1", "i4"]
    add_votes(benchmark, tmp_path, [{"item": "i1", "worker": "editor", "value": "c", "role": "adjudicator"}])
    settle(benchmark, tmp_path)
    assert read_gold(tmp_path)["i1"].value == "c"


@pytest.mark.parametrize(
    ("values", "gold"),
    [
        (["a", "a", "b"], "a"),
        (["a", "a", "a", "b", "c"], "a"),
        (["a", "a", "b", "b"], None),
        (["a", "a", "b", "c", "d"], None),
    ],
)
def test_a_majority_is_more_than_half(values: list[str], gold: str | None) -> None:
    if gold is None:
        with pytest.raises(Undecided):
            majority(values)
    else:
        assert majority(values) == gold


def test_scores_that_differ_too_much_have_no_mean() -> None:
    assert mean_score([0, 4, 0, 4, 2], 2.0) == 2.0
    with pytest.raises(Undecided):
        mean_score([0, 5, 0, 5, 0], 2.0)


def test_spans_and_answers_of_several_workers() -> None:
    votes = [[[0, 2, "PS"], [4, 6, "LC"]], [[0, 2, "PS"]], [[0, 2, "OG"], [4, 6, "LC"]]]
    assert common_spans(votes) == [[0, 2, "PS"], [4, 6, "LC"]]
    assert common_spans([[[0, 2, "PS"], [0, 4, "PS"]]]) == [[0, 4, "PS"]]
    assert common_spans([[], []]) == []
    assert common_answers([[[3, 5]], [[3, 6]], [[3, 5]], []]) == [[3, 5], [3, 6]]
    assert common_answers([[], [], [[1, 2]]]) == []


def test_klue_sts_labels_are_the_means_of_their_votes(shared: Callable[[str], Path], tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, task="sts")
    take_in(benchmark, tmp_path, [shared("data/klue/official/klue-sts-v1.1/klue-sts-v1.1_dev.json")], READERS["klue"])
    released = {item: gold.value for item, gold in read_gold(tmp_path).items()}
    assert settle(benchmark, tmp_path)["dropped"] == {}
    assert {item: gold.value for item, gold in read_gold(tmp_path).items()} == released
    assert len(set(released.values())) == 51
    assert {min(c := Counter(released.values()).values()), max(c)} == {6, 11}


def simulated(seed: int, count: int = 300) -> tuple[list[Item], dict[str, str], list[dict[str, Any]]]:
    """20 workers of whom 15 are right in 65 to 95 %, and five are bad: random, always one label, inverted."""
    rng = Random(seed)
    items = topics(count)
    truth = {item.id: rng.choice(LABELS) for item in items}
    skill = {f"w{n}": rng.uniform(0.65, 0.95) for n in range(15)}
    rows = []
    for item in items:
        right = truth[item.id]
        for worker in rng.sample([*skill, "random1", "random2", "one1", "one2", "inverted"], 5):
            wrong = rng.choice([label for label in LABELS if label != right])
            said = {
                "random1": rng.choice(LABELS), "random2": rng.choice(LABELS), "one1": LABELS[0], "one2": LABELS[1],
                "inverted": LABELS[(LABELS.index(right) + 1) % 4],
            }.get(worker) or (right if rng.random() < skill[worker] else wrong)  # fmt: skip
            rows.append({"item": item.id, "worker": worker, "value": said})
    return items, truth, rows


def test_exclusion_removes_bad_workers_and_no_good_one() -> None:
    perfect = 0
    for seed in SEEDS:
        _, _, rows = simulated(seed)
        votes: dict[str, list[Vote]] = {}
        for row in rows:
            votes.setdefault(row["item"], []).append(Vote(row["item"], row["worker"], row["value"]))
        _, excluded = exclude(units_of("label", votes), False, AgreeRules(), {})
        perfect += set(excluded) == {"random1", "random2", "one1", "one2", "inverted"}
    assert perfect >= 0.95 * len(SEEDS)


@pytest.mark.parametrize("rule", ["majority", "dawid-skene", pytest.param("mace", marks=pytest.mark.slow)])
def test_gold_of_simulated_workers_is_better_than_the_majority_of_all(rule: str, tmp_path: Path) -> None:
    pytest.importorskip("crowdkit")
    better = []
    for seed in (1, 2):
        items, truth, rows = simulated(seed, 100)
        folder = tmp_path / str(seed)
        settings = {"task": "tc", "labels": [*LABELS], "votes": 5}
        benchmark = make_folder(folder, items, **settings, settle={"min_votes": 1})
        add_votes(benchmark, folder, rows)
        settle(benchmark, folder)  # before agree: all workers
        alone = sum(gold.value == truth[item] for item, gold in read_gold(folder).items())
        agree(benchmark, folder)
        benchmark = make_folder(folder, **settings, settle={"min_votes": 1, "rule": rule})
        settle(benchmark, folder)
        better.append(sum(gold.value == truth[item] for item, gold in read_gold(folder).items()) > alone)
    assert all(better)


def test_a_rule_that_cannot_settle_the_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"settle\.rule: mean cannot settle task tc"):
        make_folder(tmp_path, task="tc", labels=["a"], settle={"rule": "mean"})
    assert load_benchmark(make_and_return(tmp_path)).min_votes == 5


def make_and_return(folder: Path) -> Path:
    make_folder(folder, task="sts")
    return folder


def test_inferred_gold_knows_workers_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aggregation = pytest.importorskip("crowdkit.aggregation")
    frames = []

    class Stub:
        def fit_predict(self, frame: Any) -> Any:
            frames.append(frame)
            return frame.groupby("task")["label"].first()

    monkeypatch.setattr(aggregation, "DawidSkene", Stub)
    benchmark = make_folder(tmp_path, topics(2), task="tc", labels=["a", "b"], settle={"rule": "dawid-skene"})
    rows = votes_for({"i0": ["a", "b"], "i1": ["a", "a"]})
    add_votes(benchmark, tmp_path, [*rows, {"item": "i0", "worker": "", "value": "a", "role": "author"}])
    settle(benchmark, tmp_path)
    assert len(set(frames[0]["worker"])) == 3 and "author" in set(frames[0]["worker"])


def test_spans_that_touch_do_not_overlap() -> None:
    assert common_spans([[[0, 2, "a"], [2, 4, "b"], [4, 5, "a"]]] * 3) == [[0, 2, "a"], [2, 4, "b"], [4, 5, "a"]]
    assert common_spans([[[0, 3, "a"], [2, 4, "b"]]] * 3) == [[0, 3, "a"]]
