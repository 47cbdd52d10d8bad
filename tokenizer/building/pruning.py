"""Removal of pieces that cut across morphemes when words are encoded (the ``malmoi`` builder).

More pieces are learned than needed, all words are encoded, and pieces that mostly cross a boundary are dropped, then
those that save the fewest tokens; in rounds, because each removal changes the uses of other pieces:
```
morphemes    count   pieces
책 이 다     9       책 ##이다     "it is a book": the piece joins 이|다 across a boundary
사이다       1       사 ##이다     "cider", the noun from which the piece was learned
```
9 of its 10 uses cross, so ``##이다`` is dropped, and both words end in ``##이 ##다``.

>>> pieces, words, counts = [*"책사이다", "##이", "##다", "##이다"], ["책 이 다", "사이다"], np.array([9, 1])
>>> count_uses(pieces, words, counts).tolist()  # uses of each piece, and those of them that cross
[[9, 1, 0, 0, 0, 0, 10], [0, 0, 0, 0, 0, 0, 9]]
>>> prune(pieces, 7, rounds=1, max_crossing_share=0.5, count_uses=lambda rest, _: count_uses(rest, words, counts))
(['책', '사', '이', '다', '##이', '##다'], {'dropped_crossing': 1, 'dropped_rare': 0})
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit

from corpus.documents.atomic_files import atomic_write
from corpus.documents.units import MapUnits, unit_folder
from tokenizer.building.merges import PREFIX
from tokenizer.building.units import WORDS_NAME
from tokenizer.words import LONGEST_WORD

log = logging.getLogger(__name__)

MAX_CROSSING_SHARE, ROUNDS = 0.5, 4
USES_NAME = "uses.npy"
WORDS_PER_TEXT = 20_000  # encoded as one long text
UNKNOWN = "[UNK]"
SPACE, NEWLINE = ord(" "), ord("\n")

CountUses = Callable[[Sequence[str], int], np.ndarray]


def prune(
    pieces: Sequence[str], size: int, *, rounds: int, max_crossing_share: float, count_uses: CountUses
) -> tuple[list[str], dict[str, int]]:
    """Keep ``size`` of the pieces, in their order, and all single characters; returns also the numbers of dropped ones.

    Args:
        max_crossing_share: pieces with a larger share of crossing uses are dropped, 0..1; 1 keeps all.
        count_uses: (pieces, round) to int64 [2, pieces]: uses of each piece, and uses that cross a boundary.
    """
    remaining = list(pieces)
    dropped = {"dropped_crossing": 0, "dropped_rare": 0}
    for number in range(rounds):
        uses, crossing = count_uses(remaining, number)
        known = set(remaining)
        parts = np.array([count_parts(piece, known) for piece in remaining])
        stays = (crossing <= max_crossing_share * uses) | (parts == 1)
        wanted = size + (len(pieces) - size) * (rounds - 1 - number) // rounds
        crossed = len(remaining) - int(stays.sum())
        saved = (uses - crossing) * (parts - 1)
        ranks = np.argsort(np.where(parts == 1, np.iinfo(np.int64).min, -saved), kind="stable")
        chosen = set(ranks[stays[ranks]][: max(wanted, size)].tolist())
        dropped["dropped_crossing"] += crossed
        dropped["dropped_rare"] += len(remaining) - crossed - len(chosen)
        log.info("round %d: %d pieces, %d cross morphemes, %d stay", number + 1, len(remaining), crossed, len(chosen))
        remaining = [piece for index, piece in enumerate(remaining) if index in chosen]
    return remaining, dropped


def count_parts(piece: str, known: Container[str]) -> int:
    """Number of other pieces into which a piece would be split; 1 for a single character.

    >>> count_parts("##에서는", {"##에서는", "##에서", "##에", "##서", "##는"})
    2
    """
    prefix, text = piece[: -len(piece.removeprefix(PREFIX))], piece.removeprefix(PREFIX)
    begin, parts = 0, 0
    while begin < len(text):
        longest = len(text) - (begin == 0)
        ends = range(longest, begin + 1, -1)
        begin = next((end for end in ends if prefix + text[begin:end] in known), begin + 1)
        prefix = PREFIX
        parts += 1
    return parts


def add_up_uses(pieces: Path, segmented: Sequence[Path], folder: Path, do: MapUnits) -> np.ndarray:
    """``count_uses`` over the folders of segmented words of all partitions; ``pieces``: a file with one per line."""
    words = [part / WORDS_NAME for part in segmented]
    do(partial(uses_of_words, pieces=pieces), words, folder, title="uses")
    return np.sum([np.load(unit_folder(folder, number) / USES_NAME) for number in range(len(words))], axis=0)


def uses_of_words(words: Path, scratch: Path, *, pieces: Path) -> dict[str, Any]:
    """Unit of work: a file of segmented words and a file of pieces to ``uses.npy``."""
    np.save(scratch / USES_NAME, uses_in_file(read_pieces(pieces), words, by="weight"))
    return {}


def uses_in_file(pieces: Sequence[str], words: Path, *, by: str) -> np.ndarray:
    """``count_uses`` over a file of segmented words, by their ``count`` or their ``weight``."""
    table = pq.read_table(words, columns=["text", by])
    return count_uses(pieces, table["text"].to_pylist(), table[by].to_numpy())


def count_uses(pieces: Sequence[str], words: Sequence[str], counts: np.ndarray) -> np.ndarray:
    """Uses of each piece with greedy matching, and those that cross a boundary: int64 [2, pieces].

    ``words`` are morphemes separated by spaces; words with a character that is not a piece are skipped.
    """
    encoder = _greedy_encoder(pieces)
    lengths = np.array([0] + [len(piece.removeprefix(PREFIX)) for piece in pieces])  # [UNK] is id 0
    known = np.zeros(0x110000, bool)
    known[[ord(piece) for piece in pieces if len(piece) == 1]] = True
    known[SPACE] = True
    uses = np.zeros((2, len(pieces) + 1), np.int64)
    for start in range(0, len(words), WORDS_PER_TEXT):
        batch = list(words[start : start + WORDS_PER_TEXT])
        _add_uses(uses, encoder, lengths, known, batch, counts[start : start + WORDS_PER_TEXT])
    return uses[:, 1:]


def _greedy_encoder(pieces: Sequence[str]) -> Tokenizer:
    ids = {piece: number for number, piece in enumerate([UNKNOWN, *pieces])}
    encoder = Tokenizer(WordPiece(ids, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST_WORD))
    encoder.pre_tokenizer = WhitespaceSplit()
    return encoder


def _add_uses(
    uses: np.ndarray, encoder: Tokenizer, lengths: np.ndarray, known: np.ndarray, words: list[str], counts: np.ndarray
) -> None:
    characters = np.frombuffer("\n".join([*words, ""]).encode("utf-32-le"), np.uint32)
    ends = np.flatnonzero(characters == NEWLINE)
    starts = np.append(0, ends[:-1] + 1)
    usable = np.logical_and.reduceat(known[characters] | (characters == NEWLINE), starts)
    characters = characters[np.repeat(usable, ends - starts + 1)]
    if not len(characters):
        return
    is_text = (characters != SPACE) & (characters != NEWLINE)
    begins_morpheme = np.append(False, characters[:-1] == SPACE)[is_text]
    crossings = np.append(0, np.cumsum(begins_morpheme))  # boundaries before a character, over the joined words
    text = characters[characters != SPACE].tobytes().decode("utf-32-le")
    ids = np.array(encoder.encode_batch_fast([text], add_special_tokens=False)[0].ids)
    ends_of_pieces = np.cumsum(lengths[ids])
    assert ends_of_pieces[-1] == len(begins_morpheme), "greedy matching covers every character of usable words"
    starts_of_pieces = ends_of_pieces - lengths[ids]
    word_lengths = np.array([len(word) - word.count(" ") for word, keeps in zip(words, usable, strict=True) if keeps])
    weights = np.repeat(counts[usable], word_lengths)[starts_of_pieces]
    crosses = crossings[ends_of_pieces] > crossings[starts_of_pieces + 1]
    np.add.at(uses[0], ids, weights)
    np.add.at(uses[1], ids, weights * crosses)


def write_pieces(path: Path, pieces: Sequence[str]) -> None:
    """Write one piece per line."""
    atomic_write(path, "".join(f"{piece}\n" for piece in pieces))


def read_pieces(path: Path) -> list[str]:
    """Read a file of ``write_pieces``."""
    return path.read_text("utf-8").split("\n")[:-1]
