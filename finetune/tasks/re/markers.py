"""Entity markers of KLUE-RE: ``<subj>``, ``</subj>``, ``<obj>``, ``</obj>`` around two spans of a sentence (paper 5.1).

Spans may end the sentence, lie inside each other or be equal: no text is doubled and no marker is lost, to truncation
neither. A particle that follows an end marker is written as the continuation that it was (``</subj>는`` becomes
``##는``), as published, but not where the vocabulary lacks that piece: there it would become unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from finetune.examples import Example, Feature, Tokenizer
from finetune.tasks.labels import encode_texts, keep_tokens, with_labels
from finetune.tasks.re.metrics import RE_LABELS

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


def featurize_marked(
    mark: Callable[[str, Span, Span], str], mend: Mend, keep: Callable[[Sequence[int], Sequence[int], int], list[int]],
    examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int,
) -> list[Feature]:  # fmt: skip
    """``[CLS] sentence with four markers [SEP]``.

    Args:
        mend: ``(token, next character of the text, vocabulary)`` to the ids in place of a token after an end marker.
        keep: ``(ids, ids of the markers, size)`` to the positions that stay of a longer sentence.
    """
    texts = [mark(*(example.inputs[key] for key in ("sentence", "subject", "object"))) for example in examples]
    features = encode_texts(tokenizer, texts)
    vocabulary = tokenizer.get_vocab()
    marker_ids = [vocabulary[marker] for marker in MARKERS]
    sides = tokenizer("가").sequence_ids(0)  # None where the tokenizer adds [CLS] and [SEP]
    before, after = sides.index(0), sides[::-1].index(0)
    for index, (feature, text) in enumerate(zip(features, texts, strict=True)):
        for end in (SUBJECT_END, OBJECT_END):
            _mend(feature, text, end, tokenizer, vocabulary, mend)
        length = len(feature["input_ids"])
        if length > max_tokens:
            inner = feature["input_ids"][before : length - after]
            kept = [before + position for position in keep(inner, marker_ids, max_tokens - before - after)]
            features[index] = keep_tokens(feature, [*range(before), *kept, *range(length - after, length)])
    return with_labels(features, examples, RE_LABELS)


def _mend(feature: Feature, text: str, end: str, tokenizer: Tokenizer, vocabulary: dict[str, int], mend: Mend) -> None:
    """Replace the token after an end marker, in place, where the sentence goes on without a space."""
    rest, ids = text.find(end) + len(end), feature["input_ids"]
    if rest < len(text) and text[rest] != " ":
        position = ids.index(vocabulary[end]) + 1
        mended = mend(str(tokenizer.convert_ids_to_tokens(ids[position])), text[rest], vocabulary)
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
    """Whether it is a syllable, or in NFD the consonant that one begins with."""
    return "가" <= character <= "힣" or "\u1100" <= character <= "\u1112"


def keep_markers(ids: Sequence[int], marker_ids: Sequence[int], size: int) -> list[int]:
    """Positions of at most ``size`` ids: the beginning where it holds all markers, else those nearest to a marker."""
    markers = [ids.index(id_) for id_ in marker_ids]
    if max(markers) < size:
        return list(range(min(size, len(ids))))
    distances = np.abs(np.arange(len(ids))[:, None] - np.array(markers)).min(axis=1)
    nearest: list[int] = np.sort(np.argsort(distances, kind="stable")[:size]).tolist()
    return nearest
