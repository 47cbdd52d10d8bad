"""``malmoi score`` and ``malmoi finetune export``."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from launch.cli import main
from launch.tools.score import _cell


def malmoi(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the command in this process; logging is restored."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["malmoi", *arguments])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as ended:
            main()
    root.handlers[:] = handlers  # the commands of other modules set up the console
    root.setLevel(level)
    out.flush(), err.flush()
    return subprocess.CompletedProcess(arguments, ended.value.code or 0, out.buffer.getvalue(), err.buffer.getvalue())


NLI = [{"guid": g, "premise": "비가 온다.", "hypothesis": "맑다.", "gold_label": label}
       for g, label in (("a", "entailment"), ("b", "neutral"))]  # fmt: skip


def test_scores_of_a_predictions_file_with_an_official_file(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text(json.dumps(NLI), "utf-8")
    (tmp_path / "p.json").write_text(json.dumps({"a": "entailment", "b": "entailment"}), "utf-8")
    options = ["--samples", "0", "--tables"]
    result = malmoi("score", "nli", "dev.json", "p.json", *options, cwd=tmp_path)
    printed = result.stdout.decode()
    assert printed.startswith("metric\tvalue\tlower_95\tupper_95\tn\naccuracy\t50.0000\t-\t-\t2\n")
    assert "\nclasses\n" in printed
    written = json.loads(malmoi("score", "nli", "dev.json", "p.json", *options, "--json", cwd=tmp_path).stdout)
    assert (written["task"], written["n"], written["scores"]) == ("klue-nli", 2, {"accuracy": 50.0})


def test_scores_of_a_predictions_file_with_golds_and_of_a_file_that_does_not_match(tmp_path: Path) -> None:
    rows = [{"guid": r["guid"], "gold": r["gold_label"], "prediction": "neutral", "scores": None} for r in NLI]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    assert b"\naccuracy\t50.0000\t" in malmoi("score", "klue-nli", "p.jsonl", cwd=tmp_path).stdout
    (tmp_path / "dev.json").write_text(json.dumps(NLI[:1]), "utf-8")
    result = malmoi("score", "klue-nli", "dev.json", "p.jsonl", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode().splitlines() == [
        "malmoi: p.jsonl: guid b not in dev.json; are these predictions for another file?"
    ]


def test_predictions_are_exported_in_the_official_layout(tmp_path: Path) -> None:
    records = [{key: value for key, value in record.items() if key != "gold_label"} for record in NLI]
    (tmp_path / "test.json").write_text(json.dumps(records), "utf-8")
    (tmp_path / "p.json").write_text(json.dumps({"a": "entailment", "b": "neutral"}), "utf-8")
    result = malmoi("finetune", "export", "klue-nli", "test.json", "p.json", "out.json", cwd=tmp_path)
    assert result.stdout.decode() == "out.json: 2 predictions\n"
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == NLI


def test_undefined_figures_of_tables_are_named() -> None:
    assert [_cell(value) for value in (None, float("nan"), 0.5, 3, "가")] == [
        "undefined",
        "undefined",
        "0.5000",
        "3",
        "가",
    ]
