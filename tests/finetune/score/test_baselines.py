"""Baselines: the best constant of each metric, and what counting alone finds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB

from corpus.documents.atomic_files import atomic_write
from finetune.examples import Example
from finetune.registry import TASKS
from finetune.score.baselines import baselines, bigrams, kind_of
from finetune.tasks.custom.task import custom_task
from launch.sample.unpack import read_archive

OFFICIAL = "data/klue/official"


@pytest.mark.parametrize(
    ("task", "file", "metric", "constant"),
    [
        ("klue-sts", f"{OFFICIAL}/klue-sts-v1.1/klue-sts-v1.1_dev.json", "f1", 59.54),
        ("klue-sts", f"{OFFICIAL}/klue-sts-v1.1/klue-sts-v1.1_dev.json", "pearsonr", 0.0),
        ("klue-re", f"{OFFICIAL}/klue-re-v1.1/klue-re-v1.1_dev.json.zst", "micro_f1", 13.18),
        ("klue-nli", f"{OFFICIAL}/klue-nli-v1.1/klue-nli-v1.1_dev.json.zst", "accuracy", 33.33),
        ("ynat", "data/klue/derived/ynat-v1.1/ynat-v1.1_dev.json.zst", "macro_f1", 8.26),
    ],
)
def test_the_best_constant_is_searched_by_metric(
    shared: Callable[[str], Path], task: str, file: str, metric: str, constant: float
) -> None:
    found = baselines(TASKS[task], [], TASKS[task].read(shared(file)))
    assert round(found["constant"][metric], 2) == constant
    assert found["counting"] == {} and found["counting_by"] == ""


def texts(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choice("가나다라 마") for _ in range(rng.randint(5, 20))).strip() + "요" for _ in range(count)]


def test_the_cosine_is_that_of_scikit_learn() -> None:
    first, second = texts(80, 1), texts(80, 2)
    pairs = [Example(str(n), float(n % 6), {"sentence1": a, "sentence2": b}) for n, (a, b) in
             enumerate(zip(first, second, strict=True))]  # fmt: skip
    found = [one.value for one in kind_of(TASKS["klue-sts"]).counting(TASKS["klue-sts"], pairs[:40], pairs[40:])]
    vectors = TfidfVectorizer(analyzer=bigrams).fit([*first[:40], *second[:40]])
    a, b = (vectors.transform(side[40:]).toarray() for side in (first, second))
    assert pearsonr(found, (a * b).sum(axis=1)).statistic == pytest.approx(1)


def test_naive_bayes_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    names = ("경제", "사회", "세계")
    golds = [names[i] for i in rng.integers(3, size=120)]
    titles = [text + ("라라" if gold == "경제" else "") for text, gold in zip(texts(120, 4), golds, strict=True)]
    examples = [
        Example(str(n), gold, {"title": title}) for n, (gold, title) in enumerate(zip(golds, titles, strict=True))
    ]
    found = [one.value for one in kind_of(TASKS["ynat"]).counting(TASKS["ynat"], examples[:80], examples[80:])]
    known = sorted({pair for title in titles[:80] for pair in bigrams(title)})

    def counts(some: list[str]) -> np.ndarray:
        return np.array([[bigrams(title).count(pair) for pair in known] for title in some])

    theirs = MultinomialNB().fit(counts(titles[:80]), golds[:80]).predict(counts(titles[80:])).tolist()
    assert sum(x == y for x, y in zip(found, theirs, strict=True)) >= 38  # of 40; one unseen feature is counted, too


def sentence(text: str, *names: tuple[str, str]) -> Example:
    tags = ["O"] * len(text)
    for name, kind in names:
        start = text.index(name)
        tags[start : start + len(name)] = [f"B-{kind}", *[f"I-{kind}"] * (len(name) - 1)]
    return Example(text, [tag for tag, letter in zip(tags, text, strict=True) if letter != " "], {"text": text})


def test_known_entities_are_found_where_they_are_mostly_entities() -> None:
    training = [
        sentence("김하서가 한강에 갔다", ("김하서", "PS"), ("한강", "LC")),
        sentence("한강 공원은 넓다", ("한강 공원", "LC")),
        sentence("이가 아프다", ("이", "PS")), sentence("이 이 이"),
    ]  # fmt: skip
    new = [sentence("한강 공원에서 이 김하서를", ("한강 공원", "LC"), ("김하서", "PS"))]
    (found,) = kind_of(TASKS["klue-ner"]).counting(TASKS["klue-ner"], training, new)
    assert found.value == new[0].gold


def test_words_depend_on_the_next_one_with_the_type_of_their_tag() -> None:
    def tree(pos: list[str], types: list[str]) -> Example:
        heads = [*range(2, len(pos) + 1), 0]
        return Example("", {"heads": heads, "types": types}, {"words": ["말"] * len(pos), "pos": pos})

    training = [tree(["JKS", "NNG", "EF"], ["NP_SBJ", "NP_OBJ", "VP"]), tree(["JKO", "EF"], ["NP_OBJ", "VP"])]
    (found,) = kind_of(TASKS["klue-dp"]).counting(TASKS["klue-dp"], training, [tree(["JKO", "JKS", "SF"], ["NP"] * 3)])
    assert found.value == {"heads": [2, 3, 0], "types": ["NP_OBJ", "NP_SBJ", "VP"]}


def test_the_last_mentioned_value_is_the_state() -> None:
    def turn(state: list[str], *turns: str) -> Example:
        return Example("w-0", state, {"turns": turns})

    training = [turn(["식당-지역-서울 중앙"], "", "서울 중앙 식당"), turn(["식당-지역-서울 남쪽"], "", "서울 남쪽요")]
    dialogue = turn([], "", "서울 중앙이요", "네?", "아니 서울 남쪽으로")
    (found,) = kind_of(TASKS["wos"]).counting(TASKS["wos"], training, [dialogue])
    assert found.value == ["식당-지역-서울 남쪽"]


def test_relations_follow_the_types_of_entities() -> None:
    def pair(types: tuple[str, str], gold: str) -> Example:
        return Example("", gold, {"types": types})

    training = [pair(("PER", "POH"), "per:title")] * 3 + [pair(("PER", "POH"), "no_relation")]
    new = [pair(("PER", "POH"), "per:title"), pair(("ORG", "LOC"), "no_relation")]
    found = baselines(TASKS["klue-re"], training, new)
    assert found["counting"]["micro_f1"] == pytest.approx(200 / 3) and math.isfinite(found["counting"]["auprc"])


@pytest.mark.parametrize("kind", ["label", "pair", "similarity", "tagging", "span"])
def test_custom_tasks_have_the_baselines_of_their_kind(kind: str) -> None:
    names = {"labels": ["가", "나"]} if kind in ("label", "pair", "tagging") else {}
    columns = {"text": ("text", "second")} if kind in ("pair", "similarity") else {}
    task = custom_task({"name": "own", "kind": kind, **names, **columns})
    inputs = {"text": "가나 다라", "second": "다라 마", "question": "누가?", "context": "가나 다라. 마.", "start": None}
    golds = {"similarity": [0.0, 4.0, 1.0], "tagging": [["B-가", "O", "O", "O"]] * 3,
             "span": [{"answers": ["마"]}, {"answers": []}, {"answers": ["마"]}]}  # fmt: skip
    examples = [Example(str(n), gold, inputs) for n, gold in enumerate(golds.get(kind, ["가", "나", "가"]))]
    found = baselines(task, examples, examples)
    assert set(found["constant"]) == set(found["counting"]) and found["counting_by"]


def test_the_demo_has_baselines_for_every_metric(tmp_path: Path) -> None:
    for name, content in read_archive("klue.tar.zst").items():
        atomic_write(tmp_path / name, content)
    for name, task in TASKS.items():
        train, dev = (task.read(tmp_path / "klue" / task.files.of(split))[:120] for split in ("train", "dev"))
        found = baselines(task, train, dev)
        assert set(found["constant"]) == set(found["counting"]) >= set(task.metrics), name
        undefined = {metric for metric in task.metrics if found["constant"][metric] is None}
        assert undefined <= {"auprc"}, name
