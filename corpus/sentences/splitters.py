"""Sentence splitters by name: our rules, or Kiwi or KSS where they are installed.

All three keep one contract: sentences in order, stripped, none empty, and joined they are the text but for white
space; every line end is a boundary. A backend therefore only proposes boundaries, and the sentences are slices of the
text: KSS drops characters such as U+FEFF, and what follows U+0000, which its own strings would lose. The price of a
backend is time, 40 to 500 times the rules.
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
# Kiwi counts the characters of a token with 16 bits and KSS takes minutes for a megabyte: longer lines go in parts
MAX_LINE_CHARS = 20_000
KSS_DROPPED_CHARS = 200  # how many characters that KSS dropped a search passes over
KSS_MISSED_CHARS = 2_000  # and how many of sentences that were not found


@cache
def load_splitter(name: str) -> Splitter:
    """The splitter called "rules", "kiwi" or "kss"; backends take seconds to load, so a process loads one once."""
    if name not in SPLITTERS:
        raise BadInput(f"no sentence splitter is called {name!r}; choose one of {', '.join(SPLITTERS)}")
    try:
        return SPLITTERS[name]()
    except ImportError as error:
        raise BadInput(
            f"sentence splitter {name!r} cannot be imported ({error}); install it with: pip install 'malmoi[{name}]'"
        ) from error


def _load_kiwi() -> Splitter:
    from kiwipiepy import Kiwi

    split = partial(Kiwi(num_workers=1).split_into_sents, return_sub_sents=False)
    # ends are left alone: a sentence reaches to the start of the next one
    return partial(_slices, starts=lambda line: [sentence.start for sentence in split(line)])


def _load_kss() -> Splitter:
    from kss import split_sentences as kss_split

    split: Any = partial(kss_split, backend="mecab", num_workers=1, strip=True)
    return partial(_slices, starts=lambda line: aligned_starts(line, split(line)))


SPLITTERS: dict[str, Callable[[], Splitter]] = {"rules": lambda: split_sentences, "kiwi": _load_kiwi, "kss": _load_kss}


def _slices(text: str, starts: Callable[[str], Iterable[int]]) -> list[str]:
    """The text cut at line ends and where ``starts`` sees sentences begin; the first one begins with its line."""
    sentences = []
    for part in _parts(text):
        last = 0
        for start in (*list(starts(part))[1:], len(part)):
            if last < start <= len(part):
                sentences.append(part[last:start].strip())
                last = start
    return [sentence for sentence in sentences if sentence]


def _parts(text: str) -> Iterator[str]:
    """Lines without the blank ones; one above ``MAX_LINE_CHARS`` in parts that end at a blank where there is one."""
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
    """Where in ``text`` the sentences begin, found by their characters that are not white space.

    A sentence that is not found within a short way is passed over, so that its text joins the sentence before it.
    """
    offsets = [offset for offset, char in enumerate(text) if not char.isspace()]
    squeezed = "".join(text[offset] for offset in offsets)
    starts, done, missed = [], 0, 0
    for sentence in sentences:
        wanted = WHITE.sub("", sentence)
        found = squeezed.find(wanted, done, done + missed + len(wanted) + KSS_DROPPED_CHARS)
        if wanted and found >= 0:
            starts.append(offsets[found])
            done, missed = found + len(wanted), 0
        else:
            missed = min(missed + len(wanted), KSS_MISSED_CHARS)
    return starts
