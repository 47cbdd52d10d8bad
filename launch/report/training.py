"""The vocabulary (paper Table 35) and the pretraining curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launch.report.blocks import Block, Picture, Section, Table, Text
from launch.report.figures import draw_loss
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
    from tokenizer.statistics import load_tokenizer

    found = read_json(run / "tokenizer" / "statistics.json")
    vocabulary, fit = found["vocabulary"], found["fit"]
    encoder = load_tokenizer(run / "tokenizer")
    pieces = [[text, " ".join(encoder.encode(text, add_special_tokens=False).tokens)] for text in SHOWN_SENTENCES]
    ours = [
        "this run, on its corpus",
        *(number(fit[key], 3) for key in ("fertility", "continued_words", "unknown_ratio")),
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
    """Loss and accuracy over the steps, and the measurement on text that was never trained on."""
    counts = read_json(run / "pretrain" / "manifest.json")["counts"]
    lines = read_lines(run / "pretrain" / "metrics.jsonl")
    held_out = counts["held_out"]
    blocks: list[Block] = [
        Text(
            f"{counts['architecture']} with {count(counts['parameters'])} parameters, {count(counts['steps'])} steps, "
            f"{count(counts['tokens'])} tokens seen ({counts['epochs']:g} epochs), "
            f"{duration(sum(line['seconds'] for line in lines))} of training."
        )
    ]
    if lines:
        steps, losses = [line["step"] for line in lines], [line["loss"] for line in lines]
        accuracies = [100 * line["masked_accuracy"] for line in lines]
        blocks.append(Picture(draw_loss(steps, losses, accuracies, held_out.get("mlm_loss", held_out.get("loss")))))
    rows = [
        [name.replace("_", " "), number(value, 4) if isinstance(value, float) else count(value)]
        for name, value in held_out.items()
    ]
    blocks.append(
        Table(
            ["held-out figure", "value"],
            rows,
            numbers=(1,),
            title=f"{count(counts['held_out_rows'])} held-out sequences",
        )
    )
    return Section("Pretraining", blocks)
