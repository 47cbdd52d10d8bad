"""Results side by side: one group for each task, model, settings and protocol, its seeds averaged, tasks never.

The spread over seeds (sample standard deviation) says how far a training with another seed may land. The 95 % intervals
of single results say something else: how far a score may move on other examples. The interval of several seeds is for
both together, as in ``finetune.score.significance``, with what the examples do to one seed for what they do to all: a
little too wide, but made of the results alone. ``differences`` reads the predictions and has it exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

from finetune.score.bootstrap import Z_95, lowest_value
from finetune.score.significance import Part, reach
from launch.numbers import number
from launch.report.gather import Result, paper_metrics, settings_of, trivial_of

LAST_WEIGHTS = "last weights"


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one task, model, settings and protocol on the same examples, one for each seed."""

    name: str  # the model, with its settings and protocol where there are several
    results: list[Result]

    @property
    def first(self) -> Result:
        return self.results[0]

    @property
    def task(self) -> str:
        return str(self.first["task"])

    def mean(self, metric: str) -> float | None:
        """Mean over the seeds; None where it is undefined for one of them."""
        values = [result["scores"][metric] for result in self.results]
        return None if None in values else fmean(values)

    def trivial(self, metric: str) -> float | None:
        """The trivial baseline, which no seed changes."""
        return trivial_of(self.first, metric)

    def gain(self, metric: str) -> str:
        """Points above the trivial baseline; a baseline without a defined score counts as 0."""
        value = self.mean(metric)
        return "undefined" if value is None else f"{value - (self.trivial(metric) or 0.0):+.1f}"

    def interval(self, metric: str) -> tuple[float, float] | None:
        """95 % for new seeds and examples; of a single seed its own, for new examples; None where one is missing."""
        found = [result["intervals"].get(metric) for result in self.results]
        value = self.mean(metric)
        if None in found or value is None:
            return None
        if len(found) == 1:
            return tuple(found[0])
        scores = [result["scores"][metric] for result in self.results]
        sides = (
            max(x - low, high - x) for x, (low, high) in zip(scores, found, strict=True)
        )  # one may end at 0 or 100
        examples = Part(fmean((side / Z_95) ** 2 for side in sides), max(1, self.first["n"] - 1))
        far = reach([Part(variance(scores) / len(scores), len(scores) - 1), examples])
        return max(value - far, lowest_value(metric)), min(value + far, 100.0)

    def standing(self) -> str:
        """Whether the headline's whole interval lies above or below the trivial baseline, or what is open."""
        metric = self.first["headline"]
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
        name = ", ".join(filter(None, (found["model"], settings_of(found))))
        key = (found["task"], name, found["protocol"], weights_of(found), found["split"])
        groups.setdefault(key, []).append(found)
    has_protocols = len({found["protocol"] for found in scores}) > 1
    return [Group(f"{key[1]}, {key[2]}" if has_protocols else key[1], results) for key, results in groups.items()]


def weights_of(found: Result) -> str:
    """Which weights were scored, for people."""
    chosen = found.get("selected")
    return f"best {chosen['by']} of {chosen['evaluations']} evaluations on the scored split" if chosen else LAST_WEIGHTS


def verdict_on_scores(scores: Sequence[Result]) -> list[str]:
    """On which tasks a model is better than the trivial baseline, by the first metric, beyond what chance explains."""
    groups = group_results(scores)
    names = list(dict.fromkeys(group.name for group in groups))
    return [
        (f"{name}: {line[0].lower()}{line[1:]}" if len(names) > 1 else line)
        for name in names
        for line in _verdict([group for group in groups if group.name == name])
    ]


def _verdict(groups: Sequence[Group]) -> list[str]:
    def details(standing: str) -> str:
        return ", ".join(
            f"{group.task} ({', '.join(f'{metric} {group.gain(metric)}' for metric in paper_metrics(group.first))})"
            for group in groups
            if group.standing() == standing
        )

    above = [f"{group.task} {group.gain(group.first['headline'])}" for group in groups if group.standing() == "above"]
    won = f"Better than the trivial baseline on {len(above)} of {len(groups)} tasks, the whole 95 % interval above it: "
    lines = [f"{won}{', '.join(above)}."] if above else []
    for standing, said in (("open", "Not distinguishable from it by the first metric"), ("below", "Worse than it")):
        lines += [f"{said}: {found}."] if (found := details(standing)) else []
    return lines
