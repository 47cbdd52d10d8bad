"""Characters and tokens of many sentences as flat arrays: tags go to the tokens and come back to the characters.

All sentences are encoded in one call and aligned in one pass, several times faster than a loop over tokens; so
positions are counted over all sentences. Spaces are not counted: KLUE-NER gives them no tag.
Legend: ``P`` positions in the joined texts, ``C`` characters that are no spaces, ``N`` tokens without specials, ``S``
sentences, ``R`` characters that read their tag from a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finetune.examples import IGNORED, Example, Feature, Tokenizer
from finetune.tasks.ner.metrics import NER_TAGS, OUTSIDE, TAG_IDS

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# What follows a tag inside its token: I- of the type of a B- or I-, O after O.
GOES_ON = np.array([id_ if id_ == OUTSIDE else id_ // 2 * 2 + 1 for id_ in range(len(NER_TAGS))])
_TAG_NAMES = np.array(NER_TAGS, dtype=object)


class Sentences(NamedTuple):
    """Sentence ``s`` has the characters ``bounds_C[s]:bounds_C[s + 1]`` and the tokens ``bounds_N[s]:…``."""

    characters: str  # all C of them
    bounds_C: Ints  # (S + 1,)
    words_C: Ints  # number of the word of each character, over all sentences; a word lies between white space
    gold_C: Ints  # tag ids; IGNORED in sentences without labels
    bounds_N: Ints  # (S + 1,)
    ids_N: Ints
    starts_N: Ints  # first character of each token, white space skipped
    ends_N: Ints  # last character plus one; equal to the start where a token has no character


class Alignment(NamedTuple):
    """Which token learns which tag, and from which token a character reads its own."""

    tags_N: Ints  # tag ids, IGNORED where a token learns nothing
    characters_R: Ints  # ascending
    tokens_R: Ints  # number of the token, over all sentences; never falls
    begins_R: Bools  # the character takes the token's tag as it is; others what follows it


def encode_sentences(examples: Sequence[Example], tokenizer: Tokenizer) -> Sentences:
    """The examples' ``text``, encoded without special tokens; needs a fast tokenizer."""
    texts = [example.inputs["text"] for example in examples]
    joined = "".join(texts)
    bounds_P = _bounds([len(text) for text in texts])
    is_letter_P = ~np.fromiter(map(str.isspace, joined), dtype=bool, count=len(joined))
    rank_P = np.append(0, np.cumsum(is_letter_P))  # characters before each position
    begins_word_P = is_letter_P.copy()
    begins_word_P[1:] &= ~is_letter_P[:-1]
    begins_word_P[bounds_P[:-1][bounds_P[:-1] < len(joined)]] = True
    gold = (e.gold if e.gold is not None else [None] * len("".join(e.inputs["text"].split())) for e in examples)
    backend = tokenizer.backend_tokenizer  # its own lists: the call of transformers would copy them once more
    backend.no_truncation()
    backend.no_padding()
    encodings = backend.encode_batch(texts, add_special_tokens=False)
    bounds_N = _bounds([len(encoding) for encoding in encodings])
    spans_N2 = np.array([span for encoding in encodings for span in encoding.offsets], dtype=np.int64).reshape(-1, 2)
    spans_N2 = rank_P[spans_N2 + np.repeat(bounds_P[:-1], np.diff(bounds_N))[:, None]]
    return Sentences(
        characters="".join(joined.split()),
        bounds_C=rank_P[bounds_P],
        words_C=(np.cumsum(begins_word_P) - 1)[is_letter_P],
        gold_C=np.array([TAG_IDS[tag] if tag else IGNORED for tag in chain.from_iterable(gold)], dtype=np.int64),
        bounds_N=bounds_N,
        ids_N=np.array([id_ for encoding in encodings for id_ in encoding.ids], dtype=np.int64),
        starts_N=spans_N2[:, 0],
        ends_N=np.maximum.accumulate(spans_N2[:, 1]),
    )


def _bounds(lengths: Sequence[int]) -> Ints:
    return np.append(0, np.cumsum(np.array(lengths, dtype=np.int64)))


def align_by_offsets(sentences: Sentences) -> Alignment:
    """Each character belongs to the first token that covers it; a token learns the tag of its first character.

    A character that the tokenizer drops goes on with the one before it in its word, and has no tag where there is none.
    """
    count = len(sentences.words_C)
    tokens_C = np.searchsorted(sentences.ends_N, np.arange(count), side="right")
    starts_N = np.append(sentences.starts_N, count)  # of no token: after everything
    is_covered_C = starts_N[tokens_C] <= np.arange(count)
    last_C = np.maximum.accumulate(np.where(is_covered_C, np.arange(count), -1))
    has_token_C = (last_C >= 0) & (sentences.words_C[last_C] == sentences.words_C)
    characters_R = np.flatnonzero(has_token_C)
    tokens_R = tokens_C[last_C[characters_R]]
    begins_R = np.diff(tokens_R, prepend=-1) != 0
    tags_N = np.full(len(sentences.ids_N), IGNORED)
    tags_N[tokens_R[begins_R]] = sentences.gold_C[characters_R[begins_R]]
    return Alignment(tags_N, characters_R, tokens_R, begins_R)


def make_features(
    sentences: Sentences, alignment: Alignment, tokenizer: Tokenizer, max_tokens: int, special_tag: int, windows: bool
) -> list[Feature]:
    """``[CLS] tokens [SEP]`` for training and ``read_tags``: ``input_ids``, ``tags`` (an id each), and for the
    characters that read their tag from the feature ``characters`` (number in the sentence), ``positions``, ``begins``.

    Args:
        special_tag: what [CLS] and [SEP] learn.
        windows: a sentence of more than ``max_tokens`` gives several features; else it loses its end.
    """
    size, bounds_C = max_tokens - 2, sentences.bounds_C.tolist()
    spans = [
        (index, begin, min(begin + size, end))  # a sentence without tokens has one feature, too
        for index, (start, end) in enumerate(pairwise(sentences.bounds_N.tolist()))
        for begin in (range(start, max(end, start + 1), size) if windows else (start,))
    ]
    ids, tags = sentences.ids_N.tolist(), alignment.tags_N.tolist()
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    parts = np.searchsorted(alignment.tokens_R, np.array([(start, end) for _, start, end in spans])).tolist()
    return [
        {
            "example": index,
            "input_ids": [first, *ids[start:end], last],
            "tags": [special_tag, *tags[start:end], special_tag],
            "characters": alignment.characters_R[low:high] - bounds_C[index],
            "positions": alignment.tokens_R[low:high] - (start - 1),
            "begins": alignment.begins_R[low:high],
        }
        for (index, start, end), (low, high) in zip(spans, parts, strict=True)
    ]


def read_tags(lengths: Sequence[int], features: Sequence[Feature], raws: Sequence[Any]) -> list[list[str]]:
    """Tags of sentences of so many characters, from the label ids (special tokens included) of their features; O for a
    character that reads from no token."""
    bounds_C = _bounds(lengths)
    tags_C = np.full(bounds_C[-1], OUTSIDE)
    if features:
        counts = [len(feature["positions"]) for feature in features]
        raw_starts = _bounds([len(raw) for raw in raws])[:-1]
        characters_R, positions_R, begins_R = (
            np.concatenate([feature[key] for feature in features]) for key in ("characters", "positions", "begins")
        )
        labels_R = np.concatenate(raws)[positions_R + np.repeat(raw_starts, counts)]
        character_starts = bounds_C[[feature["example"] for feature in features]]
        tags_C[characters_R + np.repeat(character_starts, counts)] = np.where(begins_R, labels_R, GOES_ON[labels_R])
    names = _TAG_NAMES[tags_C].tolist()
    return [names[start:end] for start, end in pairwise(bounds_C.tolist())]
