"""The card (README.md) of an exported tokenizer: what it was made of and how, its figures, its limits, how to load it.

Everything is taken from the settings and from statistics.json, so the card cannot claim what was not measured; a part
that a run did not measure is left out, never guessed. Licence and name are the publisher's to choose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from corpus.documents.escaping import markdown
from tokenizer.config import TokenizerConfig

HOW = {
    "klue": "byte-pair merges inside morphemes, each morpheme learnt as the start of a word "
    "(the recipe of the KLUE paper, section 4.1, as the released vocabulary shows it was carried out)",
    "bpe": "byte-pair merges inside words, without morphemes (the baseline of the KLUE paper, Table 35)",
    "malmoi": "byte-pair merges inside morphemes; one that follows another in its word is learnt with `##`, "
    "and pieces that cut across morphemes when words are encoded greedily are pruned",
}
# fertility, share of words in several pieces, share of [UNK]: its 32,000 entries over Korean Wikipedia
PAPER_TABLE_35 = {"BPE of the paper": (2.073, 0.578, 0.011), "morpheme-based BPE of the paper": (2.468, 0.765, 0.009)}
UNESCAPED = re.compile(r"(?<!\\)\|")
LISTED_SOURCES = 20  # a source may be a file, and there may be thousands
PRUNING = {
    "overgenerated": "learnt at first",
    "dropped_crossing": "dropped, as most of their uses cut across morphemes",
    "dropped_rare": "dropped, as the least used of the rest",
    "rounds": "rounds",
    "max_crossing_share": "share of crossing uses above which a piece was dropped",
}
REFERENCES = {"gold": "people (KLUE-DP)", "silver": "mecab-ko, which is not always right"}
BOUNDARIES = {"precision": "precision", "recall": "recall", "f1": "F1", "keeps_all": "words with every boundary"}


def write_card(config: TokenizerConfig, statistics: Mapping[str, Any], *, licence: str | None = None) -> str:
    """Markdown of the card, with the Hub's metadata at its head.

    Args:
        config: settings of the build.
        statistics: content of statistics.json; ``pruning``, ``gold``, ``silver``, ``versions`` and everything in
            ``fit`` but Table 35's figures may be missing.
        licence: identifier of the Hub ("cc-by-sa-4.0"); without one the field is left out.
    """
    parts = (
        _metadata(licence),
        f"# Korean WordPiece vocabulary, {statistics['vocabulary']['size']:,} entries",
        f"Made by malmoi: {HOW[config.builder]}. No analyser is needed to use it.",
        _use(config),
        _contents(statistics["vocabulary"]),
        _making(config, statistics),
        _corpus(statistics["corpus"]),
        _figures(statistics),
        _limits(config, statistics["vocabulary"]),
        _reproducing(statistics),
    )
    return "\n\n".join(parts) + "\n"


def _metadata(licence: str | None) -> str:
    rows = ["language: ko", "library_name: transformers", "tags: [korean, wordpiece, bert, malmoi]"]
    return "\n".join(["---", *([f"license: {licence}"] if licence else []), *rows, "---"])


def _use(config: TokenizerConfig) -> str:
    lines = ["## Use", "", "```python", "from transformers import AutoTokenizer", ""]
    lines.append('tokenizer = AutoTokenizer.from_pretrained("FOLDER")  # this folder, or its name on the Hub')
    if config.hardened:
        lines.append('plain = AutoTokenizer.from_pretrained("FOLDER", subfolder="plain")  # BERT\'s rules alone')
    lines += ['tokenizer.tokenize("조경현은 인공지능 분야의 저명한 연구자이다.")', "```", ""]
    if config.hardened:
        lines.append(
            "Hardened: a syllable without a piece is written as its jamo, jamo outside syllables as letters (ᄏᄏ as "
            "ㅋㅋ), and NFD as NFC. These rules stand in `tokenizer.json`; `BertTokenizer` would rebuild the "
            "tokenizer without them, so the class is `PreTrainedTokenizerFast`. `plain/` has the same ids without "
            "the rules, for `BertTokenizer` and for programs that read `vocab.txt` alone. Decoded text may hold "
            'loose jamo: `unicodedata.normalize("NFC", text)` joins them.'
        )
    else:
        lines.append(
            "Plain BERT rules, nothing lowercased: `BertTokenizerFast`, `PreTrainedTokenizerFast` and the `tokenizers` "
            "library give the same ids, as does any program that reads `vocab.txt`."
        )
    return "\n".join(lines)


def _contents(vocabulary: Mapping[str, Any]) -> str:
    rows = {
        "starting a word": f"{vocabulary['starting']:,}",
        "continuing one (`##`)": f"{vocabulary['continuing']:,}",
        "special": vocabulary["special"],
        "unused, for your own": f"{vocabulary['unused']:,}",
        "single characters": f"{vocabulary['alphabet']:,}",
    }
    return "## Entries\n\n" + _table(("", ""), rows.items())


def _making(config: TokenizerConfig, statistics: Mapping[str, Any]) -> str:
    analyser = ", ".join(f"{name} {version}" for name, version in statistics.get("analyser", {}).items())
    parts = [
        "## How it was made",
        f"Builder `{config.builder}`: {HOW[config.builder]}. Analyser: {analyser or 'none'}.",
    ]
    if pruning := statistics.get("pruning"):
        rows = [(text, _number(pruning[name])) for name, text in PRUNING.items() if name in pruning]
        parts.append(_table(("pruning", "pieces"), rows))
    settings = ((f"`{name}`", f"`{_number(value)}`") for name, value in config.model_dump(mode="json").items())
    parts.append(_table(("setting", "value"), settings))
    return "\n\n".join(parts)


def _corpus(corpus: Mapping[str, Any]) -> str:
    size = (
        f"{corpus['documents']:,} documents, {corpus['eojeols']:,} eojeols of {corpus['eojeol_types']:,} kinds, "
        f"{corpus['characters']:,} characters."
    )
    ranked = sorted(corpus["sources"].items(), key=lambda row: (-row[1], row[0]))
    rows: list[tuple[str, int]] = [(markdown(name), count) for name, count in ranked[:LISTED_SOURCES]]
    if others := ranked[LISTED_SOURCES:]:
        rows.append((f"{len(others):,} others", sum(count for _, count in others)))
    return f"## Corpus\n\n{size}\n\n" + _table(("source", "documents"), rows)


def _figures(statistics: Mapping[str, Any]) -> str:
    fit = statistics["fit"]
    ours = (fit["fertility"], fit["continued_words"], fit["unknown_ratio"])
    rows = [
        (name, f"{fertility:.3f}", f"{continued:.3f}", f"{unknown:.4f}")
        for name, (fertility, continued, unknown) in {"**this one**, its own corpus": ours, **PAPER_TABLE_35}.items()
    ]
    parts = [
        "## Figures",
        "Columns of the KLUE paper's Table 35, a word being an eojeol (between white space). The paper's rows are over "
        "Korean Wikipedia; other text gives other figures.",
        _table(("", "pieces per word", "words in several pieces", "[UNK] per piece"), rows),
    ]
    more = {
        "pieces per character": fit["tokens_per_character"],
        "pieces that cut across morphemes, share of uses": fit.get("crossing_share"),
        "entries its corpus never uses": fit.get("never_used"),
    }
    parts.append(_table(("", ""), ((name, _number(value)) for name, value in more.items() if value is not None)))
    if scored := {name: statistics[name] for name in REFERENCES if statistics.get(name)}:
        heads = ("morpheme boundaries set by", *BOUNDARIES.values())
        parts.append(_table(heads, ((REFERENCES[n], *map(_number, _pick(scored[n]))) for n in scored)))
    if unknown := fit.get("unknown_words_by_class") or fit.get("unknown_words"):
        parts.append(_table(("unknown words, by what is to blame", "words"), unknown.items()))
    return "\n\n".join(parts)


def _pick(scores: Mapping[str, Any]) -> list[Any]:
    return [scores.get(name) for name in BOUNDARIES]


def _limits(config: TokenizerConfig, vocabulary: Mapping[str, Any]) -> str:
    known = f"the {vocabulary['alphabet']:,} single characters"
    if config.hardened:
        limits = [
            "No modern Hangul is [UNK] by itself. A word is, as a whole, if it holds another character outside "
            f"{known}, or more than 300 characters, jamo counted.",
            "Old Hangul (ᆞ, ᄫ) has no such way out.",
            "Of text in NFD, as macOS writes file names, the ids are right but the offsets cover only the first jamo "
            "of each syllable; normalise to NFC where offsets matter.",
            "A combining mark right after a syllable that is written as jamo is dropped if UTF-8 gives it two bytes.",
        ]
    else:
        limits = [
            f"A word with a character outside {known} is [UNK] as a whole, and so is one of more than 100 characters.",
            "Text must be in NFC; in NFD, as macOS writes file names, every Korean word is [UNK].",
        ]
    limits += [
        "Case is kept.",
        "Figures over the training text flatter a vocabulary; `malmoi tokenizer stats` measures it on other text.",
        "How well pieces fit morphemes says little by itself about how well a model does.",
    ]
    return "## Limits\n\n" + "\n".join(f"- {limit}" for limit in limits)


def _reproducing(statistics: Mapping[str, Any]) -> str:
    lines = [
        "## Reproducing it",
        "",
        "No randomness: the same corpus, settings and analyser give the same bytes for any number of workers and any "
        "order of files. sha256 of `vocab.txt`:",
        "",
        f"`{statistics['vocabulary']['sha256']}`",
    ]
    if versions := statistics.get("versions"):
        lines += ["", "Made with " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."]
    return "\n".join(lines)


def _table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    heads = list(heads)
    ruler = ["---", *("---:" for _ in heads[1:])]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in (heads, ruler, *rows))


def _cell(value: Any) -> str:
    """Text of ours inside a table."""
    return UNESCAPED.sub(r"\\|", " ".join(_number(value).split()))


def _number(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
