"""Planted damage is found, and clean items are not called wrong: all kinds in five tasks."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from finetune.annotation.check.items import CHECKS
from finetune.annotation.check.run import check_items, read_datasets
from launch.sample.unpack import read_archive
from tests.finetune.annotation.check.planted import DAMAGE, NAMES, Splits, plant_all, read_copy, write_copy

OFFICIAL = {
    "nli": "klue-nli-v1.1",
    "ner": "klue-ner-v1.1",
    "mrc": "klue-mrc-v1.1",
    "dp": "klue-dp-v1.1",
    "ynat": "ynat-v1.1",
}


def numbered(splits: Splits) -> Splits:
    """Topics with zero-padded numbers as ids."""
    start = 0
    for records in splits.values():
        for number, record in enumerate(records, start):
            record["guid"] = f"{number:05}"
        start += len(records)
    return splits


def read_splits(task: str, train: Path | None, dev: Path) -> Splits:
    """The two splits; without a train file, the first 60 % of dev is train."""
    records = read_copy(dev, task)
    cut = 0 if train else 6 * len(records) // 10
    splits = {"train": read_copy(train, task) if train else records[:cut], "dev": records[cut:]}
    return numbered(splits) if task == "ynat" else splits


def measure(
    copies: dict[str, Splits], folder: Path, count: int, seed: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Share of planted damage that is found, by kind; share of clean items that are called wrong, by task, 0..100.

    Errors of the untouched copies are subtracted nowhere: they count as false, although some are real.
    """
    copies = deepcopy(copies)
    planted = plant_all(copies, count, seed)
    found: dict[str, dict[str, set[str]]] = {}
    clean: dict[str, float] = {}
    for task, splits in copies.items():
        write_copy(folder, task, splits)
        (dataset,), _ = read_datasets([folder / NAMES[task]])
        touched = {guid for own, _, guid in planted if own == task}
        wrong = set[str]()
        checks: dict[str, set[str]] = {}
        for finding in check_items(dataset):
            copy_of = finding.other.split(" ")[-1]
            for guid in (finding.guid, copy_of):
                checks.setdefault(guid, set()).add(finding.check)
            if CHECKS[finding.check][0] == "error" and not touched & {finding.guid, copy_of}:
                wrong.add(f"{finding.split} {finding.guid}")
        found[task] = checks
        clean[task] = 100 * len(wrong) / (sum(len(file.items) for file in dataset.files) - len(touched))
    shares = {}
    for damage in DAMAGE:
        own = [(task, guid) for task, kind, guid in planted if kind.kind == damage.kind]
        shares[damage.kind] = (
            100 * sum(bool(damage.checks & found[task].get(guid, set())) for task, guid in own) / len(own)
        )
    return shares, clean


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Splits]:
    """The invented files of the embedded sample."""
    home = tmp_path_factory.mktemp("klue")
    for name, content in read_archive("klue.tar.zst").items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(content)
    files = {task: {s: next(home.rglob(f"{name}_{s}.*")) for s in ("train", "dev")} for task, name in OFFICIAL.items()}
    return {task: read_splits(task, of["train"], of["dev"]) for task, of in files.items()}


def test_planted_damage_is_found(sample: dict[str, Splits], tmp_path: Path) -> None:
    shares, _ = measure(sample, tmp_path, 5, seed=1)
    assert min(shares.values()) >= 80 and sum(shares.values()) >= 95 * len(shares), shares


@pytest.mark.slow
def test_nearly_all_damage_in_real_files_is_found(shared: Callable[[str], Path], tmp_path: Path) -> None:
    topics = "data/klue/derived/ynat-v1.1/ynat-v1.1"
    places: dict[str, tuple[Any, str]] = {
        "ynat": (f"{topics}_train.json.zst", f"{topics}_dev.json.zst"),
        "nli": (None, "data/klue/official/klue-nli-v1.1/klue-nli-v1.1_dev.json.zst"),
        "ner": (None, "data/klue/official/klue-ner-v1.1/klue-ner-v1.1_dev.tsv.zst"),
        "mrc": (None, "data/klue/derived/klue-mrc-v1.1/klue-mrc-v1.1_dev.json.zst"),
        "dp": (None, "data/klue/official/klue-dp-v1.1/klue-dp-v1.1_dev.tsv.zst"),
    }  # fmt: skip
    copies = {task: read_splits(task, train and shared(train), shared(dev)) for task, (train, dev) in places.items()}
    shares, clean = measure(copies, tmp_path, 50, seed=1)
    assert min(shares.values()) >= 95, shares
    assert max(clean.values()) <= 1, clean
