"""KLUE-MRC as published: targets, batches, decoding and answer texts (KLUE-baseline on transformers 3.5.1).

The SQuAD conversion and post-processing of transformers, rewritten from their behavior; every quirk is named. Made for
WordPiece, as published; SentencePiece pieces are joined at "▁"; other tokenizers give whole words. Legend: ``B``
windows, ``L`` positions.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from finetune.examples import Example, Feature, Prediction, Tokenizer, pad_inputs
from finetune.tasks.labels import build_head
from finetune.tasks.mrc import windows
from finetune.tasks.mrc.windows import Passage, Target, word_of_characters

BEST = 20  # start and end positions looked at in a window
ANSWER_TOKENS = 30
NO_SPAN = "empty"  # answered, with score 0, where no window has a span

Span = tuple[float, float, int, int]  # start score, end score, first and last position


class Pieces(NamedTuple):
    """The tokenizer's entries by id; whether "▁" marks words; whether they are lower case."""

    texts: list[str]
    marks_words: bool
    is_lower: bool

    def join(self, ids: Sequence[int]) -> str:
        """Text of a span, in NFC. Quirk: a leading "##" stays, so a span inside a word matches nothing in its
        context."""
        pieces = [self.texts[id_] for id_ in ids]
        text = "".join(pieces).replace("▁", " ") if self.marks_words else " ".join(pieces).replace(" ##", "")
        return unicodedata.normalize("NFC", " ".join(text.split()))


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """Windows of every question (``make_features``) with the published targets, from the first answer only."""
    texts = [str(text) for text in tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))]
    normalizer = getattr(tokenizer.backend_tokenizer, "normalizer", None)
    pieces = Pieces(texts, "▁" in texts, bool(getattr(normalizer, "lowercase", False)))

    def find_targets(examples: Sequence[Example], passages: Sequence[Passage]) -> list[Target | None]:
        answers = windows.tokenize([first_answer(example) for example in examples], tokenizer)
        return [find_words(*each) for each in zip(examples, passages, answers, strict=True)]

    features = windows.make_features(examples, tokenizer, max_tokens, find_targets, shared=0)
    for feature in features:
        feature["pieces"] = pieces
    return windows.keep_trainable(features, examples, is_misplaced) if is_training else features


def first_answer(example: Example) -> str:
    """The text of the training answer, "" if there is none or its offset is unknown."""
    return "" if example.inputs["start"] is None else example.gold["answers"][0]


def words_of_answer(example: Example) -> tuple[int, int, NDArray[np.int64]]:
    """First and last word at the answer's offset, and the word of each character of the context."""
    words = word_of_characters(example.inputs["context"])
    start = example.inputs["start"]
    end = min(start + len(first_answer(example)), len(words)) - 1
    return int(words[start]), int(words[end]), words


def is_misplaced(example: Example) -> bool:
    """Whether the words at the answer's offset lack its text; white space is squeezed on both sides."""
    if example.gold is None or not example.gold["answers"]:
        return False
    if example.inputs["start"] is None:
        return True
    first, last, words = words_of_answer(example)
    answer = " ".join(first_answer(example).split())
    return first < 0 or answer not in text_of_words(example.inputs["context"], first, last, words)


def text_of_words(context: str, first: int, last: int, words: NDArray[np.int64]) -> str:
    """Words ``first`` to ``last``, joined by one space each."""
    begin, end = np.searchsorted(words, (first, last + 1))
    text = context[begin:end]
    for white in "\t\r\n\u202f":
        text = text.replace(white, " ")
    return " ".join(word for word in text.split(" ") if word)


def find_words(example: Example, passage: Passage, answer: Passage) -> Target | None:
    """The published target: among the tokens of the answer's words the first run equal to those of the answer alone.
    Quirk: if there is none, because the answer and its particle are tokenized differently, the target is whole
    words."""
    if example.inputs["start"] is None or is_misplaced(example):
        return None
    first_word, last_word, words = words_of_answer(example)
    word_N = words[passage.offsets_N2[:, 0]]
    first = int(np.searchsorted(word_N, first_word))
    last = int(np.searchsorted(word_N, last_word + 1)) - 1
    ids, wanted = passage.ids_N[first : last + 1].tolist(), answer.ids_N.tolist()
    for begin in range(len(ids) - len(wanted) + 1) if wanted else ():
        if ids[begin : begin + len(wanted)] == wanted:
            return Target(first + begin, first + begin + len(wanted) - 1)
    return Target(first, last)


def collate(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Batch as ``SpanFinder.forward`` describes it. Quirk: all tokens, also of the question, can be ends of a span. (As
    published, padding can too; not here, because scores would depend on the batch.)"""
    batch = pad_inputs(features, pad_id)
    ends = {key: np.array([feature[key] for feature in features]) for key in ("start", "end")}
    return {**batch, "candidates": batch["attention_mask"].astype(bool), **ends}


def best_of_best(feature: Feature, start_L: NDArray[Any], end_L: NDArray[Any]) -> Span | None:
    """The best span of a window, the first of equals. Quirk: only pairs of the ``BEST`` starts and the ``BEST`` ends
    count, and positions outside the context are among them, so a window may have no span."""
    if feature["max_context"] is None:
        return None
    begin, last = feature["max_context"]
    start, end = start_L.astype(float), end_L.astype(float)
    first_S, last_E = (np.argsort(-scores, kind="stable")[:BEST] for scores in (start, end))
    first_S = first_S[(first_S >= begin) & (first_S <= last)]
    last_E = last_E[(last_E >= feature["context_at"]) & (last_E < feature["context_at"] + len(feature["offsets"]))]
    length_SE = last_E - first_S[:, None] + 1
    total_SE = np.where(
        (length_SE >= 1) & (length_SE <= ANSWER_TOKENS), start[first_S][:, None] + end[last_E], -np.inf
    )  # fmt: skip
    if not total_SE.size or total_SE.max() == -np.inf:
        return None
    s, e = np.unravel_index(total_SE.argmax(), total_SE.shape)
    return start[first_S[s]], end[last_E[e]], int(first_S[s]), int(last_E[e])


def decode(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """The best span over all windows, or "" if the lowest [CLS] score of the windows is above its score.

    Quirks: the [CLS] score of one window and the span of another are compared directly; ``NO_SPAN`` is the answer if
    there is no span. Scores: ``null``, the lead of "no answer"; None for a context without tokens.
    """
    null = [np.inf] * len(examples)
    best: list[tuple[Feature, Span] | None] = [None] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        if not len(feature["offsets"]):
            continue
        number = feature["example"]
        null[number] = min(null[number], float(raw["start"][0]) + float(raw["end"][0]))
        span, leader = best_of_best(feature, raw["start"], raw["end"]), best[number]
        if span is not None and (leader is None or span[0] + span[1] > leader[1][0] + leader[1][1]):
            best[number] = feature, span
    predictions = []
    for example, least, leader in zip(examples, null, best, strict=True):
        ahead = least if leader is None else least - leader[1][0] - leader[1][1]
        text = "" if ahead > 0 else NO_SPAN if leader is None else text_of_span(example, *leader)
        predictions.append(Prediction(text, {"null": ahead if np.isfinite(ahead) else None}))
    return predictions


def text_of_span(example: Example, feature: Feature, span: Span) -> str:
    """The text of a span, read from its tokens and looked up in its words."""
    pieces: Pieces = feature["pieces"]
    shown = slice(span[2] - feature["context_at"], span[3] - feature["context_at"] + 1)
    words = word_of_characters(example.inputs["context"])
    first, last = words[feature["offsets"][shown][[0, -1], 0]]
    text = pieces.join(feature["input_ids"][span[2] : span[3] + 1].tolist())
    return cut_out(text, text_of_words(example.inputs["context"], int(first), int(last), words), pieces.is_lower)


def cut_out(text: str, words: str, is_lower: bool) -> str:
    """The part of ``words`` that equals ``text`` once punctuation is separated, otherwise all of ``words``.

    Quirks: the *first* match is taken, even if it is not the span's own place; a span with an [UNK] or from inside a
    word gives whole words, particles included.
    """
    normalized = BertNormalizer(strip_accents=is_lower, lowercase=is_lower).normalize_str(words)
    spaced = " ".join(piece for piece, _ in BertPreTokenizer().pre_tokenize_str(normalized))
    begin = spaced.find(text)
    letters = [place for place, character in enumerate(words) if character != " "]
    if begin < 0 or len(letters) != len(spaced) - spaced.count(" "):
        return words
    before = begin - spaced[:begin].count(" ")
    after = before + len(text) - text.count(" ") - 1
    return words[letters[before] : letters[after] + 1]


QUIRKS = {
    "featurize": featurize, "collate": collate, "decode": decode, "tune": None,
    "model": partial(build_head, "SpanFinder", cuts=0),
    "configure": lambda task, config: task,
    "ensembling": None,  # the text of a span depends on its tokens, and "empty" on where there is none
}  # fmt: skip
