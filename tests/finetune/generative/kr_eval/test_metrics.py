"""Metrics of llm-kr-eval files against scikit-learn, scipy and sacrebleu; unparsed answers; intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import f1_score

from finetune.generative.kr_eval.metrics import (
    METRICS,
    bleu_of_counts,
    count_ngrams,
    measure,
    multiset_f1,
    parse_number,
)

CLASSES = ["참", "거짓", "모름"]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(CLASSES), st.sampled_from([*CLASSES, "", "글쎄요"])), min_size=2, max_size=30)
)
@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_f1_over_gold_classes_is_that_of_scikit_learn(average: str, pairs: list[tuple[str, str]]) -> None:
    golds, answers = map(list, zip(*pairs, strict=True))
    labels = sorted(set(golds))
    expected = f1_score(golds, answers, labels=labels, average=average, zero_division=0)
    assert measure(f"{average}_f1", golds, answers, samples=0)["value"] == pytest.approx(100 * expected)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=3, max_size=20))
def test_correlations_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs).T / 2
    if len(set(x)) == 1 or len(set(y)) == 1:
        golds, answers = [str(v) for v in x], [str(v) for v in y]
        assert measure("pearson", golds, answers, samples=0)["value"] is None
        return
    for metric, expected in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        found = measure(metric, [str(v) for v in x], [str(v) for v in y], samples=0)["value"]
        assert found == pytest.approx(100 * expected(x, y)[0], abs=1e-6)


def test_an_answer_without_a_number_counts_as_the_mean_of_the_golds() -> None:
    golds, answers = ["0", "2", "4", "6"], ["0", "2", "4", "모르겠습니다"]
    expected = 100 * stats.pearsonr([0, 2, 4, 6], [0, 2, 4, 3])[0]
    assert measure("pearson", golds, answers, samples=0)["value"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [("3.5", 3.5), ("점수: 3.5점", 3.5), ("-1", -1.0), ("5점 만점에 3.2점", None), ("3.5/5.0", None), ("없음", None),
     ("3.5.1", None)],
)  # fmt: skip
def test_only_an_answer_with_one_number_is_a_number(text: str, value: float | None) -> None:
    assert parse_number(text) == value


def test_corpus_bleu_from_counts_is_that_of_sacrebleu() -> None:
    from sacrebleu.metrics import BLEU

    from corpus.documents.mecab import split_morphemes

    golds = ["아이가 마당에서 공을 던진다.", "할머니가 시장에서 사과를 산다.", "비가 온다"]
    answers = ["마당에서 아이가 공을 던졌다.", "할머니가 시장에 간다.", "네"]
    cut = [[" ".join(split_morphemes(text)) for text in side] for side in (answers, golds)]
    expected = BLEU(tokenize="none", force=True, effective_order=True).corpus_score(cut[0], [cut[1]]).score
    counts = sum(count_ngrams(answer, gold) for answer, gold in zip(answers, golds, strict=True))
    assert bleu_of_counts(counts) == pytest.approx(expected)
    assert measure("bleu", golds, answers, samples=0)["value"] == pytest.approx(expected)


def test_bleu_of_short_golds_answered_with_themselves_is_100_and_of_nothing_0() -> None:
    assert measure("bleu", ["네", "사과"], ["네", "사과"], samples=0)["value"] == 100
    assert measure("bleu", ["네", "사과"], ["", ""], samples=0)["value"] == 0


def test_multisets_count_what_repeats() -> None:
    assert multiset_f1("가가나", "가나나") == pytest.approx(2 / 3)
    assert multiset_f1("", "") == 1
    assert multiset_f1("", "가") == multiset_f1("가", "") == 0


@pytest.mark.parametrize("metric", METRICS)
def test_gold_answers_score_100_and_their_interval_ends_there(metric: str) -> None:
    golds = ["1", "2", "4", "3", "1", "2", "4", "3", "1", "2", "4", "3"]
    found = measure(metric, golds, golds)
    assert found["value"] == pytest.approx(100)
    low, high = found["interval"]
    assert 60 < low < 100 and high == pytest.approx(100)  # of 12 answers


def test_the_interval_of_exact_match_is_that_of_a_share() -> None:
    golds, answers = ["예"] * 100, ["예"] * 70 + ["아니오"] * 30
    found = measure("exact_match", golds, answers)
    assert found["value"] == pytest.approx(70)
    assert found["error"] == pytest.approx(100 * math.sqrt(0.7 * 0.3 / 100), rel=0.1)  # 4.6 points: ±9 with 100 samples
    assert found == measure("exact_match", golds, answers)


def test_one_sample_has_no_interval() -> None:
    assert measure("exact_match", ["예"], ["예"])["interval"] is None
