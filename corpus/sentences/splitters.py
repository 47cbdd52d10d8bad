"""Sentence splitters by name: our rules, or KSS as in the paper (optional package, 536 times slower).

Both return stripped, non-empty slices of the text in order, and every line end is a boundary. KSS only proposes
boundaries, because it drops characters such as U+FEFF and everything after U+0000.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any

from corpus.documents.errors import BadInput
from corpus.sentences.split import split_sentences

Splitter = Callable[[str], list[str]]

WHITE = re.compile(r"\s+")
MAX_LINE_CHARS = 20_000  # KSS takes minutes per megabyte of one line
KSS_DROPPED_CHARS = 200  # maximum number of dropped characters to skip in a search
KSS_MISSED_CHARS = 2_000  # maximum number of characters of sentences that were not found


@cache
def load_splitter(name: str) -> Splitter:
    """The splitter "rules" or "kss"; loaded once per process, because KSS takes seconds to load."""
    if name not in SPLITTERS:
        raise BadInput(f"unknown sentence splitter {name!r}; expected one of {', '.join(SPLITTERS)}")
    try:
        return SPLITTERS[name]()
    except ImportError as error:
        raise BadInput(
            f"sentence splitter {name!r} cannot be imported ({error}); install it with: pip install 'malmoi[{name}]'"
        ) from error


def _load_kss() -> Splitter:
    from kss import split_sentences as kss_split

    split: Any = partial(kss_split, backend="mecab", num_workers=1, strip=True)
    return partial(split_at_starts, starts=lambda line: aligned_starts(line, split(line)))


SPLITTERS: dict[str, Callable[[], Splitter]] = {"rules": lambda: split_sentences, "kss": _load_kss}


def split_at_starts(text: str, starts: Callable[[str], Iterable[int]]) -> list[str]:
    """The text split at line ends and at the positions from ``starts``."""
    sentences = []
    for part in _parts(text):
        last = 0
        for start in (*list(starts(part))[1:], len(part)):
            if last < start <= len(part):
                sentences.append(part[last:start].strip())
                last = start
    return [sentence for sentence in sentences if sentence]


def _parts(text: str) -> Iterator[str]:
    """Non-blank lines; lines above ``MAX_LINE_CHARS`` are split, at a space if possible."""
    for line in text.split("\n"):
        start = 0
        while start < len(line):
            end = min(start + MAX_LINE_CHARS, len(line))
            if end < len(line):
                end = line.rfind(" ", start + 1, end) + 1 or end
            if (part := line[start:end]).strip():
                yield part
            start = end


def aligned_starts(text: str, sentences: Iterable[str]) -> list[int]:
    """Start positions of sentences in ``text``, found by their non-space characters.

    A sentence that is not found nearby is skipped, so its text joins the previous sentence.
    """
    offsets = [offset for offset, char in enumerate(text) if not char.isspace()]
    squeezed = "".join(text[offset] for offset in offsets)
    starts, done, missed = [], 0, 0
    for sentence in sentences:
        letters = WHITE.sub("", sentence)
        found = squeezed.find(letters, done, done + missed + len(letters) + KSS_DROPPED_CHARS)
        if letters and found >= 0:
            starts.append(offsets[found])
            done, missed = found + len(letters), 0
        else:
            missed = min(missed + len(letters), KSS_MISSED_CHARS)
    return starts
