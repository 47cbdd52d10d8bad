"""How well a vocabulary fits a text: the columns of paper Table 35 and more, for any Hugging Face tokenizer.

A word is an eojeol, cut at white space; the paper's figures fit no other unit (per BERT word they would be a fifth
lower). Every distinct eojeol is encoded once, as it is encoded after a space, and weighed by its count: the sums are
those of the whole text, but for the first word of a text where a vocabulary has a piece for the space.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
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
from tokenizers.models import WordPiece

from corpus.documents.errors import BadInput
from corpus.documents.units import MapUnits, unit_folder
from tokenizer.building.export import build_tokenizer
from tokenizer.building.pruning import USES_NAME, read_pieces, uses_in_file, write_pieces
from tokenizer.building.units import BUILDERS, WORDS_NAME
from tokenizer.config import TokenizerConfig
from tokenizer.measuring.boundaries import word_spans
from tokenizer.measuring.encoder import Encoder, make_encoder

EOJEOLS_PER_BATCH = 10_000
LISTED_UNKNOWN = 50
LONGEST_LISTED = 50  # characters of a listed eojeol; the rest is cut off
RARE = 5  # uses; entries below it hardly learn anything
SPARE_ENTRY = re.compile(r"[\[<]unused\d+[\]>]")

HANGUL = {
    "Hangul syllable": ((0xAC00, 0xD7A3),),
    "conjoining jamo": ((0x1100, 0x1112), (0x1161, 0x1175), (0x11A8, 0x11C2)),
    "compatibility jamo": ((0x3131, 0x3163),),
    "old or half-width Hangul": (
        (0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xD7B0, 0xD7FF), (0xFFA0, 0xFFDC),
    ),
}  # fmt: skip
TOO_LONG = "too long a word"
NO_CHARACTER = "no single character"
INVISIBLE = "invisible"
SYMBOL = "symbol or emoji"
KINDS = (*HANGUL, "Han", "Latin", "other letter", "digit", SYMBOL, INVISIBLE, TOO_LONG, NO_CHARACTER)


@dataclass(frozen=True, slots=True)
class TokenizerStatistics:
    """Sums and ratios over one text; shares are 0..1."""

    vocab_size: int  # entries, special and unused ones included
    eojeols: int  # words between white space, those that encode to nothing (control characters alone) left out
    characters: int  # without white space
    tokens: int  # pieces, no [CLS] or [SEP] among them
    unknown_tokens: int  # pieces that are [UNK]; of a BERT vocabulary, one stands for a whole BERT word
    fertility: float  # tokens per eojeol, 1 at best
    continued_words: float  # share of eojeols in two or more pieces
    unknown_ratio: float  # unknown_tokens per token
    tokens_per_character: float
    unknown_eojeols: tuple[tuple[str, int], ...]  # the most frequent ones with an [UNK] in them, and their counts
    unknown_words: dict[str, int]  # BERT words that are or hold an [UNK], by the kind of the character to blame
    pieces: int  # entries that text can use: neither special tokens nor spare slots
    never_used: int  # of these
    rarely_used: int  # of these, fewer than five times, never included


@dataclass(frozen=True, slots=True)
class Sums:
    """What statistics are made of: ``uses`` of every id, int64, and the fields of the same names."""

    uses: NDArray[np.int64]
    eojeols: int
    characters: int
    continued: int
    unknown_eojeols: tuple[tuple[str, int], ...]
    unknown_words: dict[str, int]


def measure_counts(tokenizer: Tokenizer, counts: Iterable[tuple[str, int]]) -> TokenizerStatistics:
    """Statistics over distinct eojeols with their counts; special tokens in text and padding are switched off for good.

    Raises:
        BadInput: there is no eojeol.
    """
    return summarize(tokenizer, [add_up(tokenizer, counts)])


def add_up(tokenizer: Tokenizer, counts: Iterable[tuple[str, int]]) -> Sums:
    """Sums over distinct eojeols with their counts."""
    rows = iter(counts)
    batch = list(islice(rows, EOJEOLS_PER_BATCH))
    encoder = make_encoder(tokenizer, [eojeol for eojeol, _ in batch])
    uses = np.zeros(1 + max(tokenizer.get_vocab().values(), default=0), np.int64)
    eojeols = characters = continued = 0
    unknown: Counter[str] = Counter()
    while batch:
        ids = encoder.ids([eojeol for eojeol, _ in batch])
        weights = [count for _, count in batch]
        uses += _count_uses(ids, weights, len(uses))
        for (eojeol, count), pieces in zip(batch, ids, strict=True):
            if pieces:
                eojeols += count
                characters += count * len(eojeol)
                continued += count * (len(pieces) > 1)
                if encoder.unknown in pieces:
                    unknown[eojeol] += count
        batch = list(islice(rows, EOJEOLS_PER_BATCH))
    return Sums(uses, eojeols, characters, continued, _rank(unknown), classify_unknown_words(encoder, unknown))


def _rank(unknown: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    ranked = sorted(unknown.items(), key=lambda row: (-row[1], row[0]))
    return tuple((eojeol[:LONGEST_LISTED], count) for eojeol, count in ranked[:LISTED_UNKNOWN])


def _count_uses(ids: Sequence[Sequence[int]], weights: Sequence[int], entries: int) -> NDArray[np.int64]:
    flat = np.fromiter(chain.from_iterable(ids), np.int64)
    each = np.repeat(np.array(weights, np.float64), [len(pieces) for pieces in ids])  # exact below 2^53
    return np.bincount(flat, weights=each, minlength=entries).astype(np.int64)


def summarize(tokenizer: Tokenizer, parts: Sequence[Sums]) -> TokenizerStatistics:
    """Statistics of sums over parts that share no eojeol; BadInput where there is none."""
    uses = np.sum([part.uses for part in parts], axis=0)
    eojeols, characters = sum(part.eojeols for part in parts), sum(part.characters for part in parts)
    if not eojeols:
        raise BadInput("there is no word in the text to measure; give text files that are not empty")
    tokens = int(uses.sum())
    unknown = make_encoder(tokenizer, []).unknown
    unknown_tokens = 0 if unknown is None else int(uses[unknown])
    usable = uses[_usable_ids(tokenizer)]
    kinds = [Counter(part.unknown_words) for part in parts]
    return TokenizerStatistics(
        vocab_size=tokenizer.get_vocab_size(),
        eojeols=eojeols,
        characters=characters,
        tokens=tokens,
        unknown_tokens=unknown_tokens,
        fertility=tokens / eojeols,
        continued_words=sum(part.continued for part in parts) / eojeols,
        unknown_ratio=unknown_tokens / tokens,
        tokens_per_character=tokens / characters,
        unknown_eojeols=_rank(dict(row for part in parts for row in part.unknown_eojeols)),
        unknown_words={kind: total for kind in KINDS if (total := sum(part[kind] for part in kinds))},
        pieces=len(usable),
        never_used=int((usable == 0).sum()),
        rarely_used=int((usable < RARE).sum()),
    )


def _usable_ids(tokenizer: Tokenizer) -> list[int]:
    """Entries that text can use: no special tokens, no spare slots."""
    special = {id_ for id_, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    return [
        id_ for piece, id_ in tokenizer.get_vocab().items() if id_ not in special and not SPARE_ENTRY.fullmatch(piece)
    ]


# --- a new vocabulary and the corpus it was made from, by eojeol types, in parallel


def measure_fit(
    vocabulary: Sequence[str],
    types: Sequence[Path],
    segmented: Sequence[Path],
    config: TokenizerConfig,
    work: Path,
    do: MapUnits,
) -> dict[str, Any]:
    """``TokenizerStatistics`` as JSON, and ``crossing_share``, 0..1, for builders that know morphemes.

    Morpheme boundaries are those the builder trained on, so that share is of the words that were analysed.

    Args:
        types: files of eojeol types (``building.count``).
        segmented: folders of segmented words (``building.units``).
    """
    listed = work / "vocabulary.txt"
    write_pieces(listed, vocabulary)
    add = partial(_add_up_partition, vocabulary=listed, config=config)
    counted = do(add, list(zip(types, segmented, strict=True)), work / "fit", title="fit")
    pieces, crossing = np.sum([counts.pop("crossing") for counts in counted], axis=0)
    sums = []
    for number, counts in enumerate(counted):
        unknown = tuple(map(tuple, counts.pop("unknown_eojeols")))
        sums.append(Sums(np.load(unit_folder(work / "fit", number) / USES_NAME), unknown_eojeols=unknown, **counts))
    fit = asdict(summarize(build_tokenizer(vocabulary, hardened=config.hardened), sums))
    if BUILDERS[config.builder].uses_morphemes:
        fit["crossing_share"] = float(crossing / pieces) if pieces else 0.0
    return fit


def _add_up_partition(
    partition: tuple[Path, Path], scratch: Path, *, vocabulary: Path, config: TokenizerConfig
) -> dict[str, Any]:
    """Unit of work: sums over eojeol types, ``uses`` in ``uses.npy``, and over segmented words [pieces, crossing]."""
    types, words = partition
    table = pq.read_table(types, columns=["eojeol", "frequency"])
    counts = zip(table["eojeol"].to_pylist(), table["frequency"].to_pylist(), strict=True)
    entries = read_pieces(vocabulary)
    sums = asdict(add_up(build_tokenizer(entries, hardened=config.hardened), counts))
    np.save(scratch / USES_NAME, sums.pop("uses"))
    return {**sums, "crossing": uses_in_file(entries, words / WORDS_NAME).sum(axis=1).tolist()}


# --- Why words are [UNK]: by the first character to blame in each.
# WordPiece gives up a whole word for one character. One is to blame that is [UNK] alone, or that stands after another
# and has no ``##`` form; the first such is where greedy matching had to stop.


def kind_of_character(character: str) -> str:
    """One of ``KINDS``, but for the last two."""
    code = ord(character)
    for kind, ranges in HANGUL.items():
        if any(first <= code <= last for first, last in ranges):
            return kind
    name, category = unicodedata.name(character, ""), unicodedata.category(character)
    if name.startswith(("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH")):
        return "Han"
    if category in ("Cc", "Cf", "Cs"):
        return INVISIBLE
    if category[0] in "LM" and not name.startswith("VARIATION SELECTOR"):
        return "Latin" if "LATIN" in name else "other letter"
    return "digit" if category[0] == "N" else SYMBOL


def classify_unknown_words(encoder: Encoder, eojeols: Mapping[str, int]) -> dict[str, int]:
    """How many BERT words are or hold an [UNK], by kind; ``eojeols``: those with one, and how often each occurs."""
    alone: dict[str, bool] = {}
    found: Counter[str] = Counter()
    names = iter(eojeols)
    while batch := list(islice(names, EOJEOLS_PER_BATCH)):
        for eojeol, holes in zip(batch, encoder.unknown_spans(batch), strict=True):
            ends = [last for _, last in holes]  # in order: a search finds the first that ends inside or after a word
            for begin, end in word_spans(eojeol) or [(0, len(eojeol))]:
                place = bisect_right(ends, begin)
                if place < len(holes) and holes[place][0] < end:
                    found[_blame(encoder, eojeol[begin:end], alone)] += eojeols[eojeol]
    return {kind: found[kind] for kind in KINDS if found[kind]}


def _blame(encoder: Encoder, word: str, alone: dict[str, bool]) -> str:
    """Kind of the character at fault; ``alone`` remembers which characters are [UNK] by themselves."""
    model = encoder.tokenizer.model
    prefix = model.continuing_subword_prefix if isinstance(model, WordPiece) else ""
    if isinstance(model, WordPiece) and len(word) > model.max_input_chars_per_word:
        return TOO_LONG
    for position, character in enumerate(word):
        if character not in alone:
            alone[character] = any(encoder.unknown_spans([character]))
        if alone[character]:
            return kind_of_character(character)
        if position and prefix and not _can_continue(encoder, prefix, character):
            return kind_of_character(character)
    return NO_CHARACTER


def _can_continue(encoder: Encoder, prefix: str, character: str) -> bool:
    """Whether what the normaliser makes of a character (jamo, in a hardened tokenizer) has its ``##`` forms."""
    tokenizer = encoder.tokenizer
    parts = tokenizer.normalizer.normalize_str(character) if tokenizer.normalizer else character
    return all(tokenizer.token_to_id(prefix + part) is not None for part in parts)
