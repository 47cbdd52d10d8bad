"""The sections on corpus, tokenizer and pretraining, from the statistics that these stages wrote.

They have the columns of the paper's Tables 29 and 35.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corpus.card.write import PII_NAMES
from launch.console import number_table
from launch.numbers import count, duration, number, share
from launch.report.blocks import Bar, Bars, Block, Pictures, Section, Table, Text
from launch.report.charts import Line, line_chart
from launch.report.results import read_json, read_lines

MAX_SOURCES, MAX_PIECES = 12, 20
SIZES = ("documents", "sentences", "words", "characters", "bytes")
# Paper Table 35: fertility, continued words, unknown tokens; measured there on Korean Wikipedia.
PAPER_TABLE_35 = {
    "paper, BPE": (2.073, 0.578, 0.011),
    "paper, morphemes + BPE": (2.468, 0.765, 0.009),
}
EXAMPLE_SENTENCES = (
    "말모이는 우리말을 모은 첫 사전의 이름이다.",
    "가을비가 그치자 아이들이 운동장으로 뛰어나갔다.",
    "배송이 하루 늦었지만 색이 정말 예뻐요ㅋㅋ",
)
HELD_OUT_COLUMNS = {  # key in the metrics: head, factor, digits; the objective decides which are there
    "mlm_loss": ("loss (nats)", 1, 3),
    "masked_accuracy": ("masked accuracy (%)", 100, 2),
    "pseudo_perplexity": ("pseudo-perplexity", 1, 2),
    "causal_loss": ("next-token loss (nats)", 1, 3),
    "causal_accuracy": ("next-token accuracy (%)", 100, 2),
    "perplexity": ("perplexity", 1, 2),
    "nsp_accuracy": ("next sentence accuracy (%)", 100, 2),
}
CURVES = (
    ("Masked-LM loss (nats)", "mlm_loss", 1),
    ("Masked accuracy (%)", "masked_accuracy", 100),
    ("Next-token loss (nats)", "causal_loss", 1),
    ("Next-token accuracy (%)", "causal_accuracy", 100),
)
CAUSAL_NOTE = (
    "Held-out text is not used for training. The baselines predict the next token by counting: the most frequent token "
    "(unigram), or the one that most often follows the last token (bigram). Perplexity is per token."
)
HELD_OUT_NOTE = (
    "Held-out text is not used for training. The baselines predict the same masked tokens by counting: the most "
    "frequent token (unigram), the one after the visible token on the left (bigram), or the one between the two "
    "visible neighbours (both sides). Pseudo-perplexity masks one token at a time (arXiv 1910.14659)."
)


def corpus_sections(run: Path) -> list[Section]:
    """Sizes and dropped text, personal data, decontamination. Samples are in the corpus card."""
    statistics = read_json(run / "corpus" / "statistics.json")
    decontamination = read_json(run / "corpus" / "decontamination.json")
    return [_sizes(statistics), _personal_data(statistics["total"]), _decontamination(decontamination)]


def _sizes(statistics: dict[str, Any]) -> Section:
    def row(name: str, sizes: dict[str, Any]) -> list[str]:
        return [name, *(count(sizes[column]) for column in SIZES), count(sum(sizes["dropped_sentences"].values()))]

    largest = sorted(statistics["sources"].items(), key=lambda item: (-item[1]["characters"], item[0]))
    rows = [row(*item) for item in largest[:MAX_SOURCES]]
    if len(largest) > MAX_SOURCES:
        rows.append([f"… and {count(len(largest) - MAX_SOURCES)} smaller sources", *("" for _ in SIZES), ""])
    total, unreadable = statistics["total"], statistics["records"]["rejected"]
    rows.append(row("all", total))
    blocks: list[Block] = [
        Table(["source", *SIZES, "sentences dropped"], rows, numbers=range(1, 7)),
        *_by_rule("sentences", total["dropped_sentences"], "Dropped sentences", of=total["sentences_split"]),
        *_by_rule("documents", total["dropped_documents"], "Dropped documents"),
        *_by_rule("times", total["changed"], "Removed from kept sentences", folded=True),
    ]
    if unreadable:
        reasons = ", ".join(f"{reason.replace('_', ' ')} {count(n)}" for reason, n in unreadable.items())
        blocks.append(Text(f"Unreadable records, saved in corpus/quarantine with file and line: {reasons}."))
    return Section("Corpus", blocks)


def _by_rule(
    unit: str, counts: Mapping[str, int], title: str, of: int | None = None, folded: bool = False
) -> list[Table]:
    """Counts by rule, with shares if the total is known; no table if no rule applied."""
    shares = [] if of is None else ["share"]
    rows = [[rule.replace("_", " "), count(n), *(share(n, of or 0) for _ in shares)] for rule, n in counts.items()]
    heads = ["rule", unit, *shares]
    return [Table(heads, rows, numbers=range(1, len(heads)), title=title, folded=folded)] if rows else []


def _personal_data(total: dict[str, Any]) -> Section:
    text = (
        f"{count(sum(total['pii'].values()))} values replaced in {count(total['sentences_with_pii'])} sentences "
        f"({share(total['sentences_with_pii'], total['sentences'])}; the paper: 1.2 %). Types as in Table 29."
    )
    most = max(1, *total["pii"].values())
    bars = [Bar(PII_NAMES[name], name, n / most, count(n)) for name, n in total["pii"].items()]
    return Section("Personal data", [Text(text), Bars(bars)])


def _decontamination(record: dict[str, Any]) -> Section:
    tasks, settings = record["tasks"], record["settings"]
    if not tasks:
        return Section("Decontamination", [Text("No benchmark files were given, so nothing was removed.")])
    text = (
        f"A corpus sentence is dropped if it covers {settings['threshold']:.0%} or more of a benchmark sentence's BM25 "
        f"weight (character {settings['ngram']}-grams)."
    )
    rows = [
        [task, *map(count, (row["items"], len(row["found"]), row["dropped_sentences"]))] for task, row in tasks.items()
    ]
    heads = ["task", "benchmark items", "found in the corpus", "sentences dropped"]
    blocks: list[Block] = [Text(text), Table(heads, rows, numbers=(1, 2, 3))]
    examples = [[task, one["item"], one["sentence"]] for task, row in tasks.items() for one in row["examples"][:1]]
    if examples:
        blocks.append(Table(["task", "benchmark item", "sentence dropped"], examples, title="One example per task"))
    return Section("Decontamination", blocks)


def vocabulary_sections(run: Path) -> list[Section]:
    """Sizes, fit to the corpus and the tokens of three sentences, or what an extended vocabulary gained.

    Nothing for a vocabulary that was adopted unchanged, which has no statistics.
    """
    from tokenizer.measuring.encoder import load_tokenizer

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
    encoder = load_tokenizer(run / "tokenizer")
    pieces = [[text, " ".join(encoder.encode(text, add_special_tokens=False).tokens)] for text in EXAMPLE_SENTENCES]
    note = "The paper's numbers are for 32,000 entries on Korean Wikipedia; other text gives other numbers."
    fit_table = Table(heads, rows, numbers=(1, 2, 3))
    return [Section("Vocabulary", [Text(text), fit_table, Text(note, "note"), Table(["sentence", "pieces"], pieces)])]


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
    note = Text(HELD_OUT_NOTE if "masked_accuracy" in counts["held_out"] else CAUSAL_NOTE, "note")
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


def _curves(training: list[dict[str, Any]], measured: list[dict[str, Any]]) -> Pictures:
    # if the loss is a sum of two, each has its own key; held-out losses are always separate
    only = "mlm_loss" if "masked_accuracy" in training[0] else "causal_loss"
    training = [{only: line["loss"], **line} for line in training]
    held_out = [{"step": line["step"], **line["held_out"]} for line in measured]
    charts = []
    for name, key, factor in [curve for curve in CURVES if curve[1] in training[0]]:
        curves = [
            Line([line["step"] for line in lines], [factor * line[key] for line in lines], is_second)
            for lines, is_second in ((training, False), (held_out, True))
        ]
        charts.append((name, line_chart(curves, "optimizer step", name, from_zero=factor == 100)))
    return Pictures(charts, [("first", "training"), *([("second", "held-out text")] if held_out else [])])


def _held_out(held_out: dict[str, Any]) -> Table:
    """One row for all sources, one for each source, and the baselines that count words."""
    columns = {key: column for key, column in HELD_OUT_COLUMNS.items() if key in held_out}
    heads = ["text", "sequences", "predictions", *(head for head, *_ in columns.values())]

    def row(name: str, scores: dict[str, Any]) -> list[str]:
        values = [(scores.get(key), factor, digits) for key, (_, factor, digits) in columns.items()]
        cells = [number(None if value is None else factor * value, digits) for value, factor, digits in values]
        return [name, count(scores["rows"]), count(scores["predictions"]), *cells]

    rows = [row("all", held_out), *(row(name, scores) for name, scores in sorted(held_out["sources"].items()))]
    accuracy_column = 3 + next(place for place, key in enumerate(columns) if key.endswith("accuracy"))
    for name, accuracy in held_out["baselines"].items():
        baseline = [f"all, {name.removesuffix('_accuracy').replace('_', ' ')} baseline", *["–"] * (len(heads) - 1)]
        baseline[accuracy_column] = number(100 * accuracy)
        rows.append(baseline)
    return Table(heads, rows, numbers=range(1, len(heads)), title="Held-out text, by source")
