"""``malmoi score RUN``: the scores of a run, recomputed from its predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.atomic_files import atomic_write
from finetune.data.files import identify
from finetune.examples import Row
from finetune.registry import TASKS
from finetune.score.baselines import kind_of
from finetune.score.bootstrap import bootstrap
from finetune.score.scores import defined, defined_tables
from finetune.task_names import TASK_NAMES
from launch.sample.unpack import read_archive
from tests.launch.tools.test_score import malmoi

SAMPLES = 3


def write_result(run: Path, klue: Path, name: str, model: str = "model", seed: int = 1, **more: Any) -> Path:
    """Write the files of a training whose predictions are those of the counting baseline."""
    task = TASKS[name]
    train, dev = (klue / task.files.of(split) for split in ("train", "dev"))
    scored_on = train if more.get("recipe", {}).get("held_out_share") else dev
    examples = task.read(scored_on)[:: more.pop("every", 1)]
    found = kind_of(task).counting(task, task.read(train)[:40], examples)
    rows = [Row(e.guid, e.gold, *p) for e, p in zip(examples, found, strict=True)]
    scores, groups = task.score(rows), [task.group(example) for example in examples]
    result = {
        "task": name, "model": model, "settings": "", "seed": seed, "protocol": "malmoi", "split": "dev",
        "is_official_dev": False, "n": len(rows), "n_train": 40, "headline": next(iter(scores)),
        "bootstrap_samples": SAMPLES, "scores": defined(scores), "recipe": {},
        "constant": defined(scores), "counting": {}, "counting_by": "",
        "intervals": bootstrap(task, rows, groups, SAMPLES, 42), "tables": defined_tables(task.inspection.tables(rows)),
        "data": {"train": identify(train, False), "dev": identify(dev, False)}, "selected": None, "versions": {},
        **more,
    }  # fmt: skip
    folder = run / "finetune" / name / model.replace("/", "-").strip("-") / f"seed-{seed}"
    lines = (json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows)
    atomic_write(folder / "predictions.jsonl", "".join(lines))
    atomic_write(folder / "errors.json", '{"text": "비밀"}')
    atomic_write(folder / "scores.json", json.dumps(result, ensure_ascii=False))
    return folder


@pytest.fixture(scope="module")
def klue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded KLUE files, a few examples of each dev file."""
    folder = tmp_path_factory.mktemp("sample")
    for name, content in read_archive("klue.tar.zst").items():
        atomic_write(folder / name, content)
    return folder / "klue"


@pytest.fixture(scope="module")
def finished(klue: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with results of all tasks, and a second seed of one."""
    run = tmp_path_factory.mktemp("runs") / "toy"
    for name in TASK_NAMES:
        write_result(run, klue, name)
    write_result(run, klue, "ynat", seed=2, every=3, split="20% of dev, by seed")
    return run


def test_all_results_of_a_run_score_the_same(finished: Path, tmp_path: Path) -> None:
    result = malmoi("score", str(finished), cwd=tmp_path)
    lines = result.stdout.decode().splitlines()
    assert (result.returncode, len(lines)) == (0, 10), lines
    assert lines[-1] == "9 of 9 results are the same to the last digit"
    stated = json.loads((finished / "finetune/klue-nli/model/seed-1/scores.json").read_text("utf-8"))["scores"]
    [line] = [line for line in lines if line.startswith("klue-nli, model, seed 1: ")]
    assert f"accuracy {stated['accuracy']:.4f}" in line


def test_a_run_is_found_by_its_name(klue: Path, tmp_path: Path) -> None:
    write_result(tmp_path / "runs" / "mine", klue, "klue-nli", every=5)
    assert b"1 of 1 results" in malmoi("score", "mine", cwd=tmp_path).stdout


def test_changed_predictions_and_scores_are_reported(klue: Path, tmp_path: Path) -> None:
    folder = write_result(tmp_path, klue, "ynat")
    lines = (folder / "predictions.jsonl").read_text("utf-8").splitlines(keepends=True)
    (folder / "predictions.jsonl").write_text("".join(lines[1:]), "utf-8")
    result = malmoi("score", ".", cwd=tmp_path)
    printed = result.stdout.decode()
    assert result.returncode == 1 and "0 of 1 results are the same" in printed
    assert f"n is {len(lines) - 1}, but {len(lines)} in scores.json" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("score", "nowhere"), "no finetune folder"),
        (("score", "ynat"), "no predictions; give"),
        (("score", "klue-nli"), "no predictions; give"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = malmoi(*arguments, cwd=tmp_path)
    assert result.returncode == 2 and message in result.stderr.decode()
    assert len(result.stderr.decode().splitlines()) == 1


def test_a_broken_predictions_file_is_one_sentence(klue: Path, tmp_path: Path) -> None:
    folder = write_result(tmp_path, klue, "ynat")
    (folder / "predictions.jsonl").write_text('{"guid": "a"}\n', "utf-8")
    result = malmoi("score", ".", cwd=tmp_path)
    assert result.returncode == 2 and "predictions.jsonl" in result.stderr.decode()
