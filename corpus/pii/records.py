"""Personal data in nested records: which strings are looked at, and what is done to them.

```
{"title": "문의", "author": {"phone": "010-0123-4567"}, "posts": [{"body": "…"}, {"body": "…"}]}
 --fields title            /title
 --fields author           /author/phone, announced by its key
 --fields posts.body       /posts/0/body, /posts/1/body: a path passes through lists
 --all-fields              every string; keys and numbers stay as they are
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Paths = tuple[tuple[str, ...], ...]
"""Keys that are still to come on the way to what is chosen; an empty path chooses everything from here on."""

EVERYTHING: Paths = ((),)


class Text(NamedTuple):
    """A chosen string; ``pointer`` is its place (RFC 6901), ``label`` its key, which may announce what it is."""

    pointer: str
    label: str
    text: str


def paths_of(fields: Sequence[str] | None) -> Paths:
    """Paths of field names such as ``body`` or ``author.phone``; a key with dots in it is found, too."""
    if fields is None:
        return EVERYTHING
    return tuple(dict.fromkeys(path for name in fields for path in ((name,), tuple(name.split(".")))))


def below(paths: Paths, key: str) -> Paths:
    """What is chosen of the value under ``key``."""
    return EVERYTHING if () in paths else tuple(path[1:] for path in paths if path[0] == key)


def texts_of(value: Any, paths: Paths, pointer: str = "", label: str = "") -> Iterator[Text]:
    """The chosen strings of a record, in order."""
    if isinstance(value, str):
        if () in paths:
            yield Text(pointer, label, value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts_of(inner, below(paths, key), f"{pointer}/{escape_key(key)}", key)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from texts_of(inner, paths, f"{pointer}/{place}", label)


def change_texts(value: Any, paths: Paths, change: Callable[[str, str], str], label: str = "") -> Any:
    """The same record with every chosen string replaced by ``change(text, label)``; keys and all else as they were."""
    if isinstance(value, str):
        return change(value, label) if () in paths else value
    if isinstance(value, Mapping):
        return {key: change_texts(inner, below(paths, key), change, key) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([change_texts(inner, paths, change, label) for inner in value])
    return value


def escape_key(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
