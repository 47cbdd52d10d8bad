"""Detectors of personal data side by side on labelled text, and ours against sixteen plain passes of ``re``.

A predicted span is right when a true span of the same type overlaps it by half of their union; a leak is a true value
less than half covered by any prediction, regardless of its type.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from launch.bench.material import Labelled, byte_count, spread
from launch.bench.rivals import DETECTORS, Detect, load_detectors
from launch.bench.timing import time_in_turns, versions_of
from launch.console import Table, figures
from launch.sample.unpack import Span

SPEED_MEGABYTES = 3.0
MIN_OVERLAP = 0.5


def bench_pii(documents: list[str], labelled: Labelled) -> dict[str, Any]:
    """Scores on ``labelled`` of ours, ko-pii and Presidio where installed; speeds on ``documents``."""
    from corpus.pii.detect import find_pii

    detectors: dict[str, Detect] = {"ours": lambda text: [(span.start, span.end, span.type) for span in find_pii(text)]}
    detectors |= load_detectors()
    return {
        "rows": {name: score_spans(labelled, detect) for name, detect in detectors.items()},
        "texts": len(labelled),
        "values": sum(len(spans) for _, spans in labelled),
        "without": sum(not spans for _, spans in labelled),
        "speed": _speed(documents),
        "versions": versions_of(package.replace("_", "-") for package in DETECTORS.values()),
    }


def score_spans(labelled: Labelled, detect: Detect) -> dict[str, Any]:
    """Shares in 0..1 over all values, recall by type, and how many texts without values are flagged."""
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
    precision, recall = right / max(1, predicted), right / max(1, true)
    return {
        "precision": precision,
        "recall": recall,
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


def _speed(documents: list[str]) -> dict[str, Any]:
    """MB/s a sentence at a time, and whether the spans of both ways are equal on every sentence."""
    from corpus.pii.detect import find_pii
    from corpus.pii.passes import find_by_sixteen_passes
    from corpus.sentences.split import split_sentences

    sentences = [sentence for text in spread(documents, SPEED_MEGABYTES) for sentence in split_sentences(text)]
    works = {
        "ours": lambda: [find_pii(sentence) for sentence in sentences],
        "sixteen": lambda: [find_by_sixteen_passes(sentence) for sentence in sentences],
    }
    seconds = time_in_turns(works)
    megabytes = byte_count(sentences) / 1e6
    ours = works["ours"]()
    return {
        "megabytes": megabytes,
        "sentences": len(sentences),
        "ours_mb_per_s": megabytes / seconds["ours"],
        "sixteen_passes_mb_per_s": megabytes / seconds["sixteen"],
        "times_faster": seconds["sixteen"] / seconds["ours"],
        "values": sum(map(len, ours)),
        "sentences_that_differ": sum(a != b for a, b in zip(ours, works["sixteen"](), strict=True)),
    }


def pii_table(found: dict[str, Any], labelled: str, texts: str) -> Table:
    """Scores of each detector; speeds below."""
    rows = []
    for name, row in found["rows"].items():
        lowest = min(row["recall_by_type"].items(), key=lambda item: (item[1], item[0]), default=("–", 0.0))
        scores = [f"{row[score]:.3f}" for score in ("precision", "recall", "f1", "exact_recall", "covered_recall")]
        rows.append([name, *scores, f"{lowest[0]} {lowest[1]:.2f}", f"{row['flagged']}/{found['without']}"])
    rows += [[name, "not installed", *[""] * 6] for name in DETECTORS if name not in found["rows"]]
    speed = found["speed"]
    note = (
        f"{found['values']} values in {found['texts']:,} texts ({found['without']:,} without any) of {labelled}. "
        f"Speed on {speed['megabytes']:.1f} MB of {texts}: {speed['ours_mb_per_s']:.3g} MB/s, "
        f"{speed['times_faster']:.1f} times that of sixteen passes of re; {speed['values']:,} values, "
        f"{speed['sentences_that_differ']} of {speed['sentences']:,} sentences differ."
    )
    heads = ("detector", "precision", "recall", "F1", "exact", "covered", "lowest type", "false alarms")
    return figures("Personal data", heads, rows, note)
