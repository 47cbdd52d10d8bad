"""What counting models see in a benchmark: baselines, one text alone, labels that are probably wrong.

Naive Bayes on character bigrams, without a network. Label errors are found by confident learning (Northcutt et al.,
2021; package ``cleanlab``). Legend: ``N`` items, ``K`` labels.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from corpus.documents.errors import BadInput
from finetune.annotation.check.items import Dataset, Finding, Item
from finetune.custom_config import CustomTask, spell_label
from finetune.metrics import softmax
from finetune.registry import TASKS
from finetune.score.baselines import baselines, bigrams, naive_bayes
from finetune.tasks.custom.task import custom_task, define

FOLDS = 5
MIN_ITEMS, MAX_CLASSES = 100, 100  # for models; more labels than this are no classes
ONE_SIDE_LEAD = 8.0  # points above the best constant from which a one-side model is remarked on
MIN_ACCURACY = 60.0  # of the model, below which its doubts about labels mean nothing
LISTED_SHARE = 0.01  # of the items; only the surest suspicions are listed


def score_baselines(dataset: Dataset) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The best constant and the counting baseline of the last labelled split, trained on the first.

    A remark, and no baselines, where ``malmoi finetune`` refuses a file.
    """
    labelled = [file for file in dataset.files if any(item.gold is not None for item in file.items)]
    if not labelled:
        return None, []
    train, scored = labelled[0], labelled[-1]
    try:
        task = TASKS.get(scored.task)
        if task is None and train.columns:
            columns = train.columns.model_dump(exclude_none=True)
            own = CustomTask.model_validate({**columns, "train": str(train.path), "dev": str(scored.path)})
            task = custom_task(define(dataset.name, own), files=own.files)
        assert task is not None
        training, examples = task.read(train.path) if train is not scored else [], task.read(scored.path)
        scores = baselines(task, *([e for e in part if e.gold is not None] for part in (training, examples)))
    except BadInput as error:
        return None, [Finding("refused", scored.split, "", str(error))]
    return {"scored": scored.split, "trained on": train.split if training else "", **scores}, []


def check_one_side(dataset: Dataset) -> tuple[list[dict[str, Any]], list[Finding]]:
    """Accuracy, 0..100, of models that see one text: out of fold in the first labelled split, and trained on it.

    Pairs: the class; questions: whether there is an answer.
    """
    splits = {file.split: pairs for file in dataset.files if len(pairs := _labelled(dataset, file.items)) >= MIN_ITEMS}
    if dataset.kind not in ("pair", "span") or not splits:
        return [], []
    train, results, findings = next(iter(splits)), list[dict[str, Any]](), list[Finding]()
    for name in (name for name in dataset.files[0].items[0].texts if dataset.kind == "pair" or name != "context"):
        inputs = {split: [bigrams(item.texts[name]) for item, _ in pairs] for split, pairs in splits.items()}
        golds = {split: [gold for _, gold in pairs] for split, pairs in splits.items()}
        score = naive_bayes(golds[train], inputs[train])
        scores = {split: list(map(score, inputs[split])) for split in splits if split != train}
        groups = [dataset.group_of(item) for item, _ in splits[train]]
        for split, of_items in {train: _out_of_fold(golds[train], inputs[train], groups), **scores}.items():
            hits = sum(max(of, key=of.__getitem__) == gold for of, gold in zip(of_items, golds[split], strict=True))
            accuracy, constant = (100 * n / len(of_items) for n in (hits, Counter(golds[split]).most_common(1)[0][1]))
            results.append({"text": name, "split": split, "accuracy": accuracy, "constant": constant})
            if accuracy - constant >= ONE_SIDE_LEAD:
                message = f"{name} alone predicts {accuracy:.1f} % of the labels, the best constant {constant:.1f} %"
                findings.append(Finding("one-side", split, "", message))
    return results, findings


def _labelled(dataset: Dataset, items: Sequence[Item]) -> list[tuple[Item, Any]]:
    """Items with their class: the label, or whether a question has an answer; none if there is only one class."""
    is_span, labelled = dataset.kind == "span", [item for item in items if item.gold is not None]
    pairs = [(item, bool(item.gold) if is_span else spell_label(str(item.gold))) for item in labelled]
    return pairs if 1 < len({gold for _, gold in pairs}) <= MAX_CLASSES else []


def _out_of_fold(golds: Sequence[Any], inputs: Sequence[list[str]], groups: Sequence[str]) -> list[dict[Any, float]]:
    """Log probabilities of the labels for each item, by a model of the other folds, which a seed of 0 draws; groups
    stay together, because the items of a premise have different labels, unless there are too few for the folds."""
    groups = groups if len(set(groups)) >= FOLDS else list(map(str, range(len(golds))))
    order = sorted(set(groups))
    random.Random(0).shuffle(order)
    fold_of = {group: place % FOLDS for place, group in enumerate(order)}
    scores = [dict[Any, float]()] * len(golds)
    for fold in range(FOLDS):
        inside = [place for place, group in enumerate(groups) if fold_of[group] != fold]
        score = naive_bayes([golds[place] for place in inside], [inputs[place] for place in inside])
        for place in set(range(len(golds))).difference(inside):
            scores[place] = score(inputs[place])
    return scores


def check_label_errors(dataset: Dataset) -> tuple[str, list[Finding]]:
    """What was done, and the items whose label is most probably wrong, the surest first."""
    pairs = [pair for file in dataset.files for pair in _labelled(dataset, file.items)]
    if dataset.kind not in ("label", "pair") or len(pairs) < MIN_ITEMS:
        return "Label errors: not searched; only in classes, and from 100 items on.", []
    golds, groups = [gold for _, gold in pairs], [dataset.group_of(item) for item, _ in pairs]
    texts = [enumerate(item.texts.values()) for item, _ in pairs]
    inputs = [[f"{n}{pair}" for n, text in part for pair in bigrams(text)] for part in texts]
    scores, names = _out_of_fold(golds, inputs, groups), sorted(set(golds))
    probability_NK = softmax(np.array([[of.get(name, -np.inf) for name in names] for of in scores]))
    gold_N = np.array([names.index(gold) for gold in golds])
    accuracy = 100 * float((probability_NK.argmax(axis=1) == gold_N).mean())
    about = f"naive Bayes on character bigrams, out of fold, is right on {accuracy:.1f} %"
    if accuracy < MIN_ACCURACY:
        return f"Label errors: not searched; {about}, too few to doubt a label.", []
    from cleanlab.filter import find_label_issues

    suspected = find_label_issues(
        gold_N, probability_NK, filter_by="confident_learning", return_indices_ranked_by="self_confidence", n_jobs=1
    )
    findings = list[Finding]()
    for place in suspected[: max(1, int(LISTED_SHARE * len(pairs)))]:
        item, other = pairs[place][0], names[probability_NK[place].argmax()]
        text = " | ".join(item.texts.values())[:160]
        findings.append(Finding("label-error", item.split, item.guid, f"{item.gold}, probably {other}: {text}"))
    return f"Label errors: {len(suspected):,} suspected, the surest {len(findings):,} listed; {about}.", findings
