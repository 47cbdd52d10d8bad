"""Windows of a long passage for extractive question answering: `[CLS] question [SEP] part of the context [SEP]`.

Made by the fast tokenizer's own overflow, with offsets into the context. As published, windows begin ``DOC_STRIDE``
tokens apart, a question keeps 64 tokens, and a span may only start in the window that shows most around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from finetune.task import Example, Feature

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

QUESTION_TOKENS = 64  # longer questions are cut at the right
DOC_STRIDE = 128  # tokens from one window's begin to the next one's


def cut_questions(questions: Sequence[str], tokenizer: PreTrainedTokenizerBase, limit: int) -> list[tuple[str, int]]:
    """Each question up to its ``limit``-th token, and how many tokens that is."""
    encoded = tokenizer(list(questions), add_special_tokens=False, return_offsets_mapping=True)
    return [
        (question[: offsets[:limit][-1][1]] if offsets else "", min(len(offsets), limit))
        for question, offsets in zip(questions, encoded["offset_mapping"], strict=True)
    ]


def best_windows(lengths: Sequence[int], advance: int) -> list[NDArray[np.bool_]]:
    """For each window of ``lengths`` context tokens, which tokens it shows with the most context around them.

    The published rule: the smaller of the tokens to the left and to the right, longer windows first, then earlier ones.
    """
    total = advance * (len(lengths) - 1) + lengths[-1]
    context = np.full((len(lengths), total), -1.0)
    for window, length in enumerate(lengths):
        place = np.arange(length)
        begin = window * advance
        context[window, begin : begin + length] = np.minimum(place, length - 1 - place) + 0.01 * length
    winner = context.argmax(axis=0)
    return [winner[window * advance : window * advance + length] == window for window, length in enumerate(lengths)]


def make_windows(
    example: Example, question: tuple[str, int], tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> Iterator[Feature]:
    """Windows of one question; ``offsets`` are characters of the context, (0, 0) elsewhere."""
    text, question_tokens = question
    room = max_tokens - question_tokens - tokenizer.num_special_tokens_to_add(pair=True)
    advance = min(DOC_STRIDE, room)
    encoded = tokenizer(
        text,
        example.inputs["context"],
        truncation="only_second",
        max_length=max_tokens,
        stride=room - advance,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_token_type_ids=True,
    )
    windows = len(encoded["input_ids"])
    in_context = [np.array([s == 1 for s in encoded.sequence_ids(window)]) for window in range(windows)]
    max_context = best_windows([int(mask.sum()) for mask in in_context], advance)
    for window in range(windows):
        can_start = in_context[window].copy()
        can_start[in_context[window]] = max_context[window]
        offsets = np.array(encoded["offset_mapping"][window])
        yield {
            "input_ids": encoded["input_ids"][window],
            "token_type_ids": encoded["token_type_ids"][window],
            "in_context": in_context[window],
            "can_start": can_start,
            "offsets": offsets * in_context[window][:, None],
        }


def find_tokens(feature: Feature, span: tuple[int, int] | None) -> tuple[int, int]:
    """Positions of the first and last token of a character span; (0, 0), [CLS], where the window lacks part of it."""
    if span is None:
        return 0, 0
    begin, end = feature["offsets"].T
    inside = np.flatnonzero((end > span[0]) & (begin < span[1]) & feature["in_context"])
    is_whole = len(inside) and begin[inside[0]] <= span[0] and end[inside[-1]] >= span[1]
    return (int(inside[0]), int(inside[-1])) if is_whole else (0, 0)
