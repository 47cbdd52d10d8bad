"""Results of models compared: what is paired, what is refused, what is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus.documents.errors import BadInput
from finetune.score.compare import Tested as Comparison
from finetune.score.compare import choose, compare, find_trained, load, pair_up, trained_of_file
from finetune.score.significance import Difference, Estimate
from tests.finetune.score.simulated import MAKERS, Benchmark, Seeds

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the results of a model into a run's folder; ``more`` goes into each scores.json."""

    def results(run: str, task: str, seeds: Seeds, model: str = "model", settings: str = "", **more: Any) -> Path:
        for seed, rows in seeds.items():
            folder = tmp_path / run / "finetune" / task / model / settings / f"seed-{seed}"
            folder.mkdir(parents=True)
            lines = (json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows)
            (folder / "predictions.jsonl").write_text("".join(lines), "utf-8")
            said = {"task": task, "model": model, "settings": settings, "seed": seed, "protocol": "malmoi", **more}
            (folder / "scores.json").write_text(json.dumps({"split": "dev", "recipe": {}, **said}), "utf-8")
        return tmp_path / run

    return results


def benchmark(examples: int = 200) -> Benchmark:
    return Benchmark(np.random.default_rng(3), examples)


def test_a_real_difference_is_distinguished_from_one_that_is_not_shown(write: Write) -> None:
    for task, maker in (("ynat", MAKERS["ynat"]), ("klue-ner", MAKERS["klue-ner"])):
        own = benchmark()
        better = 2.0 if task == "ynat" else 0.8
        write("one", task, maker(own, 5))
        write("two", task, maker(own, 5, better), model="other")
    pairs = pair_up(find_trained(write("one", "wos", {})), find_trained(write("two", "wos", {})))
    topic, entity, character = compare(pairs, samples=200, shuffles=200)
    assert [topic.metric, entity.metric, character.metric] == [
        "macro_f1", "entity_macro_f1", "character_macro_f1"]  # fmt: skip
    assert topic.is_real and topic.verdict() == "real: b is better"
    assert topic.difference is not None and topic.difference.interval[0] > 0
    assert not entity.is_real and entity.verdict().startswith("not shown; ")
    assert (topic.family, character.family) == (2, 1)  # headlines are corrected together, second metrics, too
    assert topic.p is not None and topic.p_holm == pytest.approx(2 * topic.p)
    assert json.loads(json.dumps(topic.as_json()))["verdict"] == topic.verdict()


def test_one_seed_each_is_a_statement_about_these_two_trainings(write: Write) -> None:
    own = benchmark()
    pairs = pair_up(
        find_trained(write("one", "ynat", own.labels(1))), find_trained(write("two", "ynat", own.labels(1, 2.0)))
    )
    (found,) = compare(pairs, samples=200, shuffles=400)
    assert found.p == found.p_examples == pytest.approx(1 / 401)
    assert found.verdict() == "real for these two trainings: b is better"
    assert found.seeds_needed() is None


def test_the_order_of_examples_in_a_file_changes_nothing(write: Write) -> None:
    own = benchmark(60)
    one, two = own.labels(2), own.labels(2)
    first = find_trained(write("one", "ynat", one))
    found = [
        compare(pair_up(first, find_trained(write(name, "ynat", seeds))), samples=50, shuffles=50)
        for name, seeds in (("two", two), ("turned", {seed: rows[::-1] for seed, rows in two.items()}))
    ]
    assert found[0][0].as_json() == found[1][0].as_json()


def test_within_one_run_all_models_are_compared_with_the_first(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    own = benchmark(20)
    for model, settings, more in (
        ("a-model", "", {}), ("model", "", {}), ("model", "slow", {}), ("model", "published", {"protocol": "other"})
    ):  # fmt: skip
        run = write("run", "ynat", own.labels(1), model=model, settings=settings, **more)
    trained = find_trained(run)
    assert [(one.name, other.name) for one, other in pair_up(trained, None)] == [
        ("model", "model, slow"), ("model", "a-model")]  # fmt: skip
    assert "model, published is left out" in caplog.text
    assert [(one.name, other.name) for one, other in pair_up(trained, None, "slow", "a-model")] == [
        ("model, slow", "a-model")]  # fmt: skip
    assert [one.name for one in choose(trained, "model")] == ["model"]
    with pytest.raises(
        BadInput, match="no results of none; there are results of model; model, published; model, slow; a-model"
    ):
        choose(trained, "none")
    with pytest.raises(BadInput, match="another protocol"):
        compare(pair_up(trained, None, "model", "published"))


def test_other_examples_golds_splits_and_mixed_seeds_are_refused(write: Write) -> None:
    own = benchmark(20)
    one = find_trained(write("one", "ynat", own.labels(1)))

    def refused(name: str, seeds: Seeds, says: str, **more: Any) -> None:
        with pytest.raises(BadInput, match=says):
            compare(pair_up(one, find_trained(write(name, "ynat", seeds, **more))))

    refused("fewer", {1: own.labels(1)[1][:-1]}, r"other examples \(20 and 19, 19 of them the same\)")
    refused("golds", {1: [row._replace(gold="정치") for row in own.labels(1)[1]]}, "other golds for")
    refused("split", own.labels(1), "another split", split="20% of dev")
    mixed = write("mixed", "ynat", own.labels(1), encoder="old")
    with pytest.raises(BadInput, match="differ in encoder"):
        find_trained(write("mixed", "ynat", own.labels(1, first=2), encoder="new"))
    (mixed / "finetune/ynat/model/seed-1/scores.json").write_text("[]")
    with pytest.raises(BadInput, match=r"not the scores\.json of a result"):
        find_trained(mixed)
    with pytest.raises(BadInput, match="no results"):
        find_trained(mixed / "finetune/ynat/model/none")


def test_models_of_two_runs_are_matched_by_name_or_chosen(write: Write) -> None:
    own = benchmark(20)
    for run in ("one", "two"):
        for model in ("large", "small"):
            write(run, "ynat", own.labels(1), model=f"{model}-{run}")
    one, two = (find_trained(write(run, "ynat", {})) for run in ("one", "two"))
    with pytest.raises(BadInput, match="choose with --a and --b"):
        pair_up(one, two)
    (pair,) = pair_up(one, two, "large-one", "small-two")
    assert (pair[0].name, pair[1].name) == ("large-one", "small-two")
    with pytest.raises(BadInput, match="no task in common"):
        pair_up(one, find_trained(write("three", "klue-ner", own.entities(1))))


def test_predictions_files_are_compared_and_broken_ones_explained(write: Write, tmp_path: Path) -> None:
    own = benchmark(20)
    files = [write(run, "ynat", own.labels(1)) / "finetune/ynat/model/seed-1/predictions.jsonl" for run in "xy"]
    one, two = ([trained_of_file(path, "ynat")] for path in files)
    (found,) = compare(pair_up(one, two), samples=20, shuffles=20)
    assert (found.n, found.groups) == (20, 20)
    files[1].write_text('{"guid": "1", "gold": "정치"}\n', "utf-8")
    with pytest.raises(BadInput, match="line 1: expected a JSON object with"):
        load(two[0])
    files[1].unlink()
    with pytest.raises(BadInput, match="no such file"):
        load(two[0])


@pytest.mark.parametrize(
    ("said", "is_selected"),
    [
        ({}, False),
        ({"selected": {"by": "macro_f1"}}, True),
        ({"searched_on": "dev"}, True),
        ({"searched_on": "train"}, False),
    ],
)
def test_what_was_chosen_on_the_scored_examples_is_known(write: Write, said: dict[str, Any], is_selected: bool) -> None:
    (one,) = find_trained(write("run", "ynat", benchmark(3).labels(1), **said))
    assert one.is_selected == is_selected


def test_turns_of_a_dialogue_are_one_unit(write: Write) -> None:
    rows = [row._replace(guid=f"wos-{n // 5}-{n % 5}", gold=["택시-도착지-역"], prediction=["택시-도착지-역"][: n % 2])
            for n, row in enumerate(benchmark(20).labels(1)[1])]  # fmt: skip
    one, two = (find_trained(write(run, "wos", {1: rows})) for run in ("one", "two"))
    found = compare(pair_up(one, two), samples=20, shuffles=20)[0]
    assert (found.n, found.groups) == (20, 4)
    assert found.verdict() == "not shown; no difference at all"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.0, "not shown; more seeds do not help, 7.8 times the examples would"),
        (0.1, "not shown; neither more seeds nor 100 times the examples would show it"),
    ],
)
def test_a_difference_next_to_nothing_asks_for_no_number_of_examples(value: float, said: str) -> None:
    means = Estimate(60.0, 1.0, (58.0, 62.0), 5)
    difference = Difference(value, (-2.0, 3.0), 0.8, "", 0.01, 1.0, is_paired=True, groups=1000)
    tested = Comparison("ynat", "macro_f1", 0, ("a", "b"), (means, means), 1000, 1000, difference, 0.8, 0.8, 0.8)
    assert tested.verdict() == said


def compared(value: float, p: float | None, seed_variance: float | None, examples: float, family: int) -> Comparison:
    means = Estimate(60.0, 1.0, (58.0, 62.0), 5)
    difference = Difference(value, (-2.0, 3.0), p, "t", seed_variance, examples, is_paired=True, groups=1000)
    return Comparison("ynat", "macro_f1", 0, ("a", "b"), (means, means), 1000, 1000, difference, p, p, p, family)


@pytest.mark.parametrize(
    ("value", "p", "seed_variance", "examples", "family", "said"),
    [
        (1.0, 0.05, 0.1, 0.1, 1, "real: b is better"),
        (-1.0, 0.01, 0.1, 0.1, 1, "real: a is better"),
        (1.0, 0.05, None, 0.1, 1, "real for these two trainings: b is better"),
        (1.0, 0.051, None, 0.1, 1, "not shown; train both with 3 or more seeds"),
        (0.0, 1.0, None, 0.1, 1, "not shown; no difference at all"),
        (1.0, None, 0.1, 0.1, 1, "undefined"),
        (1.0, 0.2, 1.0, 0.0, 1, "not shown; 10 seeds would be needed"),
        (1.0, 0.2, 1.0, 0.0, 8, "not shown; 17 seeds would be needed"),
        (0.3, 0.2, 1.0, 0.0, 1, "not shown; 90 seeds would be needed"),
        (0.05, 0.2, 1.0, 0.0, 1, "not shown; more than 1,000 seeds would be needed"),
        (1.0, 0.2, 0.1, 5.0, 1, "not shown; more seeds do not help, 39 times the examples would"),
        (1.0, 0.2, 1.0, 0.2, 1, "not shown; 20 seeds would show it if the difference stays the same"),
    ],
)
def test_a_verdict_says_what_would_show_the_difference(
    value: float, p: float | None, seed_variance: float | None, examples: float, family: int, said: str
) -> None:
    tested = compared(value, p, seed_variance, examples, family)
    assert tested.verdict() == said == tested.as_json()["verdict"]
    assert tested.is_real == said.startswith("real") == tested.as_json()["is_real"]
    assert tested.seeds_needed() == tested.difference.seeds_needed(0.05 / family)


def test_where_a_score_is_undefined_nothing_is_tested() -> None:
    undefined = Estimate(None, None, None, 5)
    tested = Comparison("ynat", "macro_f1", 0, ("a", "b"), (undefined, undefined), 9, 9, None, None, None)
    assert (tested.is_real, tested.test, tested.seeds_needed(), tested.verdict()) == (False, "", None, "undefined")
