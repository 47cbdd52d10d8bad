"""Agreement, bias and intervals of judges against scikit-learn, scipy and values counted by hand."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from finetune.generative.mt_bench.judge import (
    Paired,
    Scored,
    Verdict,
    agreement,
    agreement_of_pairs,
    mean_of_categories,
    summarize_pairs,
    summarize_scores,
    win_rate,
)  # fmt: skip
from finetune.metrics import kappa

SCORES = st.lists(st.tuples(st.integers(1, 10), st.integers(1, 10)), min_size=3, max_size=25)


def scored(values: list[float | None], lengths: list[int] | None = None) -> list[Scored]:
    return [
        Scored(f"q{place}", "math", 1, value, lengths[place] if lengths else 10) for place, value in enumerate(values)
    ]


@settings(max_examples=40)
@given(SCORES)
def test_quadratic_kappa_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    x, y = map(list, zip(*pairs, strict=True))
    found = kappa(pairs, lambda one, other: (one - other) ** 2)
    if found is not None:
        assert found == pytest.approx(cohen_kappa_score(x, y, weights="quadratic", labels=list(range(1, 11))))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("ab="), st.sampled_from("ab=")), min_size=2, max_size=20))
def test_kappa_of_verdicts_is_that_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    x, y = map(list, zip(*pairs, strict=True))
    found = kappa(pairs, operator.ne)
    if found is not None:
        assert found == pytest.approx(cohen_kappa_score(x, y))


def test_two_judges_agree_on_what_both_could_read() -> None:
    a, b = scored([7, 8, 3, None, 5]), scored([7, 6, 4, 9, None])
    found = agreement(a, b)
    assert found["n"] == 3 and found["exact"] == pytest.approx(1 / 3) and found["within_1"] == pytest.approx(2 / 3)
    assert found["spearman"] == pytest.approx(stats.spearmanr([7, 8, 3], [7, 6, 4])[0])
    # squared differences 0, 4, 1; over all pairs of 7, 8, 3 with 7, 6, 4
    chance = (0 + 1 + 9 + 1 + 4 + 16 + 16 + 9 + 1) / 9
    assert found["kappa"] == pytest.approx(1 - (5 / 3) / chance)
    assert agreement(scored([None]), scored([3]))["n"] == 0


def test_a_failed_verdict_is_counted_and_no_number() -> None:
    found = summarize_scores(scored([9, None, 7]))
    assert (found["score"], found["failed"], found["n"]) == (8, 1, 3)
    assert found["worst"] == pytest.approx((9 + 1 + 7) / 3)  # -1, as published, would give 5
    assert summarize_scores(scored([None, None]))["score"] is None


def test_scores_are_averaged_over_turns_then_questions_then_categories() -> None:
    rows = [
        Scored("1", "math", 1, 10, 5), Scored("1", "math", 2, 4, 5), Scored("2", "math", 1, 3, 5),
        Scored("3", "writing", 1, 9, 5),
    ]  # fmt: skip
    assert mean_of_categories(rows) == pytest.approx(((10 + 4) / 2 / 2 + 3 / 2 + 9) / 2)
    found = summarize_scores(rows)
    assert found["categories"] == {"math": 5, "writing": 9}
    assert found["turns"]["2"]["score"] == 4 and found["turns"]["2"]["interval"] is None  # of one question


def test_the_interval_over_questions_is_that_of_a_mean() -> None:
    values = [float(1 + place % 10) for place in range(60)]
    found = summarize_scores(scored(values))  # type: ignore[arg-type]
    assert found["error"] == pytest.approx(stats.sem(values), rel=0.08)
    low, high = found["interval"]
    assert low < 5.5 < high


def test_length_bias_is_the_spearman_correlation_of_score_and_characters() -> None:
    rows = scored([3, 5, 9, None, 9], [10, 300, 200, 999, 400])
    assert summarize_scores(rows)["length_spearman"] == pytest.approx(
        stats.spearmanr([3, 5, 9, 9], [10, 300, 200, 400])[0]
    )
    assert summarize_scores(scored([5, 5, 5], [1, 2, 3]))["length_spearman"] is None


def paired(*verdicts: tuple[Verdict | None, Verdict | None]) -> list[Paired]:
    return [Paired(f"q{place}", "math", 1, *pair) for place, pair in enumerate(verdicts)]


def test_the_order_decides_where_swapping_changes_the_verdict() -> None:
    pairs = paired(("a", "a"), ("a", "b"), ("b", "b"), ("tie", "tie"), ("a", "tie"), ("a", None))
    found = summarize_pairs(pairs)
    assert (found["wins"], found["ties"], found["losses"], found["failed"], found["n"]) == (1, 3, 1, 1, 6)
    assert found["order_decides"] == pytest.approx(2 / 5)
    # shown first and called better: a in "first" 3 times, b in "second" twice; shown second: b in "first" once, a in
    # "second" once
    assert found["first_wins"] == pytest.approx(5 / 7)
    assert win_rate(pairs) == pytest.approx((1 + 0.5 * 3) / 5)


def test_a_judge_that_always_takes_the_first_never_finds_a_winner() -> None:
    found = summarize_pairs(paired(*[("a", "b")] * 4))
    assert (found["wins"], found["losses"], found["order_decides"], found["first_wins"]) == (0, 0, 1, 1)
    assert found["win_rate"]["score"] == 0.5


def test_two_judges_agree_on_pairs_that_both_could_read() -> None:
    a = paired(("a", "a"), ("b", "b"), ("a", "b"), ("a", None))
    b = paired(("a", "a"), ("a", "a"), ("tie", "tie"), ("a", "a"))
    assert agreement_of_pairs(a, b) == {"n": 3, "exact": pytest.approx(2 / 3), "kappa": pytest.approx(0.5)}


def test_the_interval_of_a_win_rate_is_a_share() -> None:
    pairs = [Paired(f"q{place}", "math", 1, *verdicts) for place, verdicts in enumerate(["aa"] * 5 + ["bb"])]
    rate = summarize_pairs(pairs)["win_rate"]
    assert rate["score"] == pytest.approx(5 / 6)
    low, high = rate["interval"]
    assert 0.2 < low < 5 / 6 < high < 1.0
    rate = summarize_pairs([pair._replace(first="b", second="b") for pair in pairs[1:]] + pairs[:1])["win_rate"]
    assert 0 < rate["interval"][0] < 1 / 6
