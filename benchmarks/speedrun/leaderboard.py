"""Tables of a speedrun: loss and accuracy at the end of the budget, curves, speed-ups and probes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np

from launch.console import Table

Result = Mapping[str, Any]
SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the budget, columns of the curve table
BETWEEN = "both_sides_accuracy"  # the strongest counting baseline


def spent_until_loss(curve: Sequence[Mapping[str, float]], loss: float) -> float | None:
    """The budget spent when the held-out loss first reaches ``loss``; None if it never does. Linear interpolation.

    >>> spent_until_loss([{"spent": 10, "loss": 8.0}, {"spent": 20, "loss": 6.0}], 7.5)
    12.5
    """
    before: Mapping[str, float] | None = None
    for point in curve:
        if point["loss"] <= loss:
            if before is None:
                return point["spent"]
            part = (before["loss"] - loss) / (before["loss"] - point["loss"])
            return before["spent"] + part * (point["spent"] - before["spent"])
        before = point
    return None


def value_at_share(result: Result, share: float, key: str) -> float:
    """Loss or accuracy at this share of the budget, linearly interpolated; NaN before the first evaluation.

    >>> value_at_share({"curve": [{"spent": 10, "loss": 8.0}, {"spent": 20, "loss": 6.0}]}, 0.6, "loss")
    7.6
    """
    curve = result["curve"]
    spent = [point["spent"] for point in curve]
    return float(np.interp(share * spent[-1], spent, [point[key] for point in curve], left=math.nan))


def speedups(results: Iterable[Result], name: str, baseline: str) -> dict[int, float | None]:
    """By seed: the cost of the baseline's run divided by the cost at which the candidate reaches its final loss.

    None if the candidate never reaches it; infinity if its initial weights do. Seeds of only one of the two are
    ignored.
    """
    runs = {(result["candidate"], result["seed"]): result for result in results}
    by_seed: dict[int, float | None] = {}
    for seed in sorted(seed for who, seed in runs if who == name and (baseline, seed) in runs):
        theirs = runs[baseline, seed]
        spent = spent_until_loss(runs[name, seed]["curve"], theirs["loss"])
        total = theirs["curve"][-1]["spent"]
        by_seed[seed] = None if spent is None else total / spent if spent else math.inf
    return by_seed


def share_until_above_counting(result: Result, between: float) -> float | None:
    """The share of the budget after which the accuracy exceeds that of counting between both neighbors."""
    curve = result["curve"]
    spent = next((point["spent"] for point in curve if point["accuracy"] > between), None)
    return None if spent is None else spent / curve[-1]["spent"]


def leaderboard_tables(
    results: Sequence[Result], counting: Mapping[str, float], baselines: Sequence[str]
) -> list[Table]:
    """Results in the order of the losses, curves, speed-ups, and the probes if there are any."""
    by_name: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda result: (result["candidate"], result["seed"])):
        by_name.setdefault(result["candidate"], []).append(result)
    names = sorted(by_name, key=lambda name: mean(run["loss"] for run in by_name[name]))
    ordered = {name: by_name[name] for name in names}
    tables = [
        _budget_table(ordered, counting),
        _curve_table(ordered),
        _speedup_table(ordered, [name for name in baselines if name in ordered]),
    ]
    return [table for table in (*tables, _probe_table(ordered)) if table.rows]


def _budget_table(runs: Mapping[str, Sequence[Result]], counting: Mapping[str, float]) -> Table:
    heads = (
        "candidate", "seeds", "loss", "accuracy, %", "M tokens", "steps", "CPU s", "counting, s",
        "above counting after",
    )  # fmt: skip
    rows = []
    for name, own in runs.items():
        above = [share_until_above_counting(run, counting[BETWEEN]) for run in own]
        cells = (
            _join(f"{run['seed']}" for run in own),
            _join(f"{run['loss']:.3f}" for run in own),
            _join(f"{100 * run['accuracy']:.1f}" for run in own),
            _join(f"{run['tokens'] / 1e6:.2f}" for run in own),
            _join(f"{run['steps']:,}" for run in own),
            _join(f"{run['seconds']:,.0f}" for run in own),
            _join(f"{run['counting_seconds']:.0f}" for run in own),
            _join("never" if share is None else f"{share:.0%}" for share in above),
        )
        rows.append([name, *cells])
    guesses = ", ".join(
        f"{key.removesuffix('_accuracy').replace('_', ' ')} {100 * n:.1f} %" for key, n in counting.items()
    )
    note = (
        f"Held-out loss (nats) and accuracy of masked tokens at the end. Counting baselines: {guesses}. Above counting "
        "after: the share of the budget after which the accuracy exceeds the last baseline."
    )
    return Table(heads, rows, numbers=range(1, len(heads)), title="Results at the end of the budget", note=note)


def _curve_table(runs: Mapping[str, Sequence[Result]]) -> Table:
    rows = []
    for name, own in runs.items():
        cells = []
        for share in SHARES:
            loss, accuracy = (mean(value_at_share(run, share, key) for run in own) for key in ("loss", "accuracy"))
            cells.append("–" if math.isnan(loss) else f"{loss:.2f}\n{accuracy:.1%}")
        rows.append([name, *cells])
    heads = ("candidate", *(f"{share:.0%}" for share in SHARES))
    note = "Held-out loss and accuracy at these shares of the budget, means of the seeds; –: not evaluated yet."
    return Table(heads, rows, numbers=range(1, len(heads)), title="Curves", note=note)


def _speedup_table(runs: Mapping[str, Sequence[Result]], baselines: Sequence[str]) -> Table:
    results = [run for own in runs.values() for run in own]
    rows = []
    for name in runs:
        cells = []
        for baseline in baselines:
            times = speedups(results, name, baseline).values()
            cells.append("" if name == baseline else _join(map(_speedup, times)))
        rows.append([name, *cells])
    heads = ("candidate", *(f"loss of {baseline}" for baseline in baselines))
    note = (
        "Cost of the baseline divided by the cost at which the candidate reaches its final loss, by seed; "
        "–: not within the budget; at once: before the first step."
    )
    return Table(heads, rows if baselines else [], numbers=range(1, len(heads)), title="Speed-up", note=note)


def _probe_table(runs: Mapping[str, Sequence[Result]]) -> Table:
    """One row per metric."""
    metrics = dict.fromkeys(
        (task, metric)
        for own in runs.values()
        for run in own
        for task, scores in run.get("probes", {}).items()
        for metric in scores
    )
    heads = ("probe", "metric", *runs)
    return Table(
        heads,
        [[task, metric, *(_join_probes(own, task, metric) for own in runs.values())] for task, metric in metrics],
        numbers=range(2, len(heads)),
        title="Probes (1,000 training examples unless stated)",
    )


def _join_probes(runs: Sequence[Result], task: str, metric: str) -> str:
    """Scores by seed; – for a seed without this probe."""
    scores = [run.get("probes", {}).get(task, {}).get(metric) for run in runs]
    return "" if all(score is None for score in scores) else _join("–" if x is None else f"{x:.1f}" for x in scores)


def _speedup(times: float | None) -> str:
    return "–" if times is None else "at once" if times == math.inf else f"{times:.2f}"


def _join(cells: Iterable[str]) -> str:
    return ", ".join(cells)
