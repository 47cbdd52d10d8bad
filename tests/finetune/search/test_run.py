"""Whole studies on tiny files: killed, extended, over processes, on what they choose, and what becomes of the best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.split import load_data
from finetune.queue import pool
from finetune.registry import task_of
from finetune.run import FinetuneInputs
from finetune.search import run as search_run
from finetune.search.run import run, train_best, trial_config
from tests.finetune.conftest import build_tiny_encoder
from tests.finetune.test_run import TEXTS, write_klue

SPACE = {"lr": (1e-4, 2e-3), "batch_size": (4, 8), "epochs": (1, 2), "warmup_share": None, "weight_decay": None}
TRIALS = 5
BASE: dict[str, Any] = {
    "tasks": ("ynat",), "seeds": (1,), "save": "none", "overrides": {"ynat": {"max_tokens": 16}}
}  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> FinetuneInputs:
    home = tmp_path_factory.mktemp("search")
    encoder, _ = build_tiny_encoder(home, TEXTS)
    return FinetuneInputs(write_klue(home / "klue"), {"model": encoder})


def config(**search: Any) -> FinetuneConfig:
    return FinetuneConfig(**BASE, search={"method": "random", "space": SPACE, **search})


def lines(out: Path, name: str = "ynat") -> list[dict[str, Any]]:
    """The trials, without the time they took."""
    text = (out / name / "model" / "trials.jsonl").read_text("utf-8")
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in text.splitlines()]


def best(out: Path) -> dict[str, Any]:
    return json.loads((out / "ynat" / "model" / "best.json").read_text("utf-8"))


def count_trainings(monkeypatch: pytest.MonkeyPatch, stop_at: int | None = None) -> list[str]:
    """Names of the trainings that begin; the one of that number is killed in the middle."""
    begun: list[str] = []
    train = search_run.finetune_one

    def counted(job: Any, *given: Any, **named: Any) -> Any:
        begun.append(job.settings)
        if len(begun) == stop_at:
            (job.folder(given[2])).mkdir(parents=True, exist_ok=True)
            (job.folder(given[2]) / "scores.json").write_text("{", "utf-8")
            raise KeyboardInterrupt
        return train(job, *given, **named)

    monkeypatch.setattr(search_run, "finetune_one", counted)
    return begun


@pytest.fixture(scope="module")
def whole(inputs: FinetuneInputs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "out"
    run(config(trials=TRIALS), inputs, out)
    return out


def test_trials_are_listed_in_order_with_what_chose_them_and_no_model_is_kept(whole: Path) -> None:
    found = lines(whole)
    assert [line["number"] for line in found] == list(range(TRIALS))
    assert {line["scored_on"] for line in found} == {"20% of the training examples, by seed; the others train"}
    assert {line["metric"] for line in found} == {"macro_f1"}
    assert {p.name for p in whole.rglob("*") if p.is_file()} == {
        "jobs.log", "trials.jsonl", "best.json", "trial.json", "scores.json"
    }  # fmt: skip
    about = best(whole)
    assert about["best"]["score"] == max(line["score"] for line in found if line["state"] == "complete")
    assert (about["selected_on"], about["trials"]) == ("train", TRIALS)


def test_a_study_that_was_killed_is_finished_as_if_it_had_not_been(
    inputs: FinetuneInputs, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(trials=TRIALS)
    with monkeypatch.context() as patch:
        first = count_trainings(patch, stop_at=4)
        with pytest.raises(KeyboardInterrupt):
            run(settings, inputs, tmp_path)
    second = count_trainings(monkeypatch)
    run(settings, inputs, tmp_path)
    assert lines(tmp_path) == lines(whole)
    assert not set(first[:-1]) & set(second)


def test_a_study_is_extended_and_another_one_shares_its_trainings(
    inputs: FinetuneInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    begun = count_trainings(monkeypatch)
    run(config(trials=3), inputs, tmp_path / "a")
    run(config(trials=6), inputs, tmp_path / "a")
    longer = len(begun)
    assert longer == len(set(begun)) <= 6  # the same combination is trained once
    assert f"({longer} of {longer} done" in caplog.messages[-1]
    monkeypatch.setattr(pool, "START", "fork")
    run(config(trials=3), inputs, tmp_path / "b", workers=2)
    assert lines(tmp_path / "a")[:3] == lines(tmp_path / "b")
    del begun[:]
    run(config(method="grid"), inputs, tmp_path / "a")
    assert len(lines(tmp_path / "a")) == 8 and len(begun) == 8 - longer


def test_what_chooses_is_disjoint_from_training_and_from_dev(inputs: FinetuneInputs) -> None:
    for name in ("ynat", "klue-ner"):  # the second has no train file: a part of its dev trains
        plain = FinetuneConfig(**{**BASE, "tasks": ("ynat", "klue-ner"), "split_dev": ("klue-ner",)})
        task = task_of(name, plain)
        whole, part = (load_data(task, inputs.data, c) for c in (plain, trial_config(plain, name)))
        training, chosen, dev = ({e.guid for e in es} for es in (part.training, part.scored, whole.scored))
        assert training | chosen == {example.guid for example in whole.training}
        assert not training & chosen and not chosen & dev and not training & dev
        assert len(chosen) == pytest.approx(0.2 * len(whole.training), abs=1)
        assert not part.is_official_dev
    grouped = task_of("ynat", plain)
    grouped = type(grouped)(**{**{f: getattr(grouped, f) for f in grouped.__slots__},
                               "group": lambda e: e.guid[:-1]})  # fmt: skip
    part = load_data(grouped, inputs.data, trial_config(plain, "ynat"))
    assert not {e.guid[:-1] for e in part.training} & {e.guid[:-1] for e in part.scored}


def test_the_best_is_trained_with_all_examples_over_all_seeds_and_says_what_chose_it(
    inputs: FinetuneInputs, tmp_path: Path
) -> None:
    searched, out = tmp_path / "search", tmp_path / "out"
    for where in ("train", "dev"):
        settings = config(trials=2, select_on=where).model_copy(update={"save": "all"})
        run(settings, inputs, searched)
        train_best(settings, inputs, out, searched=searched)
        assert {line["scored_on"] for line in lines(searched)} == {
            "dev" if where == "dev" else "20% of the training examples, by seed; the others train"
        }
    found = {
        p.parent.relative_to(out / "ynat" / "model"): json.loads(p.read_text("utf-8")) for p in out.rglob("s*.json")
    }
    names = {"best-of-search": "train", "best-of-search-2": "dev"}  # another choice, even of equal values
    assert {str(path) for path in found} == {f"{name}/seed-{seed}" for name in names for seed in (1,)}
    for path, result in found.items():
        assert (result["searched_on"], result["split"], result["n_train"]) == (names[path.parts[0]], "dev", 24)
        card = (out / "ynat" / "model" / path / "model" / "README.md").read_text("utf-8")
        assert ("searched on the same examples" in card) == (result["searched_on"] == "dev")
        if result["searched_on"] == "dev":
            chosen = best(searched)["best"]
            assert {k: result["hyperparameters"][k] for k in chosen["values"]} == chosen["values"]
            assert result["seed"] != 1 or result["scores"]["macro_f1"] == pytest.approx(chosen["score"])


def test_a_loss_that_explodes_is_a_failed_trial_and_other_failures_stop_the_study(
    inputs: FinetuneInputs, tmp_path: Path
) -> None:
    wild = config(method="grid", space={**SPACE, "lr": (2e-3, 1e30), "batch_size": (4,), "epochs": (2,)})
    counts = run(wild, inputs, tmp_path)
    assert (counts["complete"], counts["failed"]) == (1, 1)
    failed = next(line for line in lines(tmp_path) if line["state"] == "failed")
    assert failed["values"]["lr"] == 1e30 and "not a finite number" in failed["reason"] and failed["score"] is None
    odd = config(method="grid", space={**SPACE, "batch_size": (4,), "accumulation": (3,)})
    with pytest.raises(BadInput, match="4 of 4 jobs failed"):
        run(odd, inputs, tmp_path)
    only = config(method="grid", space={**SPACE, "lr": (1e30,), "batch_size": (4,), "epochs": (2,)})
    run(only, inputs, tmp_path)
    with pytest.raises(BadInput, match="no trial with a score"):
        train_best(only, inputs, tmp_path / "out", searched=tmp_path)
