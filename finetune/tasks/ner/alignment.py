"""Characters and tokens of a sentence: tags go to the tokens and come back to the characters, of one model or several.

Spaces are not counted: KLUE-NER gives them no tag. Letters below are the characters that are no spaces. In an ensemble
a character has the probabilities of the token from which it reads, so tokenizers may differ. Where it begins the token
they count unchanged; inside a token, I- gets the greater of B- and I-, as in the decoding of one model.
Legend: ``N`` characters of all sentences, ``L`` positions of a feature, ``K`` tags, O last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finetune.examples import IGNORED, Example, Feature, Prediction, Tokenizer, pad_inputs, pad_rows
from finetune.metrics import softmax
from finetune.task import MemberRecord, MemberRecords
from finetune.tasks.ner.metrics import NER_TAGS


class Sentence(NamedTuple):
    """Words between white space, and tokens without special ones."""

    words: list[str]
    word_of: list[int]  # number of the word of each letter
    gold: list[int]  # tag id of each letter; IGNORED in a sentence without labels
    ids: list[int]
    spans: list[tuple[int, int]]  # first letter of each token and last plus one, which never falls


class Read(NamedTuple):
    """A character's tag is read from a token: unchanged if the character ``begins`` the token, otherwise as its
    continuation."""

    letter: int
    token: int
    begins: bool


class Alignment(NamedTuple):
    """The target of each token, a tag id or IGNORED, and from which token each character reads its tag."""

    tags: list[int]
    reads: list[Read]


def count_letters(example: Example) -> int:
    """Number of characters except spaces."""
    return len("".join(example.inputs["text"].split()))


def encode_sentences(
    examples: Sequence[Example], tokenizer: Tokenizer, names: Sequence[str] = NER_TAGS
) -> list[Sentence]:
    """The examples' ``text``, encoded in one call; needs a fast tokenizer. ``names``: all tags by id."""
    ids = {tag: number for number, tag in enumerate(names)}
    backend = tokenizer.backend_tokenizer  # its own lists: the call of transformers would copy them once more
    backend.no_truncation()
    backend.no_padding()
    encodings = backend.encode_batch([example.inputs["text"] for example in examples], add_special_tokens=False)
    sentences = []
    for example, encoding in zip(examples, encodings, strict=True):
        text, words = example.inputs["text"], example.inputs["text"].split()
        word_of = [number for number, word in enumerate(words) for _ in word]
        letters = list(accumulate((not character.isspace() for character in text), initial=0))  # before each position
        ends = accumulate((letters[end] for _, end in encoding.offsets), max)
        spans = [(letters[begin], end) for (begin, _), end in zip(encoding.offsets, ends, strict=True)]
        for token, ((begin, end), after) in enumerate(pairwise(spans)):
            if begin < end - 1 and after == (end - 1, end):  # 나르|ᆯ for 나를: the second has 를, or nothing
                spans[token] = begin, end - 1
        gold = [IGNORED] * len(word_of) if example.gold is None else [ids[tag] for tag in example.gold]
        sentences.append(Sentence(words, word_of, gold, encoding.ids, spans))
    return sentences


def align_by_offsets(sentence: Sentence) -> Alignment:
    """Each character belongs to the first token that covers it; a token learns the tag of its first character.

    A character that the tokenizer drops continues the one before it in its word, and has no tag if there is none.
    """
    tags, reads = [IGNORED] * len(sentence.ids), list[Read]()
    token, covered = 0, (-1, -1)  # token and word of the last letter that a token covers
    for letter, word in enumerate(sentence.word_of):
        while token < len(tags) and sentence.spans[token][1] <= letter:
            token += 1
        if token < len(tags) and sentence.spans[token][0] <= letter:
            covered = token, word
        if covered[1] == word:
            begins = not reads or reads[-1].token != covered[0]
            reads.append(Read(letter, covered[0], begins))
            if begins:
                tags[covered[0]] = sentence.gold[letter]
    return Alignment(tags, reads)


def make_features(
    sentences: Sequence[Sentence], alignments: Sequence[Alignment], tokenizer: Tokenizer, max_tokens: int,
    special_tag: int, windows: bool,
) -> list[Feature]:  # fmt: skip
    """``[CLS] tokens [SEP]`` with ``tags``, one id each, and ``reads``: number of a character in the sentence, the
    position from which it reads its tag, and whether it begins the token.

    Args:
        special_tag: target of [CLS] and [SEP].
        windows: a sentence of more than ``max_tokens`` gives several features; otherwise it is truncated.
    """
    size, (first, last) = max_tokens - 2, (tokenizer.cls_token_id, tokenizer.sep_token_id)
    features = []
    for number, (sentence, (tags, reads)) in enumerate(zip(sentences, alignments, strict=True)):
        count = len(sentence.ids)  # a sentence without tokens has one feature, too
        for start in range(0, max(count, 1), size) if windows else (0,):
            end = min(start + size, count)
            low, high = (bisect_left(reads, at, key=attrgetter("token")) for at in (start, end))
            features.append(
                {
                    "example": number,
                    "input_ids": [first, *sentence.ids[start:end], last],
                    "tags": [special_tag, *tags[start:end], special_tag],
                    "reads": [(letter, token - start + 1, begins) for letter, token, begins in reads[low:high]],
                }
            )
    return features


def collate(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Padded inputs and ``labels`` (B, L), ``IGNORED`` on padding and, in protocol malmoi, on special tokens."""
    return {**pad_inputs(features, pad_id), "labels": pad_rows([f["tags"] for f in features], IGNORED)}


def to_records(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], names: Sequence[str] = NER_TAGS
) -> list[MemberRecord]:
    """``tags``: probabilities of each character, zeros if it reads from no token; ``begins``: whether it begins the
    token."""
    lengths = [count_letters(example) for example in examples]
    tags = [np.zeros((length, len(names)), dtype=np.float32) for length in lengths]
    begins = [np.zeros(length, dtype=bool) for length in lengths]
    for feature, raw_LK in zip(features, raws, strict=True):
        if feature["reads"]:
            letters, positions, first = np.array(feature["reads"]).T
            tags[feature["example"]][letters] = softmax(raw_LK)[positions]
            begins[feature["example"]][letters] = first
    return [{"tags": own.ravel(), "begins": first} for own, first in zip(tags, begins, strict=True)]


def to_records_with_ends(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]
) -> list[MemberRecord]:
    """The same and ``ends``, the probabilities of [CLS] and the last position, which protocol klue-baseline scores; it
    has one feature per sentence."""
    ends = [softmax(raw_LK[[0, -1]]).astype(np.float32).ravel() for raw_LK in raws]
    return [record | {"ends": both} for record, both in zip(to_records(examples, features, raws), ends, strict=True)]


def merge(members: Sequence[MemberRecords], names: Sequence[str] = NER_TAGS) -> list[Prediction]:
    """The most likely tag of each character by the sum of the members' probabilities; O if no member reads it."""
    bounds = np.cumsum([0, *(len(record["begins"]) for record in members[0])])
    begun_NK, inside_NK = np.zeros((2, bounds[-1], len(names)))
    for member in members:
        tags_NK = np.concatenate([record["tags"] for record in member]).reshape(-1, len(names))
        begins_N1 = np.concatenate([record["begins"] for record in member]).astype(bool)[:, None]
        begun_NK += np.where(begins_N1, tags_NK, 0)
        inside_NK += np.where(begins_N1, 0, tags_NK)
    begun_NK[:, 1:-1:2] += np.maximum(inside_NK[:, :-1:2], inside_NK[:, 1:-1:2])
    begun_NK[:, -1] += inside_NK[:, -1]
    is_read_N = begun_NK.any(axis=1)
    best_N = np.where(is_read_N, begun_NK.argmax(axis=1), len(names) - 1)
    tags = [[names[id_] for id_ in best_N[slice(*pair)].tolist()] for pair in pairwise(bounds)]
    if "ends" not in members[0][0]:
        return [Prediction(own) for own in tags]
    ends_S2K = np.sum([[record["ends"] for record in member] for member in members], axis=0, dtype=float)
    ends_S2 = ends_S2K.reshape(-1, 2, len(names)).argmax(axis=-1).tolist()
    counts = np.add.reduceat(is_read_N.astype(int), bounds[:-1]).tolist()  # a sentence has a letter
    return [
        Prediction(own, {"ends": [names[id_] for id_ in both], "characters": count})
        for own, both, count in zip(tags, ends_S2, counts, strict=True)
    ]
