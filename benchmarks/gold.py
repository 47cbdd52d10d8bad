"""Gold sentences and labelled personal data, and scores of a tool against them."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.baselines import Detect, Span, Split
from corpus.documents.errors import BadInput
from launch.sample.unpack import SOURCES, read_archive, read_rows

MIN_OVERLAP = 0.5

Labelled = list[tuple[str, list[Span]]]  # texts with their true spans of personal data: start, end, type


def labelled_documents() -> Labelled:
    """The text of every document of the sample with the spans of personal data in it."""
    packed = read_archive("documents.tar.zst")
    spans = {row["id"]: [tuple(span) for span in row["spans"]] for row in read_rows(packed["pii_truth.jsonl"])}
    rows = (row for name in SOURCES for row in read_rows(packed[f"{name}.jsonl"]))
    return [(row["text"], spans.get(row["id"], [])) for row in rows if not row["id"].endswith("-copy")]


def gold_sentences() -> list[list[str]]:
    """Documents of the sample as lists of sentences, a blank kept after each; joined, they are running text."""
    documents = read_archive("documents.tar.zst")["sentences.txt"].decode().split("\n\n")
    return [document.split("\n") for document in documents]


def read_gold(folder: Path) -> list[list[str]]:
    """Documents of all ``*.txt`` files: one gold sentence per line, a blank line after a document."""
    blocks = (block for path in sorted(folder.glob("*.txt")) for block in path.read_text("utf-8").split("\n\n"))
    gold = [lines for block in blocks if (lines := [line for line in block.split("\n") if line.strip()])]
    if not gold:
        raise BadInput(
            f"{folder}: no gold sentences; expected .txt files, one sentence per line, a blank line after a document"
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
    """Means over the gold sentences, 0..1; white space is ignored."""

    em: float  # exact matches
    f1: float  # best overlap F1 in characters with a predicted sentence that overlaps no other gold sentence better
    nf1: float  # f1 times gold / predicted sentences of the document if there are more predicted ones
    gold: int  # sentences


def score_splits(gold: Iterable[list[str]], split: Split) -> Scores:
    """Compare with gold documents; the input of ``split`` is the joined sentences of a document."""
    exact = total = 0
    f1 = nf1 = 0.0
    for sentences in gold:
        true, predicted = _spans(sentences), _spans(split("".join(sentences)))
        best = sum(_best_overlaps(true, predicted))
        total += len(true)
        exact += len(set(true) & set(predicted))
        f1 += best
        nf1 += best * min(1.0, len(true) / len(predicted))
    return Scores(exact / total, f1 / total, nf1 / total, total)


def _best_overlaps(true: list[tuple[int, int]], predicted: list[tuple[int, int]]) -> list[float]:
    """A predicted sentence counts only for the gold sentence that it overlaps best."""
    best = [0.0] * len(true)
    starts = [start for start, _ in true]
    for start, end in predicted:
        scores = [(0.0, 0)]
        for number in range(bisect_right(starts, start) - 1, bisect_left(starts, end)):
            first, last = true[number]
            scores.append((2 * (min(last, end) - max(first, start)) / (last - first + end - start), number))
        score, number = max(scores)
        best[number] = max(best[number], score)
    return best


def _spans(sentences: list[str]) -> list[tuple[int, int]]:
    """Starts and ends of sentences in the text without white space."""
    ends = [0]
    for sentence in sentences:
        ends.append(ends[-1] + len("".join(sentence.split())))
    return list(pairwise(ends))


def score_spans(labelled: Labelled, detect: Detect) -> dict[str, Any]:
    """Precision, recall and F1 (0..1) over all values, recall by type, and the number of flagged texts without values.

    A predicted span is correct if a true span of the same type overlaps it by half of their union. A value is covered
    if predictions of any type cover half of it.
    """
    right = exact = predicted = true = covered = flagged = 0
    by_type: dict[str, Counter[str]] = {"true": Counter(), "right": Counter()}
    for text, spans in labelled:
        predictions = detect(text)
        matched = match_spans(predictions, spans)
        right += len(matched)
        exact += sum(span in predictions for span in spans)
        predicted, true = predicted + len(predictions), true + len(spans)
        covered += sum(_is_covered(span, predictions) for span in spans)
        flagged += bool(predictions and not spans)
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


def match_spans(predictions: list[Span], true: list[Span]) -> list[Span]:
    """The true spans that predictions match; each prediction takes the first free one."""
    free, matched = list(true), []
    for start, end, kind in predictions:
        for span in free:
            overlap = min(end, span[1]) - max(start, span[0])
            union = max(end, span[1]) - min(start, span[0])
            if span[2] == kind and overlap >= MIN_OVERLAP * union:
                matched.append(span)
                free.remove(span)
                break
    return matched


def _is_covered(span: Span, predictions: list[Span]) -> bool:
    inside = {at for start, end, _ in predictions for at in range(max(start, span[0]), min(end, span[1]))}
    return 2 * len(inside) >= span[1] - span[0]
