"""The minimum length of a sentence: 200 characters in the crawled corpora (paper section 2.3), 1 everywhere else.

The paper drops shorter sentences of CC-100 and NEWSCRAWL, because short lines of crawled pages are mostly menus and
captions. Other sources have no minimum. The recipe setting is ``corpus.min_sentence_chars``.
"""

from __future__ import annotations

from collections.abc import Mapping


def min_sentence_chars(source: str, by_source: Mapping[str, int]) -> int:
    """The minimum number of characters for sentences of ``source``."""
    return by_source.get(source, 1)


def is_too_short(sentence: str, min_chars: int) -> bool:
    return len(sentence) < min_chars
