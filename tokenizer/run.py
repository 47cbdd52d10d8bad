"""The tokenizer stage: document shards to a WordPiece vocabulary (paper section 4.1, Appendix C).

```
shards ─ count ─▶ eojeol types + windows ─ weigh ─▶ segmented words, units ─ merges ─▶ pieces ─ prune ─▶ vocab.txt
```
Each arrow except the merges is a resumable parallel map; intermediate files are in ``work/`` until the export.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpus.documents.errors import BadInput
from corpus.documents.shards import shard_paths
from corpus.documents.units import MapUnits, reuse_processes, unit_folder
from corpus.documents.units import map_units as map_in_processes
from tokenizer.building.alphabet import choose_alphabet, single_pieces
from tokenizer.building.analysers import load_analyser, versions_of
from tokenizer.building.count import TYPES_NAME, count_portion, divide, lowest_frequency, merge_partition, run_name
from tokenizer.building.export import build_vocabulary, export, write_json
from tokenizer.building.merges import PREFIX, learn_pieces
from tokenizer.building.pruning import MAX_CROSSING_SHARE, ROUNDS, add_up_uses, prune, read_pieces, write_pieces
from tokenizer.building.units import BUILDERS, UNITS_NAME, read_counts, weigh_partition
from tokenizer.card import write_card
from tokenizer.config import SPECIAL_TOKENS, TokenizerConfig
from tokenizer.measuring.statistics import measure_fit

log = logging.getLogger(__name__)

PIECES_NAME = "pieces.txt"


class TokenizerInputs(NamedTuple):
    corpus: Path  # a folder of the corpus stage, with documents/shard-*.parquet


def run(
    config: TokenizerConfig,
    inputs: TokenizerInputs,
    out: Path,
    *,
    workers: int = 1,
    map_units: MapUnits | None = None,
) -> dict[str, Any]:
    """Write a Hugging Face tokenizer folder with statistics.json into ``out``; returns sizes and Table 35's figures.

    The output does not depend on ``workers``. ``map_units``: the executor of a cluster.
    """
    if BUILDERS[config.builder].analyser:
        load_analyser(config.analyser)  # before any work, as it may not be installed
    work, discarded = out / "work", out / "work.discarded"
    shutil.rmtree(discarded, ignore_errors=True)
    with reuse_processes(workers):  # none is started if a cluster does the work
        do = partial(map_units or map_in_processes, workers=workers)
        vocabulary, statistics = build(inputs.corpus, config, work, do)
    write_json(out / "statistics.json", statistics)
    export(vocabulary, config, write_card(config, statistics), out)
    work.replace(discarded)  # in one step: a half-deleted folder must not look like finished work
    shutil.rmtree(discarded)
    return summarize(statistics)


def build(corpus_folder: Path, config: TokenizerConfig, work: Path, do: MapUnits) -> tuple[list[str], dict[str, Any]]:
    """Entries by id, and the content of statistics.json."""
    types, corpus = count_corpus(shard_paths(corpus_folder / "documents"), work, do)
    if not corpus["eojeols"]:
        raise BadInput(f"{corpus_folder}: no words in its documents; check what the corpus stage dropped")
    segmented, analysed = weigh_types(types, corpus.pop("frequencies"), config, work, do)
    learned, units = learn(segmented, corpus.pop("alphabet"), config, work)
    if not units:
        raise BadInput(f"{corpus_folder}: only control characters and words of more than 100 characters")
    pieces, pruning = prune_pieces(learned, segmented, config, work, do)
    vocabulary = build_vocabulary(pieces, config)
    if len(vocabulary) < config.vocab_size:
        log.warning(
            "only %d of %d vocabulary entries: no other pair occurs %d times; add text for more",
            len(vocabulary), config.vocab_size, config.min_frequency,
        )  # fmt: skip
    return vocabulary, {
        "builder": config.builder,
        "vocabulary": describe_vocabulary(vocabulary, config),
        "corpus": {**corpus, **analysed, "units": units},
        "analyser": versions_of(config.analyser) if BUILDERS[config.builder].analyser else {},
        "versions": {name: version(name) for name in ("malmoi", "tokenizers")},
        **({"pruning": pruning} if pruning else {}),
        "fit": measure_fit(vocabulary, types, segmented, config, work, do),
    }


def count_corpus(shards: Sequence[Path], work: Path, do: MapUnits) -> tuple[list[Path], dict[str, Any]]:
    """Files of eojeol types, one per partition, and counts of the corpus, with ``frequencies`` and ``alphabet``."""
    portions, partitions = divide(shards)
    count = partial(count_portion, partitions=partitions)
    per_portion = do(count, portions, work / "count", title="count words", size_of=attrgetter("size"))
    homes = [unit_folder(work / "count", number) for number in range(len(portions))]
    runs = [home / run_name(n) for home, counts in zip(homes, per_portion, strict=True) for n in range(counts["runs"])]
    merge = partial(merge_partition, runs=runs)
    merged = do(merge, range(partitions), work / "types", title="add up counts")
    sources = _add_up(counts["sources"] for counts in per_portion)
    return [unit_folder(work / "types", number) / TYPES_NAME for number in range(partitions)], {
        "documents": sources.total(),
        "sources": dict(sorted(sources.items())),
        "characters": sum(counts["characters"] for counts in per_portion),
        "eojeols": sum(counts["eojeols"] for counts in merged),
        "eojeol_types": sum(counts["types"] for counts in merged),
        "frequencies": {int(kind): n for kind, n in _add_up(counts["frequencies"] for counts in merged).items()},
        "alphabet": _add_up(counts["characters"] for counts in merged),
    }


def _add_up(parts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


def weigh_types(
    types: Sequence[Path], frequencies: Mapping[int, int], config: TokenizerConfig, work: Path, do: MapUnits
) -> tuple[list[Path], dict[str, int]]:
    """Folders of segmented words and units, one per partition, and the number of types in them."""
    lowest = lowest_frequency(frequencies, config.max_types)
    weigh = partial(
        weigh_partition,
        builder=config.builder,
        analyser=config.analyser,
        lowest_frequency=lowest,
        jamo_fallback=config.jamo_fallback,
    )
    weighed = do(weigh, types, work / "units", title="split words")
    return [unit_folder(work / "units", number) for number in range(len(types))], {
        "analysed_types": sum(counts["types"] for counts in weighed),
        "lowest_frequency": lowest,
    }


def learn(
    segmented: Sequence[Path], alphabet: Mapping[str, int], config: TokenizerConfig, work: Path
) -> tuple[list[str], int]:
    """Pieces learned from the units of all partitions (with extra ones to prune), and the number of units."""
    work_on = partial(_learn, alphabet=alphabet, config=config)
    [counts] = map_in_processes(work_on, [tuple(segmented)], work / "merges", title="learn pieces")
    return read_pieces(unit_folder(work / "merges", 0) / PIECES_NAME), counts["units"]


def _learn(
    segmented: Sequence[Path], scratch: Path, *, alphabet: Mapping[str, int], config: TokenizerConfig
) -> dict[str, Any]:
    units = read_counts(part / UNITS_NAME for part in segmented)
    size = config.learned
    builder, form = BUILDERS[config.builder], {"jamo_fallback": config.jamo_fallback}
    singles = single_pieces(choose_alphabet(alphabet, config.alphabet, size, complete=builder.prunes, **form), **form)
    if builder.prunes:
        size = int(size * config.overgeneration)
    lightest = builder.weight("가", config.min_frequency, config.min_frequency)
    pieces = learn_pieces(units, size, singles=singles, min_frequency=lightest)
    write_pieces(scratch / PIECES_NAME, pieces)
    return {"units": len(units)}


def prune_pieces(
    pieces: Sequence[str], segmented: Sequence[Path], config: TokenizerConfig, work: Path, do: MapUnits
) -> tuple[list[str], dict[str, Any]]:
    """The pieces to keep, and the counts of dropped ones; builders without pruning keep all."""
    if not BUILDERS[config.builder].prunes:
        return list(pieces), {}

    def count_uses(remaining: Sequence[str], number: int) -> np.ndarray:
        listed = work / f"pieces-{number}.txt"
        write_pieces(listed, remaining)
        return add_up_uses(listed, segmented, work / f"uses-{number}", do)

    limits: dict[str, Any] = {"rounds": ROUNDS, "max_crossing_share": MAX_CROSSING_SHARE}
    remaining, dropped = prune(pieces, config.learned, **limits, count_uses=count_uses)
    return remaining, {"overgenerated": len(pieces), **dropped, **limits}


def describe_vocabulary(vocabulary: Sequence[str], config: TokenizerConfig) -> dict[str, Any]:
    """Sizes of the sections of a vocabulary and the digest of its vocab.txt."""
    special = len(SPECIAL_TOKENS[config.special_tokens])
    learned = vocabulary[special : len(vocabulary) - config.unused]
    continuing = sum(piece.startswith(PREFIX) for piece in learned)
    return {
        "size": len(vocabulary),
        "special": special,
        "unused": config.unused,
        "starting": len(learned) - continuing,
        "continuing": continuing,
        "alphabet": sum(len(piece) == 1 for piece in learned),
        "sha256": sha256("".join(f"{piece}\n" for piece in vocabulary).encode()).hexdigest(),
    }


def summarize(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """The counts for the manifest."""
    corpus, fit = statistics["corpus"], statistics["fit"]
    return {
        "vocab_size": statistics["vocabulary"]["size"],
        **{name: corpus[name] for name in ("documents", "eojeols", "eojeol_types", "units")},
        **{name: fit[name] for name in ("tokens", "fertility", "continued_words", "unknown_ratio", "unknown_hangul")},
        "sha256": statistics["vocabulary"]["sha256"],
    }
