"""What makes a result stale and what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from finetune.config import FinetuneConfig, Hyperparameters
from finetune.queue.jobs import deciding, digest, fingerprint_of

WHOLE = {"train": {"file": "a", "sha256": "1", "version": "x"}, "dev": {"file": "b", "sha256": "2", "version": "x"}}
DEV_ONLY = {"dev": WHOLE["dev"]}


class Later(FinetuneConfig, frozen=True):
    """The configuration of a later release."""

    new_key: int = Field(0)


def fingerprint(config: FinetuneConfig, task: str = "ynat", files: dict[str, Any] = WHOLE, **other: Any) -> str:
    recipe = deciding(task, config, "fp32", {task: files})
    return fingerprint_of(task, 1, "encoder", recipe, Hyperparameters(**other))


def test_a_key_that_is_added_later_makes_nothing_stale_until_it_is_used() -> None:
    assert fingerprint(Later()) == fingerprint(FinetuneConfig())
    assert fingerprint(Later(new_key=1)) != fingerprint(FinetuneConfig())


@pytest.mark.parametrize(
    ("changed", "decides"),
    [
        ({"tasks": ("ynat",), "seeds": (1, 2), "models": ("a", "b")}, False),
        ({"device": "cpu", "price_per_hour": 2.0}, False),
        ({"pos_tags": False, "mrc_empty_windows": 0.5}, False),  # of other tasks
        ({"split_dev": ("ynat",)}, False),  # there is a train file
        ({"overrides": {"wos": {"lr": 1e-3}}, "settings": {"slow": {"protocol": "klue-baseline"}}}, False),
        ({"protocol": "klue-baseline"}, True),
        ({"max_train_examples": 100}, True),
        ({"evaluations_per_epoch": 4}, True),
    ],
)
def test_only_what_decides_the_result_of_a_task_counts_for_it(changed: dict[str, Any], decides: bool) -> None:
    assert (fingerprint(FinetuneConfig(**changed)) != fingerprint(FinetuneConfig())) == decides


def test_fingerprints_are_those_of_earlier_releases() -> None:
    assert fingerprint(FinetuneConfig()) == "027394c9b5cddc48a37fdc8b6c3a6a72"


def test_a_result_of_before_a_task_changed_is_not_todays() -> None:
    first, second = (fingerprint_of("wos", 1, "encoder", {}, Hyperparameters(), revision) for revision in (1, 2))
    assert first != second


def test_keys_count_for_the_tasks_that_they_are_about() -> None:
    plain = FinetuneConfig()
    assert fingerprint(FinetuneConfig(pos_tags=False), "klue-dp") != fingerprint(plain, "klue-dp")
    assert fingerprint(FinetuneConfig(mrc_empty_windows=0.5), "klue-mrc") != fingerprint(plain, "klue-mrc")
    divided = FinetuneConfig(split_dev=("ynat",))
    others = FinetuneConfig(split_dev=("ynat", "wos"))
    assert fingerprint(divided, files=DEV_ONLY) == fingerprint(others, files=DEV_ONLY)
    assert fingerprint(plain, lr=1e-3) != fingerprint(plain)


def test_the_digest_of_an_encoder_follows_its_files_and_not_when_it_was_exported(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", "utf-8")
    (tmp_path / "manifest.json").write_text('{"seconds": 1}', "utf-8")
    before = digest(str(tmp_path))
    (tmp_path / "manifest.json").write_text('{"seconds": 2}', "utf-8")
    assert digest(str(tmp_path)) == before
    (tmp_path / "config.json").write_text('{"hidden_size": 3}', "utf-8")
    assert digest(str(tmp_path)) != before
    assert digest("klue/bert-base") == "klue/bert-base"
