"""What counting models see in a benchmark: baselines, one text alone, labels that are probably wrong.

Naive Bayes on character bigrams, without a network. Label errors follow confident learning (Northcutt et al., 2021):
out of fold, an item whose probability for another label reaches the mean probability of the items with that label is
suspected. The rule equals ``find_label_issues(filter_by="confident_learning")`` of cleanlab. Legend: ``N`` items,
``K`` labels.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from finetune.annotation.check.items import Dataset, Finding, Item
from finetune.custom_config import CustomTask
from finetune.metrics import softmax
from finetune.registry import TASKS
from finetune.score.baselines import baselines, bigrams, naive_bayes
from finetune.task import Task
from finetune.tasks.custom.task import custom_task, define

FOLDS = 5
MIN_ITEMS, MAX_CLASSES = 100, 100  # for models; more labels than this are no classes
ONE_SIDE_LEAD = 8.0  # points above the best constant from which a one-side model is remarked on
MIN_ACCURACY = 60.0  # of the model, below which its doubts about labels mean nothing
Features = Callable[[Item], list[str]]


def score_baselines(dataset: Dataset) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The best constant and the counting baseline of the last labelled split, trained on the first.

    A remark for each file that ``malmoi finetune`` refuses; then there are no baselines.
    """
    labelled = [file for file in dataset.files if any(item.gold is not None for item in file.items)]
    if not labelled or dataset.kind not in {"label", "pair", "similarity", "choice", "tagging", "span", "relation", "tree", "state"}:
        return None, []
    train, scored = labelled[0], labelled[-1]
    try:
        task = _task_of(dataset, str(train.path), str(scored.path))
        training = task.read(train.path) if train is not scored else []
        examples = [example for example in task.read(scored.path) if example.gold is not None]
        found = baselines(task, training, examples)
    except BadInput as error:
        return None, [Finding("refused", scored.split, "", str(error))]
    return {"scored": scored.split, "trained on": train.split if training else "", **found}, []


def _task_of(dataset: Dataset, train: str, dev: str) -> Task:
    first = dataset.files[0]
    if first.task:
        return TASKS[first.task]
    columns = {key: value for key, value in first.columns.items() if value is not None}
    own = CustomTask.model_validate({**columns, "train": train, "dev": dev})
    return custom_task(define(dataset.name, own), files=own.files)


def sides_of(dataset: Dataset) -> dict[str, Features]:
    """Models that see a part of the input, by what they see; for span, whether there is an answer."""
    names = [name for name in dataset.files[0].items[0].texts if name != "context"]
    if dataset.kind not in ("pair", "span") or (dataset.kind == "pair" and len(names) < 2):
        return {}
    return {f"{name} alone": lambda item, name=name: bigrams(item.texts.get(name, "")) for name in names}  # type: ignore[misc]


def check_one_side(dataset: Dataset) -> tuple[list[dict[str, Any]], list[Finding]]:
    """Accuracy of models that see one text, 0..100: out of fold in the first labelled split, and trained on it."""
    results, findings = list[dict[str, Any]](), list[Finding]()
    splits = {file.split: pairs for file in dataset.files if len(pairs := _labelled(dataset, file.items)) >= MIN_ITEMS}
    for name, features in sides_of(dataset).items() if splits else ():
        train, *others = splits
        inputs = {split: [features(item) for item, _ in pairs] for split, pairs in splits.items()}
        golds = {split: [gold for _, gold in pairs] for split, pairs in splits.items()}
        right = {train: _out_of_fold(golds[train], inputs[train])}
        score = naive_bayes(golds[train], inputs[train])
        right |= {split: [score(of_item) for of_item in inputs[split]] for split in others}
        for split, scores in right.items():
            hits = sum(max(of, key=of.__getitem__) == gold for of, gold in zip(scores, golds[split], strict=True))
            accuracy = 100 * hits / len(scores)
            constant = 100 * Counter(golds[split]).most_common(1)[0][1] / len(scores)
            results.append({"model": name, "split": split, "accuracy": accuracy, "constant": constant, "n": len(scores)})
            if accuracy - constant >= ONE_SIDE_LEAD:
                message = f"{name} predicts {accuracy:.1f} % of the labels, the best constant {constant:.1f} %"
                findings.append(Finding("one-side", split, "", message))
    return results, findings


def _labelled(dataset: Dataset, items: Sequence[Item]) -> list[tuple[Item, Any]]:
    """Items with their class: the label, or whether a question has an answer; none if there is only one class."""
    pairs = [(item, bool(item.gold) if dataset.kind == "span" else item.gold) for item in items if item.gold is not None]
    return pairs if 1 < len({gold for _, gold in pairs}) <= MAX_CLASSES else []


def _out_of_fold(golds: Sequence[Any], inputs: Sequence[list[str]]) -> list[dict[Any, float]]:
    """Log probabilities of the labels for each item, by a model of the other folds, which a seed of 0 draws."""
    fold_N = [place % FOLDS for place in range(len(golds))]
    random.Random(0).shuffle(fold_N)
    scores = list[dict[Any, float]]([{}] * len(golds))
    for fold in range(FOLDS):
        inside = [place for place, own in enumerate(fold_N) if own != fold]
        score = naive_bayes([golds[place] for place in inside], [inputs[place] for place in inside])
        for place, own in enumerate(fold_N):
            if own == fold:
                scores[place] = score(inputs[place])
    return scores


def check_label_errors(dataset: Dataset) -> tuple[str, list[Finding]]:
    """What was done, and the suspected items, the surest first."""
    pairs = [(item, gold) for file in dataset.files for item, gold in _labelled(dataset, file.items)]
    if dataset.kind not in ("label", "pair") or len(pairs) < MIN_ITEMS:
        return "Label errors: not searched; they need classes and at least 100 items.", []
    golds = [gold for _, gold in pairs]
    inputs = [[f"{n}{pair}" for n, text in enumerate(item.texts.values()) for pair in bigrams(text)] for item, _ in pairs]
    scores = _out_of_fold(golds, inputs)
    names = sorted({name for of in scores for name in of})
    probability_NK = softmax(np.array([[of.get(name, -np.inf) for name in names] for of in scores]))
    gold_N = np.array([names.index(gold) for gold in golds])
    accuracy = 100 * float((probability_NK.argmax(axis=1) == gold_N).mean())
    about = f"naive Bayes on character bigrams, out of fold, is right on {accuracy:.1f} %"
    if accuracy < MIN_ACCURACY:
        return f"Label errors: not searched; {about}, too few to doubt a label.", []
    found = [
        Finding("label-error", item.split, item.guid, f"{gold}, probably {names[other]}: {' | '.join(item.texts.values())[:160]}")
        for place, other in confident_errors(gold_N, probability_NK)
        for item, gold in [pairs[place]]
    ]
    return f"Label errors: {len(found):,} suspected; {about}.", found


def confident_errors(gold_N: NDArray[np.int64], probability_NK: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Numbers of suspected items and their probable label, by the probability of their own label, the lowest first.

    A label is probable for an item if its probability reaches the mean over the items that have this label; of several,
    the likeliest counts, and the item is suspected if that is not its own.
    """
    K = probability_NK.shape[1]
    bar_K = np.array([probability_NK[gold_N == k, k].mean() if (gold_N == k).any() else 2.0 for k in range(K)])
    confident_NK = np.where(probability_NK >= bar_K - 1e-6, probability_NK, -1.0)
    best_N = confident_NK.argmax(axis=1)
    own_N = probability_NK[np.arange(len(gold_N)), gold_N]
    suspected = np.flatnonzero((confident_NK.max(axis=1) >= 0) & (best_N != gold_N))
    for place in suspected[np.argsort(own_N[suspected], kind="stable")].tolist():
        yield place, int(best_N[place])
