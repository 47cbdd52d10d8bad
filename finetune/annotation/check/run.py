"""``malmoi benchmark check``: all checks of any benchmark, as one JSON value from which the table and the page are made.

Errors are wrong in an item; remarks are something to look at. Nothing is written, and no figure depends on the order of
files or the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from finetune.annotation.check.cells import check_ids, check_labels, check_texts
from finetune.annotation.check.copies import check_copies, check_sets, check_shared_texts
from finetune.annotation.check.files import read_datasets
from finetune.annotation.check.items import CHECKS, Dataset, File, Finding, Item, problems_of
from finetune.annotation.check.models import check_label_errors, check_one_side, score_baselines

Leak = tuple[int, str, float]  # number of the text, document of the corpus, share of the text that it has
FindLeaks = Callable[[Sequence[str]], Iterable[Leak]]
MAX_LABELS = 30  # of which counts are shown


def check(paths: Sequence[Path], find_leaks: FindLeaks | None = None) -> dict[str, Any]:
    """Check the benchmarks in files and folders.

    Args:
        find_leaks: finds texts in a corpus; None: leaks are not searched.

    Returns:
        ``benchmarks``, each with name, kind, ``splits``, ``counts`` of findings by check, ``facts``, ``baselines``,
        ``one_side``, ``notes`` and all ``findings``; ``skipped``: files of folders that could not be read.

    Raises:
        BadInput: a named file cannot be read, or a folder has no file of a benchmark.
    """
    datasets, skipped = read_datasets(paths)
    return {"benchmarks": [check_dataset(dataset, find_leaks) for dataset in datasets], "skipped": skipped}


def check_dataset(dataset: Dataset, find_leaks: FindLeaks | None = None) -> dict[str, Any]:
    """The checks of one benchmark."""
    sets, findings = check_sets(dataset)
    figures, refused = score_baselines(dataset)
    one_side, leads = check_one_side(dataset)
    note, label_errors = check_label_errors(dataset)
    findings = [*_check_items(dataset), *check_copies(dataset), *check_shared_texts(dataset), *findings,
                *_compare_fields(dataset), *refused, *leads, *label_errors]  # fmt: skip
    if find_leaks:
        findings += _check_leaks(dataset.items, find_leaks)
    findings = [finding for name in CHECKS for finding in findings if finding.check == name]
    return {
        "name": dataset.name, "kind": dataset.kind,
        "splits": [_describe(file) for file in dataset.files],
        "counts": _count(findings),
        "facts": _facts(dataset, sets),
        "baselines": figures, "one_side": one_side, "notes": [note],
        "findings": [{"level": finding.level, **finding._asdict()} for finding in findings],
    }  # fmt: skip


def _check_items(dataset: Dataset) -> Iterator[Finding]:
    for file in dataset.files:
        yield from check_ids(file.items)
        yield from problems_of(file.items)
        yield from check_texts(file.items)
        yield from check_labels(file.items)


def _describe(file: File) -> dict[str, Any]:
    labels = Counter(item.gold for item in file.items if isinstance(item.gold, str))
    shown = dict(sorted(labels.items())) if len(labels) <= MAX_LABELS else {}
    labelled = sum(item.gold is not None for item in file.items)
    return {"split": file.split, "file": file.path.name, "items": len(file.items), "labelled": labelled, "labels": shown}


def _count(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    counts, items = Counter(finding.check for finding in findings), dict[str, set[tuple[str, str]]]()
    for finding in findings:
        items.setdefault(finding.check, set()).add((finding.split, finding.guid))
    return [
        {"check": name, "level": level, "findings": counts[name], "items": len(items[name]), "what": what}
        for name, (level, what) in CHECKS.items()
        if counts[name]
    ]


def _facts(dataset: Dataset, sets: Mapping[str, Mapping[int, int]]) -> list[str]:
    """Properties of the splits that no item has alone."""
    facts = [
        f"{split}: {', '.join(f'{count:,} sets of {size}' for size, count in sizes.items())} with the same first text"
        for split, sizes in sets.items()
        if max(sizes) > 1
    ]
    for file in dataset.files:
        authored = [item for item in file.items if item.gold is not None and item.about.get("author")]
        if authored:
            same = sum(item.about["author"] == item.gold for item in authored)
            facts.append(f"{file.split}: the label is the author's in {same:,} of {len(authored):,}")
    return facts


def _compare_fields(dataset: Dataset) -> Iterator[Finding]:
    first = dataset.files[0]
    for file in dataset.files[1:]:
        if first.fields and file.fields and first.fields != file.fields:
            lists = [", ".join(sorted(a - b)) or "nothing" for a, b in ((first.fields, file.fields), (file.fields, first.fields))]
            yield Finding("fields", file.split, "", f"only {first.split} has {lists[0]}; only {file.split} has {lists[1]}")


def _check_leaks(items: Sequence[Item], find_leaks: FindLeaks) -> Iterator[Finding]:
    texts = [(item, text) for item in items for text in item.texts.values()]
    seen = set[tuple[str, str]]()
    for number, document, share in find_leaks([text for _, text in texts]):
        item, text = texts[number]
        if (item.split, item.guid) not in seen:
            seen.add((item.split, item.guid))
            message = f"{100 * share:.0f} % of a sentence in document {document}: {text[:120]}"
            yield Finding("leak", item.split, item.guid, message)
