"""Scores beside the trivial baseline and, on the official dev files, beside the paper's Table 36.

What makes a score comparable stands with it: protocol, seed, weights, data version. What all results share is said
once, above the tables; what differs is a column. Figures by class and samples of wrong predictions stand below; of
several seeds only the first is shown there, the others lie in their ``scores.json`` and ``errors.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from launch.pipeline import OWN_MODEL
from launch.report.blocks import SMALL, Bar, Bars, Block, Line, Pictures, Section, Table, Text, line_chart
from launch.report.compare import LAST_WEIGHTS, Group, comparison, group_results, weights_of
from launch.report.gather import (
    PAPER_MODEL,
    Result,
    count,
    number,
    paper_metrics,
    sentence_on_stale,
    settings_of,
    trivial_of,
)

FACTS = {  # column to how it is said once for all results
    "model": "encoder {}", "settings": "settings {}", "seed": "seed {}", "protocol": "protocol {}", "weights": "{}",
    "data": "data version {}",
}  # fmt: skip
FIRST = "first"  # settings, of those without a name
MOST_BARS = 16  # more are a table
MOST_CHARTS = 24
MOST_LINES = 12  # of one cell: a dialogue state may be wrong in all its slots
NUMBERS = ("score", "95 % interval", "trivial", "gain", "trained on", "scored on", f"{PAPER_MODEL}, Table 36")
NOTE = (
    "Scores are 0 to 100. The trivial baseline needs no model: the majority class, the mean, the right-hand neighbour "
    "as head, no answer, an empty state. Intervals come from resampling the scored examples. Scores of different tasks "
    "are never averaged. AUPRC is the area under the precision-recall curve, averaged over the classes; for a constant "
    "prediction the published code gives about 50 on any labels, so no baseline stands beside it."
)
NOTE_ON_PAPER = (
    " The figures of Table 36 were made by the published code (here protocol klue-baseline), each the best of many "
    "evaluations of the dev set that it is reported on."
)
NOTE_ON_ERRORS = (
    "Where a prediction has several parts, only what differs is shown. A type in brackets is a run of I- tags that no "
    "B- begins: no entity for the metric. Labels of the benchmark may be wrong, too."
)
WARNINGS: tuple[tuple[Callable[[Result], bool], str], ...] = (  # about which results, with room for their tasks
    (
        lambda found: found["protocol"] == "klue-baseline",
        "Protocol klue-baseline ({}): inputs, targets and decoding repeat the faults of the published code. These "
        "scores compare with published ones, not with scores of protocol malmoi.",
    ),
    (
        lambda found: not found["is_official_dev"] and not found.get("own"),
        "Not scored on the official dev set: {}. These scores compare only with scores on the very same examples (What "
        "was scored), not with published ones.",
    ),
    (
        lambda found: weights_of(found) != LAST_WEIGHTS,
        "The weights were chosen by their score on the examples that are scored here: {}. Such scores are too high for "
        "new text; the published ones were made in the same way.",
    ),
)
ORDER_OF_ERRORS = {"probability": "the most certain first", "distance": "the largest distance first"}


def scores_section(scores: Sequence[Result], stale: Sequence[Result] = ()) -> Section:
    """Warnings, figure, tables, loss curves, figures by class, and wrong predictions; ``stale`` is only named."""
    groups = group_results(scores)
    is_compared = len(groups) > len({found["task"] for found in scores}) or len(scores) > len(groups)
    facts = [facts_of(found) for found in scores]
    varying = [name for name in FACTS if len({fact[name] for fact in facts}) > 1]
    alike = [name for name in FACTS if scores and name not in varying and facts[0][name] != FIRST]
    shared = [FACTS[name].format(facts[0][name]) for name in alike]
    is_official = any(found["is_official_dev"] for found in scores)
    paper = [(found, metric) for found in scores for metric in paper_metrics(found)]
    further = [(found, metric) for found in scores for metric in found["scores"] if metric not in paper_metrics(found)]
    heads = ["task", *varying, "metric"]
    return Section(
        "Scores",
        [
            *warnings(scores),
            *([Text(sentence_on_stale(stale), "warning")] if stale else []),
            *_figure(groups),
            *([comparison(groups)] if is_compared else []),
            *([Text(f"All results: {', '.join(shared)}.")] if shared else []),
            _table([*heads, *NUMBERS[: None if is_official else -1]], paper, "Every result" * is_compared, is_compared),
            _table([*heads, *NUMBERS[:3]], further, "Further metrics", True),
            Text(NOTE + (NOTE_ON_PAPER if is_official else ""), "note"),
            _files(scores),
            *_losses(groups),
            *_class_tables(groups),
            *_error_tables(groups),
        ],
    )


def facts_of(found: Result) -> dict[str, str]:
    """What must be the same for two scores of a task to be comparable."""
    versions = {split: file.get("version", "unknown") for split, file in found.get("data", {}).items()}
    same = len(set(versions.values())) == 1
    data = next(iter(versions.values())) if same else ", ".join(f"{split} {name}" for split, name in versions.items())
    said = (settings_of(found) or FIRST, str(found["seed"]), found["protocol"], weights_of(found), data or "unknown")
    return dict(zip(FACTS, (found["model"], *said), strict=True))


def warnings(scores: Sequence[Result]) -> list[Text]:
    """What a reader must know before comparing any of these scores with others."""
    lines = []
    for is_meant, said in WARNINGS:
        meant = [found["task"] for found in scores if is_meant(found)]
        tasks = ", ".join(dict.fromkeys(meant)) if len(meant) < len(scores) else "all results"
        lines += [Text(said.format(tasks), "warning")] if meant else []
    return lines


def _figure(groups: Sequence[Group]) -> list[Block]:
    """Bars of the headline of each group with interval and trivial baseline; none where they would be too many."""
    rows = [_bar(group, group.first["headline"]) for group in groups if group.mean(group.first["headline"]) is not None]
    keys = [("", "score, 0 to 100"), ("interval", "95 % interval"), ("base", "trivial baseline")]
    return [Bars(rows, keys)] if 0 < len(rows) <= MOST_BARS else []


def _bar(group: Group, metric: str) -> Bar:
    value, interval = group.mean(metric) or 0.0, group.interval(metric)
    low, high = (min(max(end, 0.0), 100.0) for end in interval or (0.0, 0.0))
    return Bar(
        name=group.task,
        detail=metric if group.name == group.first["model"] == OWN_MODEL else f"{metric}, {group.name}",
        value=min(max(value, 0.0), 100.0) / 100,
        said=f"{value:.1f}",
        said_more=f"{low:.0f} to {high:.0f}" if interval else "",
        interval=(low / 100, high / 100) if interval else None,
        baseline=(group.trivial(metric) or 0.0) / 100,
    )


def _losses(groups: Sequence[Group]) -> list[Block]:
    """Mean training loss of each epoch, one chart for a task and model, the first seed's."""
    several = len({group.name for group in groups}) > 1
    charts = []
    for group in groups:
        if losses := group.first.get("losses"):
            line = Line(range(1, 1 + len(losses)), losses)
            caption = f"{group.task}, {group.name}" if several else group.task
            charts.append((caption, line_chart([line], "", "training loss", from_zero=True, size=SMALL)))
    if not 0 < len(charts) <= MOST_CHARTS:
        return []
    return [Text("Training loss by epoch", "heading"), Pictures(charts, is_small=True)]


def _table(heads: list[str], cells: Sequence[tuple[Result, str]], title: str, folded: bool) -> Table:
    numbers = [place for place, head in enumerate(heads) if head in NUMBERS]
    signs = [place for place, head in enumerate(heads) if head == "gain"]
    rows = [[row[head] for head in heads] for row in (_cells(*cell) for cell in cells)]
    return Table(heads, rows, numbers, signs, title, folded)


def _cells(found: Result, metric: str) -> dict[str, str]:
    """One metric of one result, by the heads of the tables."""
    interval = found["intervals"].get(metric)
    value, trivial = found["scores"][metric], trivial_of(found, metric)
    paper = found["paper_dev"][PAPER_MODEL].get(metric) if found["is_official_dev"] else None
    values = (
        number(value),
        "–" if interval is None else f"{interval[0]:.1f} to {interval[1]:.1f}",
        number(trivial),
        "–" if value is None or metric == "auprc" else f"{value - (trivial or 0.0):+.2f}",
        count(found["n_train"]),
        count(found["n"]),
        number(paper),
    )
    return {"task": found["task"], "metric": metric, **facts_of(found), **dict(zip(NUMBERS, values, strict=True))}


def _files(scores: Sequence[Result]) -> Table:
    """The files behind the scores of each task, and what is known of their version."""
    rows = dict.fromkeys(
        (found["task"], found["split"], file["file"], file.get("version", "unknown"), file["sha256"][:12])
        for found in scores
        for file in found.get("data", {}).values()
    )
    heads = ["task", "scored on", "files", "version", "sha256"]
    return Table(heads, [list(row) for row in rows], title="What was scored", folded=True)


def _class_tables(groups: Sequence[Group]) -> list[Block]:
    """Figures by class, question type or slot (``Task.tables``), right-aligned."""
    blocks = [
        _figures(f"{name}: {title}", rows)
        for name, found in _shown(groups)
        for title, rows in found.get("tables", {}).items()
        if rows
    ]
    return [Text("By class, type and length", "heading"), *blocks] if blocks else []


def _error_tables(groups: Sequence[Group]) -> list[Block]:
    blocks = [_errors(name, found["errors"]) for name, found in _shown(groups) if found.get("errors")]
    return [Text("Wrong predictions", "heading"), *blocks, Text(NOTE_ON_ERRORS, "note")] if blocks else []


def _shown(groups: Sequence[Group]) -> list[tuple[str, Result]]:
    """The first result of each group under a name that tells them apart."""
    has_models = len({group.name for group in groups}) > 1
    has_seeds = any(len(group.results) > 1 for group in groups)
    return [
        (group.task + f", {group.name}" * has_models + f", seed {group.first['seed']}" * has_seeds, group.first)
        for group in groups
    ]


def _figures(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    heads = list(dict.fromkeys(head for row in rows for head in row))
    columns = [[row.get(head) for row in rows] for head in heads]
    numbers = [
        place
        for place, values in enumerate(columns)
        if all(isinstance(value, int | float | None) for value in values) and any(value is not None for value in values)
    ]
    cells = [[_cell(row.get(head)) for head in heads] for row in rows]
    is_confusion = heads[1:] == columns[0]
    matrix = [[row[head] for head in heads[1:]] for row in rows] if is_confusion else []
    heat = [[n / max(1, sum(counts)) for n in counts] for counts in matrix]
    return Table(heads, cells, numbers, title=title, folded=not is_confusion, heat=heat)


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return count(value)
    return number(value) if value is None or isinstance(value, float) else str(value)


def _errors(name: str, found: dict[str, Any]) -> Table:
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
