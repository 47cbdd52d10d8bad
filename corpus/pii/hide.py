"""Hide the personal data of texts in one of four ways: replace (the paper's), mask, tag, or drop the sentence.

```
문의 010-0123-4567입니다.   replace  문의 010-1802-9935입니다.
                            mask     문의 ***-****-****입니다.
                            tag      문의 [TEL]입니다.
                            drop     (no sentence)
```
The result is looked at again, because what stands around a value decides what is found: with its left neighbour
changed, the second number of a list may be one. Whatever is found then and is not ours goes as well, round by round;
all rounds start from the text as it was, so a value is replaced once. The number of rounds is bounded, and the last
ones take more than they need: first the value is masked, then its sentence, at last the document.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple, get_args

from corpus.documents.errors import BadInput
from corpus.pii.cover import IN_ITS_WAY, MASKED, MAY_HOLD_ONE, ROUNDS, Covered, cover
from corpus.pii.detect import Span, find_pii, find_pii_in_sentences
from corpus.pii.extra.person_by_model import NameTagger
from corpus.pii.key import random_secret
from corpus.pii.replace import Pseudonymizer
from corpus.sentences.split import split_sentences

Mode = Literal["replace", "mask", "tag", "drop"]
MODES: tuple[Mode, ...] = get_args(Mode)

Look = Callable[[Sequence[str]], list[list[Span]]]
IsKnown = Callable[[str], bool]


class Protected(NamedTuple):
    """Sentences without personal data, None where one was dropped.

    ``spans``: what was hidden in each, places in the sentence as it was. ``left``: what the detector finds in each now,
    replacements all of them (in no other mode than ``replace`` there are any).
    """

    sentences: list[str | None]
    spans: list[list[Span]]
    left: list[list[Span]]


@dataclass(frozen=True, slots=True)
class Protection:
    """How a run hides personal data.

    Args:
        secret: replacements follow from it (see ``Pseudonymizer``); a new random one unless given.
        key: makes replacements alike across documents and runs, in place of ``secret``. Neither is in the ``repr``.
        types: names of the types to hide; the sixteen of ``PII_TYPES`` if None.
        people: finds names by a model, which are hidden too.
    """

    mode: Mode = "replace"
    secret: bytes = field(default_factory=random_secret, repr=False)
    key: bytes | None = field(default=None, repr=False)
    types: frozenset[str] | None = None
    people: NameTagger | None = field(default=None, repr=False)

    def find(self, text: str, label: str = "") -> list[Span]:
        """What is to be hidden in a text."""
        return find_pii(text, self.types, label, self.people)

    def find_in_sentences(self, sentences: Sequence[str]) -> list[list[Span]]:
        """What is to be hidden in each sentence of a document."""
        return find_pii_in_sentences(sentences, self.types, self.people)

    def hide_in_sentences(self, sentences: Sequence[str], document_id: str, known: IsKnown | None = None) -> Protected:
        """The sentences of a document, one for one and in order; labels of the sentence before count.

        Args:
            known: whether a value found is a replacement of an earlier call, which stays.

        Raises:
            BadInput: something is found after all rounds; the message says where, not what.
        """

        def look(texts: Sequence[str]) -> list[list[Span]]:
            found = self.find_in_sentences(texts)
            if known is None:
                return found
            rows = zip(texts, found, strict=True)
            return [[span for span in spans if not known(text[span.start : span.end])] for text, spans in rows]

        return self._hide(sentences, document_id, look)

    def hide(self, text: str, document_id: str, label: str = "") -> str:
        """A text as a whole; in mode ``drop`` sentences go together with the white space behind them.

        Args:
            label: words that announce what the text holds, such as the name of its column.

        Raises:
            BadInput: as ``hide_in_sentences``.
        """

        def look(texts: Sequence[str]) -> list[list[Span]]:
            return [self.find(text, label) for text in texts]

        def look_in_pieces(texts: Sequence[str]) -> list[list[Span]]:
            return _find_in_pieces(texts, self.find("".join(texts), label))

        if self.mode != "drop":
            return self._hide([text], document_id, look).sentences[0] or ""
        if not self.find(text, label):
            return text
        kept = self._hide(_sentences_with_blanks(text), document_id, look_in_pieces).sentences
        return "".join(piece for piece in kept if piece is not None)

    def _hide(self, texts: Sequence[str], document_id: str, look: Look) -> Protected:
        if self.mode == "drop":
            return _drop(texts, document_id, look)
        found = look(texts)
        if not any(found):
            return Protected(list(texts), found, found)
        document = Covered(texts, self.mode, Pseudonymizer(self.secret, document_id, self.key))
        for step in range(ROUNDS):
            document.cover(found, step)
            found = look(document.write())
            if document.are_ours(found):
                return Protected([*document.written], document.hidden(), found)
        raise _still_there(document_id, found)


def _drop(texts: Sequence[str], document_id: str, look: Look) -> Protected:
    """Without the texts in which something is found, until nothing is; where that goes on, without all that might."""
    spans: list[list[Span]] = [[] for _ in texts]
    kept = dict(enumerate(texts))
    for step in range(MASKED):
        found = look(list(kept.values()))
        if not any(found):
            return Protected([kept.get(n) for n in range(len(texts))], spans, [[] for _ in texts])
        for n, here in zip(list(kept), found, strict=True):
            spans[n] = here
            if here or step > IN_ITS_WAY or (step == IN_ITS_WAY and MAY_HOLD_ONE.search(texts[n])):
                del kept[n]
    raise _still_there(document_id, found)


def _find_in_pieces(pieces: Sequence[str], spans: Sequence[Span]) -> list[list[Span]]:
    """What is found in a text, for each piece that it reaches into; places are those of the text."""
    starts = list(accumulate(map(len, pieces), initial=0))
    found: list[list[Span]] = [[] for _ in pieces]
    for span in spans:
        for number in range(bisect_right(starts, span.start) - 1, bisect_right(starts, span.end - 1)):
            found[number].append(span)
    return found


def _sentences_with_blanks(text: str) -> list[str]:
    """The sentences of a text, each with the white space behind it, and what stands before the first."""
    starts, position = [], 0
    for sentence in split_sentences(text):
        position = text.index(sentence, position)
        starts.append(position)
        position += len(sentence)
    bounds = [0, *starts, len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


def _still_there(document_id: str, found: Sequence[Sequence[Span]]) -> BadInput:
    number, span = next((number, spans[0]) for number, spans in enumerate(found) if spans)
    name = cover(document_id, find_pii(document_id), "tag")
    return BadInput(
        f"document {name}, sentence {number + 1}, characters {span.start} to {span.end}: a {span.type} is found "
        f"again after {ROUNDS} rounds of hiding; take the document out, or use mode drop"
    )
