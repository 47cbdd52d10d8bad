"""Bits per character of masked words: a loss that different vocabularies share.

Losses per token do not compare across vocabularies. Here the text is cut into windows by characters, and the same
eojeols are masked in each window for every vocabulary. A masked eojeol of pieces p1 p2 … costs

    -log2 P(p1 | text around) - log2 P(p2 | text around, p1) - …    the other masked eojeols stay masked

so its cost is one probability for any number of pieces (Kauf and Ivanova 2023, arXiv 2305.10588). The characters of
an [UNK] cost 16 bits each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from benchmarks.ablations.masked_model import Question, ScorePieces, mask_row, score_questions
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document

MASKED_SHARE = 0.15  # of the eojeols
MAX_MASKED_CHARS = 20  # longer ones are links and similar
UNKNOWN_BITS = 16.0  # per character that the vocabulary cannot write


class Window(NamedTuple):
    """Consecutive eojeols of a document, and the numbers of the masked ones."""

    document: str
    eojeols: tuple[str, ...]
    masked: tuple[int, ...]


def cut_windows(documents: Iterable[Document], characters: int, max_windows: int) -> list[Window]:
    """Cut at most ``max_windows`` windows of at most ``characters`` (blanks included), each from one document.

    The hash of the text chooses windows and masked eojeols, so they are the same for every vocabulary.
    """
    windows = [window for document in documents for window in _windows_of(document, characters) if window.masked]
    return sorted(windows, key=lambda window: _draw(window.document, *window.eojeols))[:max_windows]


def _windows_of(document: Document, characters: int) -> Iterator[Window]:
    eojeols: list[str] = []
    for eojeol in (word for sentence in document.sentences for word in sentence.split()):
        if eojeols and len(" ".join([*eojeols, eojeol])) > characters:
            yield _window(document.id, eojeols)
            eojeols = []
        if len(eojeol) <= characters:
            eojeols.append(eojeol)
    if eojeols:
        yield _window(document.id, eojeols)


def _window(document: str, eojeols: Sequence[str]) -> Window:
    masked = (
        number
        for number, eojeol in enumerate(eojeols)
        if len(eojeol) <= MAX_MASKED_CHARS and _draw(document, str(number), *eojeols) < MASKED_SHARE
    )
    return Window(document, tuple(eojeols), tuple(masked))


def _draw(*parts: str) -> float:
    return int(blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(), 16) / 2**64


def measure_bits(
    score: ScorePieces, tokenizer: Any, windows: Sequence[Window], max_length: int
) -> dict[str, list[float]]:
    """Bits and characters of the masked eojeols, by document id.

    Args:
        tokenizer: a fast tokenizer of transformers.
        max_length: most pieces of the model.

    Raises:
        BadInput: a window has more pieces.
    """
    totals = {window.document: [0.0, 0.0] for window in windows}
    asked: list[tuple[str, Question]] = []
    for window in windows:
        questions, characters, unknown = _questions(window, tokenizer, max_length)
        asked += [(window.document, question) for question in questions]
        totals[window.document][0] += UNKNOWN_BITS * unknown
        totals[window.document][1] += characters
    for (document, _), nats in zip(asked, score_questions(score, [question for _, question in asked]), strict=True):
        totals[document][0] -= nats / math.log(2)
    return {document: total for document, total in totals.items() if total[1]}


def _questions(window: Window, tokenizer: Any, max_length: int) -> tuple[list[Question], int, int]:
    """Questions about a window, its masked characters, and the masked characters that are [UNK]."""
    encoded = tokenizer(list(window.eojeols), is_split_into_words=True, return_offsets_mapping=True)
    ids = encoded["input_ids"]
    if len(ids) > max_length:
        raise BadInput(
            f"a window of text has {len(ids)} pieces, the model takes {max_length}; raise pretrain.rows.sequence_length"
        )
    places: dict[int, list[int]] = {}
    for place, number in enumerate(encoded.word_ids()):
        if number in window.masked:
            places.setdefault(number, []).append(place)
    row = mask_row(ids, [place for own in places.values() for place in own], tokenizer.mask_token_id)
    questions = []
    for own in places.values():
        shown = list(row)  # earlier pieces of the eojeol are visible
        for place in own:
            questions.append(Question(tuple(shown), place, ids[place]))
            shown[place] = ids[place]
    unknown = [question.place for question in questions if question.piece == tokenizer.unk_token_id]
    spans = (encoded["offset_mapping"][place] for place in unknown)
    return questions, sum(len(window.eojeols[number]) for number in places), sum(end - start for start, end in spans)
