"""Figures by class, type and length over all seeds, and samples of wrong predictions of one seed.

With one encoder a table has all columns, as means over seeds; with several it compares their most important column.
Results with other settings than the recipe's keep their tables in their ``scores.json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from launch.numbers import count, group_by, number
from launch.report.blocks import NOTES, Block, Table, Text
from launch.report.results import Group

MAX_LINES = 12  # of one cell: a dialogue state may be wrong in all its slots
MAX_SAMPLES = 12  # tables of wrong predictions; if there are more, only those of the first model are shown
COMPARED = ("f1", "las", "exact_match")  # the column to compare: the first present
ORDER_OF_ERRORS = {"probability": "most confident first", "distance": "largest distance first"}
Row = dict[str, Any]


def class_tables(groups: Sequence[Group]) -> list[Block]:
    """A table for each task and title; with several models one column each, and one confusion matrix each."""
    blocks: list[Block] = []
    for task, alike in group_by(groups, lambda group: group.task).items():
        tables = (table for group in alike for table in group.first.get("tables", {}).items())
        for title in dict.fromkeys(title for title, rows in tables if rows):
            having = [group for group in alike if group.first.get("tables", {}).get(title)]
            if len(having) > 1 and not _is_confusion(having[0].first["tables"][title]):
                blocks.append(_comparison(f"{task}: {title}", having, title))
                continue
            for group in having:
                model = f", {group.name}" if len(alike) > 1 else ""
                seeds = f", mean of {len(group.results)} seeds" if len(group.results) > 1 else ""
                blocks.append(_full_table(f"{task}: {title}{model}{seeds}", group, title, len(alike) > 1))
    return blocks


def _is_confusion(rows: Sequence[Row]) -> bool:
    heads = list(rows[0])
    return heads[1:] == [row[heads[0]] for row in rows]


def _over_seeds(group: Group, title: str) -> tuple[list[str], dict[str, list[Row]]]:
    """The heads of a table, and its rows of all seeds by their first cell."""
    rows = [row for result in group.results for row in result.get("tables", {}).get(title, [])]
    heads = dict.fromkeys(head for row in rows for head in row)
    return list(heads), group_by(rows, lambda row: str(next(iter(row.values()))))


def _mean(values: Sequence[Any]) -> str:
    """``81.25 ± 0.40`` for scores, the mean for counts, the text itself for texts; a dash if one is undefined."""
    if None in values:
        return "–"
    if any(isinstance(value, str) for value in values):
        return str(values[0])
    mean = fmean(values)
    if all(isinstance(value, int) for value in values):
        return count(mean) if len(set(values)) == 1 else number(mean, 1)
    return number(mean) + (f" ± {number(stdev(values))}" if len(values) > 1 else "")


def _full_table(title: str, group: Group, name: str, is_one_of_several: bool) -> Table:
    """All columns of one group; a confusion matrix is open if it is the only one."""
    heads, by_name = _over_seeds(group, name)
    columns = heads[1:]
    rows = [[cell, *(_mean([row.get(head) for row in rows]) for head in columns)] for cell, rows in by_name.items()]
    kinds = [{type(row.get(head)) for rows in by_name.values() for row in rows} - {type(None)} for head in columns]
    numeric = [place for place, types in enumerate(kinds, start=1) if types and str not in types]
    is_confusion = _is_confusion(group.first["tables"][name])
    sums = [[sum(row.get(head) or 0 for row in rows) for head in columns] for rows in by_name.values()] * is_confusion
    heat = [[n / max(1, sum(counts)) for n in counts] for counts in sums]
    heads = [f"{heads[0]} ↓ predicted →", *columns] if is_confusion else heads
    return Table(heads, rows, numeric, title=title, folded=is_one_of_several or not is_confusion, heat=heat)


def _comparison(title: str, groups: Sequence[Group], name: str) -> Table:
    """The columns that all groups share, such as the number of gold labels, then the compared column of each group."""
    tables = [_over_seeds(group, name) for group in groups]
    heads = tables[0][0]
    compared = next((head for head in COMPARED if head in heads), heads[-1])
    labels = list(dict.fromkeys(label for _, rows in tables for label in rows))

    def cells(label: str, head: str) -> list[str]:
        return [_mean([row.get(head) for row in rows.get(label, [])] or [None]) for _, rows in tables]

    shared = [h for h in heads[1:] if h != compared and all(len(set(cells(label, h))) == 1 for label in labels)]
    rows = [[label, *(cells(label, head)[0] for head in shared), *cells(label, compared)] for label in labels]
    columns = [heads[0], *shared, *(group.name for group in groups)]
    seeds = ", mean ± standard deviation over seeds" if any(len(group.results) > 1 for group in groups) else ""
    return Table(columns, rows, range(1, len(columns)), title=f"{title}, {compared}{seeds}", folded=True)


def error_tables(groups: Sequence[Group]) -> list[Block]:
    """Samples of wrong predictions of the first seed of each group; with many groups only the first of each task."""
    having = [group for group in groups if group.first.get("errors")]
    first = [alike[0] for alike in group_by(having, lambda group: group.task).values()]
    has_models = len({group.name for group in groups}) > 1
    has_seeds = any(len(group.results) > 1 for group in groups)
    blocks: list[Block] = []
    for group in having if len(having) <= MAX_SAMPLES else first:
        errors = group.first["errors"]
        samples, sorted_by = errors["samples"], errors["sorted_by"]
        rows = []
        for sample in samples:
            value = [number(sample["value"])] if sorted_by else []
            texts = sample["texts"]  # the fields of an example; their names are shown if there are several
            text = "\n".join(f"{field}: {text}" if len(texts) > 1 else text for field, text in texts.items())
            rows.append([text, _lines(sample["gold"]), _lines(sample["predicted"]), *value, sample["guid"]])
        title = group.task + f", {group.name}" * has_models + f", seed {group.first['seed']}" * has_seeds
        title += f": {count(len(samples))} of {count(errors['wrong'])} errors in {count(errors['n'])} examples"
        title += f", {ORDER_OF_ERRORS.get(sorted_by, 'random sample')}"
        heads = ["example", "gold", "predicted", *([sorted_by] if sorted_by else []), "guid"]
        blocks.append(Table(heads, rows, (3,) if sorted_by else (), title=title, folded=True, is_text=True))
    return [*blocks, Text(NOTES["errors"], "note")] if blocks else []


def _lines(values: Sequence[str]) -> str:
    more = [f"… and {len(values) - MAX_LINES} more"] if len(values) > MAX_LINES else []
    return "\n".join([*values[:MAX_LINES], *more]) or "–"
