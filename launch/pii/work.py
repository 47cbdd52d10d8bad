"""What is done to every text, and to which: personal data is found or hidden in all strings that are chosen.

```
{"title": "문의", "author": {"phone": "010-0123-4567"}, "posts": [{"body": "…"}, {"body": "…"}]}
 --fields title            /title
 --fields author           /author/phone, announced by its key
 --fields posts.body       /posts/0/body, /posts/1/body: a path passes through lists
 --all-fields              every string; keys and numbers stay as they are
```
Texts become NFC first, as spans count characters of that form; a text in which nothing is found stays as it was.
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
"""Keys that are still to come on the way to what is chosen; an empty path chooses everything from here on."""

EVERYTHING: Paths = ((),)


@dataclass(frozen=True, slots=True)
class Finding:
    """How personal data is shown: ``explains`` adds score and reasons to each span, ``name_model`` names by a model."""

    types: frozenset[str] | None = None
    explains: bool = False
    name_model: NameTagger | None = None

    def rows(self, text: str, label: str = "") -> list[SpanRow]:
        return [self.shown(span) for span in self.find(text, label)]

    def find(self, text: str, label: str = "") -> list[Span]:
        return find_pii(text, self.types, label, self.name_model)

    def shown(self, span: Span) -> SpanRow:
        """``[start, end, TYPE]``, or an object that says why, too."""
        if not self.explains:
            return [span.start, span.end, span.type]
        why = list(span.why)
        return {"start": span.start, "end": span.end, "type": span.type, "score": round(span.score, 3), "why": why}


@dataclass(frozen=True, slots=True)
class Hiding:
    """How personal data is hidden; equal values map alike inside a document."""

    protection: PiiHider = field(repr=False)

    def hidden(self, text: str, document: str, label: str = "") -> str:
        """``text`` without personal data; unchanged where there is none."""
        composed = nfc(text)
        hidden = self.protection.hide(composed, document, label)
        return text if hidden == composed else hidden


Work = Finding | Hiding


def read_types(names: str | None) -> frozenset[str] | None:
    """Types of a list such as ``TEL,PERSON``; None for the paper's sixteen."""
    if names is None:
        return None
    wanted = [name.strip().upper() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in ALL_TYPES]
    if unknown or not wanted:
        raise BadInput(f"--types {names}: no type {', '.join(unknown) or 'named'}; there are {', '.join(ALL_TYPES)}")
    return frozenset(wanted)


def read_name_model(folder: Path | None, threshold: float, device: str) -> NameTagger | None:
    """The model of names in ``folder``, where one is given; ``BadInput`` where it cannot be used."""
    if not 0 < threshold < 1:
        raise BadInput(f"--names-threshold {threshold:g}: a probability between 0 and 1 is expected")
    if device not in ("auto", "cpu"):
        raise BadInput(f"--names-device {device}: auto or cpu")
    return load_tagger(folder, threshold, cast(DeviceName, device)) if folder is not None else None


def read_protection(
    mode: str,
    seed: int | None,
    key_file: Path | None,
    key_variable: str | None,
    types: frozenset[str] | None,
    name_model: NameTagger | None = None,
) -> PiiHider:
    """How to hide: by a random secret of this run, kept nowhere, or repeatably where a seed is given."""
    if mode not in MODES:
        raise BadInput(f"--mode {mode}: no such mode; there are {', '.join(MODES)}")
    if seed is not None and (key_file or key_variable):
        raise BadInput("--seed and a key: with a key a value maps alike in all runs, so leave --seed out")
    key = read_key(key_file, key_variable)
    return PiiHider(mode, random_secret() if seed is None else seeded_secret(seed), key, types, name_model)


def nfc(text: str) -> str:
    """The composed form, in which Hangul syllables are single characters."""
    return unicodedata.normalize("NFC", text)


# --- which strings


def paths_of(fields: Sequence[str] | None) -> Paths:
    """Paths of field names such as ``body`` or ``author.phone``; a key with dots in it is found, too."""
    if fields is None:
        return EVERYTHING
    return tuple(dict.fromkeys(path for name in fields for path in ((name,), tuple(name.split(".")))))


def below(paths: Paths, key: str) -> Paths:
    """What is chosen of the value under ``key``."""
    return EVERYTHING if () in paths else tuple(path[1:] for path in paths if path[0] == key)


def change_texts(
    value: Any, paths: Paths, change: Callable[[str, str, str], str], label: str = "", pointer: str = ""
) -> Any:
    """The same value with ``change(text, label, pointer)`` for every chosen string; keys and all else as they were.

    The label is the nearest key, which may announce what the string is; the pointer is its place (RFC 6901).
    """
    if isinstance(value, str):
        return change(value, label, pointer) if () in paths else value
    if isinstance(value, Mapping):
        return {
            key: change_texts(inner, below(paths, key), change, key, f"{pointer}/{escape_key(key)}")
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        inners = enumerate(value)
        return type(value)([change_texts(inner, paths, change, label, f"{pointer}/{at}") for at, inner in inners])
    return value


def escape_key(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
