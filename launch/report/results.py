"""The results of a run, read once and grouped: the record that every table, page and file of the report renders.

A result is one ``scores.json``: the scores of one task, model, settings and seed. A group holds the seeds of results
that were trained and scored in the same way. Scores are averaged over seeds, never over tasks.

The interval of a single result covers other examples. The interval of several seeds covers other seeds and other
examples (``finetune.score.significance``). It is computed from the scores alone, so it is slightly too wide: it uses
the variance that resampled examples cause in one seed, not only the part that all seeds share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev, variance
from typing import Any

from corpus.documents.atomic_files import read_json_object
from finetune.config import FRESH
from finetune.data.custom_files import read_json_lines
from finetune.metrics import interval_text
from finetune.queue.jobs import RESULTS, digest
from finetune.score.significance import Part, interval_around, variance_of
from finetune.task_names import sort_key
from launch.numbers import group_by, number
from launch.recipe import OWN_MODEL

Result = dict[str, Any]  # the content of a scores.json
PAPER_MODEL = "klue/roberta-base"
LAST_WEIGHTS = "last weights"
MAX_NAMES = 8  # of stale results
BELOW = "†"  # marks a score below the counting baseline
TUNED_ON = {
    "train": "hyperparameters tuned on a part of train",
    "dev": "hyperparameters tuned on the scored examples",
}


def read_results(run: Path) -> Results:
    """All results of a run, those of encoders whose files have changed since apart."""
    parts = group_by(read_scores(run), lambda result: _is_stale(result, run))
    return Results(parts.get(False, []), parts.get(True, []))


def read_scores(run: Path) -> list[Result]:
    """All results below ``finetune/``, tasks in the paper's order, custom tasks last.

    Each result gets two more keys: its ``folder``, and ``errors``, its samples of wrong predictions (None without any).
    """
    results = []
    for path in sorted(path for pattern in RESULTS for path in (run / "finetune").glob(pattern)):
        errors = path.with_name("errors.json")
        more = {"errors": read_json(errors) if errors.is_file() else None, "folder": str(path.parent)}
        results.append(read_json(path) | more)
    return sorted(results, key=lambda r: (sort_key(r["task"]), r["model"], settings_of(r), r["seed"]))


def _is_stale(result: Result, run: Path) -> bool:
    """Whether the files of the encoder have changed since the training."""
    name = result["model"].removeprefix(FRESH)
    fresh = FRESH if name != result["model"] else ""
    folder = run / name if name == OWN_MODEL else Path(name)
    return "encoder" in result and folder.is_dir() and result["encoder"] != digest(f"{fresh}{folder}")


@dataclass(frozen=True)
class Results:
    """Results of encoders as they are now, one record a training, and those whose encoder has changed (``stale``)."""

    scores: Sequence[Result]
    stale: Sequence[Result] = field(default=())

    @cached_property
    def groups(self) -> list[Group]:
        """Groups of seeds in the order of ``scores``."""
        parts = group_by(self.scores, lambda r: (r["task"], name_of(r), r["protocol"], weights_of(r), r["split"]))
        has_protocols = len({result["protocol"] for result in self.scores}) > 1
        return [Group(f"{key[1]}, {key[2]}" if has_protocols else key[1], some) for key, some in parts.items()]

    @cached_property
    def main(self) -> list[Group]:
        """The groups with the settings of the recipe; all groups of a task and model that has none of these."""
        having = {(group.task, group.model) for group in self.groups if not group.settings}
        return [g for g in self.groups if not g.settings or (g.task, g.model) not in having]

    @property
    def stale_note(self) -> str:
        """A sentence that names the stale results; empty without any."""
        if not self.stale:
            return ""
        names = [f"{result['task']}, {name_of(result)}, seed {result['seed']}" for result in self.stale]
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        return (
            "Not shown because the files of their encoders have changed: "
            f"{'; '.join(names[:MAX_NAMES])}{more}. Run finetune again with these seeds and settings, or delete their "
            "folders."
        )


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one task, model, settings and protocol on the same examples, one for each seed."""

    name: str  # the model, with its settings and protocol if there are several
    results: list[Result]

    @property
    def first(self) -> Result:
        return self.results[0]

    @property
    def task(self) -> str:
        return str(self.first["task"])

    @property
    def model(self) -> str:
        return str(self.first["model"])

    @property
    def settings(self) -> str:
        return settings_of(self.first)

    @property
    def title(self) -> str:
        """The name; for an ensemble with the number of its members."""
        members = self.first.get("members")
        return f"{self.name} (ensemble of {len(members)})" if members else self.name

    def mean(self, metric: str) -> float | None:
        """Mean over the seeds; None if it is undefined for one of them."""
        values = [result["scores"][metric] for result in self.results]
        return None if None in values else fmean(values)

    def gain(self, metric: str) -> str:
        """Points above the better baseline."""
        value = self.mean(metric)
        return "undefined" if value is None else f"{value - better_baseline(self.first, metric):+.1f}"

    def interval(self, metric: str) -> tuple[float, float] | None:
        """95 % interval for new seeds and examples; None if it is missing for one seed."""
        intervals = [result["intervals"].get(metric) for result in self.results]
        value = self.mean(metric)
        if None in intervals or value is None:
            return None
        if len(intervals) == 1:
            return tuple(intervals[0])
        scores = [result["scores"][metric] for result in self.results]
        examples = fmean(variance_of(*pair, metric) for pair in zip(scores, intervals, strict=True))
        parts = [Part(variance(scores) / len(scores), len(scores) - 1), Part(examples, max(1, self.first["n"] - 1))]
        return interval_around(value, parts, self.first["n"], metric)

    def cell(self, metric: str) -> str:
        """``85.18``, or ``85.18 ± 0.31`` over seeds."""
        value = self.mean(metric)
        if value is None or len(self.results) == 1:
            return number(value)
        return f"{number(value)} ± {number(stdev(result['scores'][metric] for result in self.results))}"

    def cell_with_interval(self, metric: str, *, count_seeds: bool = False) -> str:
        """The cell, and below it its interval and optionally the number of seeds."""
        interval = self.interval(metric)
        parts = [interval_text(interval, 1)] if interval else []
        parts += [f"{len(self.results)} seeds"] if count_seeds and len(self.results) > 1 else []
        marked = self.cell(metric) + below(self.mean(metric), self.first, metric)
        return "\n".join([marked, *([", ".join(parts)] if parts else [])])

    @property
    def selection(self) -> str:
        """What was selected by a score, over all seeds; a dash if nothing was."""
        return "; ".join(dict.fromkeys(map(selection_of, self.results)))


def settings_of(result: Mapping[str, Any]) -> str:
    """The name of a result's settings; empty for the recipe's own."""
    return str(result.get("settings", ""))


def name_of(result: Mapping[str, Any]) -> str:
    """``model``, or ``model, settings``."""
    return ", ".join(filter(None, (result["model"], settings_of(result))))


def paper_metrics(result: Mapping[str, Any]) -> list[str]:
    """The metrics of a result that the paper's Table 36 has, in its order; all metrics of a custom task."""
    return list(result["paper_dev"].get(PAPER_MODEL, result["scores"]))


def baselines_of(result: Mapping[str, Any], metric: str) -> tuple[float | None, float | None]:
    """Scores of the best constant prediction and of the counting baseline; None if undefined, or in an older result,
    whose constant is the majority class.

    AUPRC has no constant: the reference code joins the two points of its curve by a line, so the area is about 50 for
    any labels.
    """
    constant = None if metric == "auprc" else result.get("constant", result.get("trivial", {})).get(metric)
    return constant, result.get("counting", {}).get(metric)


def better_baseline(result: Mapping[str, Any], metric: str) -> float:
    """The better of the two baselines; 0 if none has a defined score."""
    return max((value for value in baselines_of(result, metric) if value is not None), default=0.0)


def below(value: float | None, result: Mapping[str, Any], metric: str) -> str:
    """The mark of a score below the counting baseline."""
    counting = baselines_of(result, metric)[1]
    return f" {BELOW}" if value is not None and counting is not None and value < counting else ""


def weights_of(result: Mapping[str, Any]) -> str:
    """Which weights were scored."""
    selected = result.get("selected")
    if not selected:
        return LAST_WEIGHTS
    return f"best {selected['by']} of {selected['evaluations']} evaluations on the scored examples"


def selection_of(result: Mapping[str, Any]) -> str:
    """What was selected by which score, of weights and hyperparameters; a dash in the normal case, nothing."""
    weights, tuned = weights_of(result), TUNED_ON.get(result.get("searched_on") or "")
    return "; ".join([*([weights] if weights != LAST_WEIGHTS else []), *([tuned] if tuned else [])]) or "–"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object that a stage wrote."""
    return read_json_object(path, f"delete {path.parent} and run again")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a .jsonl file; none if there is no such file."""
    return [dict(record.values) for record in read_json_lines(path)] if path.is_file() else []
