"""Encode many eojeols at once, each exactly as if it stood alone.

The library spends most of its time on one call per eojeol and on tracking every character through the normaliser.
Eojeols of characters that the normaliser leaves alone, or only decomposes (NFD), need neither: they are cut where the
pre-tokeniser would cut, joined by blanks into long strings, decomposed there, and only WordPiece runs on those. How a
character behaves is asked of the tokenizer itself, once. All other eojeols, and tokenizers that are not BERT's
pipeline, take the library's whole way.

That is 2.5 to 3 times as fast as tokenizers 0.23; previews of its version 1 are faster still (docs/tokenizer.md), so
this file goes once transformers allows that version.
"""

from __future__ import annotations

import json
import unicodedata
from itertools import chain, compress, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PREFIX = "##"
WORDS_PER_STRING = 1_000  # longer strings are slower, shorter ones cost calls
EOJEOLS_PER_CALL = 1_000

# What a character does between two letters: nothing, become a word of its own, anything else; not asked yet
PLAIN, ALONE, OTHER, UNASKED = range(4)


class Encoded(NamedTuple):
    """Pieces of E eojeols: those of eojeol i are ``ids[starts[i] : starts[i] + lengths[i]]``; a length may be 0."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


class BulkEncoder:
    """Encodes lists of eojeols with any ``tokenizers.Tokenizer``, whose settings it owns from then on.

    No special tokens are added, text that looks like one stays text, nothing is cut short.
    """

    def __init__(self, backend: Any) -> None:
        backend.encode_special_tokens = True  # "[MASK]" in a text is five characters, not an instruction
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self._in_front = _blank_in_front(backend)
        self._decomposes = _cut(backend, "가") == [unicodedata.normalize("NFD", "가")]
        self._only_wordpiece, self._continues = _without_normalizer(backend)
        self._classes = np.full(0x110000, OTHER, np.uint8)
        state = json.loads(backend.to_str())
        added = [token for token in state["added_tokens"] if not token["special"]]
        if _is_bert_pipeline(state) and all(map(_is_symbol, added)) and self._ask("#") == ALONE:
            self._classes[:] = UNASKED
            for token in added:
                self._classes[ord(token["content"])] = self._ask_added(token)

    def encode(self, eojeols: list[str]) -> Encoded:
        """Pieces of each eojeol as the backend gives them for it inside a sentence; eojeols hold no white space."""
        is_simple = self._are_simple(eojeols)
        simple = self._encode_simple(list(compress(eojeols, is_simple)))
        others = list(compress(eojeols, ~is_simple))
        rest = _of_encodings(others, self._run_whole_way(others))
        starts = np.empty(len(eojeols), np.int64)
        lengths = np.empty(len(eojeols), np.int64)
        starts[is_simple], lengths[is_simple] = simple.starts, simple.lengths
        starts[~is_simple], lengths[~is_simple] = rest.starts + len(simple.ids), rest.lengths
        return Encoded(np.concatenate([simple.ids, rest.ids]), starts, lengths)

    def encode_with_spans(self, eojeols: list[str]) -> tuple[Encoded, NDArray[np.int64]]:
        """The same, in order, and of each piece the first character in its eojeol and the one after; much slower."""
        found = self._run_whole_way(eojeols)
        spans = list(chain.from_iterable(encoding.offsets for encoding in found))
        spans_P2 = np.array(spans, np.int64).reshape(-1, 2)  # P pieces
        return _of_encodings(eojeols, found), np.maximum(spans_P2 - len(self._in_front), 0)

    def _are_simple(self, eojeols: list[str]) -> NDArray[np.bool_]:
        if not eojeols:
            return np.empty(0, bool)
        codes = _code_points(eojeols)
        for code in np.unique(codes[self._classes[codes] == UNASKED]):
            self._classes[code] = self._ask(chr(code))
        is_other = self._classes[codes] == OTHER
        is_other[codes == ord(" ")] = False
        return ~np.logical_or.reduceat(is_other, _begins(codes))

    def _ask(self, character: str) -> int:
        """The class of a character, from what the tokenizer makes of it between two letters.

        It behaves so between any two: BERT's rules look at one character at a time, and NFD sorts marks here, too.
        """
        meant = self._written(character)
        words = _cut(self._backend, f"a{character}a")
        if words == [f"a{meant}a"]:
            return PLAIN
        return ALONE if words == ["a", meant, "a"] else OTHER

    def _ask_added(self, token: dict[str, Any]) -> int:
        """Added tokens are found in the text as it stands; here they are words, which WordPiece must know."""
        ids = self._only_wordpiece.encode(self._written(token["content"]), add_special_tokens=False).ids
        return ALONE if ids == [token["id"]] else OTHER

    def _written(self, text: str) -> str:
        """As pieces are written; a text with blanks is that of its words with blanks."""
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
        found = self._only_wordpiece.encode_batch_fast(strings, add_special_tokens=False)
        return np.array(list(chain.from_iterable(encoding.ids for encoding in found)), np.int64)

    def _run_whole_way(self, eojeols: list[str]) -> list[Any]:
        words = [self._in_front + eojeol for eojeol in eojeols] if self._in_front else eojeols
        calls = [words[first : first + EOJEOLS_PER_CALL] for first in range(0, len(words), EOJEOLS_PER_CALL)]
        return self._backend.encode_batch(calls, is_pretokenized=True, add_special_tokens=False)


def _of_encodings(eojeols: list[str], found: list[Any]) -> Encoded:
    """What the calls of ``EOJEOLS_PER_CALL`` eojeols each gave."""
    ids = np.array(list(chain.from_iterable(encoding.ids for encoding in found)), np.int64)
    lengths = np.zeros(len(eojeols), np.int64)
    for number, encoding in enumerate(found):
        of_call = lengths[number * EOJEOLS_PER_CALL :][:EOJEOLS_PER_CALL]
        of_call += np.bincount(np.array(encoding.word_ids, np.int64), minlength=len(of_call))
    return _in_order(ids, lengths)


def _cut(backend: Any, text: str) -> list[str]:
    """A text as the normaliser and the pre-tokeniser leave it."""
    normalized = text if backend.normalizer is None else backend.normalizer.normalize_str(text)
    if backend.pre_tokenizer is None:
        return [normalized]
    return [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(normalized)]


def _blank_in_front(backend: Any) -> str:
    """What to put in front of an eojeol so that it is cut as inside a sentence: a blank or nothing."""
    both, first, later = ("".join(_cut(backend, text)) for text in ("a a", "a", " a"))
    return " " if both == first + later != first * 2 else ""


def _is_bert_pipeline(state: dict[str, Any]) -> bool:
    """Whether characters can be judged one by one; ``state`` is a tokenizer.json."""
    return (
        (state["normalizer"] or {"type": "BertNormalizer"})["type"] == "BertNormalizer"
        and (state["pre_tokenizer"] or {}).get("type") == "BertPreTokenizer"
        and state["model"]["type"] == "WordPiece"
        and state["model"]["continuing_subword_prefix"] == PREFIX
    )


def _is_symbol(token: dict[str, Any]) -> bool:
    """Whether an added token is one character that stands apart in any text; others are looked for in other ways."""
    other_ways = ("normalized", "single_word", "lstrip", "rstrip")
    return len(token["content"].strip()) == 1 == len(token["content"]) and not any(map(token.get, other_ways))


def _without_normalizer(backend: Any) -> tuple[Any, NDArray[np.bool_]]:
    """A tokenizer of the same model that only cuts at blanks, and by id whether a piece continues a word."""
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import CharDelimiterSplit

    only_wordpiece = Tokenizer(backend.model)
    only_wordpiece.pre_tokenizer = CharDelimiterSplit(" ")
    vocabulary = only_wordpiece.get_vocab()
    continues = np.zeros(max(vocabulary.values(), default=0) + 1, bool)
    continues[[id_ for piece, id_ in vocabulary.items() if piece.startswith(PREFIX)]] = True
    return only_wordpiece, continues


def _code_points(eojeols: list[str]) -> NDArray[np.uint32]:
    """All eojeols, with blanks in between."""
    return np.frombuffer(" ".join(eojeols).encode("utf-32-le"), "<u4")


def _begins(codes: NDArray[np.uint32]) -> NDArray[np.int64]:
    return np.append(0, np.flatnonzero(codes == ord(" ")) + 1)


def _in_order(ids: NDArray[np.int64], lengths: NDArray[np.int64]) -> Encoded:
    return Encoded(ids, np.cumsum(lengths) - lengths, lengths)
