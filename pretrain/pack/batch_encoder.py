"""Encoding of many eojeols in one call, 2.5 to 3 times as fast as tokenizers 0.23, with the same result.

Eojeols whose characters the normalizer keeps, or only decomposes (NFD), are split where the pre-tokenizer would split
them and joined into long strings, on which only WordPiece runs. The behavior of a character is found once, by asking
the tokenizer. The library encodes all other eojeols. Version 1 of the library is faster (docs/tokenizer.md), so this
file can go when transformers supports it.
"""

from __future__ import annotations

import json
import unicodedata
from itertools import chain, compress, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PREFIX = "##"
WORDS_PER_STRING = 1_000  # longer strings are slower, shorter ones need more calls
EOJEOLS_PER_CALL = 1_000

# Effect of a character between two letters: none, a separate word, anything else, not known yet
PLAIN, ALONE, OTHER, UNKNOWN = range(4)


class Encoded(NamedTuple):
    """Pieces of E eojeols: those of eojeol i are ``ids[starts[i] : starts[i] + lengths[i]]``; a length may be 0."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


class BulkEncoder:
    """Encodes lists of eojeols with any ``tokenizers.Tokenizer``, whose settings are changed.

    No special tokens are added, text that looks like one stays text, and nothing is truncated.
    """

    def __init__(self, backend: Any) -> None:
        backend.encode_special_tokens = True  # "[MASK]" in a text is plain text
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self._prefix = _prefix_of_eojeols(backend)
        self._decomposes = _cut(backend, "가") == [unicodedata.normalize("NFD", "가")]
        self._wordpiece, self._continues = _without_normalizer(backend)
        self._classes = np.full(0x110000, OTHER, np.uint8)
        state = json.loads(backend.to_str())
        added = [token for token in state["added_tokens"] if not token["special"]]
        if _is_bert_pipeline(state) and all(map(_is_symbol, added)) and self._ask("#") == ALONE:
            self._classes[:] = UNKNOWN
            for token in added:
                # an added token must be a word of WordPiece's vocabulary
                ids = self._wordpiece.encode(self._written(token["content"]), add_special_tokens=False).ids
                self._classes[ord(token["content"])] = ALONE if ids == [token["id"]] else OTHER

    def encode(self, eojeols: list[str]) -> Encoded:
        """Pieces of each eojeol as inside a sentence; eojeols have no white space."""
        is_simple = self._are_simple(eojeols)
        simple = self._encode_simple(list(compress(eojeols, is_simple)))
        others = list(compress(eojeols, ~is_simple))
        rest = _of_encodings(others, self._encode_by_library(others))
        starts = np.empty(len(eojeols), np.int64)
        lengths = np.empty(len(eojeols), np.int64)
        starts[is_simple], lengths[is_simple] = simple.starts, simple.lengths
        starts[~is_simple], lengths[~is_simple] = rest.starts + len(simple.ids), rest.lengths
        return Encoded(np.concatenate([simple.ids, rest.ids]), starts, lengths)

    def _are_simple(self, eojeols: list[str]) -> NDArray[np.bool_]:
        if not eojeols:
            return np.empty(0, bool)
        codes = _code_points(eojeols)
        for code in np.unique(codes[self._classes[codes] == UNKNOWN]):
            self._classes[code] = self._ask(chr(code))
        is_other = self._classes[codes] == OTHER
        is_other[codes == ord(" ")] = False
        return ~np.logical_or.reduceat(is_other, _begins(codes))

    def _ask(self, character: str) -> int:
        """The class of a character, from its effect between two letters.

        BERT's rules look at single characters, so the effect is the same between any two letters.
        """
        written = self._written(character)
        words = _cut(self._backend, f"a{character}a")
        if words == [f"a{written}a"]:
            return PLAIN
        return ALONE if words == ["a", written, "a"] else OTHER

    def _written(self, text: str) -> str:
        """Text in the form of the pieces."""
        return unicodedata.normalize("NFD", text) if self._decomposes else text

    def _encode_simple(self, eojeols: list[str]) -> Encoded:
        if not eojeols:
            return _in_order(np.empty(0, np.int64), np.empty(0, np.int64))
        codes = _code_points(eojeols)
        is_blank = codes == ord(" ")
        is_alone = self._classes[codes] == ALONE
        is_cut = np.zeros(len(codes), bool)  # whether a word begins at this character, inside an eojeol
        is_cut[1:] = (is_alone[1:] & ~is_blank[:-1]) | (is_alone[:-1] & ~is_blank[1:])
        words = 1 + np.add.reduceat(is_cut, _begins(codes), dtype=np.int64)
        ids = self._encode_words(np.insert(codes, np.flatnonzero(is_cut), ord(" ")))
        begins = np.append(np.flatnonzero(~self._continues[ids]), len(ids))  # where words begin among the pieces
        return _in_order(ids, np.diff(begins[np.append(0, np.cumsum(words))]))

    def _encode_words(self, codes: NDArray[np.uint32]) -> NDArray[np.int64]:
        text = codes.tobytes().decode("utf-32-le")
        blanks = np.flatnonzero(codes == ord(" "))[WORDS_PER_STRING - 1 :: WORDS_PER_STRING].tolist()
        strings = [self._written(text[before + 1 : end]) for before, end in pairwise([-1, *blanks, len(text)])]
        found = self._wordpiece.encode_batch_fast(strings, add_special_tokens=False)
        return np.array(list(chain.from_iterable(encoding.ids for encoding in found)), np.int64)

    def _encode_by_library(self, eojeols: list[str]) -> list[Any]:
        words = [self._prefix + eojeol for eojeol in eojeols] if self._prefix else eojeols
        calls = [words[first : first + EOJEOLS_PER_CALL] for first in range(0, len(words), EOJEOLS_PER_CALL)]
        return self._backend.encode_batch(calls, is_pretokenized=True, add_special_tokens=False)


def _of_encodings(eojeols: list[str], found: list[Any]) -> Encoded:
    """Joined encodings of calls with ``EOJEOLS_PER_CALL`` eojeols each."""
    ids = np.array(list(chain.from_iterable(encoding.ids for encoding in found)), np.int64)
    lengths = np.zeros(len(eojeols), np.int64)
    for number, encoding in enumerate(found):
        of_call = lengths[number * EOJEOLS_PER_CALL :][:EOJEOLS_PER_CALL]
        of_call += np.bincount(np.array(encoding.word_ids, np.int64), minlength=len(of_call))
    return _in_order(ids, lengths)


def _cut(backend: Any, text: str) -> list[str]:
    """Words of a text after the normalizer and the pre-tokenizer."""
    normalized = text if backend.normalizer is None else backend.normalizer.normalize_str(text)
    if backend.pre_tokenizer is None:
        return [normalized]
    return [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(normalized)]


def _prefix_of_eojeols(backend: Any) -> str:
    """Prefix with which an eojeol is split as inside a sentence: a space or nothing."""
    both, first, later = ("".join(_cut(backend, text)) for text in ("a a", "a", " a"))
    return " " if both == first + later != first * 2 else ""


def _is_bert_pipeline(state: dict[str, Any]) -> bool:
    """Whether characters can be classified one by one; ``state`` is a tokenizer.json."""
    return (
        (state["normalizer"] or {"type": "BertNormalizer"})["type"] == "BertNormalizer"
        and (state["pre_tokenizer"] or {}).get("type") == "BertPreTokenizer"
        and state["model"]["type"] == "WordPiece"
        and state["model"]["continuing_subword_prefix"] == PREFIX
    )


def _is_symbol(token: dict[str, Any]) -> bool:
    """Whether an added token is one character that is separate in any text."""
    other_ways = ("normalized", "single_word", "lstrip", "rstrip")
    return len(token["content"].strip()) == 1 == len(token["content"]) and not any(map(token.get, other_ways))


def _without_normalizer(backend: Any) -> tuple[Any, NDArray[np.bool_]]:
    """A tokenizer of the same model that only splits at spaces, and by id whether a piece continues a word."""
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import CharDelimiterSplit

    only_wordpiece = Tokenizer(backend.model)
    only_wordpiece.pre_tokenizer = CharDelimiterSplit(" ")
    vocabulary = only_wordpiece.get_vocab()
    continues = np.zeros(max(vocabulary.values(), default=0) + 1, bool)
    continues[[id_ for piece, id_ in vocabulary.items() if piece.startswith(PREFIX)]] = True
    return only_wordpiece, continues


def _code_points(eojeols: list[str]) -> NDArray[np.uint32]:
    """Code points of all eojeols, with spaces in between."""
    return np.frombuffer(" ".join(eojeols).encode("utf-32-le"), "<u4")


def _begins(codes: NDArray[np.uint32]) -> NDArray[np.int64]:
    return np.append(0, np.flatnonzero(codes == ord(" ")) + 1)


def _in_order(ids: NDArray[np.int64], lengths: NDArray[np.int64]) -> Encoded:
    return Encoded(ids, np.cumsum(lengths) - lengths, lengths)
