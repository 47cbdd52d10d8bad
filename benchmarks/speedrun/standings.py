"""Tables of a speedrun: what was learnt in the budget, and how soon each contestant had learnt what another did."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np

from launch.console import Table

Result = Mapping[str, Any]
SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the budget, at which curves are shown
BETWEEN = "both_sides_accuracy"  # of the counting baselines, the strongest


def spent_until(curve: Sequence[Mapping[str, float]], loss: float) -> float | None:
    """How much was spent when the held-out loss first was at ``loss`` or below; None where it never was.

    Between two points the loss falls on a straight line.

    >>> spent_until([{"spent": 10, "loss": 8.0}, {"spent": 20, "loss": 6.0}], 7.5)
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


def at_share(result: Result, share: float, key: str) -> float:
    """Loss or accuracy when this share of the budget was spent, on a straight line between two points; NaN before the
    first.

    >>> at_share({"curve": [{"spent": 10, "loss": 8.0}, {"spent": 20, "loss": 6.0}]}, 0.6, "loss")
    7.6
    """
    curve = result["curve"]
    spent = [point["spent"] for point in curve]
    return float(np.interp(share * spent[-1], spent, [point[key] for point in curve], left=math.nan))


def times_faster(results: Iterable[Result], name: str, reference: str) -> dict[int, float | None]:
    """By seed: the reference's whole run by what the contestant spent until it had the reference's last loss.

    None where it never had it, infinity where its first values had it at no price; seeds that only one of them ran are
    left out.
    """
    runs = {(result["contestant"], result["seed"]): result for result in results}
    found: dict[int, float | None] = {}
    for seed in sorted(seed for who, seed in runs if who == name and (reference, seed) in runs):
        theirs = runs[reference, seed]
        spent = spent_until(runs[name, seed]["curve"], theirs["loss"])
        whole = theirs["curve"][-1]["spent"]
        found[seed] = None if spent is None else whole / spent if spent else math.inf
    return found


def share_until_reading(result: Result, between: float) -> float | None:
    """The share of the budget after which more hidden pieces were right than counting between neighbours gives."""
    curve = result["curve"]
    spent = next((point["spent"] for point in curve if point["accuracy"] > between), None)
    return None if spent is None else spent / curve[-1]["spent"]


def standings(results: Sequence[Result], baselines: Mapping[str, float], references: Sequence[str]) -> list[Table]:
    """What was learnt and at what price, in the order of the losses; how many times sooner; the probes, if any."""
    by_name: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda result: (result["contestant"], result["seed"])):
        by_name.setdefault(result["contestant"], []).append(result)
    names = sorted(by_name, key=lambda name: mean(run["loss"] for run in by_name[name]))
    ordered = {name: by_name[name] for name in names}
    tables = [
        _learnt(ordered, baselines),
        _curves(ordered),
        _sooner(ordered, [name for name in references if name in ordered]),
    ]
    return [table for table in (*tables, _probed(ordered)) if table.rows]


def _learnt(runs: Mapping[str, Sequence[Result]], baselines: Mapping[str, float]) -> Table:
    heads = (
        "contestant",
        "seeds",
        "loss",
        "accuracy, %",
        "M tokens",
        "steps",
        "CPU s",
        "of it counting",
        "reads after",
    )
    rows = []
    for name, found in runs.items():
        reads = [share_until_reading(run, baselines[BETWEEN]) for run in found]
        cells = (
            _all(f"{run['seed']}" for run in found),
            _all(f"{run['loss']:.3f}" for run in found),
            _all(f"{100 * run['accuracy']:.1f}" for run in found),
            _all(f"{run['tokens'] / 1e6:.2f}" for run in found),
            _all(f"{run['steps']:,}" for run in found),
            _all(f"{run['seconds']:,.0f}" for run in found),
            _all(f"{run['counting_seconds']:.0f}" for run in found),
            _all("never" if share is None else f"{share:.0%}" for share in reads),
        )
        rows.append([name, *cells])
    guesses = ", ".join(
        f"{key.removesuffix('_accuracy').replace('_', ' ')} {100 * n:.1f} %" for key, n in baselines.items()
    )
    note = (
        f"Held-out loss (nats) and accuracy of hidden pieces at the end; counting reaches {guesses}. Reads after: the "
        "share of the budget after which it is right more often than the last of these."
    )
    return Table(heads, rows, numbers=range(1, len(heads)), title="Learnt in the budget", note=note)


def _curves(runs: Mapping[str, Sequence[Result]]) -> Table:
    rows = []
    for name, found in runs.items():
        cells = []
        for share in SHARES:
            loss, accuracy = (mean(at_share(run, share, key) for run in found) for key in ("loss", "accuracy"))
            cells.append("–" if math.isnan(loss) else f"{loss:.2f}\n{accuracy:.1%}")
        rows.append([name, *cells])
    heads = ("contestant", *(f"{share:.0%}" for share in SHARES))
    note = "Held-out loss and accuracy after these shares of the budget, means of the seeds; –: before its first point."
    return Table(heads, rows, numbers=range(1, len(heads)), title="On the way", note=note)


def _sooner(runs: Mapping[str, Sequence[Result]], references: Sequence[str]) -> Table:
    results = [run for found in runs.values() for run in found]
    rows = []
    for name in runs:
        cells = []
        for reference in references:
            times = times_faster(results, name, reference).values()
            cells.append("" if name == reference else _all(map(_times, times)))
        rows.append([name, *cells])
    heads = ("contestant", *(f"loss of {reference}" for reference in references))
    note = (
        "How many times sooner it had the loss that another had at the end, by seed; –: not in the budget; at once: "
        "before the first step."
    )
    return Table(heads, rows if references else [], numbers=range(1, len(heads)), title="Times sooner", note=note)


def _probed(runs: Mapping[str, Sequence[Result]]) -> Table:
    """A row for each metric, as there are more of them than contestants."""
    asked = dict.fromkeys(
        (task, metric)
        for found in runs.values()
        for run in found
        for task, scores in run.get("probes", {}).items()
        for metric in scores
    )
    heads = ("probe", "metric", *runs)
    return Table(
        heads,
        [[task, metric, *(_all_probed(found, task, metric) for found in runs.values())] for task, metric in asked],
        numbers=range(2, len(heads)),
        title="Probes, of 1,000 examples where no other number stands",
    )


def _all_probed(runs: Sequence[Result], task: str, metric: str) -> str:
    """Scores by seed; –: of a seed that was not probed so, where others were."""
    scores = [run.get("probes", {}).get(task, {}).get(metric) for run in runs]
    return "" if all(score is None for score in scores) else _all("–" if x is None else f"{x:.1f}" for x in scores)


def _times(found: float | None) -> str:
    return "–" if found is None else "at once" if found == math.inf else f"{found:.2f}"


def _all(cells: Iterable[str]) -> str:
    return ", ".join(cells)
