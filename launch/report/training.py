"""The vocabulary (paper Table 35) and the pretraining curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launch.report.blocks import Block, Pictures, Section, Table, Text
from launch.report.figures import Line, line_chart
from launch.report.gather import count, duration, number, read_json, read_lines

# Paper Table 35: fertility, continued words, unknown tokens; there measured on Korean Wikipedia.
PAPER_TABLE_35 = {
    "paper, BPE": (2.073, 0.578, 0.011),
    "paper, morphemes + BPE": (2.468, 0.765, 0.009),
}
SHOWN_SENTENCES = (
    "말모이는 우리말을 모은 첫 사전의 이름이다.",
    "가을비가 그치자 아이들이 운동장으로 뛰어나갔다.",
    "배송이 하루 늦었지만 색이 정말 예뻐요ㅋㅋ",
)


def vocabulary_section(run: Path) -> Section:
    """Sizes, fit to the corpus and how three sentences are cut."""
    from tokenizer.measuring.encoder import load_tokenizer

    found = read_json(run / "tokenizer" / "statistics.json")
    vocabulary, fit = found["vocabulary"], found["fit"]
    encoder = load_tokenizer(run / "tokenizer")
    pieces = [[text, " ".join(encoder.encode(text, add_special_tokens=False).tokens)] for text in SHOWN_SENTENCES]
    ours = [
        "this run, on its corpus",
        *(number(fit[key], 3) for key in ("fertility", "continued_words")),
        number(fit["unknown_ratio"], 4),
    ]
    paper = [[name, *(number(value, 3) for value in values)] for name, values in PAPER_TABLE_35.items()]
    heads = ["vocabulary", "pieces per eojeol", "eojeols in several pieces", "[UNK] per piece"]
    return Section(
        "Vocabulary",
        [
            Text(
                f"{count(vocabulary['size'])} entries: {count(vocabulary['starting'])} that start a word, "
                f"{count(vocabulary['continuing'])} that continue one (##), {count(vocabulary['unused'])} unused; "
                f"learnt from {count(found['corpus']['eojeols'])} eojeols by the builder {found['builder']}. "
                f"{_use_of_pieces(fit)}"
            ),
            Table(heads, [ours, *paper], numbers=(1, 2, 3)),
            Text("The paper's figures are for 32,000 entries on Korean Wikipedia; other text, other figures.", True),
            Table(["sentence", "pieces"], pieces),
        ],
    )


def _use_of_pieces(fit: dict[str, Any]) -> str:
    never = f"{count(fit['never_used'])} entries are never used on the corpus"
    if "crossing_share" not in fit:
        return f"{never}."
    return f"{never}; {number(100 * fit['crossing_share'], 1)} % of the pieces in use reach over the end of a morpheme."


def pretraining_section(run: Path) -> Section:
    """Loss and accuracy over the steps, speed, and the measurement on text that was never trained on, by source."""
    counts = read_json(run / "pretrain" / "manifest.json")["counts"]
    lines = read_lines(run / "pretrain" / "metrics.jsonl")
    training = [line for line in lines if "loss" in line]
    held_out = [(line["step"], line["held_out"]) for line in lines if "held_out" in line]
    blocks: list[Block] = [
        Text(
            f"{counts['architecture']} with {count(counts['parameters'])} parameters, {count(counts['steps'])} steps, "
            f"{count(counts['tokens'])} tokens seen ({counts['epochs']:g} epochs){_speed(training)}."
        )
    ]
    if training:
        blocks.append(_curves(training, held_out))
    return Section("Pretraining", [*blocks, *_held_out_blocks(counts["held_out"])])


def _curves(training: list[dict[str, Any]], held_out: list[tuple[int, dict[str, Any]]]) -> Pictures:
    steps, measured = [line["step"] for line in training], [step for step, _ in held_out]
    # with sentence pairs the loss is a sum of two; the held-out loss is that of masked words alone
    losses = [line.get("mlm_loss", line["loss"]) for line in training]
    accuracies = [100 * line["masked_accuracy"] for line in training]
    loss = [Line(steps, losses), Line(measured, [scores["mlm_loss"] for _, scores in held_out], True)]
    accuracy = [
        Line(steps, accuracies),
        Line(measured, [100 * scores["masked_accuracy"] for _, scores in held_out], True),
    ]
    names = ("Masked-LM loss (nats)", "Masked accuracy (%)")
    charts = [
        (names[0], line_chart(loss, "optimizer step", names[0])),
        (names[1], line_chart(accuracy, "optimizer step", names[1], from_zero=True)),
    ]
    return Pictures(charts, [("first", "training"), *([("second", "held-out text")] if held_out else [])])


def _speed(lines: list[dict[str, Any]]) -> str:
    """Time, speed and MFU; the first line also holds the start-up, so it counts only where there is no other."""
    if not lines:
        return ""
    steady = lines[1:] or lines
    seconds = sum(line["seconds"] for line in steady)
    speed = sum(line["tokens_per_second"] * line["seconds"] for line in steady) / seconds
    parts = [f"{duration(sum(line['seconds'] for line in lines))} of training at {count(speed)} tokens a second"]
    known = [line for line in steady if "mfu" in line]
    if known:
        share = sum(line["mfu"] * line["seconds"] for line in known) / sum(line["seconds"] for line in known)
        parts.append(f"{100 * share:.1f} % of what the device could do at best (MFU)")
    parts.append(f"at most {max(line['memory_gib'] for line in lines):.1f} GiB of memory")
    return f"; {', '.join(parts)}"


def _held_out_blocks(held_out: dict[str, Any]) -> list[Block]:
    """One row over all sources, one for each, and the baselines that count words."""
    has_pairs = "nsp_accuracy" in held_out
    heads = ["text", "sequences", "predictions", "loss (nats)", "masked accuracy (%)", "pseudo-perplexity"]
    if has_pairs:
        heads.append("next sentence accuracy (%)")
    rows = [_held_out_row("all", held_out, has_pairs)]
    rows += [_held_out_row(name, found, has_pairs) for name, found in sorted(held_out["sources"].items())]
    for name, accuracy in held_out["baselines"].items():
        baseline = f"all, {name.removesuffix('_accuracy').replace('_', ' ')} baseline"
        rows.append([baseline, "–", "–", "–", number(100 * accuracy), "–", *(["–"] if has_pairs else [])])
    note = (
        "Held-out text was never trained on. The baselines predict the same masked pieces by counting: the most "
        "frequent piece (unigram), the one after the visible piece on the left (bigram), or the one between the two "
        "visible neighbours (both sides). "
        "Pseudo-perplexity masks one piece at a time (arXiv 1910.14659)."
    )
    return [
        Table(heads, rows, numbers=range(1, len(heads)), title="Held-out text, by source"),
        Text(note, is_note=True),
    ]


def _held_out_row(name: str, found: dict[str, Any], has_pairs: bool) -> list[str]:
    def percent(key: str) -> str:
        return number(100 * found[key]) if found.get(key) is not None else "–"

    row = [
        name,
        count(found["rows"]),
        count(found["predictions"]),
        number(found["mlm_loss"], 3),
        percent("masked_accuracy"),
        number(found["pseudo_perplexity"]),
    ]
    return [*row, percent("nsp_accuracy")] if has_pairs else row
