"""The card (README.md) of an exported tokenizer, from its settings and statistics.json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from corpus.documents.escaping import escape_markdown
from corpus.documents.templates import load_templates
from tokenizer.config import TokenizerConfig

HOW = {
    "klue": "byte-pair merges inside morphemes, each morpheme learned as the start of a word "
    "(KLUE paper, section 4.1, with the order of the released vocabulary)",
    "bpe": "byte-pair merges inside words, without morphemes (the baseline of the KLUE paper, Table 35)",
    "malmoi": "byte-pair merges inside morphemes; a morpheme inside a word is learned with `##`, "
    "and pieces that cut across morphemes when words are encoded are pruned",
}
# fertility, share of words in several pieces, share of [UNK]; 32,000 entries, on Korean Wikipedia
PAPER_TABLE_35 = {"BPE of the paper": (2.073, 0.578, 0.011), "morpheme-based BPE of the paper": (2.468, 0.765, 0.009)}
UNESCAPED = re.compile(r"(?<!\\)\|")
LISTED_SOURCES = 20  # there may be thousands


def write_card(config: TokenizerConfig, statistics: Mapping[str, Any]) -> str:
    """Markdown of the card with the Hub's metadata; ``statistics``: the content of statistics.json."""
    environment = load_templates("tokenizer")
    environment.filters |= {"number": _number, "named": _named}
    fit = statistics["fit"]
    table_35 = {
        "**this one**, its own corpus": (fit["fertility"], fit["continued_words"], fit["unknown_ratio"]),
        **PAPER_TABLE_35,
    }
    return environment.get_template("card.md.j2").render(
        **statistics,
        config=config,
        how=HOW[config.builder],
        settings=[
            (f"`{name}`", f"`{_number(value)}`")
            for name, value in config.model_dump(mode="json", exclude={"extend"}).items()
        ],
        sources=_largest(statistics["corpus"]["sources"]),
        table_35=[(name, f"{a:.3f}", f"{b:.3f}", f"{c:.4f}") for name, (a, b, c) in table_35.items()],
        table=_table,
    )


def _largest(sources: Mapping[str, int]) -> list[tuple[str, int]]:
    ranked = sorted(sources.items(), key=lambda row: (-row[1], row[0]))
    rows = [(escape_markdown(name), count) for name, count in ranked[:LISTED_SOURCES]]
    if others := ranked[LISTED_SOURCES:]:
        rows.append((f"{len(others):,} others", sum(count for _, count in others)))
    return rows


def _table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    heads = list(heads)
    ruler = ["---", *("---:" for _ in heads[1:])]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in (heads, ruler, *rows))


def _cell(value: Any) -> str:
    """A value with escaped pipes, on one line."""
    return UNESCAPED.sub(r"\\|", " ".join(_number(value).split()))


def _number(value: Any) -> str:
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _named(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
