"""Trainings that start from another task's trained encoder: seeds pair, whatever fails, is killed, or is there already.

Here KLUE-NER starts from YNAT, whose files are the smallest.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from corpus.documents.errors import BadInput
from finetune import job
from finetune.config import FinetuneConfig
from finetune.encoder.loading import load_tokenizer
from finetune.encoder.module import find_encoder
from finetune.queue import pool
from finetune.queue.attempts import Outcome
from finetune.queue.jobs import Job, alone, named, plan
from finetune.queue.pool import KILLED_TWICE, Slot, finish
from finetune.registry import TASKS
from finetune.run import FinetuneInputs, run
from finetune.saved_models.save import Trained
from finetune.saved_models.start_encoder import START_NAME, save_start
from tests.finetune.queue.test_kills import contents, disturb, finished

SETTINGS: dict[str, Any] = {
    "tasks": ("klue-ner", "ynat"), "seeds": (1, 2), "bootstrap_samples": 2, "split_dev": ("klue-ner",),
    "max_train_examples": 4, "precision": "fp32", "device": "cpu",
    "overrides": {"ynat": {"epochs": 2, "batch_size": 2, "lr": 1e-3}, "klue-ner": {"epochs": 1}},
}  # fmt: skip
FROM_YNAT = {"from-ynat": {"start_from": {"ner": "tc"}}}
PLAIN, CONFIG = FinetuneConfig(**SETTINGS), FinetuneConfig(**SETTINGS, settings=FROM_YNAT)
STARTED = "klue-ner/model/from-ynat"


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "START", "fork")
    monkeypatch.setattr(pool, "POLL_SECONDS", 0.05)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder, data, and in ``out`` what one process made of ``CONFIG``; in ``plain`` of the same without starts."""
    home = finished(tmp_path_factory.mktemp("start"), CONFIG)
    run(PLAIN, inputs(home), home / "plain")
    return home


@pytest.fixture
def plain(home: Path, tmp_path: Path) -> Path:
    shutil.copytree(home / "plain", tmp_path / "plain")
    return tmp_path / "plain"


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Of every training its task and the encoder's weights at its start and end."""
    found: list[dict[str, Any]] = []
    train = job.train

    def weights(model: Any) -> dict[str, torch.Tensor]:
        of_encoder = find_encoder(model).state_dict().items()
        return {name: weight.clone() for name, weight in of_encoder if "pooler" not in name}  # KLUE-NER has none

    def watched(task: Any, model: Any, *rest: Any, **named: Any) -> Any:
        found.append({"task": task.name, "start": weights(model)})
        result = train(task, model, *rest, **named)
        found[-1]["end"] = weights(model)
        return result

    monkeypatch.setattr(job, "train", watched)
    return found


def inputs(home: Path) -> FinetuneInputs:
    return FinetuneInputs(home / "klue", {"model": str(home / "bert")})


def result(out: Path, place: str) -> dict[str, Any]:
    return json.loads((out / place / "scores.json").read_text("utf-8"))


def are_equal(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_seed_n_starts_from_the_weights_of_seed_n_and_no_model_need_stay(
    home: Path, tmp_path: Path, trainings: list[dict[str, Any]]
) -> None:
    run(FinetuneConfig(**SETTINGS, settings=FROM_YNAT, save="none"), inputs(home), tmp_path)
    ynat, ner = ([t for t in trainings if t["task"] == task] for task in ("ynat", "klue-ner"))
    assert len(ynat) == 2 and len(ner) == 4  # YNAT once for both settings
    assert not are_equal(ynat[0]["end"], ynat[1]["end"])
    started = [[n for n, source in enumerate(ynat) if are_equal(one["start"], source["end"])] for one in ner]
    assert sorted(started) == [[], [], [0], [1]]
    assert sum(are_equal(one["start"], ynat[0]["start"]) for one in ner) == 2
    for seed in (1, 2):
        found, source = result(tmp_path, f"{STARTED}/seed-{seed}"), result(tmp_path, f"ynat/model/seed-{seed}")
        expected = {"task": "ynat", "settings": "", "fingerprint": source["fingerprint"]}
        assert found["started_from"] == expected
        assert (found["recipe"]["start_from"], found["recipe"]["start"]) == ("ynat", source["recipe"])
        assert found["encoder"] == source["encoder"]
    for out, models in ((tmp_path, 0), (home / "out", 3)):  # the latter keeps the best of each settings
        assert not list(out.rglob(START_NAME))
        assert len(list(out.rglob("seed-*/model/malmoi.json"))) == models


def test_who_starts_from_nothing_has_the_files_of_a_run_without_starts(home: Path) -> None:
    with_starts, without = contents(home / "out"), contents(home / "plain")
    assert {name: digest for name, digest in with_starts.items() if not name.startswith(STARTED)} == without
    assert len(with_starts) > len(without)


def test_two_workers_give_the_files_of_one_and_a_second_command_trains_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(CONFIG, inputs(home), tmp_path, workers=2)
    assert contents(tmp_path) == contents(home / "out")
    monkeypatch.setattr(job, "train", None)
    run(CONFIG, inputs(home), tmp_path)


def test_a_source_that_fails_costs_what_starts_from_it_and_the_next_command_does_both(
    home: Path, tmp_path: Path
) -> None:
    train, wrong = job.train, job.seed_everything(2, "ynat")

    def failing(task: Any, model: Any, features: Any, settings: Any, seed: int, *rest: Any, **named: Any) -> Any:
        if seed == wrong:
            raise RuntimeError("loss is not a number")
        return train(task, model, features, settings, seed, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "train", failing)
        with pytest.raises(BadInput) as caught:
            run(CONFIG, inputs(home), tmp_path)
    assert str(caught.value).splitlines() == [
        "2 of 6 jobs failed; what is finished is kept, and the same command tries them again:",
        "  ynat, model, seed 2: loss is not a number",
        "  klue-ner, model, from-ynat, seed 2: it starts from ynat, model, seed 2, which failed",
    ]
    assert (tmp_path / STARTED / "seed-1" / "scores.json").is_file()
    run(CONFIG, inputs(home), tmp_path)
    assert contents(tmp_path) == contents(home / "out")


def test_a_source_whose_process_dies_twice_fails_what_starts_from_it(tmp_path: Path) -> None:
    def work(job: Job, *, parts: int) -> dict[str, Any]:
        if (job.task, job.seed) == ("ynat", 2):
            os.kill(os.getpid(), 9)
        assert job.start is None or (tmp_path / f"{job.seed}").exists()
        (tmp_path / f"{job.seed}").touch()
        return {"log_line": str(job)}

    jobs = plan(CONFIG, {"model": "model"})
    found: dict[tuple[str, str, int], Outcome] = {
        (outcome.job.task, outcome.job.settings, outcome.job.seed): outcome
        for outcome in finish(jobs, work, tmp_path / "out", lambda job: None, [Slot({})] * 2)
        if outcome.result or outcome.failure
    }
    assert len(found) == len(jobs) == 8
    failed = {name: outcome.failure for name, outcome in found.items() if outcome.failure}
    assert failed.pop(("ynat", "", 2)) == failed.pop(("ynat", "from-ynat", 2)) == KILLED_TWICE
    assert failed == {("klue-ner", "from-ynat", 2): "it starts from ynat, model, from-ynat, seed 2, which failed"}


def test_a_kill_of_the_command_over_two_loses_nothing(home: Path, tmp_path: Path) -> None:
    assert disturb(home, tmp_path / "out", 2, os.getppid, 30, CONFIG)


@pytest.mark.matrix
@pytest.mark.parametrize("workers", [1, 2])
def test_a_kill_at_any_moment_loses_nothing(workers: int, home: Path, tmp_path: Path) -> None:
    for moment in range(1, 80, 2):
        disturb(home, tmp_path / f"{moment}", workers, os.getpid if workers == 1 else os.getppid, moment, CONFIG)


def test_what_is_there_is_used_and_what_was_not_kept_is_trained_again_to_the_same(
    home: Path, plain: Path, trainings: list[dict[str, Any]]
) -> None:
    """``save: best`` kept the model of one seed of YNAT."""
    before = contents(plain)
    run(CONFIG, inputs(home), plain)
    assert sorted(t["task"] for t in trainings) == ["klue-ner", "klue-ner", "ynat"]
    assert contents(plain) == contents(home / "out")
    assert before.items() <= contents(plain).items()
    trainings.clear()
    run(FinetuneConfig(**{**SETTINGS, "bootstrap_samples": 3}, settings=FROM_YNAT), inputs(home), plain)
    assert trainings == []  # other intervals need no encoder


def test_another_training_of_the_source_makes_another_result(
    home: Path, plain: Path, trainings: list[dict[str, Any]]
) -> None:
    start = {"start_from": {"klue-ner": "ynat"}, "seeds": (1,)}
    run(FinetuneConfig(**{**SETTINGS, **start}), inputs(home), plain)
    longer = {**SETTINGS["overrides"], "ynat": {**SETTINGS["overrides"]["ynat"], "epochs": 3}}
    trainings.clear()
    run(FinetuneConfig(**{**SETTINGS, **start, "overrides": longer}), inputs(home), plain)
    assert [t["task"] for t in trainings] == ["ynat", "klue-ner"]
    places = sorted(path.parent.relative_to(plain) for path in plain.glob("klue-ner/model/start_from-ynat*/seed-1"))
    first, second = (result(plain, f"{place}/seed-1") for place in places)
    assert first["fingerprint"] != second["fingerprint"]
    assert second["started_from"]["settings"] == "epochs-3"
    named_so = FinetuneConfig(**{**SETTINGS, "seeds": (1,)}, settings={"x": {"start_from": {"ner": "ynat"}}})
    run(named_so, inputs(home), plain)
    assert not (plain / "klue-ner/model/x").exists()  # the same as start_from-ynat


def test_named_settings_whose_source_has_changed_are_told_what(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home / "out", tmp_path / "out")
    longer = {**SETTINGS["overrides"], "ynat": {**SETTINGS["overrides"]["ynat"], "epochs": 3}}
    config = FinetuneConfig(**{**SETTINGS, "overrides": longer}, settings=FROM_YNAT)
    with pytest.raises(BadInput, match=r"settings.from-ynat: klue-ner has .*\(ynat epochs 3 now\)"):
        run(config, inputs(home), tmp_path / "out")


def test_what_starts_from_it_stays_as_long_as_another_command_is_at_work(home: Path, tmp_path: Path) -> None:
    with named([], {}, tmp_path):
        with alone(tmp_path) as is_alone:
            assert is_alone
        run(CONFIG, inputs(home), tmp_path)
        assert len(list(tmp_path.rglob(START_NAME))) == 2
    run(CONFIG, inputs(home), tmp_path)
    assert contents(tmp_path) == contents(home / "out")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"start_from": {"ner": "ner"}}, "start_from.klue-ner: a task cannot start from itself; name another task"),
        ({"start_from": {"ner": "nli"}}, "klue-nli is not among the tasks; add it: finetune.tasks=klue-ner,ynat,"),
        ({"start_from": {"ner": "tc", "tc": "nli"}}, "ynat itself starts from klue-nli, but only one step"),
        ({"settings": {"a": {"start_from": {"ner": "sts"}}}}, "settings.a.start_from.klue-ner: klue-sts is not among"),
        ({"settings": {"a": {"start_from": {"ner": "tcc"}}}}, "tcc: no such task"),
    ],
)  # fmt: skip
def test_starts_that_cannot_be_are_refused_in_a_sentence(changed: dict[str, Any], said: str) -> None:
    with pytest.raises((ValidationError, BadInput)) as caught:
        FinetuneConfig(**SETTINGS, **changed)
    assert said in str(caught.value)


def test_settings_may_leave_the_start_out_and_others_tasks_may_have_one() -> None:
    config = FinetuneConfig(**SETTINGS, start_from={"ner": "tc", "sts": "nli"}, settings={"plain": {"start_from": {}}})
    jobs = plan(config, {"model": "model"})
    assert {(job.settings, job.start and job.start.task) for job in jobs if job.task == "klue-ner"} == {
        ("", "ynat"), ("plain", None),
    }  # fmt: skip
    assert [job.task for job in jobs] == ["ynat"] * 4 + ["klue-ner"] * 4


@pytest.mark.parametrize(
    ("source", "then"), zip(TASKS, [*list(TASKS)[1:], "ynat"], strict=True), ids=lambda name: str(name)
)
def test_any_task_starts_from_any_other(source: str, then: str, tiny_encoder, tmp_path: Path) -> None:
    folder, _ = tiny_encoder(["가나다"], "roberta")
    tokenizer = load_tokenizer(folder, TASKS[source].special_tokens)
    model = TASKS[source].model(folder, tokenizer)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3)
    save_start(tmp_path, Trained(model, tokenizer))
    start = str(tmp_path / START_NAME)
    after = TASKS[then].model(start, load_tokenizer(start, TASKS[then].special_tokens))
    before, found = find_encoder(model).state_dict(), find_encoder(after).state_dict()
    assert {name for name in before if "pooler" not in name} <= found.keys()
    for name, weight in found.items():
        if name in before:
            assert torch.equal(weight[: len(before[name])] if weight.dim() else weight, before[name]), name
