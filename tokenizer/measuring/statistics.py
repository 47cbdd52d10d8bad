"""How well a vocabulary fits a text: the columns of paper Table 35 and more, for any Hugging Face tokenizer.

A word is an eojeol, as in the paper (per BERT word, the figures would be a fifth lower). Every distinct eojeol is
encoded once, as after a space, and weighted by its count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from tokenizers import Tokenizer

from corpus.documents.errors import BadInput
from corpus.documents.units import MapUnits, unit_folder
from tokenizer.building.export import build_tokenizer
from tokenizer.building.pruning import USES_NAME, read_pieces, uses_in_file, write_pieces
from tokenizer.building.units import BUILDERS, WORDS_NAME
from tokenizer.config import TokenizerConfig
from tokenizer.measuring.encoder import make_encoder
from tokenizer.measuring.unknown import KINDS, classify_unknown_words

EOJEOLS_PER_BATCH = 10_000
LISTED_UNKNOWN = 50
LONGEST_LISTED = 50  # characters of a listed eojeol; the rest is cut off
RARE = 5  # uses; the embedding of a rarer entry hardly learns
ALPHA = 2.5  # order of the Rényi entropy that agrees best with translation scores (Zouhar et al. 2023)
SPARE_ENTRY = re.compile(r"[\[<]unused\d+[\]>]")


@dataclass(frozen=True, slots=True)
class TokenizerStatistics:
    """Sums and ratios over one text; shares are 0..1."""

    vocab_size: int  # entries, including special and unused ones
    eojeols: int  # words between white space, without those of control characters only
    characters: int  # without white space
    tokens: int  # pieces, without [CLS] and [SEP]
    unknown_tokens: int  # pieces that are [UNK]; in a BERT vocabulary, one replaces a whole BERT word
    unknown_hangul: int  # [UNK] that replace text with a Hangul character (syllable or jamo)
    fertility: float  # tokens per eojeol; the best is 1
    continued_words: float  # share of eojeols in two or more pieces
    unknown_ratio: float  # unknown_tokens per token
    unknown_hangul_ratio: float  # unknown_hangul per token
    tokens_per_character: float
    renyi_efficiency: float | None  # how evenly the pieces that occur are used, 0..1
    unknown_eojeols: tuple[tuple[str, int], ...]  # the most frequent eojeols with an [UNK], and their counts
    unknown_words: dict[str, int]  # BERT words with an [UNK], by the kind of the character that causes it
    pieces: int  # entries that text can use: neither special nor unused slots
    never_used: int  # pieces without a use
    rarely_used: int  # pieces with fewer than five uses, or none


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums from which statistics are computed; ``uses`` of every id."""

    uses: NDArray[np.int64]
    eojeols: int
    characters: int
    continued: int
    unknown_hangul: int
    unknown_eojeols: tuple[tuple[str, int], ...]
    unknown_words: dict[str, int]


def add_up(tokenizer: Tokenizer, rows: Iterable[tuple[str, Sequence[int]]], texts: int = 1) -> list[Sums]:
    """Sums of each text, over distinct eojeols with their counts in all texts; each eojeol is encoded once."""
    rows = iter(rows)
    batch = list(islice(rows, EOJEOLS_PER_BATCH))
    encoder = make_encoder(tokenizer, [eojeol for eojeol, _ in batch])
    uses = np.zeros((texts, 1 + max(tokenizer.get_vocab().values(), default=0)), np.int64)
    totals = np.zeros((3, texts), np.int64)
    unknown: dict[str, Sequence[int]] = {}
    while batch:
        ids = encoder.ids([eojeol for eojeol, _ in batch])
        counts = np.array([row for _, row in batch], np.int64)
        lengths = np.array([len(pieces) for pieces in ids])
        characters = np.array([len(eojeol) for eojeol, _ in batch])
        totals += np.stack([lengths > 0, characters * (lengths > 0), lengths > 1]) @ counts
        flat = np.fromiter(chain.from_iterable(ids), np.int64)
        for use, count in zip(uses, counts.T.astype(np.float64), strict=True):  # exact below 2^53
            use += np.bincount(flat, weights=np.repeat(count, lengths), minlength=len(use)).astype(np.int64)
        unknown.update(row for row, pieces in zip(batch, ids, strict=True) if encoder.unknown in pieces)
        batch = list(islice(rows, EOJEOLS_PER_BATCH))
    sums = []
    for text, (eojeols, whole, continued) in enumerate(totals.T.tolist()):
        unknown_eojeols = {eojeol: int(row[text]) for eojeol, row in unknown.items() if row[text]}
        kinds, hangul = classify_unknown_words(encoder, unknown_eojeols)
        sums.append(Sums(uses[text], eojeols, whole, continued, hangul, _rank(unknown_eojeols), kinds))
    return sums


def _rank(unknown: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    ranked = sorted(unknown.items(), key=lambda row: (-row[1], row[0]))
    return tuple((eojeol[:LONGEST_LISTED], count) for eojeol, count in ranked[:LISTED_UNKNOWN])


def summarize(tokenizer: Tokenizer, parts: Sequence[Sums]) -> TokenizerStatistics:
    """Statistics from sums over parts without common eojeols; BadInput if there are no eojeols."""
    uses = np.sum([part.uses for part in parts], axis=0)
    eojeols, characters = sum(part.eojeols for part in parts), sum(part.characters for part in parts)
    if not eojeols:
        raise BadInput("no words in the text; give text files that are not empty")
    tokens = int(uses.sum())
    unknown = make_encoder(tokenizer, []).unknown
    unknown_tokens = 0 if unknown is None else int(uses[unknown])
    hangul = sum(part.unknown_hangul for part in parts)
    usable = uses[_usable_ids(tokenizer)]
    kinds = [Counter(part.unknown_words) for part in parts]
    return TokenizerStatistics(
        vocab_size=tokenizer.get_vocab_size(),
        eojeols=eojeols,
        characters=characters,
        tokens=tokens,
        unknown_tokens=unknown_tokens,
        unknown_hangul=hangul,
        fertility=tokens / eojeols,
        continued_words=sum(part.continued for part in parts) / eojeols,
        unknown_ratio=unknown_tokens / tokens,
        unknown_hangul_ratio=hangul / tokens,
        tokens_per_character=tokens / characters,
        renyi_efficiency=renyi_efficiency(uses),
        unknown_eojeols=_rank(dict(row for part in parts for row in part.unknown_eojeols)),
        unknown_words={kind: total for kind in KINDS if (total := sum(part[kind] for part in kinds))},
        pieces=len(usable),
        never_used=int((usable == 0).sum()),
        rarely_used=int((usable < RARE).sum()),
    )


def renyi_efficiency(uses: NDArray[np.int64], alpha: float = ALPHA) -> float | None:
    """Rényi entropy of the pieces that occur, relative to equally frequent pieces, 0..1; None for fewer than two.

    As in the package tokenization-scorer (Zouhar et al. 2023, "Tokenization and the Noiseless Channel"). Not a measure
    of quality by itself (Cognetta et al. 2024).
    """
    shares = uses[uses > 0] / uses.sum()
    if len(shares) < 2:
        return None
    return float(np.log((shares**alpha).sum()) / (1 - alpha) / np.log(len(shares)))


def _usable_ids(tokenizer: Tokenizer) -> list[int]:
    """Entries that text can use: neither special tokens nor unused slots."""
    special = {id_ for id_, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    return [
        id_ for piece, id_ in tokenizer.get_vocab().items() if id_ not in special and not SPARE_ENTRY.fullmatch(piece)
    ]


def measure_fit(
    vocabulary: Sequence[str],
    types: Sequence[Path],
    segmented: Sequence[Path],
    config: TokenizerConfig,
    work: Path,
    do: MapUnits,
) -> dict[str, Any]:
    """Statistics of a new vocabulary on its own corpus, as JSON; with morphemes also ``crossing_share``, 0..1.

    Args:
        types: files of eojeol types (``building.count``).
        segmented: folders of segmented words (``building.units``); ``crossing_share`` is over these words.
    """
    listed = work / "vocabulary.txt"
    write_pieces(listed, vocabulary)
    add = partial(_add_up_partition, vocabulary=listed, config=config)
    parts = do(add, list(zip(types, segmented, strict=True)), work / "fit", title="fit")
    pieces, crossing = np.sum([counts.pop("crossing") for counts in parts], axis=0)
    sums = []
    for number, counts in enumerate(parts):
        unknown = tuple(map(tuple, counts.pop("unknown_eojeols")))
        sums.append(Sums(np.load(unit_folder(work / "fit", number) / USES_NAME), unknown_eojeols=unknown, **counts))
    fit = asdict(summarize(build_tokenizer(vocabulary, jamo_fallback=config.jamo_fallback), sums))
    if BUILDERS[config.builder].analyser:
        fit["crossing_share"] = float(crossing / pieces) if pieces else 0.0
    return fit


def _add_up_partition(
    partition: tuple[Path, Path], scratch: Path, *, vocabulary: Path, config: TokenizerConfig
) -> dict[str, Any]:
    """Unit of work: sums over eojeol types (``uses`` in ``uses.npy``) and [pieces, crossing] of segmented words."""
    types, words = partition
    table = pq.read_table(types, columns=["eojeol", "frequency"])
    counts = zip(table["eojeol"].to_pylist(), table["frequency"].to_pylist(), strict=True)
    entries = read_pieces(vocabulary)
    rows = ((eojeol, (count,)) for eojeol, count in counts)
    [total] = add_up(build_tokenizer(entries, jamo_fallback=config.jamo_fallback), rows)
    sums = asdict(total)
    np.save(scratch / USES_NAME, sums.pop("uses"))
    return {**sums, "crossing": uses_in_file(entries, words / WORDS_NAME, by="count").sum(axis=1).tolist()}
