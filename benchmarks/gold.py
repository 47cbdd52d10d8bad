"""What people marked, and how well a tool agrees with it: sentences, and spans of personal data."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rivals import Detect, Split
from corpus.documents.errors import BadInput
from launch.sample.unpack import Span

MIN_OVERLAP = 0.5

Labelled = list[tuple[str, list[Span]]]  # texts with their true spans of personal data: start, end, type


def read_gold(folder: Path) -> list[list[str]]:
    """Documents of all ``*.txt`` files: a gold sentence a line, a blank line ends a document."""
    blocks = (block for path in sorted(folder.glob("*.txt")) for block in path.read_text("utf-8").split("\n\n"))
    gold = [lines for block in blocks if (lines := [line for line in block.split("\n") if line.strip()])]
    if not gold:
        raise BadInput(
            f"{folder}: no gold sentences; expected .txt files, a sentence a line, a blank line after a document"
        )
    return gold


def read_labelled(path: Path) -> Labelled:
    """Lines ``{"text": …, "spans": [[start, end, TYPE], …]}``."""
    rows: Labelled = []
    try:
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            rows.append((row["text"], [(int(start), int(end), str(kind)) for start, end, kind in row["spans"]]))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; expected labelled text as JSON lines") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: line {len(rows) + 1} is not an object with text and spans ({error!r})") from None
    if not rows:
        raise BadInput(f"{path}: no labelled text in this file")
    return rows


class Scores(NamedTuple):
    """Means over the gold sentences, 0..1; white space is left out of all comparisons."""

    em: float  # found exactly
    f1: float  # best overlap F1, in characters, with a predicted sentence that overlaps no other one better
    nf1: float  # the same, times gold over predicted sentences of the document where it was cut into more
    gold: int  # sentences


def score_splits(gold: Iterable[list[str]], split: Split) -> Scores:
    """Compare with gold documents; the input of ``split`` is the sentences of a document joined as they are."""
    exact = total = 0
    f1 = nf1 = 0.0
    for sentences in gold:
        wanted, found = _spans(sentences), _spans(split("".join(sentences)))
        best = sum(_best_overlaps(wanted, found))
        total += len(wanted)
        exact += len(set(wanted) & set(found))
        f1 += best
        nf1 += best * min(1.0, len(wanted) / len(found))
    return Scores(exact / total, f1 / total, nf1 / total, total)


def _best_overlaps(wanted: list[tuple[int, int]], found: list[tuple[int, int]]) -> list[float]:
    """A predicted sentence counts for the gold one it overlaps best: swallowing several finds one of them."""
    best = [0.0] * len(wanted)
    starts = [start for start, _ in wanted]
    for start, end in found:
        scores = [(0.0, 0)]
        for number in range(bisect_right(starts, start) - 1, bisect_left(starts, end)):
            first, last = wanted[number]
            scores.append((2 * (min(last, end) - max(first, start)) / (last - first + end - start), number))
        score, number = max(scores)
        best[number] = max(best[number], score)
    return best


def _spans(sentences: list[str]) -> list[tuple[int, int]]:
    """Where sentences begin and end in the text without white space."""
    ends = [0]
    for sentence in sentences:
        ends.append(ends[-1] + len("".join(sentence.split())))
    return list(pairwise(ends))


def score_spans(labelled: Labelled, detect: Detect) -> dict[str, Any]:
    """Shares in 0..1 over all values, recall by type, and how many texts without values are flagged.

    A predicted span is right when a true span of the same type overlaps it by half of their union; a value is covered
    when predictions of any types take half of it.
    """
    right = exact = predicted = true = covered = flagged = 0
    by_type: dict[str, Counter[str]] = {"true": Counter(), "right": Counter()}
    for text, spans in labelled:
        found = detect(text)
        matched = match_spans(found, spans)
        right += len(matched)
        exact += sum(span in found for span in spans)
        predicted, true = predicted + len(found), true + len(spans)
        covered += sum(_is_covered(span, found) for span in spans)
        flagged += bool(found and not spans)
        by_type["true"].update(kind for _, _, kind in spans)
        by_type["right"].update(kind for _, _, kind in matched)
    return {
        "precision": right / max(1, predicted),
        "recall": right / max(1, true),
        "f1": 2 * right / max(1, predicted + true),
        "exact_recall": exact / max(1, true),
        "covered_recall": covered / max(1, true),
        "flagged": flagged,
        "recall_by_type": {kind: by_type["right"][kind] / n for kind, n in sorted(by_type["true"].items())},
    }


def match_spans(found: list[Span], true: list[Span]) -> list[Span]:
    """The true spans that predictions hit, each prediction taking the first that is still free."""
    free, matched = list(true), []
    for start, end, kind in found:
        for span in free:
            overlap = min(end, span[1]) - max(start, span[0])
            union = max(end, span[1]) - min(start, span[0])
            if span[2] == kind and overlap >= MIN_OVERLAP * union:
                matched.append(span)
                free.remove(span)
                break
    return matched


def _is_covered(span: Span, found: list[Span]) -> bool:
    inside = {at for start, end, _ in found for at in range(max(start, span[0]), min(end, span[1]))}
    return 2 * len(inside) >= span[1] - span[0]
