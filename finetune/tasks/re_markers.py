"""Entity markers of KLUE-RE: ``<subj>``, ``</subj>``, ``<obj>``, ``</obj>`` around two spans of a sentence (paper 5.1).

Spans may end the sentence, lie inside each other or be equal: no text is doubled and no marker is lost, to truncation
neither. A particle that follows an end marker is written as the continuation that it was (``</subj>는`` becomes
``##는``), as published, but not where the vocabulary lacks that piece: there it would become unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SUBJECT, SUBJECT_END, OBJECT, OBJECT_END = MARKERS = ("<subj>", "</subj>", "<obj>", "</obj>")

Span = tuple[int, int]  # first character, last character plus one


def mark_entities(sentence: str, subject: Span, object_: Span) -> str:
    """The sentence with its four markers.

    At one position end markers come before start markers; of two entities that begin together the longer one (of two
    equal ones the subject) is the outer.
    """
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


def tokenize_marked(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Ids of marked sentences without [CLS] and [SEP]; the tokenizer knows the markers."""
    encoded = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)
    vocabulary = tokenizer.get_vocab()
    ends = {vocabulary[SUBJECT_END], vocabulary[OBJECT_END]}
    rows = []
    for text, ids, spans in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True):
        tokens = tokenizer.convert_ids_to_tokens(ids)
        for i in range(1, len(ids)):
            start = spans[i][0]
            follows_directly = ids[i - 1] in ends and spans[i - 1][1] == start
            if follows_directly and "가" <= text[start] <= "힣":
                ids[i] = vocabulary.get("##" + tokens[i], ids[i])
        rows.append(ids)
    return rows


def keep_markers(ids: Sequence[int], marker_ids: Sequence[int], room: int) -> list[int]:
    """At most ``room`` ids: the beginning where it holds all markers, else the tokens nearest to a marker, in order."""
    if len(ids) <= room:
        return list(ids)
    markers = [position for position, id_ in enumerate(ids) if id_ in marker_ids]
    if not markers or markers[-1] < room:
        return list(ids[:room])
    nearest = sorted(range(len(ids)), key=lambda i: (min(abs(i - marker) for marker in markers), i))
    return [ids[i] for i in sorted(nearest[:room])]
