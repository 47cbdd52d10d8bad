"""A finished run that gets further seeds, encoders, tasks and settings: only these are trained, the rest stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.errors import BadInput
from finetune import job
from finetune.config import FinetuneConfig
from finetune.run import FinetuneInputs, run
from tests.finetune.conftest import build_tiny_encoder
from tests.finetune.test_run import TEXTS, write_klue

SETTINGS: dict[str, Any] = {
    "tasks": ("ynat",), "seeds": (1,), "split_dev": ("klue-ner",), "max_train_examples": 8,
    "save": "none", "overrides": {"ynat": {"epochs": 1, "batch_size": 4}, "klue-ner": {"epochs": 1}},
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, two encoders and a finished run ``out``; copy that before adding to it."""
    home = tmp_path_factory.mktemp("adding")
    for kind in ("bert", "roberta"):
        build_tiny_encoder(home, TEXTS, kind)
    write_klue(home / "klue")
    run(FinetuneConfig(**SETTINGS), inputs(home), home / "out")
    return home


@pytest.fixture
def out(home: Path, tmp_path: Path) -> Path:
    shutil.copytree(home / "out", tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Task and epochs of every training."""
    found: list[tuple[str, int]] = []
    train = job.train

    def watched(task: Any, model: Any, features: Any, settings: Any, *rest: Any, **named: Any) -> Any:
        found.append((task.name, settings.epochs))
        return train(task, model, features, settings, *rest, **named)

    monkeypatch.setattr(job, "train", watched)
    return found


def inputs(home: Path) -> FinetuneInputs:
    return FinetuneInputs(home / "klue", {"model": str(home / "bert"), "other": str(home / "roberta")})


def contents(out: Path) -> dict[str, bytes]:
    files = (path for path in out.rglob("*") if path.is_file() and path.suffix != ".log")
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def folders(out: Path) -> set[str]:
    return {str(path.parent.relative_to(out)) for path in out.rglob("scores.json")}


FIRST = "ynat/model/seed-1"


def test_what_is_missing_is_trained_and_nothing_else_changes(home: Path, out: Path, trained: list[Any]) -> None:
    steps: list[tuple[dict[str, Any], str, tuple[str, int]]] = [
        ({"seeds": (2, 1)}, "ynat/model/seed-2", ("ynat", 1)),
        ({"tasks": ("klue-ner", "ynat")}, "klue-ner/model/seed-1", ("klue-ner", 1)),
        ({"models": ("other", "model")}, "ynat/other/seed-1", ("ynat", 1)),
        ({"overrides": {"ynat": {"epochs": 2, "batch_size": 4}}}, "ynat/model/epochs-2/seed-1", ("ynat", 2)),
        ({"settings": {"as-published": {"protocol": "klue-baseline"}}}, "ynat/model/as-published/seed-1", ("ynat", 1)),
        ({"settings": {"same": {"protocol": "malmoi"}}}, "", ("", 0)),
    ]
    for changed, added, training in steps:
        before, known = contents(out), folders(out)
        counts = run(FinetuneConfig(**{**SETTINGS, **changed}), inputs(home), out)
        assert folders(out) == known | {added} - {""}
        assert trained == ([training] if added else [])
        assert before.items() <= contents(out).items()
        assert run(FinetuneConfig(**{**SETTINGS, **changed}), inputs(home), out) == counts
        assert len(trained) == bool(added)
        trained.clear()


def test_settings_are_found_again_under_any_name(home: Path, out: Path, trained: list[Any]) -> None:
    long = {"overrides": {"ynat": {"epochs": 2, "batch_size": 4}}}
    run(FinetuneConfig(**{**SETTINGS, "settings": {"long": long}}), inputs(home), out)
    run(FinetuneConfig(**{**SETTINGS, **long, "seeds": (1, 2)}), inputs(home), out)
    assert folders(out) == {FIRST, "ynat/model/long/seed-1", "ynat/model/long/seed-2"}
    assert trained == [("ynat", 2)] * 2
    other = {"overrides": {"ynat": {"epochs": 3, "batch_size": 4}}}
    with pytest.raises(BadInput, match=r"settings.long: ynat has results of other settings .*\(epochs 3 now\)"):
        run(FinetuneConfig(**{**SETTINGS, "settings": {"long": other}}), inputs(home), out)


def test_a_changed_encoder_is_trained_again_in_its_place(
    home: Path, out: Path, tmp_path: Path, trained: list[Any]
) -> None:
    shutil.copytree(home / "bert", tmp_path / "bert")
    given = FinetuneInputs(home / "klue", {"model": str(tmp_path / "bert")})
    run(FinetuneConfig(**SETTINGS), given, out)
    assert trained == []  # the same files in another place
    build_tiny_encoder(tmp_path, (*TEXTS, "새"), "bert")
    run(FinetuneConfig(**SETTINGS), given, out)
    assert trained == [("ynat", 1)] and folders(out) == {FIRST}


def test_too_little_memory_halves_the_micro_batch_and_gives_the_same_result(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = tmp_path / "still"  # without dropout nothing is drawn but the order
    shutil.copytree(home / "bert", still)
    config = json.loads((still / "config.json").read_text("utf-8"))
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (still / "config.json").write_text(json.dumps(config | rates), "utf-8")
    given = FinetuneInputs(home / "klue", {"model": str(still)})
    run(FinetuneConfig(**SETTINGS), given, tmp_path / "whole")
    train = job.train

    def small(task: Any, model: Any, features: Any, settings: Any, *rest: Any, **named: Any) -> Any:
        if settings.batch_size // settings.accumulation > 2:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you")
        return train(task, model, features, settings, *rest, **named)

    monkeypatch.setattr(job, "train", small)
    run(FinetuneConfig(**SETTINGS), given, tmp_path / "halved")
    whole, halved = (json.loads((tmp_path / o / FIRST / "scores.json").read_text("utf-8")) for o in ("whole", "halved"))
    assert (whole["halved_for_memory"], halved["halved_for_memory"]) == (False, True)
    assert (whole["hyperparameters"]["accumulation"], halved["hyperparameters"]["accumulation"]) == (1, 2)
    assert halved["losses"] == pytest.approx(whole["losses"], rel=1e-4)
    assert whole["fingerprint"] == halved["fingerprint"]
    config = FinetuneConfig(**{**SETTINGS, "overrides": {"ynat": {"epochs": 1, "batch_size": 16}}, "seeds": (1, 2)})
    with pytest.raises(
        BadInput, match=r"2 of 2 jobs failed; .*again:\n  ynat, model, .*seed 1: out of memory with half"
    ):
        run(config, given, tmp_path / "never")
