"""``settle``: gold labels from votes by the task's rule (KLUE 3.1 to 3.5); every other item is dropped under a reason.

Labels need more than half of the votes, scores are the mean of five votes or more to one decimal, spans are those that
more than half of the workers marked. Items that a person should decide go to ``adjudicate.jsonl``; a vote of role
adjudicator then decides alone. Dawid-Skene and MACE are those of ``crowd-kit``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from statistics import pstdev
from typing import Any

from corpus.documents.errors import BadInput
from finetune.annotation.config import Benchmark
from finetune.annotation.folder import DROPPED, GOLD, Gold, Vote, count_labels, read_items, read_kept_votes
from finetune.data.files import write_json_lines

ADJUDICATE = "adjudicate.jsonl"
NO_VOTES, FEW_VOTES, NO_MAJORITY, WIDE = "no votes", "too few votes", "no majority", "standard deviation too large"


class Undecided(Exception):
    """An item without gold, with the reason."""


def settle(benchmark: Benchmark, folder: Path) -> dict[str, Any]:
    """Write ``gold.jsonl`` and ``adjudicate.jsonl``; returns counts. ``BadInput`` if no item gets a gold label."""
    items, votes = read_items(folder), read_kept_votes(folder)
    inferred = infer(benchmark, votes) if benchmark.settle.rule in ("dawid-skene", "mace") else None
    gold, reasons, adjudicate = list[Gold](), dict[str, str](), list[dict[str, Any]]()
    for item in items:
        if "expected" in item.about:
            reasons[item.id] = "pilot item"
            continue
        item_votes = votes.get(item.id, [])
        try:
            value = settle_item(benchmark, item_votes, inferred)
            gold.append(Gold(item.id, value, sum(vote.value is not None for vote in item_votes)))
        except Undecided as error:
            reasons[item.id] = str(error)
            if item_votes and str(error) not in (NO_VOTES, FEW_VOTES):
                values = [vote.value for vote in item_votes if vote.value is not None]
                adjudicate.append({"item": item.id, "reason": str(error), **item.texts, "values": values})
    if not gold:
        counts = ", ".join(f"{reason}: {n:,}" for reason, n in Counter(reasons.values()).items())
        raise BadInput(f"{folder}: no item gets a gold label ({counts}); take in more votes or relax the rules")
    write_json_lines(folder / GOLD, gold)
    write_json_lines(folder / ADJUDICATE, adjudicate)
    write_json_lines(folder / DROPPED, [{"item": item, "reason": reason} for item, reason in reasons.items()])
    dropped = dict(sorted(Counter(reasons.values()).items()))
    return {"gold": len(gold), "dropped": dropped, "to adjudicate": len(adjudicate), "values": count_labels(gold)}


def settle_item(benchmark: Benchmark, votes: Sequence[Vote], inferred: Mapping[str, str] | None) -> Any:
    """The gold value of an item; ``Undecided`` with the reason if it has none."""
    decided = [vote for vote in votes if vote.role == "adjudicator"]
    if decided and decided[-1].value is not None:
        return decided[-1].value
    reports = Counter(report for vote in votes for report in vote.reports if report != "undecided")
    if sum(reports.values()) > benchmark.settle.max_reports:
        raise Undecided(f"reported: {min(reports, key=lambda name: (-reports[name], name))}")
    values = [vote.value for vote in votes if vote.value is not None]
    if not votes:
        raise Undecided(NO_VOTES)
    if len(values) < benchmark.min_votes:
        raise Undecided(FEW_VOTES)
    if inferred is not None:
        return inferred[votes[0].item]
    if benchmark.form.vote == "score":
        return mean_score(values, benchmark.settle.max_std)
    if benchmark.form.vote == "spans":
        return common_spans(values)
    if benchmark.form.vote == "answer":
        return common_answers(values)
    return majority(values)


def majority(values: Sequence[Any]) -> Any:
    """The value of more than half of the votes."""
    top, count = Counter(map(_hashable, values)).most_common(1)[0]
    if 2 * count <= len(values):
        raise Undecided(NO_MAJORITY)
    return next(value for value in values if _hashable(value) == top)


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str) else repr(value)


def mean_score(values: Sequence[float], max_std: float) -> float:
    """The mean, rounded half up to one decimal (KLUE-STS ``label``).

    >>> mean_score([2, 2, 3, 2, 2, 2, 2], 2.0), mean_score([4, 4, 4, 5, 4, 4, 4, 5], 2.0)
    (2.1, 4.3)
    """
    if pstdev(values) > max_std:
        raise Undecided(WIDE)
    mean = sum((Decimal(str(value)) for value in values), Decimal()) / len(values)
    return float(mean.quantize(Decimal("0.1"), ROUND_HALF_UP))


def common_spans(values: Sequence[Sequence[Sequence[Any]]]) -> list[list[Any]]:
    """Spans that more than half of the workers marked alike, in order; of overlapping ones the longest."""
    counts = Counter((start, end, label) for spans in values for start, end, label in dict.fromkeys(map(tuple, spans)))
    common = [span for span, count in counts.items() if 2 * count > len(values)]
    if counts and not common:
        raise Undecided(NO_MAJORITY)
    spans = list[tuple[int, int, str]]()
    for span in sorted(common, key=lambda span: (span[0] - span[1], span)):
        if all(span[1] <= other[0] or other[1] <= span[0] for other in spans):
            spans.append(span)
    return [list(span) for span in sorted(spans)]


def common_answers(values: Sequence[Sequence[Sequence[int]]]) -> list[list[int]]:
    """All answers, the most frequent first, if more than half of the workers found one; [] if most found none."""
    with_answer = sum(map(bool, values))
    if 2 * with_answer == len(values):
        raise Undecided(NO_MAJORITY)
    counts = Counter((start, end) for answers in values for start, end in answers)
    return [list(answer) for answer, _ in counts.most_common()] if 2 * with_answer > len(values) else []


def infer(benchmark: Benchmark, votes: Mapping[str, Sequence[Vote]]) -> dict[str, str]:
    """Labels by Dawid-Skene or MACE, which weigh workers by their inferred reliability."""
    import pandas as pd
    from crowdkit.aggregation import MACE, DawidSkene

    rows = [(v.item, v.worker or v.role, v.value) for of_item in votes.values() for v in of_item if v.value is not None]
    if any(not vote.worker for of_item in votes.values() for vote in of_item if vote.role == "worker"):
        raise BadInput(f"settle.rule: {benchmark.settle.rule} needs to know who gave each vote; use majority")
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    model = DawidSkene() if benchmark.settle.rule == "dawid-skene" else MACE(random_state=benchmark.seed)
    return {str(item): str(label) for item, label in model.fit_predict(frame).items()}
