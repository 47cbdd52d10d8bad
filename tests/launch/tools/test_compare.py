"""``malmoi compare``: table, JSON, warnings and errors."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from finetune.score.compare import Trained
from launch.tools.compare import _notes_on
from tests.command import run_command
from tests.finetune.score.simulated import Benchmark

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Path]:
    """A run with two seeds of a model, and a better one."""
    own = Benchmark(np.random.default_rng(3), 120)
    for model, quality in (("model", 0.5), ("better", 3.0)):
        for seed, rows in own.labels(2, quality, 0.01).items():
            folder = tmp_path / "runs" / "toy" / "finetune" / "ynat" / model / f"seed-{seed}"
            folder.mkdir(parents=True)
            lines = (json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows)
            (folder / "predictions.jsonl").write_text("".join(lines), "utf-8")
            said = {"task": "ynat", "model": model, "seed": seed, "protocol": "malmoi", "split": "dev"}
            chosen = {"selected": {"by": "macro_f1"}} if model == "better" else {}
            (folder / "scores.json").write_text(json.dumps(said | chosen), "utf-8")
    return tmp_path / "runs"


def test_models_of_a_run_are_compared_by_its_name(run: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parent)
    (run.parent / "toy").mkdir()  # a folder of the same name is not the run
    ended = run_command(capfd, "compare", "toy")
    assert ended.code == 0, ended.errors
    assert "a: model of toy, b: better of toy" in ended.output
    assert "Seeds: 2. Examples: 120. p: t over seeds and examples" in " ".join(ended.output.split())
    assert "NOTE: ynat, better: selected by its score on the scored examples" in ended.output
    found = json.loads(run_command(capfd, "compare", "toy", "--json").output)
    (test,) = found["tests"]
    assert test["difference"] == pytest.approx(test["b"]["mean"] - test["a"]["mean"])
    assert test["interval"][0] < test["difference"] < test["interval"][1]
    assert (test["p_examples"], test["n"], len(found["notes"])) == (pytest.approx(1 / 2001), 120, 1)


@pytest.mark.parametrize(("own", "notes"), [({}, 1), ({"kind": "similarity"}, 0)])
def test_only_answers_of_klue_mrc_are_grouped_by_passage(own: dict[str, str], notes: int) -> None:
    model = Trained("klue-mrc", "model", ((Path("a"), {"own": own}),))
    tested: Any = SimpleNamespace(task="klue-mrc", groups=5, n=5)
    assert len(_notes_on([(model, model)], [tested])) == notes


def test_two_predictions_files_need_their_task(run: Path, capfd: Capture) -> None:
    files = [str(run / f"toy/finetune/ynat/{model}/seed-1/predictions.jsonl") for model in ("model", "better")]
    run_command(capfd, "compare", *files).refused("add --task")
    ended = run_command(capfd, "compare", *files, "--task", "ynat")
    assert ended.code == 0 and "real for these two" in ended.output


def test_a_missing_run_and_a_missing_model_are_explained(run: Path, capfd: Capture) -> None:
    run_command(capfd, "compare", "none", "--runs", str(run)).refused("none: no such run, folder or file")
    run_command(capfd, "compare", "toy", "--runs", str(run), "--b", "none").refused("no results of none")
    run_command(capfd, "compare", "toy", "--runs", str(run), "--task", "wos").refused("no results of wos")


def test_comparing_imports_neither_torch_nor_transformers(run: Path) -> None:
    code = (
        "import sys; from launch.cli import main; sys.argv[1:] = sys.argv[1:]\n"
        "try: main()\nexcept SystemExit as end: code = end.code\n"
        "sys.exit(bool(code) or 'torch' in sys.modules or 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, "compare", str(run / "toy")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_run_with_one_model_names_the_next_step(run: Path, capfd: Capture) -> None:
    shutil.rmtree(run / "toy" / "finetune" / "ynat" / "better")
    run_command(capfd, "compare", str(run / "toy")).refused("results of only one model", "Name a second run")
