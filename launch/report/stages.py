"""The sections on corpus, tokenizer and pretraining, from the statistics that these stages wrote.

The table of the vocabulary has the columns of the paper's Table 35. Charts are SVG in the colours of the stylesheet
(``corpus/card/style.css``), written here and not by a plotting library: equal numbers give equal bytes, text stays
text, and a chart takes two kilobytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.escaping import escape_controls
from corpus.documents.templates import load_templates
from launch.console import number_table
from launch.numbers import count, duration, number, share
from launch.report.blocks import NOTES, Pictures, Section, Table, Text
from launch.report.results import read_json, read_lines

MAX_SOURCES, MAX_PIECES = 12, 20
SIZES = ("documents", "sentences", "words", "characters", "bytes")
# Paper Table 35: fertility, continued words, unknown tokens; measured there on Korean Wikipedia.
PAPER_TABLE_35 = {
    "paper, BPE": (2.073, 0.578, 0.011),
    "paper, morphemes + BPE": (2.468, 0.765, 0.009),
}
WIDTH, HEIGHT = 340, 150  # with the labels; a chart scales with the page
LEFT, BOTTOM, TOP, RIGHT = 44, 30, 8, 8  # margins
MAX_DOTS = 30
HELD_OUT_COLUMNS = {  # key in the metrics: head, factor, digits, title of its curve; the objective decides which exist
    "mlm_loss": ("loss (nats)", 1, 3, "Masked-LM loss (nats)"),
    "masked_accuracy": ("masked accuracy (%)", 100, 2, "Masked accuracy (%)"),
    "causal_loss": ("next-token loss (nats)", 1, 3, "Next-token loss (nats)"),
    "causal_accuracy": ("next-token accuracy (%)", 100, 2, "Next-token accuracy (%)"),
    "perplexity": ("perplexity", 1, 2, ""),
    "nsp_accuracy": ("next sentence accuracy (%)", 100, 2, ""),
}


def corpus_section(run: Path) -> Section:
    """Sizes by source, personal data and decontamination in one table; the corpus card has the details."""
    statistics = read_json(run / "corpus" / "statistics.json")
    total, tasks = statistics["total"], read_json(run / "corpus" / "decontamination.json")["tasks"]
    largest = sorted(statistics["sources"].items(), key=lambda item: (-item[1]["characters"], item[0]))
    rows = [
        [name, *(count(sizes[column]) for column in SIZES), count(sum(sizes["dropped_sentences"].values()))]
        for name, sizes in [*largest[:MAX_SOURCES], ("all", total)]
    ]
    if len(largest) > MAX_SOURCES:
        rows.insert(-1, [f"… and {count(len(largest) - MAX_SOURCES)} smaller sources", *[""] * (1 + len(SIZES))])
    in_benchmarks = ", ".join(f"{task} {count(row['dropped_sentences'])}" for task, row in tasks.items())
    text = (
        f"{count(sum(total['pii'].values()))} values of personal data replaced in {count(total['sentences_with_pii'])} "
        f"sentences ({share(total['sentences_with_pii'], total['sentences'])}; the paper: 1.2 %). Sentences dropped "
        f"because a benchmark contains them: {in_benchmarks or 'no benchmark files were given'}. The corpus card has "
        "all rules with samples."
    )
    table = Table(["source", *SIZES, "sentences dropped"], rows, numbers=range(1, 2 + len(SIZES)))
    return Section("Corpus", [table, Text(text)])


def vocabulary_sections(run: Path) -> list[Section]:
    """Sizes and fit to the corpus, or what an extended vocabulary gained.

    Nothing for a vocabulary that was adopted unchanged, which has no statistics.
    """
    extension = run / "tokenizer" / "extension.json"
    if extension.is_file():
        gained, best = extension_tables(read_json(extension))
        return [Section("Vocabulary", [gained, Text(gained.note, "note"), best])]
    path = run / "tokenizer" / "statistics.json"
    if not path.is_file():
        return []
    statistics = read_json(path)
    entries, fit = statistics["vocabulary"], statistics["fit"]
    crossing = ""
    if "crossing_share" in fit:
        crossing = f"; {number(100 * fit['crossing_share'], 1)} % of the pieces in use cross a morpheme boundary"
    text = (
        f"{count(entries['size'])} entries: {count(entries['starting'])} that start a word, "
        f"{count(entries['continuing'])} that continue a word, {count(entries['unused'])} unused; "
        f"learned from {count(statistics['corpus']['eojeols'])} eojeols by the builder {statistics['builder']}. "
        f"{count(fit['never_used'])} entries do not occur in the corpus{crossing}."
    )
    fertility, words = number(fit["fertility"], 3), number(fit["continued_words"], 3)
    rows = [["this run, on its corpus", fertility, words, number(fit["unknown_ratio"], 4)]]
    rows += [[name, *(number(value, 3) for value in values)] for name, values in PAPER_TABLE_35.items()]
    heads = ["vocabulary", "pieces per eojeol", "eojeols in several pieces", "[UNK] per piece"]
    note = Text(NOTES["vocabulary"], "note")
    return [Section("Vocabulary", [Text(text), Table(heads, rows, numbers=(1, 2, 3)), note])]


def extension_tables(extension: dict[str, Any]) -> list[Table]:
    """The length of the text before and after, and the pieces that shorten it most."""
    text, pieces, base = extension["text"], extension["pieces"], extension["base_size"]
    rows = [
        [
            name, count(size), number(text[f"pieces_{key}"] / text["eojeols"], 3),
            number(text[f"unknown_{key}"] / text["eojeols"], 4),
        ]
        for name, key, size in (("base", "before", base), ("extended", "after", base + len(pieces)))
    ]  # fmt: skip
    words = count(text["eojeols"])
    changed = f"{share(text['changed'], text['eojeols'])} of {words} words are now encoded differently."
    best = [[one["piece"], str(one["id"]), count(one["uses"]), count(one["saved"])] for one in pieces[:MAX_PIECES]]
    title = f"{len(best)} of {count(len(pieces))} new pieces, those that save most; extension.json has all"
    heads = ("vocabulary", "entries", "pieces per word", "[UNK] per word")
    return [
        number_table("The text before and after", heads, rows, changed),
        number_table(title, ("piece", "id", "uses", "pieces saved"), best),
    ]


def pretraining_section(run: Path) -> Section:
    """Loss and accuracy over the steps, speed, and the measurements on held-out text by source."""
    counts = read_json(run / "pretrain" / "manifest.json")["counts"]
    lines = read_lines(run / "pretrain" / "metrics.jsonl")
    training = [line for line in lines if "loss" in line]
    text = (
        f"{counts['architecture']} with {count(counts['parameters'])} parameters, {count(counts['steps'])} steps, "
        f"{count(counts['tokens'])} tokens seen ({counts['epochs']:g} epochs){_speed(training)}."
    )
    curves = [_curves(training, [line for line in lines if "held_out" in line])] if training else []
    note = Text(NOTES["masked_model" if "masked_accuracy" in counts["held_out"] else "causal_model"], "note")
    return Section("Pretraining", [Text(text), *curves, _held_out(counts["held_out"]), note])


def _speed(lines: Sequence[dict[str, Any]]) -> str:
    """Time, speed and MFU; the first line includes the start-up, so it counts only if there is no other."""
    if not lines:
        return ""
    steady = lines[1:] or lines

    def mean(key: str, lines: Sequence[dict[str, Any]]) -> float:
        return float(sum(line[key] * line["seconds"] for line in lines) / sum(line["seconds"] for line in lines))

    seconds, speed = sum(line["seconds"] for line in lines), mean("tokens_per_second", steady)
    parts = [f"{duration(seconds)} of training at {count(speed)} tokens a second"]
    if with_mfu := [line for line in steady if "mfu" in line]:
        parts.append(f"{100 * mean('mfu', with_mfu):.1f} % of the device's peak (MFU)")
    parts.append(f"at most {max(line['memory_gib'] for line in lines):.1f} GiB of memory")
    return f"; {', '.join(parts)}"


def _curves(training: list[dict[str, Any]], held_out_lines: list[dict[str, Any]]) -> Pictures:
    # if the loss is a sum of two, each has its own key; held-out losses are always separate
    only = "mlm_loss" if "masked_accuracy" in training[0] else "causal_loss"
    training = [{only: line["loss"], **line} for line in training]
    held_out = [{"step": line["step"], **line["held_out"]} for line in held_out_lines]
    charts = []
    for key, (_, factor, _, name) in HELD_OUT_COLUMNS.items():
        if not name or key not in training[0]:
            continue
        curves = [
            Curve([line["step"] for line in lines], [factor * line[key] for line in lines], style)
            for lines, style in ((training, "first"), (held_out, "second"))
        ]
        charts.append((name, line_chart(curves, "optimizer step", name, from_zero=factor == 100)))
    return Pictures(charts, [("first", "training"), *([("second", "held-out text")] if held_out else [])])


def _held_out(held_out: dict[str, Any]) -> Table:
    """One row for all sources, one for each source, and the baselines that count words."""
    columns = {key: column for key, column in HELD_OUT_COLUMNS.items() if key in held_out}
    heads = ["text", "sequences", "predictions", *(head for head, *_ in columns.values())]

    def row(name: str, scores: dict[str, Any]) -> list[str]:
        values = [(scores.get(key), factor, digits) for key, (_, factor, digits, _) in columns.items()]
        cells = [number(None if value is None else factor * value, digits) for value, factor, digits in values]
        return [name, count(scores["rows"]), count(scores["predictions"]), *cells]

    rows = [row("all", held_out), *(row(name, scores) for name, scores in sorted(held_out["sources"].items()))]
    accuracy_column = 3 + next(place for place, key in enumerate(columns) if key.endswith("accuracy"))
    for name, accuracy in held_out["baselines"].items():
        baseline = [f"all, {name.removesuffix('_accuracy').replace('_', ' ')} baseline", *["–"] * (len(heads) - 1)]
        baseline[accuracy_column] = number(100 * accuracy)
        rows.append(baseline)
    return Table(heads, rows, numbers=range(1, len(heads)), title="Held-out text, by source")


class Curve(NamedTuple):
    """Values at ascending places; ``style``: class of the stylesheet. Few values of the class "second" get dots."""

    places: Sequence[float]
    values: Sequence[float]
    style: str = "first"


def line_chart(lines: Sequence[Curve], x_label: str, y_label: str, *, from_zero: bool = False) -> str:
    """Lines over one pair of axes with their labels.

    Args:
        from_zero: start the vertical axis at 0.
    """
    lines = [line for line in lines if line.places]
    values = [value for line in lines for value in line.values]
    places = [place for line in lines for place in line.places]
    y_ticks = ticks(0.0 if from_zero else min(values), max(values))
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    first, last = min(places), max(places)
    x = _scale(first, last, LEFT, right)
    y = _scale(min(*values, y_ticks[0]), max(*values, y_ticks[-1]), floor, TOP)
    x_ticks = [tick for tick in ticks(first, last, 5) if first <= tick <= last and tick == int(tick)]
    template = load_templates("launch.report", autoescape=True).get_template("chart.svg.j2")
    return template.render(
        width=WIDTH, height=HEIGHT, left=LEFT, right=right, top=TOP, floor=floor,
        x_label=escape_controls(x_label), y_label=escape_controls(y_label),
        x_ticks=[(tick, x(tick)) for tick in x_ticks], y_ticks=[(tick, y(tick)) for tick in y_ticks],
        lines=[(line.style, [(x(a), y(b)) for a, b in zip(line.places, line.values, strict=True)]) for line in lines],
        max_dots=MAX_DOTS,
    ).rstrip()  # fmt: skip


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Map values from low..high to pixels; a single value is in the middle."""
    return lambda value: start + (end - start) * ((value - low) / (high - low) if high > low else 0.5)


def ticks(low: float, high: float, target: int = 4) -> list[float]:
    """About ``target`` round values that span low to high.

    >>> ticks(5.2, 8.1), ticks(0, 0.34), ticks(1, 3200, 5)
    ([5.0, 6.0, 7.0, 8.0, 9.0], [0.0, 0.1, 0.2, 0.3, 0.4], [0, 500, 1000, 1500, 2000, 2500, 3000, 3500])
    """
    span = (high - low) or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(span / target))
    step = min((size * factor for factor in (1, 2, 5, 10)), key=lambda step: abs(span / step - target))
    digits = max(0, -math.floor(math.log10(step)))
    return [round(number * step, digits) for number in range(math.floor(low / step), math.ceil(high / step) + 1)]
