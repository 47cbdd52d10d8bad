"""Copies inside and between splits: exact, nearly equal, with another label, and texts that splits share.

Nearly equal: every text has the same digits, and its other letters differ by at most a tenth (edit distance; at least
one letter). A pair within K edits shares all but 2K of its letter bigrams, so one of the 2K + 1 rarest bigrams of
either text is common to both: only texts that share a rare bigram are compared. Texts of more than ``LONGEST`` letters must be equal.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from unicodedata import normalize

from finetune.annotation.check.items import Dataset, Finding, Item

LETTERS = re.compile(r"[\W_]+")
DIGITS = re.compile(r"\d+")
SHARE, SHORTEST, LONGEST = 0.1, 8, 400  # edits per letter; letters of a text for which one edit is little
COMMON = 200  # a bigram in more items is too frequent to lead to a copy, unless the item has no rarer ones


class Key(NamedTuple):
    """An input without labels: exact texts and spans, and texts folded to letters and digits."""

    exact: tuple[Any, ...]
    folded: tuple[str, ...]


def key_of(item: Item, is_symmetric: bool) -> Key:
    """``is_symmetric``: the order of the texts does not matter (similarity)."""
    texts = [" ".join(normalize("NFC", text).split()) for text in item.texts.values()]
    folded = [LETTERS.sub("", normalize("NFKC", text)).lower() or text for text in texts]
    if is_symmetric:
        texts, folded = sorted(texts), sorted(folded)
    return Key((*texts, *item.exact), tuple(folded))


def check_copies(dataset: Dataset) -> Iterator[Finding]:
    """Duplicates, conflicts, overlaps and near duplicates; each names the first of the items that are alike."""
    items = [item for item in dataset.items if all(text.strip() for text in item.texts.values())]
    keys = [key_of(item, dataset.kind == "similarity") for item in items]
    firsts = dict[tuple[Any, ...], list[int]]()
    for number, key in enumerate(keys):
        firsts.setdefault(key.exact, []).append(number)
    for group in firsts.values():
        for place, number in enumerate(group[1:], 1):
            yield from _compare(items[number], [items[before] for before in group[:place]])
    singles = [group[0] for group in firsts.values()]
    for one, other in near_pairs([keys[number] for number in singles]):
        first, second = items[singles[one]], items[singles[other]]
        is_respaced = keys[singles[one]].folded == keys[singles[other]].folded
        if not _is_variant(first, second) and (is_respaced or not _is_contrast(first, second)):
            labels = f"; labels {first.gold}, {second.gold}" if _is_contrast(first, second) else ""
            message = f"{_shown(second)} ~ {_shown(first)}{labels}"
            yield Finding("near-duplicate", second.split, second.guid, message, _name(first))


def _compare(item: Item, before: Sequence[Item]) -> Iterator[Finding]:
    """An item and the earlier ones with the same input."""
    same = next((other for other in before if other.split == item.split), None)
    elsewhere = next((other for other in before if other.split != item.split), None)
    if other := next((other for other in before if _conflict(item, other)), None):
        labels = f"; labels {other.gold}, {item.gold}" if _is_contrast(item, other) else ""
        yield Finding("conflict", item.split, item.guid, _shown(item) + labels, _name(other))
    elif same:
        yield Finding("duplicate", item.split, item.guid, _shown(item), _name(same))
    if elsewhere:
        yield Finding("overlap", item.split, item.guid, _shown(item), _name(elsewhere))


def _conflict(item: Item, other: Item) -> bool:
    if item.gold is None or other.gold is None:
        return False
    if isinstance(item.gold, float) and isinstance(other.gold, float):
        return abs(item.gold - other.gold) > 0.5
    return bool(item.gold != other.gold)


def _is_variant(first: Item, second: Item) -> bool:
    """The same texts with other spans: another question about the same sentence."""
    return first.exact != second.exact and [*first.texts.values()] == [*second.texts.values()]


def _is_contrast(one: Item, other: Item) -> bool:
    """Different labels in few words; with other letters in the text, such a pair differs on purpose (있다, 없다)."""
    return isinstance(one.gold, str | float) and _conflict(one, other)


def _shown(item: Item) -> str:
    """The texts, the passage left out."""
    return " | ".join(text[:120] for text in item.texts.values() if len(text) <= LONGEST) or item.first_text[:120]


def _name(item: Item) -> str:
    return f"{item.split} {item.guid}"


def near_pairs(keys: Sequence[Key]) -> Iterator[tuple[int, int]]:
    """Numbers of inputs that are nearly equal, the earlier first; each input once, with the first that it resembles."""
    folded = [tuple(text if len(text) <= LONGEST else f"\0{text}" for text in key.folded) for key in keys]
    grams = [{(n, *pair) for n, text in enumerate(texts) for pair in _bigrams(text)} for texts in folded]
    counts = Counter(gram for of_item in grams for gram in of_item)
    numbers = [tuple(DIGITS.findall(text) for text in texts) for texts in folded]
    postings: dict[Any, list[int]] = defaultdict(list)
    for number, (texts, of_item) in enumerate(zip(folded, grams, strict=True)):
        rarest = sorted(of_item, key=lambda gram: (counts[gram], gram))[: 2 * sum(_edits(text) + 1 for text in texts) + 1]
        rare = [gram for gram in rarest if 1 < counts[gram] <= COMMON] or rarest[:1]
        for other in sorted({other for gram in rare for other in postings[gram]}):
            if numbers[other] == numbers[number] and _are_near(folded[other], texts):
                yield other, number
                break
        for gram in rare:
            postings[gram].append(number)


def _bigrams(text: str) -> Iterator[tuple[str, ...]]:
    if text.startswith("\0"):
        yield (text,)
    else:
        yield from pairwise(f" {text} ")


def _edits(text: str) -> int:
    return 0 if len(text) < SHORTEST or text.startswith("\0") else max(1, int(SHARE * len(text)))


def _are_near(texts: Sequence[str], others: Sequence[str]) -> bool:
    pairs = list(zip(texts, others, strict=True))
    return all(abs(len(a) - len(b)) <= _edits(max(a, b, key=len)) for a, b in pairs) and all(
        a == b or are_within(a, b, _edits(max(a, b, key=len))) for a, b in pairs
    )


def are_within(one: str, other: str, limit: int) -> bool:
    """Whether the edit distance (Levenshtein) of two texts is at most ``limit``; takes limit × length steps.

    >>> are_within("말모이 사전", "말모이의 사전", 1), are_within("말모이", "낱말", 2)
    (True, False)
    """
    if abs(len(one) - len(other)) > limit:
        return False
    costs: Mapping[int, int] = {column: column for column in range(min(limit, len(other)) + 1)}
    for row, letter in enumerate(one, 1):
        now = dict[int, int]()
        for column in range(max(0, row - limit), min(len(other), row + limit) + 1):
            best = min(costs.get(column, limit), now.get(column - 1, limit)) + 1
            if column:
                best = min(best, costs.get(column - 1, limit + 1) + (letter != other[column - 1]))
            now[column] = best
        if min(now.values()) > limit:
            return False
        costs = now
    return costs[len(other)] <= limit


def check_shared_texts(dataset: Dataset) -> Iterator[Finding]:
    """Texts of several fields, such as premises and passages, that also occur in an earlier split."""
    names = list(dataset.files[0].items[0].texts)
    if len(names) < 2 and dataset.kind != "relation":
        return
    seen: dict[tuple[str, str], Item] = {}
    for file in dataset.files:
        for item in file.items:
            for name, text in item.texts.items():
                other = seen.get((name, text))
                if other is not None and len(text) >= SHORTEST:
                    yield Finding("shared-text", item.split, item.guid, f"{name}: {text[:120]}", _name(other))
        for item in file.items:
            for name, text in item.texts.items():
                seen.setdefault((name, text), item)


def check_sets(dataset: Dataset) -> tuple[dict[str, dict[int, int]], list[Finding]]:
    """How many items share a first text, by split, and items of larger sets than the usual one."""
    sizes, findings = dict[str, dict[int, int]](), list[Finding]()
    for file in dataset.files if dataset.kind in ("pair", "choice", "span") else ():
        sets: dict[str, list[Item]] = defaultdict(list)
        for item in file.items:
            sets[item.first_text if dataset.kind != "span" else item.texts.get("context", "")].append(item)
        counts = Counter(map(len, sets.values()))
        sizes[file.split] = dict(sorted(counts.items()))
        usual, of_usual = counts.most_common(1)[0]
        if usual > 1 and 2 * of_usual > len(sets):
            for text, group in sets.items():
                if len(group) > usual:
                    message = f"{len(group)} items share it, {usual} are usual: {text[:80]}"
                    findings.append(Finding("set-size", file.split, group[0].guid, message))
    return sizes, findings
