"""What keeps personal data out of everything the stage writes, and the last look at all of it.

```
clean ─ hides, marks what it left ─▶ part ─ hides again where sentences went ─▶ shard ─ read again: nothing but marked
        marks what it found ───────▶ originals ─────────▶ card, statistics … ─ read again: no original
```
Neighbours decide what is found, so every text is looked at in the form in which it is published: sentences in their
final document, samples cut to size and alone. The detector may then find replacements only. They are known by their
*marks*: keyed 64-bit hashes whose salt is drawn for the run, lies in its private folder, and goes with it. Marks of the
originals serve for the pages around the texts, which hold numbers and addresses of their own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.config import CorpusConfig, NamesConfig
from corpus.documents.errors import BadInput
from corpus.documents.shards import read_documents
from corpus.pii.cover import cover
from corpus.pii.detect import Span, find_pii, find_pii_in_sentences
from corpus.pii.extra.person_by_model import NameTagger, load_tagger
from corpus.pii.hide import Protected, Protection
from corpus.pii.key import kept_secret, read_key, seeded_secret
from corpus.pii.replace import writings
from corpus.pii.types import PII_TYPES

SECRET_NAME, ORIGINALS_NAME = "secret", "originals.npy"
SOURCE_COLUMN = "source"
TEXT_COLUMNS = ("note", "text", "before", "after")
"""Of tables of samples: names are looked for there by the model, too; ids and sources are no sentences."""
MARK_BYTES, CODE_LETTERS = 8, 8
BLOCK_CHARS = 1 << 20

# tel-010-0188-2204-12: in running text a hyphen there belongs to the number
_SHOWN_BY: tuple[Literal["tag"], Literal["mask"]] = ("tag", "mask")
_PREFIX, _SUFFIX = re.compile("^[A-Za-z]{1,12}[-_.]?"), re.compile("-[0-9A-Za-z]{1,6}$")


class Look(NamedTuple):
    """What the detector has passed: the seal of a document's sentences, and the marks of the replacements in them."""

    seal: int
    marks: list[int]


class Guard:
    """How a run hides personal data, and the marks of what one unit of it found.

    Args:
        salt: of the marks; secret.
    """

    def __init__(self, protection: Protection, salt: bytes) -> None:
        self.protection = protection
        self.types = protection.types
        self.originals: set[int] = set()
        self._salt = salt
        self._tags, self._masks = (replace(protection, mode=mode, secret=b"", key=None) for mode in _SHOWN_BY)
        self._sources: dict[str, str] = {}
        self._files: dict[str, str] = {}

    def mark(self, value: str) -> int:
        """64 bits that tell values apart and say nothing without the salt."""
        digest = hashlib.blake2b(value.encode(), key=self._salt, digest_size=MARK_BYTES).digest()
        return int.from_bytes(digest, "little")

    def seal(self, sentences: Sequence[str]) -> int:
        """64 bits of all sentences of a document: equal where they are what was looked at."""
        return self.mark("\0".join(sentences))

    def marks(self, texts: Iterable[str | None], found: Iterable[Sequence[Span]]) -> list[int]:
        """Marks of the replacements found in texts, each once, in order."""
        return list(dict.fromkeys(self.mark(value) for _, value in _values(texts, found)))

    def note(self, texts: Iterable[str], found: Iterable[Sequence[Span]]) -> None:
        """Take in the originals found in texts."""
        self.originals.update(
            self.mark(form) for kind, value in _values(texts, found) for form in writings(kind, value)
        )

    def write(self, folder: Path) -> None:
        """Leave the marks of the unit's originals."""
        np.save(folder / ORIGINALS_NAME, np.array(sorted(self.originals), np.uint64))

    def hide(self, sentences: Sequence[str], document_id: str, marks: Collection[int] = ()) -> Protected:
        """The sentences of a document without personal data; replacements with ``marks`` stay as they are."""
        protected = self.protection.hide_in_sentences(sentences, document_id, self._known(marks) if marks else None)
        self.note(sentences, protected.spans)
        return protected

    def tag(self, text: str, context: str = "") -> str:
        """A sentence with ``[TEL]`` and the like in place of values, which ``context`` before it may announce."""
        protected = self._tags.hide_in_sentences([context, text], "")
        self.note([context, text], protected.spans)
        return protected.sentences[1] or ""

    def show(self, text: str, limit: int, marks: Collection[int] = ()) -> tuple[str, list[int]]:
        """At most ``limit`` characters of a text as it stands alone, without values other than those with ``marks``,
        and the marks of the replacements found in it."""
        shown = self._tags.hide_in_sentences([text], "", self._known(marks)).sentences[0] or ""
        if len(shown) > limit:  # the cut may make a number of half a number; a mask keeps the length
            shown = self._masks.hide_in_sentences([shown[:limit]], "", self._known(marks)).sentences[0] or ""
        return shown, self.marks([shown], [self.protection.find(shown)])

    def public_name(self, name: str) -> str:
        """A file or an id without personal data; what tells it from others then says nothing without the secret."""
        spans = find_pii(name, self.types)
        if not spans:
            return name
        self.note([name], [spans])
        code = hmac.digest(self.protection.key or self.protection.secret, name.encode(), "sha256")[:CODE_LETTERS]
        letters = "".join(chr(ord("a") + byte % 26) for byte in code)  # no digits, of which a number could come
        return f"{self.tag(name)}-{letters}"

    def public_place(self, place: str) -> str:
        """A file and a byte or item, of which the file may be private."""
        file, sign, number = re.fullmatch(r"(.*?)(?:([@#])([0-9]+))?", place, re.DOTALL).groups("")  # type: ignore[union-attr]
        return f"{self.public_file(file)}{sign}{number}"

    def public_file(self, name: str) -> str:
        """A file's name, which is looked at with its suffix and without: a number never ends at a dot and letters."""
        if name not in self._files:
            public = self.public_name(name)
            dot = name.find(".", name.rfind("/") + 1)
            is_split = public == name and dot >= 0
            self._files[name] = self.public_name(name[:dot]) + name[dot:] if is_split else public
        return self._files[name]

    def public_source(self, source: str) -> str:
        """A name of a source, where addresses of pages may stay."""
        if source not in self._sources:
            spans = find_pii(source, self.types)
            is_private = any(span.type != "URL" for span in spans)
            self._sources[source] = cover(source, spans, "tag") if is_private else source
        return self._sources[source]

    def has_data(self, name: str) -> bool:
        """Whether a name holds anything that the detector finds, with or without what ids have around a value."""
        for form in (name, _SUFFIX.sub("", name), _PREFIX.sub("", name), _SUFFIX.sub("", _PREFIX.sub("", name))):
            if spans := find_pii(form, self.types):
                self.note([form], [spans])
                return True
        return False

    def _known(self, marks: Collection[int]) -> Callable[[str], bool]:
        return lambda value: self.mark(value) in marks


def _values(texts: Iterable[str | None], found: Iterable[Sequence[Span]]) -> Iterator[tuple[str, str]]:
    """Type and text of each span."""
    for text, spans in zip(texts, found, strict=True):
        yield from ((span.type, (text or "")[span.start : span.end]) for span in spans)


def load_guard(config: CorpusConfig, private: Path) -> Guard | None:
    """The guard of a run, whose ``private`` folder holds its secret; None where it keeps personal data."""
    if config.pii.mode == "keep":
        return None
    secret = kept_secret(private / SECRET_NAME)
    drawn_from, salt = (hmac.digest(secret, purpose, "sha256") for purpose in (b"replacements", b"marks"))
    if config.pii.repeatable:
        drawn_from = seeded_secret(config.seed)
    key = read_key(config.pii.key_file, config.pii.key_variable)
    types = frozenset((*PII_TYPES, *config.pii.extra)) if config.pii.extra else None
    return Guard(Protection(config.pii.mode, drawn_from, key, types, load_people(config.pii.names)), salt)


def load_people(config: NamesConfig) -> NameTagger | None:
    """The model of names of people; None where the settings name none. ``BadInput`` where it cannot be used."""
    keys = "corpus.pii.names.model", "corpus.pii.names.device"
    return load_tagger(config.model, config.threshold, config.device, keys) if config.model else None


# --- the last look


def scan_shard(path: Path, looks: Sequence[Look], guard: Guard, name: str) -> None:
    """Read a shard again: in none of its documents may anything be found but replacements with the document's marks.

    What bears the seal of its look is, letter for letter, what the detector passed; all else it looks at now.

    Raises:
        BadInput: something else is found; the message says where, not what.
    """
    for number, (document, look) in enumerate(zip(read_documents(path), looks, strict=True), 1):
        for span in find_pii(document.id, guard.types):
            raise _left(f"{name}, document {number}, id", span)
        if document.source != guard.public_source(document.source):
            raise _left(f"{name}, document {number}, source", find_pii(document.source, guard.types)[0])
        if guard.seal(document.sentences) == look.seal:
            continue
        found = find_pii_in_sentences(document.sentences, guard.types, guard.protection.people)
        for sentence, spans in enumerate(found, 1):
            for span in spans:
                if guard.mark(document.sentences[sentence - 1][span.start : span.end]) not in look.marks:
                    raise _left(f"{name}, document {number} ({document.id}), sentence {sentence}", span)


def scan_folder(
    out: Path, written: Iterable[str], guard: Guard, units: Sequence[Path], known: Collection[int], names: Iterable[Any]
) -> None:
    """Read again what the stage left beside the documents: files and folders ``written`` below ``out``.

    Args:
        units: folders that hold marks of originals, none of which may stand in pages and JSON files.
        known: marks of replacements, the only values that may stand in tables of samples.
        names: settings and templates, whose own addresses are no originals.

    Raises:
        BadInput: as ``scan_shard``.
    """
    originals = np.unique(np.concatenate([np.zeros(0, np.uint64), *(np.load(u / ORIGINALS_NAME) for u in units)]))
    texts = [name if isinstance(name, str) else json.dumps(name, ensure_ascii=False, indent=0) for name in names]
    found = [find_pii(text, guard.types) for text in texts]
    own = {*known, *(guard.mark(form) for kind, value in _values(texts, found) for form in writings(kind, value))}
    entries = [out / entry for entry in written]
    files = sorted(path for entry in entries for path in [entry, *entry.rglob("*")] if path.is_file())
    for path in sorted(files, key=lambda file: file.suffix != ".parquet"):  # what pages show comes from the tables
        name = path.relative_to(out).as_posix()
        if path.suffix == ".parquet":
            _scan_table(path, name, guard, known)
        else:
            _scan_page(path, name, guard, originals, own)


def _scan_table(path: Path, name: str, guard: Guard, known: Collection[int]) -> None:
    with pq.ParquetFile(path) as file:
        columns = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
        rows = 0
        for batch in file.iter_batches(10_000, columns=columns):
            for column in columns:
                values = batch.column(column)
                people = guard.protection.people if column in TEXT_COLUMNS else None
                for value in pc.unique(values).drop_null().to_pylist():
                    for span in find_pii(value, guard.types, people=people):
                        may_stay = column == SOURCE_COLUMN and span.type == "URL"
                        if not may_stay and guard.mark(value[span.start : span.end]) not in known:
                            row = rows + pc.index(values, value).as_py() + 1
                            raise _left(f"{name}, row {row}, column {column}", span)
            rows += batch.num_rows


def _scan_page(path: Path, name: str, guard: Guard, originals: np.ndarray, own: set[int]) -> None:
    line = 1
    with path.open(encoding="utf-8", newline="\n") as file:
        while lines := file.readlines(BLOCK_CHARS):
            text = "".join(lines)
            for span in find_pii(text, guard.types):
                value = text[span.start : span.end]
                marks = [guard.mark(form) for form in writings(span.type, value)]
                if own.isdisjoint([*marks, guard.mark(value)]) and np.isin(np.array(marks, np.uint64), originals).any():
                    raise _left(f"{name}, line {line + text.count(chr(10), 0, span.start)}", span)
            line += len(lines)


def _left(where: str, span: Span) -> BadInput:
    return BadInput(
        f"{where}, characters {span.start} to {span.end}: a {span.type} stands here that is no replacement, so "
        "nothing of this folder may be published; please report it as a defect of malmoi"
    )
