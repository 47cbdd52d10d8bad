"""Hide the personal data of documents in one step: sentences, names of people by the model, ids and sources.

For the final check of the stage, a digest of the sentences and fingerprints of replacements and original values are
kept. Fingerprints are keyed 64-bit hashes; their random salt is in the private folder of the run and is deleted with
it. With ``corpus.pii.mode=keep`` every method returns its input.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from corpus.config import CorpusConfig, NamesConfig
from corpus.pii.cover import cover_spans
from corpus.pii.detect import Span, find_pii
from corpus.pii.extra.person_by_model import NameTagger, load_tagger
from corpus.pii.hide import PiiHider
from corpus.pii.key import load_or_create_secret, read_key, seeded_secret
from corpus.pii.replace import normal_forms
from corpus.pii.types import PII_TYPES

SECRET_NAME, ORIGINALS_NAME = "secret", "originals.npy"
FINGERPRINT_BYTES, CODE_LETTERS = 8, 8

# in running text, the hyphens of tel-010-0188-2204-12 belong to the number
_PREFIX, _SUFFIX = re.compile("^[A-Za-z]{1,12}[-_.]?"), re.compile("-[0-9A-Za-z]{1,6}$")
_SAMPLE_MODES: tuple[Literal["tag"], Literal["mask"]] = ("tag", "mask")


class HiddenDocument(NamedTuple):
    """A document without personal data.

    Attributes:
        sentences: None where mode ``drop`` dropped the sentence.
        spans: what was hidden in each sentence, as spans of the original.
        digest: of the remaining sentences, as the detector last saw them.
        replacements: fingerprints of the replacements in them.
    """

    sentences: list[str | None]
    spans: list[list[Span]]
    digest: int = 0
    replacements: Sequence[int] = ()


class DocumentHider:
    """Hides the personal data of the documents of one unit, and records fingerprints of the original values.

    Args:
        hider: None keeps personal data.
        salt: secret key of the fingerprints.
    """

    def __init__(self, hider: PiiHider | None, salt: bytes = b"") -> None:
        self.hider, self._salt = hider, salt
        self._originals: set[int] = set()
        self._public_files: dict[str, str] = {}
        self._public_sources: dict[str, str] = {}
        if hider:
            self._tagger, self._masker = (replace(hider, mode=mode, secret=b"", key=None) for mode in _SAMPLE_MODES)

    # --- documents

    def hide(self, documents: Sequence[tuple[str, Sequence[str]]]) -> list[HiddenDocument]:
        """Hide the personal data in the sentences of documents, given with their ids.

        The name model reads all sentences in common batches first.
        """
        if self.hider and self.hider.name_model:
            self.hider.name_model.prepare(text for _, sentences in documents for text in sentences)
        return [self.hide_one(document_id, sentences) for document_id, sentences in documents]

    def hide_one(self, document_id: str, sentences: Sequence[str], replacements: Sequence[int] = ()) -> HiddenDocument:
        """The same for one document; values with fingerprints in ``replacements`` stay as they are."""
        if not self.hider:
            return HiddenDocument([*sentences], [[] for _ in sentences])
        known = self._has_fingerprint(replacements) if replacements else None
        hidden = self.hider.hide_in_sentences(sentences, document_id, known)
        self._record_originals(sentences, hidden.spans)
        kept = [text for text in hidden.sentences if text is not None]
        new = self._fingerprints(hidden.sentences, hidden.remaining)
        return HiddenDocument(hidden.sentences, hidden.spans, self.digest(kept), [*replacements, *new])

    def hide_names(self, place: str, id_: str, source: str) -> tuple[str, str, str]:
        """Place (file, then @byte or #item), id and source of a document without personal data."""
        if not self.hider:
            return place, id_, source
        file, sign, number = re.fullmatch(r"(.*?)(?:([@#])([0-9]+))?", place, re.DOTALL).groups("")  # type: ignore[union-attr]
        public = f"{self.hide_in_file_name(file)}{sign}{number}"
        return public, public if id_ == place or self._has_pii(id_) else id_, self.hide_in_source(source)

    # --- names

    def hide_in_name(self, name: str) -> str:
        """A file name or id without personal data, plus letters that keep it unique; they need the secret to guess."""
        spans = find_pii(name, self.types) if self.hider else []
        if not (spans and self.hider):
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
            spans = find_pii(source, self.types) if self.hider else []
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
        if not self.hider:
            return text
        hidden = self._tagger.hide_in_sentences([context, text], "")
        self._record_originals([context, text], hidden.spans)
        return hidden.sentences[1] or ""

    def excerpt(self, text: str, limit: int, replacements: Collection[int] = ()) -> tuple[str, list[int]]:
        """At most ``limit`` characters of a text, and the fingerprints of the replacements in them.

        All other values are tagged, before and after the cut, because half a number may be a number too.
        """
        if not self.hider:
            return text[:limit], []
        known = self._has_fingerprint(replacements)
        shown = self._tagger.hide_in_sentences([text], "", known).sentences[0] or ""
        if len(shown) > limit:  # a mask keeps the length
            shown = self._masker.hide_in_sentences([shown[:limit]], "", known).sentences[0] or ""
        return shown, self._fingerprints([shown], [self.hider.find(shown)])

    def cut_between_values(self, text: str, left: int, right: int) -> str:
        """``text[left:right]`` without personal data; values that cross an end of the range are tagged as a whole."""
        pieces, position = [], left
        for span in self.hider.find(text) if self.hider else ():
            if span.end > left and span.start < right:
                pieces += [text[position : max(position, span.start)], f"[{span.type}]"]
                position = span.end
        return self.tag(("".join(pieces) + text[position:right]).strip())

    # --- fingerprints

    @property
    def types(self) -> frozenset[str] | None:
        """The types to hide; None for the 16 of Table 29."""
        return self.hider.types if self.hider else None

    def fingerprint(self, value: str) -> int:
        """64 bits that differ between values and reveal nothing without the salt."""
        digest = hashlib.blake2b(value.encode(), key=self._salt, digest_size=FINGERPRINT_BYTES).digest()
        return int.from_bytes(digest, "little")

    def digest(self, sentences: Sequence[str]) -> int:
        """64 bits of all sentences of a document."""
        return self.fingerprint("\0".join(sentences))

    def write_originals(self, folder: Path) -> None:
        """Write the fingerprints of the original values of this unit."""
        np.save(folder / ORIGINALS_NAME, np.array(sorted(self._originals), np.uint64))

    def _record_originals(self, texts: Iterable[str], found: Iterable[Sequence[Span]]) -> None:
        self._originals.update(
            self.fingerprint(form) for kind, value in values_of(texts, found) for form in normal_forms(kind, value)
        )

    def _fingerprints(self, texts: Iterable[str | None], found: Iterable[Sequence[Span]]) -> list[int]:
        """Fingerprints of the values found in texts, each once, in order."""
        return list(dict.fromkeys(self.fingerprint(value) for _, value in values_of(texts, found)))

    def _has_fingerprint(self, fingerprints: Collection[int]) -> Callable[[str], bool]:
        return lambda value: self.fingerprint(value) in fingerprints


def values_of(texts: Iterable[str | None], found: Iterable[Sequence[Span]]) -> Iterator[tuple[str, str]]:
    """Type and value of all spans found in texts."""
    for text, spans in zip(texts, found, strict=True):
        yield from ((span.type, (text or "")[span.start : span.end]) for span in spans)


def load_document_hider(config: CorpusConfig, private: Path) -> DocumentHider:
    """The hider of a run; ``private`` is the folder with its secret."""
    if config.pii.mode == "keep":
        return DocumentHider(None)
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
