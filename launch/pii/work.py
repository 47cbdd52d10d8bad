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

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from corpus.documents.accelerator import DeviceName
from corpus.documents.errors import BadInput
from corpus.pii.detect import Span, find_pii
from corpus.pii.extra.person_by_model import NameTagger, load_tagger
from corpus.pii.hide import MODES, PiiHider
from corpus.pii.key import random_secret, read_key, seeded_secret
from corpus.pii.types import ALL_TYPES

SpanRow = list[Any] | dict[str, Any]
Paths = tuple[tuple[str, ...], ...]
"""The remaining keys of selected paths; an empty path selects everything below."""

EVERYTHING: Paths = ((),)


@dataclass(frozen=True, slots=True)
class Finding:
    """How personal data is found; ``explains`` adds score and reasons to each span."""

    types: frozenset[str] | None = None
    explains: bool = False
    name_model: NameTagger | None = None

    def find(self, text: str, label: str = "") -> list[Span]:
        return find_pii(text, self.types, label, self.name_model)

    def shown(self, span: Span) -> SpanRow:
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


@dataclass(slots=True)
class RecordWork:
    """Processes the strings of one record; a ``Finding`` collects their ``spans`` by JSON pointer."""

    work: Work
    document: str
    spans: dict[str, list[SpanRow]] = field(default_factory=dict)

    def change(self, text: str, label: str, pointer: str) -> str:
        """``text`` without personal data, or in NFC."""
        if isinstance(self.work, Hiding):
            return self.work.hidden(text, self.document, label)
        text = nfc(text)
        if spans := self.work.find(text, label):
            self.spans.setdefault(pointer, []).extend(map(self.work.shown, spans))  # keys may repeat
        return text

    def found(self, flat: bool) -> Any:
        """The spans by JSON pointer, or as one list if ``flat``."""
        return [span for spans in self.spans.values() for span in spans] if flat else self.spans


def read_types(names: str | None) -> frozenset[str] | None:
    """The types in a list such as ``TEL,PERSON``; None for the 16 of the paper."""
    if names is None:
        return None
    types = [name.strip().upper() for name in names.split(",") if name.strip()]
    unknown = [name for name in types if name not in ALL_TYPES]
    if unknown or not types:
        raise BadInput(f"--types {names}: unknown type {', '.join(unknown)}; expected any of {', '.join(ALL_TYPES)}")
    return frozenset(types)


def read_name_model(folder: Path | None, threshold: float, device: str) -> NameTagger | None:
    """Load the name model in ``folder``, if given; ``BadInput`` if it cannot be used."""
    if not 0 < threshold < 1:
        raise BadInput(f"--names-threshold {threshold:g}: expected a probability between 0 and 1")
    if device not in ("auto", "cpu"):
        raise BadInput(f"--names-device {device}: expected auto or cpu")
    return load_tagger(folder, threshold, cast(DeviceName, device)) if folder is not None else None


def read_protection(
    mode: str,
    seed: int | None,
    key_file: Path | None,
    key_variable: str | None,
    types: frozenset[str] | None,
    name_model: NameTagger | None = None,
) -> PiiHider:
    """How to hide: with a random secret that is not saved, a seed, or a key."""
    if mode not in MODES:
        raise BadInput(f"--mode {mode}: unknown mode; expected one of {', '.join(MODES)}")
    if seed is not None and (key_file or key_variable):
        raise BadInput("--seed cannot be combined with a key, which makes replacements reproducible already")
    key = read_key(key_file, key_variable)
    return PiiHider(mode, random_secret() if seed is None else seeded_secret(seed), key, types, name_model)


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
