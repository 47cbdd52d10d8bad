"""``agree``: agreement of workers and their exclusion (KLUE 3.1 to 3.5, Table 5).

Alpha is that of the package ``krippendorff``. A unit is what workers can agree on: the item for labels and scores, each
span that any of them marked, each word of a tree, each slot of a state. A worker is compared with the others by
Pearson's r with their mean (scores) and by nominal alpha over all pairs of one vote of the worker and one of another.
The worst worker below a bound is excluded, and the rest compared again, until none is below.
"""

from __future__ import annotations

import json
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, Literal, NamedTuple

import numpy as np

from corpus.documents.atomic_files import write_json
from finetune.annotation.config import AgreeRules, Benchmark, VoteKind
from finetune.annotation.folder import EXCLUDED, Item, Vote, read_items, read_votes, without
from finetune.metrics import kappa, pearson

Rating = tuple[str, Any]  # worker ("" if unknown) and value
Units = Mapping[Any, Sequence[Rating]]


class Worker(NamedTuple):
    """A worker compared with the others; pearson is 0 for a constant worker, None with fewer than two values."""

    worker: str
    votes: int
    shared: int
    pearson: float | None
    alpha: float | None
    pilot: float | None


def agree(benchmark: Benchmark, folder: Path) -> dict[str, Any]:
    """Agreement before and after exclusion; writes ``excluded.json``, worker to reason."""
    items, votes = read_items(folder), read_votes(folder)
    everyone = units_of(benchmark.form.vote, votes)
    pilot = pilot_shares(items, votes)
    workers, excluded = exclude(everyone, benchmark.form.vote == "score", benchmark.agree, pilot)
    kept_votes = without(votes, excluded)
    write_json(folder / EXCLUDED, excluded)
    parts = {item.id: f"{item.source} {item.about.get('pair', '')}".strip() for item in items}
    by_source = {name: {i: v for i, v in kept_votes.items() if parts[i] == name} for name in sorted({*parts.values()})}
    return {
        **summary(benchmark.form.vote, kept_votes),
        "all workers": summary(benchmark.form.vote, votes) if excluded else None,
        "by source": {name: summary(benchmark.form.vote, part) for name, part in by_source.items() if part},
        "author": author_shares(benchmark, kept_votes),
        "workers": [worker._asdict() for worker in workers],
        "excluded": excluded,
    }


def units_of(kind: VoteKind, votes: Mapping[str, Sequence[Vote]]) -> dict[Any, list[Rating]]:
    """Ratings by unit; votes without a value and those of adjudicators do not count."""
    units = dict[Any, list[Rating]]()
    for item, item_votes in votes.items():
        valued = [vote for vote in item_votes if vote.value is not None and vote.role != "adjudicator"]
        parts = [_parts(kind, vote.value) for vote in valued]
        for key in dict.fromkeys(key for part in parts for key in part):
            units[item, key] = [(v.worker, part.get(key, "none")) for v, part in zip(valued, parts, strict=True)]
    return units


def _parts(kind: VoteKind, value: Any) -> dict[Any, Any]:
    if kind == "spans":
        return {(start, end): label for start, end, label in value}
    if kind == "words":
        return dict(enumerate(value))
    if kind == "state":
        return dict(value)
    return {"": json.dumps(value) if kind == "answer" else value}


def alpha(units: Iterable[Sequence[Any]], level: Literal["nominal", "interval"]) -> float | None:
    """Krippendorff's alpha of units of values; None with fewer than two values or no unit rated twice.

    Args:
        units: the values that each unit has, of any number of workers.
        level: nominal or interval.
    """
    import krippendorff

    rated = [Counter(values) for values in units if len(values) > 1]
    domain = sorted({value for counter in rated for value in counter}, key=lambda value: (str(type(value)), value))
    if len(domain) < 2:
        return None
    place = {value: number for number, value in enumerate(domain)}
    counts_UV = np.zeros((len(rated), len(domain)), dtype=np.int64)
    for row, counter in enumerate(rated):
        for value, count in counter.items():
            counts_UV[row, place[value]] = count
    values = domain if level == "interval" else list(range(len(domain)))
    return float(krippendorff.alpha(value_counts=counts_UV, value_domain=values, level_of_measurement=level))


def exclude(
    units: Units, has_scores: bool, rules: AgreeRules, pilot: Mapping[str, float]
) -> tuple[list[Worker], dict[str, str]]:
    """All workers as first compared, and those excluded with the reason."""
    failed = {w: f"pilot {share:.2f} < {rules.pilot_share}" for w, share in pilot.items() if share < rules.pilot_share}
    excluded = dict(sorted(failed.items()))
    first: list[Worker] | None = None
    while True:
        left = {key: [r for r in ratings if r[0] not in excluded] for key, ratings in units.items()}
        workers = compare(left, has_scores, pilot)
        first = first or workers
        below = [(margin, worker.worker, reason) for worker in workers for margin, reason in _below(worker, rules)]
        if not below:
            return first, excluded
        _, worst, reason = min(below)
        excluded[worst] = reason


def _below(worker: Worker, rules: AgreeRules) -> list[tuple[float, str]]:
    """How far a worker is below each bound, with the reason; nothing for one who shares too few votes."""
    bounds = ("pearson", worker.pearson, rules.min_pearson), ("alpha", worker.alpha, rules.min_alpha)
    known = [(name, value, bound) for name, value, bound in bounds if value is not None]
    is_known = worker.shared >= rules.min_shared
    return [(v - bound, f"{name} {v:.3f} < {bound}") for name, v, bound in known if is_known and v < bound]


def compare(units: Units, has_scores: bool, pilot: Mapping[str, float]) -> list[Worker]:
    """Each known worker with the others."""
    own = defaultdict[str, list[tuple[Any, list[Any]]]](list)
    counts = Counter[str]()
    for ratings in units.values():
        for place, (worker, value) in enumerate(ratings):
            counts[worker] += 1
            others = [other for number, (_, other) in enumerate(ratings) if number != place]
            if worker and others:
                own[worker].append((value, others))
    workers = list[Worker]()
    for worker, shared in sorted(own.items()):
        scores = [(value, fmean(others)) for value, others in shared] if has_scores else []
        correlation = np.nan_to_num(pearson(*np.array(scores).T)) / 100 if len(scores) > 1 else None
        nominal = alpha([(value, other) for value, others in shared for other in others], "nominal")
        workers.append(Worker(worker, counts[worker], len(shared), correlation, nominal, pilot.get(worker)))
    return workers


def pilot_shares(items: Sequence[Item], votes: Mapping[str, Sequence[Vote]]) -> dict[str, float]:
    """Share of pilot items (``about.expected``) that each worker labels as expected."""
    right = defaultdict[str, list[bool]](list)
    for item in items:
        if "expected" in item.about:
            for vote in votes.get(item.id, ()):
                right[vote.worker].append(vote.value == item.about["expected"])
    return {worker: fmean(answers) for worker, answers in right.items() if worker}


def summary(kind: VoteKind, votes: Mapping[str, Sequence[Vote]]) -> dict[str, Any]:
    """Counts, alpha, pairwise kappa and shares of unanimous, majority and tied units."""
    units = units_of(kind, votes)
    values = [[value for _, value in ratings] for ratings in units.values()]
    rated = [v for v in values if len(v) > 1]
    tops = [(max(Counter(map(str, v)).values()), len(v)) for v in rated]
    means, spreads = (map(fmean, values), map(pstdev, rated)) if kind == "score" else ((), ())
    return {
        "items": len(votes),
        "units": len(units),
        "votes": sum(map(len, values)),
        "alpha nominal": alpha(values, "nominal"),
        "alpha interval": alpha(values, "interval") if kind == "score" else None,
        "kappa": mean_kappa(units),
        "unanimous": _share(top == size for top, size in tops),
        "majority": _share(size > top > size / 2 for top, size in tops),
        "no majority": _share(top <= size / 2 for top, size in tops),
        "fewest votes": min((len(v) for v in values), default=0),
        "most votes": max((len(v) for v in values), default=0),
        "largest std": max(spreads, default=None),
        "mean": fmean(known) if (known := list(means)) else None,
    }


def _share(claims: Iterable[bool]) -> float | None:
    known = list(claims)
    return 100 * fmean(known) if known else None


def mean_kappa(units: Units) -> float | None:
    """Mean of Cohen's kappa over pairs of known workers who share ten units or more; None if there are none."""
    pairs = defaultdict[tuple[str, str], list[tuple[Any, Any]]](list)
    for ratings in units.values():
        named = sorted((rating for rating in ratings if rating[0]), key=lambda rating: rating[0])
        for (one, value), (other, second) in combinations(named, 2):
            pairs[one, other].append((value, second))
    kappas = [k for both in pairs.values() if len(both) >= 10 and (k := kappa(both, operator.ne)) is not None]
    return fmean(kappas) if kappas else None


def author_shares(benchmark: Benchmark, votes: Mapping[str, Sequence[Vote]]) -> dict[str, float | None] | None:
    """The rows of Table 5 in percent, where items have an author's label; all votes count, the author's too."""
    rows = list[tuple[str, list[str], str | None]]()
    for item_votes in votes.values():
        author = next((vote.value for vote in item_votes if vote.role == "author"), None)
        values = [vote.value for vote in item_votes if vote.value is not None]
        if author is not None and benchmark.form.vote == "label":
            top, count = Counter(values).most_common(1)[0]
            rows.append((author, values, top if count > len(values) / 2 else None))
    if not rows:
        return None
    return {
        "unanimous gold": _share(gold is not None and set(values) == {gold} for _, values, gold in rows),
        "label = gold": _share(value == gold for _, values, gold in rows for value in values),
        "label = author": _share(value == author for author, values, _ in rows for value in values),
        "gold = author": _share(gold == author for author, _, gold in rows),
        "gold is not author": _share(gold is not None and gold != author for author, _, gold in rows),
        "no gold": _share(gold is None for _, _, gold in rows),
    }
