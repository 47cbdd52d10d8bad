"""The tokenizer stage: document shards to a WordPiece vocabulary (paper section 4.1, Appendix C).

```
shards ─ count ─▶ eojeol types + windows ─ merge ─▶ chunks ─ morphemes ─▶ weighted units ─ merges ─▶ vocab.txt
```
Each arrow is a resumable map; what lies between is kept in ``work/`` until the export is complete.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents import BadInput, map_units, shard_paths, unit_folder
from tokenizer.card import write_card
from tokenizer.config import SPECIAL_TOKENS, TokenizerConfig
from tokenizer.count import TYPES_NAME, chunk_name, count_shard, merge_shards, read_types
from tokenizer.export import build_tokenizer, build_vocabulary, export, write_json
from tokenizer.morphemes import analyser_versions
from tokenizer.statistics import TokenizerStatistics, measure_counts
from tokenizer.train import PREFIX, learn_pieces
from tokenizer.units import BUILDERS, UNITS_NAME, merge_units, units_of_chunk

log = logging.getLogger(__name__)


class TokenizerInputs(NamedTuple):
    """``corpus``: a folder of the corpus stage, with ``documents/shard-*.parquet``."""

    corpus: Path


def run(config: TokenizerConfig, inputs: TokenizerInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Write a Hugging Face tokenizer folder with statistics.json into ``out``; returns sizes and Table 35's figures.

    Raises:
        BadInput: no shards, or no words in them.
    """
    work, discarded = out / "work", out / "work.discarded"
    shutil.rmtree(discarded, ignore_errors=True)
    chunks, corpus = count_corpus(shard_paths(inputs.corpus / "documents"), work, workers)
    if not corpus["eojeols"]:
        raise BadInput(f"{inputs.corpus}: no words in its documents; check what the corpus stage dropped")
    units = make_units(chunks, config, work, workers)
    if not units:
        raise BadInput(f"{inputs.corpus}: nothing but control characters and words of more than 100 characters")
    vocabulary = train_vocabulary(units, config)
    statistics = {
        "builder": config.builder,
        "vocabulary": describe_vocabulary(vocabulary, config),
        "corpus": {**corpus, "units": len(units)},
        "fit": measure_chunks(vocabulary, chunks).as_json(),
        "analyser": analyser_versions() if BUILDERS[config.builder].uses_morphemes else {},
    }
    write_json(out / "statistics.json", statistics)
    export(vocabulary, config, write_card(config, statistics), out)
    work.replace(discarded)  # in one step: a half deleted folder must not pass for finished work
    shutil.rmtree(discarded)
    return summarize(statistics)


def count_corpus(shards: Sequence[Path], work: Path, workers: int) -> tuple[list[Path], dict[str, Any]]:
    """Eojeol types of all shards as files of sorted rows, and what the corpus holds."""
    counted = map_units(count_shard, shards, work / "count", workers=workers, title="eojeols")
    parts = [unit_folder(work / "count", number) / TYPES_NAME for number in range(len(shards))]
    [merged] = map_units(merge_shards, [parts], work / "types", title="eojeol types")
    chunks = [unit_folder(work / "types", 0) / chunk_name(number) for number in range(merged["chunks"])]
    sources: Counter[str] = Counter()
    for counts in counted:
        sources.update(counts["sources"])
    return chunks, {
        "documents": sources.total(),
        "sources": dict(sorted(sources.items())),
        "characters": sum(counts["characters"] for counts in counted),
        "eojeols": merged["eojeols"],
        "eojeol_types": merged["types"],
    }


def make_units(chunks: Sequence[Path], config: TokenizerConfig, work: Path, workers: int) -> dict[str, int]:
    """Training units of all eojeol types with their counts."""
    make = partial(units_of_chunk, builder=config.builder)
    map_units(make, chunks, work / "units", workers=workers, title="morphemes")
    return merge_units(unit_folder(work / "units", number) / UNITS_NAME for number in range(len(chunks)))


def train_vocabulary(units: Mapping[str, int], config: TokenizerConfig) -> list[str]:
    """Entries by id; fewer than ``vocab_size``, with a warning, where the corpus holds no more."""
    size = config.vocab_size - len(SPECIAL_TOKENS[config.special_tokens]) - config.unused
    pieces = learn_pieces(units, size, alphabet=config.alphabet, min_frequency=config.min_frequency)
    vocabulary = build_vocabulary(pieces, config)
    if len(vocabulary) < config.vocab_size:
        log.warning(
            "the corpus fills %d of %d vocabulary entries: no pair is left that occurs %d times",
            len(vocabulary), config.vocab_size, config.min_frequency,
        )  # fmt: skip
    return vocabulary


def measure_chunks(vocabulary: Sequence[str], chunks: Sequence[Path]) -> TokenizerStatistics:
    """Statistics over the corpus itself, by its eojeol types."""

    def counts() -> Iterator[tuple[str, int]]:
        for chunk in chunks:
            for row in read_types(chunk):
                yield row.eojeol, row.frequency

    return measure_counts(build_tokenizer(vocabulary), counts())


def describe_vocabulary(vocabulary: Sequence[str], config: TokenizerConfig) -> dict[str, Any]:
    """Sizes of the parts of a vocabulary and the digest of its vocab.txt."""
    special = len(SPECIAL_TOKENS[config.special_tokens])
    learnt = vocabulary[special : len(vocabulary) - config.unused]
    continuing = sum(piece.startswith(PREFIX) for piece in learnt)
    return {
        "size": len(vocabulary),
        "special": special,
        "unused": config.unused,
        "starting": len(learnt) - continuing,
        "continuing": continuing,
        "alphabet": sum(len(piece) == 1 for piece in learnt),
        "sha256": sha256("".join(f"{piece}\n" for piece in vocabulary).encode()).hexdigest(),
    }


def summarize(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """The counts that the manifest keeps."""
    corpus, fit = statistics["corpus"], statistics["fit"]
    return {
        "vocab_size": statistics["vocabulary"]["size"],
        **{name: corpus[name] for name in ("documents", "eojeols", "eojeol_types", "units")},
        **{name: fit[name] for name in ("tokens", "fertility", "continued_words", "unknown_ratio")},
        "sha256": statistics["vocabulary"]["sha256"],
    }
