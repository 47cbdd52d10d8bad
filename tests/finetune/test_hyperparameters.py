"""Published hyperparameters by task and size, and the paper's grid."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig, Hyperparameters
from finetune.job import in_parts, settings_of
from finetune.registry import TASKS

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
    found = {name: dict(task.hyperparameters_for(hidden)) for name, task in TASKS.items()}
    assert {name: tuple(values[field] for field in FIELDS) for name, values in found.items()} == table


def test_published_values_except_for_one_lie_in_the_papers_grid() -> None:
    outside = {
        (name, size, field)
        for name, task in TASKS.items()
        for size in ("hyperparameters", "large")
        for field, values in PAPER_SPACE.items()
        if getattr(getattr(task.published, size), field) not in values
    }
    assert outside == {("klue-dp", "large", "epochs")}


def test_optional_hyperparameters_are_recorded_only_if_they_differ_from_the_default() -> None:
    for task in TASKS.values():
        assert tuple(task.published.hyperparameters.recorded()) == FIELDS
        assert tuple(task.published.large.recorded()) == FIELDS
    on = Hyperparameters(average="swa", layer_decay=0.9).recorded()
    assert {name: on[name] for name in on.keys() - set(FIELDS)} == {"average": "swa", "layer_decay": 0.9}


def test_overrides_and_named_settings_change_single_hyperparameters(tiny_encoder) -> None:
    folder, _ = tiny_encoder(["가"])
    config = FinetuneConfig(
        overrides={"ner": {"layer_decay": 0.9, "lr": 1e-4}},
        settings={"swa": {"overrides": {"ner": {"average": "swa", "swa_lr": 1e-5, "schedule": "cyclic-cosine"}}}},
    )
    task = TASKS["klue-ner"]
    plain, swa = (settings_of(task, config.with_settings(name), folder) for name in ("", "swa"))
    assert plain == task.published.hyperparameters.replaced(max_tokens=300, layer_decay=0.9, lr=1e-4)
    assert swa == plain.replaced(average="swa", swa_lr=1e-5, schedule="cyclic-cosine")
    assert settings_of(TASKS["ynat"], config.with_settings("swa"), folder) == TASKS["ynat"].published.hyperparameters


def test_an_average_of_a_single_epoch_is_refused(tiny_encoder) -> None:
    folder, _ = tiny_encoder(["가"])
    config = FinetuneConfig(overrides={"ner": {"average": "swa", "epochs": 1}})
    with pytest.raises(
        BadInput, match=r"finetune\.overrides\.klue-ner: average=swa starts after epoch 1.*raise epochs"
    ):
        settings_of(TASKS["klue-ner"], config, folder)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"protocl": "malmoi"}, "settings.x.protocl: unknown key; did you mean protocol?"),
        ({"seeds": [1]}, "settings.x.seeds: unknown key; keys here are: evaluations_per_epoch, "),
        ({"pooling": "mean"}, "settings.x.pooling was removed: encoders represent a text by [CLS]"),
        ({"overrides": {"ner": {"lr": -1}}}, "settings.x.overrides.ner.lr: must be greater than 0"),
        ({"overrides": {"ner": {"fgm": 1}}}, "settings.x.overrides.ner: fgm was removed"),
    ],
)
def test_invalid_named_settings_are_reported_with_their_key(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        FinetuneConfig(settings={"x": settings})
    assert said in str(error.value)


def test_the_old_name_of_custom_tasks_still_works() -> None:
    task = {"kind": "label", "train": "train.csv", "dev": "dev.csv"}
    config = FinetuneConfig.model_validate({"own": {"mine": task}})
    assert config == FinetuneConfig(custom={"mine": task})
    assert config.tasks == ("mine",)


@pytest.mark.parametrize(
    ("batch", "accumulation", "parts", "expected"), [(32, 1, 2, 2), (32, 2, 4, 8), (16, 16, 1, 16)]
)
def test_a_step_that_needs_less_memory_has_more_parts(batch: int, accumulation: int, parts: int, expected: int) -> None:
    settings = TASKS["ynat"].hyperparameters_for(768).replaced(batch_size=batch, accumulation=accumulation)
    smaller = in_parts(settings, parts)
    assert (smaller.batch_size, smaller.accumulation) == (batch, expected)


@pytest.mark.parametrize(("batch", "accumulation", "parts"), [(6, 2, 2), (1, 1, 2), (16, 16, 2)])
def test_a_part_of_one_example_cannot_be_halved(batch: int, accumulation: int, parts: int) -> None:
    settings = TASKS["ynat"].hyperparameters_for(768).replaced(batch_size=batch, accumulation=accumulation)
    with pytest.raises(MemoryError):
        in_parts(settings, parts)
