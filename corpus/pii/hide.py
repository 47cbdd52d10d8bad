"""Hide the personal data of a text or a document, in one of four modes: replace (the paper's), mask, tag, or drop.

```
문의 010-0123-4567입니다.   replace  문의 010-1802-9935입니다.
                            mask     문의 ***-****-****입니다.
                            tag      문의 [TEL]입니다.
                            drop     (the sentence is dropped)
```
The detector runs again on the result, because its decisions depend on context. New spans that are not our replacements
are hidden in the next round, which starts from the original. The last rounds mask the value, then its sentence, then
the document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from corpus.documents.errors import BadInput
from corpus.pii.cover import (
    MASK_SENTENCES_FROM,
    MASK_VALUES_FROM,
    MAX_ROUNDS,
    MAY_CONTAIN_PII,
    CoveredTexts,
    cover_spans,
)
from corpus.pii.detect import Span, find_pii, find_pii_in_sentences
from corpus.pii.extra.person_by_model import NameTagger
from corpus.pii.key import random_secret
from corpus.pii.replace import Keep, Pseudonymizer
from corpus.sentences.split import split_sentences

Mode = Literal["replace", "mask", "tag", "drop"]
MODES: tuple[Mode, ...] = get_args(Mode)

FindSpans = Callable[[Sequence[str]], list[list[Span]]]
IsReplacement = Callable[[str], bool]


class HiddenSentences(NamedTuple):
    """The sentences of a document without personal data.

    Attributes:
        sentences: None where mode ``drop`` dropped the sentence.
        spans: what was hidden in each sentence, as spans of the original.
        remaining: what the detector still finds in each sentence: our replacements (mode ``replace`` only).
    """

    sentences: list[str | None]
    spans: list[list[Span]]
    remaining: list[list[Span]]


@dataclass(frozen=True, slots=True)
class PiiHider:
    """How a run hides personal data.

    Args:
        secret: replacements are derived from it (see ``Pseudonymizer``); default: a new random secret.
        key: with a key, equal values get equal replacements in all documents and runs. Not part of the ``repr``.
        types: names of the types to hide; default: the 16 types of Table 29.
        name_model: also finds names of people (type PERSON).
        keep: as in ``Pseudonymizer``.
    """

    mode: Mode = "replace"
    secret: bytes = field(default_factory=random_secret, repr=False)
    key: bytes | None = field(default=None, repr=False)
    types: frozenset[str] | None = None
    name_model: NameTagger | None = field(default=None, repr=False)
    keep: Keep = "form"

    def find(self, text: str, label: str = "") -> list[Span]:
        """The personal data in a text; ``label`` is as in ``hide``."""
        return find_pii(text, self.types, label, self.name_model)

    def hide_in_sentences(
        self, sentences: Sequence[str], document_id: str, is_replacement: IsReplacement | None = None
    ) -> HiddenSentences:
        """Hide the personal data of a document; labels in the previous sentence count.

        Args:
            is_replacement: whether a value is a replacement of an earlier call, which stays as it is.

        Raises:
            BadInput: the detector still finds something after all rounds. The message gives the place, not the value.
        """

        def find(texts: Sequence[str]) -> list[list[Span]]:
            found = find_pii_in_sentences(texts, self.types, self.name_model)
            if is_replacement is None:
                return found
            rows = zip(texts, found, strict=True)
            return [[span for span in spans if not is_replacement(text[span.start : span.end])] for text, spans in rows]

        return self._hide(sentences, document_id, find)

    def hide(self, text: str, document_id: str, label: str = "") -> str:
        """Hide the personal data of a text. Mode ``drop`` drops whole sentences with the white space after them.

        Args:
            label: words that announce the type of the text, such as the name of its column.

        Raises:
            BadInput: as ``hide_in_sentences``.
        """

        def find(pieces: Sequence[str]) -> list[list[Span]]:
            return find_pii_in_sentences(pieces, self.types, self.name_model, label, joint="")

        pieces = _sentences_with_blanks(text) if self.mode == "drop" else [text]
        return "".join(piece or "" for piece in self._hide(pieces, document_id, find).sentences)

    def _hide(self, texts: Sequence[str], document_id: str, find: FindSpans) -> HiddenSentences:
        if self.mode == "drop":
            return _drop(texts, document_id, find)
        found = find(texts)
        if not any(found):
            return HiddenSentences(list(texts), found, found)
        document = CoveredTexts(texts, self.mode, Pseudonymizer(self.secret, document_id, self.key, self.keep))
        for round_ in range(MAX_ROUNDS):
            document.add_covers(found, round_)
            found = find(document.rewrite())
            if document.are_replacements(found):
                return HiddenSentences([*document.rewritten], document.hidden_spans(), found)
        raise _cannot_hide_error(document_id, found)


def _drop(texts: Sequence[str], document_id: str, find: FindSpans) -> HiddenSentences:
    """Drop texts with personal data until the detector finds none; late rounds drop all texts that may contain any."""
    spans: list[list[Span]] = [[] for _ in texts]
    kept = dict(enumerate(texts))
    for round_ in range(MASK_SENTENCES_FROM):
        found = find(list(kept.values()))
        if not any(found):
            return HiddenSentences([kept.get(n) for n in range(len(texts))], spans, [[] for _ in texts])
        for n, here in zip(list(kept), found, strict=True):
            spans[n] = here
            is_suspect = round_ == MASK_VALUES_FROM and MAY_CONTAIN_PII.search(texts[n])
            if here or is_suspect or round_ > MASK_VALUES_FROM:
                del kept[n]
    raise _cannot_hide_error(document_id, found)


def _sentences_with_blanks(text: str) -> list[str]:
    """The sentences of a text, each with the white space after it; the first item is the white space at the start."""
    starts, position = [], 0
    for sentence in split_sentences(text):
        position = text.index(sentence, position)
        starts.append(position)
        position += len(sentence)
    bounds = [0, *starts, len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


def _cannot_hide_error(document_id: str, found: Sequence[Sequence[Span]]) -> BadInput:
    number, span = next((number, spans[0]) for number, spans in enumerate(found) if spans)
    name = cover_spans(document_id, find_pii(document_id), "tag")
    return BadInput(
        f"document {name}, sentence {number + 1}, characters {span.start} to {span.end}: {span.type} is still detected "
        f"after {MAX_ROUNDS} rounds of hiding; remove the document, or use mode drop"
    )
