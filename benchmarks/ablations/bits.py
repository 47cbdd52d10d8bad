"""Bits per character of words that a masked model has to guess: the one loss that vocabularies share.

Loss per piece cannot be compared, as vocabularies cut differently. Here the text is cut into windows by characters and
the same eojeols are hidden in each, whatever the vocabulary. A hidden eojeol of pieces p1 p2 … costs

    -log2 P(p1 | text around) - log2 P(p2 | text around, p1) - …    the other hidden eojeols stay hidden

so its price is one probability, however many pieces share it (Kauf and Ivanova 2023, arXiv 2305.10588). An [UNK] does
not say what it stands for: its characters are spelt at 16 bits each. The number of hidden pieces is told to all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from benchmarks.ablations.reader import Question, Reader, ask, masked
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document

HIDDEN_SHARE = 0.15  # of the eojeols
LONGEST_HIDDEN = 20  # characters; longer ones are links and the like
SPELLING_BITS = 16.0  # of a character that the vocabulary does not know


class Window(NamedTuple):
    """Some eojeols of a document in order, and the numbers of those that are hidden."""

    document: str
    eojeols: tuple[str, ...]
    hidden: tuple[int, ...]


def cut_windows(documents: Iterable[Document], characters: int, most: int) -> list[Window]:
    """At most ``most`` windows of at most ``characters``, blanks included, whole eojeols of one document each.

    Which ones, and what is hidden in them, is drawn by the hash of their text, the same for every vocabulary.
    """
    found = [window for document in documents for window in _windows_of(document, characters) if window.hidden]
    return sorted(found, key=lambda window: _draw(window.document, *window.eojeols))[:most]


def _windows_of(document: Document, characters: int) -> Iterator[Window]:
    held: list[str] = []
    for eojeol in (word for sentence in document.sentences for word in sentence.split()):
        if held and len(" ".join([*held, eojeol])) > characters:
            yield _window(document.id, held)
            held = []
        if len(eojeol) <= characters:
            held.append(eojeol)
    if held:
        yield _window(document.id, held)


def _window(document: str, eojeols: Sequence[str]) -> Window:
    hidden = (
        number
        for number, eojeol in enumerate(eojeols)
        if len(eojeol) <= LONGEST_HIDDEN and _draw(document, str(number), *eojeols) < HIDDEN_SHARE
    )
    return Window(document, tuple(eojeols), tuple(hidden))


def _draw(*parts: str) -> float:
    return int(blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(), 16) / 2**64


def measure_bits(read: Reader, tokenizer: Any, windows: Sequence[Window], longest: int) -> dict[str, list[float]]:
    """By the id of each document: bits and characters of its hidden eojeols.

    Args:
        tokenizer: a fast one of transformers.
        longest: pieces that the model takes.

    Raises:
        BadInput: a window has more pieces.
    """
    found = {window.document: [0.0, 0.0] for window in windows}
    asked: list[tuple[str, Question]] = []
    for window in windows:
        questions, characters, unknown = _questions(window, tokenizer, longest)
        asked += [(window.document, question) for question in questions]
        found[window.document][0] += SPELLING_BITS * unknown
        found[window.document][1] += characters
    for (document, _), score in zip(asked, ask(read, [question for _, question in asked]), strict=True):
        found[document][0] -= score / math.log(2)
    return {document: total for document, total in found.items() if total[1]}


def _questions(window: Window, tokenizer: Any, longest: int) -> tuple[list[Question], int, int]:
    """What is asked about a window, the characters that are hidden, and those of them that no piece spells."""
    encoded = tokenizer(list(window.eojeols), is_split_into_words=True, return_offsets_mapping=True)
    ids = encoded["input_ids"]
    if len(ids) > longest:
        raise BadInput(
            f"a window of text has {len(ids)} pieces, the model takes {longest}; raise pretrain.rows.sequence_length"
        )
    places: dict[int, list[int]] = {}
    for place, number in enumerate(encoded.word_ids()):
        if number in window.hidden:
            places.setdefault(number, []).append(place)
    row = masked(ids, [place for own in places.values() for place in own], tokenizer.mask_token_id)
    questions = []
    for own in places.values():
        shown = list(row)  # the pieces before the one that is asked for
        for place in own:
            questions.append(Question(tuple(shown), place, ids[place]))
            shown[place] = ids[place]
    unknown = [question.place for question in questions if question.piece == tokenizer.unk_token_id]
    spans = (encoded["offset_mapping"][place] for place in unknown)
    return questions, sum(len(window.eojeols[number]) for number in places), sum(end - start for start, end in spans)
