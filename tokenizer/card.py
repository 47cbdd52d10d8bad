"""The card (README.md) of an exported tokenizer: what it was made of and how, its figures, its limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizer.config import TokenizerConfig

HOW = {
    "klue": "byte-pair merges inside morphemes, each morpheme learnt as the start of a word "
    "(the recipe of the KLUE paper, section 4.1)",
    "bpe": "byte-pair merges inside words, without morphemes (the baseline of the KLUE paper, Table 35)",
    "malmoi": "byte-pair merges inside morphemes; one that follows another in its word is learnt with `##`",
}

TEMPLATE = """\
---
language: ko
library_name: transformers
tags: [korean, wordpiece, bert]
---

# Korean WordPiece vocabulary, {vocab_size:,} entries

Made by malmoi: {how}. No analyser is needed to use it.

| | |
|---|---|
| starting a word | {starting:,} |
| continuing one (`##`) | {continuing:,} |
| special, unused | {special}, {unused:,} |
| characters | {alphabet:,} |
| corpus | {documents:,} documents, {eojeols:,} eojeols of {eojeol_types:,} kinds, {corpus_characters:,} characters |
| sources | {sources} |
| analyser | {analyser} |

Over the corpus itself, a word being an eojeol (between white space):

| pieces per word | words in several pieces | [UNK] per piece | pieces per character |
|---|---|---|---|
| {fertility:.3f} | {continued_words:.3f} | {unknown_ratio:.4f} | {tokens_per_character:.3f} |

```python
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
tokenizer.tokenize("조경현은 인공지능 분야의 저명한 연구자이다.")
```

Limits: a word with a character outside the {alphabet:,} is [UNK] as a whole, and so is one of more than 100 characters.
Text must be in NFC; in NFD, as macOS writes file names, every Korean word is [UNK]. Case is kept.
Figures over the training text flatter a vocabulary; `malmoi tokenizer stats` measures it on other text.
"""


def write_card(config: TokenizerConfig, statistics: Mapping[str, Any]) -> str:
    """Markdown of the card; ``statistics`` is the content of statistics.json."""
    vocabulary, corpus, fit = (statistics[part] for part in ("vocabulary", "corpus", "fit"))
    sources = ", ".join(f"{name} ({count:,})" for name, count in corpus["sources"].items())
    analyser = ", ".join(f"{name} {version}" for name, version in statistics["analyser"].items())
    return TEMPLATE.format(
        how=HOW[config.builder],
        vocab_size=vocabulary["size"],
        sources=sources,
        analyser=analyser or "none",
        corpus_characters=corpus["characters"],
        **{name: vocabulary[name] for name in ("starting", "continuing", "special", "unused", "alphabet")},
        **{name: corpus[name] for name in ("documents", "eojeols", "eojeol_types")},
        **{name: fit[name] for name in ("fertility", "continued_words", "unknown_ratio", "tokens_per_character")},
    )
