"""Commands that run at the same time use no name twice, even before a result records its settings."""

from __future__ import annotations

import json
from pathlib import Path

from finetune.config import FinetuneConfig
from finetune.queue.jobs import Job, named

SLOW, FAST = {"overrides": {"lr": 1e-5}}, {"overrides": {"lr": 5e-5}}


def job(seed: int, settings: str = "") -> Job:
    return Job("ynat", "model", "model", seed, FinetuneConfig(), settings)


def names(found: list[Job]) -> list[str]:
    return [job.settings for job in found]


def test_two_commands_of_other_settings_have_folders_of_their_own_and_of_the_same_settings_one(tmp_path: Path) -> None:
    with named([job(1)], {job(1): SLOW}, tmp_path) as first:
        with (
            named([job(1), job(5)], {job(1): FAST, job(5): FAST}, tmp_path) as other,
            named([job(7)], {job(7): FAST}, tmp_path) as third,
        ):
            assert (names(first), names(other), names(third)) == ([""], ["lr-5e-05"] * 2, ["lr-5e-05"])
        with named([job(2)], {job(2): SLOW}, tmp_path) as same:
            assert names(same) == [""]


def test_what_a_command_named_without_a_result_is_free_when_it_has_gone_however_it_went(tmp_path: Path) -> None:
    with named([job(1)], {job(1): SLOW}, tmp_path):
        pass
    (tmp_path / ".names-killed.json").write_text(json.dumps([["ynat", "", SLOW]]), "utf-8")
    with named([job(1)], {job(1): FAST}, tmp_path) as found:
        assert names(found) == [""]
    assert [path.name for path in tmp_path.iterdir()] == [".names.lock"]
