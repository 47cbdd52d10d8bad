"""Scores beside the trivial baseline and, on the official dev files, beside the paper's Table 36.

What makes a score comparable stands with it: protocol, seed, weights, data version. What all results share is said
once, above the tables; what differs is a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from launch.pipeline import OWN_MODEL
from launch.report.blocks import Bar, Bars, Block, Heading, Pictures, Section, Table, Text
from launch.report.compare import LAST_WEIGHTS, Group, comparison, group_results, weights_of
from launch.report.details import error_blocks, table_blocks
from launch.report.figures import SMALL, Line, line_chart
from launch.report.gather import PAPER_MODEL, count, number, paper_metrics, trivial_of

Result = dict[str, Any]
FACTS = {  # column to how it is said once for all results
    "model": "encoder {}",
    "seed": "seed {}",
    "protocol": "protocol {}",
    "weights": "{}",
    "data": "data version {}",
}
MOST_BARS = 16  # more are a table
MOST_CHARTS = 24
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
    by_standing: dict[str, list[Group]] = {"above": [], "open": [], "below": []}
    for group in groups:
        by_standing[group.standing(group.first["headline"])].append(group)
    above, unclear, below = by_standing.values()
    won = ", ".join(f"{group.first['task']} {_signed(group, group.first['headline'])}" for group in above)
    lines = [
        f"Better than the trivial baseline on {len(above)} of {len(groups)} tasks, the whole 95 % interval above it: "
        f"{won}."
    ] * bool(above)
    lines += [f"Not distinguishable from it by the first metric: {_details(unclear)}."] * bool(unclear)
    return lines + [f"Worse than it: {_details(below)}."] * bool(below)


def _details(groups: Sequence[Group]) -> str:
    return ", ".join(
        f"{group.first['task']} ({', '.join(f'{m} {_signed(group, m)}' for m in paper_metrics(group.first))})"
        for group in groups
    )


def _signed(group: Group, metric: str) -> str:
    gap = group.gain(metric)
    return "undefined" if gap is None else f"{gap:+.1f}"


def scores_section(scores: Sequence[Result]) -> Section:
    """Warnings, figure, tables, loss curves, figures by class, and wrong predictions of all results."""
    groups = group_results(scores)
    is_compared = len(groups) > len({found["task"] for found in scores}) or len(scores) > len(groups)
    facts = [facts_of(found) for found in scores]
    varying = [name for name in FACTS if len({fact[name] for fact in facts}) > 1]
    shared = [said.format(facts[0][name]) for name, said in FACTS.items() if scores and name not in varying]
    blocks: list[Block] = [*warnings(scores), *_figure(groups)]
    blocks += [comparison(groups)] if is_compared else []
    blocks += [Text(f"All results: {', '.join(shared)}.")] if shared else []
    blocks += [
        _results(scores, varying, is_compared),
        _further(scores, varying),
        Text(NOTE + (NOTE_ON_PAPER if any(found["is_official_dev"] for found in scores) else ""), is_note=True),
        Table(
            ["task", "scored on", "files", "version", "sha256"], _files(scores), title="What was scored", folded=True
        ),
        *_losses(groups),
        *table_blocks(groups),
        *error_blocks(groups),
    ]
    return Section("Scores", blocks)


def facts_of(found: Result) -> dict[str, str]:
    """What must be the same for two scores of a task to be comparable."""
    versions = {split: file.get("version", "unknown") for split, file in found.get("data", {}).items()}
    same = len(set(versions.values())) == 1
    data = next(iter(versions.values())) if same else ", ".join(f"{split} {name}" for split, name in versions.items())
    return {
        "model": found["model"],
        "seed": str(found["seed"]),
        "protocol": found["protocol"],
        "weights": weights_of(found),
        "data": data or "unknown",
    }


def warnings(scores: Sequence[Result]) -> list[Text]:
    """What a reader must know before comparing any of these scores with others."""

    def tasks(which: list[Result]) -> str:
        return ", ".join(dict.fromkeys(f["task"] for f in which)) if len(which) < len(scores) else "all results"

    published = [found for found in scores if found["protocol"] == "klue-baseline"]
    other = [found for found in scores if not found["is_official_dev"]]
    chosen = [found for found in scores if weights_of(found) != LAST_WEIGHTS]
    lines = []
    if published:
        lines.append(
            f"Protocol klue-baseline ({tasks(published)}): inputs, targets and decoding repeat the faults of the "
            "published code. These scores compare with published ones, not with scores of protocol malmoi."
        )
    if other:
        lines.append(
            f"Not scored on the official dev set: {tasks(other)}. These scores compare only with scores on the very "
            "same examples (What was scored), not with published ones."
        )
    if chosen:
        lines.append(
            f"The weights were chosen by their score on the examples that are scored here: {tasks(chosen)}. Such "
            "scores are too high for new text; the published ones were made in the same way."
        )
    return [Text(line, is_warning=True) for line in lines]


def _figure(groups: Sequence[Group]) -> list[Block]:
    """Bars of the headline of each group with interval and trivial baseline; none where they would be too many."""
    metrics = [(group, group.first["headline"]) for group in groups]
    rows = [_bar(group, metric) for group, metric in metrics if group.mean(metric) is not None]
    keys = [("", "score, 0 to 100"), ("interval", "95 % interval"), ("base", "trivial baseline")]
    return [Bars(rows, keys)] if 0 < len(rows) <= MOST_BARS else []


def _bar(group: Group, metric: str) -> Bar:
    value, interval = group.mean(metric) or 0.0, group.interval(metric)
    low, high = (min(max(end, 0.0), 100.0) for end in interval or (0.0, 0.0))
    return Bar(
        name=group.first["task"],
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
    charts = [
        (f"{group.first['task']}, {group.name}" if several else group.first["task"], _loss_chart(group.first["losses"]))
        for group in groups
        if group.first.get("losses")
    ]
    if not 0 < len(charts) <= MOST_CHARTS:
        return []
    return [Heading("Training loss by epoch"), Pictures(charts, is_small=True)]


def _loss_chart(losses: Sequence[float]) -> str:
    return line_chart([Line(range(1, 1 + len(losses)), losses)], "", "training loss", from_zero=True, size=SMALL)


def _results(scores: Sequence[Result], varying: list[str], is_folded: bool) -> Table:
    heads = ["task", *varying, "metric", *NUMBERS]
    if not any(found["is_official_dev"] for found in scores):
        heads.remove(NUMBERS[-1])
    cells = [_cells(found, metric) for found in scores for metric in paper_metrics(found)]
    return _table(heads, cells, title="Every result" if is_folded else "", folded=is_folded)


def _further(scores: Sequence[Result], varying: list[str]) -> Table:
    metrics = [(found, metric) for found in scores for metric in found["scores"] if metric not in paper_metrics(found)]
    heads = ["task", *varying, "metric", "score", "95 % interval", "trivial"]
    return _table(heads, [_cells(*pair) for pair in metrics], title="Further metrics", folded=True)


def _table(heads: list[str], cells: list[dict[str, str]], title: str, folded: bool) -> Table:
    numbers = [place for place, head in enumerate(heads) if head in NUMBERS]
    signs = [place for place, head in enumerate(heads) if head == "gain"]
    return Table(heads, [[row[head] for head in heads] for row in cells], numbers, signs, title, folded)


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


def _files(scores: Sequence[Result]) -> list[list[str]]:
    """The files behind the scores of each task, and what is known of their version."""
    rows = [
        [found["task"], found["split"], file["file"], file.get("version", "unknown"), file["sha256"][:12]]
        for found in scores
        for file in found.get("data", {}).values()
    ]
    return [list(row) for row in dict.fromkeys(map(tuple, rows))]
