"""Sentences to marked pieces, eojeol by eojeol (an eojeol is a run of characters without white space).

Every eojeol is encoded once and looked up afterwards in one array, which is emptied at ``MAX_CHARACTERS``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput, first_line
from pretrain.pack.store import ROLES, eojeol_bit, token_type

# Of the eojeols in the table, plus one for each: about 300,000 eojeols and 600 MB per packing process. A larger table
# is not faster, because it does not fit the cache of the processor.
MAX_CHARACTERS = 2_000_000
EOJEOLS_PER_CALL = 1_000  # of the tokenizers library


class Pieces(NamedTuple):
    marked: NDArray[np.unsignedinteger]  # token ids, the top bit set on the first piece of an eojeol
    ends: NDArray[np.int64]  # of each sentence in ``marked``; an empty sentence ends where it begins


class EojeolEncoder:
    """Encodes text with any fast tokenizer (its folder) and remembers every eojeol."""

    def __init__(self, tokenizer: Path) -> None:
        from transformers import AutoTokenizer  # slow to import; only the processes that encode need it

        try:
            loaded = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True, trust_remote_code=False)
        except Exception as error:  # the libraries raise errors of any kind
            raise BadInput(
                f"{tokenizer}: no tokenizer that transformers can load ({first_line(error)}); save it again"
            ) from error
        self.vocab_size = len(loaded)
        self.special_ids = {role: getattr(loaded, f"{role}_token_id") for role in ROLES}
        self.dtype = token_type(self.vocab_size)
        self._backend: Any = loaded.backend_tokenizer
        self._backend.encode_special_tokens = True  # "[MASK]" in a text is plain text
        self._backend.no_truncation()
        self._backend.no_padding()
        self._prefix = _prefix_of_eojeols(self._backend)
        self.forget()

    def forget(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)  # a new eojeol gets the next number
        self._starts = np.empty(0, np.int64)  # by number: start of its pieces in _pieces; below, their count
        self._lengths = np.empty(0, np.int64)
        self._pieces = np.empty(0, self.dtype)
        self._characters = 0

    def encode(self, sentences: Sequence[str]) -> Pieces:
        """Marked pieces of the sentences; the same however they are divided into calls.

        Memory grows with the text of one call: about 20 bytes per byte, 100 if every character is a word.
        """
        eojeols: list[str] = []
        ends: list[int] = []
        for sentence in sentences:
            eojeols += sentence.split()
            ends.append(len(eojeols))
        numbers = np.fromiter(map(self._numbers.__getitem__, eojeols), np.int64, len(eojeols))
        self._learn_new()
        lengths = self._lengths[numbers]
        bounds = np.append(0, np.cumsum(lengths))
        places = np.repeat(self._starts[numbers] - bounds[:-1], lengths)
        places += np.arange(len(places))
        pieces = Pieces(self._pieces[places], bounds[ends])
        if self._characters > MAX_CHARACTERS:
            self.forget()
        return pieces

    def _learn_new(self) -> None:
        new = len(self._numbers) - len(self._starts)
        if not new:
            return
        eojeols = list(islice(reversed(self._numbers), new))[::-1]  # a dict keeps the order of insertion
        ids, lengths = self._encode_each(eojeols)
        marked, starts = ids.astype(self.dtype), np.cumsum(lengths) - lengths
        marked[starts[lengths > 0]] |= eojeol_bit(self.dtype)
        self._starts = np.append(self._starts, starts + len(self._pieces))
        self._lengths = np.append(self._lengths, lengths)
        self._pieces = np.append(self._pieces, marked)
        self._characters += sum(map(len, eojeols)) + new

    def _encode_each(self, eojeols: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ids of all eojeols, each encoded as inside a sentence, and the number of pieces of each."""
        words = [self._prefix + eojeol for eojeol in eojeols] if self._prefix else eojeols
        calls = [words[first : first + EOJEOLS_PER_CALL] for first in range(0, len(words), EOJEOLS_PER_CALL)]
        encodings = self._backend.encode_batch(calls, is_pretokenized=True, add_special_tokens=False)
        lengths = [
            np.bincount(np.array(encoding.word_ids, np.int64), minlength=len(call))
            for call, encoding in zip(calls, encodings, strict=True)
        ]
        ids = list(chain.from_iterable(encoding.ids for encoding in encodings))
        return np.array(ids, np.int64), np.concatenate(lengths)


def _prefix_of_eojeols(backend: Any) -> str:
    """Prefix with which an eojeol is split as inside a sentence: a space or nothing."""

    def cut(text: str) -> str:  # after the normalizer and the pre-tokenizer
        text = text if backend.normalizer is None else backend.normalizer.normalize_str(text)
        words = backend.pre_tokenizer.pre_tokenize_str(text) if backend.pre_tokenizer else [(text, ())]
        return "".join(word for word, _ in words)

    return " " if cut("a a") == cut("a") + cut(" a") != 2 * cut("a") else ""
