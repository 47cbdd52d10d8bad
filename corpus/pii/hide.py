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

``DocumentHider`` does so for the documents of the corpus, with their ids and sources. For the final check of the stage,
it keeps a digest of the sentences and fingerprints of replacements and original values: keyed 64-bit hashes, whose
random salt is in the private folder of the run and is deleted with it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from corpus.config import CorpusConfig, NamesConfig
from corpus.documents.errors import BadInput
from corpus.pii.cover import MAX_ROUNDS, CoveredTexts, FindSpans, cover_spans, drop_texts
from corpus.pii.detect import Span, find_pii, find_pii_in_sentences
from corpus.pii.extra.person_by_model import NameTagger, load_tagger
from corpus.pii.key import load_or_create_secret, random_secret, read_key, seeded_secret
from corpus.pii.replace import Keep, Pseudonymizer, normal_forms
from corpus.pii.types import PII_TYPES
from corpus.sentences.split import split_sentences

SECRET_NAME, ORIGINALS_NAME = "secret", "originals.npy"
FINGERPRINT_BYTES, CODE_LETTERS = 8, 8

# in running text, the hyphens of tel-010-0188-2204-12 belong to the number
_PREFIX, _SUFFIX = re.compile("^[A-Za-z]{1,12}[-_.]?"), re.compile("-[0-9A-Za-z]{1,6}$")
_SAMPLE_MODES: tuple[Literal["tag"], Literal["mask"]] = ("tag", "mask")

Mode = Literal["replace", "mask", "tag", "drop"]
MODES: tuple[Mode, ...] = get_args(Mode)

IsReplacement = Callable[[str], bool]


class HiddenDocument(NamedTuple):
    """The sentences of a document without personal data; ``DocumentHider`` adds digest and fingerprints."""

    sentences: list[str | None]  # None where mode ``drop`` dropped the sentence
    spans: list[list[Span]]  # what was hidden in each sentence, as spans of the original
    remaining: Sequence[Sequence[Span]] = ()  # what the detector still finds: our replacements (mode ``replace``)
    digest: int = 0  # of the remaining sentences, as the detector last saw them
    replacements: Sequence[int] = ()  # fingerprints of the replacements in them


@dataclass(frozen=True, slots=True)
class PiiHider:
    """How a run hides personal data; ``secret``, ``key`` and ``keep`` are as in ``Pseudonymizer``."""

    mode: Mode = "replace"
    secret: bytes = field(default_factory=random_secret, repr=False)
    key: bytes | None = field(default=None, repr=False)
    types: frozenset[str] | None = None  # names of the types to hide; default: the 16 types of Table 29
    name_model: NameTagger | None = field(default=None, repr=False)  # also finds names of people (type PERSON)
    keep: Keep = "form"

    def find(self, text: str, label: str = "") -> list[Span]:
        """The personal data in a text; ``label`` is as in ``hide``."""
        return find_pii(text, self.types, label, self.name_model)

    def hide_in_sentences(
        self, sentences: Sequence[str], document_id: str, is_replacement: IsReplacement | None = None
    ) -> HiddenDocument:
        """Hide the personal data of a document; labels in the previous sentence count.

        Args:
            is_replacement: whether a value is a replacement of an earlier call, which stays as it is.

        Raises:
            BadInput: the detector still finds something after all rounds. The message gives the place, not the value.
        """

        def find(texts: Sequence[str]) -> list[list[Span]]:
            text_spans = find_pii_in_sentences(texts, self.types, self.name_model)
            if is_replacement is None:
                return text_spans
            rows = zip(texts, text_spans, strict=True)
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

    def _hide(self, texts: Sequence[str], document_id: str, find: FindSpans) -> HiddenDocument:
        if self.mode == "drop":
            sentences, spans = drop_texts(texts, find)
            return HiddenDocument(sentences, spans, [[] for _ in texts])
        spans = find(texts)
        if not any(spans):
            return HiddenDocument(list(texts), spans, spans)
        document = CoveredTexts(texts, self.mode, Pseudonymizer(self.secret, document_id, self.key, self.keep))
        for round_ in range(MAX_ROUNDS):
            document.add_covers(spans, round_)
            spans = find(document.rewrite())
            if document.are_replacements(spans):
                return HiddenDocument([*document.rewritten], document.hidden_spans(), spans)
        raise _cannot_hide_error(document_id, spans)


def _sentences_with_blanks(text: str) -> list[str]:
    """The sentences of a text, each with the white space after it; the first item is the white space at the start."""
    starts, position = [], 0
    for sentence in split_sentences(text):
        position = text.index(sentence, position)
        starts.append(position)
        position += len(sentence)
    bounds = [0, *starts, len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


def _cannot_hide_error(document_id: str, sentence_spans: Sequence[Sequence[Span]]) -> BadInput:
    number, span = next((number, spans[0]) for number, spans in enumerate(sentence_spans) if spans)
    name = cover_spans(document_id, find_pii(document_id), "tag")
    return BadInput(
        f"document {name}, sentence {number + 1}, characters {span.start} to {span.end}: {span.type} is still detected "
        f"after {MAX_ROUNDS} rounds of hiding; remove the document, or use mode drop"
    )


class DocumentHider:
    """Hides the personal data of the documents of one unit, and records fingerprints of the original values.

    Args:
        salt: secret key of the fingerprints.
    """

    def __init__(self, hider: PiiHider, salt: bytes = b"") -> None:
        self.hider, self.types, self._salt = hider, hider.types, salt
        self._originals: set[int] = set()
        self._public_files: dict[str, str] = {}
        self._public_sources: dict[str, str] = {}
        self._tagger, self._masker = (replace(hider, mode=mode, secret=b"", key=None) for mode in _SAMPLE_MODES)

    # --- documents

    def hide(self, documents: Sequence[tuple[str, Sequence[str]]]) -> list[HiddenDocument]:
        """Hide the personal data in the sentences of documents, given with their ids.

        The name model reads all sentences in common batches first.
        """
        if self.hider.name_model:
            self.hider.name_model.prepare(text for _, sentences in documents for text in sentences)
        return [self.hide_one(document_id, sentences) for document_id, sentences in documents]

    def hide_one(self, document_id: str, sentences: Sequence[str], replacements: Sequence[int] = ()) -> HiddenDocument:
        """The same for one document; values with fingerprints in ``replacements`` stay as they are."""
        known = self._has_fingerprint(replacements) if replacements else None
        hidden = self.hider.hide_in_sentences(sentences, document_id, known)
        self._record_originals(sentences, hidden.spans)
        texts = [text for text in hidden.sentences if text is not None]
        new = self._fingerprints(hidden.sentences, hidden.remaining)
        return hidden._replace(digest=self.digest(texts), replacements=[*replacements, *new])

    def hide_names(self, place: str, id_: str, source: str) -> tuple[str, str, str]:
        """Place (file, then @byte or #item), id and source of a document without personal data."""
        file, sign, number = re.fullmatch(r"(.*?)(?:([@#])([0-9]+))?", place, re.DOTALL).groups("")  # type: ignore[union-attr]
        public = f"{self.hide_in_file_name(file)}{sign}{number}"
        return public, public if id_ == place or self._has_pii(id_) else id_, self.hide_in_source(source)

    # --- names

    def hide_in_name(self, name: str) -> str:
        """A file name or id without personal data, plus letters that keep it unique; they need the secret to guess."""
        spans = find_pii(name, self.types)
        if not spans:
            return name
        self._record_originals([name], [spans])
        code = hmac.digest(self.hider.key or self.hider.secret, name.encode(), "sha256")[:CODE_LETTERS]
        letters = "".join(chr(ord("a") + byte % 26) for byte in code)  # digits could form a number
        return f"{self.tag(name)}-{letters}"

    def hide_in_file_name(self, name: str) -> str:
        """A file name; checked with and without its suffix, because a number never ends at a dot and letters."""
        if name not in self._public_files:
            public = self.hide_in_name(name)
            dot = name.find(".", name.rfind("/") + 1)
            is_split = public == name and dot >= 0
            self._public_files[name] = self.hide_in_name(name[:dot]) + name[dot:] if is_split else public
        return self._public_files[name]

    def hide_in_source(self, source: str) -> str:
        """The name of a source; web addresses may stay."""
        if source not in self._public_sources:
            spans = find_pii(source, self.types)
            is_private = any(span.type != "URL" for span in spans)
            self._public_sources[source] = cover_spans(source, spans, "tag") if is_private else source
        return self._public_sources[source]

    def _has_pii(self, name: str) -> bool:
        """Whether the detector finds anything in an id, with or without the usual prefix and suffix of ids."""
        for form in (name, _SUFFIX.sub("", name), _PREFIX.sub("", name), _SUFFIX.sub("", _PREFIX.sub("", name))):
            if spans := find_pii(form, self.types):
                self._record_originals([form], [spans])
                return True
        return False

    # --- samples

    def tag(self, text: str, context: str = "") -> str:
        """A sentence with ``[TEL]`` and the like in place of values; ``context`` is the sentence before it."""
        hidden = self._tagger.hide_in_sentences([context, text], "")
        self._record_originals([context, text], hidden.spans)
        return hidden.sentences[1] or ""

    def excerpt(self, text: str, limit: int, replacements: Collection[int] = ()) -> tuple[str, list[int]]:
        """At most ``limit`` characters of a text, and the fingerprints of the replacements in them.

        All other values are tagged, before and after the cut, because half a number may be a number too.
        """
        known = self._has_fingerprint(replacements)
        shown = self._tagger.hide_in_sentences([text], "", known).sentences[0] or ""
        if len(shown) > limit:  # a mask keeps the length
            shown = self._masker.hide_in_sentences([shown[:limit]], "", known).sentences[0] or ""
        return shown, self._fingerprints([shown], [self.hider.find(shown)])

    def cut_between_values(self, text: str, left: int, right: int) -> str:
        """``text[left:right]`` without personal data; values that cross an end of the range are tagged as a whole."""
        pieces, position = [], left
        for span in self.hider.find(text):
            if span.end > left and span.start < right:
                pieces += [text[position : max(position, span.start)], f"[{span.type}]"]
                position = span.end
        return self.tag(("".join(pieces) + text[position:right]).strip())

    # --- fingerprints

    def fingerprint(self, value: str) -> int:
        """64 bits that differ between values and reveal nothing without the salt."""
        digest = hashlib.blake2b(value.encode(), key=self._salt, digest_size=FINGERPRINT_BYTES).digest()
        return int.from_bytes(digest, "little")

    def digest(self, sentences: Sequence[str]) -> int:
        return self.fingerprint("\0".join(sentences))

    def write_originals(self, folder: Path) -> None:
        """Write the fingerprints of the original values of this unit."""
        np.save(folder / ORIGINALS_NAME, np.array(sorted(self._originals), np.uint64))

    def _record_originals(self, texts: Iterable[str], text_spans: Iterable[Sequence[Span]]) -> None:
        self._originals.update(
            self.fingerprint(form) for kind, value in values_of(texts, text_spans) for form in normal_forms(kind, value)
        )

    def _fingerprints(self, texts: Iterable[str | None], text_spans: Iterable[Sequence[Span]]) -> list[int]:
        """Fingerprints of the values found in texts, each once, in order."""
        return list(dict.fromkeys(self.fingerprint(value) for _, value in values_of(texts, text_spans)))

    def _has_fingerprint(self, fingerprints: Collection[int]) -> Callable[[str], bool]:
        return lambda value: self.fingerprint(value) in fingerprints


def values_of(texts: Iterable[str | None], text_spans: Iterable[Sequence[Span]]) -> Iterator[tuple[str, str]]:
    for text, spans in zip(texts, text_spans, strict=True):
        yield from ((span.type, (text or "")[span.start : span.end]) for span in spans)


def load_document_hider(config: CorpusConfig, private: Path) -> DocumentHider:
    """The hider of a run; ``private`` is the folder with its secret."""
    if config.pii.mode == "keep":
        return DocumentHider(PiiHider("tag", b"", types=frozenset()))  # finds nothing
    secret = load_or_create_secret(private / SECRET_NAME)
    run_secret, salt = (hmac.digest(secret, purpose, "sha256") for purpose in (b"replacements", b"marks"))
    if config.pii.repeatable:
        run_secret = seeded_secret(config.seed)
    key = read_key(config.pii.key_file, config.pii.key_variable)
    types = frozenset((*PII_TYPES, *config.pii.extra)) if config.pii.extra else None
    names = load_name_model(config.pii.names)
    return DocumentHider(PiiHider(config.pii.mode, run_secret, key, types, names, config.pii.keep), salt)


def load_name_model(config: NamesConfig) -> NameTagger | None:
    """The name model of the recipe; None without one. ``BadInput`` if it cannot be used."""
    keys = "corpus.pii.names.model", "corpus.pii.names.device"
    return load_tagger(config.model, config.threshold, config.device, keys) if config.model else None
