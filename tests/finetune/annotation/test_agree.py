"""Agreement: alpha by its definition and by a published example, KLUE's figures, exclusion of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

pytest.importorskip("krippendorff")

from finetune.annotation.agree import agree, alpha, author_shares, exclude, mean_kappa, summary
from finetune.annotation.config import AgreeRules
from finetune.annotation.folder import Vote, read_gold
from finetune.annotation.take_in import READERS, take_in
from tests.finetune.annotation.folders import add_votes, make_folder, topics

NO_EXCLUSION = {"min_pearson": -1, "min_alpha": -1}


def alpha_by_definition(units: Sequence[Sequence[Any]], difference: Callable[[Any, Any], float]) -> float:
    """One minus observed over expected disagreement, over all ordered pairs of votes (Krippendorff 2011)."""
    rated = [unit for unit in units if len(unit) > 1]
    every = [value for unit in rated for value in unit]
    inside = sum(difference(a, b) / (len(unit) - 1) for unit in rated for a, b in permutations(unit, 2))
    across = sum(difference(a, b) for a, b in permutations(every, 2)) / (len(every) - 1)
    return 1 - inside / across


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=2, max_size=20))
def test_alpha_equals_its_definition(units: list[list[int]]) -> None:
    if len({value for unit in units if len(unit) > 1 for value in unit}) < 2:
        assert alpha(units, "nominal") is None
        return
    nominal = alpha_by_definition(units, lambda a, b: float(a != b))
    interval = alpha_by_definition(units, lambda a, b: float((a - b) ** 2))
    assert alpha(units, "nominal") == pytest.approx(nominal, abs=1e-9)
    assert alpha(units, "interval") == pytest.approx(interval, abs=1e-9)


def test_alpha_of_the_example_of_krippendorff_2011() -> None:
    columns = [[1, 1, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4], [4, 4, 4, 4]]
    columns += [[1, 1, 2, 1], [2, 2, 2, 2], [5, 5, 5], [1, 1], [3]]
    assert alpha(columns, "nominal") == pytest.approx(0.743, abs=5e-4)
    assert alpha(columns, "interval") == pytest.approx(0.849, abs=5e-4)


@given(st.lists(st.tuples(*[st.sampled_from("abc")] * 3), min_size=10, max_size=30))
def test_kappa_is_the_mean_of_those_of_scikit_learn(rows: list[tuple[str, str, str]]) -> None:
    found = mean_kappa({n: list(zip("123", row, strict=True)) for n, row in enumerate(rows)})
    pairs = [(x, y) for x, y in combinations(zip(*rows, strict=True), 2) if len({*x, *y}) > 1]
    theirs = [cohen_kappa_score(*pair) for pair in pairs]
    assert found == (pytest.approx(fmean(theirs)) if theirs else None)


def test_klue_sts_agrees_as_measured(shared: Callable[[str], Path], tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, task="sts", agree=NO_EXCLUSION)
    file = shared("data/klue/official/klue-sts-v1.1/klue-sts-v1.1_dev.json")
    counts = take_in(benchmark, tmp_path, [file], READERS["klue"])
    assert (counts["votes"], counts["items"], counts["workers"]) == (3262, 519, 17)
    result = agree(benchmark, tmp_path)
    assert (round(result["alpha interval"], 3), round(result["alpha nominal"], 3)) == (0.748, 0.271)
    assert (result["fewest votes"], result["most votes"], round(result["largest std"], 2)) == (5, 7, 1.75)
    means = {name: round(part["mean"], 2) for name, part in result["by source"].items()}  # Figure 1
    assert (means["airbnb rtt"], means["airbnb sampled"]) == (3.95, 1.45)
    assert (means["policy rtt"], means["policy sampled"]) == (3.59, 1.02)


def test_klue_nli_dev_has_only_gold_labels_of_its_authors(shared: Callable[[str], Path], tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, task="nli")
    file = shared("data/klue/official/klue-nli-v1.1/klue-nli-v1.1_dev.json.zst")
    take_in(benchmark, tmp_path, [file], READERS["klue"])
    result = agree(benchmark, tmp_path)
    assert result["author"]["gold = author"] == 100
    assert result["author"]["no gold"] == 0
    assert len(read_gold(tmp_path)) == 3000


@pytest.mark.slow
def test_klue_nli_agrees_as_in_table_5(shared: Callable[[str], Path], tmp_path: Path) -> None:
    benchmark = make_folder(tmp_path, task="nli")
    names = [f"data/klue/official/klue-nli-v1.1/klue-nli-v1.1_{split}.json.zst" for split in ("train", "dev")]
    take_in(benchmark, tmp_path, [shared(name) for name in names], READERS["klue"])
    author = agree(benchmark, tmp_path)["author"]
    assert {name: round(share, 2) for name, share in author.items()} == {
        "unanimous gold": 76.52, "label = gold": 93.87, "label = author": 92.86, "gold = author": 96.93,
        "gold is not author": 3.07, "no gold": 0.0,
    }  # fmt: skip


def test_one_bad_worker_is_excluded_and_good_ones_are_not() -> None:
    units = {n: [("a", n % 6), ("b", n % 6), ("c", min(5, n % 6 + n % 2)), ("bad", 5 - n % 6)] for n in range(60)}
    workers, excluded = exclude(units, True, AgreeRules(), {})
    assert list(excluded) == ["bad"]
    assert len(workers) == 4 and fmean(worker.votes for worker in workers) == 60


def test_unknown_workers_are_only_compared_with() -> None:
    units = {n: [("a", n % 2), ("", n % 2), ("", 1)] for n in range(12)}
    workers, _ = exclude(units, False, AgreeRules(), {})
    assert [(worker.worker, worker.votes, worker.shared) for worker in workers] == [("a", 12, 12)]
    assert exclude({n: [("a", 1)] for n in range(12)}, False, AgreeRules(), {}) == ([], {})


def test_a_worker_who_fails_the_pilot_is_excluded(tmp_path: Path) -> None:
    items = [item.__class__(item.id, "", item.texts, (), {"expected": "a"}) for item in topics(12)]
    benchmark = make_folder(tmp_path, items, task="tc", labels=["a", "b"], agree=NO_EXCLUSION)
    rows = [{"item": i.id, "worker": w, "value": "b" if w == "x" else "a"} for i in items for w in ("x", "y", "z")]
    add_votes(benchmark, tmp_path, rows)
    reasons = agree(benchmark, tmp_path)["excluded"]
    assert [*reasons.values()] == ["pilot 0.00 < 0.8"]
    assert not {"x", "y", "z"} & reasons.keys()  # ids are hashed


def test_units_are_unanimous_or_have_a_majority_or_none(tmp_path: Path) -> None:
    values = {"i0": ["a", "a", "a"], "i1": ["a", "a", "b"], "i2": ["a", "b"], "i3": ["a", "b", "c"]}
    votes = {
        item: [Vote(item, f"w{n}", value, "author" if n == 0 else "worker") for n, value in enumerate(given)]
        for item, given in values.items()
    }
    found = summary("label", votes)
    assert (found["unanimous"], found["majority"], found["no majority"]) == (25, 25, 50)
    benchmark = make_folder(tmp_path, topics(4), task="tc", labels=["a", "b", "c"])
    shares = author_shares(benchmark, votes)
    assert shares is not None
    assert (shares["gold = author"], shares["gold is not author"], shares["no gold"]) == (50, 0, 50)
