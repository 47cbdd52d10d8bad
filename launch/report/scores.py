"""Scores beside the trivial baseline and, on the official dev files, beside the paper's Table 36.

What makes a score comparable stands with it: protocol, seed, weights, data version. What all results share is said
once, above the tables; what differs is a column. Where there are more figures than anybody reads, the page keeps means
over seeds, and ``results.csv`` beside it every figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from launch.numbers import count, number
from launch.recipe import OWN_MODEL
from launch.report.blocks import Bar, Bars, Block, Section, Table, Text
from launch.report.classes import class_tables, error_tables
from launch.report.compare import LAST_WEIGHTS, Group, group_results, weights_of
from launch.report.curves import learning_curves
from launch.report.differences import differences
from launch.report.gather import PAPER_MODEL, Result, paper_metrics, sentence_on_stale, settings_of, trivial_of
from launch.report.generative import compare_with_encoders
from launch.report.tables import by_models, by_settings, chosen_on, cost, hyperparameters, own_groups

FACTS = {  # column to how it is said once for all results
    "model": "encoder {}", "settings": "settings {}", "seed": "seed {}", "protocol": "protocol {}", "weights": "{}",
    "data": "data version {}",
}  # fmt: skip
FIRST = "first"  # settings, of those without a name
MOST_BARS = 16  # more are a table
MOST_RESULTS = 64  # whose single figures are on the page
NUMBERS = ("score", "95 % interval", "trivial", "gain", "trained on", "scored on", f"{PAPER_MODEL}, Table 36")
NOTE = (
    "Scores are 0 to 100. The trivial baseline needs no model: the majority class, the mean, the right-hand neighbour "
    "as head, no answer, an empty state. Intervals come from resampling the scored examples. Scores of different tasks "
    "are never averaged. AUPRC is the area under the precision-recall curve, averaged over the classes; for a constant "
    "prediction the published code gives about 50 on any labels, so no baseline stands beside it."
)
NOTE_ON_MEANS = (
    "Below a score stands its 95 % interval; of several seeds it is for new seeds and new examples together. Two that "
    "overlap do not prove two models equal; malmoi compare tests which differences are real."
)
NOTE_ON_PAPER = (
    " The figures of Table 36 were made by the published code (here protocol klue-baseline), each the best of many "
    "evaluations of the dev set that it is reported on."
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
    (
        lambda found: found.get("searched_on") == "dev",
        "The hyperparameters were searched on the examples that are scored here: {}. Such scores are too high for new "
        "text; the published ones were made in the same way.",
    ),
)


def result_sections(scores: Sequence[Result], stale: Sequence[Result] = ()) -> list[Section]:
    """Scores, settings, learning curves, figures by class, wrong predictions, trainings; ``stale`` is only named."""
    groups = group_results(scores)
    own = own_groups(groups)
    is_ablated = len(own) < len(groups)
    note = [Text("Of the recipe's own settings; the others have theirs in their scores.json.", "note")] * is_ablated
    parts: list[tuple[str, Sequence[Block]]] = [
        ("Generative models", compare_with_encoders(scores)),
        ("Settings", by_settings(groups)),
        ("Learning curves", learning_curves(groups)),
        ("By class, type and length", class_tables(own)),
        ("Wrong predictions", error_tables(own)),
    ]
    noted = ("By class, type and length", "Wrong predictions")
    return [
        _scores(scores, groups, own, stale),
        *(Section(title, [*(note if title in noted else []), *blocks]) for title, blocks in parts if blocks),
        *([Section("Trainings", [*hyperparameters(scores), *cost(scores)])] if scores else []),
    ]


def _scores(
    scores: Sequence[Result], groups: Sequence[Group], own: Sequence[Group], stale: Sequence[Result]
) -> Section:
    """Warnings, figure, the main table and, where they are not too many, single figures."""
    is_compared = len(groups) > len({found["task"] for found in scores}) or len(scores) > len(groups)
    facts = [facts_of(found) for found in scores]
    varying = [name for name in FACTS if len({fact[name] for fact in facts}) > 1]
    alike = [name for name in FACTS if scores and name not in varying and facts[0][name] != FIRST]
    shared = [FACTS[name].format(facts[0][name]) for name in alike]
    is_official = any(found["is_official_dev"] for found in scores)
    paper = [(found, metric) for found in scores for metric in paper_metrics(found)]
    further = [(found, metric) for found in scores for metric in found["scores"] if metric not in paper_metrics(found)]
    heads = ["task", *varying, "metric"]
    single: list[Block] = [
        _table([*heads, *NUMBERS[: None if is_official else -1]], paper, "Every result" * is_compared, is_compared),
        _table([*heads, *NUMBERS[:3]], further, "Further metrics", True),
    ]
    means: list[Block] = [by_models(own), Text(NOTE_ON_MEANS, "note")]
    left_out = Text(f"The figures of each of the {count(len(scores))} results stand in results.csv beside this page.")
    return Section(
        "Scores",
        [
            *warnings(scores),
            *([Text(sentence_on_stale(stale), "warning")] if stale else []),
            *_figure(own),
            *(means if is_compared else []),
            *differences(groups),
            *([Text(f"All results: {', '.join(shared)}.")] if shared else []),
            *(single if len(scores) <= MOST_RESULTS else [left_out]),
            Text(NOTE + (NOTE_ON_PAPER if is_official else ""), "note"),
            _files(scores),
        ],
    )


def facts_of(found: Result) -> dict[str, str]:
    """What must be the same for two scores of a task to be comparable."""
    versions = {split: file.get("version", "unknown") for split, file in found.get("data", {}).items()}
    same = len(set(versions.values())) == 1
    data = next(iter(versions.values())) if same else ", ".join(f"{split} {name}" for split, name in versions.items())
    weights = LAST_WEIGHTS if (chosen := chosen_on(found)) == "–" else chosen
    said = (settings_of(found) or FIRST, str(found["seed"]), found["protocol"], weights, data or "unknown")
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
