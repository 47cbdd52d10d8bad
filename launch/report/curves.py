"""Learning curves: the loss by epoch, the score by step where there were evaluations; a line is a mean over seeds.

The band around a line reaches from the lowest to the highest seed. A chart holds the models of a task under the
recipe's own settings, or the settings of one model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from launch.recipe import OWN_MODEL
from launch.report.blocks import COLOURS, SMALL, Block, Line, Pictures, Text, line_chart
from launch.report.compare import Group
from launch.report.gather import Result, settings_of
from launch.report.tables import RECIPE, own_groups

MOST_CHARTS = 16  # of settings; more are those of one model
Curve = list[tuple[float, float]]


def loss_of(found: Result) -> Curve:
    """Mean training loss of each epoch, from 1."""
    return [(float(epoch), loss) for epoch, loss in enumerate(found.get("losses") or [], start=1)]


def score_of(found: Result) -> Curve:
    """Score of each evaluation by step, the undefined ones left out."""
    return [(float(step), score) for step, score in found.get("evaluations") or [] if score is not None]


def learning_curves(groups: Sequence[Group]) -> list[Block]:
    """Charts of the models, then of the settings."""
    by_task = _split(own_groups(groups), lambda group: group.task)
    ablated = [group for group in groups if any(_same(group, other) and other is not group for other in groups)]
    several = len({group.first["model"] for group in ablated}) > 1
    by_model = _split(ablated, lambda group: f"{group.task}, {group.first['model']}" if several else group.task)
    if len(by_model) > MOST_CHARTS:
        models = [group.first["model"] for group in ablated]
        one = OWN_MODEL if OWN_MODEL in models else models[0]
        by_model = {caption: some for caption, some in by_model.items() if some[0].first["model"] == one}
    return [
        *_charts("Training loss by epoch", by_task, loss_of, lambda group: group.name, from_zero=True),
        *_charts("Score by step, on the scored split", by_task, score_of, lambda group: group.name),
        *_charts("Training loss by epoch and settings", by_model, loss_of, _settings, from_zero=True),
    ]


def _same(group: Group, other: Group) -> bool:
    return (group.task, group.first["model"]) == (other.task, other.first["model"])


def _settings(group: Group) -> str:
    return settings_of(group.first) or RECIPE


def _split(groups: Sequence[Group], key: Callable[[Group], str]) -> dict[str, list[Group]]:
    parts: dict[str, list[Group]] = {}
    for group in groups:
        parts.setdefault(key(group), []).append(group)
    return parts


def _charts(
    title: str, parts: dict[str, list[Group]], curve: Callable[[Result], Curve], name: Callable[[Group], str],
    from_zero: bool = False,
) -> list[Block]:  # fmt: skip
    """A chart for each part that has a curve; lines of one name have one colour in all of them."""
    names = list(dict.fromkeys(name(group) for groups in parts.values() for group in groups))
    colours = {one: place for place, one in enumerate(names[:COLOURS])}
    up = title.partition(" by ")[0].lower()
    charts = []
    for caption, groups in parts.items():
        lines = [_line(group, curve, colours[name(group)]) for group in groups if name(group) in colours]
        if any(line.places for line in lines):
            charts.append((caption, line_chart(lines, "", up, from_zero=from_zero, size=SMALL)))
    if not charts:
        return []
    keys = [(f"line line{place}", one) for one, place in colours.items()] if len(names) > 1 else []
    left = f" Without {', '.join(names[COLOURS:])}: a chart has {COLOURS} colours." if len(names) > COLOURS else ""
    seeds = any(len(group.results) > 1 for groups in parts.values() for group in groups)
    note = "Lines are means over seeds, bands reach from the lowest to the highest." if seeds else ""
    notes = [Text((note + left).strip(), "note")] if note or left else []
    return [Text(title, "heading"), Pictures(charts, keys, is_small=True), *notes]


def _line(group: Group, curve: Callable[[Result], Curve], colour: int) -> Line:
    """Mean, lowest and highest value at the places that all seeds have."""
    found = [dict(curve(result)) for result in group.results]
    places = [place for place in found[0] if all(place in one for one in found)] if found else []
    values = [[one[place] for one in found] for place in places]
    band = [(min(some), max(some)) for some in values] if len(found) > 1 else []
    return Line(places, [fmean(some) for some in values], colour=colour, band=band)
