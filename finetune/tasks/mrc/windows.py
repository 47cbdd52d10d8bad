"""Windows of a long passage for extractive question answering: `[CLS] question [SEP] part of the context [SEP]`.

Questions and passages are tokenized once each, many per call, and windows are cut from the arrays; the special tokens
come from the tokenizer's own pair. As published, windows start ``DOC_STRIDE`` tokens apart, a question keeps 64 tokens,
and a span can only start in the window that shows most context around it. Windows with fewer than 191 tokens of the
passage start closer, so that neighbors share the longest answer or half a window. Few short windows contain the answer
(27.8 % at 256 tokens, 49.9 % at 510, KLUE's vocabulary), so a model that always predicts "no answer" loses little;
``keep_some`` trains on a share of the others.
Legend: ``N`` tokens of a passage, ``L`` positions of a window.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from finetune.examples import Example, Feature, Tokenizer

log = logging.getLogger(__name__)

QUESTION_TOKENS = 64  # longer questions are cut at the right
DOC_STRIDE = 128  # tokens from one window's begin to the next one's
ANSWER_TOKENS = 64  # longest answer; published: 30, but one of the 839 answers at hand has 36
TEXTS_PER_CALL = 512  # to the tokenizer, whose lists take 50 times the memory of the arrays kept
FEW_ANSWERS = 0.25  # of the training windows; with fewer, "no answer" tends to win everywhere
WORD_BREAKS = np.array([ord(c) for c in " \t\r\n\u202f"], dtype=np.uint32)  # between words, as published


class Passage(NamedTuple):
    """A text as tokens: ``ids_N``, and ``offsets_N2``, the characters [from, to) of each token."""

    ids_N: NDArray[np.int32]
    offsets_N2: NDArray[np.int32]


class Target(NamedTuple):
    """Tokens ``first`` to ``last`` of a passage are the answer, without ``cut`` characters at the end of the last."""

    first: int
    last: int
    cut: int = 0


class Pair(NamedTuple):
    """Special tokens around question and context, and segment ids of the five parts in their order."""

    before: NDArray[np.int32]
    between: NDArray[np.int32]
    after: NDArray[np.int32]
    types: tuple[list[int], int, list[int], int, list[int]] | None  # None where all are 0, as without segments


def make_features(
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    max_tokens: int,
    find_targets: Callable[[Sequence[Example], Sequence[Passage]], list[Target | None]],
    shared: int = ANSWER_TOKENS - 1,
) -> list[Feature]:
    """Windows of every question, in order, each of at most ``max_tokens`` tokens.

    Args:
        find_targets: ``(examples, their passages)`` to the answer's tokens; None if there is none.
        shared: tokens that two short windows have in common, at most half a window; published: 0.

    Returns:
        features with ``input_ids`` (L, int32) and, if the tokenizer has segments, ``token_type_ids`` (L, int8);
            ``context_at``, position of the first context token; ``begin``, its number in the passage; ``offsets`` of
            the window's context tokens; ``max_context``, first and last position at which a span may start, or None;
            ``start``, ``end`` and ``cut``, positions of the answer, 0 if the window lacks part of it.
    """
    pair = pair_of(tokenizer)
    limit = min(QUESTION_TOKENS, max_tokens // 2)
    questions = [q.ids_N[:limit] for q in tokenize([example.inputs["question"] for example in examples], tokenizer)]
    contexts = list(dict.fromkeys(example.inputs["context"] for example in examples))
    by_context = dict(zip(contexts, tokenize(contexts, tokenizer), strict=True))
    passages = [by_context[example.inputs["context"]] for example in examples]
    targets = find_targets(examples, passages)
    return [
        {**window, "example": number, **place_target(window, target)}
        for number, (question, passage, target) in enumerate(zip(questions, passages, targets, strict=True))
        for window in make_windows(question, passage, pair, max_tokens, shared)
    ]


def tokenize(texts: Sequence[str], tokenizer: Tokenizer) -> list[Passage]:
    """Each text as tokens, without special ones."""
    passages = []
    for begin in range(0, len(texts), TEXTS_PER_CALL):
        encoded = tokenizer(
            list(texts[begin : begin + TEXTS_PER_CALL]), add_special_tokens=False, return_offsets_mapping=True,
            return_attention_mask=False, return_token_type_ids=False, verbose=False,
        )  # fmt: skip
        for ids, offsets in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
            flat = np.fromiter(chain.from_iterable(offsets), dtype=np.int32, count=2 * len(ids))
            passages.append(Passage(np.array(ids, dtype=np.int32), flat.reshape(-1, 2)))
    return passages


def pair_of(tokenizer: Tokenizer) -> Pair:
    """How the tokenizer joins two texts, from a pair of one letter each; ``BadInput`` if there is no special token
    before it, which represents "no answer"."""
    encoded = tokenizer("a", "a", return_token_type_ids=True)
    ids, sides = np.array(encoded["input_ids"], dtype=np.int32), encoded.sequence_ids()
    question, context = ([i for i, side in enumerate(sides) if side == number] for number in (0, 1))
    if not question or not context or not question[0] or question[0] > context[0]:
        tokens = " ".join(tokenizer.convert_ids_to_tokens(encoded["input_ids"]))
        raise BadInput(
            f"klue-mrc: the tokenizer makes {tokens!r} of a pair of texts; "
            "expected a special token, question, separator, context; use an encoder like BERT or RoBERTa"
        )
    before, between, after = (
        slice(0, question[0]), slice(question[-1] + 1, context[0]), slice(context[-1] + 1, None)
    )  # fmt: skip
    types = encoded["token_type_ids"]
    parts = (types[before], types[question[0]], types[between], types[context[0]], types[after])
    return Pair(ids[before], ids[between], ids[after], parts if any(types) else None)


def make_windows(
    question: NDArray[np.int32], passage: Passage, pair: Pair, max_tokens: int, shared: int
) -> Iterator[dict[str, Any]]:
    """Windows of one question, without its target; a passage without tokens has one, with no context in it."""
    head = np.concatenate((pair.before, question, pair.between))
    size = max_tokens - len(head) - len(pair.after)
    for begin, length, shown_best in cut_windows(len(passage.ids_N), size, shared):
        shown = slice(begin, begin + length)
        window = {
            "input_ids": np.concatenate((head, passage.ids_N[shown], pair.after)),
            "context_at": len(head),
            "begin": begin,
            "offsets": passage.offsets_N2[shown],
            "max_context": shown_best and (len(head) + shown_best[0], len(head) + shown_best[1]),
        }
        if pair.types:
            before, first, between, second, after = pair.types
            types = [*before, *[first] * len(question), *between, *[second] * length, *after]
            window["token_type_ids"] = np.array(types, dtype=np.int8)
        yield window


@lru_cache(maxsize=1 << 12)  # passages of one length share their windows
def cut_windows(tokens: int, size: int, shared: int = 0) -> tuple[tuple[int, int, tuple[int, int] | None], ...]:
    """Begin and length of each window of ``size`` tokens, and the first and last token that it shows best, if any.

    The published rule: the smaller of the numbers of tokens to the left and to the right, longer windows first, then
    earlier ones; so a window shows one run of tokens best. With places for 200 of 300 tokens:

        window 0    0 ──────────────── 163┄┄199
        window 1            128┄┄164 ───────────── 299      128 to 199 are in both; ┄ is shown better by the other

    >>> cut_windows(300, 200)
    ((0, 200, (0, 163)), (128, 172, (36, 171)))
    """
    advance = min(DOC_STRIDE, max(size - shared, (size + 1) // 2))
    begins = range(0, max(tokens - size, 0) + advance, advance)
    lengths = [min(size, tokens - begin) for begin in begins]
    shown = np.full((len(begins), tokens), -1.0)
    for row, begin, length in zip(shown, begins, lengths, strict=True):
        place = np.arange(length)
        row[begin : begin + length] = np.minimum(place, length - 1 - place) + 0.01 * length
    winner = shown.argmax(axis=0)
    runs = [np.flatnonzero(winner == window) - begin for window, begin in enumerate(begins)]
    best = [(int(run[0]), int(run[-1])) if len(run) else None for run in runs]
    return tuple(zip(begins, lengths, best, strict=True))


def place_target(window: dict[str, Any], target: Target | None) -> dict[str, int]:
    """``start``, ``end`` and ``cut`` in a window; zeros, [CLS], if it lacks part of the answer."""
    begin = window["begin"]
    if target is None or target.first < begin or target.last >= begin + len(window["offsets"]):
        return {"start": 0, "end": 0, "cut": 0}
    shift = window["context_at"] - begin
    return {"start": target.first + shift, "end": target.last + shift, "cut": target.cut}


def word_of_characters(text: str) -> NDArray[np.int64]:
    """Number of the word (run between white space) of each character; white space belongs to the one before."""
    is_break = np.isin(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32), WORD_BREAKS)
    starts_word = ~is_break & np.concatenate(([True], is_break[:-1]))
    return np.cumsum(starts_word) - 1


def keep_trainable(
    features: Sequence[Feature], examples: Sequence[Example], is_misplaced: Callable[[Example], bool]
) -> list[Feature]:
    """The features of questions whose answer is at its offset; a warning counts the others."""
    for example in examples:
        if example.gold is None:
            raise BadInput(f"{example.guid}: no 'answers' and no 'is_impossible', so nothing can be learned from it")
    misplaced = {number for number, example in enumerate(examples) if is_misplaced(example)}
    if misplaced:
        log.warning("klue-mrc: %d questions not used in training: their answer is not at answer_start", len(misplaced))
    return [feature for feature in features if feature["example"] not in misplaced]


def keep_some(features: Sequence[Feature], examples: Sequence[Example], share: float) -> list[Feature]:
    """The windows with an answer and a ``share`` (0..1) of the others, drawn by guid and position; each question keeps
    at least one."""
    draws = [_draw(examples[feature["example"]].guid, feature["begin"]) for feature in features]
    has_answer = [feature["start"] > 0 for feature in features]
    best: dict[int, float] = {}
    for feature, draw, answered in zip(features, draws, has_answer, strict=True):
        best[feature["example"]] = min(best.get(feature["example"], 1.0), -1.0 if answered else draw)
    return [
        feature
        for feature, draw, answered in zip(features, draws, has_answer, strict=True)
        if answered or draw < share or draw == best[feature["example"]]
    ]


def _draw(guid: str, begin: int) -> float:
    return int.from_bytes(hashlib.blake2b(f"{guid}:{begin}".encode(), digest_size=6).digest()) / (1 << 48)


def warn_of_empty(features: Sequence[Feature]) -> None:
    """Warn if less than a quarter of the training windows contain an answer."""
    share = sum(feature["start"] > 0 for feature in features) / max(1, len(features))
    if share < FEW_ANSWERS:
        log.warning(
            "klue-mrc: only %.0f %% of %d training windows hold an answer, so the model may learn to say that there is "
            "none; raise finetune.overrides.klue-mrc.max_tokens or lower finetune.mrc_empty_windows",
            100 * share, len(features),
        )  # fmt: skip
