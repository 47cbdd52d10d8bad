"""Who trains and who is scored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import sha256
from finetune.data.split import hold_out, load_data, sample
from finetune.examples import Example
from finetune.registry import TASKS

EXAMPLES = [Example(f"dialogue-{i // 4}-turn-{i % 4}", None, {}) for i in range(80)]


def dialogue(example: Example) -> str:
    return example.guid.split("-turn")[0]


def test_held_out_share_is_met_and_groups_stay_together() -> None:
    training, held = hold_out(EXAMPLES, 0.2, 1, dialogue)
    assert len(held) == 16
    assert not {dialogue(e) for e in training} & {dialogue(e) for e in held}
    assert sorted(training + held, key=lambda e: EXAMPLES.index(e)) == EXAMPLES


def test_the_split_depends_on_the_seed_but_not_on_the_order_of_the_file() -> None:
    def held(examples: list[Example], seed: int) -> set[str]:
        return {e.guid for e in hold_out(examples, 0.2, seed, dialogue)[1]}

    assert held(EXAMPLES, 1) == held(EXAMPLES[::-1], 1) != held(EXAMPLES, 2)


def test_one_group_is_always_left_to_train_on() -> None:
    training, held = hold_out(EXAMPLES[:8], 0.99, 1, dialogue)
    assert len(training) == len(held) == 4


def test_a_sample_is_drawn_by_seed_and_keeps_the_order() -> None:
    first = sample(EXAMPLES, 10, 1)
    assert len(first) == 10
    assert first == sorted(first, key=EXAMPLES.index)
    assert first != sample(EXAMPLES, 10, 2)
    assert sample(EXAMPLES, 100, 1) == sample(EXAMPLES, None, 1) == EXAMPLES


def write_ynat(folder: Path, split: str, count: int) -> None:
    records = [{"guid": f"ynat-v1_{split}_{i:05}", "title": f"제목 {i}", "label": "경제"} for i in range(count)]
    path = folder / "ynat-v1.1" / f"ynat-v1.1_{split}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(records), "utf-8")


def test_the_dev_file_is_scored_whole_where_there_is_a_train_file(tmp_path: Path) -> None:
    write_ynat(tmp_path, "train", 30)
    write_ynat(tmp_path, "dev", 10)
    data = load_data(TASKS["ynat"], tmp_path, FinetuneConfig())
    assert (len(data.training), len(data.scored), data.split, data.is_official_dev) == (30, 10, "dev", False)


def test_a_lone_dev_file_is_divided_where_the_task_is_named_and_the_split_says_so(tmp_path: Path) -> None:
    write_ynat(tmp_path, "dev", 50)
    data = load_data(TASKS["ynat"], tmp_path, FinetuneConfig(max_train_examples=20, split_dev=("ynat",)))
    assert (len(data.training), len(data.scored)) == (20, 10)
    assert data.split == "20% of dev, by seed; there is no train file, the rest of dev trains"


def test_a_missing_train_file_is_an_error_that_names_the_setting(tmp_path: Path) -> None:
    write_ynat(tmp_path, "dev", 50)
    with pytest.raises(BadInput, match=r"ynat-v1.1_train.json \(or .zst\) is missing; .*finetune.split_dev"):
        load_data(TASKS["ynat"], tmp_path, FinetuneConfig(split_dev=("klue-ner",)))


def test_a_task_that_may_divide_dev_still_takes_its_train_file(tmp_path: Path) -> None:
    write_ynat(tmp_path, "train", 30)
    write_ynat(tmp_path, "dev", 10)
    data = load_data(TASKS["ynat"], tmp_path, FinetuneConfig(split_dev=("ynat",)))
    assert (len(data.training), len(data.scored), data.split) == (30, 10, "dev")


def test_files_are_named_with_digest_and_version(tmp_path: Path) -> None:
    write_ynat(tmp_path, "train", 30)
    write_ynat(tmp_path, "dev", 10)
    files = load_data(TASKS["ynat"], tmp_path, FinetuneConfig()).files
    assert [(name, file["file"], file["version"]) for name, file in files.items()] == [
        ("train", "ynat-v1.1_train.json", "unknown"), ("dev", "ynat-v1.1_dev.json", "unknown"),
    ]  # fmt: skip
    assert files["dev"]["sha256"] == sha256(tmp_path / TASKS["ynat"].files.dev)


def test_training_on_what_is_scored_is_refused(tmp_path: Path) -> None:
    write_ynat(tmp_path, "dev", 10)
    train = tmp_path / TASKS["ynat"].files.train
    train.write_bytes((tmp_path / TASKS["ynat"].files.dev).read_bytes())
    with pytest.raises(BadInput, match=r"_train.json: 10 examples, such as ynat-v1_dev_00000, are in .*_dev.json"):
        load_data(TASKS["ynat"], tmp_path, FinetuneConfig())


def test_a_missing_dev_file_is_an_error_not_another_split(tmp_path: Path) -> None:
    write_ynat(tmp_path, "train", 30)
    with pytest.raises(BadInput, match=r"ynat-v1.1_dev.json \(or .zst\) is missing"):
        load_data(TASKS["ynat"], tmp_path, FinetuneConfig())


def test_one_example_cannot_both_train_and_be_scored(tmp_path: Path) -> None:
    write_ynat(tmp_path, "dev", 1)
    with pytest.raises(BadInput, match="too few examples"):
        load_data(TASKS["ynat"], tmp_path, FinetuneConfig(split_dev=("ynat",)))


def test_a_whole_official_dev_file_is_recognised(shared, tmp_path: Path) -> None:
    folder = shared("data/klue")
    whole = load_data(TASKS["klue-sts"], folder, FinetuneConfig(split_dev=("klue-sts",)))
    assert not whole.is_official_dev  # its train file is missing, so a part is scored
    assert whole.files["dev"]["version"] == "official v1.1"
    assert load_data(TASKS["klue-nli"], folder, FinetuneConfig()).is_official_dev


def test_a_part_of_dev_is_not_the_official_dev(tmp_path: Path) -> None:
    ynat = TASKS["ynat"]
    task = replace(ynat, published=ynat.published._replace(dev_examples=10))
    write_ynat(tmp_path, "train", 30)
    write_ynat(tmp_path, "dev", 10)
    assert load_data(task, tmp_path, FinetuneConfig()).is_official_dev
    assert not load_data(task, tmp_path, FinetuneConfig(max_dev_examples=9)).is_official_dev
