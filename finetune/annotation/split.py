"""``split``: train, dev and test from gold items, by the method of the task (KLUE 3.1 to 3.7).

Items of one group (a premise, a passage, a dialogue) stay together. Draws depend on hashes of the seed and the ids, not
on the order of the files. The parts are written to ``data/``, as ``finetune`` reads them. The one-side filter is a
logistic regression in place of the paper's fine-tuned RoBERTa; naive Bayes measures what it achieves (as in ``check``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from corpus.documents.mecab import split_morphemes
from finetune.annotation.check.models import check_one_side
from finetune.annotation.check.run import read_datasets
from finetune.annotation.config import Benchmark, SplitMethod
from finetune.annotation.folder import SPLITS, Gold, Item, count_labels, order_key, read_gold, read_items
from finetune.data.files import write_json_lines

BINS = 51  # scores of 0.0 to 5.0
FOLDS, DIVISIONS = 5, 3  # of the one-side filter; single divisions into folds differ by a point
MIN_COUNT, FEW = 2, 1_000  # texts in which an n-gram must occur; of fewer texts every n-gram counts
SIMILAR_FROM = 3.0  # pairs of the least word overlap are preferred from here on, of the most below
DATA = "data"
Parts = dict[str, str]  # item to split; what is missing is train


def split(benchmark: Benchmark, folder: Path) -> dict[str, Any]:
    """Write ``data/SPLIT.jsonl``; returns counts and what the method achieved. ``BadInput`` if a part is empty."""
    gold = read_gold(folder)
    items = [item for item in read_items(folder) if item.id in gold]
    method = benchmark.split.method or benchmark.form.split
    if method == "date" and not (benchmark.split.after and any("date" in item.about for item in items)):
        method = "random" if benchmark.split.method is None else method
    parts = METHODS[method](benchmark, items, gold)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SPLITS}
    for item in items:
        rows[parts.get(item.id, "train")].append(row_of(benchmark, item, gold[item.id]))
    for name in SPLITS[: 3 if benchmark.split.test else 2]:
        if not rows[name]:
            raise BadInput(f"{folder}: no items for {name} by method {method}; settle more items or change split")
        write_json_lines(folder / DATA / f"{name}.jsonl", rows[name])
    named = {name: [item for item in items if parts.get(item.id, "train") == name] for name in SPLITS}
    datasets, _ = read_datasets([folder]) if method == "one-side" else ([], {})
    alone = [row for dataset in datasets for row in check_one_side(dataset)[0]]
    return {
        "method": method,
        "items": {name: len(part) for name, part in rows.items()},
        "sources": {name: dict(sorted(Counter(i.source for i in part).items())) for name, part in named.items()},
        "labels": {name: count_labels(gold[item.id] for item in part) for name, part in named.items()},
        "accuracy of one text alone, %": {f"{row['text']}, {row['split']}": row["accuracy"] for row in alone},
        **(unseen_shares(named, gold) if benchmark.form.spans else {}),
    }


def row_of(benchmark: Benchmark, item: Item, gold: Gold) -> dict[str, Any]:
    """An item with its gold as a row that ``finetune`` reads as a custom task, with the same columns in every row."""
    row: dict[str, Any] = {"guid": item.id, "source": item.source, **item.texts}
    if benchmark.form.vote == "spans":
        row["spans"] = gold.value
    elif benchmark.form.vote == "answer":
        row["answer"] = [item.text[start:end] for start, end in gold.value]
        row["start"] = [start for start, _ in gold.value]
    else:
        row["label"] = gold.value
    if benchmark.task == "re":
        row |= {"marked": mark_entities(item), "entities": item.spans}
    return {**row, "votes": gold.votes, **({"about": item.about} if item.about else {})}


def mark_entities(item: Item) -> str:
    """The sentence with marked subject and object, from which a classifier reads a relation.

    >>> mark_entities(Item("1", "", {"text": "이순신은 조선의 장군"}, ((0, 3, "subject:PER"), (5, 7, "object:LOC"))))
    '<subject:PER>이순신</subject>은 <object:LOC>조선</object>의 장군'
    """
    text = item.text
    for start, end, label in sorted(item.spans, reverse=True):
        text = f"{text[:start]}<{label}>{text[start:end]}</{label.partition(':')[0]}>{text[end:]}"
    return text


def groups_of(items: Iterable[Item]) -> dict[str, list[Item]]:
    """Items by group; one without a group is a group of its own."""
    groups = defaultdict[str, list[Item]](list)
    for item in items:
        groups[str(item.about.get("group", f"\0{item.id}"))].append(item)
    return groups


def fill(benchmark: Benchmark, items: Sequence[Item], pool: Iterable[Item] | None = None) -> Parts:
    """Whole groups of ``pool`` at random to dev and test, by source in proportion, or as ``split.per_source`` says.

    Args:
        items: all items, of which the sizes are shares.
        pool: items that may become dev or test; all if None.
    """
    rules, parts = benchmark.split, Parts()
    totals = Counter(item.source for item in items)
    by_source = defaultdict[str, list[list[Item]]](list)
    groups = groups_of(items if pool is None else pool)
    for group in (groups[name] for name in sorted(groups, key=lambda name: order_key(benchmark.seed, name))):
        by_source[group[0].source].append(group)
    for source, waiting in sorted(by_source.items()):
        sizes = {"dev": round(rules.dev * totals[source]), "test": round(rules.test * totals[source])}
        if rules.per_source is not None:
            sizes = dict.fromkeys(("dev", "test"), rules.per_source.get(source, 0))
        sizes["test"] = sizes["test"] if rules.test else 0
        for group in waiting:
            room = [name for name, size in sizes.items() if len(group) <= size]
            if room:
                name = max(room, key=lambda name: sizes[name])
                sizes[name] -= len(group)
                parts.update(dict.fromkeys((item.id for item in group), name))
    return parts


def by_date(benchmark: Benchmark, items: Sequence[Item], gold: Mapping[str, Gold]) -> Parts:
    """Items from ``split.after`` on; where these are too few, earlier ones with a word of their own (3.1.1)."""
    if benchmark.split.after is None:
        raise BadInput("split.after: missing; method date needs a day such as 2020-01-01")
    first = benchmark.split.after.isoformat()
    late = [item for item in items if str(item.about.get("date", "")) >= first]
    early = [item for item in items if str(item.about.get("date", "")) < first]
    words = Counter(word for item in early for word in set(item.text.split()))
    new = [item for item in early if any(words[word] == 1 for word in item.text.split())]
    missing = round((benchmark.split.dev + benchmark.split.test) * len(items)) - len(late)
    pool = [*late, *sorted(new, key=lambda item: order_key(benchmark.seed, item.id))[: max(0, missing)]]
    share = benchmark.split.dev / (benchmark.split.dev + benchmark.split.test)
    ordered = sorted(pool, key=lambda item: order_key(benchmark.seed, "part", item.id))
    return {item.id: "dev" if n < share * len(pool) else "test" for n, item in enumerate(ordered)}


def by_bins(benchmark: Benchmark, items: Sequence[Item], gold: Mapping[str, Gold]) -> Parts:
    """Scores in 51 bins as even as the scarcest allow; a bin keeps half of its pairs for train (3.2.1, Figure 2)."""
    rules, parts = benchmark.split, Parts()
    bins = defaultdict[int, list[Item]](list)
    for item in items:
        bins[round(gold[item.id].value * (BINS - 1) / 5)].append(item)
    caps = level_caps({number: len(part) // 2 for number, part in bins.items()}, (rules.dev + rules.test) * len(items))
    shares = Counter(item.source for item in items)
    room = {source: count * sum(caps.values()) / len(items) for source, count in shares.items()}
    carried = 0.0
    for number in sorted(bins, key=lambda number: (caps[number], number)):
        sign = 1 if number * 5 / (BINS - 1) >= SIMILAR_FROM else -1
        ranked = sorted(bins[number], key=lambda item: (sign * overlap(item), order_key(benchmark.seed, item.id)))
        chosen = list[Item]()
        for is_within in (True, False):  # first the sources that still have room
            for item in ranked:
                if len(chosen) < caps[number] and item not in chosen and (room[item.source] >= 1 or not is_within):
                    room[item.source] -= 1
                    chosen.append(item)
        carried += len(chosen) * rules.dev / (rules.dev + rules.test)
        for n, item in enumerate(sorted(chosen, key=lambda item: order_key(benchmark.seed, "part", item.id))):
            parts[item.id] = "dev" if n < int(carried) else "test"
        carried -= min(len(chosen), int(carried))
    return parts


def level_caps(sizes: Mapping[int, int], total: float) -> dict[int, int]:
    """Sizes cut at one level so that they add up to about ``total``.

    >>> level_caps({0: 2, 1: 9, 2: 9}, 10)
    {0: 2, 1: 4, 2: 4}
    """
    level = 0
    while sum(min(size, level + 1) for size in sizes.values()) <= total and level < max(sizes.values()):
        level += 1
    return {number: min(size, level) for number, size in sizes.items()}


def overlap(item: Item) -> float:
    """Jaccard similarity of the morphemes (mecab-ko) of an item's two texts, 0 to 1."""
    first, second = (set(split_morphemes(text.strip())) for text in item.texts.values())
    return len(first & second) / len(first | second) if first | second else 0.0


def by_one_side(benchmark: Benchmark, items: Sequence[Item], gold: Mapping[str, Gold]) -> Parts:
    """Of each source the ``split.nearest`` groups whose labels one text alone reveals least (3.3.1)."""
    side = benchmark.split.side or benchmark.form.texts[-1]
    if side not in benchmark.form.texts:
        raise BadInput(f"split.side: {side!r}; expected {' or '.join(benchmark.form.texts)}")
    texts, labels = [item.texts[side] for item in items], [str(gold[item.id].value) for item in items]
    names = [str(item.about.get("group", item.id)) for item in items]
    distances = dict(zip((i.id for i in items), distances_from_uniform(texts, labels, names), strict=True))
    by_source = defaultdict[str, list[tuple[float, str, list[Item]]]](list)
    for name, group in groups_of(items).items():
        mean = fmean(float(distances[item.id]) for item in group)
        by_source[group[0].source].append((mean, name, group))
    pool = list[Item]()
    for source, ranked in by_source.items():
        room = benchmark.split.nearest * sum(len(group) for _, _, group in ranked)
        rules = benchmark.split.per_source
        room = max(room, 2 * rules.get(source, 0)) if rules else room
        for _, _, group in sorted(ranked, key=lambda entry: entry[:2]):
            if len(group) <= room:
                room -= len(group)
                pool += group
    return fill(benchmark, items, pool)


def distances_from_uniform(texts: Sequence[str], labels: Sequence[str], groups: Sequence[str]) -> NDArray[np.float64]:
    """Cross entropy of each text's predicted label probabilities from uniform, in nats; log K if there is no cue.

    Texts of one group are predicted by models that were fitted to other groups: the mean over ``DIVISIONS`` into folds.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_union

    shared = {"min_df": MIN_COUNT if len(texts) >= FEW else 1, "sublinear_tf": True}  # few may share no word at all
    features = make_union(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), **shared),
        TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2), **shared),
    )
    features_NF, label_N = features.fit_transform(texts).tocsr(), np.array(labels)
    distances_DN = np.full((DIVISIONS, len(texts)), np.log(len(set(labels))))
    for division in range(DIVISIONS):
        fold_N = np.array([int(order_key(division, group), 16) % FOLDS for group in groups])
        for fold in range(FOLDS):
            is_held_N = fold_N == fold
            if is_held_N.any() and len(set(label_N[~is_held_N].tolist())) > 1:
                model = LogisticRegression(C=3.0, max_iter=100, tol=1e-3)
                model.fit(features_NF[~is_held_N], label_N[~is_held_N])
                shares_NK = np.clip(model.predict_proba(features_NF[is_held_N]), 1e-9, 1)
                distances_DN[division, is_held_N] = -np.log(shares_NK).mean(axis=1)
    return np.asarray(distances_DN.mean(axis=0))


def entities_of(item: Item, gold: Gold) -> set[str]:
    """The surface forms of an item's entities."""
    spans = gold.value if isinstance(gold.value, list) else item.spans
    return {item.text[start:end] for start, end, _ in spans}


def by_unseen_entities(benchmark: Benchmark, items: Sequence[Item], gold: Mapping[str, Gold]) -> Parts:
    """Entities at random, each with all its groups, until dev and test are full: train has none of them (3.4.1, 3.5.1).

    RE: only pairs drawn uniformly, if there are any, because they keep the distribution of relations.
    """
    uniform = {item.id for item in items if item.about.get("pair") == "uniform"}
    holders, groups = defaultdict[str, set[str]](set), groups_of(items)
    for name, group in groups.items():
        for item in group:
            for entity in entities_of(item, gold[item.id]):
                holders[entity].add(name)
    parts = Parts()
    room = {"dev": round(benchmark.split.dev * len(items)), "test": round(benchmark.split.test * len(items))}
    for entity in sorted(holders, key=lambda entity: order_key(benchmark.seed, entity)):
        held = [item.id for name in sorted(holders[entity]) for item in groups[name] if item.id not in parts]
        part = max(room, key=lambda name: room[name])
        if held and len(held) <= room[part] and (not uniform or uniform.issuperset(held)):
            parts.update(dict.fromkeys(held, part))
            room[part] -= len(held)
    return parts


def unseen_shares(named: Mapping[str, Sequence[Item]], gold: Mapping[str, Gold]) -> dict[str, Any]:
    """Share of items of dev and test with an entity that train lacks, in percent."""
    seen = {entity for item in named["train"] for entity in entities_of(item, gold[item.id])}
    parts = {name: [entities_of(item, gold[item.id]) for item in named[name]] for name in ("dev", "test")}
    shares = {name: 100 * fmean(bool(entities - seen) for entities in part) for name, part in parts.items() if part}
    return {"items with unseen entities, %": shares}


METHODS: dict[SplitMethod, Callable[[Benchmark, Sequence[Item], Mapping[str, Gold]], Parts]] = {
    "random": lambda benchmark, items, gold: fill(benchmark, items),
    "date": by_date,
    "bins": by_bins,
    "one-side": by_one_side,
    "unseen-entities": by_unseen_entities,
}
