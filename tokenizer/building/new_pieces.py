"""Choice of new pieces for an existing WordPiece vocabulary: those that shorten a text most (see ``tokenizer.extend``).

```
words, morphemes apart      갑상선 암 이      (thyroid cancer)
old pieces                  갑 ##상 ##선 | ##암 | ##이
new ones                    갑상선 = 갑 ##상 ##선, saves 2 a use
```
Old pieces are merged inside one morpheme. Half more candidates are learned than needed; words are encoded with all of
them, and those that save least are dropped, twice. A new piece consists of the old pieces that greedy matching gives
for it, so its embedding can be initialized with their mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit

from tokenizer.building.merges import PREFIX, join, merges
from tokenizer.words import LONGEST_WORD

MIN_USES = 5  # in the text; the embedding of a rarer piece hardly learns
OVERGENERATION, ROUNDS, MAX_CROSSING_SHARE = 1.5, 2, 0.5
WORDS_PER_TEXT = 20_000  # encoded as one long text
END = "\U0010ffff"  # a piece after each word; this character does not occur in text
FIRST_SYMBOL = 0x20000  # for the merges, an old piece is one character: this one plus its id


class NewPiece(NamedTuple):
    """``of``: ids of its old pieces; ``uses`` in the text, and the number of pieces that they save."""

    piece: str
    of: tuple[int, ...]
    uses: int
    saved: int


class Words(NamedTuple):
    """Distinct normalized words that the old vocabulary splits without [UNK], and their counts.

    ``morphemes``, ``pieces``: whether a morpheme (inside a word) or an old piece begins, for all characters.
    """

    texts: list[str]
    counts: np.ndarray
    morphemes: np.ndarray
    pieces: np.ndarray

    def select(self, keeps: np.ndarray) -> Words:
        """Some of the words."""
        texts = [text for text, keep in zip(self.texts, keeps.tolist(), strict=True) if keep]
        inside = np.repeat(keeps, [len(text) for text in self.texts])
        return Words(texts, self.counts[keeps], self.morphemes[inside], self.pieces[inside])


class Vocabulary:
    """Entries by id, with an encoder of single words."""

    def __init__(self, entries: Sequence[str], unknown: str) -> None:
        self.entries, self.unknown = list(entries), unknown
        self.lengths = np.array([len(piece.removeprefix(PREFIX)) for piece in entries])
        self.continues = np.array([piece.startswith(PREFIX) for piece in entries])
        ids = {piece: number for number, piece in enumerate([*entries, END])}
        self._unknown = ids[unknown]
        self._encoder = Tokenizer(WordPiece(ids, unk_token=unknown, max_input_chars_per_word=LONGEST_WORD))
        self._encoder.pre_tokenizer = WhitespaceSplit()

    def encode(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Concatenated ids of all words, and the index of the word of each id."""
        parts = [np.zeros(0, np.int64)]
        for start in range(0, len(words), WORDS_PER_TEXT):
            text = "".join(f"{word} {END} " for word in words[start : start + WORDS_PER_TEXT])
            parts.append(np.array(self._encoder.encode_batch_fast([text], add_special_tokens=False)[0].ids))
        ids = np.concatenate(parts)
        is_end = ids == len(self.entries)
        return ids[~is_end], np.cumsum(is_end)[~is_end]

    def unknown_words(self, ids: np.ndarray, words: np.ndarray, count: int) -> np.ndarray:
        """Whether each of ``count`` words has an [UNK]."""
        return np.bincount(words[ids == self._unknown], minlength=count) > 0


def choose_pieces(old: Vocabulary, segmented: Mapping[str, int], size: int) -> list[NewPiece]:
    """At most ``size`` new pieces, those that save most first; ``segmented``: words with spaces between morphemes."""
    words = words_to_shorten(old, segmented)
    made_of = learn_candidates(old, words, int(size * OVERGENERATION))
    remaining = list(made_of)
    for number in range(ROUNDS):
        wanted = size + (len(made_of) - size) * (ROUNDS - 1 - number) // ROUNDS
        remaining = [piece.piece for piece, stays in rank(old, words, made_of, remaining) if stays][: max(wanted, size)]
    while True:
        ranked = [piece for piece, _ in rank(old, words, made_of, remaining)]
        remaining = [piece.piece for piece in ranked if piece.saved > 0]
        if len(remaining) == len(ranked):  # nearly always in the first round
            return ranked


def words_to_shorten(old: Vocabulary, segmented: Mapping[str, int]) -> Words:
    """Words of several old pieces without [UNK]; new pieces do not change other words."""
    split = [word.split(" ") for word in sorted(segmented)]
    texts = ["".join(morphemes) for morphemes in split]
    ids, owners = old.encode(texts)
    keeps = (np.bincount(owners, minlength=len(texts)) > 1) & ~old.unknown_words(ids, owners, len(texts))
    counts = np.array([segmented[word] for word in sorted(segmented)], np.int64)
    lengths = np.fromiter((len(morpheme) for morphemes in split for morpheme in morphemes), np.int64)
    starts = np.zeros(lengths.sum(), bool)
    starts[np.cumsum(lengths) - lengths] = True
    starts[np.cumsum([0, *map(len, texts)])[:-1]] = False
    words = Words(texts, counts, starts, starts).select(keeps)
    ids = ids[keeps[owners]]
    pieces = np.zeros(len(words.morphemes), bool)
    pieces[np.cumsum(old.lengths[ids]) - old.lengths[ids]] = True
    return words._replace(pieces=pieces)


def learn_candidates(old: Vocabulary, words: Words, max_pieces: int) -> dict[str, tuple[int, ...]]:
    """New pieces by text, with the ids of their old pieces, in the order of learning."""
    learned: dict[str, tuple[int, ...]] = {}
    for left, right in islice(merges(weigh_runs(old, words), MIN_USES), max_pieces):
        of = tuple(ord(symbol) - FIRST_SYMBOL for symbol in join(left, right).removeprefix(PREFIX))
        first, *rest = (old.entries[id_] for id_ in of)
        learned["".join([first, *(piece.removeprefix(PREFIX) for piece in rest)])] = of
    return learned


def weigh_runs(old: Vocabulary, words: Words) -> Counter[str]:
    """Runs of old pieces inside one morpheme, one character per piece, with the ``##`` of their first piece."""
    ids, owners = old.encode(words.texts)
    starts = np.flatnonzero(words.pieces)
    crosses = holds_boundary(words, starts, starts + old.lengths[ids])
    breaks = words.morphemes[starts] | crosses | np.append(True, crosses)[:-1] | (np.diff(owners, prepend=-1) > 0)
    stream = (ids + FIRST_SYMBOL).astype("<u4").tobytes().decode("utf-32-le")
    runs: Counter[str] = Counter()
    for begin, end in pairwise([*np.flatnonzero(breaks).tolist(), len(stream)]):
        if end - begin > 1:
            prefix = PREFIX if old.continues[ids[begin]] else ""
            runs[prefix + stream[begin:end]] += int(words.counts[owners[begin]])
    return runs


def holds_boundary(words: Words, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Whether a morpheme begins inside each piece, from the starts and ends of pieces."""
    before = np.append(0, np.cumsum(words.morphemes))
    return before[ends] > before[starts + 1]


def rank(
    old: Vocabulary, words: Words, made_of: Mapping[str, tuple[int, ...]], pieces: Sequence[str]
) -> list[tuple[NewPiece, bool]]:
    """The pieces with what each saves if all are used, most saving first, and whether it should be kept.

    A piece accounts for the text up to the next new piece or the end of the word. It is dropped if it is rare, saves
    nothing, makes a word unknown, or mostly crosses a morpheme boundary.
    """
    new = Vocabulary([*old.entries, *pieces], old.unknown)
    ids, owners = new.encode(words.texts)
    unknown = new.unknown_words(ids, owners, len(words.texts))
    harmful = {part for text, lost in zip(words.texts, unknown.tolist(), strict=True) if lost for part in _parts(text)}
    weights = words.counts[owners]
    if harmful:
        known = ~unknown[owners]
        words, ids, owners, weights = words.select(~unknown), ids[known], owners[known], weights[known]
    ends = np.cumsum(new.lengths[ids])
    starts = ends - new.lengths[ids]
    begun = np.append(0, np.cumsum(words.pieces))
    saved = begun[ends] - begun[starts] - 1
    last_new = np.maximum.accumulate(np.where(ids >= len(old.entries), np.arange(len(ids)), -1))
    charged = (last_new >= 0) & (owners[last_new] == owners)
    sums = np.zeros((3, len(new.entries)), np.int64)
    np.add.at(sums[0], ids, weights)
    np.add.at(sums[1], ids[last_new[charged]], (weights * saved)[charged])
    np.add.at(sums[2], ids, weights * holds_boundary(words, starts, ends))
    rows = [
        (
            NewPiece(piece, made_of[piece], uses, gain),
            uses >= MIN_USES and gain > 0 and crossing <= MAX_CROSSING_SHARE * uses and piece not in harmful,
        )
        for piece, uses, gain, crossing in zip(pieces, *sums[:, len(old.entries) :].tolist(), strict=True)
    ]
    return sorted(rows, key=lambda row: (-row[0].saved, row[0].piece))


def _parts(word: str) -> Iterator[str]:
    """All possible pieces of two or more characters of a word."""
    for begin in range(len(word)):
        for end in range(begin + 2, len(word) + 1):
            yield (PREFIX if begin else "") + word[begin:end]
