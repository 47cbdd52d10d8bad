"""Results side by side: one group for each task, model and protocol, its seeds averaged; tasks are never averaged.

The spread over seeds (sample standard deviation) says how far a training with another seed may land. The 95 % intervals
of single results say something else: how far a score may move on other examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from launch.report.blocks import Table
from launch.report.gather import PAPER_MODEL, number, paper_metrics, trivial_of

Result = dict[str, Any]
LAST_WEIGHTS = "last weights"


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one task, model and protocol on the same examples, one for each seed."""

    name: str  # the model, with protocol or examples where a model has several
    results: list[Result]

    @property
    def first(self) -> Result:
        return self.results[0]

    def mean(self, metric: str) -> float | None:
        """Mean over the seeds; None where it is undefined for one of them."""
        values = [result["scores"][metric] for result in self.results]
        return None if None in values else fmean(values)

    def trivial(self, metric: str) -> float | None:
        """The trivial baseline, which no seed changes."""
        return trivial_of(self.first, metric)

    def gain(self, metric: str) -> float | None:
        """Points above the trivial baseline; a baseline without a defined score counts as 0."""
        value = self.mean(metric)
        return None if value is None else value - (self.trivial(metric) or 0.0)

    def interval(self, metric: str) -> tuple[float, float] | None:
        """From the lowest to the highest end of the seeds' 95 % intervals; None where one is missing."""
        found = [result["intervals"].get(metric) for result in self.results]
        if None in found or self.mean(metric) is None:
            return None
        return min(low for low, _ in found), max(high for _, high in found)

    def standing(self, metric: str) -> str:
        """Whether the whole interval lies above or below the trivial baseline, or what is open."""
        interval, baseline = self.interval(metric), self.trivial(metric) or 0.0
        if interval is None or interval[0] <= baseline <= interval[1]:
            return "open"
        return "above" if interval[0] > baseline else "below"

    def cell(self, metric: str) -> str:
        """``85.18``, or ``85.18 ± 0.31`` over seeds."""
        value = self.mean(metric)
        if value is None or len(self.results) == 1:
            return number(value)
        return f"{number(value)} ± {number(stdev(result['scores'][metric] for result in self.results))}"


def group_results(scores: Sequence[Result]) -> list[Group]:
    """Groups in the order of ``scores``; what was not trained and scored alike stays apart."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for found in scores:
        kind = (found["protocol"], weights_of(found), found["split"])
        groups.setdefault((found["task"], found["model"], *kind), []).append(found)
    protocols = {found["protocol"] for found in scores}
    return [Group(f"{key[1]}, {key[2]}" if len(protocols) > 1 else key[1], results) for key, results in groups.items()]


def weights_of(found: Result) -> str:
    """Which weights were scored, for people; ``selected`` is None where nothing was chosen."""
    selected = found.get("selected")
    return (
        f"best {selected['by']} of {selected['evaluations']} evaluations on the scored split"
        if selected
        else LAST_WEIGHTS
    )


def comparison(groups: Sequence[Group]) -> Table:
    """Task and metric by model, as in the paper's Table 36, which stands beside the official dev files."""
    models = list(dict.fromkeys(group.name for group in groups))
    by_task: dict[tuple[str, str], list[Group]] = {}  # other examples are another row
    for group in groups:
        by_task.setdefault((group.first["task"], group.first["split"]), []).append(group)
    is_official = any(group.first["is_official_dev"] for group in groups)
    rows = []
    for (task, _), alike in by_task.items():
        for metric in paper_metrics(alike[0].first):
            cells = ["; ".join(group.cell(metric) for group in alike if group.name == model) or "–" for model in models]
            row = [task, metric, *cells, number(alike[0].trivial(metric))]
            if is_official:
                first = alike[0].first
                row.append(number(first["paper_dev"][PAPER_MODEL][metric] if first["is_official_dev"] else None))
            rows.append(row)
    heads = ["task", "metric", *models, "trivial", *([f"{PAPER_MODEL}, Table 36"] if is_official else [])]
    seeds = sorted({len(group.results) for group in groups})
    spread = f", mean ± standard deviation over {' or '.join(map(str, seeds))} seeds" if seeds != [1] else ""
    return Table(heads, rows, numbers=range(2, len(heads)), title=f"Tasks by models{spread}")
