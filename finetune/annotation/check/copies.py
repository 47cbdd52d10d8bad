"""Copies inside and between splits: exact, nearly equal, with another label, and texts that splits share.

Nearly equal: every text has the same digits, and its other letters differ by at most a tenth (edit distance; at least
one letter). A pair within K edits shares all but 2K of its letter bigrams, so one of the 2K + 1 rarest bigrams of
either text is common to both: only texts that share a rare bigram are compared. Texts of more than ``LONGEST`` letters
must be equal. 28,000 pairs of KLUE-NLI take 8 CPU seconds.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any
from unicodedata import normalize

from rapidfuzz.distance import Levenshtein

from finetune.annotation.check.items import Dataset, Finding, Item

SIGNS, DIGITS = re.compile(r"[\W_]+"), re.compile(r"\d+")
SHARE, SHORTEST, LONGEST = 0.1, 8, 400  # edits per letter; letters of a text for which one edit is little
COMMON = 200  # a bigram in more items is too frequent to lead to a copy
FAR = 0.5  # scores that differ by more are in conflict

Folded = tuple[str, ...]  # the texts of an item without spaces and signs


def check_copies(dataset: Dataset) -> Iterator[Finding]:
    """Duplicates, conflicts, overlaps and near duplicates; each names an earlier item that is alike."""
    items = [item for file in dataset.files for item in file.items if all(text.strip() for text in item.texts.values())]
    by_input: dict[Any, list[Item]] = defaultdict(list)
    for item in items:
        texts = [normalize("NFC", text).strip() for text in item.texts.values()]
        by_input[(*(sorted(texts) if dataset.kind == "similarity" else texts), *item.exact)].append(item)
    for group in by_input.values():
        for place, item in enumerate(group[1:], 1):
            yield from _compare(item, group[:place])
    singles = [group[0] for group in by_input.values()]
    folded = [_fold(item, dataset.kind == "similarity") for item in singles]
    for one, other in near_pairs(folded):
        first, second = singles[one], singles[other]
        is_variant = first.exact != second.exact and first.texts == second.texts  # other spans of a sentence
        if not is_variant and (folded[one] == folded[other] or not _is_contrast(first, second)):
            message = f"{_shown(second)} ~ {_shown(first)}{_labels(first, second)}"
            yield Finding("near-duplicate", second.split, second.guid, message, _name(first))


def _fold(item: Item, is_symmetric: bool) -> Folded:
    folded = [SIGNS.sub("", normalize("NFKC", text)).lower() or text for text in item.texts.values()]
    marked = [text if len(text) <= LONGEST else f"\0{text}" for text in folded]
    return tuple(sorted(marked) if is_symmetric else marked)


def _compare(item: Item, before: Sequence[Item]) -> Iterator[Finding]:
    """An item and the earlier ones with the same input."""
    same = next((other for other in before if other.split == item.split), None)
    elsewhere = next((other for other in before if other.split != item.split), None)
    if other := next((other for other in before if _conflict(item, other)), None):
        yield Finding("conflict", item.split, item.guid, _shown(item) + _labels(other, item), _name(other))
    elif same:
        yield Finding("duplicate", item.split, item.guid, _shown(item), _name(same))
    if elsewhere:
        yield Finding("overlap", item.split, item.guid, _shown(item), _name(elsewhere))


def _conflict(one: Item, other: Item) -> bool:
    if isinstance(one.gold, float) and isinstance(other.gold, float):
        return abs(one.gold - other.gold) > FAR
    return one.gold != other.gold and None not in (one.gold, other.gold)


def _is_contrast(one: Item, other: Item) -> bool:
    """Different classes or scores; with other letters in the text, such a pair differs on purpose (있다, 없다)."""
    return isinstance(one.gold, str | float) and _conflict(one, other)


def _labels(one: Item, other: Item) -> str:
    return f"; labels {one.gold}, {other.gold}" if _is_contrast(one, other) else ""


def _shown(item: Item) -> str:
    """The texts without the passage."""
    texts = [*item.texts.values()]
    return " | ".join(text[:120] for text in texts if len(text) <= LONGEST) or texts[0][:120]


def _name(item: Item) -> str:
    return f"{item.split} {item.guid}"


def near_pairs(folded: Sequence[Folded]) -> Iterator[tuple[int, int]]:
    """Numbers of inputs that are nearly equal, the earlier first; each input once, with the first that it resembles."""
    pairs = ([[(t,)] if t.startswith("\0") else pairwise(f" {t} ") for t in texts] for texts in folded)
    grams = [{(n, *pair) for n, of_text in enumerate(of_texts) for pair in of_text} for of_texts in pairs]
    counts = Counter(gram for of_item in grams for gram in of_item)
    numbers = [[DIGITS.findall(text) for text in texts] for texts in folded]
    postings: dict[Any, list[int]] = defaultdict(list)
    for number, (texts, of_item) in enumerate(zip(folded, grams, strict=True)):
        ordered = sorted(of_item, key=lambda gram: (counts[gram], gram))
        rarest = ordered[: 2 * sum(_edits(text) + 1 for text in texts) + 1]
        rare = [gram for gram in rarest if 1 < counts[gram] <= COMMON] or rarest[:1]
        for other in sorted({other for gram in rare for other in postings[gram]}):
            if numbers[other] == numbers[number] and all(map(_are_near, folded[other], texts)):
                yield other, number
                break
        for gram in rare:
            postings[gram].append(number)


def _edits(text: str) -> int:
    return 0 if len(text) < SHORTEST or text.startswith("\0") else max(1, int(SHARE * len(text)))


def _are_near(one: str, other: str) -> bool:
    limit = _edits(max(one, other, key=len))
    return Levenshtein.distance(one, other, score_cutoff=limit) <= limit


def check_shared_texts(dataset: Dataset) -> Iterator[Finding]:
    """Texts of several fields, such as premises and passages, that also occur in an earlier split."""
    choices = (dataset.files[0].columns and dataset.files[0].columns.choices) or ()
    names = [name for name in dataset.files[0].items[0].texts if name not in choices]
    seen = dict[tuple[str, str], Item]()
    for file in dataset.files if len(names) > 1 or dataset.kind in ("relation", "choice") else ():
        texts = [(n, text, item) for item in file.items for n, text in item.texts.items() if n in names]
        for name, text, item in texts:
            if (other := seen.get((name, text))) and len(text) >= SHORTEST:
                yield Finding("shared-text", item.split, item.guid, f"{name}: {text[:120]}", _name(other))
        for name, text, item in texts:
            seen.setdefault((name, text), item)


def check_sets(dataset: Dataset) -> tuple[list[str], list[Finding]]:
    """How many items share a first text in each split, and the items of sets that are larger than the usual one.

    The facts begin with the number of items in which near duplicates are not searched.
    """
    long = sum(any(text.startswith("\0") for text in _fold(i, False)) for file in dataset.files for i in file.items)
    facts = [f"Near duplicates: {long:,} items have a text over {LONGEST} letters, which must be equal."] * (long > 0)
    findings = list[Finding]()
    for file in dataset.files if dataset.kind in ("pair", "choice", "span") else ():
        sets: dict[str, list[Item]] = defaultdict(list)
        for item in file.items:
            sets[dataset.group_of(item)].append(item)
        counts = Counter(map(len, sets.values()))
        usual, of_usual = counts.most_common(1)[0]
        if max(counts) > 1:
            sizes = ", ".join(f"{counts[size]:,} of {size}" for size in sorted(counts))
            facts.append(f"{file.split}: {len(sets):,} sets of items with the same first text: {sizes}")
        for text, group in sets.items() if usual > 1 and 2 * of_usual > len(sets) else ():
            if len(group) > usual:
                message = f"{len(group)} items share it, {usual} are usual: {text[:80]}"
                findings.append(Finding("set-size", file.split, group[0].guid, message))
    return facts, findings
