"""Entity markers of KLUE-RE: ``<subj>``, ``</subj>``, ``<obj>``, ``</obj>`` around two spans of a sentence (paper 5.1).

Spans may end the sentence, lie inside each other or be equal: no text is doubled and no marker is lost, to truncation
neither. A particle that follows an end marker is written as the continuation that it was (``</subj>는`` becomes
``##는``), as published, but not where the vocabulary lacks that piece: there it would become unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from finetune.examples import Feature, Tokenizer

SUBJECT, SUBJECT_END, OBJECT, OBJECT_END = MARKERS = ("<subj>", "</subj>", "<obj>", "</obj>")
WORD_STARTS = ("▁", "Ġ")  # how SentencePiece and byte-level BPE mark the first piece of a word

Span = tuple[int, int]  # first character, last character plus one
Mend = Callable[[str, str, Mapping[str, int]], list[int] | None]  # None: the token stays


def mark_entities(sentence: str, subject: Span, object_: Span) -> str:
    """The sentence with its four markers. At one position end markers come before start markers; of two entities that
    begin together the longer one (of two equal ones the subject) is the outer."""
    outer_first = sorted(
        [(subject, SUBJECT, SUBJECT_END), (object_, OBJECT, OBJECT_END)],
        key=lambda entity: (entity[0][0], -entity[0][1], entity[1] == OBJECT),
    )
    starts = [(span[0], 1, order, begin) for order, (span, begin, _) in enumerate(outer_first)]
    ends = [(span[1], 0, -order, end) for order, (span, _, end) in enumerate(outer_first)]
    pieces, done = [], 0
    for position, _, _, marker in sorted(starts + ends):
        pieces += [sentence[done:position], marker]
        done = position
    return "".join([*pieces, sentence[done:]])


def mend_continuations(features: Sequence[Feature], texts: Sequence[str], tokenizer: Tokenizer, mend: Mend) -> None:
    """Replace the token after each end marker, in place, where the sentence goes on without a space; ``mend`` gives, of
    the token, the next character of the text and the vocabulary, the ids that take its place."""
    vocabulary = tokenizer.get_vocab()
    ends = [(end, vocabulary[end]) for end in (SUBJECT_END, OBJECT_END)]
    for feature, text in zip(features, texts, strict=True):
        ids = feature["input_ids"]
        for end, end_id in ends:
            rest = text.find(end) + len(end)
            if rest < len(text) and text[rest] != " ":
                position = ids.index(end_id) + 1
                token = str(tokenizer.convert_ids_to_tokens(ids[position]))
                mended = mend(token, text[rest], vocabulary)
                if mended is not None:
                    ids[position : position + 1] = mended
                    feature["token_type_ids"][position : position + 1] = [0] * len(mended)


def continuation(token: str, next_character: str, vocabulary: Mapping[str, int]) -> list[int] | None:
    """``inside_word``, but for a token after white space."""
    return None if next_character.isspace() else inside_word(token, next_character, vocabulary)


def inside_word(token: str, next_character: str, vocabulary: Mapping[str, int]) -> list[int] | None:
    """``##는`` for Hangul 는, ``는`` for ``▁는``, nothing for a lone ``▁``; None where the vocabulary lacks it."""
    inner = "##" + token if is_hangul(token[0]) else ""
    if token[0] != next_character and token.startswith(WORD_STARTS):
        if len(token) == 1:
            return []
        inner = token[1:]
    return [vocabulary[inner]] if inner in vocabulary else None


def is_hangul(character: str) -> bool:
    """Whether it is a syllable."""
    return "가" <= character <= "힣"


def count_specials(tokenizer: Tokenizer) -> tuple[int, int]:
    """How many special tokens the tokenizer puts before and after a text."""
    sides = tokenizer("가").sequence_ids(0)  # None where it adds one
    return sides.index(0), sides[::-1].index(0)


def keep_markers(ids: Sequence[int], marker_ids: Sequence[int], size: int) -> list[int]:
    """Positions of at most ``size`` ids: the beginning where it holds all markers, else those nearest to a marker."""
    markers = [ids.index(id_) for id_ in marker_ids]
    if max(markers) < size:
        return list(range(min(size, len(ids))))
    distances = np.abs(np.arange(len(ids))[:, None] - np.array(markers)).min(axis=1)
    nearest: list[int] = np.sort(np.argsort(distances, kind="stable")[:size]).tolist()
    return nearest
