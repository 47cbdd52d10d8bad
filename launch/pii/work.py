"""Find or hide personal data in the selected strings of a record.

```
{"title": "문의", "author": {"phone": "010-0123-4567"}, "posts": [{"body": "…"}, {"body": "…"}]}
 --fields title            /title
 --fields author           /author/phone; its key is a label
 --fields posts.body       /posts/0/body, /posts/1/body: paths pass through lists
 --all-fields              every string; keys and numbers are unchanged
```
Texts are normalized to NFC first, and spans refer to this form. A text without personal data is unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.errors import BadInput
from corpus.pii.detect import Span, find_pii
from corpus.pii.extra.person_by_model import NameTagger
from corpus.pii.hide import MODES, PiiHider
from corpus.pii.key import random_secret, read_key, seeded_secret
from corpus.pii.replace import Keep
from corpus.pii.types import ALL_TYPES

SpanRow = list[Any] | dict[str, Any]
Paths = tuple[tuple[str, ...], ...]
"""The remaining keys of selected paths; an empty path selects everything below."""

EVERYTHING: Paths = ((),)


@dataclass(frozen=True, slots=True)
class Finding:
    """How personal data is found; ``explains`` adds score and reasons to each span.

    ``is_flat``: a record has one selected string, so its spans are a list; else an object by JSON pointer.
    """

    types: frozenset[str] | None = None
    explains: bool = False
    name_model: NameTagger | None = None
    is_flat: bool = False

    def find(self, text: str, label: str = "") -> list[Span]:
        return find_pii(text, self.types, label, self.name_model)

    def format_span(self, span: Span) -> SpanRow:
        """``[start, end, TYPE]``, or an object with score and reasons."""
        if not self.explains:
            return [span.start, span.end, span.type]
        why = list(span.why)
        return {"start": span.start, "end": span.end, "type": span.type, "score": round(span.score, 3), "why": why}


@dataclass(frozen=True, slots=True)
class Hiding:
    """How personal data is hidden; equal values of a document get equal replacements."""

    protection: PiiHider = field(repr=False)

    def hidden(self, text: str, document: str, label: str = "") -> str:
        """``text`` without personal data; unchanged if there is none."""
        composed = nfc(text)
        hidden = self.protection.hide(composed, document, label)
        return text if hidden == composed else hidden


Work = Finding | Hiding


class SplitPart(NamedTuple):
    """Part ``number`` of a value ``whole`` that is split over fields; ``label`` is their common name."""

    whole: str
    number: int
    label: str
    span: Span


_PART, MIN_SPLIT_DIGITS = re.compile("[0-9]{2,7}"), 9
_PLACE = re.compile("^(?:앞|뒷?|뒤|중간|가운데|끝) ?|[_ -]?(?:[0-9]|앞|뒤|앞자리|뒷자리|front|back|first|mid|last)$")


def split_values(value: Any, pointer: str = "", label: str = "") -> Iterator[tuple[list[str], list[str], str]]:
    """Pointers, values and common name of neighboring short numbers whose keys differ only in their place."""
    pairs = value.items() if isinstance(value, Mapping) else [(label, v) for v in value]
    run: list[tuple[str, str, str]] = []
    for place, (key, inner) in enumerate([*pairs, ("", None)]):
        below = f"{pointer}/{escape_key(key) if isinstance(value, Mapping) else place}"
        is_part = isinstance(inner, str) and bool(_PART.fullmatch(inner))
        stem = _PLACE.sub("", key)
        if run and not (is_part and stem == run[0][2]):
            if len(run) > 1 and sum(len(text) for _, text, _ in run) >= MIN_SPLIT_DIGITS:
                yield [p for p, _, _ in run], [text for _, text, _ in run], run[0][2]
            run = []
        if is_part:
            run.append((below, inner, stem))
        elif isinstance(inner, Mapping | list | tuple):
            yield from split_values(inner, below, key)


@dataclass(slots=True)
class RecordWork:
    """Processes the strings of one record; a ``Finding`` collects their ``spans`` by JSON pointer."""

    work: Work
    document: str
    spans: dict[str, list[SpanRow]] = field(default_factory=dict)
    parts: dict[str, SplitPart] = field(default_factory=dict)

    def learn(self, record: Any) -> RecordWork:
        """Read which fields of the record are parts of one value: ``tel1``, ``tel2``, ``tel3``."""
        find = self.work.protection.find if isinstance(self.work, Hiding) else self.work.find
        for pointers, values, label in split_values(record):
            whole = "-".join(values)
            spans = find(whole, label)
            if [(span.start, span.end) for span in spans] == [(0, len(whole))]:
                self.parts |= {p: SplitPart(whole, n, label, spans[0]) for n, p in enumerate(pointers)}
        return self

    def change(self, text: str, label: str, pointer: str) -> str:
        """``text`` without personal data, or in NFC."""
        part = self.parts.get(pointer)
        if isinstance(self.work, Hiding):
            if part is None:
                return self.work.hidden(text, self.document, label)
            hidden = self.work.hidden(part.whole, self.document, part.label)
            return hidden.split("-")[part.number] if hidden.count("-") == part.whole.count("-") else hidden
        text = nfc(text)
        spans = [replace(part.span, start=0, end=len(text))] if part else self.work.find(text, label)
        if spans:
            self.spans.setdefault(pointer, []).extend(map(self.work.format_span, spans))  # keys may repeat
        return text

    def format_spans(self) -> Any:
        """The spans by JSON pointer, or as one list."""
        is_flat = isinstance(self.work, Finding) and self.work.is_flat
        return [span for spans in self.spans.values() for span in spans] if is_flat else self.spans


def read_types(names: str | None) -> frozenset[str] | None:
    """The types in a list such as ``TEL,PERSON``; None for the 16 of the paper."""
    if names is None:
        return None
    types = [name.strip().upper() for name in names.split(",") if name.strip()]
    unknown = [name for name in types if name not in ALL_TYPES]
    if unknown or not types:
        raise BadInput(f"--types {names}: unknown type {', '.join(unknown)}; expected any of {', '.join(ALL_TYPES)}")
    return frozenset(types)


def read_protection(
    mode: str,
    seed: int | None,
    key_file: Path | None,
    key_variable: str | None,
    types: frozenset[str] | None,
    name_model: NameTagger | None = None,
    keep: Keep = "form",
) -> PiiHider:
    """How to hide: with a random secret that is not saved, a seed, or a key."""
    if mode not in MODES:
        raise BadInput(f"--mode {mode}: unknown mode; expected one of {', '.join(MODES)}")
    if seed is not None and (key_file or key_variable):
        raise BadInput("--seed cannot be combined with a key, which makes replacements reproducible already")
    key = read_key(key_file, key_variable)
    secret = random_secret() if seed is None else seeded_secret(seed)
    return PiiHider(mode, secret, key, types, name_model, keep)


def nfc(text: str) -> str:
    """Normalize to NFC, in which Hangul syllables are single characters."""
    return unicodedata.normalize("NFC", text)


# --- which strings


def paths_of(fields: Sequence[str] | None) -> Paths:
    """The paths of field names such as ``body`` or ``author.phone``; keys may contain dots."""
    if fields is None:
        return EVERYTHING
    return tuple(dict.fromkeys(path for name in fields for path in ((name,), tuple(name.split(".")))))


def paths_below(paths: Paths, key: str) -> Paths:
    """The selected paths below ``key``."""
    return EVERYTHING if () in paths else tuple(path[1:] for path in paths if path[0] == key)


def map_strings(
    value: Any, paths: Paths, change: Callable[[str, str, str], str], label: str = "", pointer: str = ""
) -> Any:
    """Apply ``change(text, label, pointer)`` to every selected string of a value.

    The label is the nearest key; the pointer is the JSON pointer of the string (RFC 6901).
    """
    if isinstance(value, str):
        return change(value, label, pointer) if () in paths else value
    if isinstance(value, Mapping):
        return {
            key: map_strings(inner, paths_below(paths, key), change, key, f"{pointer}/{escape_key(key)}")
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        inners = enumerate(value)
        return type(value)([map_strings(inner, paths, change, label, f"{pointer}/{at}") for at, inner in inners])
    return value


def escape_key(key: str) -> str:
    """Escape a key for a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
