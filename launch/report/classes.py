"""Figures by class, type and length over all seeds, and samples of wrong predictions of one seed.

One encoder has all columns of its task's tables, as means over seeds; several stand side by side with the one figure
that matters. The settings beside the recipe's own keep theirs in their ``scores.json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from launch.numbers import count, number
from launch.report.blocks import Block, Table, Text
from launch.report.compare import Group

MOST_LINES = 12  # of one cell: a dialogue state may be wrong in all its slots
MOST_SAMPLES = 12  # tables of wrong predictions; more are the first model's alone
FIGURES = ("f1", "las", "exact_match", "joint_goal_acc", "mean error")  # of a class, the first that its table has
NOTE_ON_ERRORS = (
    "Where a prediction has several parts, only what differs is shown. A type in brackets is a run of I- tags that no "
    "B- begins: no entity for the metric. Labels of the benchmark may be wrong, too."
)
ORDER_OF_ERRORS = {"probability": "the most certain first", "distance": "the largest distance first"}
Row = dict[str, Any]


def class_tables(groups: Sequence[Group]) -> list[Block]:
    """A table for each task and title; of several models one figure each, and their confusion matrices."""
    blocks: list[Block] = []
    for task, alike in _by_task(groups).items():
        titles = dict.fromkeys(
            title for group in alike for title, rows in group.first.get("tables", {}).items() if rows
        )
        for title in titles:
            having = [group for group in alike if group.first.get("tables", {}).get(title)]
            if len(having) == 1 or _is_confusion(having[0].first["tables"][title]):
                blocks += [_whole(_named(f"{task}: {title}", one, alike), one, title, len(alike) > 1) for one in having]
            else:
                blocks.append(_side_by_side(f"{task}: {title}", having, title))
    return blocks


def _by_task(groups: Sequence[Group]) -> dict[str, list[Group]]:
    found: dict[str, list[Group]] = {}
    for group in groups:
        found.setdefault(group.task, []).append(group)
    return found


def _named(title: str, group: Group, alike: Sequence[Group]) -> str:
    seeds = f", mean of {len(group.results)} seeds" if len(group.results) > 1 else ""
    return title + (f", {group.name}" if len(alike) > 1 else "") + seeds


def _is_confusion(rows: Sequence[Row]) -> bool:
    heads = list(rows[0])
    return heads[1:] == [row[heads[0]] for row in rows]


def _over_seeds(group: Group, title: str) -> tuple[list[str], dict[str, list[Row]]]:
    """The heads of a table, and its rows of all seeds by their first cell."""
    rows: dict[str, list[Row]] = {}
    heads: dict[str, None] = {}
    for result in group.results:
        for row in result.get("tables", {}).get(title, []):
            heads |= dict.fromkeys(row)
            rows.setdefault(str(next(iter(row.values()))), []).append(row)
    return list(heads), rows


def _mean(values: Sequence[Any], with_spread: bool = True) -> str:
    """``81.25 ± 0.40`` of figures, a mean count of counts, the text of texts; a dash where one is undefined."""
    if None in values:
        return "–"
    if any(isinstance(value, str) for value in values):
        return str(values[0])
    mean = fmean(values)
    if all(isinstance(value, int) for value in values):
        return count(mean) if len(set(values)) == 1 else number(mean, 1)
    return number(mean) + (f" ± {number(stdev(values))}" if with_spread and len(values) > 1 else "")


def _whole(title: str, group: Group, name: str, is_one_of_several: bool) -> Table:
    """All columns of one group's table; a confusion matrix is open where it is the only one."""
    heads, by_name = _over_seeds(group, name)
    label, *figures = heads
    rows = [[one, *(_mean([row.get(head) for row in rows]) for head in figures)] for one, rows in by_name.items()]
    numeric = [
        place
        for place, head in enumerate(figures, start=1)
        if not any(isinstance(row.get(head), str) for some in by_name.values() for row in some)
        and any(row.get(head) is not None for some in by_name.values() for row in some)
    ]
    is_confusion = _is_confusion(group.first["tables"][name])
    sums = [[sum(row.get(head) or 0 for row in some) for head in figures] for some in by_name.values()] * is_confusion
    heat = [[n / max(1, sum(counts)) for n in counts] for counts in sums]
    return Table([label, *figures], rows, numeric, title=title, folded=is_one_of_several or not is_confusion, heat=heat)


def _side_by_side(title: str, groups: Sequence[Group], name: str) -> Table:
    """What the groups share (how often a class is gold), then the figure that matters of each."""
    found = [_over_seeds(group, name) for group in groups]
    heads = found[0][0]
    figure = next((one for one in FIGURES if one in heads), heads[-1])
    labels = list(dict.fromkeys(label for _, rows in found for label in rows))

    def cells(label: str, head: str) -> list[str]:
        return [_mean([row.get(head) for row in rows.get(label, [])] or [None]) for _, rows in found]

    shared = [head for head in heads[1:] if head != figure and all(len(set(cells(one, head))) == 1 for one in labels)]
    rows = [[label, *(cells(label, head)[0] for head in shared), *cells(label, figure)] for label in labels]
    columns = [heads[0], *shared, *(group.name for group in groups)]
    seeds = ", mean ± standard deviation over seeds" if any(len(group.results) > 1 for group in groups) else ""
    return Table(columns, rows, range(1, len(columns)), title=f"{title}, {figure}{seeds}", folded=True)


def error_tables(groups: Sequence[Group]) -> list[Block]:
    """Samples of what the first seed of each group got wrong; of many groups the first of each task."""
    having = [group for group in groups if group.first.get("errors")]
    few = having if len(having) <= MOST_SAMPLES else [alike[0] for alike in _by_task(having).values()]
    has_models = len({group.name for group in groups}) > 1
    has_seeds = any(len(group.results) > 1 for group in groups)
    blocks: list[Block] = [
        _errors(g.task + f", {g.name}" * has_models + f", seed {g.first['seed']}" * has_seeds, g.first["errors"])
        for g in few
    ]
    return [*blocks, Text(NOTE_ON_ERRORS, "note")] if blocks else []


def _errors(name: str, found: Row) -> Table:
    samples, sorted_by = found["samples"], found["sorted_by"]
    rows = []
    for sample in samples:
        value = [number(sample["value"])] if sorted_by else []
        texts = sample["texts"]  # the fields of an example, named where there are several
        text = "\n".join(f"{field}: {text}" if len(texts) > 1 else text for field, text in texts.items())
        rows.append([text, _lines(sample["gold"]), _lines(sample["predicted"]), *value, sample["guid"]])
    title = f"{name}: {count(len(samples))} of {count(found['wrong'])} wrong among {count(found['n'])}"
    title += f", {ORDER_OF_ERRORS.get(sorted_by, 'drawn by seed')}"
    heads = ["example", "right", "predicted", *([sorted_by] if sorted_by else []), "guid"]
    return Table(heads, rows, (3,) if sorted_by else (), title=title, folded=True, is_text=True)


def _lines(values: Sequence[str]) -> str:
    more = [f"… and {len(values) - MOST_LINES} more"] if len(values) > MOST_LINES else []
    return "\n".join([*values[:MOST_LINES], *more]) or "–"
