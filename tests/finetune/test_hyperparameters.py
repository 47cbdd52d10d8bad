"""Published hyperparameters by task and size, and the paper's grid."""

from __future__ import annotations

from dataclasses import asdict, fields, replace

import pytest

from finetune.config import FinetuneConfig, SwitchOverride
from finetune.job import settings_of
from finetune.registry import TASKS
from finetune.task import Hyperparameters, Switches

# KLUE-baseline run_all.sh: lr, epochs, batch size, warm-up, decay, longest input, parts of a step.
BASE = {
    "ynat": (5e-5, 4, 32, 0.1, 0.0, 128, 1),
    "klue-sts": (5e-5, 4, 32, 0.1, 0.0, 128, 1),
    "klue-nli": (5e-5, 5, 32, 0.1, 0.0, 128, 1),
    "klue-ner": (5e-5, 3, 32, 0.0, 0.0, 510, 1),
    "klue-re": (5e-5, 3, 32, 0.1, 0.0, 256, 1),
    "klue-dp": (5e-5, 10, 32, 0.1, 0.0, 256, 1),
    "klue-mrc": (3e-5, 5, 16, 0.0, 0.0, 510, 1),
    "wos": (3e-5, 5, 16, 0.1, 0.01, 510, 1),
}
LARGE = {
    "ynat": (5e-5, 4, 32, 0.2, 0.0, 128, 1),
    "klue-sts": (2e-5, 4, 32, 0.1, 0.0, 128, 1),
    "klue-nli": (5e-5, 5, 32, 0.2, 0.0, 128, 1),
    "klue-ner": (1e-5, 3, 8, 0.0, 0.0, 510, 1),
    "klue-re": (2e-5, 10, 16, 0.2, 0.0, 256, 1),
    "klue-dp": (5e-5, 15, 32, 0.2, 0.0, 256, 1),
    "klue-mrc": (3e-5, 5, 16, 0.0, 0.0, 510, 1),
    "wos": (2e-5, 5, 16, 0.1, 0.01, 510, 2),
}
PAPER_SPACE = {  # 5.2; the best on dev was reported
    "lr": (1e-5, 2e-5, 3e-5, 5e-5), "warmup_share": (0.0, 0.1, 0.2, 0.6), "weight_decay": (0.0, 0.01),
    "batch_size": (8, 16, 32), "epochs": (3, 4, 5, 10),
}  # fmt: skip
FIELDS = ("lr", "epochs", "batch_size", "warmup_share", "weight_decay", "max_tokens", "accumulation")


@pytest.mark.parametrize(("hidden", "table"), [(312, BASE), (768, BASE), (1_024, LARGE), (1_536, LARGE)])
def test_each_task_and_size_gets_its_published_values(hidden: int, table: dict[str, tuple[float, ...]]) -> None:
    found = {name: asdict(task.published(hidden)) for name, task in TASKS.items()}
    assert {name: tuple(values[field] for field in FIELDS) for name, values in found.items()} == table


def test_published_values_lie_in_the_papers_grid_but_for_one() -> None:
    outside = {
        (name, size, field)
        for name, task in TASKS.items()
        for size in ("defaults", "large")
        for field, values in PAPER_SPACE.items()
        if getattr(getattr(task, size), field) not in values
    }
    assert outside == {("klue-dp", "large", "epochs")}


def test_switches_are_off_and_recorded_only_where_they_are_on() -> None:
    assert set(SwitchOverride.model_fields) == {switch.name for switch in fields(Switches)}
    for task in TASKS.values():
        assert tuple(task.defaults.recorded()) == FIELDS
        assert tuple(task.large.recorded()) == FIELDS
    on = replace(Hyperparameters(), average="ema", ema_decay=0.9).recorded()
    assert {name: on[name] for name in on.keys() - set(FIELDS)} == {"average": "ema", "ema_decay": 0.9}


def test_a_switch_is_set_for_a_task_by_the_recipe_or_by_settings_of_a_name(tiny_encoder) -> None:
    folder, _ = tiny_encoder(["가"])
    config = FinetuneConfig(
        overrides={"ner": {"layer_decay": 0.9, "head_lr_factor": 5.0}},
        settings={"swa": {"overrides": {"ner": {"average": "swa", "swa_lr": 1e-5, "schedule": "cyclic-cosine"}}}},
    )
    task = TASKS["klue-ner"]
    plain, swa = (settings_of(task, config.under(name), folder) for name in ("", "swa"))
    assert plain == replace(task.defaults, max_tokens=300, layer_decay=0.9, head_lr_factor=5.0)
    assert swa == replace(plain, average="swa", swa_lr=1e-5, schedule="cyclic-cosine")
    assert settings_of(TASKS["ynat"], config.under("swa"), folder) == TASKS["ynat"].defaults
