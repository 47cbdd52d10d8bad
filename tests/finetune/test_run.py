"""The stage as a whole on tiny invented files: results, repetition, interruption, and what is missing."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from pydantic import ValidationError

from corpus.documents.errors import BadInput
from finetune import job
from finetune.config import FinetuneConfig
from finetune.queue import pool
from finetune.queue.jobs import plan
from finetune.registry import TASKS
from finetune.run import FinetuneInputs, finish_jobs, run
from finetune.score.scores import score_file
from finetune.task_names import TASK_NAMES
from tests.finetune.conftest import build_tiny_encoder

TITLES = {"경제": "한빛은행 금리 인하", "스포츠": "푸른들팀 3연승", "정치": "시의회 예산안 처리"}
TEXTS = (*TITLES.values(), "0123456789", "서울로")
SETTINGS: dict[str, Any] = {
    "tasks": ("ynat", "klue-ner"), "seeds": (1,), "split_dev": ("klue-ner",),
    "overrides": {"ynat": {"lr": 2e-3, "epochs": 20, "batch_size": 4}, "klue-ner": {"epochs": 1}},
}  # fmt: skip


def write_klue(folder: Path) -> Path:
    for split, count in (("train", 24), ("dev", 9)):
        titles = [(label, f"{title} {i}") for i in range(count) for label, title in TITLES.items()][:count]
        records = [
            {"guid": f"ynat-v1_{split}_{i:05}", "title": title, "label": label}
            for i, (label, title) in enumerate(titles)
        ]
        path = folder / "ynat-v1.1" / f"ynat-v1.1_{split}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(records, ensure_ascii=False), "utf-8")
    sentences = [f"## klue-ner-v1_dev_{i:05}-sample\t<서울:LC>로\n서\tB-LC\n울\tI-LC\n로\tO\n\n" for i in range(10)]
    (folder / "klue-ner-v1.1").mkdir()
    (folder / "klue-ner-v1.1" / "klue-ner-v1.1_dev.tsv").write_text("".join(sentences), "utf-8")
    return folder


@pytest.fixture
def inputs(tmp_path: Path, tiny_encoder) -> FinetuneInputs:
    encoder, _ = tiny_encoder(TEXTS)
    return FinetuneInputs(data=write_klue(tmp_path / "klue"), models={"model": encoder})


class Finished(NamedTuple):
    """A whole run by one worker; copy ``out`` before changing it."""

    inputs: FinetuneInputs
    out: Path
    counts: dict[str, Any]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    home = tmp_path_factory.mktemp("finished")
    encoder, _ = build_tiny_encoder(home, TEXTS)
    inputs = FinetuneInputs(data=write_klue(home / "klue"), models={"model": encoder})
    return Finished(inputs, home / "out", run(FinetuneConfig(**SETTINGS), inputs, home / "out", workers=1))


def read(out: Path, task: str) -> dict[str, Any]:
    return json.loads((out / task / "model" / "seed-1" / "scores.json").read_text("utf-8"))


def files(out: Path) -> dict[str, bytes]:
    """All results; the time that a training took is the one thing that may differ."""
    contents = {}
    for path in sorted(p for p in out.rglob("*") if p.is_file() and p.suffix != ".log"):
        data = path.read_bytes()
        if path.name == "scores.json":
            data = json.dumps({k: v for k, v in json.loads(data).items() if k not in ("seconds", "peak_mib")}).encode()
        contents[str(path.relative_to(out))] = data
    return contents


def test_results_say_what_was_scored_and_how(finished: Finished) -> None:
    out, counts = finished.out, finished.counts
    ynat, ner = read(out, "ynat"), read(out, "klue-ner")
    assert counts["examples"] == {"ynat": {"train": 24, "dev": 9}, "klue-ner": {"train": 8, "dev": 2}}
    assert (ynat["protocol"], ynat["split"], ynat["n"], ynat["n_train"]) == ("malmoi", "dev", 9, 24)
    assert ner["split"].startswith("20% of dev, by seed")
    assert ynat["scores"]["macro_f1"] > ynat["constant"]["macro_f1"] == pytest.approx(100 / 6)
    assert ynat["losses"][-1] < ynat["losses"][0]
    assert ynat["hyperparameters"]["lr"] == 2e-3
    lower, upper = ynat["intervals"]["macro_f1"]
    assert lower <= ynat["scores"]["macro_f1"] <= upper
    names = sorted(path.name for path in out.rglob("*") if path.is_file())
    results = ("errors.json", "predictions.jsonl", "scores.json")
    assert [name for name in names if name in results] == [name for name in results for _ in range(2)]
    assert {row["class"] for row in ynat["tables"]["classes"]} > {"정치", "경제", "스포츠"}


def test_as_published_with_selection(inputs: FinetuneInputs, tmp_path: Path) -> None:
    settings = {**SETTINGS, "tasks": ("ynat",), "protocol": "klue-baseline", "evaluations_per_epoch": 2}
    run(FinetuneConfig(**settings), inputs, tmp_path / "out")
    result = read(tmp_path / "out", "ynat")
    assert result["protocol"] == "klue-baseline"
    assert result["selected"]["evaluations"] == len(result["evaluations"]) == 40
    assert max(score for _, score in result["evaluations"]) == result["selected"]["score"]
    assert result["selected"]["score"] == pytest.approx(result["scores"]["macro_f1"])


def test_the_predictions_file_gives_the_same_scores(finished: Finished) -> None:
    for task in SETTINGS["tasks"]:
        path = finished.out / task / "model" / "seed-1" / "predictions.jsonl"
        assert score_file(task, path, samples=0).scores == pytest.approx(read(finished.out, task)["scores"])


def test_a_finished_job_is_kept_and_an_unfinished_one_repeated_to_the_same_result(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished.out, out)
    (out / "ynat" / "model" / "seed-1" / "scores.json").unlink()
    (out / "ynat" / "model" / "seed-1" / "predictions.jsonl.partial").write_text('{"guid": "half', "utf-8")
    trained: list[str] = []
    train = job.train
    monkeypatch.setattr(
        job, "train", lambda task, *rest, **named: trained.append(task.name) or train(task, *rest, **named)
    )
    run(FinetuneConfig(**SETTINGS), finished.inputs, out)
    assert trained == ["ynat"]
    assert files(out) == files(finished.out)


def test_one_and_two_workers_give_the_same_results(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forked, as each spawned process imports torch; what spawned ones get is pickled here."""
    start = pool._Worker.__init__
    monkeypatch.setattr(
        pool._Worker, "__init__", lambda worker, *given: start(worker, *pickle.loads(pickle.dumps(given)))
    )
    monkeypatch.setattr(pool, "START", "fork")
    run(FinetuneConfig(**SETTINGS), finished.inputs, tmp_path / "two", workers=2)
    assert files(tmp_path / "two") == files(finished.out)


def test_missing_tasks_are_all_named_before_anything_trains(inputs: FinetuneInputs, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"missing klue-sts.*wos-v1.1_dev.json .*name only the tasks"):
        run(FinetuneConfig(), inputs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_wrong_label_stops_the_run_before_anything_trains(inputs: FinetuneInputs, tmp_path: Path) -> None:
    path = inputs.data / "klue-ner-v1.1" / "klue-ner-v1.1_dev.tsv"
    path.write_text(path.read_text("utf-8").replace("I-LC", "I-CITY", 1), "utf-8")
    with pytest.raises(BadInput, match="klue-ner-v1_dev_00000-sample: expected one character"):
        run(FinetuneConfig(**SETTINGS), inputs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_models_are_named_by_their_folder_and_must_differ() -> None:
    config = FinetuneConfig(models=("klue/bert-base", "../runs/a/model"))
    jobs = plan(config, {name: name for name in config.models})
    assert {job.folder(Path()).parts[1] for job in jobs} == {"klue-bert-base", "runs-a-model"}
    clash = FinetuneConfig(models=("a/b", "a-b"))
    with pytest.raises(BadInput, match="same name on disk"):
        plan(clash, {name: name for name in clash.models})


def test_names_of_tasks_agree_everywhere() -> None:
    assert tuple(TASKS) == TASK_NAMES
    for name, task in TASKS.items():
        assert task.name == name
        assert task.select_by in next(iter(task.published.dev_scores.values()))


def test_a_task_named_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match="listed twice: ynat"):
        FinetuneConfig(tasks=("ynat", "ynat"))


@pytest.mark.parametrize(("workers", "expected"), [(1, 1), (2, 3)])
def test_jobs_of_this_process_use_one_thread(
    workers: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    monkeypatch.setattr("finetune.run.finish", lambda *_: iter(threads.append(torch.get_num_threads()) or ()))
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        jobs: list[Any] = [object(), object()]
        finish_jobs(jobs, 0, print, tmp_path, FinetuneConfig(), device=torch.device("cpu"), workers=workers)
        assert threads == [expected] and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
