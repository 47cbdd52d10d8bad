"""``malmoi benchmark check``: all checks of any benchmark, as one JSON value for the table and the page.

Nothing is written, and no figure depends on the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from finetune.annotation.check.cells import check_ids, check_texts
from finetune.annotation.check.copies import check_copies, check_sets, check_shared_texts
from finetune.annotation.check.files import read_datasets
from finetune.annotation.check.items import CHECKS, Dataset, File, Finding
from finetune.annotation.check.models import check_label_errors, check_one_side, score_baselines

FindLeaks = Callable[[Sequence[str]], Iterable[tuple[int, str, float]]]  # texts to number, document, share of the text
MAX_LABELS = 30  # of which counts are shown


def check(paths: Sequence[Path], find_leaks: FindLeaks | None = None) -> dict[str, Any]:
    """Check the benchmarks in files and folders.

    Args:
        find_leaks: finds texts in a corpus; None: leaks are not searched.

    Returns:
        ``benchmarks``, each with name, kind, ``splits``, ``counts`` of findings by check, ``facts``, ``baselines``,
        ``one_side`` and all ``findings``; ``skipped``: files of folders that could not be read, with the reason.

    Raises:
        BadInput: a named file cannot be read, or a folder has no file of a benchmark.
    """
    datasets, skipped = read_datasets(paths)
    return {"benchmarks": [_check_dataset(dataset, find_leaks) for dataset in datasets], "skipped": skipped}


def _check_dataset(dataset: Dataset, find_leaks: FindLeaks | None) -> dict[str, Any]:
    sets, larger = check_sets(dataset)
    figures, refused = score_baselines(dataset)
    one_side, leads = check_one_side(dataset)
    note, label_errors = check_label_errors(dataset)
    leaks = _check_leaks(dataset, find_leaks) if find_leaks else ()
    findings = [*check_items(dataset), *larger, *_compare_splits(dataset), *refused, *leads, *label_errors, *leaks]
    counts, items = Counter(f.check for f in findings), Counter(f.check for f in {f[:3]: f for f in findings}.values())
    authors = [(file.split, [item for item in file.items if item.author]) for file in dataset.files]
    same = [(split, sum(item.author == item.gold for item in items), len(items)) for split, items in authors if items]
    return {
        "name": dataset.name, "kind": dataset.kind,
        "splits": [_describe(file) for file in dataset.files],
        "counts": [
            {"check": name, "level": level, "findings": counts[name], "items": items[name], "what": what}
            for name, (level, what) in CHECKS.items() if counts[name]
        ],
        "facts": [*sets, *(f"{split}: the author's label in {n:,} of {total:,}" for split, n, total in same), note],
        "baselines": figures, "one_side": one_side,
        "findings": [{"level": CHECKS[name][0], **f._asdict()} for name in CHECKS for f in findings if f.check == name],
    }  # fmt: skip


def check_items(dataset: Dataset) -> Iterator[Finding]:
    """What is wrong with items, alone and compared with one another."""
    for file in dataset.files:
        yield from check_ids(file.items)
        yield from (Finding(name, item.split, item.guid, text) for item in file.items for name, text in item.problems)
        yield from check_texts(file.items)
    yield from check_copies(dataset)
    yield from check_shared_texts(dataset)


def _describe(file: File) -> dict[str, Any]:
    labels = Counter(item.gold for item in file.items if isinstance(item.gold, str))
    shown = dict(sorted(labels.items())) if len(labels) <= MAX_LABELS else {}
    labelled = sum(item.gold is not None for item in file.items)
    facts = {"split": file.split, "file": file.path.name, "items": len(file.items)}
    return {**facts, "labelled": labelled, "labels": shown}


def _compare_splits(dataset: Dataset) -> Iterator[Finding]:
    first = dataset.files[0]
    for file in dataset.files:
        labels = sorted({item.gold for item in file.items if isinstance(item.gold, str)})
        spellings = Counter(label.lower() for label in labels)
        if alike := [label for label in labels if spellings[label.lower()] > 1]:
            yield Finding("spelling", file.split, "", ", ".join(alike[:MAX_LABELS]))
        if first.fields and file.fields and first.fields != file.fields:
            sides = (first.split, first.fields - file.fields), (file.split, file.fields - first.fields)
            message = "; ".join(f"only {split} has {', '.join(sorted(names))}" for split, names in sides if names)
            yield Finding("fields", file.split, "", message)


def _check_leaks(dataset: Dataset, find_leaks: FindLeaks) -> Iterator[Finding]:
    texts = [(item, text) for file in dataset.files for item in file.items for text in item.texts.values()]
    found = dict[tuple[str, str], Finding]()
    for number, document, share in find_leaks([text for _, text in texts]):
        (item, text), name = texts[number], f"{100 * share:.0f} % of a sentence is in document {document}"
        found.setdefault((item.split, item.guid), Finding("leak", item.split, item.guid, f"{name}: {text[:120]}"))
    yield from found.values()
