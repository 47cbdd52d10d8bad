"""What searches tried: the best so far over the trials, what the best of k is worth, and which values scored well.

A score of a trial is on what chose it, not on dev, unless the line says so; the best settings have theirs among the
results, as ``best-of-search``. Parallel coordinates have an axis for each hyperparameter that was searched, its values
in order at equal distances, and a line for each trial with a score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from markupsafe import escape

from corpus.documents.escaping import escape_controls
from launch.numbers import count, duration, number
from launch.recipe import SEARCH_FOLDER
from launch.report.blocks import (
    BOTTOM,
    LARGE,
    LEFT,
    TOP,
    Block,
    Line,
    Pictures,
    Section,
    Table,
    Text,
    line_chart,
)
from launch.report.gather import read_json, read_lines
from launch.report.tables import HYPERPARAMETERS

MOST_ROWS = 10
BUDGETS = (1, 2, 5, 10, 20, 50, 100, 200)
WITHIN = (3.0, 1.0, 0.5)  # points below the best
LEFT_AXIS = 40  # pixels
BEST_SHARE = 0.75  # trials above are drawn in colour
SPREAD = 7.0  # pixels over which lines of one value are spread
NOTE = (
    "The expected maximum is what the best of so many trials scores on average (Dodge et al. 2019): unlike the best "
    "itself it does not grow with the number of trials that were made. It is known of trials that were drawn alike: "
    "not of TPE's, nor where some were ended early."
)
NOTE_ON_DEV = "Chosen on dev, on which the best is then scored: its score is too high, the more so the more trials."
Study = tuple[dict[str, Any], list[dict[str, Any]]]  # best.json, trials


def read_studies(run: Path) -> list[Study]:
    """Every search below a run, with what is known of its trials so far."""
    from finetune.config import place_of

    found = [
        (read_json(path), read_lines(path.with_name("trials.jsonl")))
        for path in sorted((run / SEARCH_FOLDER).glob("*/*/best.json"))
    ]
    return sorted((study for study in found if study[1]), key=lambda study: place_of(study[0]["task"]))


def search_table(studies: Sequence[Study], title: str = "") -> Table:
    """A row for each study: what was tried, and the best."""
    rows = [
        [about["task"], about["model"], about["search"]["method"], f"{about['trials']} of {about['search']['size']}",
         about["metric"], number(about["best"]["score"] if about["best"] else None), about["scored_on"],
         say(about["best"]["values"]) if about["best"] else "–", duration(about["seconds"])]
        for about, _ in studies
    ]  # fmt: skip
    heads = ["task", "model", "method", "trials", "metric", "best", "chosen on", "values", "time"]
    return Table(heads, rows, numbers=(3, 5, 8), title=title)


def search_sections(run: Path) -> list[Section]:
    """One section, where anything was searched."""
    studies = read_studies(run)
    if not studies:
        return []
    blocks: list[Block] = [search_table(studies)]
    if any(about["selected_on"] == "dev" for about, _ in studies):
        blocks.append(Text(NOTE_ON_DEV, "warning"))
    for about, trials in studies:
        blocks += _describe(about, trials)
    return [Section("Search", [*blocks, Text(NOTE, "note")])]


def say(values: Mapping[str, Any]) -> str:
    """``rate 3e-05, batch 16``."""
    return ", ".join(f"{HYPERPARAMETERS.get(name, name)} {_short(value)}" for name, value in values.items())


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _describe(about: Mapping[str, Any], trials: Sequence[dict[str, Any]]) -> list[Block]:
    """Charts and tables of one study."""
    from finetune.search.maximum import expected_maximum

    scores = [trial["score"] or 0.0 for trial in trials]  # what has none counts as 0, as in best.json
    complete = [s if trial["state"] == "complete" else 0.0 for s, trial in zip(scores, trials, strict=True)]
    numbers = range(1, 1 + len(trials))
    lines = [Line(numbers, list(accumulate(complete, max)), colour=0)]
    is_drawn = about["expected_maximum"] is not None
    if is_drawn:
        lines.append(Line(numbers, [expected_maximum(scores, k) for k in numbers], colour=1))
    also = "expected maximum; " if is_drawn else ""
    keys = [
        ("line line0", "best so far; of the trials the best"),
        ("line line1", f"{also}of the trials the best quarter"),
    ]
    charts = [
        (f"{about['metric']} on what chooses", line_chart(lines, "trials", about["metric"])),
        ("Values of the trials", parallel_coordinates(about["search"]["space"], trials, about["metric"])),
    ]
    states = ", ".join(f"{about[state]} {state}" for state in ("complete", "pruned", "failed") if about[state])
    return [
        Text(f"{about['task']}, {about['model']}", "heading"),
        Text(f"{states}; each score is on {about['scored_on']}."),
        Pictures(charts, keys),
        *([_budgets(scores, about["seconds"] / len(trials))] if is_drawn else []),
        _best_trials(about, trials),
    ]


def _budgets(scores: Sequence[float], seconds: float) -> Table:
    """What so many trials are worth, and how many a level needs, with their time."""
    from finetune.search.maximum import expected_maximum, spread_of_maximum, trials_to_reach

    def row(k: int, said: str) -> list[str]:
        worth = f"{number(expected_maximum(scores, k))} ± {number(spread_of_maximum(scores, k))}"
        return [said, count(k), worth, duration(k * seconds)]

    best = max(scores)
    rows = [row(k, f"the best of {k}") for k in BUDGETS if k <= len(scores)]
    needed = [(points, trials_to_reach(scores, best - points)) for points in WITHIN]
    rows += [row(k, f"within {points:g} of the best, {number(best)}") for points, k in needed if k is not None]
    heads = ["budget", "trials", "expected maximum", "time"]
    return Table(heads, rows, numbers=(1, 2, 3), title="What a budget is worth")


def _best_trials(about: Mapping[str, Any], trials: Sequence[dict[str, Any]]) -> Table:
    names = list(about["search"]["space"])
    known = [trial for trial in trials if trial["score"] is not None]
    best = sorted(known, key=lambda trial: (trial["state"] != "complete", -trial["score"], trial["number"]))[:MOST_ROWS]
    rows = [
        [str(trial["number"]), number(trial["score"]), *(_short(trial["values"][name]) for name in names),
         trial["state"], duration(trial["seconds"])]
        for trial in best
    ]  # fmt: skip
    heads = ["trial", about["metric"], *(HYPERPARAMETERS.get(name, name) for name in names), "state", "time"]
    numbers = (*range(2 + len(names)), len(heads) - 1)
    return Table(heads, rows, numbers=numbers, title=f"The best {len(rows)} of {len(trials)} trials", folded=True)


def parallel_coordinates(
    space: Mapping[str, Sequence[Any]], trials: Sequence[Mapping[str, Any]], metric: str, size: tuple[int, int] = LARGE
) -> str:
    """A line a trial over the axes of what was searched, the score last; the best on top."""
    axes = {name: sorted(values, key=lambda value: (isinstance(value, str), value)) for name, values in space.items()}
    axes = {name: values for name, values in axes.items() if len(values) > 1}
    known = sorted((trial for trial in trials if trial["score"] is not None), key=lambda trial: trial["score"])
    low, high = (known[0]["score"], known[-1]["score"]) if known else (0.0, 1.0)
    floor, right = size[1] - BOTTOM + 14, size[0] - LEFT
    x = [LEFT_AXIS + place * (right - LEFT_AXIS) / len(axes) for place in range(len(axes) + 1)] if axes else [right]

    def y(share: float) -> float:
        return floor - (floor - TOP - SPREAD) * share - SPREAD / 2

    marks = [
        *((at, place / (len(values) - 1), _short(value))
          for at, values in zip(x, axes.values(), strict=False) for place, value in enumerate(values)),
        (x[-1], 0.0, f"{low:.1f}"), (x[-1], 1.0, f"{high:.1f}"),
    ]  # fmt: skip
    names = [*(HYPERPARAMETERS.get(name, name) for name in axes), metric]
    shapes = [
        *(f'<path d="M{at:.1f} {TOP}V{floor}"/>' for at in x),
        *(_path(trial, axes, x, y, (trial["score"] - low) / ((high - low) or 1.0), rank / len(known))
          for rank, trial in enumerate(known, 1)),
        *(f'<text class="over" x="{at - 4:.1f}" y="{y(share) + 3:.1f}">{escape(escape_controls(text))}</text>'
          for at, share, text in marks),
        *(f'<text x="{at:.1f}" y="{floor + 12}">{escape(escape_controls(name))}</text>'
          for at, name in zip(x, names, strict=True)),
    ]  # fmt: skip
    label = escape(escape_controls(f"values of {len(known)} trials by {metric}"))
    box = f'viewBox="0 0 {size[0]} {size[1]}"'
    return f'<svg class="plot" {box} role="img" aria-label="{label}">{"".join(shapes)}</svg>'


def _path(
    trial: Mapping[str, Any], axes: Mapping[str, list[Any]], x: Sequence[float], y: Callable[[float], float],
    score: float, rank: float,
) -> str:  # fmt: skip
    """A trial's line; ``score`` and ``rank`` as shares of the highest."""
    aside = (trial["number"] * 0.618 % 1 - 0.5) * SPREAD  # so that lines of equal values are seen apart
    shares = [values.index(trial["values"][name]) / (len(values) - 1) for name, values in axes.items()]
    heights = [*(y(share) + aside for share in shares), y(score)]
    points = "L".join(f"{at:.1f} {up:.1f}" for at, up in zip(x, heights, strict=True))
    kind = ' class="first"' if rank == 1 else ' class="second"' if rank > BEST_SHARE else ""
    return f'<path{kind} d="M{points}"/>'
