"""Splits: whole groups, dates, even bins of scores, unseen entities, sources in proportion, the one-side filter."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from finetune.annotation.folder import GOLD, Gold, Item
from finetune.annotation.split import distances_from_uniform, level_caps, overlap, split
from finetune.annotation.take_in import READERS, take_in
from finetune.data.files import write_json_lines
from tests.finetune.annotation.folders import make_folder

NAMES = ("train", "dev", "test")


def split_items(
    folder: Path, items: list[Item], values: list[Any], **settings: Any
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    benchmark = make_folder(folder, items, **settings)
    write_json_lines(folder / GOLD, [Gold(item.id, value, 3) for item, value in zip(items, values, strict=True)])
    counts = split(benchmark, folder)
    paths = {name: folder / "data" / f"{name}.jsonl" for name in NAMES}
    return counts, {n: [json.loads(line) for line in p.read_text("utf-8").splitlines()] for n, p in paths.items()}


def test_groups_stay_together_and_sources_keep_their_share(tmp_path: Path) -> None:
    items = [
        Item(
            f"i{n}",
            "long" if n < 600 else "short",
            {"premise": f"p{n // 3}", "hypothesis": f"h{n}"},
            (),
            {"group": f"p{n // 3}"},
        )
        for n in range(900)
    ]
    values = [("entailment", "contradiction", "neutral")[n % 3] for n in range(900)]
    counts, rows = split_items(tmp_path, items, values, task="nli", split={"method": "random"})
    premises = [{row["premise"] for row in rows[name]} for name in NAMES]
    assert not premises[0] & premises[1] and not premises[0] & premises[2] and not premises[1] & premises[2]
    assert counts["items"] == {"train": 720, "dev": 90, "test": 90}
    assert counts["sources"]["dev"] == {"long": 60, "short": 30}
    assert set(counts["labels"]["dev"].values()) == {30}
    before = {name: (tmp_path / "data" / f"{name}.jsonl").read_bytes() for name in NAMES}
    split_items(tmp_path, items[::-1], values[::-1], task="nli", split={"method": "random"})
    for name in NAMES:  # the order of the file changes the order of rows only
        assert sorted((tmp_path / "data" / f"{name}.jsonl").read_bytes().split(b"\n")) == sorted(
            before[name].split(b"\n")
        )


def test_late_titles_and_titles_with_new_words_are_scored(tmp_path: Path) -> None:
    items = [
        Item(
            f"i{n}",
            "",
            {"text": f"제목 {'새말' + str(n) if n % 10 == 0 else '흔한'}"},
            (),
            {"date": f"20{19 + (n >= 90)}-05-01"},
        )
        for n in range(100)
    ]
    settings: dict[str, Any] = {
        "task": "tc",
        "labels": ["a"],
        "split": {"after": "2020-01-01", "dev": 0.08, "test": 0.08},
    }
    counts, rows = split_items(tmp_path, items, ["a"] * 100, **settings)
    assert counts["items"] == {"train": 84, "dev": 8, "test": 8}
    scored = [row for name in ("dev", "test") for row in rows[name]]
    assert sum(row["about"]["date"] >= "2020" for row in scored) == 10
    assert all(row["about"]["date"] >= "2020" or "새말" in row["text"] for row in scored)


def test_score_bins_are_even_and_similar_pairs_share_few_morphemes(tmp_path: Path) -> None:
    rng = Random(0)
    words = ["집", "산", "강", "물", "불", "밥", "책", "길"]
    items = [
        Item(
            f"i{n}",
            "ab"[n % 2],
            {"sentence1": " ".join(rng.choices(words, k=5)), "sentence2": " ".join(rng.choices(words, k=5))},
        )
        for n in range(2000)
    ]
    values = [min(5, rng.choice([rng.randrange(51), rng.randrange(10)]) / 10) for _ in items]
    _, rows = split_items(tmp_path, items, values, task="sts")
    scored = Counter(row["label"] for name in ("dev", "test") for row in rows[name])
    assert len(scored) == 51
    assert max(scored.values()) - min(scored.values()) <= 4
    assert abs(len(rows["dev"]) - len(rows["test"])) <= 51
    known = {item.id: overlap(item) for item in items}
    mean = {
        (name, is_similar): fmean(known[row["guid"]] for row in rows[name] if (row["label"] >= 3) == is_similar)
        for name in NAMES
        for is_similar in (True, False)
    }
    assert mean["dev", True] < mean["train", True] and mean["dev", False] > mean["train", False]
    assert 0.4 < Counter(row["source"] for row in rows["dev"])["a"] / len(rows["dev"]) < 0.6


def test_caps_add_up_to_the_total() -> None:
    assert level_caps({0: 1, 1: 100}, 20) == {0: 1, 1: 19}
    assert level_caps({0: 3}, 50) == {0: 3}


def test_some_entities_are_only_in_the_scored_parts(tmp_path: Path) -> None:
    rng = Random(1)
    names = [f"이름{n}" for n in range(300)]
    texts = [rng.choice(names) for _ in range(600)]
    items = [Item(f"i{n}", "", {"text": f"{name} 씨"}) for n, name in enumerate(texts)]
    values = [[[0, len(name), "PS"]] for name in texts]
    counts, rows = split_items(tmp_path, items, values, task="ner", labels=["PS"])
    surfaces = {name: {row["text"][: row["spans"][0][1]] for row in rows[name]} for name in NAMES}
    assert not surfaces["train"] & surfaces["test"] and not surfaces["train"] & surfaces["dev"]
    assert counts["items with unseen entities, %"] == {"dev": 100, "test": 100}


def test_an_empty_part_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no items for dev"):
        split_items(tmp_path, [Item("a", "", {"text": "글"})], ["a"], task="tc", labels=["a"])


def planted(count: int) -> tuple[list[Item], list[str]]:
    """Sets of three in half of which the hypotheses reveal their labels by a word."""
    rng, cue = Random(2), {"entailment": "정말", "contradiction": "절대", "neutral": "아마"}
    items, values = [], []
    for n in range(count):
        label, reveals = (*cue,)[n % 3], n // 3 % 2
        words = rng.choices(["밥", "집", "물", "산", "강", "눈"], k=4)
        text = " ".join([*words, cue[label]] if reveals else words)
        items.append(
            Item(
                f"i{n}", "s", {"premise": f"p{n // 3}", "hypothesis": text}, (), {"group": f"g{n // 3}", "cue": reveals}
            )
        )
        values.append(label)
    return items, values


def lowered(counts: dict[str, Any]) -> float:
    """Points by which naive Bayes on the hypothesis is worse on dev and test than on train."""
    train, dev, test = (counts["accuracy of one text alone, %"][f"hypothesis, {name}"] for name in NAMES)
    return train - (dev + test) / 2


def test_sets_without_cues_are_scored(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    items, values = planted(1800)
    counts, rows = split_items(tmp_path, items, values, task="nli")
    assert {row["about"]["cue"] for name in ("dev", "test") for row in rows[name]} == {0}
    assert lowered(counts) >= 8
    sizes = defaultdict[str, set[str]](set)
    for name in NAMES:
        for row in rows[name]:
            sizes[row["about"]["group"]].add(name)
    assert all(len(parts) == 1 for parts in sizes.values())


@pytest.mark.slow
def test_the_filter_lowers_another_one_side_model_on_klue_nli(shared: Callable[[str], Path], tmp_path: Path) -> None:
    file = shared("data/klue/official/klue-nli-v1.1/klue-nli-v1.1_train.json.zst")
    benchmark = make_folder(tmp_path, task="nli")
    take_in(benchmark, tmp_path, [file], READERS["klue"])
    assert lowered(split(benchmark, tmp_path)) >= 8


def test_a_few_texts_without_a_common_word_are_split() -> None:
    texts = [chr(ord("가") + 28 * n) * 3 for n in range(12)]
    distances = distances_from_uniform(texts, ["a", "b"] * 6, texts)
    assert distances.shape == (12,) and (distances >= math.log(2) - 1e-9).all()
