"""The section "Scores": warnings, scores by model, single results; scores by settings and of generative models.

Facts that all results share are stated once, below the tables; facts that differ become a column. With many results
the page shows means over seeds and ``results.csv`` has every score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from finetune.metrics import interval_text
from launch.numbers import count, duration, group_by, number
from launch.report import results as records
from launch.report.blocks import NOTES, Block, Section, Table, Text
from launch.report.differences import differences

PAPER_HEAD = f"{records.PAPER_MODEL}, Table 36"
RECIPE_SETTINGS = "recipe settings"  # the name of settings that have none
FACTS = {  # column, and how a value is stated that all results share
    "model": "encoder {}", "settings": "settings {}", "seed": "seed {}", "protocol": "protocol {}", "weights": "{}",
    "data": "data version {}",
}  # fmt: skip
MAX_RESULTS = 64  # whose single scores are on the page
BASELINES = ("constant", "counting")
NUMBERS = ("score", "95 % interval", *BASELINES, "trained on", "scored on", PAPER_HEAD)
VERDICTS = {1: "better", 0: "equal", -1: "worse"}  # sign of the difference from the better baseline: its sentence
WARNINGS: dict[str, Callable[[records.Result], bool]] = {  # by the name of the text
    "klue_baseline": lambda result: result["protocol"] == "klue-baseline",
    "other_examples": lambda result: not result["is_official_dev"] and not result.get("own"),
    "selected_weights": lambda result: records.weights_of(result) != records.LAST_WEIGHTS,
    "tuned_on_dev": lambda result: result.get("searched_on") == "dev",
}
GENERATIVE_HEADS = ("task, metric", "model", "score", "95 %", "parsed", "tokens in, out", "time", "price")


def verdict(groups: Sequence[records.Group]) -> list[str]:
    """On which tasks each model is better than the better baseline by the headline metric.

    A task counts as better or worse only if the whole interval is above or below the baseline.
    """
    lines = []
    names = list(dict.fromkeys(group.name for group in groups))
    for name in names:
        own = [group for group in groups if group.name == name]
        for sign, sentence in VERDICTS.items():
            alike = [group for group in own if _versus_baseline(group) == sign]
            parts = [
                ", ".join(f"{metric} {g.gain(metric)}" for metric in records.paper_metrics(g.first)) for g in alike
            ]
            gains = ", ".join(f"{group.task} ({part})" for group, part in zip(alike, parts, strict=True))
            line = NOTES[sentence].format(count=len(alike), total=len(own), gains=gains)
            prefix, start = (f"{name}: ", line[0].lower()) if len(names) > 1 else ("", line[0])
            lines += [f"{prefix}{start}{line[1:]}"] if alike else []
    return lines


def _versus_baseline(group: records.Group) -> int:
    """1: the interval of the headline metric is above the better baseline; -1: below; 0: around it or unknown."""
    metric = group.first["headline"]
    interval, baseline = group.interval(metric), records.better_baseline(group.first, metric)
    if interval is None or interval[0] <= baseline <= interval[1]:
        return 0
    return 1 if interval[0] > baseline else -1


def scores_section(results: records.Results) -> Section:
    """Warnings, the main table and, if there are not too many, single scores."""
    scores = results.scores
    is_compared = len(results.groups) > len({r["task"] for r in scores}) or len(scores) > len(results.groups)
    facts = [_facts_of(result) for result in scores]
    varying = [name for name in FACTS if len({fact[name] for fact in facts}) > 1]
    same = [name for name in FACTS if scores and name not in varying and facts[0][name] != RECIPE_SETTINGS]
    shared = ", ".join(FACTS[name].format(facts[0][name]) for name in same)
    is_official = any(result["is_official_dev"] for result in scores)
    paper = [(result, metric) for result in scores for metric in records.paper_metrics(result)]
    further = [(r, metric) for r in scores for metric in r["scores"] if metric not in records.paper_metrics(r)]
    heads = ["task", *varying, "metric"]
    means: list[Block] = [main_table(results), Text(NOTES["means"], "note")]
    single: list[Block] = [
        _single_scores([*heads, *NUMBERS[: None if is_official else -1]], paper, "Every result", is_compared),
        _single_scores([*heads, *NUMBERS[:4]], further, "Further metrics", True),
    ]
    left_out = Text(f"The scores of all {count(len(scores))} results are in results.csv in this folder.")
    counting = {result["task"]: result["counting_by"] for result in scores if result.get("counting_by")}
    baselines = "; ".join(f"{task}: {what}" for task, what in counting.items())
    return Section("Scores", [
        *_warnings(scores),
        *([Text(results.stale_note, "warning")] if results.stale else []),
        *(means if is_compared else []),
        *differences(results.groups),
        *([Text(f"All results: {shared}.")] if shared else []),
        *(single if len(scores) <= MAX_RESULTS else [left_out]),
        Text(f"{NOTES['scores']} {NOTES['paper']}" if is_official else NOTES["scores"], "note"),
        *([Text(f"Counting baselines: {baselines}.", "note")] if baselines else []),
        _scored_files(scores),
    ])  # fmt: skip


def _facts_of(result: records.Result) -> dict[str, str]:
    """What must be equal for two scores of a task to be comparable."""
    versions = {split: file.get("version", "unknown") for split, file in result.get("data", {}).items()}
    same = len(set(versions.values())) == 1
    data = next(iter(versions.values())) if same else ", ".join(f"{split} {name}" for split, name in versions.items())
    weights = records.LAST_WEIGHTS if (selection := records.selection_of(result)) == "–" else selection
    settings = records.settings_of(result) or RECIPE_SETTINGS
    values = (result["model"], settings, str(result["seed"]), result["protocol"], weights, data or "unknown")
    return dict(zip(FACTS, values, strict=True))


def _warnings(scores: Sequence[records.Result]) -> list[Text]:
    """What a reader must know before comparing any of these scores with others."""
    warnings = []
    for name, applies in WARNINGS.items():
        tasks = [result["task"] for result in scores if applies(result)]
        names = ", ".join(dict.fromkeys(tasks)) if len(tasks) < len(scores) else "all results"
        warnings += [Text(NOTES[name].format(names), "warning")] if tasks else []
    return warnings


def printed_table(scores: Sequence[records.Result]) -> Table:
    """The paper's metrics of every result with both baselines, for the terminal."""
    rows = []
    for result in scores:
        for metric in records.paper_metrics(result):
            value = result["scores"][metric]
            cells = [
                f"{number(value)}{records.below(value, result, metric)}",
                *map(number, records.baselines_of(result, metric)),
            ]
            names = [result["task"], records.name_of(result), str(result["seed"]), metric]
            rows.append([*names, *cells, count(result["n"])])
    heads = ("task", "model", "seed", "metric", "score", *BASELINES, "n")
    note = f"{records.BELOW} below the counting baseline" if any(records.BELOW in row[4] for row in rows) else ""
    return Table(heads, rows, numbers=(4, 5, 6, 7), title="Scores", note=note)


def main_table(results: records.Results) -> Table:
    """Task and metric by model with the settings of the recipe; for official dev files with the paper's Table 36."""
    groups = results.main
    models = list(dict.fromkeys(group.title for group in groups))
    is_official = any(group.first["is_official_dev"] for group in groups)
    count_seeds = len({len(group.results) for group in groups} - {1}) > 1
    has_selection = any(group.selection != "–" for group in groups)
    by_examples = group_by(groups, lambda group: (group.task, group.first["split"]))  # other examples are another row
    rows = []
    for (task, _), alike in by_examples.items():
        for metric in records.paper_metrics(alike[0].first):
            cells = [
                "\n".join(g.cell_with_interval(metric, count_seeds=count_seeds) for g in alike if g.title == name)
                for name in models
            ]
            rows.append([
                task, metric, *(cell or "–" for cell in cells),
                *map(number, records.baselines_of(alike[0].first, metric)),
                *([number(paper_score(alike[0].first, metric))] if is_official else []),
                *([_selections(alike)] if has_selection else []),
            ])  # fmt: skip
    heads = ["task", "metric", *models, *BASELINES, *([PAPER_HEAD] if is_official else [])]
    columns = [*heads, *(["selected by"] if has_selection else [])]
    return Table(columns, rows, range(2, len(heads)), title=f"Tasks by models{over_seeds(groups)}")


def systems_table(results: records.Results) -> Table:
    """Every metric of every system, one below the other, so that baselines are read next to trained models."""
    rows = [
        [group.task, metric, group.name, group.cell(metric), interval_text(group.interval(metric), 1)]
        for alike in group_by(results.groups, lambda group: group.task).values()
        for metric in alike[0].first["scores"]
        for group in alike
    ]  # fmt: skip
    heads = ("set", "metric", "system", "score", "95 % interval")
    return Table(heads, rows, (3, 4), title=f"Embeddings{over_seeds(results.groups)}")


def _selections(groups: Sequence[records.Group]) -> str:
    """What was selected in a row, by model if the models differ."""
    selections = {group.title: group.selection for group in groups}
    if len(set(selections.values())) == 1:
        return groups[0].selection
    return "\n".join(f"{name}: {text}" for name, text in selections.items() if text != "–")


def _single_scores(heads: list[str], cells: Sequence[tuple[records.Result, str]], title: str, is_folded: bool) -> Table:
    """One row for each metric of each result; without a title if it is the only table of scores."""
    numbers = [place for place, head in enumerate(heads) if head in NUMBERS]
    rows = []
    for result, metric in cells:
        value = result["scores"][metric]
        row = {"task": result["task"], "metric": metric, **_facts_of(result)}
        row |= zip(NUMBERS, (
            f"{number(value)}{records.below(value, result, metric)}",
            interval_text(result["intervals"].get(metric), 1),
            *map(number, records.baselines_of(result, metric)),
            count(result["n_train"]), count(result["n"]), number(paper_score(result, metric)),
        ), strict=True)  # fmt: skip
        rows.append([row[head] for head in heads])
    return Table(heads, rows, numbers, title=title if is_folded else "", folded=is_folded)


def paper_score(result: Mapping[str, Any], metric: str) -> float | None:
    """The paper's score (Table 36); None on other examples than the official dev set."""
    return result["paper_dev"][records.PAPER_MODEL].get(metric) if result["is_official_dev"] else None


def _scored_files(scores: Sequence[records.Result]) -> Table:
    """The data files of each task and their versions."""
    rows = dict.fromkeys(
        (result["task"], result["split"], file["file"], file.get("version", "unknown"), file["sha256"][:12])
        for result in scores
        for file in result.get("data", {}).values()
    )
    heads = ["task", "scored on", "files", "version", "sha256"]
    return Table(heads, [list(row) for row in rows], title="Scored files", folded=True)


def over_seeds(groups: Sequence[records.Group]) -> str:
    """``, mean ± standard deviation over 1 or 3 seeds`` for a title; empty if every group has one seed."""
    seeds = sorted({len(group.results) for group in groups})
    if seeds in ([], [1]):
        return ""
    numbers = " or ".join(map(str, seeds)) if len(seeds) < 4 else f"{seeds[0]} to {seeds[-1]}"
    return f", mean ± standard deviation over {numbers} seeds"


def settings_tables(results: records.Results) -> list[Block]:
    """The headline metric of each task and model by settings, with the difference from the recipe's settings; none if
    there are no other settings."""
    names = list(dict.fromkeys(group.settings for group in results.groups))
    by_model = group_by(results.groups, lambda group: (group.task, group.first["split"], group.model))
    has_models = len({model for _, _, model in by_model}) > 1
    rows = []
    for (task, _, model), alike in by_model.items():
        by_settings = group_by(alike, lambda group: group.settings)
        if "" not in by_settings or len(by_settings) == 1:
            continue  # nothing to compare with; ensembles are such a case
        base, metric = by_settings[""], next(iter(by_settings.values()))[0].first["headline"]
        cells = ["\n".join(_cell_with_difference(g, base, metric) for g in by_settings.get(name, [])) for name in names]
        rows.append([task, *([model] if has_models else []), metric, *(cell or "–" for cell in cells)])
    heads = ["task", *(["model"] if has_models else []), "metric", *(name or RECIPE_SETTINGS for name in names)]
    numbers = range(len(heads) - len(names), len(heads))
    return [Table(heads, rows, numbers, title=f"Settings{over_seeds(results.groups)}")] if rows else []


def _cell_with_difference(group: records.Group, base: Sequence[records.Group], metric: str) -> str:
    value, other = group.mean(metric), base[0].mean(metric) if len(base) == 1 else None
    difference = [] if base == [group] or value is None or other is None else [f"{value - other:+.2f}"]
    return "\n".join([group.cell(metric), *difference, *([group.selection] if group.selection != "–" else [])])


def compare_with_encoders(scores: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Generative models and the encoders that were scored on the same examples, in one table; nothing without
    generative models."""
    places = dict.fromkeys((result["task"], result["split"]) for result in scores if "method" in result)
    alike = [result for place in places for result in scores if (result["task"], result["split"]) == place]
    if not alike:
        return []
    unanswered = sum(result.get("unanswered", 0) for result in scores)
    missing = f"{count(unanswered)} questions have no answer and count as wrong. Run the command again to resend them."
    return [
        results_table(alike, "Generative models and encoders on the same examples", note=""),
        *([Text(missing, "warning")] if unanswered else []),
        Text(f"{NOTES['answers']} {NOTES['encoders']}", "note"),
    ]


def results_table(results: Sequence[Mapping[str, Any]], title: str = "", note: str = NOTES["answers"]) -> Table:
    """One row for each task, metric and model; encoders have no answers, so they leave those columns empty."""
    rows = []
    for result in results:
        for place, metric in enumerate(records.paper_metrics(result)):
            interval = result["intervals"].get(metric)
            limits = "–" if interval is None else f"{interval[0]:.1f}\n{interval[1]:.1f}"
            cost = _answer_cells(result) if place == 0 else ["", "", "", ""]
            score = number(result["scores"].get(metric))
            rows.append([f"{result['task']}\n{metric}", records.name_of(result), score, limits, *cost])
    return Table(GENERATIVE_HEADS, rows, range(2, 8), title=title, note=note)


def _answer_cells(result: Mapping[str, Any]) -> list[str]:
    """Parse rate, tokens, time and price; of an encoder only the time of its training."""
    if "method" not in result:
        return ["–", "–", f"{duration(result['seconds'])}\ntraining" if result.get("seconds") else "–", "–"]
    tokens = result["tokens"]
    parsed = f"{result['parse_rate']:.1f} %" if result["method"] == "generation" else "–"
    token_counts = f"{count(tokens['in'])}\n{count(tokens['out'])}" if tokens["told_for"] else "–"
    price = "–" if result.get("price") is None else f"{result['price']:,.4f}"
    return [parsed, token_counts, duration(result["seconds"]), price]
