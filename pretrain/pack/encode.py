"""Sentences to marked pieces, eojeol by eojeol (an eojeol is a run of characters without white space).

Every eojeol is encoded once and looked up afterwards, so the pieces are those of the text and the places where eojeols
begin are known without offsets. The table holds pieces of all eojeols in one array, and a batch of sentences is one
gather from it. Its memory is bounded by ``MOST_CHARACTERS``: when it is full it starts again from nothing.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput, first_line
from corpus.documents.mecab import MAX_ANALYZED_CHARS, morpheme_starts
from pretrain.pack.bulk import BulkEncoder
from pretrain.pack.store import ROLES, eojeol_bit, token_type

# Of the eojeols in the table, one more for each: some 300,000; a packing process takes 600 MB. With twice as many, more
# are met again, yet text is encoded no faster: a table that leaves the processor's cache costs what it saves.
MOST_CHARACTERS = 2_000_000


class Pieces(NamedTuple):
    marked: NDArray[np.unsignedinteger]  # token ids, the top bit set on the first piece of an eojeol
    ends: NDArray[np.int64]  # of each sentence in ``marked``; one without text ends where it begins
    morphemes: NDArray[np.bool_] | None = None  # whether a morpheme or an eojeol begins; None where not asked for


class EojeolEncoder:
    """Encodes text with any fast tokenizer (its folder), remembering every eojeol it has met.

    With ``morphemes`` it also finds out which pieces begin a morpheme (``mark_morphemes``).
    """

    def __init__(self, tokenizer: Path, *, morphemes: bool = False) -> None:
        from transformers import AutoTokenizer  # slow to import; only the processes that encode need it

        try:
            loaded = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True, trust_remote_code=False)
        except Exception as error:  # the libraries raise what they like for files they cannot read
            raise BadInput(
                f"{tokenizer}: no tokenizer that transformers can load ({first_line(error)}); save it again"
            ) from error
        self.vocab_size = len(loaded)
        self.special_ids = {role: getattr(loaded, f"{role}_token_id") for role in ROLES}
        self.dtype = token_type(self.vocab_size)
        self._bulk = BulkEncoder(loaded.backend_tokenizer)
        self._finds_morphemes = morphemes
        self.forget()

    def forget(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)  # a new eojeol gets the next number
        self._starts = np.empty(0, np.int64)  # by number: where its pieces lie in _pieces, and how many
        self._lengths = np.empty(0, np.int64)
        self._pieces = np.empty(0, self.dtype)
        self._morphemes = np.empty(0, bool)  # of the pieces; stays empty where not asked for
        self._characters = 0

    def encode(self, sentences: Sequence[str]) -> Pieces:
        """Marked pieces of the sentences; the same however they are divided into calls.

        Memory grows with the text of one call: some 20 bytes a byte, 100 where every character is a word of its own.
        """
        eojeols: list[str] = []
        ends = [0]
        for sentence in sentences:
            eojeols += sentence.split()
            ends.append(len(eojeols))
        numbers = np.fromiter(map(self._numbers.__getitem__, eojeols), np.int64, len(eojeols))
        self._learn_new()
        lengths = self._lengths[numbers]
        bounds = np.append(0, np.cumsum(lengths))
        places = np.repeat(self._starts[numbers] - bounds[:-1], lengths)
        places += np.arange(len(places))
        morphemes = self._morphemes[places] if self._finds_morphemes else None
        found = Pieces(self._pieces[places], bounds[ends[1:]], morphemes)
        if self._characters > MOST_CHARACTERS:
            self.forget()
        return found

    def _learn_new(self) -> None:
        new = len(self._numbers) - len(self._starts)
        if not new:
            return
        eojeols = list(islice(reversed(self._numbers), new))[::-1]  # a dict keeps the order of insertion
        if self._finds_morphemes:
            (ids, starts, lengths), spans = self._bulk.encode_with_spans(eojeols)
            self._morphemes = np.append(self._morphemes, mark_morphemes(eojeols, lengths, spans))
        else:
            ids, starts, lengths = self._bulk.encode(eojeols)
        marked = ids.astype(self.dtype)
        marked[starts[lengths > 0]] |= eojeol_bit(self.dtype)
        self._starts = np.append(self._starts, starts + len(self._pieces))
        self._lengths = np.append(self._lengths, lengths)
        self._pieces = np.append(self._pieces, marked)
        self._characters += sum(map(len, eojeols)) + new


def mark_morphemes(
    eojeols: Sequence[str], lengths: NDArray[np.int64], spans_P2: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether a piece begins an eojeol, or its first character a morpheme of mecab-ko.

    Every eojeol is analysed without its neighbours, so its pieces never depend on where batches are cut; the price is
    what only neighbours could tell: 나는 is "I" or "flying". Morphemes are slices of the text as it stands: 했다 (did)
    is 했|다, not the 하|았|다 of the dictionary. Of several pieces in one character (jamo or bytes of a syllable) only
    one that begins with it counts: in 나가|ㄴ (나|간) the second does not.

    Args:
        lengths: pieces of each eojeol, which lie one after the other; may be 0.
        spans_P2: of each of P pieces its first character in its eojeol, and the one after its last.
    """
    characters = np.array([len(eojeol) for eojeol in eojeols], np.int64)
    firsts = np.cumsum(characters) - characters
    begins = np.zeros(characters.sum(), bool)
    begins[
        [first + place for first, eojeol in zip(firsts.tolist(), eojeols, strict=True) for place in find_begins(eojeol)]
    ] = True
    begins_P, ends_P = spans_P2.T
    marks = begins[np.repeat(firsts, lengths) + begins_P]
    marks[1:] &= begins_P[1:] >= np.maximum(ends_P[:-1], begins_P[:-1] + 1)
    marks[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    return marks


def find_begins(eojeol: str) -> list[int]:
    """Characters of an eojeol at which morphemes begin, ascending; only the first of an eojeol that is very long.

    The analyser takes a NUL for the end and knows composed syllables only. So it sees the text without control
    characters, composed (NFC), and its findings are traced back.
    """
    if len(eojeol) > MAX_ANALYZED_CHARS:
        return [0]
    if eojeol.isprintable() and unicodedata.is_normalized("NFC", eojeol):
        return morpheme_starts(eojeol)
    kept = [place for place, character in enumerate(eojeol) if character.isprintable()]
    text = "".join(eojeol[place] for place in kept)
    # where in the text the characters of its NFC begin: the last place before which as much is composed
    homes = {len(unicodedata.normalize("NFC", text[:place])): place for place in range(len(text))}
    return [kept[homes[begin]] for begin in morpheme_starts(unicodedata.normalize("NFC", text)) if begin in homes]
