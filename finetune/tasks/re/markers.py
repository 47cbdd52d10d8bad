"""Entity markers of KLUE-RE: ``<subj>``, ``</subj>``, ``<obj>``, ``</obj>`` around two spans of a sentence (paper 5.1).

Spans may end the sentence, be nested or equal: no text is doubled and no marker is lost, even when truncating. A
particle after an end marker is written as a continuation (``</subj>는`` becomes ``##는``), as published, unless the
vocabulary lacks that piece and it would become unknown. New text has the markers too, or offsets like official files.

``finetune.re_markers=typed`` writes the types of the entities, too, as "typed entity marker (punct)" of Zhou and Chen
2022 in Korean words: ``@ * 사람 * 윤슬 @ 의 # ^ 이름 ^ 대표 #``. Markers are replaced after truncation,
so none is lost. ``finetune.re_restricted=true`` gives probability 0 to relations that no training example has between
these types; ``no_relation`` is always possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from corpus.documents.errors import BadInput
from finetune.data.custom_files import nfc
from finetune.examples import Example, Feature, Prediction, Tokenizer
from finetune.task import RawInput
from finetune.tasks.labels import certainty, decode_labels, encode_texts, keep_tokens, parse_texts, with_labels
from finetune.tasks.re.metrics import NO_RELATION, RE_LABELS

SUBJECT, SUBJECT_END, OBJECT, OBJECT_END = MARKERS = ("<subj>", "</subj>", "<obj>", "</obj>")
SIDES = ("subject", "object")
WORD_STARTS = ("▁", "Ġ")  # how SentencePiece and byte-level BPE mark the first piece of a word

Span = tuple[int, int]  # first character, last character plus one
ContinueWord = Callable[[str, str, Mapping[str, int]], list[int] | None]  # None: the token stays


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
    mark: Callable[[str, Span, Span], str], continue_word: ContinueWord,
    keep: Callable[[Sequence[int], Sequence[int], int], list[int]],
    examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int,
) -> list[Feature]:  # fmt: skip
    """``[CLS] sentence with four markers [SEP]``.

    Args:
        continue_word: ``(token, next character of the text, vocabulary)`` to the ids that replace a token after an end
            marker; None keeps the token.
        keep: ``(ids, ids of the markers, size)`` to the positions to keep of a longer sentence.
    """
    texts = [mark(*(example.inputs[key] for key in ("sentence", "subject", "object"))) for example in examples]
    features = encode_texts(tokenizer, texts)
    vocabulary = tokenizer.get_vocab()
    marker_ids = [vocabulary[marker] for marker in MARKERS]
    sides = tokenizer("가").sequence_ids(0)  # None where the tokenizer adds [CLS] and [SEP]
    before, after = sides.index(0), sides[::-1].index(0)
    for index, (feature, text) in enumerate(zip(features, texts, strict=True)):
        for end in (SUBJECT_END, OBJECT_END):
            _continue_words(feature, text, end, tokenizer, vocabulary, continue_word)
        length = len(feature["input_ids"])
        if length > max_tokens:
            inner = feature["input_ids"][before : length - after]
            positions = [before + position for position in keep(inner, marker_ids, max_tokens - before - after)]
            features[index] = keep_tokens(feature, [*range(before), *positions, *range(length - after, length)])
    return with_labels(features, examples, RE_LABELS)


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """``[CLS] sentence with four markers [SEP]``; a long sentence is truncated outside the markers."""
    return featurize_marked(mark_entities, continuation, keep_markers, examples, tokenizer, max_tokens)


def _continue_words(
    feature: Feature, text: str, end: str, tokenizer: Tokenizer, vocabulary: dict[str, int], continue_word: ContinueWord
) -> None:
    """Replace the token after an end marker, in place, if the sentence continues without a space."""
    rest, ids = text.find(end) + len(end), feature["input_ids"]
    if rest < len(text) and text[rest] != " ":
        position = ids.index(vocabulary[end]) + 1
        replaced = continue_word(str(tokenizer.convert_ids_to_tokens(ids[position])), text[rest], vocabulary)
        if replaced is not None:
            ids[position : position + 1] = replaced
            feature["token_type_ids"][position : position + 1] = [0] * len(replaced)


def continuation(token: str, next_character: str, vocabulary: Mapping[str, int]) -> list[int] | None:
    """``inside_word``, except for a token after white space."""
    return None if next_character.isspace() else inside_word(token, next_character, vocabulary)


def inside_word(token: str, next_character: str, vocabulary: Mapping[str, int]) -> list[int] | None:
    """``##는`` for Hangul 는, ``는`` for ``▁는``, nothing for a lone ``▁``; None if the vocabulary lacks it."""
    inner = "##" + token if is_hangul(token[0]) else ""
    if token[0] != next_character and token.startswith(WORD_STARTS):
        if len(token) == 1:
            return []
        inner = token[1:]
    return [vocabulary[inner]] if inner in vocabulary else None


def is_hangul(character: str) -> bool:
    """Whether it is a syllable, or in NFD the initial consonant of one."""
    return "가" <= character <= "힣" or "\u1100" <= character <= "\u1112"


def keep_markers(ids: Sequence[int], marker_ids: Sequence[int], size: int) -> list[int]:
    """Positions of at most ``size`` ids: the beginning if it contains all markers, otherwise those nearest to a
    marker."""
    markers = [ids.index(id_) for id_ in marker_ids]
    if max(markers) < size:
        return list(range(min(size, len(ids))))
    distances = np.abs(np.arange(len(ids))[:, None] - np.array(markers)).min(axis=1)
    nearest: list[int] = np.sort(np.argsort(distances, kind="stable")[:size]).tolist()
    return nearest


def parse_input(raw: RawInput, where: str) -> dict[str, Any] | None:
    """``sentence`` and the spans ``subject`` and ``object`` of a marked sentence, or of a record like the official
    ones; offsets are adjusted where NFC changes the text."""
    texts = parse_texts(("sentence",), raw, where)
    if texts is None:
        return None
    if not isinstance(raw, Mapping) or not all(f"{side}_entity" in raw for side in SIDES):
        return read_markers(texts["sentence"], where)
    spans = {side: _moved(raw["sentence"], raw[f"{side}_entity"], f"{where}: '{side}_entity'") for side in SIDES}
    return {**texts, **spans}


def read_markers(text: str, where: str) -> dict[str, Any]:
    """
    >>> read_markers("<subj>윤슬</subj>의 <obj>대표</obj>", "line 1")
    {'sentence': '윤슬의 대표', 'subject': (0, 2), 'object': (4, 6)}
    """
    pieces = re.split("(" + "|".join(MARKERS) + ")", text)
    places: dict[str, int] = {}
    length = 0
    for piece in pieces:
        if piece not in MARKERS:
            length += len(piece)
        elif piece in places:
            raise BadInput(f"{where}: {piece} occurs twice; mark one subject and one object")
        else:
            places[piece] = length
    spans = [(places.get(a, 0), places.get(b, 0)) for a, b in ((SUBJECT, SUBJECT_END), (OBJECT, OBJECT_END))]
    if len(places) < len(MARKERS) or any(begin >= end for begin, end in spans):
        raise BadInput(f"{where}: expected two entities, {SUBJECT}…{SUBJECT_END} and {OBJECT}…{OBJECT_END}, with text")
    sentence = "".join(piece for piece in pieces if piece not in MARKERS)
    return {"sentence": sentence, **dict(zip(SIDES, spans, strict=True))}


def _moved(sentence: str, entity: Any, where: str) -> Span:
    """The span of an official entity (last character included), in the sentence in NFC."""
    start, last = (entity.get(key) if isinstance(entity, dict) else None for key in ("start_idx", "end_idx"))
    if not (type(start) is int and type(last) is int and 0 <= start <= last < len(sentence)):
        raise BadInput(f"{where} should be an object with 'start_idx' and 'end_idx', characters of the sentence")
    before, inside, after = (nfc(text) for text in (sentence[:start], sentence[start : last + 1], sentence[last + 1 :]))
    if before + inside + after != nfc(sentence):
        raise BadInput(f"{where} begins or ends inside a character of the sentence; give the sentence in NFC")
    return len(before), len(before) + len(inside)


def to_result(example: Example, prediction: Prediction) -> dict[str, Any]:
    """``sentence``, ``subject`` and ``object`` with text and offsets, and the certainty of the relation."""
    sentence = example.inputs["sentence"]
    entities = {
        side: {"text": sentence[begin:end], "start": begin, "end": end}
        for side in SIDES
        for begin, end in [example.inputs[side]]
    }
    return {"sentence": sentence, **entities, **certainty(RE_LABELS, prediction)}


def format_lines(result: Mapping[str, Any]) -> list[str]:
    """Relation, probability, the two entities and the sentence."""
    between = " → ".join(result[side]["text"] for side in SIDES)
    return ["\t".join([result["prediction"], f"{result['probability']:.2f}", between, result["sentence"]])]


ENTITIES = tuple(f"{side}_entity" for side in SIDES)
TYPES = {"PER": "사람", "ORG": "단체", "LOC": "장소", "DAT": "날짜", "POH": "이름", "NOH": "수량"}
TYPED_MARKER = re.compile(r"<(subj|obj):([A-Z]+)>")
Learned = Mapping[str, Sequence[str]]  # types as "PER-ORG" to the relations between them


def type_of(entity: Any, where: str) -> str:
    """The type of an entity of the official files."""
    kind = entity.get("type") if isinstance(entity, dict) else None
    if kind not in TYPES:
        raise BadInput(
            f"{where} has type {kind!r:.40}; expected one of {', '.join(TYPES)}, which finetune.re_markers=typed and "
            "finetune.re_restricted need"
        )
    return str(kind)


def parse_typed(raw: RawInput, where: str) -> dict[str, Any] | None:
    """New text with types: an official record, or ``<subj:PER>윤슬</subj>의 <obj:POH>대표</obj>``."""
    if isinstance(raw, str):
        marked: dict[str, str] = dict(TYPED_MARKER.findall(raw))
        entities: list[Any] = [{"type": marked.get(name)} for name in ("subj", "obj")]
        raw = TYPED_MARKER.sub(r"<\1>", raw)
    else:
        entities = [raw.get(key) if isinstance(raw, Mapping) else None for key in ENTITIES]
    inputs = parse_input(raw, where)
    names = (f"{where}: the {side}" for side in SIDES)
    return None if inputs is None else {**inputs, "types": tuple(map(type_of, entities, names))}


def featurize_typed(
    examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool
) -> list[Feature]:
    """``[CLS] sentence with both entities and their types marked [SEP]``, truncated outside the markers."""
    ids_of = partial(_ids_of, tokenizer)
    starts = {
        marker: {name: ids_of(f"{sign} {bracket} {word} {bracket}") for name, word in TYPES.items()}
        for marker, sign, bracket in ((SUBJECT, "@", "*"), (OBJECT, "#", "^"))
    }
    ends = {SUBJECT_END: ids_of("@"), OBJECT_END: ids_of("#")}
    longest = sum(max(map(len, ids.values())) for ids in starts.values()) + sum(map(len, ends.values()))
    most = max_tokens - longest + len(MARKERS)
    features = featurize(examples, tokenizer, most, is_training)
    marker_ids = {marker: tokenizer.get_vocab()[marker] for marker in MARKERS}
    for feature in features:
        subject, object_ = examples[feature["example"]].inputs["types"]
        written = {SUBJECT: starts[SUBJECT][subject], OBJECT: starts[OBJECT][object_], **ends}
        ids_by_marker = {marker_ids[marker]: ids for marker, ids in written.items()}
        pieces = (ids_by_marker.get(id_, [id_]) for id_ in feature["input_ids"])
        feature["input_ids"] = list(chain.from_iterable(pieces))
        feature["token_type_ids"] = [0] * len(feature["input_ids"])
    return features


def _ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    if tokenizer.unk_token_id in ids:
        raise BadInput(
            f"finetune.re_markers=typed writes {text!r}, which this tokenizer does not know; use plain, or an encoder "
            "whose vocabulary has the signs and words"
        )
    return ids


def find_relations(training: Sequence[Example]) -> Learned:
    """The relations between each pair of types in the training examples, in the order of the labels."""
    seen: dict[str, set[str]] = {}
    for example in training:
        seen.setdefault("-".join(example.inputs["types"]), {NO_RELATION}).add(example.gold)
    return {types: [label for label in RE_LABELS if label in seen[types]] for types in sorted(seen)}


def decode_restricted(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], learned: Learned
) -> list[Prediction]:
    """The most likely relation among those that training has between these types; the others have probability 0."""
    masks = {types: np.isin(RE_LABELS, relations) for types, relations in learned.items()}
    probabilities = []
    for example, raw in zip(examples, raws, strict=True):
        mask = masks.get("-".join(example.inputs["types"]))
        values = raw if mask is None else np.where(mask, np.maximum(raw, np.finfo(np.float32).tiny), 0)
        probabilities.append(values / values.sum())
    return decode_labels(RE_LABELS, examples, features, probabilities)
